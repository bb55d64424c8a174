"""The contract of a row layout: everything that depends on how features are stored.

A layout is one class here (`dense.py`, `csr.py`, `mapped.py`), one file in `_kernels/_cython` and
one in `_kernels/_numba`. No other module asks which layout it has been given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol, Self

import numpy as np

from .._kernels.contract import Array
from .._kernels.enums import MomentKind

MAX_SLICE_CELLS = 1 << 18  # cells that are worked on at a time outside the kernels
RowIndex = slice | Array  # of step 1; or row numbers, not a mask


class Rows(Protocol):
    """Features of N rows. Rows never change; the methods return new ones.

    Attributes: `layout`, the backends' name for it; `shape` (N, d); `dtype`; `lazy`, whether
    `to_float64` computes features rather than converts them.
    """

    layout: str
    lazy: bool

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype: ...

    # --- facts that costs are estimated from --------------------------------------------------

    @property
    def n_values(self) -> int:
        """Values that are stored, or computed, for all rows."""
        ...

    @property
    def bytes_per_row(self) -> int:
        """Bytes that are read for a row, on average."""
        ...

    @property
    def flops_per_output(self) -> int:
        """Operations that the scores of all rows take for one output, relative to dense cells."""
        ...

    @property
    def stored(self) -> int | None:
        """Stored values of a sparse layout; None where every cell is read."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether only nonzero cells are read, so that centring would be expensive."""
        ...

    @property
    def float32_products(self) -> bool:
        """Whether kernels may take products in float32 without losing digits of the features."""
        ...

    def is_small_dense(self, n_outputs: int) -> bool:
        """Whether a dense float32 copy is the fastest way to Hessian products."""
        ...

    def prefers_columns(self, n_outputs: int) -> bool:
        """Whether gradients are best summed column by column, by `transpose`."""
        ...

    def prefers_dense_moments(self, kind: MomentKind) -> bool:
        """Whether class moments of that kind are best, or can only be, summed by `dense_slices`."""
        ...

    # --- rows and columns ---------------------------------------------------------------------

    def take(self, rows: RowIndex) -> Self:
        """Some of the rows; a slice is not copied where the layout allows it."""
        ...

    def columns(self, chosen: Array) -> Self:
        """Some of the columns, copied."""
        ...

    def gather(self, order: Array, n_threads: int) -> Self:
        """All rows in another order, copied by several threads."""
        ...

    def transpose(self) -> Any:
        """The transposed rows; only for layouts that may prefer columns."""
        ...

    def map_values(self, function: Callable[[Array], Array]) -> Any:
        """The same cells, the function applied to the stored values; only for layouts that may
        prefer columns."""
        ...

    def standardized(self, mean: Array, scale: Array) -> Self:
        """(x - mean) / scale; a sparse layout divides only."""
        ...

    def canonical(self) -> Self:
        """The same rows with every cell stored at most once."""
        ...

    # --- conversion and sums ------------------------------------------------------------------

    def to_float64(self) -> Any:
        """(N, d): a float64 array, or a SciPy matrix, that multiplies."""
        ...

    def dense(self) -> Array:
        """(N, d) float64 in C order."""
        ...

    def dense_slices(self) -> Iterator[tuple[slice, Any]]:
        """All rows as dense rows, a slice at a time."""
        ...

    def above(self, threshold: float) -> Iterator[Any]:
        """All rows with 1 for cells above the threshold and 0 for the others, a slice at a time;
        ValueError where a cell is not finite."""
        ...

    def moments(self, s: Array) -> tuple[Array, Array]:
        """Weighted mean and standard deviation of each column; exactly 0 for a constant column."""
        ...

    def column_squares(self, s: Array) -> Array:
        """sum_t s x_j^2 of each column, (d,)."""
        ...

    def row_squares(self, mean: Array | float = 0.0, scale: Array | float = 1.0) -> Array:
        """||(x - mean) / scale||^2 of each row, (N,); a sparse layout ignores the mean."""
        ...

    # --- checks -------------------------------------------------------------------------------

    def has_negative(self) -> bool:
        """Whether a cell is negative."""
        ...

    def check_finite(self) -> None:
        """ValueError that names the first NaN or infinity.

        Called when a sum is not finite, so that clean data do not pay for the check.
        """
        ...


def slices(shape: tuple[int, int], cells: int = MAX_SLICE_CELLS) -> list[slice]:
    """All rows, in slices of about that many cells."""
    n, d = shape
    step = max(1, cells // max(1, d))
    return [slice(lo, min(lo + step, n)) for lo in range(0, n, step)]


def raise_not_finite(value: float, row: int, column: int) -> NoReturn:
    """The error for a cell that is NaN or infinite."""
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {what}, first in row {row}, column {column}. "
        "Drop such rows or impute the values."
    )


def raise_too_large(X: Rows) -> NoReturn:
    """The error for finite cells whose sums are not finite."""
    kind = "float64" if X.dtype == np.float64 else "float32"
    raise ValueError(f"Input X has values too large for sums in {kind}: scale the columns")


def finite_moments(X: Rows, s: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; ValueError where they are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.moments(s)
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
        X.check_finite()
        raise_too_large(X)
    return mean, deviation


def unit_scale(deviation: Array) -> Array:
    """Standard deviations to divide by: 1 for constant columns."""
    return np.where(deviation > 0, deviation, 1.0)


def weighted_deviation(mean: Array, square: Array, total: float) -> Array:
    """Standard deviations from sums of squares about the mean; 0 where rounding is all there is."""
    deviation = np.sqrt(square / total)
    return np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0)
