"""Sums over rows: one line per equation, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..contract import NO_OFFSET, Array, Batch, Grid, KernelRows
from ..enums import Activation, MomentKind
from . import losses
from .losses import sigmoid, softmax

MAX_EXPANDED_CELLS = 1 << 20  # features of mapped rows that are computed at a time


def _slices(X: KernelRows) -> Iterable[slice]:
    """All rows at once; of lazy layouts (mapped rows), as many as may be expanded at a time."""
    n, d = X.shape
    step = max(1, MAX_EXPANDED_CELLS // d) if X.lazy and n * d > MAX_EXPANDED_CELLS else n
    return [slice(lo, lo + step) for lo in range(0, n, step)]


def _batches(batch: Batch) -> Iterator[tuple[Any, Array, Array, Array]]:
    """The rows as something that multiplies in float64, with r, s and o."""
    X, r, s, o = batch
    for part in _slices(X):
        rows = X if part.stop >= X.shape[0] and part.start == 0 else X.take(part)
        yield rows.to_float64(), r[part], s[part] if len(s) > 1 else s, o[part] if len(o) else o


def dense_rows(X: KernelRows) -> Array:
    """(N, d) float64"""
    values = X.to_float64()
    return values if isinstance(values, np.ndarray) else values.toarray()


def with_constant(X: KernelRows) -> Array:
    """[1 x^t], (N, d+1)"""
    rows = dense_rows(X)
    return np.column_stack([np.ones(len(rows)), rows])


def _score(X: Any, W: Array, o: Array = NO_OFFSET) -> Array:
    """z_k = w_k' x + w_k0 + o_k   (10.6)"""
    Z = X @ W[:, 1:].T + W[:, 0]
    return Z + o if len(o) else Z


def _accumulate(X: Any, E: Array) -> Array:
    """G = sum_t e^t [1 x^t]   (10.24), (10.33)"""
    return np.column_stack([E.sum(axis=0), (X.T @ E).T])


def _gram(X: Any, c: Array) -> Array:
    """sum_t c^t [1 x^t][1 x^t]'"""
    X = X if isinstance(X, np.ndarray) else X.toarray()
    X1 = np.column_stack([np.ones(len(X)), X])
    return X1.T @ (c[:, None] * X1)


def sweep(batch: Batch, loss: int, W: Array, order: int, grid: Grid, n_threads: int) -> Any:
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    parts = []
    for X, r, s, o in _batches(batch):
        values, chosen, E, curvature = losses.evaluate(loss, _score(X, W, o), r)
        G = _accumulate(X, s[:, None] * E)
        K = range(len(W))
        blocks = [[_gram(X, s * curvature(i, j)) for j in K] for i in K] if order == 2 else None
        H = None if blocks is None else np.block(blocks)
        parts.append(((s * values).sum(), (s * (chosen != r)).sum(), G, H))
    return _sum_columns(parts)


def _sum_columns(parts: list[tuple]) -> tuple:
    return tuple(None if c[0] is None else sum(c[1:], c[0]) for c in zip(*parts, strict=True))


def sweep_many(
    batch: Batch, loss: int, signs: Array, W: Array, order: int, grid: Grid, n_threads: int
) -> Any:
    """Sums of many two-class problems over shared rows: (10.7)-(10.9), (10.23)-(10.24)."""
    found = []
    for sign, w in zip(signs.T, W, strict=True):
        side = sign[batch.r]
        own = Batch(batch.X, (side > 0).astype(np.int32), batch.s * (side != 0))
        found.append(sweep(own, loss, w[None], order, grid, 1))
    values, errors, G, H = zip(*found, strict=True)
    return np.array(values), np.array(errors), np.vstack(G), np.stack(H) if order == 2 else None


def hessian_product(batch: Batch, loss: int, W: Array, V: Array, grid: Grid, n_threads: int) -> Any:
    """The Hessian at W times V, without forming the Hessian: (10.32), as used by (10.33)."""
    total, K = np.zeros(W.shape), range(len(W))
    for X, r, s, o in _batches(batch._replace(r=np.zeros(batch.X.shape[0], np.int32))):
        curvature = losses.evaluate(loss, _score(X, W, o), r)[3]
        U = _score(X, V)
        CU = [sum(curvature(k, j) * U[:, j] for j in K) for k in K]
        total += _accumulate(X, s[:, None] * np.column_stack(CU))
    return total


def matmul(X: KernelRows, B: Array, out: Array, grid: Grid, n_threads: int) -> None:
    """Sparse rows times a matrix: (10.6); for transposed rows, (10.33)."""
    out[:] = X.to_float64() @ B


ACTIVATIONS: dict[int, Callable[[Array], Array]] = {
    Activation.IDENTITY: np.asarray,
    Activation.SIGMOID: lambda Z: np.hstack([sigmoid(-Z), sigmoid(Z)]),
    Activation.SOFTMAX: softmax,
}


def outputs(
    X: KernelRows, activation: int, W: Array, grid: Grid, n_threads: int
) -> tuple[Array, bool]:
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"the numpy backend has no activation {int(activation)}")
    Z = np.vstack([_score(X.take(part).to_float64(), W) for part in _slices(X)])
    return ACTIVATIONS[activation](Z), bool(np.isfinite(Z).all())


def weighted_row_sum(X: KernelRows, e: Array, grid: Grid, n_threads: int) -> Array:
    """The sum of rows times errors: (10.24)."""
    return sum((X.take(p).to_float64().T @ e[p] for p in _slices(X)), np.zeros(X.shape[1]))


def class_moments(
    batch: Batch, shift: Array, group: Array, kind: int, grid: Grid, n_threads: int
) -> tuple[Array, Array, Array | None]:
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    if kind not in MomentKind._value2member_map_:
        raise ValueError(f"the numpy backend has no moment kind {int(kind)}")
    X, r = dense_rows(batch.X), batch.r
    s, R = np.broadcast_to(batch.s, len(r)), np.eye(len(shift))[r]  # (N,), (N, K)
    U = X - shift[r]
    if kind == MomentKind.COUNTS:
        U = np.where(shift[r] < X, 1.0, 0.0) + 0 * X  # NaN and infinity stay visible
    n, M = R.T @ s, R.T @ (s[:, None] * U)
    if kind in (MomentKind.SUMS, MomentKind.COUNTS):
        return n, M, None
    if kind == MomentKind.SQUARES:
        return n, M, R.T @ (s[:, None] * U**2)
    U = np.hstack([U, U**2]) if kind == MomentKind.QUARTIC else U
    members = [np.flatnonzero(group[r] == g) for g in range(group.max() + 1)]
    return n, M, np.stack([U[rows].T @ (s[rows, None] * U[rows]) for rows in members])


def quadratic_scores(
    X: KernelRows, mean: Array, A: Array, c: Array, grid: Grid, n_threads: int
) -> tuple[Array, bool]:
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    rows, Z = dense_rows(X), []
    for m, A_k, c_k in zip(mean, A, c, strict=True):
        product = (rows - m) * A_k if A_k.ndim == 1 else (rows - m) @ A_k.T
        Z.append(c_k - (product**2).sum(axis=1) / 2)
    return np.stack(Z, axis=1), bool(np.isfinite(Z).all())


def expand(X: KernelRows, grid: Grid, n_threads: int) -> Array:
    """The features of mapped rows: (10.3), (10.35)."""
    return X.to_float64()
