"""No training: zero weights."""

from __future__ import annotations

from typing import Any

import numpy as np

NAME = "null"


def solvers(X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    K = 1 if y.max() < 2 else y.max() + 1
    return {"null": lambda tol: (np.zeros((K, X.shape[1])), np.zeros(K))}
