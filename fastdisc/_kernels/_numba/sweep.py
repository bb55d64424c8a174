"""Sums over rows: loss, gradient, Hessian and its products; and outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from ..contract import Array, Batch, Grid, KernelRows
from ..enums import Activation
from .codes import checked
from .layouts import accumulate, arguments, fetch, gram, score
from .losses import curvature, curvature_product, evaluate, loss_argument, softmax_rows
from .options import driver, jit
from .threads import run
from .vector_math import exp_nonpositive

IDENTITY, SIGMOID = int(Activation.IDENTITY), int(Activation.SIGMOID)
SOFTMAX = int(Activation.SOFTMAX)


class Targets(NamedTuple):
    """A batch without its rows."""

    r: Array  # (N,)
    s: Array  # (N,) or (1,)
    o: Array  # (N, K) or (0, 1)


class Weights(NamedTuple):
    """W in the type of the products."""

    W: Array  # (K, d)
    w0: Array  # (K,)


class Span(NamedTuple):
    """The rows of a chunk, and how many of them make a block."""

    lo: int
    hi: int
    block: int


class Sums(NamedTuple):
    """Partial sums of a chunk, or of all of them, with an axis more."""

    totals: Array  # (2 + K,): loss, errors, gradient by the intercepts
    G: Array  # (K, d)
    H: Array  # (pairs of outputs, D, D)


def product_type(X: Any, float32: bool) -> Any:
    """The type of the products."""
    return np.float32 if float32 and X.float32_products else np.float64


def split_weights(W: Array, dtype: Any) -> Weights:
    """W without, and with only, the intercepts."""
    W = W.astype(dtype)
    return Weights(np.ascontiguousarray(W[:, 1:]), np.ascontiguousarray(W[:, 0]))


def padded_columns(d: int) -> int:
    """Columns of a Hessian with the constant, up to whole vectors."""
    return (d + 8) // 8 * 8


def chunk_count(X: KernelRows, grid: Grid) -> int:
    return -(-X.shape[0] // grid.chunk)


def plain_grid(grid: Grid) -> Grid:
    """A grid with the types that jitted code is compiled for."""
    return Grid(int(grid.block), int(grid.chunk), bool(grid.float32))


@jit()
def span(c: int, grid: Grid, n: int) -> Span:
    """Chunk c of n rows."""
    return Span(c * grid.chunk, min(n, c * grid.chunk + grid.chunk), grid.block)


@jit()
def weigh_rows(s: Array, o: Array, lo: int, m: int, weight: Array, Z: Array) -> None:
    """The weights of rows lo to lo + m, unless they are equal; offsets are added to the scores."""
    if len(s) > 1:
        for i in range(m):
            weight[i] = s[lo + i]
    if len(o) > 0:
        for k in range(len(Z)):
            for i in range(m):
                Z[k, i] += o[lo + i, k]


@jit()
def add_gradient(x: Any, lo: int, m: int, E: Array, g: Array, g0: Array, G: Array) -> None:
    """The errors E of a block summed into g0, and times the rows into G; g is a zeroed buffer"""
    for k in range(len(E)):
        e = E.dtype.type(0)
        for i in range(m):
            e += E[k, i]
        g0[k] += e
    accumulate(x, lo, m, E, g)
    G += g
    g[:] = 0


@jit()
def sweep_chunk(
    X: Any, targets: Targets, loss: Any, weights: Weights, order: int, span: Span, sums: Sums
) -> None:
    """Sums of the rows of a span   (10.23)-(10.24), (10.31)-(10.33)"""
    (r, s, o), (W, w0), (lo, hi, block) = targets, weights, span
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((4, block), W.dtype)
    Y = np.empty((K if order == 2 else 0, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    P = np.zeros((sums.H.shape[-1], block if order == 2 else 0))
    Q = np.empty_like(P)
    c = np.empty(block)
    weight = np.empty(block, W.dtype)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        weigh_rows(s, o, lo, m, weight, Z)
        value, wrong = evaluate(loss, Z, r[lo : lo + m], weight, m, work, Y)
        sums.totals[0] += value
        sums.totals[1] += wrong
        if order > 0:
            add_gradient(x, lo, m, Z, g, sums.totals[2:], sums.G)
        if order == 2:
            pair = 0
            for j in range(K):
                for k in range(j, K):
                    curvature(loss, j, k, Z, Y, weight, m, c)
                    gram(x, lo, m, c, P, Q, sums.H[pair])
                    pair += 1
        lo += m


@driver
def sweep_driver(
    X: Any, targets: Targets, loss: Any, weights: Weights, order: int, grid: Grid, sums: Sums
) -> None:
    for c in prange(len(sums.totals)):
        part = Sums(sums.totals[c], sums.G[c], sums.H[c])
        sweep_chunk(X, targets, loss, weights, order, span(c, grid, len(targets.r)), part)


def sweep(batch: Batch, loss: int, W: Array, order: int, grid: Grid, n_threads: int) -> Any:
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    X, (d, K), chunks = batch.X, (batch.X.shape[1], len(W)), chunk_count(batch.X, grid)
    pairs, D = K * (K + 1) // 2 if order == 2 else 0, padded_columns(d)
    shapes = (chunks, 2 + K), (chunks, K, d), (chunks, pairs, D, D)
    sums = Sums(*map(np.zeros, shapes))
    run(
        sweep_driver,
        n_threads,
        chunks,
        arguments(X),
        Targets(*batch[1:]),
        loss_argument(loss, len(W)),
        split_weights(W, product_type(X, order < 2 and grid.float32)),
        int(order),
        plain_grid(grid),
        sums,
    )
    totals, G = sums.totals.sum(axis=0), sums.G.sum(axis=0)
    H = unfold(sums.H.sum(axis=0)[:, : d + 1, : d + 1], K) if order == 2 else None
    return totals[0], totals[1], np.column_stack([totals[2:], G]), H


def mirror(triangles: Array) -> Array:
    """Symmetric matrices from their upper triangles."""
    D = triangles.shape[-1]
    return np.where(np.arange(D)[:, None] <= np.arange(D), triangles, triangles.swapaxes(1, 2))


def unfold(triangles: Array, K: int) -> Array:
    """The Hessian (K (d+1), K (d+1)) from its K (K+1) / 2 blocks, each an upper triangle."""
    D = triangles.shape[-1]
    H = np.empty((K, D, K, D))
    pairs = [(j, k) for j in range(K) for k in range(j, K)]
    for square, (j, k) in zip(mirror(triangles), pairs, strict=True):
        H[j, :, k, :] = H[k, :, j, :] = square
    return H.reshape(K * D, K * D)


@jit()
def product_chunk(
    X: Any,
    targets: Targets,
    loss: Any,
    weights: Weights,
    direction: Weights,
    span: Span,
    sums: Sums,
) -> None:
    """Sums of the rows of a span: the Hessian times a direction   (10.32), (10.33)"""
    (_, s, o), (W, w0), (V, v0), (lo, hi, block) = targets, weights, direction, span
    K, d = W.shape
    Z, U = np.empty((K, block), W.dtype), np.empty((K, block), W.dtype)
    work = np.empty((4, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    weight = np.empty(block, W.dtype)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        score(x, lo, m, V, v0, U)
        weigh_rows(s, o, lo, m, weight, Z)
        curvature_product(loss, Z, U, weight, m, work)
        add_gradient(x, lo, m, U, g, sums.totals, sums.G)
        lo += m


@driver
def product_driver(
    X: Any,
    n: int,
    targets: Targets,
    loss: Any,
    weights: Weights,
    direction: Weights,
    grid: Grid,
    sums: Sums,
) -> None:
    for c in prange(len(sums.totals)):
        part = Sums(sums.totals[c], sums.G[c], sums.H)
        product_chunk(X, targets, loss, weights, direction, span(c, grid, n), part)


def hessian_product(batch: Batch, loss: int, W: Array, V: Array, grid: Grid, n_threads: int) -> Any:
    """The Hessian at W times V, without forming the Hessian: (10.32), as used by (10.33)."""
    X, (n, d), K = batch.X, batch.X.shape, len(W)
    chunks, dtype = chunk_count(X, grid), product_type(X, grid.float32)
    sums = Sums(np.zeros((chunks, K)), np.zeros((chunks, K, d)), np.zeros((0, 0, 0)))
    run(
        product_driver,
        n_threads,
        chunks,
        arguments(X),
        n,
        Targets(*batch[1:]),
        loss_argument(loss, len(W)),
        split_weights(W, dtype),
        split_weights(V, dtype),
        plain_grid(grid),
        sums,
    )
    return np.column_stack([sums.totals.sum(axis=0), sums.G.sum(axis=0)])


@jit()
def activate(activation: int, Z: Array, m: int, work: Array, out: Array) -> None:
    """The outputs of the scores Z (K, m)   (10.15), (10.29)"""
    one = Z.dtype.type(1)
    if activation == SIGMOID:
        for i in range(m):
            u = exp_nonpositive(-abs(Z[0, i]))
            side = 1 if Z[0, i] > 0 else 0
            out[i, side], out[i, 1 - side] = one / (one + u), u / (one + u)
    elif activation == SOFTMAX:
        softmax_rows(Z, m, work[0], work[1], work[2])
        for i in range(m):
            for k in range(len(Z)):
                out[i, k] = Z[k, i] / work[1, i]
    elif activation == IDENTITY:
        for i in range(m):
            for k in range(len(Z)):
                out[i, k] = Z[k, i]


@jit()
def outputs_chunk(X: Any, activation: int, weights: Weights, span: Span, out: Array) -> float:
    """Outputs of the rows of a span; NaN if a score is not finite, else 0."""
    (W, w0), (lo, hi, block) = weights, span
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((3, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    zero, check = W.dtype.type(0), 0.0
    while lo < hi:
        m = min(block, hi - lo)
        score(fetch(X, lo, m, buffer), lo, m, W, w0, Z)
        for k in range(K):
            for i in range(m):
                check += Z[k, i] * zero
        activate(activation, Z, m, work, out[lo : lo + m])
        lo += m
    return check


@driver
def outputs_driver(
    X: Any, activation: int, weights: Weights, grid: Grid, out: Array, check: Array
) -> None:
    for c in prange(len(check)):
        check[c] = outputs_chunk(X, activation, weights, span(c, grid, len(out)), out)


def outputs(
    X: KernelRows, activation: int, W: Array, grid: Grid, n_threads: int
) -> tuple[Array, bool]:
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    code, chunks = checked("activation", activation, Activation), chunk_count(X, grid)
    out = np.empty((X.shape[0], 2 if code == SIGMOID else len(W)))
    check, weights = np.zeros(chunks), split_weights(W, np.float64)  # float64 whatever X is
    run(
        outputs_driver, n_threads, chunks, arguments(X), code, weights, plain_grid(grid), out, check
    )
    return out, not bool(np.isnan(check).any())


@jit()
def row_sum_chunk(X: Any, e: Array, span: Span, G: Array) -> None:
    """G += sum_i e_i x_i of the rows of a span   (10.24)"""
    lo, hi, block = span
    buffer = np.empty((block, G.shape[1]))
    for i in range(lo, hi, block):
        m = min(block, hi - i)
        accumulate(fetch(X, i, m, buffer), i, m, e[:, i : i + m], G)


@driver
def row_sum_driver(X: Any, e: Array, grid: Grid, part: Array) -> None:
    for c in prange(len(part)):
        row_sum_chunk(X, e, span(c, grid, e.shape[1]), part[c])


def weighted_row_sum(X: KernelRows, e: Array, grid: Grid, n_threads: int) -> Array:
    """The sum of rows times errors: (10.24)."""
    part = np.zeros((chunk_count(X, grid), 1, X.shape[1]))
    run(row_sum_driver, n_threads, len(part), arguments(X), e[None, :], plain_grid(grid), part)
    return part.sum(axis=0)[0]
