"""The online family against scikit-learn's at equal numbers of epochs, and SigmoidRegression against L-BFGS at an equal gap."""

from __future__ import annotations

from functools import partial

import numpy as np
from measure import best_of
from problems import dense
from race import timed, turns
from scipy.optimize import minimize
from sklearn.linear_model import Perceptron as RivalPerceptron
from sklearn.linear_model import SGDClassifier

from fastdisc import OnlineClassifier, Perceptron, SigmoidRegression, _kernels
from fastdisc._kernels import Rule, Walk


def epochs(data, ours, theirs, count, name, *, goal, rounds=5):
    """So many epochs of both, in turn; the gap is the share of training rows that are wrong."""
    X, y = data()
    options = {"max_iter": count, "tol": None}
    found = [timed(model.set_params(**options).fit, X, y)[1] for model in (ours, theirs)]
    times = turns([lambda model=model: model.fit(X, y) for model in found], rounds)
    wrong = [1 - model.score(X, y) for model in found]
    rival = type(theirs).__name__
    row = {"problem": name, "ours": times[0], "rival": f"scikit-learn {rival}", "theirs": times[1]}
    return {"rows": [row | {"gap": wrong[0], "rival_gap": wrong[1]}], "runs": [], "missing": {}}


def perceptron(data, count):
    return partial(epochs, data, Perceptron(), RivalPerceptron(), count)


def log_loss(data, count):
    return partial(epochs, data, OnlineClassifier("log_loss", random_state=0), SGDClassifier("log_loss", random_state=0), count)


def threads(name, *, goal, n=1_000_000, d=28, noise=0.0005, before=30, rounds=9):
    """A near-converged epoch on one thread and on two."""
    X, y = dense(n, d, noise=noise)
    r, one, none = y.astype(np.int32), np.ones(1), np.zeros((0, d + 1))
    kernels, walk, W = _kernels.load("cython"), Walk(np.arange(-(-n // 512)), 512), np.zeros((1, d + 1))
    epoch = lambda V, count: kernels.online(X, r, one, V, none, none, np.zeros(2), Rule(0), walk, count)  # noqa: E731
    for _ in range(before):
        _, mistakes = epoch(W, 1)
    single, double = best_of([lambda count=count: epoch(W.copy(), count) for count in (1, 2)], rounds)
    row = {
        "problem": f"{name}, {100 * mistakes / n:.2f}% mistakes",
        "ours": double,
        "rival": "itself, one thread",
        "theirs": single,
    }
    return {"rows": [row], "runs": [], "missing": {}}


def squared_error(X, r, W):
    """(10.39) and its gradient in NumPy."""
    z = X @ W[1:] + W[0]
    y = 1 / (1 + np.exp(-z))
    e = (y - r) * y * (1 - y)
    return float(((y - r) ** 2).sum()) / 2, np.append(e.sum(), e @ X)


def sigmoid_regression(data, name, *, goal, gap=1e-6, rounds=9):
    """Down to a relative gap of 1e-6 in the squared error: the loosest tolerances that reach it."""
    X, y = data()
    best = SigmoidRegression(C=np.inf, tol=1e-9).fit(X, y)
    floor = squared_error(X, y, np.append(best.intercept_, best.coef_))[0]

    def ours(tol):
        model = SigmoidRegression(C=np.inf, tol=tol).fit(X, y)
        return np.append(model.intercept_, model.coef_)

    def theirs(tol):
        options = {"gtol": tol * len(y), "ftol": 0.0, "maxiter": 500}
        return minimize(
            lambda W: squared_error(X, y, W), np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B", options=options
        ).x

    chosen = []
    for call in (ours, theirs):
        for tol in (10.0 ** (-k / 2) for k in range(4, 17)):
            reached = squared_error(X, y, call(tol))[0] / floor - 1
            if reached <= gap:
                break
        chosen.append((call, tol, reached))
    times = turns([lambda call=call, tol=tol: call(tol) for call, tol, _ in chosen], rounds)
    row = {"problem": name, "ours": times[0], "rival": "scipy L-BFGS-B on NumPy", "theirs": times[1]}
    return {"rows": [row | {"gap": chosen[0][2], "rival_gap": chosen[1][2]}], "runs": [], "missing": {}}
