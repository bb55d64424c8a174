"""A ranker's pass over the data: queries or given pairs behind the verbs of `_sweep.Sweep`, so that the same solvers run on them.

    RankSweep   all ordered pairs of rows within queries
    PairSweep   pairs that somebody gave

Both score all rows, turn the scores into errors, and sum rows times errors. Weights are (1, d+1) as everywhere; the intercept
cancels in every pair, and stays 0.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from . import _config
from ._kernels import CSR, Link, PairLoss, Queries, group_grid, pair_grid
from ._rank_order import edges, in_order, partners, runs, thin
from ._rows import dense, norms, take_columns, take_rows
from ._sweep import Sums, _grid, finite_moments, work
from ._validate import check_finite, raise_too_large

NONE = np.empty(0)
FEW = 64  # rows of a query in a sample, at least, unless it has fewer
THIN = 128  # rows of a chunk of a gradient, at least: it has sums of its own
THICK = 512  # rows that a thread sums up for a Hessian of its own, which takes as long to clear and to add as some rows
CELLS = 1 << 22  # of rows that are gathered at a time for a Hessian
LONGEST = 20_000  # rows of a query up to which a gradient has scores, pairs and sums in one pass; larger ones take all threads
GIVEN = 60  # multiply-adds that a given pair takes as long as: 15 ns (2M hinge pairs of 100k rows, one thread: 31 ms)
PAIRS = 200_000_000  # pairs times columns of a Hessian: beyond, it is that of a sample
CURVATURE = {PairLoss.LOGISTIC: 0.25, PairLoss.SQUARED_HINGE: 2.0, PairLoss.HUBER: 1.0}


class Weighed:
    """Some rows and their weights, for `moments` alone."""

    def __init__(self, X, s):
        self.X, self.s = X, s

    def total(self):
        return float(self.s.sum())

    def moments(self):
        """0, because means cancel in every pair, and the standard deviation of each column."""
        mean, deviation = finite_moments(self.X, self.s)
        return np.zeros_like(mean), deviation


class Scores:
    """What both sweeps share: scores of all rows, and sums of rows times errors."""

    def __init__(self, X, rule, offset, backend, n_threads):
        self.X, self.rule, self.offset = X, rule, offset
        self.options = {"offset": offset, "backend": backend, "n_threads": n_threads}
        self.kernels, self.n_threads = _config.kernels(backend), n_threads
        self.last = None  # weights and their scores

    @property
    def rows(self):
        return self.X.shape[0]

    @property
    def sparse(self):
        return isinstance(self.X, CSR)

    def _score(self, W):
        with _config.threads(self.n_threads, work(self.X, 1, 1)) as n:
            Z, finite = self.kernels.outputs(self.X, Link.IDENTITY, W, _grid(self.X, 1, 1, single=False), n)
        if not finite:
            check_finite(self.X)
            if np.abs(W).max() <= 1:  # else the weights may have run away, and the solver knows what to do
                raise_too_large(self.X)
        return Z[:, 0]

    def scores(self, W):
        """Scores and offset of all rows; those of the last weights are kept."""
        if self.last is None or not np.array_equal(W, self.last[0]):
            z = self._score(W)
            self.last = W.copy(), z + self.offset if len(self.offset) else z
        return self.last[1]

    def _sum(self, e):
        with _config.threads(self.n_threads, work(self.X, 1, 1)) as n:
            g = self.kernels.combine(self.X, e, _grid(self.X, 1, 1, single=False), n)
        return np.concatenate([[0.0], g])[None, :]

    def _gradient(self, W):
        """Loss, weight of the pairs that count, gradient."""
        loss, active, e = self._link(self.scores(W))
        return loss, active, self._sum(e) if np.isfinite(loss) else np.full(W.shape, np.nan)

    def __call__(self, W, order=1):
        loss, active, g = self._gradient(W) if order else (*self._link(self.scores(W))[:2], np.full(W.shape, np.nan))
        if order and not (np.isfinite(loss) and np.isfinite(g).all()):
            check_finite(self.X)
            if np.abs(W).max() <= 1:
                raise_too_large(self.X)
        return Sums(float(loss), float(active), g, self._framed(W) if order == 2 else None)

    def _framed(self, W):
        """The Hessian with a row and a column for the intercept."""
        H = np.zeros((W.shape[1], W.shape[1]))
        H[1:, 1:] = self.hessian(W)
        return H

    def product(self, W, V):
        """The Hessian at W times V, (1, d+1)."""
        return self._sum(self._bend(self.scores(W), self._score(V)))

    def exact(self):
        """Whether the Hessian is that of all pairs."""
        return self.count() * self.X.shape[1] <= PAIRS

    def sharpen(self):
        """Products are float64 always."""
        return False

    def factors(self, W):
        """1 and the Hessian, (d+1, d+1): what `metric.kronecker` multiplies."""
        M = self._framed(W)
        size = np.trace(M) / (len(M) - 1)
        M[0, 0] = size or 1.0
        return np.ones((1, 1)), M if size > 0 else np.eye(len(M))  # no pair bends here

    def fractions(self):
        return np.ones(1)

    def squares(self):
        """sum_t c x_j^2 of each column, c four times a bound on the curvature of a row's pairs: see `metric.diagonal`."""
        return norms(self.X, np.ascontiguousarray(4 * CURVATURE.get(self.rule.loss, 1.0) * self.degrees()), axis=0)

    def moments(self):
        return Weighed(self.X, self._masses()).moments()

    def part(self, rows):
        """Some of the rows, copied: not their pairs, but what `moments` takes."""
        s = self._masses()
        return Weighed(take_rows(self.X, rows), s[rows] if len(s) > 1 else s)


class RankSweep(Scores):
    """Loss, gradient and Hessian over all ordered pairs of rows within queries.

    `group` and `y` are the query and the grade of each row of X, numbers of any kind. `s` is (N,) or (1,): a pair weighs the
    product of its rows' weights. With `gain`, (N,), pairs also weigh what exchanging them would change in the queries'
    discounted gains, in the order of the last `reorder`. `order` is that of group and y, where it is known: see `in_order`.
    """

    def __init__(self, X, group, y, s, rule, *, gain=NONE, discount=NONE, order=None, offset=NONE, backend=None, n_threads=None):
        super().__init__(X, rule, offset, backend, n_threads)
        self.group, self.y, self.s, self.gain, self.discount = group, y, s, gain, discount
        self.order = in_order(group, y) if order is None else order
        self.places, *starts_and_edges = self.order
        pick = lambda a: np.ascontiguousarray(a[self.places], dtype=np.float64) if len(a) > 1 else a  # noqa: E731
        self.queries = Queries(*starts_and_edges, pick(s), pick(gain), pick(discount))
        self.straight = bool((self.places == np.arange(len(self.places))).all())  # rows stand in that order already
        self.grid = group_grid(self.queries.starts)

    def _ordered(self, z):
        return z if self.straight else z[self.places]

    def _scattered(self, e):
        if self.straight:
            return e
        out = np.empty_like(e)
        out[self.places] = e
        return out

    def _pair_work(self):
        return 8 * self.pairs if self.rule.loss == PairLoss.LOGISTIC else 80 * self.rows

    @cached_property
    def together(self):
        """Whether the rows of each query stand together, in the order of the queries, and none has too many to stay in cache."""
        return int(np.diff(self.queries.starts).max()) <= LONGEST and bool((self.group[1:] >= self.group[:-1]).all())

    @cached_property
    def sweep_grid(self):
        """Chunks of queries, each with rows enough to be worth sums of its own; of sparse rows, values enough."""
        d = self.X.shape[1]
        rows = THIN if not self.sparse else 16 * d * self.rows // max(1, len(self.X.data))
        return group_grid(self.queries.starts, d, max(THIN, rows))

    def _gradient(self, W):
        if not self.together or (self.last is not None and np.array_equal(W, self.last[0])):
            return super()._gradient(W)
        with _config.threads(self.n_threads, work(self.X, 1, 1) + self._pair_work()) as n:
            loss, active, g, z = self.kernels.rank_sweep(
                self.X, self.places, self.queries, self.rule, W[0, 1:], self.offset, self.sweep_grid, n
            )
        self.last = W.copy(), z
        return loss, active, np.concatenate([[0.0], g])[None, :]

    def _link(self, z):
        with _config.threads(self.n_threads, self._pair_work()) as n:
            loss, active, e = self.kernels.rank_link(self._ordered(z), self.queries, self.rule, self.grid, n)
        return loss, active, self._scattered(e)

    def _bend(self, z, u):
        with _config.threads(self.n_threads, self._pair_work()) as n:
            out = self.kernels.rank_bend(self._ordered(z), self._ordered(u), self.queries, self.rule, self.grid, n)
        return self._scattered(out)

    @cached_property
    def counts(self):
        """How many rows each row is preferred to, in the order of the queries."""
        starts = self.queries.starts
        return np.repeat(starts[1:], np.diff(starts)) - self.queries.below

    @cached_property
    def pairs(self):
        """The number of ordered pairs."""
        return int(self.counts.sum())

    def total(self):
        """The weight of all pairs: that of each row times that of the rows below it."""
        if len(self.s) == 1:
            return float(self.s[0] ** 2 * self.pairs)
        return float((self._each() * self._partners()[1]).sum())

    def _each(self):
        return np.broadcast_to(self.queries.s, self.rows)

    def _partners(self):
        return partners(self._each(), *self.queries[:3])

    def _masses(self):
        return self.s

    def degrees(self):
        """The weight of each row's pairs."""
        better, worse = self._partners()
        return self._scattered(self._each() * (better + worse))

    def hessian(self, W):
        """(d, d). Of more pairs than are worth it, that of a sample of their rows."""
        d = self.X.shape[1]
        if self.pairs * d > PAIRS:
            part = self.sample(max(20 * d, int(self.rows * np.sqrt(PAIRS / 2 / (self.pairs * d)))), seed=0)
            if part.pairs < self.pairs / 2:
                return part.hessian(W)
        z, starts, H = self._ordered(self.scores(W)), self.queries.starts, np.zeros((d, d))
        if self.rows * d <= CELLS:
            return self._add_hessian(*self._all, z, H)
        cuts = np.unique(np.searchsorted(starts, np.arange(0, self.rows, max(1, CELLS // d)), side="left"))
        for first, last in zip(cuts, [*cuts[1:], len(starts) - 1], strict=True):
            if first == last:
                continue
            self._add_hessian(*self._some(first, last), z[starts[first] : starts[last]], H)
        return H

    def _add_hessian(self, X, queries, grid, z, H):
        with _config.threads(self.n_threads, X.size * X.shape[1]) as n:
            H += self.kernels.rank_hessian(X, z, queries, self.rule, grid, n)
        return H

    @cached_property
    def _all(self):
        """All queries, kept where they are taken at once: each Hessian would wait for fresh memory."""
        return self._some(0, len(self.queries.starts) - 1)

    def _some(self, first, last):
        """Queries first to last as `rank_hessian` takes them: rows, orders, grid."""
        queries, d = self._slice(first, last), self.X.shape[1]
        X = self._taken(self.queries.starts[first], self.queries.starts[last])
        return X, queries, group_grid(queries.starts, d * d, THICK)

    def _taken(self, lo, hi):
        """The rows from lo to hi, in the order of the queries, as float64 in C order."""
        return dense(take_rows(self.X, slice(lo, hi) if self.straight and not self.sparse else self.places[lo:hi]))

    def _slice(self, first, last):
        """Queries first to last alone."""
        starts, above, below, s, gain, discount = self.queries
        rows = slice(starts[first], starts[last])
        cut = lambda a: a[rows] if len(a) > 1 else a  # noqa: E731
        return Queries(
            starts[first : last + 1] - starts[first],
            above[rows] - starts[first],
            below[rows] - starts[first],
            cut(s),
            cut(gain),
            cut(discount),
        )

    def reorder(self, W, k):
        """The same pairs, weighted by what the order of the scores makes of them: discounts 1 / log2(1 + rank) down to rank k.

        Rows of equal scores share the mean of theirs, so that the order of the rows does not matter; those of weight 0 come last.
        """
        z, none = self.scores(W), np.broadcast_to(self.s == 0, self.rows)
        order = np.lexsort((-z, none, self.group))
        rank = runs(np.diff(self.queries.starts))
        value = np.where(rank < k, 1 / np.log2(rank + 2.0), 0.0)
        new = [a[1:] != a[:-1] for a in (z[order], none[order], self.group[order])]
        cuts = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(new), [True]]))
        sizes, discount = np.diff(cuts), np.empty(self.rows)
        discount[order] = np.repeat(np.add.reduceat(value, cuts[:-1]) / sizes, sizes)
        return self.changed(discount=discount)

    def changed(self, **what):
        """The same sweep but for what is named."""
        now = {name: getattr(self, name) for name in ("X", "group", "y", "s", "rule", "gain", "discount", "order")}
        return RankSweep(**(now | self.options | what))

    def count(self):
        """The number of ordered pairs."""
        return self.pairs

    def draw(self, places):
        """(preferred, other) rows of the pairs at these places of the list of all, and their weights."""
        ends = np.cumsum(self.counts)
        first = np.searchsorted(ends, places, side="right")
        second = self.queries.below[first] + places - (ends - self.counts)[first]
        s = self.queries.s
        weight = s[first] * s[second] if len(s) > 1 else s**2
        return np.column_stack([self.places[first], self.places[second]]), weight

    def _thinned(self, places, factors):
        """A sweep over some rows of the queries' order, copied, their weights multiplied."""
        rows = self.places[places]
        pick = lambda a: a[rows] if len(a) > 1 else a  # noqa: E731
        few = {name: pick(getattr(self, name)) for name in ("group", "y", "gain", "discount", "offset")}
        order = np.arange(len(rows)), *edges(few["group"], few["y"])
        return self.changed(X=take_rows(self.X, rows), s=pick(self.s) * factors, order=order, **few)

    def sample(self, m, seed, spread=False):
        """A sweep over about m rows, weighted so that its sums are to be expected of all pairs.

        Whole queries where those are small; of large ones the rows of each grade at random, rare grades more densely.
        """
        if m >= self.rows:
            return self
        rng, sizes = np.random.default_rng(seed), np.diff(self.queries.starts)
        many = int(min(len(sizes), max(1, m * len(sizes) // self.rows, m // FEW)))
        chosen = np.sort(rng.permutation(len(sizes))[:many])
        query = np.repeat(np.arange(len(sizes)), sizes)
        inside = np.zeros(len(sizes), bool)
        inside[chosen] = True
        places = np.flatnonzero(inside[query])
        keep, factors = thin(self._cells(query, places), m, rng)
        factors = factors * np.sqrt(len(sizes) / many)  # of a pair: once for each of its rows
        part = self._thinned(places[keep], factors)
        return part if part.pairs else self

    def _cells(self, query, places):
        """Numbers of the cells of query and grade that these rows are in; of many grades, those of 16 neighbouring ranges."""
        starts, above = self.queries.starts, self.queries.above
        new = np.concatenate([[True], above[1:] != above[:-1]])
        if np.add.reduceat(new, starts[:-1], dtype=np.int64).max() <= 16:
            return above[places]
        grade = np.cumsum(new) - 1
        grade = grade - grade[starts[:-1]][query]
        most = np.maximum.reduceat(grade, starts[:-1])[query] + 1
        grade = np.where(most > 16, grade * 16 // np.maximum(most, 1), grade)
        return (query * 16 + grade)[places]

    def columns(self, chosen):
        """A sweep over some of the columns, copied."""
        return self.changed(X=take_columns(self.X, chosen))


class PairSweep(Scores):
    """Loss, gradient and Hessian over given (preferred, other) pairs of rows, (P, 2) int64; s is (P,) or (1,)."""

    def __init__(self, X, pairs, s, rule, *, offset=NONE, backend=None, n_threads=None):
        super().__init__(X, rule, offset, backend, n_threads)
        self.pairs_of, self.s = pairs, s
        self.grid = pair_grid(self.rows, len(pairs))

    def _link(self, z):
        with _config.threads(self.n_threads, GIVEN * len(self.pairs_of)) as n:
            return self.kernels.pair_link(z, self.pairs_of, self.s, self.rule, self.grid, n)

    def _bend(self, z, u):
        with _config.threads(self.n_threads, GIVEN * len(self.pairs_of)) as n:
            return self.kernels.pair_bend(z, u, self.pairs_of, self.s, self.rule, self.grid, n)

    def total(self):
        return float(self.s.sum() if len(self.s) > 1 else self.s[0] * len(self.pairs_of))

    def degrees(self):
        """The weight of each row's pairs."""
        s = np.broadcast_to(self.s, len(self.pairs_of))
        return sum(np.bincount(side, s, self.rows) for side in self.pairs_of.T)

    @cached_property
    def masses(self):
        return self.degrees()

    def _masses(self):
        return self.masses

    def hessian(self, W):
        """(d, d), from the pairs' differences, some of them at a time."""
        z, d = self.scores(W), self.X.shape[1]
        H, step = np.zeros((d, d)), max(64, CELLS // 8 // d)
        for lo in range(0, len(self.pairs_of), step):
            (u, v), s = self.pairs_of[lo : lo + step].T, self.s[lo : lo + step] if len(self.s) > 1 else self.s
            c = s * self._bends(z[v] - z[u] + self.rule.margin)
            bent = np.flatnonzero(c)  # few, where the corner is narrow
            D = dense(take_rows(self.X, u[bent])) - dense(take_rows(self.X, v[bent]))
            H += D.T @ (c[bent, None] * D)
        return H

    def _bends(self, a):
        """Curvatures of pairs."""
        if self.rule.loss == PairLoss.SQUARED_HINGE:
            return 2.0 * (a > 0)
        if self.rule.loss == PairLoss.HUBER:
            return ((a > 0) & (a <= self.rule.width)) / self.rule.width
        u = np.exp(-np.abs(a))
        return u / (1 + u) ** 2

    def changed(self, **what):
        """The same sweep but for what is named."""
        return PairSweep(**({"X": self.X, "pairs": self.pairs_of, "s": self.s, "rule": self.rule} | self.options | what))

    def count(self):
        """The number of pairs."""
        return len(self.pairs_of)

    def draw(self, places):
        """The pairs at these places, and their weights."""
        return self.pairs_of[places], self.s[places] if len(self.s) > 1 else self.s

    def sample(self, m, seed, spread=False):
        """A sweep over about m pairs, drawn evenly, weighted so that its sums are to be expected of all; on all rows."""
        count = len(self.pairs_of)
        if m >= count or m >= self.rows:
            return self
        chosen = np.sort(np.random.default_rng(seed).permutation(count)[:m])
        s = (self.s[chosen] if len(self.s) > 1 else self.s) * (count / m)
        return self.changed(pairs=self.pairs_of[chosen], s=s)

    def columns(self, chosen):
        """A sweep over some of the columns, copied."""
        return self.changed(X=take_columns(self.X, chosen))
