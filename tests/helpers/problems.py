"""Small random problems, as kernels and estimators take them."""

import numpy as np
from scipy import sparse

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, Queries, RowLoss, row_grid

from .cases import FLOATS


def make_array(rng, n, d, dtype="float64", layout="C"):
    """A random array of small numbers, with some memory layout."""
    X = rng.standard_normal((n, d))
    if dtype == "bool":
        X = X > 0
    elif dtype not in FLOATS:
        shift, least = (4, 0) if dtype == "uint8" else (0, -9)
        X = np.clip(np.rint(X * 3) + shift, least, 9)
    X = X.astype(dtype)
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.zeros((2 * n, 3 * d), dtype)
        wide[::2, 1::3] = X
        return wide[::2, 1::3]
    if layout == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    return X


def make_features(rng, n, d, dtype="float64", layout="C"):
    """Random rows; about half of the cells of sparse rows are empty."""
    if not layout.startswith("csr"):
        return DenseRows(make_array(rng, n, d, dtype, layout))
    X = make_array(rng, n, d, dtype)
    S = sparse.csr_array(np.where(rng.random((n, d)) < 0.5, X, 0).astype(dtype))
    return CSRRows.from_scipy(S, np.int32 if layout == "csr32" else np.int64)


def make_problem(rng, n, d, K, dtype="float64", layout="C"):
    """A batch of K classes, its loss (LOGISTIC for two classes, else SOFTMAX), and weights W."""
    X = make_features(rng, n, d, dtype, layout)
    size = 0.5 if dtype in (*FLOATS, "bool") else 0.05
    W = rng.standard_normal((1 if K == 2 else K, d + 1)) * size
    r = rng.integers(0, K, n).astype(np.int32)
    s = rng.random(n) + 0.1
    return Batch(X, r, s), RowLoss.LOGISTIC if K == 2 else RowLoss.SOFTMAX, W


def grid_of(X, K=1, order=1, hessian_blocks=None):
    """The grid of a sweep over some rows."""
    return row_grid(X.shape, 8, K, order, X.stored, hessian_blocks)


def make_queries(rng, n, count, grades, *, equal=False, positions=False, sizes=None):
    """Queries over n rows and their utilities, with `grades` levels (None: real numbers).

    They have the given sizes, or random ones, one of them with a single row.
    """
    inner = rng.integers(1, n, count) if n > 1 else []
    cuts = np.unique(np.concatenate([[0, min(1, n), n], inner])).astype(np.int64)
    if sizes is not None:
        cuts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    group = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    y = rng.standard_normal(n) if grades is None else rng.integers(0, grades, n).astype(float)
    y = y[np.lexsort((-y, group))]
    change = (group[1:] != group[:-1]) | (y[1:] != y[:-1])
    edges = np.flatnonzero(np.concatenate([[True], change, [True]]))
    above, below = (np.repeat(edge, np.diff(edges)) for edge in (edges[:-1], edges[1:]))
    none = np.empty(0)
    s = np.array([0.5]) if equal else rng.random(n)
    gain, discount = (y, rng.random(n)) if positions else (none, none)
    return Queries(cuts, above, below, s, gain, discount), y


def make_ball(n=400, d=3, K=3, seed=0):
    """Random classes within a ball around 0, and class 0 alone outside: planes separate little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = rng.integers(0, K, n)
    y[(X**2).sum(axis=1) > d] = 0
    return X, y
