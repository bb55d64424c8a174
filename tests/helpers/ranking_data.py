"""Random ranking problems, and their ordered pairs as explicit differences of rows."""

import numpy as np


def make_ranking(rng, n=300, d=5, queries=20, grades=3):
    """Rows in random order of queries: X, y, query. `grades` levels of y; None for real numbers."""
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + 2
    z = X @ rng.standard_normal(d) + rng.standard_normal(n)
    levels = np.linspace(0, 1, 2 if grades is None else grades + 1)[1:-1]
    y = z if grades is None else np.searchsorted(np.quantile(z, levels), z)
    return X, y, rng.integers(0, queries, n)


def make_small_ranking():
    """Six queries of ten rows with three grades: X, y, query."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)


def ordered_pairs(y, query):
    """(P, 2): every pair (u, v) of rows of one query with y[u] > y[v]."""
    return np.column_stack(np.nonzero((query[:, None] == query) & (y[:, None] > y)))


def differences(X, y, query, s=None):
    """x_u - x_v for every ordered pair, and the weights of the pairs."""
    u, v = ordered_pairs(y, query).T
    s = np.ones(len(y)) if s is None else s
    return X[u] - X[v], s[u] * s[v]


def two_class_differences(D):
    """Every other difference with the opposite sign, and the signs: a problem of two classes."""
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    return sign[:, None] * D, sign
