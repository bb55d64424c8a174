"""Solutions of a logistic regression for folds of the rows and strengths of the penalty."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array
from .._objectives.coordinates import Problem
from .._objectives.row_sums import RowSums
from .._objectives.shared_rows import SharedRows, worthwhile
from .._solvers import newton
from .._solvers.newton import NewtonState
from .._solvers.result import Trace
from .settings import Settings
from .training import make_problem, solve_path, warn_not_converged

# Folds that share their passes: row groups are found by a table of 2^(folds + 1) entries.
MAX_SHARED_FOLDS = 16

Paths = tuple[Array, Array]  # weights (folds, n, K, d+1) and iterations (folds, n)


def fold_paths(
    settings: Settings, data: RowSums, classes: Array, folds: list[Array], Cs: Array
) -> Paths:
    """Solutions on the training rows of each fold, for each of n values of C."""
    rising = np.argsort(Cs, kind="stable")
    back = np.argsort(rising)
    weights, n_iter = _sorted_paths(settings, data, classes, folds, Cs[rising])
    return weights.take(back, axis=1), n_iter.take(back, axis=1)


def _sorted_paths(
    settings: Settings, data: RowSums, classes: Array, folds: list[Array], Cs: Array
) -> Paths:
    """The same, with the values of C in rising order."""
    if len(classes) == 2 and settings.can_share_rows:
        groups = row_groups(folds, data.source.batch.r)
        if groups is not None:
            r, signs = groups
            source = data.source
            weighted = source.with_weights(data.unit * source.batch.s)
            batch = weighted.batch._replace(r=r)
            grouped = RowSums(weighted.like(batch), data.loss)
            problem = make_problem(grouped, classes, settings)
            if worthwhile(problem):
                return shared_paths(settings, problem, signs, Cs)
    found = [fold_path(settings, data, classes, train, Cs) for train in folds]
    weights, n_iter = zip(*found, strict=True)
    return np.stack(weights), np.stack(n_iter)


def row_groups(folds: list[Array], r: Array) -> tuple[Array, Array] | None:
    """Groups of rows with the same class that train the same folds: the group of each row, (N,)
    int32, and the sign of each group in each fold.

    None if a fold has a row more than once, or if there are too many folds.
    """
    if len(folds) > MAX_SHARED_FOLDS:
        return None
    code = r.astype(np.int32)  # the class in the lowest bit, then a bit for each fold
    for f, train in enumerate(folds):
        bit = np.zeros(len(r), np.int32)
        bit[train] = 1 << (f + 1)
        if np.count_nonzero(bit) < len(train):
            return None
        code |= bit
    present = np.bincount(code, minlength=2 ** (len(folds) + 1)) > 0
    codes = np.flatnonzero(present)[:, None]
    trains = codes >> np.arange(1, len(folds) + 1) & 1
    signs = (2 * (codes & 1) - 1) * trains
    return (np.cumsum(present) - 1).astype(np.int32)[code], signs.astype(np.int8)


def shared_paths(settings: Settings, problem: Problem, signs: Array, Cs: Array) -> Paths:
    """All folds in shared passes; the solutions for one C are the start for the next."""
    shared, state = SharedRows.of(problem, signs, 1.0), NewtonState()
    W = list(np.zeros((signs.shape[1], 1, problem.d + 1)))
    weights, n_iter, max_iter = [], [], settings.max_iterations("newton")
    for C in Cs:
        trace = Trace(settings.verbose)
        trace.print("cv", f"C={C:g}")
        objective = shared.with_penalty(problem.penalty(settings.strengths(C)[1]))
        results = newton.solve_shared(
            objective, W, tol=settings.tol, max_iter=max_iter, trace=trace, state=state
        )
        for f, result in enumerate(results):
            name = f"newton at C={C:g}, fold {f}"
            warn_not_converged(result, name, settings.tol, stacklevel=6)
        V = problem.to_raw(np.vstack([result.W for result in results]))
        weights.append(V[:, None])
        n_iter.append([result.n_iter for result in results])
        W = [result.start for result in results]
    return np.stack(weights, axis=1), np.stack(n_iter, axis=1)


def fold_path(settings: Settings, data: RowSums, classes: Array, train: Array, Cs: Array) -> Paths:
    """One fold: rows that it does not train have weight 0."""
    counts = np.bincount(train, minlength=data.n_rows)
    source = data.source.with_weights(data.unit * data.source.batch.s * counts)
    fold = RowSums(source, data.loss, n_outputs=data.shape[0])
    problem, weights, n_iter = make_problem(fold, classes, settings), [], []
    for C, result in solve_path(problem, Cs, settings):
        weights.append(problem.to_raw(result.W))
        n_iter.append(result.n_iter)
        warn_not_converged(result, f"{settings.solver} at C={C:g}", settings.tol, stacklevel=6)
    return np.array(weights), np.array(n_iter)
