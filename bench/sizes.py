"""What grows with the data: fits of ever more rows, and predictions for many rows and for one."""

from __future__ import annotations

import numpy as np
from measure import best_of, in_child, memory
from problems import dense
from race import objective
from sklearn.linear_model import LogisticRegression as Rival

from fastdisc import LogisticRegression


def growth(name, *, goal, sizes=(100_000, 1_000_000, 10_000_000), d=28):
    """Time and memory of a fit with the default tolerance; a process for each size."""
    rows = []
    for n in sizes:
        seconds, used, gap = in_child(grown, n, d)
        rows += [
            {"problem": f"{name}, {n / 1e6:g}M x {d}", "ours": seconds, "gap": gap},
            {"problem": f"{name}, {n / 1e6:g}M x {d}: memory beyond X", "ours": used, "unit": "B"},
        ]
    return {"rows": rows, "runs": [], "missing": {}}


def grown(n, d):
    """Seconds and bytes that a fit of n rows takes, and its gap."""
    X, y = dense(n, d, correlated=True)
    LogisticRegression().fit(X[:2000], y[:2000])
    used = memory(lambda: LogisticRegression().fit(X, y))
    seconds = best_of([lambda: LogisticRegression().fit(X, y)], 3)[0]
    models = [LogisticRegression(tol=tol).fit(X, y) for tol in (LogisticRegression().tol, 1e-10)]
    value, floor = (objective(X, y, 1.0, model.coef_, model.intercept_) for model in models)
    return seconds, used, value / floor - 1


def predictions(name, *, goal, n=1_000_000, d=28):
    """predict_proba of the same weights, by us and by scikit-learn."""
    X, y = dense(n, d, correlated=True)
    ours, theirs = LogisticRegression().fit(X[:2000], y[:2000]), Rival().fit(X[:2000], y[:2000])
    theirs.coef_, theirs.intercept_ = ours.coef_, ours.intercept_
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    rows = []
    for label, A, calls in ((f"{n / 1e6:g}M x {d}", X, 1), ("one row", X[:1], 1000)):
        times = best_of([lambda m=m, A=A, calls=calls: [m.predict_proba(A) for _ in range(calls)] for m in (ours, theirs)])
        times = {"ours": times[0] / calls, "theirs": times[1] / calls}
        rows.append({"problem": f"{name}, {label}", "rival": "scikit-learn", **times})
    return {"rows": rows, "runs": [], "missing": {}}
