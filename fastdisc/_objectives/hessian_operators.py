"""Hessians at fixed weights, for many products: plain, by columns, and on a float32 copy.

Conjugate gradients need few digits of a Hessian that stays the same for tens of products, so the
probabilities are stored and products are taken in float32 where that is faster. Gradients, and with
them the certificate, stay in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import lapack

from .._kernels.contract import Array
from .._kernels.losses import RowLossSpec
from .column_sums import ColumnSums, transpose
from .penalty import Penalty
from .protocol import HessianOperator, Precision

MIN_FLOAT32_RESIDUAL = 1e-3  # relative; below it float32 products limit conjugate gradients
TINY = 1e-30  # Hessian diagonals below it, or above its inverse, are out of range for float32
MAX_BLOCK_COLUMNS = 200  # up to which inverting one Hessian block per class pays


class PlainOperator:
    """Products by the kernels, with whatever precision the objective has."""

    precision = Precision.FLOAT64
    min_residual = 0.0
    preconditioner: Callable[[Array], Array] | None = None

    def __init__(self, product: Callable[[Array], Array], penalty: Penalty):
        self._product, self.penalty = product, penalty

    def encode(self, gradient: Array, norm: float) -> Array:
        return gradient

    def decode(self, direction: Array, norm: float) -> Array:
        return direction

    def product(self, direction: Array) -> Array:
        HV = self._product(direction)
        self.penalty.add_product(direction, HV)
        return HV


class TransposedOperator:
    """Sparse data by columns in float32; directions are (d+1, K). Preconditioned by the diagonal.

    Rows have weights up to 1, in units of `unit`, and gradients are scaled to norm 1: numbers that
    float32 can represent.
    """

    precision = Precision.FLOAT32
    min_residual = MIN_FLOAT32_RESIDUAL

    def __init__(self, columns: ColumnSums, W: Array, unit: float, penalty: Penalty):
        self.columns, self.unit = columns, unit
        self.penalty = penalty.in_float32(unit, transposed=True)
        self.Y = columns.probabilities(W).astype(np.float32)
        self.sY = columns.s.astype(np.float32) * self.Y
        self.HV, self.buffer = np.empty((2, *W.T.shape), np.float32)
        diagonal = self._diagonal()
        self.in_range = bool(diagonal.min() > TINY and diagonal.max() < 1 / TINY)
        self.inverse = np.divide(1, diagonal, out=diagonal)

    def _diagonal(self) -> Array:
        """sum_t s y (1 - y) [1 x^2], with the penalty; 1 where that is 0."""
        columns, C = self.columns, self.sY * (1 - self.Y)
        D = np.empty_like(self.HV)
        D[0] = C.sum(axis=0)
        with np.errstate(over="ignore"):  # which `in_range` tells
            squares = columns.by_column.map_values(partial(np.square, dtype=np.float32))
        columns.matmul(squares, C, D[1:])
        D += self.penalty.diagonal
        D[D <= 0] = 1
        return D

    def encode(self, gradient: Array, norm: float) -> Array:
        return transpose(gradient / norm, np.float32)

    def decode(self, direction: Array, norm: float) -> Array:
        return transpose(direction) * (norm / self.unit)

    def preconditioner(self, R: Array) -> Array:
        return np.multiply(R, self.inverse, out=self.buffer)

    def product(self, direction: Array) -> Array:
        V, HV = direction, self.HV
        U = self.columns.scores(V)
        U -= np.einsum("ik,ik->i", self.Y, U)[:, None]  # one score too: its curvature is y (1 - y)
        U *= self.sY
        self.columns.accumulate(U, HV)
        self.penalty.add_product(V, HV, self.buffer)
        return HV


class Float32Copy:
    """A small dense copy of standardised rows [1 x] in float32.

    A thousand rows pass through BLAS in less time than it takes to wake a thread. (Digits,
    1,797 x 64, 10 classes: a product takes 0.15 ms instead of 0.4.)
    """

    def __init__(self, x: Array, s: Array, offset: Array, spec: RowLossSpec, unit: float):
        self.X = np.column_stack([np.ones(len(x)), x]).astype(np.float32)  # (N, d+1)
        self.s, self.offset, self.spec = s.astype(np.float32), offset.T, spec
        self.unit = unit  # of the weights s

    def outputs(self, W: Array) -> Array:
        """y_k of all rows, (K, N): (10.15), (10.29)."""
        Z = W.astype(np.float32) @ self.X.T
        if self.offset.shape[1]:
            Z += self.offset
        if not self.spec.multiple_outputs:
            return 1 / (1 + np.exp(-Z))
        Y = np.exp(Z - Z.max(axis=0))
        Y /= Y.sum(axis=0)
        return Y


class Float32CopyOperator:
    """Products on a float32 copy of the rows; directions are (K, d+1).

    Preconditioned by the inverse of one block per class if columns are few, else by the diagonal.
    The inverse of the previous step's operator is used again unless that took so many products that
    a better one pays: a block costs as much as d / 4 products.
    """

    precision = Precision.FLOAT32
    min_residual = MIN_FLOAT32_RESIDUAL

    def __init__(
        self,
        copy: Float32Copy,
        W: Array,
        penalty: Penalty,
        previous: HessianOperator | None,
    ):
        self.copy, self.unit = copy, copy.unit
        self.penalty = penalty.in_float32(copy.unit)
        self.blocks = W.shape[1] <= MAX_BLOCK_COLUMNS
        self.Y = copy.outputs(W)
        self.sY = copy.s * self.Y
        self.products, self.inverse = 0, np.empty(0)
        if isinstance(previous, Float32CopyOperator) and previous.reusable(self.penalty.diagonal):
            self.inverse = previous.inverse
        else:
            self.inverse = self._inverses(penalty.fixed)

    def reusable(self, diagonal: Array) -> bool:
        """Whether the inverse is good enough for the next operator, with that penalty."""
        few = self.products <= self.copy.X.shape[1] // 8
        return few and np.array_equal(self.penalty.diagonal, diagonal)

    def _inverses(self, fixed: Array) -> Array:
        """Of the blocks H_kk = sum_t s y_k (1 - y_k) [1 x][1 x]' + penalty, (K, d+1, d+1), or of
        their diagonals, (K, d+1)."""
        X, C = self.copy.X, self.sY * (1 - self.Y)
        D = C @ X**2 + self.penalty.diagonal
        D[D <= 0] = 1
        if not self.blocks:
            return np.where(fixed, 0, 1 / D)
        # At zero weights one block serves all classes.
        same = not np.ptp(C, axis=0).any() and (fixed[0] == fixed).all()
        found = []
        for k in range(1 if same else len(C)):
            H = X.T @ (C[k][:, None] * X) + np.diag(self.penalty.diagonal)
            found.append(_inverse(H, D[k], fixed[k]))
        return np.stack(found * (len(C) // len(found)))

    def encode(self, gradient: Array, norm: float) -> Array:
        return (gradient / norm).astype(np.float32)

    def decode(self, direction: Array, norm: float) -> Array:
        return direction * (norm / self.unit)

    def preconditioner(self, R: Array) -> Array:
        if self.blocks:
            return np.matmul(self.inverse, R[:, :, None])[:, :, 0]
        return self.inverse * R

    def product(self, direction: Array) -> Array:
        """The Hessian times a direction: (10.32), as used by (10.33)."""
        self.products += 1
        U = direction @ self.copy.X.T  # (K, N)
        U -= np.einsum("kt,kt->t", self.Y, U)  # one score too: its curvature is y (1 - y)
        U *= self.sY
        HV = U @ self.copy.X
        self.penalty.add_product(direction, HV)
        return HV


def _inverse(H: Array, diagonal: Array, fixed: Array) -> Array:
    """The inverse of H without fixed weights; of its diagonal alone if H, scaled to a diagonal of
    1, is singular in float32."""
    scale = np.where(fixed, 0, 1 / np.sqrt(diagonal))
    H = H * scale[:, None] * scale
    H.flat[:: len(H) + 1] = 1 + 1e-5
    factor, failed = lapack.spotrf(H, lower=True)
    lower, failed = lapack.spotri(factor, lower=True) if not failed else (factor, failed)
    full = np.eye(len(H), dtype=np.float32)
    if not failed:
        full = np.tril(lower) + np.tril(lower, -1).T
    return full * scale[:, None] * scale
