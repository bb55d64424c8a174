"""Does nothing: zero weights."""

import numpy as np

NAME = "null"


def solvers(X, y, C):
    rows = 1 if y.max() < 2 else y.max() + 1
    return {"null": lambda tol: (np.zeros((rows, X.shape[1])), np.zeros(rows))}
