"""Dense rows: an array of any strides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ..contract import Array
from ..enums import MomentKind
from .gram import weighted_gram
from .layouts import (
    ARGUMENTS,
    accumulate,
    add_moments,
    add_row,
    add_scatter,
    copy_row,
    dot_row,
    fetch,
    gram,
    pick,
    row_column,
    row_size,
    score,
)
from .options import Function, implements

COUNTS, SQUARES = int(MomentKind.COUNTS), int(MomentKind.SQUARES)
QUARTIC = int(MomentKind.QUARTIC)


def dense_arguments(X: Any) -> Array:
    """The array itself; bool as the bytes that it is stored as."""
    return X.values.view(np.uint8) if X.values.dtype == bool else X.values


ARGUMENTS["dense"] = dense_arguments


@overload(fetch, strict=False)
def _fetch(X: types.Type, lo: types.Type, m: types.Type, buffer: types.Type) -> Function | None:
    if not isinstance(X, types.Array):
        return None
    if X.layout == "C" and X.dtype == buffer.dtype:
        return lambda X, lo, m, buffer: X[lo : lo + m]
    return convert


def convert(X: Array, lo: int, m: int, buffer: Array) -> Array:
    for i in range(m):
        for j in range(X.shape[1]):
            buffer[i, j] = X[lo + i, j]
    return buffer


@implements(score, np.ndarray, reorder=True)
def score_dense(x: Array, lo: int, m: int, W: Array, w0: Array, Z: Array) -> None:
    K, d = W.shape
    zero = W.dtype.type(0)
    body = m - m % 4
    for i in range(0, body, 4):
        for k in range(0, K - 1, 2):
            a0, a1, a2, a3 = zero, zero, zero, zero
            b0, b1, b2, b3 = zero, zero, zero, zero
            for j in range(d):
                w, u = W[k, j], W[k + 1, j]
                a0 += x[i, j] * w
                b0 += x[i, j] * u
                a1 += x[i + 1, j] * w
                b1 += x[i + 1, j] * u
                a2 += x[i + 2, j] * w
                b2 += x[i + 2, j] * u
                a3 += x[i + 3, j] * w
                b3 += x[i + 3, j] * u
            v, t = w0[k], w0[k + 1]
            Z[k, i], Z[k, i + 1], Z[k, i + 2], Z[k, i + 3] = a0 + v, a1 + v, a2 + v, a3 + v
            Z[k + 1, i], Z[k + 1, i + 1] = b0 + t, b1 + t
            Z[k + 1, i + 2], Z[k + 1, i + 3] = b2 + t, b3 + t
        if K % 2:
            k = K - 1
            a0, a1, a2, a3 = zero, zero, zero, zero
            for j in range(d):
                w = W[k, j]
                a0 += x[i, j] * w
                a1 += x[i + 1, j] * w
                a2 += x[i + 2, j] * w
                a3 += x[i + 3, j] * w
            v = w0[k]
            Z[k, i], Z[k, i + 1], Z[k, i + 2], Z[k, i + 3] = a0 + v, a1 + v, a2 + v, a3 + v
    for i in range(body, m):
        for k in range(K):
            a0 = zero
            for j in range(d):
                a0 += x[i, j] * W[k, j]
            Z[k, i] = a0 + w0[k]


@implements(accumulate, np.ndarray, reorder=True)
def accumulate_dense(x: Array, lo: int, m: int, E: Array, G: Array) -> None:
    K, d = G.shape
    body = m - m % 4
    for i in range(0, body, 4):
        for k in range(0, K - 1, 2):
            e0, e1, e2, e3 = E[k, i], E[k, i + 1], E[k, i + 2], E[k, i + 3]
            f0, f1, f2, f3 = E[k + 1, i], E[k + 1, i + 1], E[k + 1, i + 2], E[k + 1, i + 3]
            for j in range(d):
                x0, x1, x2, x3 = x[i, j], x[i + 1, j], x[i + 2, j], x[i + 3, j]
                G[k, j] += (x0 * e0 + x1 * e1) + (x2 * e2 + x3 * e3)
                G[k + 1, j] += (x0 * f0 + x1 * f1) + (x2 * f2 + x3 * f3)
        if K % 2:
            k = K - 1
            e0, e1, e2, e3 = E[k, i], E[k, i + 1], E[k, i + 2], E[k, i + 3]
            for j in range(d):
                G[k, j] += (x[i, j] * e0 + x[i + 1, j] * e1) + (x[i + 2, j] * e2 + x[i + 3, j] * e3)
    for i in range(body, m):
        for k in range(K):
            for j in range(d):
                G[k, j] += x[i, j] * E[k, i]


@implements(gram, np.ndarray, reorder=True)
def gram_dense(x: Array, lo: int, m: int, c: Array, P: Array, Q: Array, H: Array) -> None:
    for i in range(m):
        P[0, i] = 1
        for j in range(x.shape[1]):
            P[j + 1, i] = x[i, j]
    weighted_gram(P, Q, c, m, H)


@implements(pick, np.ndarray)
def pick_dense(X: Array, t: int, buffer: Array) -> tuple[Array, int]:
    return X, t


@implements(dot_row, np.ndarray, reorder=True)
def dot_row_dense(x: Array, t: int, w: Array) -> float:
    z = 0.0
    for j in range(x.shape[1]):
        z += x[t, j] * w[j]
    return z


@implements(add_row, np.ndarray)
def add_row_dense(x: Array, t: int, a: float, w: Array) -> None:
    for j in range(x.shape[1]):
        w[j] += a * x[t, j]


@implements(copy_row, np.ndarray)
def copy_row_dense(x: Array, t: int, out: Array) -> None:
    for j in range(x.shape[1]):
        out[j] = x[t, j]


@implements(row_size, np.ndarray)
def row_size_dense(x: Array, t: int) -> int:
    return x.shape[1]


@implements(row_column, np.ndarray)
def row_column_dense(x: Array, t: int, i: int) -> int:
    return i


@implements(add_moments, np.ndarray, reorder=True)
def add_moments_dense(
    x: Array, t: int, k: int, s: float, shift: Array, kind: int, M: Array, S: Array
) -> None:
    for j in range(x.shape[1]):
        v = np.float64(x[t, j])
        u = v - shift[k, j]
        if kind == COUNTS:
            u = (1.0 if u > 0 else 0.0) + 0.0 * v  # NaN if v is not finite; v - v would be folded
        M[k, j] += s * u
        if kind == SQUARES:
            S[0, k, j] += s * u * u


@implements(add_scatter, np.ndarray, reorder=True)
def add_scatter_dense(
    x: Array, t: int, shift: Array, kind: int, P: Array, at: int, H: Array, s: float
) -> int:
    d = x.shape[1]
    for j in range(d):
        u = np.float64(x[t, j]) - shift[j]
        P[j, at] = u
        if kind == QUARTIC:
            P[d + j, at] = u * u
    return 1
