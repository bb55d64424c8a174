"""Compressed sparse rows: float64 or float32 values, 32- or 64-bit indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

from .._kernels.contract import Array
from .._kernels.enums import MomentKind
from .dense import DenseRows
from .rows import RowIndex, raise_not_finite, weighted_deviation

FLOPS_PER_VALUE = 4  # a nonzero costs about as much as four dense cells
# Sums by columns pay while the scores of all rows fit in memory, and while a column has so few
# nonzeros that a chunk's gradient is larger than its rows.
MAX_SCORE_CELLS = 8_000_000
MAX_VALUES_PER_COLUMN = 64
# A product in the dense tiles of `class_moments` takes a tenth of the time of one of stored values.
MIN_DENSE_SCATTER_SHARE = 0.2
MAX_DENSE_SLICE_CELLS, MIN_DENSE_SLICE_ROWS = 1 << 21, 16


class CSRRows:
    """Rows of a CSR matrix. A cell that is stored twice counts as the sum."""

    layout = "csr"
    lazy = False
    is_sparse = True
    float32_products = False

    def __init__(self, data: Array, indices: Array, indptr: Array, n_columns: int):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.n_columns = n_columns
        self.shape = len(indptr) - 1, n_columns

    @classmethod
    def from_scipy(cls, A: csr_array, index_dtype: np.dtype | type) -> CSRRows:
        """The arrays of a SciPy matrix, with indices of the given type."""
        indices = A.indices.astype(index_dtype, copy=False)
        return cls(A.data, indices, A.indptr.astype(index_dtype, copy=False), A.shape[1])

    def _scipy(self) -> csr_array:
        return csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def _like(self, A: csr_array) -> CSRRows:
        return CSRRows.from_scipy(A, self.indices.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def n_values(self) -> int:
        return len(self.data)

    @property
    def stored(self) -> int:
        return len(self.data)

    @property
    def bytes_per_row(self) -> int:
        return 12 * len(self.data) // max(1, self.shape[0])

    @property
    def flops_per_output(self) -> int:
        return FLOPS_PER_VALUE * len(self.data)

    def is_small_dense(self, n_outputs: int) -> bool:
        return False

    def prefers_columns(self, n_outputs: int) -> bool:
        small = self.shape[0] * n_outputs <= MAX_SCORE_CELLS
        return small and len(self.data) < MAX_VALUES_PER_COLUMN * self.n_columns

    def prefers_dense_moments(self, kind: MomentKind) -> bool:
        if kind == MomentKind.SCATTER:
            return len(self.data) > MIN_DENSE_SCATTER_SHARE * self.shape[0] * self.n_columns
        return kind == MomentKind.QUARTIC

    def take(self, rows: RowIndex) -> CSRRows:
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(self.shape[0])
            return self._window(begin, end)
        if len(rows) and (np.diff(rows) == 1).all():
            return self._window(int(rows[0]), int(rows[-1]) + 1)
        return self._like(self._scipy()[rows])

    def _window(self, begin: int, end: int) -> CSRRows:
        first, last = self.indptr[begin], self.indptr[end]
        indptr = self.indptr[begin : end + 1] - first
        return CSRRows(self.data[first:last], self.indices[first:last], indptr, self.n_columns)

    def columns(self, chosen: Array) -> CSRRows:
        return self._like(self._scipy()[:, chosen])

    def gather(self, order: Array, n_threads: int) -> CSRRows:
        return self._like(self._scipy()[order])

    def transpose(self) -> CSRRows:
        A = self._scipy().T.tocsr()
        return CSRRows(A.data, A.indices, A.indptr, self.shape[0])

    def map_values(self, function: Callable[[Array], Array]) -> CSRRows:
        return self._with_data(function(self.data))

    def _with_data(self, data: Array) -> CSRRows:
        """The same cells with other values."""
        return CSRRows(data, self.indices, self.indptr, self.n_columns)

    def standardized(self, mean: Array, scale: Array) -> CSRRows:
        return self._with_data(self.data / scale[self.indices])

    def canonical(self) -> CSRRows:
        A = self._scipy()
        if A.has_canonical_format:
            return self
        A = A.copy()
        A.sum_duplicates()
        return self._like(A)

    def to_float64(self) -> csr_array:
        return self._scipy().astype(np.float64)

    def dense(self) -> Array:
        out = np.zeros(self.shape)
        np.add.at(out, (self._row_of_each(), self.indices), self.data)
        return out

    def dense_slices(self) -> Iterator[tuple[slice, DenseRows]]:
        n, d = self.shape
        step = max(MIN_DENSE_SLICE_ROWS, MAX_DENSE_SLICE_CELLS // max(1, d))
        for lo in range(0, n, step):
            rows = slice(lo, min(lo + step, n))
            yield rows, DenseRows(self.take(rows)._scipy().toarray())

    def above(self, threshold: float) -> Iterator[DenseRows | CSRRows]:
        self.check_finite()
        if threshold < 0:  # most cells are above it
            for _, part in self.dense_slices():
                yield DenseRows(part.values > threshold)
        else:
            rows = self.canonical()
            yield rows._with_data((rows.data > threshold).astype(np.float64))

    def has_negative(self) -> bool:
        if not len(self.data) or self.data.min() >= 0:
            return False
        return bool(self.canonical().data.min() < 0)

    def _row_of_each(self) -> Array:
        """The row of each stored value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def moments(self, s: Array) -> tuple[Array, Array]:
        (n, d), X = self.shape, self.canonical()
        total = float(n * s[0] if len(s) == 1 else s.sum())
        weight = np.full(len(X.data), s[0]) if len(s) == 1 else s[X._row_of_each()]
        mean = np.bincount(X.indices, weight * X.data, d) / total
        absent = total - np.bincount(X.indices, weight, d)
        absent[absent < 1e-12 * total] = 0  # rounding
        apart = X.data - mean[X.indices]
        square = np.bincount(X.indices, weight * apart**2, d) + absent * mean**2
        return mean, weighted_deviation(mean, square, total)

    def column_squares(self, s: Array) -> Array:
        X = self.canonical()
        weight = s[0] if len(s) == 1 else s[X._row_of_each()]
        squares = np.square(X.data, dtype=np.float64)
        return np.bincount(X.indices, weight * squares, self.n_columns)

    def row_squares(self, mean: Array | float = 0.0, scale: Array | float = 1.0) -> Array:
        X, scale = self.canonical(), np.broadcast_to(scale, self.n_columns)
        squares = (X.data / scale[X.indices]) ** 2
        return np.bincount(X._row_of_each(), squares, self.shape[0])

    def check_finite(self) -> None:
        bad = ~np.isfinite(self.data)
        if bad.any():
            place = int(bad.argmax())
            row = int(np.searchsorted(self.indptr, place, side="right")) - 1
            raise_not_finite(self.data[place], row, int(self.indices[place]))
