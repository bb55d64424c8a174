"""Online models and scikit-learn's at equal numbers of epochs; SigmoidRegression and L-BFGS at an
equal gap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import best_of, best_timed, timed
from problems import Data, dense
from scipy.optimize import minimize
from sklearn.linear_model import Perceptron as RivalPerceptron
from sklearn.linear_model import SGDClassifier
from tolerance_search import result

from fastdisc import OnlineClassifier, Perceptron, SigmoidRegression, _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, MarginLoss, OnlineRule, OnlineState, RowOrder

Load = Callable[..., Data]
Found = dict[str, Any]
RUN_ROWS = 512


def epochs(
    data: Load, ours: Any, theirs: Any, n_epochs: int, name: str, *, goal: float, rounds: int = 5
) -> Found:
    """Epochs of both models; the gap is the share of training rows that are misclassified."""
    X, y = data()
    options = {"max_iter": n_epochs, "tol": None}
    models = [timed(model.set_params(**options).fit, X, y)[1] for model in (ours, theirs)]
    times = best_timed([partial(model.fit, X, y) for model in models], rounds)
    errors = [1 - model.score(X, y) for model in models]
    rival = f"scikit-learn {type(theirs).__name__}"
    row = {"problem": name, "ours": times[0], "rival": rival, "theirs": times[1]}
    return result([row | {"gap": errors[0], "rival_gap": errors[1]}])


def perceptron(data: Load, n_epochs: int) -> Callable[..., Found]:
    return partial(epochs, data, Perceptron(), RivalPerceptron(), n_epochs)


def log_loss(data: Load, n_epochs: int) -> Callable[..., Found]:
    ours = OnlineClassifier("log_loss", random_state=0)
    return partial(epochs, data, ours, SGDClassifier("log_loss", random_state=0), n_epochs)


def threads(
    name: str,
    *,
    goal: float,
    n: int = 1_000_000,
    d: int = 28,
    noise: float = 0.0005,
    before: int = 30,
    rounds: int = 9,
) -> Found:
    """An epoch of almost converged weights, on one thread and on two."""
    X, y = dense(n, d, noise=noise)
    batch = Batch(DenseRows(X), y.astype(np.int32), np.ones(1))
    W, none = np.zeros((1, d + 1)), np.zeros((0, d + 1))
    kernels, rule = _kernels.load("cython"), OnlineRule(MarginLoss.PERCEPTRON)
    order = RowOrder(np.arange(-(-n // RUN_ROWS)), RUN_ROWS)

    def epoch(W: np.ndarray, n_threads: int) -> tuple[float, int]:
        state = OnlineState(W, none, none, np.zeros(2))
        return kernels.online_epoch(batch, state, rule, order, n_threads)

    for _ in range(before):
        _, mistakes = epoch(W, 1)
    calls = [lambda n_threads=n_threads: epoch(W.copy(), n_threads) for n_threads in (1, 2)]
    one, two = best_of(calls, rounds)
    label = f"{name}, {100 * mistakes / n:.2f}% mistakes"
    return result([{"problem": label, "ours": two, "rival": "itself, one thread", "theirs": one}])


def squared_error(X: np.ndarray, r: np.ndarray, W: np.ndarray) -> tuple[float, np.ndarray]:
    """(10.39) and its gradient in NumPy."""
    z = X @ W[1:] + W[0]
    y = 1 / (1 + np.exp(-z))
    e = (y - r) * y * (1 - y)
    return float(((y - r) ** 2).sum()) / 2, np.append(e.sum(), e @ X)


def sigmoid_regression(
    data: Load, name: str, *, goal: float, gap: float = 1e-6, rounds: int = 9
) -> Found:
    """Both at the loosest tolerance with a relative gap of 1e-6 in the squared error."""
    X, y = data()

    def ours(tol: float) -> np.ndarray:
        model = SigmoidRegression(C=np.inf, tol=tol).fit(X, y)
        return np.append(model.intercept_, model.coef_)

    def theirs(tol: float) -> np.ndarray:
        options = {"gtol": tol * len(y), "ftol": 0.0, "maxiter": 500}
        error = partial(squared_error, X, y)
        start = np.zeros(X.shape[1] + 1)
        return minimize(error, start, jac=True, method="L-BFGS-B", options=options).x

    best = squared_error(X, y, ours(1e-9))[0]
    calls, gaps = [], []
    for fit in (ours, theirs):
        for tol in (10.0 ** (-k / 2) for k in range(4, 17)):
            reached = squared_error(X, y, fit(tol))[0] / best - 1
            if reached <= gap:
                break
        calls.append(partial(fit, tol))
        gaps.append(reached)
    times = best_timed(calls, rounds)
    row = {"problem": name, "rival": "scipy L-BFGS-B on NumPy", "ours": times[0]}
    return result([row | {"theirs": times[1], "gap": gaps[0], "rival_gap": gaps[1]}])
