"""scikit-learn's LogisticRegression, with each solver that does not penalise the intercept.

sag and saga are omitted: to a gap of about 1e-9 on 100k x 28 they took 2.8 s and 1.7 s, lbfgs
0.23 s, newton-cholesky 0.17 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from . import with_time_limit

NAME = "scikit-learn"
SOLVERS: tuple[str, ...] = ("lbfgs", "newton-cholesky", "newton-cg")
# Rows times squared weights from which newton-cholesky takes minutes, and lbfgs much less
# (20k x 28, K=10: 0.81 s and 0.24 s).
MAX_NEWTON_WORK = 2e10
BIAS = 100.0  # liblinear penalises the intercept: see liblinear_.py


def fit(
    X: Any, y: np.ndarray, C: float, solver: str, tol: float, max_iter: int = 2000
) -> tuple[Any, Any]:
    model = LogisticRegression(C=C, tol=tol, solver=solver, max_iter=max_iter).fit(X, y)
    return model.coef_, model.intercept_


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    n_weights = X.shape[1] * (1 if y.max() < 2 else y.max() + 1)
    chosen = SOLVERS
    if len(y) * n_weights**2 > MAX_NEWTON_WORK:
        chosen = tuple(solver for solver in SOLVERS if solver != "newton-cholesky")
    return {solver: partial(fit, X, y, C, solver) for solver in chosen}


def paths(X: Any, y: np.ndarray, Cs: np.ndarray) -> dict[str, Any]:
    """saga starts from the last solution; liblinear cannot."""

    @with_time_limit
    def fit_path(solver: str, tol: float) -> Iterator[tuple[Any, Any]]:
        model = LogisticRegression(
            l1_ratio=1, solver=solver, tol=tol, max_iter=1000, warm_start=True, random_state=0
        )
        model.set_params(intercept_scaling=BIAS)
        for C in Cs:
            model.set_params(C=C).fit(X, y)
            yield model.coef_.copy(), model.intercept_.copy()

    return {solver: partial(fit_path, solver) for solver in ("liblinear", "saga")}


def searches(X: Any, y: np.ndarray) -> dict[str, Any]:
    options = {"Cs": 10, "cv": 5, "n_jobs": 2, "max_iter": 1000, "l1_ratios": (0,)}
    options |= {"scoring": "accuracy", "use_legacy_attributes": False}  # else it warns

    def search(solver: str, tol: float) -> tuple[Any, Any, Any]:
        model = LogisticRegressionCV(solver=solver, tol=tol, **options).fit(X, y)
        return model.C_, model.coef_, model.intercept_

    return {solver: partial(search, solver) for solver in SOLVERS}
