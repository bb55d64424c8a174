"""Whole fits of LogisticRegression and other libraries. Each function returns rows of the table,
all runs, and which libraries are missing and why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
from measure import in_child, memory, timed
from problems import Data, covtype, fashion_mnist
from rivals import load, solvers_of
from sklearn.preprocessing import StandardScaler
from tolerance_search import (
    OURS,
    Evaluator,
    PathEvaluator,
    Run,
    SearchEvaluator,
    first_run,
    objective,
    repeat,
    result,
    row,
    search_tolerances,
)

Load = Callable[..., Data]
Found = dict[str, Any]


def some_rows(X: Any, y: np.ndarray, n: int = 2000) -> Data:
    """Rows of every class, for a fit that loads and compiles everything before times are taken."""
    rows = np.arange(0, len(y), max(1, len(y) // n))
    return X[rows], y[rows]


def compare_libraries(
    kind: str, name: str, X: Any, y: np.ndarray, *settings: Any, evaluator: Evaluator, goal: float
) -> Found:
    """All libraries that support a kind of problem, at the same gap."""
    for fit in solvers_of(kind, *some_rows(X, y), *settings)[0].values():
        with suppress(Exception):  # the search below reports it
            timed(fit, 1e-2)
    solvers, missing = solvers_of(kind, X, y, *settings)
    runs, failed = search_tolerances(solvers, evaluator, goal)
    return result([row(name, runs, goal)], runs, missing | failed)


def evaluator_with_optimum(X: Any, y: np.ndarray, C: float, test: Data) -> Evaluator:
    """An evaluator that has seen the optimum."""
    evaluator = Evaluator(X, y, C, test)
    evaluator.values(timed(load("ours").best, X, y, C)[1])
    return evaluator


def fit(data: Load, name: str, *, goal: float, C: float = 1.0) -> Found:
    """One value of C."""
    X, y = data()
    evaluator = evaluator_with_optimum(X, y, C, data(part="test"))
    return compare_libraries("solvers", name, X, y, C, evaluator=evaluator, goal=goal)


def l1_path(data: Load, name: str, *, goal: float, count: int = 50) -> Found:
    """L1 solutions for many values of C, over five decades from the one at which the first weight
    is not zero. The gap is the largest of all."""
    X, y = data()
    Cs = np.logspace(0.05, 5, count) / np.abs(X.T @ (y - y.mean())).max()
    evaluator = PathEvaluator(X, y, Cs, data(part="test"))
    evaluator.values(load("ours").paths(X, y, Cs)["fit_path"](1e-9))
    return compare_libraries("paths", name, X, y, Cs, evaluator=evaluator, goal=goal)


def search(data: Load, name: str, *, goal: float) -> Found:
    """C chosen from 10 values by 5 folds."""
    X, y = data()
    optimum = cache(lambda C: objective(X, y, C, *timed(load("ours").best, X, y, C)[1]))
    evaluator = SearchEvaluator(X, y, optimum, data(part="test"))
    return compare_libraries("searches", name, X, y, evaluator=evaluator, goal=goal)


def until_equal(
    X: Any,
    y: np.ndarray,
    C: float,
    evaluator: Evaluator,
    solver: str,
    tol: float,
    max_iter: int,
    X_rival: Any = None,
) -> list[Run]:
    """A run of a solver of scikit-learn, and one of ours that stops at the same objective."""
    rival = load("scikit_learn").fit
    theirs = partial(rival, X if X_rival is None else X_rival, y, C, solver, max_iter=max_iter)
    first = first_run(("scikit-learn", solver), theirs, tol, evaluator)
    ours = partial(load("ours").until, X, y, C, first.values[0])
    runs = [first, first_run((OURS, f"to {solver}"), ours, load("ours").TIGHT, evaluator)]
    repeat(runs, [theirs, ours], evaluator)
    return runs


def ours_alone(label: str, X: Any, y: np.ndarray, evaluator: Evaluator, goal: float) -> list[Run]:
    """Our run at the gap, without rivals."""
    fits = {(OURS, label): partial(load("ours").fit, X, y, 1.0)}
    return search_tolerances(fits, evaluator, goal)[0]


def standardised(data: Load) -> tuple[Any, np.ndarray, Evaluator]:
    X, y = data()
    X = StandardScaler().fit_transform(X)
    return X, y, evaluator_with_optimum(X, y, 1.0, (X, y))


def covtype_standardised(name: str, *, goal: float, data: Load = covtype) -> Found:
    """Our time to the objective at which lbfgs stops, and to the gap."""
    X, y, evaluator = standardised(data)
    runs = until_equal(X, y, 1.0, evaluator, "lbfgs", 1e-4, 1000)
    exact = ours_alone("auto", X, y, evaluator, goal)
    rows = [
        row(f"{name}, to the objective of lbfgs", runs, np.inf, on="training"),
        row(name, [runs[0], *exact], goal, on="training"),
    ]
    return result(rows, runs + exact)


def covtype_newton(name: str, *, goal: float, data: Load = covtype) -> Found:
    """Our time to the objective at which newton-cholesky stops."""
    X, y, evaluator = standardised(data)
    runs = until_equal(X, y, 1.0, evaluator, "newton-cholesky", 1e-4, 100)
    return result([row(name, runs, np.inf, on="training")], runs)


def covtype_raw(name: str, *, goal: float, data: Load = covtype) -> Found:
    """Our fit of the raw columns, and that of standardised ones."""
    X, y = data()
    (raw,) = ours_alone("raw", X, y, evaluator_with_optimum(X, y, 1.0, (X, y)), goal)
    X, y, evaluator = standardised(data)
    (scaled,) = ours_alone("standardised", X, y, evaluator, goal)
    other = {"rival": "itself, standardised", "theirs": scaled.seconds, "rival_gap": scaled.gap}
    return result([row(name, [raw], goal, on="training", **other)], [raw, scaled])


def fashion(name: str, *, goal: float, data: Load = fashion_mnist, C: float = 0.01) -> Found:
    """Our fit of bytes, and scikit-learn's of float64: our time to the objective that it reaches in
    100 iterations, and memory."""
    X, y = data()
    evaluator = evaluator_with_optimum(X, y, C, data(part="test"))
    runs = until_equal(X, y, C, evaluator, "lbfgs", 1e-3, 100, X_rival=X.astype(float))
    theirs = partial(load("scikit_learn").fit, C=C, solver="lbfgs", tol=1e-3, max_iter=100)
    ours = partial(load("ours").until, C=C, goal=runs[0].values[0])
    used = {"theirs": in_child(fit_memory, data, theirs), "ours": in_child(fit_memory, data, ours)}
    label = f"{name}, to the objective of lbfgs"
    space = {"problem": f"{label}: memory", "unit": "B", "rival": "scikit-learn lbfgs", **used}
    return result([row(label, runs, np.inf), space], runs)


def fit_memory(data: Load, call: Callable[..., Any]) -> int:
    """Bytes that a fit needs beyond the data; a copy of the data in float64 counts."""
    X, y = data()
    timed(call, *some_rows(X, y))
    return memory(lambda: timed(call, X, y))
