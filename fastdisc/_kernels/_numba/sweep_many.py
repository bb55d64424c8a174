"""Sums of many two-class problems over shared rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from ..contract import NO_OFFSET, Array, Batch, Grid
from .layouts import accumulate, arguments, fetch, gram, score
from .losses import curvature, evaluate, loss_argument
from .options import driver, jit
from .sweep import (
    Span,
    Sums,
    Targets,
    Weights,
    chunk_count,
    mirror,
    padded_columns,
    plain_grid,
    product_type,
    span,
    split_weights,
    weigh_rows,
)
from .threads import run


class Problems(NamedTuple):
    """Which rows each of K problems has, and their class."""

    target: Array  # (K, groups) int32: the class, 0 or 1
    part: Array  # (K, groups): 1 if rows of the group are included, else 0


@jit()
def assign(
    problems: Problems, k: int, group: Array, s: Array, m: int, r: Array, own: Array
) -> None:
    """The classes and weights of rows in problem k"""
    for i in range(m):
        r[i] = problems.target[k, group[i]]
        own[i] = s[i] * problems.part[k, group[i]]


@jit()
def sweep_many_chunk(
    X: Any,
    targets: Targets,
    problems: Problems,
    loss: Any,
    weights: Weights,
    order: int,
    span: Span,
    sums: Sums,
) -> None:
    """Sums of the rows of a span; totals are (3, K): losses, errors, gradients by the intercepts"""
    (group, s, o), (W, w0), (lo, hi, block) = targets, weights, span
    K, d = W.shape
    Z, work = np.empty((K, block), W.dtype), np.empty((4, block), W.dtype)
    Y = np.empty((1 if order == 2 else 0, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    P = np.zeros((sums.H.shape[-1], block if order == 2 else 0))
    Q = np.empty_like(P)
    c, r = np.empty(block), np.empty(block, np.int32)
    weight, own = np.empty(block, W.dtype), np.empty(block, W.dtype)
    weight[:] = s[0]
    g, G = np.zeros((K, d), W.dtype), sums.G
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        weigh_rows(s, o, lo, m, weight, Z)
        for k in range(K):
            E = Z[k : k + 1]
            assign(problems, k, group[lo : lo + m], weight, m, r, own)
            value, wrong = evaluate(loss, E, r, own, m, work, Y)
            sums.totals[0, k] += value
            sums.totals[1, k] += wrong
            e = W.dtype.type(0)
            for i in range(m):
                e += E[0, i]
            sums.totals[2, k] += e
            if order == 2:
                curvature(loss, 0, 0, E, Y, own, m, c)
                gram(x, lo, m, c, P, Q, sums.H[k])
        if order > 0:
            accumulate(x, lo, m, Z, g)
            G += g
            g[:] = 0
        lo += m


@driver
def sweep_many_driver(
    X: Any,
    targets: Targets,
    problems: Problems,
    loss: Any,
    weights: Weights,
    order: int,
    grid: Grid,
    sums: Sums,
) -> None:
    for c in prange(len(sums.totals)):
        rows, part = span(c, grid, len(targets.r)), Sums(sums.totals[c], sums.G[c], sums.H[c])
        sweep_many_chunk(X, targets, problems, loss, weights, order, rows, part)


def sweep_many(
    batch: Batch, loss: int, signs: Array, W: Array, order: int, grid: Grid, n_threads: int
) -> Any:
    """Sums of many two-class problems over shared rows: (10.7)-(10.9), (10.23)-(10.24)."""
    X, (d, K), chunks = batch.X, (batch.X.shape[1], len(W)), chunk_count(batch.X, grid)
    D = padded_columns(d)
    shapes = (chunks, 3, K), (chunks, K, d), (chunks, K if order == 2 else 0, D, D)
    sums = Sums(*map(np.zeros, shapes))
    target = np.ascontiguousarray(signs.T > 0, dtype=np.int32)
    part = np.ascontiguousarray(signs.T != 0, dtype=np.float64)
    run(
        sweep_many_driver,
        n_threads,
        chunks,
        arguments(X),
        Targets(batch.r, batch.s, NO_OFFSET),
        Problems(target, part),
        loss_argument(loss, 1),
        split_weights(W, product_type(X, order < 2 and grid.float32)),
        int(order),
        plain_grid(grid),
        sums,
    )
    losses, errors, g0 = sums.totals.sum(axis=0)
    H = mirror(sums.H.sum(axis=0)[:, : d + 1, : d + 1]) if order == 2 else None
    return losses, errors, np.column_stack([g0, sums.G.sum(axis=0)]), H
