"""scikit-learn-intelex: scikit-learn's class on oneDAL, for dense rows.

For a9a, which is sparse, its result is the same as scikit-learn's to the last digit, in the same
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearnex.linear_model import LogisticRegression

NAME = "scikit-learn-intelex"


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    if hasattr(X, "indptr"):
        return {}

    def fit(tol: float) -> tuple[Any, Any]:
        model = LogisticRegression(C=C, tol=tol, solver="lbfgs", max_iter=2000).fit(X, y)
        return model.coef_, model.intercept_

    return {"lbfgs": fit}
