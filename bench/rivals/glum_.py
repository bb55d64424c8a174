"""glum: iteratively reweighted least squares, for two classes. Its loss is a mean, so that
alpha = 1 / (C N)."""

from __future__ import annotations

from typing import Any

import numpy as np
from glum import GeneralizedLinearRegressor

NAME = "glum"


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    if y.max() > 1:
        return {}

    def fit(tol: float) -> tuple[Any, Any]:
        model = GeneralizedLinearRegressor(
            family="binomial",
            alpha=1 / (C * len(y)),
            l1_ratio=0,
            gradient_tol=tol,
            max_iter=200,
            solver="irls-ls",
        ).fit(X, y.astype(float))
        return model.coef_[None, :], [model.intercept_]

    return {"irls-ls": fit}


def paths(X: Any, y: np.ndarray, Cs: np.ndarray) -> dict[str, Any]:
    def fit_path(tol: float) -> list[Any]:
        model = GeneralizedLinearRegressor(
            family="binomial",
            alpha=1 / (np.asarray(Cs) * len(y)),
            alpha_search=True,
            l1_ratio=1,
            gradient_tol=tol,
            max_iter=200,
            solver="irls-cd",
        ).fit(X, y.astype(float))
        pairs = zip(model.coef_path_, model.intercept_path_, strict=True)
        return [(coef[None, :], [b]) for coef, b in pairs]

    return {"irls-cd": fit_path}
