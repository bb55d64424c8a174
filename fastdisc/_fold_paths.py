"""Solutions of a logistic regression for folds of the rows and strengths of the penalty."""

from __future__ import annotations

import numpy as np

from ._solvers import Trace, together
from ._sweep import Sweep
from ._together import Together, suits

MOST = 16  # folds that share their sweeps: kinds of rows are told apart by a table of 2^(folds + 1) entries


def paths(model, sweep, classes, trains, Cs):
    """Weights (folds, n, K, d+1) and iterations (folds, n) of `model` on each fold's training rows, for each of n values of C."""
    rising = np.argsort(Cs, kind="stable")
    plain = len(classes) == 2 and model._shares_sweeps()
    kinds, sides = kinds_of_rows(trains, sweep.r) if plain else (None, None)
    if kinds is not None:
        problem = model._problem(Sweep(sweep.X, kinds, sweep.unit * sweep.s, sweep.link, **sweep.options), classes)
        if suits(problem):
            return _in_order(rising, jointly(model, problem, sides, Cs[rising]))
    folds = [apart(model, sweep, classes, train, Cs[rising]) for train in trains]
    return _in_order(rising, tuple(np.stack(values) for values in zip(*folds, strict=True)))


def _in_order(rising, found):
    """As the caller had the values of C."""
    back = np.argsort(rising)
    return tuple(values.take(back, axis=1) for values in found)


def kinds_of_rows(trains, r):
    """Numbers of the kinds of rows, (N,) int32, by class and by the folds they train, and on which side they stand in each fold.

    (None, None) where a fold has a row more than once, or where there are too many folds.
    """
    if len(trains) > MOST:
        return None, None
    code = r.astype(np.int32)  # the class in the lowest bit, then a bit for each fold
    for f, train in enumerate(trains):
        mine = np.zeros(len(r), np.int32)
        mine[train] = 1 << (f + 1)
        if np.count_nonzero(mine) < len(train):
            return None, None
        code |= mine
    there = np.bincount(code, minlength=2 ** (len(trains) + 1)) > 0
    present = np.flatnonzero(there)[:, None]
    sides = (2 * (present & 1) - 1) * (present >> np.arange(1, len(trains) + 1) & 1)
    return (np.cumsum(there) - 1).astype(np.int32)[code], sides.astype(np.int8)


def jointly(model, problem, sides, Cs):
    """All folds in shared sweeps; the solutions for one C are the start for the next."""
    objective, state = Together.of(problem, sides, 1.0), together.Model()
    W, found, limit = np.zeros((sides.shape[1], problem.d + 1)), [], model._limit("newton")
    for C in Cs:
        l2 = problem.l2(model._strengths(C)[1])
        trace = Trace(model.verbose)
        trace.say("cv", f"C={C:g}")
        results = together.solve(objective.like(l2), W, tol=model.tol, max_iter=limit, trace=trace, model=state)
        for f, result in enumerate(results):
            model._warn(result, f"newton at C={C:g}, fold {f}")
        V = problem.outward(np.vstack([result.W for result in results]))
        found.append((V[:, None], [result.n_iter for result in results]))
        W = np.vstack([result.start for result in results])
    V, n_iter = zip(*found, strict=True)
    return np.stack(V, axis=1), np.stack(n_iter, axis=1)


def apart(model, sweep, classes, train, Cs):
    """One fold: rows that are not its own have weight 0."""
    times = np.bincount(train, minlength=sweep.rows)
    fold = Sweep(sweep.X, sweep.r, sweep.unit * sweep.s * times, sweep.link, **sweep.options)
    problem, V, n_iter = model._problem(fold, classes), [], []
    for C, result in model._path(problem, len(classes), Cs):
        V.append(problem.outward(result.W))
        n_iter.append(result.n_iter)
        model._warn(result, f"{model.solver} at C={C:g}")
    return np.array(V), np.array(n_iter)
