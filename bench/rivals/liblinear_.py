"""LIBLINEAR: trust-region Newton, for two classes; for more it has another objective.

It penalises the intercept, so that its optimum is another. A large bias term makes the difference
small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from liblinear.liblinearutil import train

NAME = "liblinear"
BIAS = 100.0


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    if y.max() > 1:
        return {}

    def fit(tol: float) -> tuple[Any, Any]:
        model = train(y.astype(float), X, f"-s 0 -c {C} -e {tol} -B {BIAS} -q")
        sign = 1 if model.get_labels()[0] == 1 else -1
        w = sign * np.array([model.w[j] for j in range(X.shape[1] + 1)])
        return w[None, :-1], [w[-1] * BIAS]

    return {"-s 0": fit}
