"""skglm: proximal Newton with working sets, for two classes; the L2 penalty is the limit of the
elastic net. X is converted to the column order that it reads, before times are taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Logistic
from skglm.penalties import L1, L1_plus_L2
from skglm.solvers import ProxNewton

from . import with_time_limit

NAME = "skglm"


def by_columns(X: Any) -> Any:
    return X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X, dtype=float)


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    if y.max() > 1:
        return {}
    X = by_columns(X)

    def fit(tol: float) -> tuple[Any, Any]:
        penalty = L1_plus_L2(alpha=1 / (C * len(y)), l1_ratio=0.0)
        solver = ProxNewton(tol=tol, max_iter=100, fit_intercept=True)
        model = GeneralizedLinearEstimator(Logistic(), penalty, solver)
        model.fit(X, 2 * y - 1)
        return model.coef_.reshape(1, -1), [float(model.intercept_)]

    return {"ProxNewton": fit}


def paths(X: Any, y: np.ndarray, Cs: np.ndarray) -> dict[str, Any]:
    X = by_columns(X)

    @with_time_limit
    def fit_path(tol: float) -> Iterator[tuple[Any, Any]]:
        penalty = L1(1.0)
        solver = ProxNewton(tol=tol, max_iter=100, fit_intercept=True, warm_start=True)
        model = GeneralizedLinearEstimator(Logistic(), penalty, solver)
        for C in Cs:
            penalty.alpha = 1 / (C * len(y))
            model.fit(X, 2 * y - 1)
            yield model.coef_.reshape(1, -1).copy(), [float(model.intercept_)]

    return {"ProxNewton": fit_path}
