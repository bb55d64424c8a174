"""Sums over sparse rows, column by column, where a gradient is as large as the data.

With blocks of rows, each chunk has a gradient of its own, and most of the time goes into clearing,
merging and fetching gradients. The scores of all rows are small in comparison. So all rows are
scored, and each column sums its own entries of the gradient, which is a product with the transposed
data. (11,000 texts, 42,000 words, 20 classes: 71 ms by blocks of rows, 11 by columns, 7 in
float32.)

Weights are (d+1, K) here, so that those of one column are contiguous.
"""

from __future__ import annotations

import numpy as np

from .. import runtime
from .._data.rows import Rows
from .._data.source import MemorySource
from .._kernels.contract import Array, Grid

MIN_FLOAT32_VALUES = 2000  # stored values from which float32 products are faster
CHUNKS = 256  # so many that no run of long rows or frequent columns keeps a single thread busy
TRANSPOSE_STRIP = 512  # columns transposed at a time, in cache: 20 x 42,000 in 2 ms instead of 10


def transpose(A: Array, dtype: type = np.float64) -> Array:
    """A' in C order."""
    out: Array = np.empty(A.shape[::-1], dtype)
    strips, columns = (out, A) if A.shape[0] < A.shape[1] else (out.T, A.T)
    for lo in range(0, len(strips), TRANSPOSE_STRIP):
        strips[lo : lo + TRANSPOSE_STRIP] = columns[:, lo : lo + TRANSPOSE_STRIP].T
    return out


def _to_float32(values: Array) -> Array:
    return values.astype(np.float32, copy=False)


class ColumnSums:
    """Rows and columns of the same sparse data, for a loss with probabilities."""

    def __init__(self, source: MemorySource, multiple_outputs: bool):
        X = source.X
        self.multiple_outputs = multiple_outputs
        if not multiple_outputs:  # products alone, bound by memory: 4 bytes per value are enough
            with np.errstate(over="ignore"):
                X = X.map_values(_to_float32)
        self.rows, self.by_column = X, X.transpose()
        self.s, self.offset = source.batch.s[:, None], source.batch.o
        self.kernels, self.n_threads = source.kernels, source.n_threads
        self._last: tuple[Array, Array] | None = None  # weights, and the probabilities there

    @property
    def enough_values(self) -> bool:
        """Whether float32 products are faster."""
        return self.rows.n_values >= MIN_FLOAT32_VALUES

    def matmul(self, X: Rows, B: Array, Z: Array) -> Array:
        """Z <- X B."""
        with runtime.threads(self.n_threads, X.flops_per_output * B.shape[1]) as n:
            self.kernels.matmul(X, B, Z, Grid(16, -(-X.shape[0] // CHUNKS)), n)
        return Z

    def scores(self, V: Array) -> Array:
        """V' [1 x] of all rows, (N, K), in the type of V."""
        Z = np.empty((self.rows.shape[0], V.shape[1]), V.dtype)
        self.matmul(self.rows, V[1:], Z)
        Z += V[0]
        return Z

    def accumulate(self, E: Array, G: Array) -> Array:
        """G <- sum_t [1 x] e'   (10.33)"""
        G[0] = E.sum(axis=0)
        self.matmul(self.by_column, E, G[1:])
        return G

    def _softmax(self, W: Array) -> tuple[Array, Array, Array]:
        """Scores, log sum exp(z), and probabilities (10.29), which are cached."""
        Z = self.scores(transpose(W))
        if len(self.offset):
            Z += self.offset
        top = Z.max(axis=1, keepdims=True)
        Y = np.exp(Z - top)
        total = Y.sum(axis=1, keepdims=True)
        Y /= total
        self._last = W.copy(), Y
        return Z, np.log(total) + top, Y

    def probabilities(self, W: Array) -> Array:
        """Those of all rows at W, (N, K); of two classes, of the second."""
        if not self.multiple_outputs:
            Z = self.scores(transpose(W))
            Z = Z + self.offset if len(self.offset) else Z
            u = np.exp(-np.abs(Z))
            return np.where(Z > 0, 1, u) / (1 + u)
        if self._last is not None and np.array_equal(W, self._last[0]):
            return self._last[1]
        return self._softmax(W)[2]

    def sums(self, W: Array, r: Array) -> tuple[float, float, Array, None]:
        """Loss, errors, gradient: (10.31), (10.33)."""
        s, rows = self.s[:, 0], np.arange(len(r))
        with np.errstate(over="ignore", invalid="ignore"):  # diverged weights show in the sums
            Z, log_sum, Y = self._softmax(W)
            E = self.s * Y
            E[rows, r] -= s
            loss = float((s * (log_sum[:, 0] - Z[rows, r])).sum())
            errors = float((s * (Z.argmax(axis=1) != r)).sum())
            G = self.accumulate(E, np.empty((W.shape[1], len(W))))
        return loss, errors, transpose(G), None

    def product(self, W: Array, V: Array) -> Array:
        """The Hessian at W times V: (10.32), as used by (10.33)."""
        Y, U = self.probabilities(W), self.scores(transpose(V))
        C = self.s * Y * (U - (Y * U).sum(axis=1, keepdims=True))
        return transpose(self.accumulate(C, np.empty(V.T.shape)))
