"""statsmodels: Newton's method without a penalty, for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from statsmodels.api import Logit, add_constant

NAME = "statsmodels"


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    if y.max() > 1 or not np.isinf(C):
        return {}

    def fit(tol: float) -> tuple[Any, Any]:
        options = {"method": "newton", "tol": tol, "disp": 0, "maxiter": 100}
        result = Logit(y, add_constant(X)).fit(**options)
        return result.params[None, 1:], result.params[:1]

    return {"newton": fit}
