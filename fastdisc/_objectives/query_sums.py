"""The loss over all ordered pairs of rows within queries. Pairs are never formed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import runtime
from .._data.dense import DenseRows
from .._data.outputs import sweep_flops
from .._data.query_order import partner_weights, query_bounds, query_order, ranges, thin_cells
from .._data.rows import Rows
from .._kernels.contract import Array, PairRule, Queries, QueryGrid
from .._kernels.enums import PairLoss
from .._kernels.grid import query_grid
from .score_sums import EMPTY, MAX_HESSIAN_FLOPS, PairTotals, ScoreSums

MIN_QUERY_ROWS = 64  # rows of a query in a sample, unless it has fewer
MIN_CHUNK_ROWS = 128  # of a chunk of a gradient, which has partial sums of its own
# Rows of a chunk of a Hessian: to clear and merge its partial sums costs as much as some rows.
MIN_HESSIAN_ROWS = 512
MAX_GATHERED_CELLS = 1 << 22  # of rows that are gathered at a time for a Hessian
# Rows of a query up to which one pass scores, compares and sums; larger queries use all threads.
MAX_ONE_PASS_ROWS = 20_000


class QuerySums(ScoreSums):
    """Loss, gradient and Hessian over all ordered pairs of rows within queries.

    `group` and `y` are the query and the grade of each row of X. `s` is (N,) or (1,): the weight of
    a pair is the product of its rows' weights. With `gain` and `discount`, (N,), it is multiplied
    by the change in discounted gain if the two rows were exchanged. `order` is that of group and y,
    if it is known: see `query_order`.
    """

    def __init__(
        self,
        X: Rows,
        group: Array,
        y: Array,
        s: Array,
        rule: PairRule,
        *,
        gain: Array = EMPTY,
        discount: Array = EMPTY,
        order: tuple[Array, ...] | None = None,
        offset: Array = EMPTY,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        super().__init__(X, rule, offset=offset, backend=backend, n_threads=n_threads)
        self.group, self.y, self.s, self.gain, self.discount = group, y, s, gain, discount
        self.order = query_order(group, y) if order is None else order
        self.places, *starts_and_edges = self.order
        in_order = [self._in_query_order(a) for a in (s, gain, discount)]
        self.queries = Queries(*starts_and_edges, *in_order)
        self.is_ordered = bool((self.places == np.arange(len(self.places))).all())
        self.grid = query_grid(self.queries.starts)

    def _in_query_order(self, a: Array) -> Array:
        """Numbers of rows in the order of the queries; one number for all rows as it is."""
        return np.ascontiguousarray(a[self.places], dtype=np.float64) if len(a) > 1 else a

    def _ordered(self, z: Array) -> Array:
        return z if self.is_ordered else z[self.places]

    def _scattered(self, e: Array) -> Array:
        """The inverse of `_ordered`."""
        if self.is_ordered:
            return e
        out = np.empty_like(e)
        out[self.places] = e
        return out

    @property
    def _pair_flops(self) -> int:
        return 8 * self.n_pairs if self.rule.loss == PairLoss.LOGISTIC else 80 * self.n_rows

    @cached_property
    def is_grouped(self) -> bool:
        """Whether the rows of each query are consecutive, in the order of the queries, and so few
        that they stay in cache: then one pass scores, compares and sums them."""
        if int(np.diff(self.queries.starts).max()) > MAX_ONE_PASS_ROWS:
            return False
        return bool((self.group[1:] >= self.group[:-1]).all())

    @cached_property
    def sweep_grid(self) -> QueryGrid:
        """Chunks of queries with enough rows, or stored values, to be worth partial sums."""
        d, rows = self.X.shape[1], MIN_CHUNK_ROWS
        if self.X.is_sparse:
            rows = max(rows, 16 * d * self.n_rows // max(1, self.X.n_values))
        return query_grid(self.queries.starts, d, rows)

    def sums(self, W: Array) -> PairTotals:
        if not self.is_grouped:
            return super().sums(W)
        with runtime.threads(self.n_threads, sweep_flops(self.X, 1, 1) + self._pair_flops) as n:
            arguments = self.X, self.places, self.queries, self.rule, W[0, 1:], self.offset
            loss, active, g, z = self.kernels.query_sweep(*arguments, self.sweep_grid, n)
        self.last_pass.store_scores(W, z)
        return loss, active, np.concatenate([[0.0], g])[None, :]

    def pair_loss(self, z: Array) -> tuple[float, float, Array]:
        with runtime.threads(self.n_threads, self._pair_flops) as n:
            arguments = self._ordered(z), self.queries, self.rule, self.grid, n
            loss, active, e = self.kernels.query_loss(*arguments)
        return loss, active, self._scattered(e)

    def curvature_product(self, z: Array, u: Array) -> Array:
        with runtime.threads(self.n_threads, self._pair_flops) as n:
            arguments = self._ordered(z), self._ordered(u), self.queries, self.rule, self.grid, n
            return self._scattered(self.kernels.query_curvature_product(*arguments))

    @cached_property
    def counts(self) -> Array:
        """The number of rows that each row is preferred to, in the order of the queries."""
        starts = self.queries.starts
        return np.repeat(starts[1:], np.diff(starts)) - self.queries.below

    @cached_property
    def n_pairs(self) -> int:  # type: ignore[override]
        return int(self.counts.sum())

    @cached_property
    def total_weight(self) -> float:  # type: ignore[override]
        """The weight of all pairs: that of each row times that of the rows below it."""
        if len(self.s) == 1:
            return float(self.s[0] ** 2 * self.n_pairs)
        return float((self._row_weights() * self._partner_weights()[1]).sum())

    def _row_weights(self) -> Array:
        return np.broadcast_to(self.queries.s, self.n_rows)

    def _partner_weights(self) -> tuple[Array, Array]:
        return partner_weights(self._row_weights(), *self.queries[:3])

    def row_weights(self) -> Array:
        return self.s

    def pair_weights_of_rows(self) -> Array:
        better, worse = self._partner_weights()
        return self._scattered(self._row_weights() * (better + worse))

    def feature_hessian(self, W: Array) -> Array:
        """(d, d). If there are too many pairs, that of a sample of their rows."""
        d = self.X.shape[1]
        if not self.hessian_is_exact:
            share = np.sqrt(MAX_HESSIAN_FLOPS / 2 / (self.n_pairs * d))
            part = self.sample(max(20 * d, int(self.n_rows * share)), seed=0)
            if part.n_pairs < self.n_pairs / 2:
                return part.feature_hessian(W)
        z, starts, H = self._ordered(self.scores(W)), self.queries.starts, np.zeros((d, d))
        if self.n_rows * d <= MAX_GATHERED_CELLS:
            return self._add_hessian(*self._all_queries, z, H)
        steps = np.arange(0, self.n_rows, max(1, MAX_GATHERED_CELLS // d))
        cuts = np.unique(np.searchsorted(starts, steps, side="left"))
        for first, last in zip(cuts, [*cuts[1:], len(starts) - 1], strict=True):
            if first == last:
                continue
            own = z[starts[first] : starts[last]]
            self._add_hessian(*self._gather(first, last), own, H)
        return H

    def _add_hessian(
        self, X: DenseRows, queries: Queries, grid: QueryGrid, z: Array, H: Array
    ) -> Array:
        with runtime.threads(self.n_threads, X.n_values * X.shape[1]) as n:
            H += self.kernels.query_hessian(X, z, queries, self.rule, grid, n)
        return H

    @cached_property
    def _all_queries(self) -> tuple[DenseRows, Queries, QueryGrid]:
        """All queries, gathered once: fresh memory for each Hessian would cost page faults."""
        return self._gather(0, len(self.queries.starts) - 1)

    def _gather(self, first: int, last: int) -> tuple[DenseRows, Queries, QueryGrid]:
        """Queries first to last as `query_hessian` takes them: rows, orders, grid."""
        queries, d = self._slice(first, last), self.X.shape[1]
        lo, hi = self.queries.starts[first], self.queries.starts[last]
        rows = slice(lo, hi) if self.is_ordered else self.places[lo:hi]
        X = DenseRows(self.X.take(rows).dense())
        return X, queries, query_grid(queries.starts, d * d, MIN_HESSIAN_ROWS)

    def _slice(self, first: int, last: int) -> Queries:
        """Queries first to last alone."""
        starts, above, below, s, gain, discount = self.queries
        rows = slice(starts[first], starts[last])
        weights = [a[rows] if len(a) > 1 else a for a in (s, gain, discount)]
        begin = starts[first]
        bounds = starts[first : last + 1] - begin, above[rows] - begin, below[rows] - begin
        return Queries(*bounds, *weights)

    def reordered(self, W: Array, k: int) -> QuerySums:
        """The same pairs with the discounts 1 / log2(1 + rank), down to rank k, of the order that
        the scores at W give.

        Rows of equal scores share the mean of their discounts, so that the order of the rows does
        not matter; rows of weight 0 come last.
        """
        z, none = self.scores(W), np.broadcast_to(self.s == 0, self.n_rows)
        order = np.lexsort((-z, none, self.group))
        rank = ranges(np.diff(self.queries.starts))
        value = np.where(rank < k, 1 / np.log2(rank + 2.0), 0.0)
        new = [a[1:] != a[:-1] for a in (z[order], none[order], self.group[order])]
        cuts = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(new), [True]]))
        sizes, discount = np.diff(cuts), np.empty(self.n_rows)
        discount[order] = np.repeat(np.add.reduceat(value, cuts[:-1]) / sizes, sizes)
        return self.replace(discount=discount)

    def replace(self, **changes: Any) -> QuerySums:
        """The same objective except for the named arguments."""
        names = ("X", "group", "y", "s", "rule", "gain", "discount", "order")
        now = {name: getattr(self, name) for name in names}
        return QuerySums(**(now | self.options | changes))

    def draw_pairs(self, places: Array) -> tuple[Array, Array]:
        """(preferred, other) rows of the pairs at these places of the list of all, and their
        weights."""
        ends = np.cumsum(self.counts)
        first = np.searchsorted(ends, places, side="right")
        second = self.queries.below[first] + places - (ends - self.counts)[first]
        s = self.queries.s
        weight = s[first] * s[second] if len(s) > 1 else s**2
        return np.column_stack([self.places[first], self.places[second]]), weight

    def _subset(self, places: Array, factors: Array) -> QuerySums:
        """The objective of some rows in the order of the queries, their weights multiplied."""
        rows = self.places[places]
        group, y, s, gain, discount, offset = (
            a[rows] if len(a) > 1 else a
            for a in (self.group, self.y, self.s, self.gain, self.discount, self.offset)
        )
        order = np.arange(len(rows)), *query_bounds(group, y)
        weights = {"s": s * factors, "gain": gain, "discount": discount, "offset": offset}
        return self.replace(X=self.X.take(rows), group=group, y=y, order=order, **weights)

    def sample(self, m: int, seed: int, by_norm: bool = False) -> QuerySums:
        """The objective of about m rows, weighted so that its sums estimate those of all pairs.

        Whole queries if those are small; of large ones the rows of each grade at random, rare
        grades more densely.
        """
        if m >= self.n_rows:
            return self
        rng, sizes = np.random.default_rng(seed), np.diff(self.queries.starts)
        many = int(min(len(sizes), max(1, m * len(sizes) // self.n_rows, m // MIN_QUERY_ROWS)))
        chosen = np.sort(rng.permutation(len(sizes))[:many])
        query = np.repeat(np.arange(len(sizes)), sizes)
        inside = np.zeros(len(sizes), bool)
        inside[chosen] = True
        places = np.flatnonzero(inside[query])
        keep, factors = thin_cells(self._cells(query, places), m, rng)
        factors = factors * np.sqrt(len(sizes) / many)  # of a pair: once for each of its rows
        part = self._subset(places[keep], factors)
        return part if part.n_pairs else self

    def _cells(self, query: Array, places: Array) -> Array:
        """The cell of query and grade of each of these rows; many grades are joined into 16."""
        starts, above = self.queries.starts, self.queries.above
        new = np.concatenate([[True], above[1:] != above[:-1]])
        if np.add.reduceat(new, starts[:-1], dtype=np.int64).max() <= 16:
            return above[places]
        grade = np.cumsum(new) - 1
        grade = grade - grade[starts[:-1]][query]
        most = np.maximum.reduceat(grade, starts[:-1])[query] + 1
        grade = np.where(most > 16, grade * 16 // np.maximum(most, 1), grade)
        return (query * 16 + grade)[places]

    def columns(self, chosen: Array) -> QuerySums:
        """The objective of some of the columns."""
        return self.replace(X=self.X.columns(chosen))
