"""Dense rows: a NumPy array of any supported type and any strides, read in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from .._kernels.contract import Array
from .._kernels.enums import MomentKind
from .rows import RowIndex, raise_not_finite, slices, weighted_deviation

# A float32 copy pays from 2,000 cells on, and up to 1,000,000 (4 MB, which stay in cache); four
# times as many if there are fewer rows than weights. (2,000 x 1,000, 4 classes: 0.2 s instead of
# 1.4; but 20,000 x 200, 10 classes: 0.28 s instead of 0.17.)
MIN_COPY_CELLS, MAX_COPY_CELLS = 2000, 1_000_000
GATHER_ROWS = 1 << 16  # rows that one task of `gather` copies
MAX_COMPARED_CELLS = 1 << 22  # cells that are compared with a threshold at a time


class ArrayRows:
    """The sums that dense and mapped rows share: both yield float64 slices by `block`."""

    shape: tuple[int, int]
    is_sparse = False
    stored = None

    def block(self, rows: slice) -> Array:
        """Some rows as an array."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype:
        raise NotImplementedError

    @property
    def n_values(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def flops_per_output(self) -> int:
        return self.shape[0] * self.shape[1]

    def prefers_columns(self, n_outputs: int) -> bool:
        return False

    def prefers_dense_moments(self, kind: MomentKind) -> bool:
        return False

    def dense_slices(self) -> Iterator[tuple[slice, DenseRows]]:
        for rows in slices(self.shape):
            yield rows, DenseRows(self.block(rows))

    def above(self, threshold: float) -> Iterator[DenseRows]:
        for rows in slices(self.shape, MAX_COMPARED_CELLS):
            x = self.block(rows)
            with np.errstate(over="ignore", invalid="ignore"):
                suspect = x.dtype.kind == "f" and not np.isfinite(x.sum())
            if suspect:
                self.check_finite()
            yield DenseRows(x > threshold)

    def has_negative(self) -> bool:
        if self.dtype.kind in "ub" or not self.n_values:
            return False
        return bool(np.min([self.block(rows).min() for rows in slices(self.shape)]) < 0)

    def check_finite(self) -> None:
        raise NotImplementedError

    def transpose(self) -> Self:
        raise NotImplementedError("only sparse rows are summed by columns")

    def map_values(self, function: Callable[[Array], Array]) -> Self:
        raise NotImplementedError("only sparse rows are summed by columns")

    def canonical(self) -> Self:
        return self

    def moments(self, s: Array) -> tuple[Array, Array]:
        n, d = self.shape
        equal = len(s) == 1
        total = float(n * s[0] if equal else s.sum())
        mean, square = np.zeros(d), np.zeros(d)
        for rows in slices(self.shape):
            x = self.block(rows)
            mean += (s[0] * x.sum(axis=0, dtype=np.float64)) if equal else s[rows] @ x
        mean /= total
        for rows in slices(self.shape):
            u = self.block(rows) - mean
            square += s[0] * np.einsum("ij,ij->j", u, u) if equal else s[rows] @ u**2
        return mean, weighted_deviation(mean, square, total)

    def column_squares(self, s: Array) -> Array:
        total = np.zeros(self.shape[1])
        for rows in slices(self.shape):
            x = self.block(rows) * 1.0  # integers would overflow
            total += s[0] * np.einsum("ij,ij->j", x, x) if len(s) == 1 else s[rows] @ x**2
        return total

    def row_squares(self, mean: Array | float = 0.0, scale: Array | float = 1.0) -> Array:
        result = np.zeros(self.shape[0])
        for rows in slices(self.shape):
            x = (self.block(rows) - mean) / scale
            result[rows] = np.einsum("ij,ij->i", x, x)
        return result


class DenseRows(ArrayRows):
    """Rows of a two-dimensional array."""

    layout = "dense"
    lazy = False

    def __init__(self, values: Array):
        self.values = values
        self.shape = values.shape

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def bytes_per_row(self) -> int:
        return self.shape[1] * self.values.itemsize

    @property
    def float32_products(self) -> bool:
        return self.values.dtype != np.float64

    def is_small_dense(self, n_outputs: int) -> bool:
        fewer_rows = self.shape[0] < n_outputs * self.shape[1]
        limit = 4 * MAX_COPY_CELLS if fewer_rows else MAX_COPY_CELLS
        return MIN_COPY_CELLS <= self.values.size <= limit

    def block(self, rows: slice) -> Array:
        return self.values[rows]

    def above(self, threshold: float) -> Iterator[DenseRows]:
        if self.values.dtype == bool and 0 <= threshold < 1:
            yield self
        else:
            yield from super().above(threshold)

    def take(self, rows: RowIndex) -> DenseRows:
        if isinstance(rows, slice):
            return DenseRows(self.values[rows])
        return DenseRows(np.ascontiguousarray(self.values.take(rows, axis=0)))

    def columns(self, chosen: Array) -> DenseRows:
        return DenseRows(np.ascontiguousarray(self.values[:, chosen]))

    def gather(self, order: Array, n_threads: int) -> DenseRows:
        """All rows in another order; of 1M x 28 on two threads in 41 ms instead of 70."""
        result = np.empty(self.shape, self.values.dtype)
        parts = [slice(lo, lo + GATHER_ROWS) for lo in range(0, len(order), GATHER_ROWS)]

        def copy(part: slice) -> None:
            np.take(self.values, order[part], axis=0, out=result[part], mode="clip")

        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(copy, parts))
        return DenseRows(result)

    def standardized(self, mean: Array, scale: Array) -> DenseRows:
        values = self.values - mean
        values /= scale
        return DenseRows(values)

    def to_float64(self) -> Array:
        return np.asarray(self.values, dtype=np.float64)

    def dense(self) -> Array:
        return np.ascontiguousarray(self.values, dtype=np.float64)

    def check_finite(self) -> None:
        if self.values.dtype.kind != "f":
            return
        for rows in slices(self.shape, 1 << 20):
            bad = ~np.isfinite(self.values[rows])
            if bad.any():
                row, column = divmod(int(bad.argmax()), self.shape[1])
                row += rows.start
                raise_not_finite(self.values[row, column], row, column)
