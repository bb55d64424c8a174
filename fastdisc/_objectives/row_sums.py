"""The sum of a loss over rows, as a function of the weights of the features as they are."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from .._data.outputs import scores, sweep_flops, sweep_grid
from .._data.rows import RowIndex, Rows, raise_too_large
from .._data.source import MemorySource
from .._kernels.contract import Array, Batch, Kernels
from .._kernels.enums import RowLoss
from .._kernels.losses import row_loss
from .column_sums import ColumnSums
from .data_term import DataTerm, WeightedRows
from .hessian_operators import Float32Copy, PlainOperator, TransposedOperator
from .penalty import Penalty
from .protocol import Capability, Costs, Evaluation, HessianOperator, Precision

FACTOR_SLICE = 1024  # rows whose outer products are summed at a time outside the kernels
ALL_CAPABILITIES = frozenset(Capability) - {Capability.CURVATURE_FACTORS}


class Sums(NamedTuple):
    """What a sweep returns. Sums over parts of the rows merge to the sums over all rows."""

    loss: float
    errors: float
    g: Array  # (K, d+1)
    H: Array | None = None  # (K (d+1), K (d+1))

    def merge(self, other: Sums) -> Sums:
        """The sums over the rows of both."""
        H = None if self.H is None or other.H is None else self.H + other.H
        return Sums(self.loss + other.loss, self.errors + other.errors, self.g + other.g, H)


class SweepTask(NamedTuple):
    """Loss, errors and, by order, gradient and Hessian of a loss at W."""

    loss: int
    W: Array
    order: int
    float32: bool

    def flops(self, X: Rows) -> int:
        return sweep_flops(X, len(self.W), self.order)

    def __call__(self, kernels: Kernels, batch: Batch, n_threads: int) -> Sums:
        X = cast(Rows, batch.X)
        grid = sweep_grid(X, len(self.W), self.order, float32=self.float32)
        return Sums(*kernels.sweep(batch, self.loss, self.W, self.order, grid, n_threads))


class Product(NamedTuple):
    """A Hessian product, as partial sums."""

    HV: Array

    def merge(self, other: Product) -> Product:
        return Product(self.HV + other.HV)


class ProductTask(NamedTuple):
    """The Hessian at W times V."""

    loss: int
    W: Array
    V: Array
    float32: bool

    def flops(self, X: Rows) -> int:
        return 2 * sweep_flops(X, len(self.W), 1)

    def __call__(self, kernels: Kernels, batch: Batch, n_threads: int) -> Product:
        grid = sweep_grid(cast(Rows, batch.X), len(self.W), 1, float32=self.float32)
        return Product(kernels.hessian_product(batch, self.loss, self.W, self.V, grid, n_threads))


class LastEvaluation:
    """A cache of one evaluation. Where one solution of a path ends the next begins, and only the
    penalty differs. A pass for the Hessian also serves the gradient there. Its products are in
    float64, so that sums of other features may differ from the gradient's own by rounding."""

    def __init__(self) -> None:
        self.W: Array | None = None
        self.sums: Sums | None = None

    def find(self, W: Array) -> Sums | None:
        return self.sums if self.W is not None and np.array_equal(W, self.W) else None

    def store(self, W: Array, sums: Sums) -> None:
        self.W, self.sums = W.copy(), sums


class RowSums(DataTerm):
    """An objective without penalty: the weighted sum of a loss over the rows of a source."""

    def __init__(
        self,
        source: MemorySource,
        loss: int,
        *,
        n_outputs: int | None = None,
        precision: Precision | None = None,
    ):
        self.loss, self.spec = RowLoss(loss) if loss in list(RowLoss) else loss, row_loss(loss)
        s = source.batch.s
        # Sums are of rows whose weights are at most 1, which fit in float32; `unit` scales them.
        self.unit = float(s.max()) or 1.0
        self.source = source.with_weights(s / self.unit)
        self.X, self.n_rows = source.X, source.n_rows
        if n_outputs is None:
            n_outputs = len(self.source.class_counts) if self.spec.multiple_outputs else 1
        if self.spec.multiple_outputs and len(self.source.class_counts) > n_outputs:
            found = len(self.source.class_counts)
            raise ValueError(f"a loss of {n_outputs} outputs, but {found} classes among the rows")
        self.shape = n_outputs, source.n_columns + 1
        self.penalty = Penalty(self.shape)
        lowest = Precision.FLOAT32 if self.X.float32_products else Precision.FLOAT64
        self.precision = lowest if precision is None else precision
        self.last_evaluation = LastEvaluation()

    def _like(self, source: MemorySource) -> RowSums:
        """The same loss over other rows. `source` has weights in units of `unit`."""
        weighted = source.with_weights(self.unit * source.batch.s)
        return RowSums(weighted, self.loss, n_outputs=self.shape[0], precision=self.precision)

    # --- facts --------------------------------------------------------------------------------

    @property
    def convex(self) -> bool:
        return self.spec.convex

    @property
    def loss_curvature_bound(self) -> float:
        return self.spec.curvature_bound

    @property
    def costs(self) -> Costs:
        small = self.spec.probabilities and self.X.is_small_dense(self.shape[0])
        return Costs(self.X.n_values / self.n_rows, self.X.is_sparse, small)

    @property
    def capabilities(self) -> frozenset[Capability]:
        if self.X.is_sparse:
            return ALL_CAPABILITIES
        return ALL_CAPABILITIES | {Capability.CURVATURE_FACTORS}

    @property
    def total_weight(self) -> float:
        return self.unit * self.source.total_weight

    # --- sums ---------------------------------------------------------------------------------

    def value_and_gradient(self, W: Array) -> Evaluation:
        sums = self.last_evaluation.find(W)
        if sums is None:
            sums = self._sums(W, 1)
            self.last_evaluation.store(W, sums)
        return self._evaluation(sums)

    def hessian(self, W: Array) -> Evaluation:
        sums = self._sums(W, 2)
        self.last_evaluation.store(W, sums._replace(H=None))
        return self._evaluation(sums)

    def value(self, W: Array) -> float:
        return self.unit * self._sums(W, 0).loss

    def errors(self, W: Array) -> float:
        """The weight of the misclassified rows."""
        return self.unit * self._sums(W, 0).errors

    def _evaluation(self, sums: Sums) -> Evaluation:
        H = None if sums.H is None else self.unit * sums.H
        return Evaluation(self.unit * sums.loss, self.unit * sums.errors, self.unit * sums.g, H)

    @cached_property
    def column_sums(self) -> ColumnSums | None:
        """The same data by columns, if sums are best taken that way."""
        if not (self.spec.probabilities and self.X.prefers_columns(self.shape[0])):
            return None
        return ColumnSums(self.source, self.spec.multiple_outputs)

    def _sums(self, W: Array, order: int) -> Sums:
        if order < 2 and self.spec.multiple_outputs and self.column_sums is not None:
            sums = Sums(*self.column_sums.sums(W, self.source.batch.r))
        else:
            float32 = self.precision is Precision.FLOAT32
            sums = self.source.reduce(SweepTask(self.loss, W, order, float32))
        parts = (sums.loss, sums.g if order else None, sums.H)
        if not all(part is None or np.isfinite(part).all() for part in parts):
            self.X.check_finite()
            if np.abs(W).max() <= 1:  # larger weights may have diverged: the solver handles that
                raise_too_large(self.X)
        return sums

    def product(self, W: Array, V: Array) -> Array:
        """The Hessian at W times V, (K, d+1)."""
        if self.spec.multiple_outputs and self.column_sums is not None:
            return self.unit * self.column_sums.product(W, V)
        float32 = self.precision is Precision.FLOAT32
        return self.unit * self.source.reduce(ProductTask(self.loss, W, V, float32)).HV

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
        penalty: Penalty | None = None,
    ) -> HessianOperator:
        penalty = self.penalty if penalty is None else penalty
        columns = self.column_sums if precision is Precision.FLOAT32 else None
        if columns is not None and columns.enough_values:
            operator = TransposedOperator(columns, W, self.unit, penalty)
            if operator.in_range:
                return operator
        return PlainOperator(lambda V: self.product(W, V), penalty)

    # --- other rows, columns, precision -------------------------------------------------------

    def use_float64(self) -> RowSums:
        if self.precision is Precision.FLOAT64:
            return self
        source = self.source.with_weights(self.unit * self.source.batch.s)
        precision = Precision.FLOAT64
        return RowSums(source, self.loss, n_outputs=self.shape[0], precision=precision)

    def take(self, rows: RowIndex) -> RowSums:
        """The sum over some of the rows."""
        return self._like(self.source.take(rows))

    def batch(self, rows: Array) -> RowSums:
        return self.take(rows)

    def weighted_rows(self, rows: RowIndex) -> WeightedRows:
        part = self.take(rows)
        return WeightedRows(part.X, part.source.batch.s)

    def sample(self, m: int, seed: int, by_norm: bool = False) -> RowSums:
        drawn = self.source.draw(m, seed, by_norm)
        return self if drawn is self.source else self._like(drawn)

    def columns(self, chosen: Array) -> RowSums:
        return self._like(self.source.columns(chosen))

    def standardized_rows(self, mean: Array, scale: Array) -> RowSums:
        batch = self.source.batch._replace(X=self.X.standardized(mean, scale))
        return self._like(self.source.like(batch))

    def moments(self) -> tuple[Array, Array]:
        return self.source.moments()

    def float32_copy(self, mean: Array, scale: Array) -> Float32Copy | None:
        if not self.costs.is_small_dense:
            return None
        x = self.X.standardized(mean, scale).dense()
        return Float32Copy(x, self.source.batch.s, self.source.batch.o, self.spec, self.unit)

    # --- curvature ----------------------------------------------------------------------------

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        """Sums of the class covariances (10.32), B, and the mean of [1 x][1 x]' weighted by their
        size, M."""
        K, D = max(2, len(W)), W.shape[1]
        s = self.unit * np.broadcast_to(self.source.batch.s, self.n_rows)
        B, M, total = np.zeros((K, K)), np.zeros((D, D)), 0.0
        for begin in range(0, self.n_rows, FACTOR_SLICE):
            rows = slice(begin, begin + FACTOR_SLICE)
            x = self.X.take(rows).dense()
            x = np.column_stack([np.ones(len(x)), x])
            Z = x @ W.T if len(W) > 1 else x @ np.vstack([W, -W]).T / 2
            Y = _softmax(Z)
            c = s[rows] * (1 - (Y**2).sum(axis=1))
            B += np.diag(s[rows] @ Y) - (s[rows, None] * Y).T @ Y
            M += x.T @ (c[:, None] * x)
            total += c.sum()
        return B if len(W) > 1 else B[:1, :1], M / max(total, np.finfo(float).tiny)

    def curvature_diagonal(self) -> tuple[Array, Array]:
        squares = self.unit * self.X.column_squares(self.source.batch.s)
        return self.class_covariance(), np.concatenate([[self.total_weight], squares])

    def class_covariance(self) -> Array:
        """B (K, K) at zero weights; the bound of the loss for a single score."""
        if self.shape[0] == 1:
            return np.array([[self.spec.curvature_bound]])
        p = np.zeros(self.shape[0])  # the last classes may have no rows
        fractions = self.source.class_fractions
        p[: len(fractions)] = fractions
        return np.diag(p) - np.outer(p, p)

    @property
    def curvature_growth(self) -> float:
        """The largest curvature anywhere, relative to that at zero weights."""
        return self.spec.curvature_growth(self.shape[0])

    def max_abs_score(self, V: Array) -> float:
        Z = scores(self.source.kernels, self.X, V, n_threads=self.source.n_threads)
        return float(np.abs(Z).max())


def _softmax(Z: Array) -> Array:
    """y_k = exp(z_k) / sum_j exp(z_j)   (10.29)"""
    U = np.exp(Z - Z.max(axis=1, keepdims=True))
    return U / U.sum(axis=1, keepdims=True)
