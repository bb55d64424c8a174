"""An objective with a penalty."""

from __future__ import annotations

from .._kernels.contract import Array
from .bounds import curvature_bound
from .data_term import DataTerm
from .penalty import Penalty
from .protocol import Capability, Costs, Evaluation, HessianOperator, Precision


class Penalized:
    """A data term (row sums, standardised or not, or a ranker's pair sums) plus a `Penalty`."""

    def __init__(self, data: DataTerm, penalty: Penalty):
        self.data, self.penalty = data, penalty
        self.shape, self.n_rows = data.shape, data.n_rows

    def _like(self, data: DataTerm) -> Penalized:
        return Penalized(data, self.penalty)

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
        """The value alone."""
        return self.data.value(W) + float(self.penalty.value(W))

    def value_and_gradient(self, W: Array) -> Evaluation:
        return self._add(W, self.data.value_and_gradient(W))

    def hessian(self, W: Array) -> Evaluation:
        return self._add(W, self.data.hessian(W))

    def _add(self, W: Array, found: Evaluation) -> Evaluation:
        """Add the penalty; the arrays of `found` are new and may be changed."""
        self.penalty.add_gradient(W, found.gradient)
        if found.hessian is not None:
            self.penalty.add_hessian(found.hessian)
        return found._replace(value=found.value + self.penalty.value(W))

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
    ) -> HessianOperator:
        return self.data.hessian_operator(W, precision, previous, self.penalty)

    def use_float64(self) -> Penalized:
        data = self.data.use_float64()
        return self if data is self.data else self._like(data)

    def sample(self, m: int, seed: int, by_norm: bool = False) -> Penalized:
        data = self.data.sample(m, seed, by_norm)
        return self if data is self.data else self._like(data)

    def columns(self, chosen: Array) -> Penalized:
        return Penalized(self.data.columns(chosen), self.penalty.columns(chosen))

    def batch(self, rows: Array) -> Penalized:
        data = self.data.batch(rows)
        share = data.total_weight / self.total_weight
        return Penalized(data, self.penalty.with_l2(self.penalty.l2 * share))

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        return self.data.curvature_factors(W)

    def curvature_diagonal(self) -> tuple[Array, Array]:
        return self.data.curvature_diagonal()

    def curvature_bound(self) -> float:
        return curvature_bound(self, self.data.curvature_growth)

    def max_abs_score(self, V: Array) -> float:
        return self.data.max_abs_score(V)
