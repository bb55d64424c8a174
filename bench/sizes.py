"""Fits of more and more rows, and predictions for many rows and for one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import best_of, in_child, memory
from problems import dense
from sklearn.linear_model import LogisticRegression as Rival
from tolerance_search import objective, result

from fastdisc import LogisticRegression

SIZES = (100_000, 1_000_000, 10_000_000)


def growth(name: str, *, goal: float, sizes: Sequence[int] = SIZES, d: int = 28) -> dict[str, Any]:
    """Time and memory of a fit with the default tolerance, each size in a process of its own."""
    rows = []
    for n in sizes:
        seconds, used, gap = in_child(measure_fit, n, d)
        label = f"{name}, {n / 1e6:g}M x {d}"
        rows.append({"problem": label, "ours": seconds, "gap": gap})
        rows.append({"problem": f"{label}: memory beyond X", "ours": used, "unit": "B"})
    return result(rows)


def measure_fit(n: int, d: int) -> tuple[float, int, float]:
    """Seconds and bytes that a fit of n rows takes, and its gap."""
    X, y = dense(n, d, correlated=True)
    LogisticRegression().fit(X[:2000], y[:2000])
    used = memory(lambda: LogisticRegression().fit(X, y))
    seconds = best_of([lambda: LogisticRegression().fit(X, y)], 3)[0]
    models = [LogisticRegression(tol=tol).fit(X, y) for tol in (LogisticRegression().tol, 1e-10)]
    value, best = (objective(X, y, 1.0, model.coef_, model.intercept_) for model in models)
    return seconds, used, value / best - 1


def predictions(name: str, *, goal: float, n: int = 1_000_000, d: int = 28) -> dict[str, Any]:
    """predict_proba with the same weights, ours and scikit-learn's."""
    X, y = dense(n, d, correlated=True)
    ours, theirs = (model.fit(X[:2000], y[:2000]) for model in (LogisticRegression(), Rival()))
    theirs.coef_, theirs.intercept_ = ours.coef_, ours.intercept_
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    rows = []
    for label, A, n_calls in ((f"{n / 1e6:g}M x {d}", X, 1), ("one row", X[:1], 1000)):
        times = best_of([partial(predict, model, A, n_calls) for model in (ours, theirs)])
        found = {"ours": times[0] / n_calls, "theirs": times[1] / n_calls}
        rows.append({"problem": f"{name}, {label}", "rival": "scikit-learn", **found})
    return result(rows)


def predict(model: Any, X: np.ndarray, n_calls: int) -> None:
    for _ in range(n_calls):
        model.predict_proba(X)
