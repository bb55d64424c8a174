"""What the objectives of rankers share: scores of all rows, and sums of rows times errors.

A ranker's loss depends on the differences of scores. Weights are (1, d+1) as everywhere; the
intercept cancels in every pair and stays 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import runtime
from .._data.outputs import sweep_flops, sweep_grid
from .._data.rows import RowIndex, Rows, raise_too_large
from .._kernels.contract import Array, PairRule
from .._kernels.enums import Activation
from .._kernels.losses import PAIR_LOSSES
from .data_term import DataTerm, WeightedRows
from .hessian_operators import PlainOperator
from .penalty import Penalty
from .protocol import Capability, Costs, Evaluation, HessianOperator, Precision

EMPTY = np.empty(0)
MAX_HESSIAN_FLOPS = 200_000_000  # pairs times columns: beyond, the Hessian is that of a sample


PairTotals = tuple[float, float, Array]  # loss, weight of the active pairs, gradient


class LastPass:
    """A cache of the scores and the sums at the last weights. It never changes a result."""

    def __init__(self) -> None:
        self.W: Array | None = None
        self.z: Array | None = None
        self.sums: PairTotals | None = None

    def _is_at(self, W: Array) -> bool:
        return self.W is not None and np.array_equal(W, self.W)

    def find_scores(self, W: Array) -> Array | None:
        return self.z if self._is_at(W) else None

    def find_sums(self, W: Array) -> PairTotals | None:
        return self.sums if self._is_at(W) else None

    def store_scores(self, W: Array, z: Array) -> None:
        self.W, self.z, self.sums = W.copy(), z, None

    def store_sums(self, W: Array, sums: PairTotals) -> None:
        """The scores at W have been stored."""
        if self._is_at(W):
            self.sums = sums


class ScoreSums(DataTerm):
    """An objective without penalty over pairs of rows. Subclasses say which pairs."""

    convex = True
    curvature_growth = 1.0
    capabilities = frozenset(
        {
            Capability.HESSIAN,
            Capability.HESSIAN_OPERATOR,
            Capability.SAMPLE,
            Capability.COLUMNS,
            Capability.CURVATURE_DIAGONAL,
        }
    )

    def __init__(
        self,
        X: Rows,
        rule: PairRule,
        *,
        offset: Array = EMPTY,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.X, self.rule, self.offset = X, rule, offset
        self.backend, self.n_threads, self.kernels = backend, n_threads, runtime.kernels(backend)
        self.n_rows, self.shape = X.shape[0], (1, X.shape[1] + 1)
        self.penalty = Penalty(self.shape)
        self.last_pass = LastPass()
        if not X.is_sparse:
            self.capabilities = self.capabilities | {Capability.CURVATURE_FACTORS}

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that copies share."""
        offset, backend, n_threads = self.offset, self.backend, self.n_threads
        return {"offset": offset, "backend": backend, "n_threads": n_threads}

    # --- what subclasses provide --------------------------------------------------------------

    total_weight: float

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        raise NotImplementedError

    def pair_loss(self, z: Array) -> tuple[float, float, Array]:
        """Loss, weight of the active pairs, and the derivative by the scores."""
        raise NotImplementedError

    def curvature_product(self, z: Array, u: Array) -> Array:
        """The second derivative by the scores, times u."""
        raise NotImplementedError

    def feature_hessian(self, W: Array) -> Array:
        """The Hessian without the intercept, (d, d)."""
        raise NotImplementedError

    def row_weights(self) -> Array:
        """Weights of rows by which columns are scaled, (N,) or (1,)."""
        raise NotImplementedError

    def pair_weights_of_rows(self) -> Array:
        """The weight of each row's pairs, (N,)."""
        raise NotImplementedError

    # --- sums ---------------------------------------------------------------------------------

    def _raw_scores(self, W: Array) -> Array:
        with runtime.threads(self.n_threads, sweep_flops(self.X, 1, 1)) as n:
            grid = sweep_grid(self.X, 1, 1, float32=False)
            Z, finite = self.kernels.outputs(self.X, Activation.IDENTITY, W, grid, n)
        if not finite:
            self._check_rows(W)
        return Z[:, 0]

    def _check_rows(self, W: Array) -> None:
        """Raise if X is not finite, or too large; diverged weights are left to the solver."""
        self.X.check_finite()
        if np.abs(W).max() <= 1:
            raise_too_large(self.X)

    def scores(self, W: Array) -> Array:
        """Scores and offset of all rows."""
        z = self.last_pass.find_scores(W)
        if z is None:
            z = self._raw_scores(W)
            z = z + self.offset if len(self.offset) else z
            self.last_pass.store_scores(W, z)
        return z

    def _row_sum(self, e: Array) -> Array:
        """sum_t e_t [0 x_t], (1, d+1)."""
        with runtime.threads(self.n_threads, sweep_flops(self.X, 1, 1)) as n:
            grid = sweep_grid(self.X, 1, 1, float32=False)
            g = self.kernels.weighted_row_sum(self.X, e, grid, n)
        return np.concatenate([[0.0], g])[None, :]

    def sums(self, W: Array) -> PairTotals:
        """Loss, weight of the active pairs, gradient."""
        loss, active, e = self.pair_loss(self.scores(W))
        if not np.isfinite(loss):
            return loss, active, np.full(W.shape, np.nan)
        return loss, active, self._row_sum(e)

    def value_and_gradient(self, W: Array) -> Evaluation:
        found = self.last_pass.find_sums(W)
        if found is None:
            found = self.sums(W)
            self.last_pass.store_sums(W, found)
        loss, active, g = found
        if not (np.isfinite(loss) and np.isfinite(g).all()):
            self._check_rows(W)
        return Evaluation(float(loss), float(active), g.copy())

    def value_and_errors(self, W: Array) -> tuple[float, float]:
        """Loss and weight of the active pairs, without the gradient."""
        loss, active, _ = self.pair_loss(self.scores(W))
        return float(loss), float(active)

    def value(self, W: Array) -> float:
        return self.value_and_errors(W)[0]

    def hessian(self, W: Array) -> Evaluation:
        return self.value_and_gradient(W)._replace(hessian=self._with_intercept(W))

    def _with_intercept(self, W: Array) -> Array:
        """The Hessian with a zero row and column for the intercept."""
        H = np.zeros((W.shape[1], W.shape[1]))
        H[1:, 1:] = self.feature_hessian(W)
        return H

    def product(self, W: Array, V: Array) -> Array:
        """The Hessian at W times V, (1, d+1)."""
        return self._row_sum(self.curvature_product(self.scores(W), self._raw_scores(V)))

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
        penalty: Penalty | None = None,
    ) -> HessianOperator:
        penalty = self.penalty if penalty is None else penalty
        return PlainOperator(lambda V: self.product(W, V), penalty)

    # --- facts --------------------------------------------------------------------------------

    @property
    def costs(self) -> Costs:
        return Costs(self.X.shape[1], self.X.is_sparse, False)

    @property
    def loss_curvature_bound(self) -> float:
        return PAIR_LOSSES[self.rule.loss].curvature_bound

    @property
    def hessian_is_exact(self) -> bool:
        """Whether the Hessian is that of all pairs."""
        return self.n_pairs * self.X.shape[1] <= MAX_HESSIAN_FLOPS

    def use_float64(self) -> ScoreSums:
        """Products are always in float64."""
        return self

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        """1 and the Hessian, (d+1, d+1)."""
        M = self._with_intercept(W)
        size = np.trace(M) / (len(M) - 1)
        M[0, 0] = size or 1.0
        return np.ones((1, 1)), M if size > 0 else np.eye(len(M))  # no pair has curvature here

    def curvature_diagonal(self) -> tuple[Array, Array]:
        """1/4, and sums of squares, weighted by 4 times a bound on the curvature of each row's
        pairs."""
        c = 4 * self.loss_curvature_bound * self.pair_weights_of_rows()
        squares = self.X.column_squares(np.ascontiguousarray(c))
        return np.array([[0.25]]), np.concatenate([[self.total_weight], squares])

    def moments(self) -> tuple[Array, Array]:
        return WeightedRows(self.X, self.row_weights(), centred=True).moments()

    def weighted_rows(self, rows: RowIndex) -> WeightedRows:
        s = self.row_weights()
        return WeightedRows(self.X.take(rows), s[rows] if len(s) > 1 else s, centred=True)
