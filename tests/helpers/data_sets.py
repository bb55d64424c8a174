"""Data that several test files fit, and the weights of fitted models as one matrix."""

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

NAMES = ("iris", "wine", "breast_cancer", "digits")
SETS = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in NAMES}
STANDARDIZED = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in SETS.items()}


def draw_logistic(n=500, d=4, K=3, seed=0):
    """Rows, their classes, and a random generator.

    Classes are drawn by a logistic model: they overlap, so that a maximum of the likelihood exists.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) + 2
    V = rng.standard_normal((d, K)) / np.arange(1, d + 1)[:, None]
    return X, (X @ V + rng.gumbel(size=(n, K))).argmax(axis=1), rng


def with_bad_cell(X, value, row=7, column=1, dtype=float):
    """A copy of X with one cell replaced."""
    bad = X.astype(dtype)
    bad[row, column] = value
    return bad


def weights_of(model):
    """Intercepts and weights, (K, d+1)."""
    return np.column_stack([model.intercept_, model.coef_])
