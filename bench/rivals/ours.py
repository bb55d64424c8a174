"""fastdisc itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import fastdisc

NAME = "fastdisc"
TIGHT = 1e-10  # about the smallest gap that rounding allows


def fit(
    X: Any, y: np.ndarray, C: float, tol: float, callback: Callable[..., bool] | None = None
) -> tuple[Any, Any]:
    model = fastdisc.LogisticRegression(C=C, tol=tol, callback=callback).fit(X, y)
    return model.coef_, model.intercept_


def until(X: Any, y: np.ndarray, C: float, goal: float, tol: float = TIGHT) -> tuple[Any, Any]:
    """Fit until the objective is at most the goal."""
    return fit(X, y, C, tol, lambda _, values: C * values["loss"] <= goal)


def best(X: Any, y: np.ndarray, C: float, seconds: float = 45.0) -> tuple[Any, Any]:
    """The best solution that is found in that time."""
    end = perf_counter() + seconds
    return fit(X, y, C, TIGHT, lambda *_: perf_counter() > end)


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    return {"auto": partial(fit, X, y, C)}


def paths(X: Any, y: np.ndarray, Cs: np.ndarray) -> dict[str, Any]:
    def fit_path(tol: float) -> list[Any]:
        path = fastdisc.LogisticRegression(l1_ratio=1, tol=tol).fit_path(X, y, Cs)
        return list(zip(path.coefs, path.intercepts, strict=True))

    return {"fit_path": fit_path}


def searches(X: Any, y: np.ndarray) -> dict[str, Any]:
    def search(tol: float) -> tuple[Any, Any, Any]:
        model = fastdisc.LogisticRegressionCV(Cs=10, cv=5, tol=tol).fit(X, y)
        return model.C_, model.coef_, model.intercept_

    return {"auto": search}
