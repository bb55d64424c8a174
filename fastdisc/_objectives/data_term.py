"""The base of data terms: sums of a loss, without a penalty, as a function of the weights.

`RowSums` sums over rows, `QuerySums` and `PairSums` over pairs of rows; `Standardized` is one of
these in other coordinates. `Penalized` makes an objective of any of them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._data.rows import RowIndex, Rows, finite_moments
from .._kernels.contract import Array
from .bounds import curvature_bound
from .hessian_operators import Float32Copy
from .penalty import Penalty
from .protocol import Capability, Costs, Evaluation, HessianOperator, Precision


class WeightedRows:
    """Rows and their weights, for the moments of columns."""

    def __init__(self, X: Rows, s: Array, centred: bool = False):
        self.X, self.s, self.centred = X, s, centred

    @property
    def total_weight(self) -> float:
        return float(self.s.sum())

    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each column; the mean is 0 if it cancels in the loss."""
        mean, deviation = finite_moments(self.X, self.s)
        return np.zeros_like(mean) if self.centred else mean, deviation


class DataTerm:
    """The members of `protocol.Objective` mean the same here, without a penalty. Capabilities that
    a data term does not declare raise NotImplementedError."""

    shape: tuple[int, int]
    n_rows: int

    # --- facts --------------------------------------------------------------------------------

    @property
    def total_weight(self) -> float:
        raise NotImplementedError

    @property
    def convex(self) -> bool:
        raise NotImplementedError

    @property
    def loss_curvature_bound(self) -> float:
        raise NotImplementedError

    @property
    def curvature_growth(self) -> float:
        """The largest curvature anywhere, relative to that at zero weights."""
        raise NotImplementedError

    @property
    def costs(self) -> Costs:
        raise NotImplementedError

    @property
    def capabilities(self) -> frozenset[Capability]:
        raise NotImplementedError

    def moments(self) -> tuple[Array, Array]:
        """The mean, 0 if it cancels in the loss, and the standard deviation of each column."""
        raise NotImplementedError

    def weighted_rows(self, rows: RowIndex) -> WeightedRows:
        """Some of the rows, from which the scale of the columns is estimated."""
        raise NotImplementedError

    # --- sums ---------------------------------------------------------------------------------

    def value(self, W: Array) -> float:
        """The value alone."""
        raise NotImplementedError

    def value_and_gradient(self, W: Array) -> Evaluation:
        raise NotImplementedError

    def hessian(self, W: Array) -> Evaluation:
        raise NotImplementedError

    def product(self, W: Array, V: Array) -> Array:
        """The Hessian at W times V, (K, d+1)."""
        raise NotImplementedError

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
        penalty: Penalty | None = None,
    ) -> HessianOperator:
        raise NotImplementedError

    # --- other rows, columns, precision -------------------------------------------------------

    def use_float64(self) -> DataTerm:
        raise NotImplementedError

    def sample(self, m: int, seed: int, by_norm: bool = False) -> DataTerm:
        raise NotImplementedError

    def batch(self, rows: Array) -> Self:
        raise NotImplementedError

    def columns(self, chosen: Array) -> Self:
        raise NotImplementedError

    def standardized_rows(self, mean: Array, scale: Array) -> Any:
        """The same sum over a standardised copy of the rows."""
        raise NotImplementedError

    def float32_copy(self, mean: Array, scale: Array) -> Float32Copy | None:
        """A float32 copy of the standardised rows; None if it would not make products faster."""
        return None

    # --- curvature ----------------------------------------------------------------------------

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def curvature_diagonal(self) -> tuple[Array, Array]:
        raise NotImplementedError

    def curvature_bound(self) -> float:
        return curvature_bound(self, self.curvature_growth)

    def max_abs_score(self, V: Array) -> float:
        raise NotImplementedError
