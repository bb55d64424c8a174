"""One case for each layout of rows: what the conformance tests of rows run over."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc.basis import Gaussian, Polynomial

from .cases import DTYPES
from .extensions import ColumnChunks
from .problems import make_array

N, D = 53, 5


class Case(NamedTuple):
    """Rows, and the same features as an array."""

    rows: Any
    A: np.ndarray


def dense_case(rng, dtype="float64", layout="C", n=N):
    A = make_array(rng, n, D, dtype, layout)
    return Case(DenseRows(A), A.astype(float))


def csr_case(rng, dtype="float64", index=np.int32, n=N, duplicates=False):
    A = make_array(rng, n, D, dtype)
    A = np.where(rng.random(A.shape) < 0.5, 0, A).astype(dtype)
    A[3] = 0
    rows = CSRRows.from_scipy(sparse.csr_array(A), index)
    if duplicates:  # each value is stored as the sum of two
        data, indices = np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2)
        rows = CSRRows(data, indices, 2 * rows.indptr, D)
    return Case(rows, A.astype(float))


def mapped_case(rng, basis=None, n=N, standardized=False, chosen=None):
    X = rng.standard_normal((n, 3))
    fitted = (Polynomial(2) if basis is None else basis).fit(X)
    rows, A = fitted.mapped(DenseRows(X)), fitted.transform(X)
    if chosen is not None:
        rows, A = rows.columns(chosen), A[:, chosen]
    if standardized:
        mean, scale = A.mean(axis=0), A.std(axis=0)
        rows, A = rows.standardized(mean, scale), (A - mean) / scale
    return Case(rows, A)


def chunks_case(rng, n=N):
    A = rng.standard_normal((n, D))
    return Case(ColumnChunks(A, 12), A)


CASES = {
    **{f"dense {dtype}": lambda rng, t=dtype, **o: dense_case(rng, t, **o) for dtype in DTYPES},
    **{
        f"dense {layout}": lambda rng, t=layout, **o: dense_case(rng, "float64", t, **o)
        for layout in ("F", "strided", "reversed")
    },
    "csr": csr_case,
    "csr float32": lambda rng, **o: csr_case(rng, "float32", **o),
    "csr int64 indices": lambda rng, **o: csr_case(rng, index=np.int64, **o),
    "csr duplicates": lambda rng, **o: csr_case(rng, duplicates=True, **o),
    "mapped": mapped_case,
    "mapped gaussian": lambda rng, **o: mapped_case(rng, Gaussian(3), **o),
    "mapped columns": lambda rng, **o: mapped_case(rng, chosen=np.array([4, 0, 2]), **o),
    "mapped standardised": lambda rng, **o: mapped_case(rng, standardized=True, **o),
    "new layout": chunks_case,
}
