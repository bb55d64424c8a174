"""Moments of classes, and quadratic scores.

Rows of a group are queued, transposed, so that each entry of a scatter matrix is a sum over
contiguous memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from ..contract import Array, Batch, Grid, KernelRows
from ..enums import MomentKind
from .codes import checked
from .gram import weighted_gram
from .layouts import add_moments, add_scatter, arguments, copy_row, pick
from .options import driver, jit
from .sweep import Span, chunk_count, mirror, plain_grid, span
from .threads import run

COUNTS, SQUARES, SCATTER, QUARTIC = (
    int(kind)
    for kind in (MomentKind.COUNTS, MomentKind.SQUARES, MomentKind.SCATTER, MomentKind.QUARTIC)
)


class Classes(NamedTuple):
    """The classes and weights of rows, and what is subtracted from them."""

    r: Array  # (N,)
    s: Array  # (N,) or (1,)
    shift: Array  # (K, d)
    group: Array  # (K,): the scatter matrix of each class


class MomentSums(NamedTuple):
    """Partial sums of a chunk, or of all of them, with an axis more."""

    n: Array  # (K,)
    M: Array  # (K, d)
    S: Array  # (1, K, d) squares, or (groups, D, D)


@jit()
def moments_chunk(X: Any, classes: Classes, kind: int, span: Span, sums: MomentSums) -> None:
    """Sums of the rows of a span   (4.21), (4.28)"""
    (r, s, shift, group), (n, M, S), (lo, hi, block) = classes, sums, span
    scatter = kind == SCATTER or kind == QUARTIC
    groups, D = (len(S), S.shape[-1]) if scatter else (0, 0)
    P, Q = np.zeros((groups, D, block)), np.empty((D, block))
    weight, queued = np.empty((groups, block)), np.zeros(groups, np.int64)
    buffer = np.empty((1, M.shape[1]))
    for i in range(lo, hi):
        x, t = pick(X, i, buffer)
        k = r[i]
        step = s[i] if len(s) > 1 else s[0]
        n[k] += step
        add_moments(x, t, k, step, shift, kind, M, S)
        if scatter:
            g = group[k]
            weight[g, queued[g]] = step
            queued[g] += add_scatter(x, t, shift[k], kind, P[g], queued[g], S[g], step)
            if queued[g] == block:
                weighted_gram(P[g], Q, weight[g], block, S[g])
                queued[g] = 0
    for g in range(groups):
        weighted_gram(P[g], Q, weight[g], queued[g], S[g])


@driver
def moments_driver(X: Any, classes: Classes, kind: int, grid: Grid, sums: MomentSums) -> None:
    for c in prange(len(sums.n)):
        part = MomentSums(sums.n[c], sums.M[c], sums.S[c])
        moments_chunk(X, classes, kind, span(c, grid, len(classes.r)), part)


def class_moments(
    batch: Batch, shift: Array, group: Array, kind: int, grid: Grid, n_threads: int
) -> tuple[Array, Array, Array | None]:
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    kind, X, (K, d) = checked("moment kind", kind, MomentKind), arguments(batch.X), shift.shape
    chunks, width = chunk_count(batch.X, grid), 2 * d if kind == QUARTIC else d
    D = (width + 7) // 8 * 8  # whole vectors
    scatter = kind in (SCATTER, QUARTIC)
    shape = (chunks, int(group.max()) + 1, D, D) if scatter else (chunks, 1, K, d)
    sums = MomentSums(np.zeros((chunks, K)), np.zeros((chunks, K, d)), np.zeros(shape))
    classes = Classes(batch.r, batch.s, shift, group)
    run(moments_driver, n_threads, chunks, X, classes, kind, plain_grid(grid), sums)
    n, M, S = (part.sum(axis=0) for part in sums)
    if kind == COUNTS and getattr(X, "only_stored", False):
        M += n[:, None] * (0 > shift)
    if scatter:
        return n, M, mirror(S[:, :width, :width])
    return n, M, S[0] if kind == SQUARES else None


class Quadratic(NamedTuple):
    """The quadratic functions of classes."""

    mean: Array  # (K, d)
    A: Array  # (K, p, d), or (K, 1, d) if diagonal
    c: Array  # (K,)
    diagonal: bool


@jit()
def quadratic_value(x: Array, k: int, functions: Quadratic, u: Array) -> float:
    """|A_k (x - mean_k)|^2; u is a buffer like x"""
    mean, A, _, diagonal = functions
    total, d = 0.0, len(x)
    if diagonal:
        for j in range(d):
            a = A[k, 0, j] * (x[j] - mean[k, j])
            total += a * a
    else:
        for j in range(d):
            u[j] = x[j] - mean[k, j]
        for p in range(A.shape[1]):
            a = 0.0
            for j in range(d):
                a += A[k, p, j] * u[j]
            total += a * a
    return total


@jit()
def quadratic_chunk(X: Any, functions: Quadratic, span: Span, out: Array) -> float:
    """z_k = c_k - |A_k (x - mean_k)|^2 / 2 (10.34); NaN if a score is not finite, else 0."""
    K, d = functions.mean.shape
    x, u, buffer, check = np.empty(d), np.empty(d), np.empty((1, d)), 0.0
    for i in range(span.lo, span.hi):
        rows, t = pick(X, i, buffer)
        copy_row(rows, t, x)
        for k in range(K):
            total = quadratic_value(x, k, functions, u)
            out[i, k] = functions.c[k] - total / 2
            check += 0.0 * total
    return check


@driver
def quadratic_driver(X: Any, functions: Quadratic, grid: Grid, out: Array, check: Array) -> None:
    for c in prange(len(check)):
        check[c] = quadratic_chunk(X, functions, span(c, grid, len(out)), out)


def quadratic_scores(
    X: KernelRows, mean: Array, A: Array, c: Array, grid: Grid, n_threads: int
) -> tuple[Array, bool]:
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    chunks = chunk_count(X, grid)
    out, check = np.empty((X.shape[0], len(mean))), np.zeros(chunks)
    functions = Quadratic(mean, A.reshape(len(A), -1, A.shape[-1]), c, A.ndim == 2)
    run(quadratic_driver, n_threads, chunks, arguments(X), functions, plain_grid(grid), out, check)
    return out, not bool(np.isnan(check).any())
