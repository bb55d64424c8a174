"""Whole fits against the rivals. Each function returns rows of the table, all runs, and what is missing and why."""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial

import numpy as np
from measure import in_child, memory
from problems import covtype, fashion_mnist
from race import OURS, Judge, PathJudge, SearchJudge, first_run, objective, race, row, take_turns, timed
from rivals import field, load
from sklearn.preprocessing import StandardScaler


def result(rows, runs, missing=()):
    return {"rows": rows, "runs": [run.record() for run in runs], "missing": dict(missing)}


def few(X, y, rows=2000):
    """Some rows of every class: to load and compile all there is before any clock starts."""
    some = np.arange(0, len(y), max(1, len(y) // rows))
    return X[some], y[some]


def contest(kind, name, X, y, *setting, judge, goal):
    """All libraries that can do a kind of problem, at the same gap."""
    for call in field(kind, *few(X, y), *setting)[0].values():
        with suppress(Exception):  # what fails here fails again in the race, which says so
            timed(call, 1e-2)
    calls, missing = field(kind, X, y, *setting)
    runs, failed = race(calls, judge, goal)
    return result([row(name, runs, goal)], runs, missing | failed)


def judge_of(X, y, C, test):
    """A judge who knows the optimum already."""
    judge = Judge(X, y, C, test)
    judge.values(timed(load("ours").best, X, y, C)[1])
    return judge


def fit(data, name, *, goal, C=1.0):
    """One value of C."""
    X, y = data()
    return contest("solvers", name, X, y, C, judge=judge_of(X, y, C, data(part="test")), goal=goal)


def l1_path(data, name, *, goal, count=50):
    """L1 solutions for many values of C, five decades up from where the first weight appears; the gap is the largest of all."""
    X, y = data()
    Cs = np.logspace(0.05, 5, count) / np.abs(X.T @ (y - y.mean())).max()
    judge = PathJudge(X, y, Cs, data(part="test"))
    judge.values(load("ours").paths(X, y, Cs)["fit_path"](1e-9))
    return contest("paths", name, X, y, Cs, judge=judge, goal=goal)


def search(data, name, *, goal):
    """C chosen from 10 by 5 folds."""
    X, y = data()
    optimum = cache(lambda C: objective(X, y, C, *timed(load("ours").best, X, y, C)[1]))
    return contest("searches", name, X, y, judge=SearchJudge(X, y, optimum, data(part="test")), goal=goal)


def chase(X, y, C, judge, solver, tol, max_iter, X_rival=None):
    """A run of scikit-learn as it is set, and one of ours down to the objective that it reaches."""
    rival = load("scikit_learn").fit
    theirs = partial(rival, X if X_rival is None else X_rival, y, C, solver, max_iter=max_iter)
    first = first_run(("scikit-learn", solver), theirs, tol, judge)
    ours = partial(load("ours").until, X, y, C, first.values[0])
    runs = [first, first_run((OURS, f"to {solver}"), ours, load("ours").TIGHT, judge)]
    take_turns(runs, [theirs, ours], judge)
    return runs


def alone(label, X, y, judge, goal):
    """Ours at the gap, without rivals."""
    return race({(OURS, label): partial(load("ours").fit, X, y, 1.0)}, judge, goal)[0]


def standardised(data):
    X, y = data()
    X = StandardScaler().fit_transform(X)
    return X, y, judge_of(X, y, 1.0, (X, y))


def covtype_standardised(name, *, goal, data=covtype):
    """Our time to the objective at which lbfgs stops, and to the gap."""
    X, y, judge = standardised(data)
    runs = chase(X, y, 1.0, judge, "lbfgs", 1e-4, 1000)
    exact = alone("auto", X, y, judge, goal)
    rows = [row(f"{name}, to the objective of lbfgs", runs, np.inf), row(name, [runs[0], *exact], goal)]
    return result([found | {"on": "training"} for found in rows], runs + exact)


def covtype_newton(name, *, goal, data=covtype):
    """Our time to the objective at which newton-cholesky stops."""
    X, y, judge = standardised(data)
    runs = chase(X, y, 1.0, judge, "newton-cholesky", 1e-4, 100)
    return result([row(name, runs, np.inf, on="training")], runs)


def covtype_raw(name, *, goal, data=covtype):
    """Ours on the columns as they are, beside ours on standardised ones."""
    X, y = data()
    (raw,) = alone("raw", X, y, judge_of(X, y, 1.0, (X, y)), goal)
    X, y, judge = standardised(data)
    (scaled,) = alone("standardised", X, y, judge, goal)
    beside = {"rival": "itself, standardised", "theirs": scaled.seconds, "rival_gap": scaled.gap}
    return result([row(name, [raw], goal, on="training", **beside)], [raw, scaled])


def fashion(name, *, goal, data=fashion_mnist, C=0.01):
    """Ours on bytes, scikit-learn on float64: our time to the objective that it reaches in 100 iterations, and memory."""
    X, y = data()
    judge = judge_of(X, y, C, data(part="test"))
    runs = chase(X, y, C, judge, "lbfgs", 1e-3, 100, X_rival=X.astype(float))
    theirs = partial(load("scikit_learn").fit, C=C, solver="lbfgs", tol=1e-3, max_iter=100)
    ours = partial(load("ours").until, C=C, goal=runs[0].values[0])
    used = {"theirs": in_child(needed, data, theirs), "ours": in_child(needed, data, ours)}
    label = f"{name}, to the objective of lbfgs"
    rows = [row(label, runs, np.inf), {"problem": f"{label}: memory", "unit": "B", "rival": "scikit-learn lbfgs", **used}]
    return result(rows, runs)


def needed(data, call):
    """Bytes that a fit needs beyond the data; scikit-learn's copy in float64 counts."""
    X, y = data()
    timed(call, *few(X, y))
    return memory(lambda: timed(call, X, y))
