"""Backends, layouts and small problems that several test files use."""

import numpy as np
import pytest
from scipy import sparse

from fastdisc import _kernels
from fastdisc._kernels import CSR, Link, Queries

FAST = ("cython", "numba")
DTYPES = ("float64", "float32", "uint8", "int8", "int16", "bool")
LAYOUTS = ("C", "F", "strided", "reversed", "csr32", "csr64")
FLOATS = ("float64", "float32")

# Not every type with every layout: CSR stores floats, and the odd layouts convert each type by the same code.
CASES = [(dtype, layout) for dtype in DTYPES for layout in LAYOUTS if layout in ("C", "F") or (dtype in FLOATS)]


# What Numba compiles, for tens of seconds a type: each kind of memory order, of width and of index once. Tests of kernels
# take their types from these, and so share what is compiled.
NUMBA_CASES = [
    ("float64", "C"),
    ("float64", "strided"),
    ("float64", "csr32"),
    ("float32", "C"),
    ("float32", "csr64"),
    ("uint8", "F"),
]
KERNEL_CASES = [("cython", *case) for case in CASES] + [("numba", *case) for case in NUMBA_CASES]


def make_features(rng, n, d, dtype="float64", layout="C"):
    """Random rows in a layout; whole numbers stay small, about half of sparse cells are empty."""
    X = rng.standard_normal((n, d))
    if dtype == "bool":
        X = X > 0
    elif dtype not in FLOATS:
        X = np.clip(np.rint(X * 3) + (4 if dtype == "uint8" else 0), 0 if dtype == "uint8" else -9, 9)
    X = X.astype(dtype)
    if layout.startswith("csr"):
        S = sparse.csr_array(np.where(rng.random((n, d)) < 0.5, X, 0).astype(dtype))
        index = np.int32 if layout == "csr32" else np.int64
        return CSR(S.data, S.indices.astype(index), S.indptr.astype(index), d)
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.zeros((2 * n, 3 * d), dtype)
        wide[::2, 1::3] = X
        return wide[::2, 1::3]
    if layout == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    return X


def make_problem(rng, n, d, K, dtype="float64", layout="C"):
    """X, link, r, s, W for K classes; K = 2 has one sigmoid."""
    X = make_features(rng, n, d, dtype, layout)
    rows = 1 if K == 2 else K
    W = rng.standard_normal((rows, d + 1)) * (0.5 if dtype in (*FLOATS, "bool") else 0.05)
    r = rng.integers(0, K, n).astype(np.int32)
    s = rng.random(n) + 0.1
    return X, Link.LOGISTIC if K == 2 else Link.SOFTMAX, r, s, W


def make_queries(rng, n, count, grades, *, equal=False, positions=False, sizes=None):
    """Queries over n rows, one of them with a single row, or of given sizes, and their utilities; real ones with grades=None."""
    cuts = np.unique(np.concatenate([[0, min(1, n), n], rng.integers(1, n, count) if n > 1 else []])).astype(np.int64)
    cuts = cuts if sizes is None else np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    group = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    y = rng.standard_normal(n) if grades is None else rng.integers(0, grades, n).astype(float)
    y = y[np.lexsort((-y, group))]
    edges = np.flatnonzero(np.concatenate([[True], (group[1:] != group[:-1]) | (y[1:] != y[:-1]), [True]]))
    above, below = np.repeat(edges[:-1], np.diff(edges)), np.repeat(edges[1:], np.diff(edges))
    none = np.empty(0)
    s = np.array([0.5]) if equal else rng.random(n)
    return Queries(cuts, above, below, s, y if positions else none, rng.random(n) if positions else none), y


def make_ball(n=400, d=3, K=3, seed=0):
    """Classes at random in a ball around 0, and the first alone outside: no plane tells much."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = rng.integers(0, K, n)
    y[(X**2).sum(axis=1) > d] = 0
    return X, y


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture(params=_kernels.BACKENDS)
def backend(request):
    return _kernels.load(request.param)


@pytest.fixture(params=FAST)
def fast(request):
    return _kernels.load(request.param)


@pytest.fixture
def reference():
    return _kernels.load("numpy")
