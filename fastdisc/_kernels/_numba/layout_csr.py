"""Compressed sparse rows, read in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from ..contract import Array, Grid, KernelRows
from ..enums import MomentKind
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
from .options import driver, implements, jit
from .threads import run

COUNTS, SQUARES = int(MomentKind.COUNTS), int(MomentKind.SQUARES)


class CSRArguments(NamedTuple):
    """What jitted code takes for CSR rows. A cell that is stored twice counts as the sum."""

    data: Array
    indices: Array
    indptr: Array

    in_place = True
    only_stored = True  # `add_moments` reads stored cells only


def csr_arguments(X: Any) -> CSRArguments:
    return CSRArguments(X.data, X.indices, X.indptr)


ARGUMENTS["csr"] = csr_arguments


@implements(fetch, CSRArguments)
def fetch_csr(X: CSRArguments, lo: int, m: int, buffer: Array) -> CSRArguments:
    return X


@implements(score, CSRArguments, reorder=True)
def score_csr(x: CSRArguments, lo: int, m: int, W: Array, w0: Array, Z: Array) -> None:
    data, indices, indptr = x
    for i in range(m):
        for k in range(W.shape[0]):
            z = w0[k]
            for t in range(indptr[lo + i], indptr[lo + i + 1]):
                z += data[t] * W[k, indices[t]]
            Z[k, i] = z


@implements(accumulate, CSRArguments, reorder=True)
def accumulate_csr(x: CSRArguments, lo: int, m: int, E: Array, G: Array) -> None:
    data, indices, indptr = x
    for i in range(m):
        for t in range(indptr[lo + i], indptr[lo + i + 1]):
            for k in range(G.shape[0]):
                G[k, indices[t]] += data[t] * E[k, i]


@implements(gram, CSRArguments, reorder=True)
def gram_csr(x: CSRArguments, lo: int, m: int, c: Array, P: Array, Q: Array, H: Array) -> None:
    data, indices, indptr = x
    for i in range(m):
        H[0, 0] += c[i]
        for t in range(indptr[lo + i], indptr[lo + i + 1]):
            v, a = c[i] * data[t], indices[t] + 1
            H[0, a] += v
            for u in range(t, indptr[lo + i + 1]):
                b = indices[u] + 1
                H[min(a, b), max(a, b)] += v * data[u] * (2 if u > t and a == b else 1)


@implements(pick, CSRArguments)
def pick_csr(X: CSRArguments, t: int, buffer: Array) -> tuple[CSRArguments, int]:
    return X, t


@implements(dot_row, CSRArguments, reorder=True)
def dot_row_csr(x: CSRArguments, t: int, w: Array) -> float:
    data, indices, indptr = x
    z = 0.0
    for i in range(indptr[t], indptr[t + 1]):
        z += data[i] * w[indices[i]]
    return z


@implements(add_row, CSRArguments)
def add_row_csr(x: CSRArguments, t: int, a: float, w: Array) -> None:
    data, indices, indptr = x
    for i in range(indptr[t], indptr[t + 1]):
        w[indices[i]] += a * data[i]


@implements(copy_row, CSRArguments)
def copy_row_csr(x: CSRArguments, t: int, out: Array) -> None:
    data, indices, indptr = x
    out[:] = 0
    for i in range(indptr[t], indptr[t + 1]):
        out[indices[i]] += data[i]


@implements(row_size, CSRArguments)
def row_size_csr(x: CSRArguments, t: int) -> int:
    return x.indptr[t + 1] - x.indptr[t]


@implements(row_column, CSRArguments)
def row_column_csr(x: CSRArguments, t: int, i: int) -> int:
    return x.indices[x.indptr[t] + i]


@implements(add_moments, CSRArguments, reorder=True)
def add_moments_csr(
    x: CSRArguments, t: int, k: int, s: float, shift: Array, kind: int, M: Array, S: Array
) -> None:
    data, indices, indptr = x
    for i in range(indptr[t], indptr[t + 1]):
        j, v = indices[i], np.float64(data[i])
        if kind == COUNTS:
            absent = 1.0 if 0 > shift[k, j] else 0.0
            M[k, j] += s * ((1.0 if v > shift[k, j] else 0.0) - absent + 0.0 * v)
        else:
            M[k, j] += s * v
        if kind == SQUARES:
            S[0, k, j] += s * v * v


@implements(add_scatter, CSRArguments, reorder=True)
def add_scatter_csr(
    x: CSRArguments, t: int, shift: Array, kind: int, P: Array, at: int, H: Array, s: float
) -> int:
    data, indices, indptr = x
    for i in range(indptr[t], indptr[t + 1]):
        v, a = s * data[i], indices[i]
        for u in range(i, indptr[t + 1]):
            b = indices[u]
            H[min(a, b), max(a, b)] += v * data[u] * (2 if u > i and a == b else 1)
    return 0


@jit()
def matmul_rows(X: CSRArguments, B: Array, lo: int, hi: int, out: Array) -> None:
    """Rows lo to hi of out = X B   (10.6)"""
    data, indices, indptr = X
    for i in range(lo, hi):
        z = out[i]
        z[:] = 0
        for t in range(indptr[i], indptr[i + 1]):
            v, b = B.dtype.type(data[t]), B[indices[t]]
            for k in range(len(z)):
                z[k] += v * b[k]


@driver
def matmul_driver(X: CSRArguments, B: Array, chunk: int, chunks: int, out: Array) -> None:
    for c in prange(chunks):
        matmul_rows(X, B, c * chunk, min(len(out), c * chunk + chunk), out)


def matmul(X: KernelRows, B: Array, out: Array, grid: Grid, n_threads: int) -> None:
    """Sparse rows times a matrix: (10.6); for transposed rows, (10.33)."""
    if X.layout != "csr":
        raise ValueError(f"matmul takes CSR rows, got layout {X.layout!r}")
    chunks = -(-X.shape[0] // grid.chunk)
    run(matmul_driver, n_threads, chunks, csr_arguments(X), B, int(grid.chunk), chunks, out)
