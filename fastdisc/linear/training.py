"""Training of logistic regression: from checked data and settings to solutions.

Used by the estimators for one problem, for paths over C, for folds, and for problems over shared
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._data.rows import Rows
from .._data.source import MemorySource
from .._kernels.contract import NO_OFFSET, Array, Batch
from .._kernels.enums import RowLoss
from .._objectives.coordinates import Problem
from .._objectives.row_sums import RowSums
from .._solvers.newton import NewtonState
from .._solvers.quadratic_model import QuadraticModel
from .._solvers.registry import SOLVERS, choose_solver
from .._solvers.result import Result, Trace
from .settings import Settings


def make_data(
    X: Rows, r: Array, s: Array, n_classes: int, settings: Settings, offset: Array = NO_OFFSET
) -> RowSums:
    """The cross-entropy of rows: of one sigmoid for two classes, of softmax for more."""
    batch = Batch(X, r, s, offset)
    source = MemorySource(batch, backend=settings.backend, n_threads=settings.n_threads)
    if n_classes == 2:
        return RowSums(source, RowLoss.LOGISTIC)
    return RowSums(source, RowLoss.SOFTMAX, n_outputs=n_classes)


def make_problem(data: RowSums, classes: Array, settings: Settings) -> Problem:
    """The problem in the solver's coordinates."""
    return Problem(
        data,
        intercept=settings.fit_intercept,
        reference=settings.reference(classes),
        standardize=settings.standardize,
        rescale=settings.solver != "gd",
    )


def solve(
    problem: Problem,
    W: Array,
    C: float,
    settings: Settings,
    states: dict[str, Any] | None = None,
) -> tuple[Result, str]:
    """The solution for a value of C from the start W, and the name of the solver. `states` has what
    earlier solutions on the same data left, by solver."""
    l1, l2 = settings.strengths(C)
    objective, name = problem.penalized(l2), settings.solver
    if name == "auto":
        name = choose_solver(objective, l1, prefer_products=bool(l2))
    if l1 and name != "proximal":
        raise ValueError(
            f"solver {name!r} does not support an L1 penalty: take solver='auto' or 'proximal'"
        )
    options = _solver_options(name, problem, l1, settings)
    if states and name in states:
        options["state"] = states[name]
    trace = Trace(settings.verbose, settings.callback, settings.patience)
    limits = {"tol": settings.tol, "max_iter": settings.max_iterations(name), "trace": trace}
    result = SOLVERS[name].solve(objective, W, **limits, **options)
    if not (l1 or l2):
        result = result._replace(W=result.start)  # `summary` needs the Hessian where W is
    if objective.penalty.shift_invariant and name != "gd":
        # Changes no output, and makes the scores the same for every solver.
        result.W[:, 0] -= problem.to_raw(result.W)[:, 0].mean()
    return result, name


def _solver_options(name: str, problem: Problem, l1: float, settings: Settings) -> dict[str, Any]:
    """The options that only some solvers have."""
    options: dict[str, Any] = {}
    if name in ("gd", "sgd"):
        options["eta"] = settings.eta
    if name == "sgd":
        options["seed"] = int(check_random_state(settings.random_state).randint(2**31))
    if name == "proximal":
        options |= {"l1": problem.l1(l1), "backend": settings.backend}
    return options


def solve_path(problem: Problem, Cs: Array, settings: Settings) -> Iterator[tuple[float, Result]]:
    """(C, Result) for each C, the strongest penalty first, each started from the last."""
    W = np.zeros(problem.shape)
    states = {"newton": NewtonState(), "proximal": QuadraticModel()}
    for C in np.sort(Cs):
        result, _ = solve(problem, W, C, settings, states)
        W = result.start
        yield C, result


def with_tol(settings: Settings, tol: float) -> Settings:
    """The same settings with another tolerance."""
    return replace(settings, tol=tol)


def warn_not_converged(result: Result, solver: str, tol: float, stacklevel: int = 4) -> None:
    """Warn if a solver stopped short of `tol` and was not asked to stop."""
    if result.converged or result.stopped:
        return
    warnings.warn(
        f"solver {solver!r} stopped after {result.n_iter} iterations with the gradient at "
        f"{result.gradient_norm:.1e} of its norm at zero weights; tol is {tol:g}. Raise max_iter, "
        "or take C smaller.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
