"""Rows and columns picked out of arrays and CSR, and their moments: the few things that are done beside the kernels.

They run once or twice in a fit, a slice of rows at a time, so that no copy of X is made.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ._kernels import CSR, Mapped

SLICE = 1 << 18  # cells


def _scipy(X):
    return csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def _ours(A, like):
    index = like.indices.dtype
    return CSR(A.data, A.indices.astype(index, copy=False), A.indptr.astype(index, copy=False), A.shape[1])


def canonical(X):
    """X, where no column stands twice in a row of CSR; a copy only where one does, or where columns are out of order."""
    if not isinstance(X, CSR):
        return X
    A = _scipy(X)
    if A.has_canonical_format:
        return X
    A = A.copy()
    A.sum_duplicates()
    return _ours(A, X)


def strata(n, m, rng):
    """About m of n rows, in order: one at random from each of m runs of rows, so that no order of the rows spoils the draw."""
    if m >= n:
        return np.arange(n)
    edges = np.arange(m + 1) * n // m
    return edges[:-1] + (rng.random(m) * np.diff(edges)).astype(np.int64)


def take_rows(X, rows):
    """Some rows, copied."""
    if isinstance(X, Mapped):
        return X.take_rows(rows)
    if isinstance(X, CSR):
        return X if isinstance(rows, slice) else _ours(_scipy(X)[rows], X)
    return X[rows] if isinstance(rows, slice) else np.ascontiguousarray(X.take(rows, axis=0))


def some_rows(X, rows):
    """Some rows, not copied where they follow one another."""
    if not (np.diff(rows) == 1).all():
        return take_rows(X, rows)
    begin, end = int(rows[0]), int(rows[-1]) + 1
    return window(X, begin, end) if isinstance(X, CSR) else take_rows(X, slice(begin, end))


def window(X, begin, end):
    """Consecutive rows, not copied."""
    if not isinstance(X, CSR):
        return X[begin:end]
    first, last = X.indptr[begin], X.indptr[end]
    return CSR(X.data[first:last], X.indices[first:last], X.indptr[begin : end + 1] - first, X.n_columns)


def take_columns(X, columns):
    """Some columns, copied; of features, those alone."""
    if isinstance(X, Mapped):
        return X.take_columns(columns)
    return _ours(_scipy(X)[:, columns], X) if isinstance(X, CSR) else np.ascontiguousarray(X[:, columns])


def _slices(X):
    step = max(1, SLICE // max(1, X.shape[1]))
    return [slice(lo, min(lo + step, X.shape[0])) for lo in range(0, X.shape[0], step)]


def _row_of_each(X):
    """The row of each stored value."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def moments(X, s):
    """Weighted mean and standard deviation of the columns, in two passes; a constant column deviates by exactly 0."""
    n, d = X.shape
    one = len(s) == 1
    total = float(n * s[0] if one else s.sum())
    if isinstance(X, CSR):
        weight = np.full(len(X.data), s[0]) if one else s[_row_of_each(X)]
        mean = np.bincount(X.indices, weight * X.data, d) / total
        absent = total - np.bincount(X.indices, weight, d)
        absent[absent < 1e-12 * total] = 0  # rounding
        square = np.bincount(X.indices, weight * (X.data - mean[X.indices]) ** 2, d) + absent * mean**2
    else:
        mean, square = np.zeros(d), np.zeros(d)
        for rows in _slices(X):
            mean += (s[0] * X[rows].sum(axis=0, dtype=np.float64)) if one else s[rows] @ X[rows]
        mean /= total
        for rows in _slices(X):
            apart = X[rows] - mean
            square += s[0] * np.einsum("ij,ij->j", apart, apart) if one else s[rows] @ apart**2
    deviation = np.sqrt(square / total)
    # A constant column whose mean is not exact leaves some rounding behind.
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0)


def dense(X):
    """Rows as float64 in C order; mapped ones are expanded."""
    if not isinstance(X, CSR):
        return np.ascontiguousarray(X[:], dtype=np.float64)
    out = np.zeros(X.shape)
    np.add.at(out, (_row_of_each(X), X.indices), X.data)
    return out


def apart(X, mean, scale):
    """(X - mean) / scale: a copy, it may be the caller's own; features of a basis stay features."""
    if isinstance(X, Mapped):
        return X.standardized(mean, scale)
    X = X - mean
    X /= scale
    return X


def standardized(X, s):
    """A copy of X with columns of mean 0 and spread 1, what was taken off, and divided by. CSR keeps its zeros and its means.

    Features of a basis are not copied: they become standardised ones.
    """
    mean, scale = moments(X, s)
    scale = np.where(scale > 0, scale, 1.0)
    if isinstance(X, CSR):
        return X._replace(data=X.data / scale[X.indices]), np.zeros_like(mean), scale
    return apart(X, mean, scale), mean, scale


def largest_eigenvalue(X, s, intercept, rows=4096, rounds=100):
    """That of the mean of [1 x][1 x]', or of x x', over a sample of the rows, by power iteration from a random start."""
    rng = np.random.default_rng(0)
    some = strata(X.shape[0], rows, rng)
    s = s[some] if len(s) > 1 and s[some].any() else np.ones(1)
    A = X[some] if isinstance(X, Mapped) else take_rows(X, some)
    A = _scipy(A).astype(np.float64) if isinstance(A, CSR) else A.astype(np.float64)
    v, top = rng.standard_normal(X.shape[1] + 1), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for done in range(rounds):
            v[0] *= intercept
            v /= np.linalg.norm(v) or 1.0
            z = s * (A @ v[1:] + v[0])
            v = np.append(z.sum(), A.T @ z) / (s[0] * len(some) if len(s) == 1 else s.sum())
            v[0] *= intercept
            last, top = top, float(np.linalg.norm(v))
            if done > 5 and not abs(top - last) > 1e-4 * top:
                break
    return top


def largest_norm(X, s, intercept, rows=1 << 16):
    """max s ||[1 x]||^2, or s ||x||^2, over a sample of the rows."""
    some = strata(X.shape[0], rows, np.random.default_rng(0))
    return float(((s[some] if len(s) > 1 else s) * (intercept + norms(take_rows(X, some), np.ones(1), axis=1))).max())


def norms(X, s, *, axis, mean=0.0, scale=1.0):
    """Weighted sums of squares: of each column (axis 0), or of each row's standardised features (axis 1)."""
    n, d = X.shape
    if isinstance(X, CSR):
        weight = s[0] if len(s) == 1 else s[_row_of_each(X)]
        if axis == 0:
            return np.bincount(X.indices, weight * np.square(X.data, dtype=np.float64), d)
        scale = np.broadcast_to(scale, d)
        return np.bincount(_row_of_each(X), (X.data / scale[X.indices]) ** 2, n)
    result = np.zeros(d if axis == 0 else n)
    for rows in _slices(X):
        A = (X[rows] - mean) / scale
        if axis == 0:
            result += s[0] * np.einsum("ij,ij->j", A, A) if len(s) == 1 else s[rows] @ A**2
        else:
            result[rows] = np.einsum("ij,ij->i", A, A)
    return result
