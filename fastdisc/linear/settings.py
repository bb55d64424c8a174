"""The parameters of logistic regression, checked, as the training code reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import runtime
from .._kernels.contract import Array
from .._solvers.registry import SOLVERS
from .._validation.parameters import check_choice, check_number

ALIASES = {"newton-cholesky": "newton", "liblinear": "auto", "sag": "auto", "saga": "auto"}
L1_SHARES = {"l2": 0.0, "l1": 1.0}  # of the older parameter `penalty`
DEFAULT_PATIENCE = 10  # of early_stopping=True


@dataclass(frozen=True)
class Settings:
    """What training depends on besides the data."""

    C: float
    no_penalty: bool
    l1_ratio: float
    tol: float
    fit_intercept: bool
    random_state: Any
    solver: str
    max_iter: int | None
    standardize: bool
    reference_class: Any
    patience: int | None
    eta: float | str
    callback: Any
    verbose: int
    backend: str | None
    n_threads: int | None

    @property
    def unpenalized(self) -> bool:
        """Whether the fit with the parameter C has no penalty."""
        return self.no_penalty or bool(np.isinf(self.C))

    def strengths(self, C: float) -> tuple[float, float]:
        """The L1 and L2 penalties on the sum of losses for a value of C."""
        C = np.inf if self.no_penalty else C
        return self.l1_ratio / C, (1 - self.l1_ratio) / C

    def max_iterations(self, solver: str) -> int:
        """The number of iterations that a solver may take."""
        return SOLVERS[solver].max_iter if self.max_iter is None else self.max_iter

    @property
    def can_share_rows(self) -> bool:
        """Whether many such problems can be solved over shared rows: by Newton's method, without an
        L1 penalty, in one scale."""
        newton = self.solver in ("auto", "newton")
        return newton and not self.l1_ratio and not self.standardize

    def reference(self, classes: Array) -> int | None:
        """The row of the reference class; None without one, and for two classes, whose single row
        of weights is relative anyway."""
        if self.reference_class is None:
            return None
        found = np.flatnonzero(classes == self.reference_class)
        if len(found) != 1:
            raise ValueError(
                f"reference_class must be one of {classes.tolist()}, got {self.reference_class!r}"
            )
        return int(found[0]) if len(classes) > 2 else None


def read_settings(model: Any) -> Settings:
    """The parameters of a LogisticRegression; ValueError for what is not valid."""
    check_choice(model.penalty, "penalty", ("deprecated", "l2", "l1", "elasticnet", None))
    check_number(model.C, "C", low=0, open_low=True)
    if check_number(model.l1_ratio, "l1_ratio", low=0) > 1:
        raise ValueError(f"l1_ratio must be a number from 0 to 1, got {model.l1_ratio!r}")
    check_number(model.tol, "tol", low=0)
    check_choice(model.solver, "solver", ("auto", *SOLVERS, *ALIASES))
    if model.max_iter is not None:
        check_number(model.max_iter, "max_iter", low=1, whole=True)
    if model.eta != "auto":
        check_number(model.eta, "eta", low=0, open_low=True)
    check_number(model.verbose, "verbose", low=0, whole=True)
    for name in ("fit_intercept", "warm_start", "standardize"):
        check_choice(getattr(model, name), name, (True, False))
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be callable, got {model.callback!r}")
    runtime.check(model.backend, model.n_threads)
    return Settings(
        C=model.C,
        no_penalty=model.penalty is None,
        l1_ratio=L1_SHARES.get(model.penalty, model.l1_ratio),
        tol=model.tol,
        fit_intercept=model.fit_intercept,
        random_state=model.random_state,
        solver=ALIASES.get(model.solver, model.solver),
        max_iter=model.max_iter,
        standardize=model.standardize,
        reference_class=model.reference_class,
        patience=_patience(model.early_stopping),
        eta=model.eta,
        callback=model.callback,
        verbose=model.verbose,
        backend=model.backend,
        n_threads=model.n_threads,
    )


def _patience(early_stopping: bool | int) -> int | None:
    if isinstance(early_stopping, (bool, np.bool_)):
        return DEFAULT_PATIENCE if early_stopping else None
    return check_number(early_stopping, "early_stopping", low=1, whole=True)
