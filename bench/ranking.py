"""Ranking: whole fits, scikit-learn's on explicit differences of rows, and LightGBM's trees; one
gradient over 5e11 pairs; metrics."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import best_timed, timed
from problems import lgb_rank, rankings
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ndcg_score as rival_ndcg_score
from sklearn.svm import LinearSVC
from tolerance_search import result

from fastdisc import PairwiseRanker, _kernels, metrics
from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import Batch, PairLoss, PairRule, RowLoss
from fastdisc._objectives.query_sums import QuerySums
from fastdisc._objectives.row_sums import RowSums

Load = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
Found = dict[str, Any]
EQUAL = np.ones(1)
MAX_SECONDS = 100.0  # after a slower fit, no tighter tolerance is tried


# --- fits beside explicit differences -------------------------------------------------------------


def differences(X: np.ndarray, y: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x_u - x_v for every ordered pair, every other one with the opposite sign; and the signs."""
    found = []
    for lo, hi in itertools.pairwise(np.flatnonzero(np.diff(query, prepend=-1, append=-1))):
        u, v = np.nonzero(y[lo:hi, None] > y[lo:hi])
        found.append(X[lo + u] - X[lo + v])
    D = np.concatenate(found)
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    D *= sign[:, None]
    return D, sign


def objective(loss: str, D: np.ndarray, sign: np.ndarray, w: np.ndarray) -> float:
    """The sum over pairs plus half the squared norm of the weights, C = 1."""
    m = sign * (D @ w)
    values = np.logaddexp(0, -m) if loss == "logistic" else np.maximum(0, 1 - m) ** 2
    return float(values.sum() + w @ w / 2)


def rival_fits(loss: str, D: np.ndarray, sign: np.ndarray) -> dict[str, Callable[[float], Any]]:
    """scikit-learn's fits of the differences, by tolerance."""

    def logistic(solver: str, max_iter: int, tol: float) -> Any:
        model = LogisticRegression(fit_intercept=False, solver=solver, max_iter=max_iter, tol=tol)
        return model.fit(D, sign)

    def svm(tol: float) -> Any:
        return LinearSVC(fit_intercept=False, dual=False, tol=tol, max_iter=10_000).fit(D, sign)

    if loss == "squared_hinge":
        return {"LinearSVC": svm}
    return {
        "lbfgs": partial(logistic, "lbfgs", 5000),
        "newton-cholesky": partial(logistic, "newton-cholesky", 500),
    }


def loosest(
    fit: Callable[[float], Any], gap: Callable[[Any], float], goal: float, first: int
) -> tuple[float, float, float]:
    """The loosest tolerance that brings the gap within the goal: it, the seconds, the gap.
    Tolerances begin at 10^-first."""
    for tol in (10.0**-k for k in range(first, 11)):
        seconds, model = timed(fit, tol)
        reached = gap(model)
        if reached <= goal or seconds > MAX_SECONDS:
            break
    return tol, seconds, reached


def fit(data: Load, loss: str, name: str, *, goal: float, rounds: int = 9, first: int = 2) -> Found:
    """Both at the loosest tolerance with the gap within the goal; the rival after its differences
    have been built.

    The rivals' tolerances begin at 10^-first, if looser ones are known to miss the goal. Times are
    the best of `rounds`, of three beside a rival that takes over two seconds, and of one beside one
    that takes over twenty.
    """
    X, y, query = data()
    D, sign = differences(X, y, query)

    def ours(tol: float) -> Any:
        return PairwiseRanker(loss, tol=tol).fit(X, y, group=query)

    best = objective(loss, D, sign, ours(1e-10).coef_)

    def gap(model: Any) -> float:
        return objective(loss, D, sign, np.ravel(model.coef_)) / best - 1

    tol, _, our_gap = loosest(ours, gap, goal, 2)
    rows = []
    for label, theirs in rival_fits(loss, D, sign).items():
        rival_tol, seconds, rival_gap = loosest(theirs, gap, goal, first)
        turns = rounds if seconds < 2 else 3 if seconds < 20 else 1
        times = best_timed([partial(ours, tol), partial(theirs, rival_tol)], turns)
        row = {"problem": name, "ours": times[0], "gap": our_gap, "theirs": times[1]}
        rival = f"scikit-learn {label} on {len(D):,} differences"
        rows.append(row | {"rival": rival, "rival_gap": rival_gap})
    return result(rows)


# --- the others -----------------------------------------------------------------------------------


def trees(name: str, *, goal: float, rounds: int = 5) -> Found:
    """A linear ranker and 100 trees: time, and NDCG@10 of the test part."""
    from rivals.lightgbm_ import fit_ranker

    (X, y, sizes), (X_test, y_test, test_sizes) = lgb_rank(), lgb_rank("test")

    def score(z: np.ndarray) -> float:
        return metrics.ndcg_score(y_test, z, group=test_sizes, k=10, gains="exponential")

    theirs = partial(fit_ranker, X, y, sizes)
    rows = []
    for loss, C in (("logistic", 1e-3), ("ndcg", 0.01), ("squared_hinge", 1e-3)):
        ours = partial(PairwiseRanker(loss, C=C, tol=1e-4).fit, X, y, group=sizes)
        model, predict = ours(), theirs()
        times = best_timed([ours, theirs], rounds)
        rival = f"LightGBM 100 trees (NDCG@10 {score(predict(X_test)):.4f})"
        row = {"problem": f"{name}, {loss}", "ours": times[0], "rival": rival, "theirs": times[1]}
        rows.append(row | {"accuracy": score(model.predict(X_test))})
    return result(rows)


def gradient(name: str, *, goal: float, n: int = 1_000_000, d: int = 50, rounds: int = 5) -> Found:
    """One gradient of the squared hinge over all pairs of one query, and a logistic gradient of the
    same rows."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d) / np.sqrt(d)
    y = X @ w + rng.standard_normal(n)
    W, rows = np.concatenate([[0.0], w])[None, :], DenseRows(X)
    rule = PairRule(PairLoss.SQUARED_HINGE, 1.0)
    ranking = QuerySums(rows, np.zeros(n, np.int32), y, EQUAL, rule)
    source = MemorySource(Batch(rows, (y > 0).astype(np.int32), EQUAL))
    plain = RowSums(source, RowLoss.LOGISTIC)

    steps = itertools.count()

    def evaluate(objective: Any) -> None:
        # Other weights each time, since the last evaluation is cached.
        objective.value_and_gradient(W + 1e-9 * next(steps))

    times = best_timed([partial(evaluate, ranking), partial(evaluate, plain)], rounds)
    row = {"problem": name, "ours": times[0], "theirs": times[1]}
    return result([row | {"rival": "logistic gradient of the same rows"}])


def updates(
    name: str,
    *,
    goal: float,
    n: int = 50_000,
    d: int = 46,
    n_pairs: int = 500_000,
    n_slow: int = 10_000,
) -> Found:
    """Pairs per second of the published update (10.49), and of a loop over NumPy rows."""
    rng = np.random.default_rng(0)
    X, pairs = rng.standard_normal((n, d)), rng.integers(0, n, (n_pairs, 2))
    kernels, rows, rule = _kernels.load("cython"), DenseRows(X), PairRule(PairLoss.HINGE, 1.0)

    def loop() -> None:
        w = np.zeros(d)
        for u, v in pairs[:n_slow]:
            if X[v] @ w - X[u] @ w + 1 > 0:
                w -= 0.01 * (X[v] - X[u])

    def ours() -> None:
        kernels.online_pairs(rows, pairs, EQUAL, np.zeros(d), 0.01, rule)

    times = best_timed([ours, loop], 5)
    row = {"problem": name, "ours": times[0], "theirs": times[1] * n_pairs / n_slow}
    return result([row | {"rival": "a loop over NumPy rows"}])


def ndcg(
    name: str, *, goal: float, n: int = 1_000_000, n_queries: int = 10_000, n_slow: int = 300
) -> Found:
    """NDCG@10 of many queries, and scikit-learn's function called for each."""
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, 5, n), rng.standard_normal(n)
    query = np.sort(rng.integers(0, n_queries, n))
    starts = np.flatnonzero(np.diff(query, prepend=-1))[: n_slow + 1]

    def loop() -> list[float]:
        parts = itertools.pairwise(starts)
        return [rival_ndcg_score([y[lo:hi]], [z[lo:hi]], k=10) for lo, hi in parts]

    times = best_timed([lambda: metrics.ndcg_score(y, z, group=query, k=10), loop], 5)
    row = {"problem": name, "ours": times[0], "theirs": times[1] * n_queries / n_slow}
    return result([row | {"rival": "scikit-learn, query by query"}])


SMALL = partial(rankings, 9_000, 46, 470, (0.6, 0.3, 0.1))
LONG = partial(rankings, 145_000, 74, 153, (1 - 0.009, 0.009))
PROBLEMS: dict[str, Callable[..., Found]] = {
    "ranking, 9k x 46, 470 queries, logistic": partial(fit, SMALL, "logistic"),
    "ranking, 9k x 46, 470 queries, squared hinge": partial(fit, SMALL, "squared_hinge"),
    "ranking, 145k x 74, 153 queries, binary": partial(fit, LONG, "logistic", first=6),
    "ranking, lgb_rank": trees,
    "ranking gradient, squared hinge, 1M x 50, one query": gradient,
    "ranking updates, 500k pairs, d=46": updates,
    "NDCG@10, 1M rows, 10k queries": ndcg,
}
