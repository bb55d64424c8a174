"""Coordinates in which columns have mean 0 and standard deviation 1, and the way there and back.

Solvers work in these coordinates, with the penalty rescaled accordingly, so that unscaled data
converge as fast as scaled data. Shift and scale go into the weights, never into X.
"""

from __future__ import annotations

from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from .._data.rows import unit_scale
from .._data.sampling import stratified_rows
from .._kernels.contract import Array
from .data_term import DataTerm, WeightedRows
from .hessian_operators import Float32Copy, Float32CopyOperator, PlainOperator
from .penalized import Penalized
from .penalty import Penalty
from .protocol import Capability, Costs, Evaluation, HessianOperator, Precision

# Standard deviations between a column's mean and 0 beyond which shifting a Hessian to the mean
# loses more than 3 of its 16 digits.
MAX_SHIFT = 30.0
MAX_STANDARDIZED_CELLS = 4_000_000  # of rows that may be copied to save those digits
PILOT_ROWS = 2048  # rows from which the scale of a column is estimated well enough


D = TypeVar("D", bound=DataTerm)


class Units:
    """The map between weights of raw and of standardised features (x - mean) / scale."""

    def __init__(self, mean: Array, scale: Array):
        self.mean, self.scale = mean, scale
        self.factors, self.shift = np.concatenate([[1.0], scale]), mean / scale

    def to_raw(self, W: Array) -> Array:
        """The weights that give the same scores on raw features."""
        V = W / self.factors
        V[:, 0] -= V[:, 1:] @ self.mean
        return V

    def to_standard(self, V: Array) -> Array:
        """The inverse of `to_raw`."""
        W = V * self.factors
        W[:, 0] += V[:, 1:] @ self.mean
        return W

    def pull_back(self, g: Array) -> Array:
        """The derivative by standardised weights from that by raw weights, along the last axis."""
        g = g / self.factors
        g[..., 1:] -= g[..., :1] * self.shift
        return g

    def pull_back_matrix(self, H: Array) -> Array:
        """The same for a symmetric matrix, along the last two axes."""
        return self.pull_back(self.pull_back(H).swapaxes(-1, -2))

    def columns(self, chosen: Array) -> Units:
        return Units(self.mean[chosen], self.scale[chosen])

    @property
    def is_far(self) -> bool:
        """Whether shifting a Hessian to the means loses too many digits."""
        return bool((np.abs(self.mean) > MAX_SHIFT * self.scale).any())


class Standardized(DataTerm):
    """A data term as a function of the weights of standardised features."""

    def __init__(self, data: DataTerm, units: Units):
        self.data, self.units = data, units
        self.shape, self.n_rows = data.shape, data.n_rows
        self.penalty = Penalty(self.shape)

    def _like(self, data: DataTerm) -> Standardized:
        return Standardized(data, self.units)

    @property
    def convex(self) -> bool:
        return self.data.convex

    @property
    def loss_curvature_bound(self) -> float:
        return self.data.loss_curvature_bound

    @property
    def costs(self) -> Costs:
        return self.data.costs

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.data.capabilities

    @property
    def total_weight(self) -> float:
        return self.data.total_weight

    def value(self, W: Array) -> float:
        return self.data.value(self.units.to_raw(W))

    def value_and_gradient(self, W: Array) -> Evaluation:
        found = self.data.value_and_gradient(self.units.to_raw(W))
        return found._replace(gradient=self.units.pull_back(found.gradient))

    def hessian(self, W: Array) -> Evaluation:
        found = self.data.hessian(self.units.to_raw(W))
        assert found.hessian is not None
        (K, D), pull_back = self.shape, self.units.pull_back
        H = pull_back(found.hessian.reshape(K * D, K, D)).reshape(K * D, K * D)
        H = pull_back(H.T.reshape(K * D, K, D)).reshape(K * D, K * D)
        return found._replace(gradient=pull_back(found.gradient), hessian=H)

    def product(self, W: Array, V: Array) -> Array:
        """The Hessian at W times V, (K, d+1)."""
        units = self.units
        return units.pull_back(self.data.product(units.to_raw(W), units.to_raw(V)))

    @cached_property
    def _copy(self) -> Float32Copy | None:
        return self.data.float32_copy(self.units.mean, self.units.scale)

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
        penalty: Penalty | None = None,
    ) -> HessianOperator:
        penalty = self.penalty if penalty is None else penalty
        copy = self._copy if precision is Precision.FLOAT32 else None
        if copy is not None:
            return Float32CopyOperator(copy, W, penalty, previous)
        return PlainOperator(lambda V: self.product(W, V), penalty)

    def use_float64(self) -> Standardized:
        data = self.data.use_float64()
        return self if data is self.data else self._like(data)

    def sample(self, m: int, seed: int, by_norm: bool = False) -> DataTerm:
        """As `Objective.sample`; dense rows are standardised in memory where the raw ones would
        cost a Hessian its digits."""
        sparse, cells = self.costs.is_sparse, self.n_rows * len(self.units.mean)
        in_memory = self.units.is_far and not sparse
        if m >= self.n_rows:
            if not in_memory or cells > MAX_STANDARDIZED_CELLS:
                return self
            return self.data.standardized_rows(self.units.mean, self.units.scale)
        part = self.data.sample(m, seed, by_norm)
        if part is self.data:
            return self
        if in_memory:
            return part.standardized_rows(self.units.mean, self.units.scale)
        return self._like(part)

    def batch(self, rows: Array) -> Standardized:
        return self._like(self.data.batch(rows))

    def columns(self, chosen: Array) -> Standardized:
        return Standardized(self.data.columns(chosen), self.units.columns(chosen))

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        B, M = self.data.curvature_factors(self.units.to_raw(W))
        return B, self.units.pull_back_matrix(M)

    def curvature_diagonal(self) -> tuple[Array, Array]:
        B, _ = self.data.curvature_diagonal()
        mean, deviation = self.data.moments()
        units = self.units
        squares = (deviation**2 + (mean - units.mean) ** 2) / units.scale**2
        return B, self.total_weight * np.concatenate([[1.0], squares])

    @property
    def curvature_growth(self) -> float:
        return self.data.curvature_growth

    def max_abs_score(self, V: Array) -> float:
        return self.data.max_abs_score(self.units.to_raw(V))


class Problem(Generic[D]):
    """Data, coordinates and penalty of a linear model: from a data term to an objective.

    `standardize` puts the penalty on the weights of standardised features. `rescale` only changes
    the coordinates in which the solver works, not what it minimises. Sparse data are not rescaled.
    """

    def __init__(
        self,
        data: D,
        *,
        intercept: bool = True,
        reference: int | None = None,
        standardize: bool = False,
        rescale: bool = True,
    ):
        self.data, self.intercept, self.reference = data, intercept, reference
        self.standardize, self.shape, self.d = standardize, data.shape, data.shape[1] - 1
        self.units: Units | None = None
        self.mean, self.scale = np.zeros(self.d), np.ones(self.d)
        if standardize or (rescale and not data.costs.is_sparse):
            self.mean, self.scale = _column_scale(data, exact=standardize)
            if not (standardize or intercept):
                self.scale, self.mean = np.hypot(self.mean, self.scale), np.zeros(self.d)
            self.units = Units(self.mean, self.scale)

    def in_coordinates(self, data: DataTerm) -> DataTerm:
        """A data term over the same columns in the solver's coordinates."""
        return data if self.units is None else Standardized(data, self.units)

    @cached_property
    def term(self) -> DataTerm:
        """The data term in the solver's coordinates."""
        return self.in_coordinates(self.data)

    def penalty(self, l2: float) -> Penalty:
        """The L2 penalty of that strength in the solver's coordinates."""
        per_column = self._per_column(l2, 2)
        options = {"intercept": self.intercept, "reference": self.reference}
        return Penalty(self.shape, per_column, **options)  # type: ignore[arg-type]

    def penalized(self, l2: float, data: DataTerm | None = None) -> Penalized:
        """The objective with an L2 penalty of that strength; `data` replaces the data term."""
        term = self.term if data is None else self.in_coordinates(data)
        return Penalized(term, self.penalty(l2))

    def l1(self, l1: float) -> Array:
        """The L1 penalty of each column, (d,)."""
        return self._per_column(l1, 1)

    def _per_column(self, strength: float, power: int) -> Array:
        return np.full(self.d, float(strength)) / (1 if self.standardize else self.scale**power)

    def to_solver(self, V: Array) -> Array:
        """Weights of raw features, in the solver's coordinates."""
        return V.copy() if self.units is None else self.units.to_standard(V)

    def to_raw(self, W: Array) -> Array:
        """The solver's weights, for raw features."""
        return W if self.units is None else self.units.to_raw(W)


def _column_scale(data: DataTerm, exact: bool) -> tuple[Array, Array]:
    """Means and standard deviations of the columns, 1 for constant ones; from a sample unless they
    must be exact."""
    some: DataTerm | WeightedRows = data
    if not exact and data.n_rows > PILOT_ROWS:
        rng = np.random.default_rng(0)
        pilot = data.weighted_rows(stratified_rows(data.n_rows, PILOT_ROWS, rng))
        some = pilot if pilot.total_weight else data
    try:
        mean, deviation = some.moments()
    except ValueError:
        data.moments()  # names the cell by its row in all of X
        raise
    constant = np.flatnonzero(deviation == 0)
    if len(constant) and some is not data:  # a column that is rarely nonzero, perhaps
        mean[constant], deviation[constant] = data.columns(constant).moments()
    return mean, unit_scale(deviation)
