"""Combinations of two-class discriminants and scikit-learn's: whole fits of logistic pairs of
classes and of classes against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import timed
from problems import Data, correlated
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from tolerance_search import OURS, Evaluator, Fit, Name, Run, first_run, result, row

import fastdisc
from fastdisc.multiclass.decisions import class_pairs, vote_scores

Found = dict[str, Any]
TEN_CLASSES = partial(correlated, 1_000_000, 28, 10)
C = 1.0
OUR_TOLERANCES = [10.0 ** (-k / 2) for k in range(4, 17)]
# Of the rivals: at 1e-3 their gap is 3e-6 and more, and a fit takes long.
RIVAL_TOLERANCES = [1e-4]


class CombinationEvaluator(Evaluator):
    """Solutions (coef, intercept) with a row for each two-class problem. `signs` (K, P) says which
    classes are positive (1), negative (-1) or excluded (0) in each problem."""

    def __init__(self, X: np.ndarray, y: np.ndarray, signs: np.ndarray, test: Data):
        super().__init__(X, y, C, test)
        self.signs = signs

    def objectives(self, solution: Any) -> list[float]:
        found = []
        for w, w0, of_classes in zip(*solution, self.signs.T, strict=True):
            sign = of_classes[self.y]
            z = (sign * (self.X @ w + w0))[sign != 0]
            found.append(C * np.logaddexp(0, -z).sum() + np.vdot(w, w) / 2)
        return found

    def accuracy(self, solution: Any) -> float:
        X, y = self.test
        Z = X @ solution[0].T + solution[1]
        scores = Z if self.signs.all() else vote_scores(-Z, len(self.signs))
        return float((scores.argmax(axis=1) == y).mean())


def signs_of_rest(K: int) -> np.ndarray:
    """(K, K): each class against all others."""
    return 2 * np.eye(K) - 1


def signs_of_pairs(K: int) -> np.ndarray:
    """(K, P): the second class of each pair against the first."""
    pairs = class_pairs(K)
    signs, place = np.zeros((K, len(pairs))), np.arange(len(pairs))
    signs[pairs[:, 0], place], signs[pairs[:, 1], place] = -1, 1
    return signs


def solution(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """The discriminants, which are positive for the second class of each estimator."""
    coefs = [estimator.coef_ for estimator in model.estimators_]
    return np.vstack(coefs), np.hstack([estimator.intercept_ for estimator in model.estimators_])


def theirs(
    kind: Any, X: np.ndarray, y: np.ndarray, tol: float, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    base = LogisticRegression(C=C, solver="newton-cholesky", tol=tol)
    return solution(kind(base, n_jobs=n_jobs).fit(X, y))


def ours(kind: Any, X: np.ndarray, y: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    return solution(kind(fastdisc.LogisticRegression(C=C, tol=tol)).fit(X, y))


def loosest(
    name: Name, fit: Fit, evaluator: Evaluator, goal: float, tolerances: Sequence[float]
) -> Run:
    """A run at the first tolerance at which the gaps of all problems are within the goal."""
    for tol in tolerances:
        run = first_run(name, fit, tol, evaluator)
        if run.gap <= goal:
            break
    return run


def compare_combinations(
    kind: Any,
    rival: Any,
    make_signs: Callable[[int], np.ndarray],
    name: str,
    *,
    goal: float,
    data: Callable[..., Data] = TEN_CLASSES,
    n_jobs: int | None = None,
) -> Found:
    """Both at the loosest tolerance at which the gap of every problem is within the goal."""
    X, y = data()
    signs = make_signs(int(y.max()) + 1)
    evaluator = CombinationEvaluator(X, y, signs, data(part="test"))
    evaluator.values(ours(kind, X, y, 1e-9))
    fits = [partial(ours, kind, X, y), partial(theirs, rival, X, y, n_jobs=n_jobs)]
    label = rival.__name__ if n_jobs is None else f"{rival.__name__}, n_jobs={n_jobs}"
    runs = [
        loosest((OURS, kind.__name__), fits[0], evaluator, goal, OUR_TOLERANCES),
        loosest(("scikit-learn", label), fits[1], evaluator, goal, RIVAL_TOLERANCES),
    ]
    for turn in range(8):
        for run, fit in zip(runs, fits, strict=True):
            if turn == 0 or run.library == OURS:  # a fit of the rival takes long
                run.seconds = min(run.seconds, timed(fit, run.tol)[0])
    return result([row(name, runs, goal)], runs)


PAIRS = partial(
    compare_combinations, fastdisc.PairwiseClassifier, OneVsOneClassifier, signs_of_pairs
)
REST = partial(
    compare_combinations, fastdisc.OneVsRestClassifier, OneVsRestClassifier, signs_of_rest
)
PROBLEMS: dict[str, Callable[..., Found]] = {
    "pairwise logistic, 1M x 28, K=10": PAIRS,
    "pairwise logistic, 1M x 28, K=10, two jobs": partial(PAIRS, n_jobs=2),
    "one-versus-rest logistic, 1M x 28, K=10": REST,
    "one-versus-rest logistic, 1M x 28, K=10, two jobs": partial(REST, n_jobs=2),
}
