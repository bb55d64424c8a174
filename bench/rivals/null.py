"""Does nothing: zero weights."""

from time import perf_counter

import numpy as np

from . import timed

NAME = "null"


def fit(X, y, C, tol):
    rows = 1 if y.max() < 2 else y.max() + 1
    yield timed("null", perf_counter, lambda: (np.zeros((rows, X.shape[1])), np.zeros(rows)))
