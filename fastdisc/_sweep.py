"""A pass over the data: rows, targets and weights behind one call that returns sums. Solvers see nothing else of the data.

    Sweep          the data as they are
    Standardized   the same data in units of the columns' spread: shift and scale go into the weights, never into X
    Penalized      either, plus a penalty; some weights may be held at 0

All three have the same verbs: call (sums), `product` (Hessian times a direction), `sample` (fewer rows, to the same expectation),
`columns` (fewer columns).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from . import _config, _kept, _turned
from ._kernels import CHUNKS, CSR, NO_OFFSET, Link, _numpy, grid
from ._rows import apart, moments, norms, strata, take_columns, take_rows
from ._validate import check_finite, raise_too_large

FAR = 30.0  # spreads of a column between its mean and 0: beyond, moving a Hessian to the mean takes more than 3 of its 16 digits
SLICE = 1024  # rows that are worked on outside the kernels at a time


class Sums(NamedTuple):
    """What a sweep returns. Sums over parts of the rows add up to the sum over all."""

    loss: float
    errors: float
    g: np.ndarray  # (K, d+1)
    H: np.ndarray | None = None  # (K (d+1), K (d+1))

    def merge(self, other: Sums) -> Sums:
        """The sums over the rows of both."""
        H = None if self.H is None or other.H is None else self.H + other.H
        return Sums(self.loss + other.loss, self.errors + other.errors, self.g + other.g, H)


def work(X, K, order):
    """Floating-point operations of a sweep, about: what decides whether threads pay. A stored value takes the time of four."""
    values = 4 * len(X.data) if isinstance(X, CSR) else X.shape[0] * X.shape[1]
    return 2 * values * K * (max(1, K * X.shape[1] // 4) if order == 2 else 1)


def _rows_grid(X, K):
    """For one number a row and class, and no sums: chunks as small as they may be, so that threads share the work evenly."""
    found = _grid(X, K, 1, single=False)
    return found._replace(chunk=min(found.chunk, -(-X.shape[0] // (CHUNKS * found.block)) * found.block))


def _grid(X, K, order, single=True, pairs=None):
    stored = len(X.data) if isinstance(X, CSR) else None
    itemsize = 8 if stored is not None or X.dtype == np.float64 or order == 2 or not single else 4
    return grid(X.shape, itemsize, K, order, stored, pairs)._replace(single=single)


def finite_moments(X, s):
    """Weighted mean and standard deviation of each column; an error where they are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = moments(X, s)
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
        check_finite(X)
        raise_too_large(X)
    return mean, deviation


class Sweep:
    """Loss, errors, gradient and Hessian of a linear model on fixed data, as functions of its weights W (K, d+1)."""

    def __init__(self, X, r, s, link, *, offset=NO_OFFSET, backend=None, n_threads=None):
        self.X, self.r, self.link, self.offset = X, r, Link(link), offset
        self.unit = float(s.max()) or 1.0  # the largest row weight: rows weigh up to 1, which fits in float32 too
        self.s = s / self.unit
        self.options = {"backend": backend, "n_threads": n_threads}
        self.kernels, self.n_threads = _config.kernels(backend), n_threads
        self.single = isinstance(X, np.ndarray) and X.dtype != np.float64  # products in float32, until somebody sharpens them
        self.quick = None  # whether Hessians are bent, in float32: None until somebody asks, False once they are sharpened
        self.last = None  # weights, precision and sums of the last call

    @property
    def rows(self):
        return self.X.shape[0]

    @property
    def sparse(self):
        return isinstance(self.X, CSR)

    @property
    def outputs(self):
        """Scores of a row."""
        return len(self.counts) if self.link == Link.SOFTMAX else 1

    @property
    def width(self):
        """Values of a row: those that are stored of a sparse one, on average."""
        return len(self.X.data) / self.rows if self.sparse else self.X.shape[1]

    def __call__(self, W, order=1) -> Sums:
        # Where one solution ends the next on a path begins, and only the penalty has changed.
        if order < 2 and self.last and self.last[1] == self.single and np.array_equal(W, self.last[0]):
            loss, errors, g, H = self.last[2]
        else:
            loss, errors, g, H = self._sums(W, order)
            self.last = (W.copy(), self.single, (loss, errors, g, None)) if order else None
        return Sums(self.unit * loss, self.unit * errors, self.unit * g, None if H is None else self.unit * H)

    @cached_property
    def turned(self):
        """The same data by columns, where that is the better way to add up; else None."""
        if not _turned.suits(self.X, self.link, self.outputs):
            return None
        return _turned.Turned(self.X, self.link, self.s, self.offset, self.kernels, self.n_threads)

    def _sums(self, W, order):
        if order < 2 and self.link == Link.SOFTMAX and self.turned:
            loss, errors, g, H = self.turned.sums(W, self.r)
        else:
            with _config.threads(self.n_threads, work(self.X, len(W), order)) as n:
                loss, errors, g, H = self.kernels.sweep(
                    self.X, self.link, self.r, self.s, self.offset, W, order, _grid(self.X, len(W), order, self.single), n
                )
        if not all(part is None or np.isfinite(part).all() for part in (loss, g, H)):
            check_finite(self.X)
            if np.abs(W).max() <= 1:  # else the weights may have run away, and the solver knows what to do
                raise_too_large(self.X)
        return loss, errors, g, H

    def sharpen(self):
        """From now on, products in float64; False if they were so before."""
        was, self.single, self.quick = self.single or bool(self.quick), False, False
        return was

    def product(self, W, V):
        """The Hessian at W times V, (K, d+1)."""
        if self.link == Link.SOFTMAX and self.turned:
            return self.unit * self.turned.product(W, V)
        with _config.threads(self.n_threads, 2 * work(self.X, len(W), 1)) as n:
            HV = self.kernels.product(self.X, self.link, self.s, self.offset, W, V, _grid(self.X, len(W), 1, self.single), n)
        return self.unit * HV

    def bent(self, W, l2, held):
        """The Hessian at W, with a penalty, for many products of few digits, where there is a quicker way to those; else None."""
        if self.quick is False or self.turned is None or len(self.X.data) < _turned.ENOUGH:
            return None
        bent = _turned.Bent(self.turned, W, self.unit, l2, held)
        self.quick = bent.fine
        return bent if bent.fine else None

    def part(self, rows, factors=1.0):
        """A sweep over some of the rows, copied, their weights multiplied."""
        s = self.s[rows] if len(self.s) > 1 else self.s
        offset = self.offset[rows] if len(self.offset) else self.offset
        return Sweep(
            take_rows(self.X, rows),
            self.r[rows],
            np.asarray(self.unit * s * factors).reshape(-1),
            self.link,
            offset=offset,
            **self.options,
        )

    def sample(self, m, seed, spread=False):
        """A sweep over about m rows drawn at random, weighted so that its sums are to be expected of all rows.

        A class of which the draw would have too few rows to learn from is drawn more densely. Weights are such that each class
        keeps its total. With `spread`, rows far out are drawn more often.
        """
        rng, counts = np.random.default_rng(seed), self.counts
        if not spread:
            rows = strata(self.rows, int(m), rng)
            factors = np.ones(len(rows))
        else:
            likely = 0.5 + 0.5 * self.spread
            p = np.minimum(1, m * likely / likely.sum())
            p = np.minimum(1, p * m / p.sum())
            rows = np.flatnonzero(rng.random(self.rows) < p)
            factors = 1 / p[rows]
        r = self.r[rows]
        found = np.bincount(r, minlength=len(counts))
        enough = np.minimum(counts, max(50, m // (8 * len(counts))))
        for k in np.flatnonzero(found < enough):
            own = np.flatnonzero(self.r == k)
            own = own if counts[k] <= 2 * enough[k] else rng.choice(own, enough[k], replace=False)
            keep = self.r[rows] != k
            rows, factors = np.concatenate([rows[keep], own]), np.concatenate([factors[keep], np.ones(len(own))])
            order = np.argsort(rows, kind="stable")
            rows, factors = rows[order], factors[order]
            r = self.r[rows]
        mine = np.bincount(r, factors * (self.s[rows] if len(self.s) > 1 else self.s[0]), len(counts))
        if not (mine[self.mass > 0] > 0).all():  # weights so uneven that a class was missed: all rows it is
            return self
        share = np.divide(self.mass, mine, out=np.zeros(len(counts)), where=mine > 0)
        return self.part(rows, factors * share[r])

    @cached_property
    def counts(self):
        """Rows of each class."""
        K, step = int(self.r.max()) + 1, 1 << 16  # bincount copies what it counts to 64 bits
        if K == 2:
            ones = np.count_nonzero(self.r)
            return np.array([self.rows - ones, ones])
        return sum(np.bincount(self.r[begin : begin + step], minlength=K) for begin in range(0, self.rows, step))

    @cached_property
    def mass(self):
        """Weight of each class, in units of the largest row weight."""
        return self.counts * self.s[0] if len(self.s) == 1 else np.bincount(self.r, self.s)

    def columns(self, chosen):
        """A sweep over some of the columns, copied."""
        X = take_columns(self.X, chosen)
        return Sweep(X, self.r, self.unit * self.s, self.link, offset=self.offset, **self.options)

    def moments(self):
        """Weighted mean and standard deviation of each column."""
        return finite_moments(self.X, self.s)

    def squares(self):
        """sum_t s x_j^2 of each column, (d,)."""
        return self.unit * norms(self.X, self.s, axis=0)

    @cached_property
    def spread(self):
        """How far out each row lies: the mean square of its standardised features, (N,)."""
        mean, scale = self.moments()
        return norms(self.X, np.ones(1), axis=1, mean=mean, scale=np.where(scale > 0, scale, 1)) / self.X.shape[1]

    def total(self):
        """The weight of all rows."""
        return self.unit * float(self.mass.sum())

    def fractions(self):
        """Each class's share of the weight."""
        return self.mass / self.mass.sum()

    def factors(self, W):
        """Sums of the class covariances (10.32), B (K, K), and the mean of [1 x][1 x]' where those are large, M (d+1, d+1)."""
        K, D = max(2, len(W)), W.shape[1]
        s, B, M, total = self.unit * np.broadcast_to(self.s, self.rows), np.zeros((K, K)), np.zeros((D, D)), 0.0
        for begin in range(0, self.rows, SLICE):  # rows as float64, times their weights: not all of them at once
            rows = slice(begin, begin + SLICE)
            X = np.column_stack([np.ones(len(self.r[rows])), self.X[rows]])
            Y = _numpy.softmax(X @ W.T if len(W) > 1 else X @ np.vstack([W, -W]).T / 2)
            c = s[rows] * (1 - (Y**2).sum(axis=1))
            B += np.diag(s[rows] @ Y) - (s[rows, None] * Y).T @ Y
            M += X.T @ (c[:, None] * X)
            total += c.sum()
        return B if len(W) > 1 else B[:1, :1], M / max(total, np.finfo(float).tiny)

    def largest_score(self, V):
        """max |v'x + v_0| over rows and classes."""
        return float(np.abs(scores(self.kernels, self.X, V, n_threads=self.n_threads)).max())


class Standardized:
    """A sweep in weights of standardised features (x - mean) / scale."""

    def __init__(self, sweep, mean, scale):
        self.sweep, self.mean, self.scale = sweep, mean, scale
        self.rows, self.sparse = sweep.rows, sweep.sparse
        self.units, self.shift = np.concatenate([[1.0], scale]), mean / scale
        self.quick = None  # as in Sweep

    def raw(self, W):
        """The weights that give the same scores on the features as they are."""
        V = W / self.units
        V[:, 0] -= V[:, 1:] @ self.mean
        return V

    def standard(self, V):
        """The inverse of `raw`."""
        W = V * self.units
        W[:, 0] += V[:, 1:] @ self.mean
        return W

    def pull(self, g):
        """The derivative by the standardised weights from that by the raw ones, along the last axis."""
        g = g / self.units
        g[..., 1:] -= g[..., :1] * self.shift
        return g

    def __call__(self, W, order=1) -> Sums:
        loss, errors, g, H = self.sweep(self.raw(W), order)
        if H is not None:
            K, D = W.shape
            H = self.pull(self.pull(H.reshape(K * D, K, D)).reshape(K * D, K * D).T.reshape(K * D, K, D)).reshape(K * D, K * D)
        return Sums(loss, errors, self.pull(g), H)

    def product(self, W, V):
        return self.pull(self.sweep.product(self.raw(W), self.raw(V)))

    @property
    def few(self):
        return isinstance(self.sweep, Sweep) and _kept.suits(self.sweep.X, self.sweep.link, self.sweep.outputs)  # not of rankers

    @cached_property
    def kept(self):
        """A copy of few rows, standardised, that serves products of few digits better; else None."""
        if not self.few:
            return None
        sweep = self.sweep
        return _kept.Kept(apart(sweep.X, self.mean, self.scale), sweep.s, sweep.offset, sweep.link)

    def bent(self, W, l2, held):
        if self.quick is False or self.kept is None:
            return None
        self.quick = True
        return _kept.Bent(self.kept, W, self.sweep.unit, l2, held)

    def part(self, rows):
        return Standardized(self.sweep.part(rows), self.mean, self.scale)

    def sample(self, m, seed, spread=False):
        """As Sweep.sample; dense rows are standardised for good where the raw ones would cost a Hessian its digits."""
        far = bool((np.abs(self.mean) > FAR * self.scale).any())
        if m >= self.rows and (not far or self.sparse or self.rows * len(self.mean) > 4_000_000):
            return self
        part = self.sweep.part(slice(None)) if m >= self.rows else self.sweep.sample(m, seed, spread)
        if part is self.sweep:
            return self
        if part.sparse or not far:
            return Standardized(part, self.mean, self.scale)
        part.X = apart(part.X, self.mean, self.scale)
        return part

    def sharpen(self):
        was, self.quick = bool(self.quick), False
        return was or self.sweep.sharpen()

    def columns(self, chosen):
        return Standardized(self.sweep.columns(chosen), self.mean[chosen], self.scale[chosen])

    def largest_score(self, V):
        return self.sweep.largest_score(self.raw(V))

    def factors(self, W):
        B, M = self.sweep.factors(self.raw(W))
        return B, self.pull(self.pull(M).T)

    def total(self):
        return self.sweep.total()

    def fractions(self):
        return self.sweep.fractions()

    def squares(self):
        """sum_t s x_j^2 of each standardised column, (d,)."""
        mean, deviation = self.sweep.moments()
        return self.total() * (deviation**2 + (mean - self.mean) ** 2) / self.scale**2


class Penalized:
    """A sweep plus l2_j / 2 w_j^2 over all weights but the intercepts.

    Without an intercept, and for the reference class, weights are held at 0.
    """

    def __init__(self, sweep, l2, intercept=True, reference=None):
        self.sweep, self.l2, self.intercept, self.reference = sweep, np.asarray(l2, dtype=np.float64), intercept, reference
        self.rows, self.sparse = sweep.rows, sweep.sparse

    def like(self, sweep, l2=None):
        """The same penalty on another sweep."""
        return Penalized(sweep, self.l2 if l2 is None else l2, self.intercept, self.reference)

    def held(self, shape):
        """Which weights stay at 0."""
        mask = np.zeros(shape, bool)
        mask[:, 0] = not self.intercept
        if self.reference is not None:
            mask[self.reference] = True
        return mask

    @property
    def free(self):
        """Whether none does."""
        return self.intercept and self.reference is None

    @property
    def singular(self):
        """Whether the same vector may be added to the weights of all classes: then the penalty alone settles them."""
        return self.reference is None

    def __call__(self, W, order=1) -> Sums:
        loss, errors, g, H = self.sweep(W, order)
        K, D = W.shape
        slope = self.l2 * W[:, 1:]
        loss = loss + float(np.vdot(slope, W[:, 1:])) / 2
        g[:, 1:] += slope
        if not self.free:
            mask = self.held(W.shape).ravel()
            g.reshape(-1)[mask] = 0
        if H is not None:
            np.einsum("kjkj->kj", H.reshape(K, D, K, D))[:, 1:] += self.l2  # the diagonal
            if not self.free:
                H[mask], H[:, mask] = 0, 0
                H[mask, mask] = 1
        return Sums(loss, errors, g, H)

    def product(self, W, V):
        HV = self.sweep.product(W, V)
        HV[:, 1:] += self.l2 * V[:, 1:]
        if not self.free:
            HV[self.held(V.shape)] = 0
        return HV

    def bent(self, W):
        """The Hessian at W for many products of few digits, where the data have a quicker way for those; else None."""
        bent = getattr(self.sweep, "bent", None)  # rankers have none
        return bent(W, self.l2, self.held(W.shape)) if bent else None

    @property
    def few(self):
        """Whether rows are so few, and dense, that a copy of them serves products of few digits better."""
        return getattr(self.sweep, "few", False)

    def sharpen(self):
        return self.sweep.sharpen()

    def sample(self, m, seed, **options):
        return self.like(self.sweep.sample(m, seed, **options))

    def columns(self, chosen):
        l2 = self.l2[chosen] if self.l2.ndim else self.l2
        return self.like(self.sweep.columns(chosen), l2)


def scores(kernels, X, W, *, n_threads):
    """Scores of a linear model, (N, K), whether finite or not."""
    with _config.threads(n_threads, work(X, len(W), 1)) as n:
        return kernels.outputs(X, Link.IDENTITY, W, _rows_grid(X, len(W)), n)[0]


def outputs(X, link, W, *, backend=None, n_threads=None):
    """Scores or outputs of a linear model, (N, K)."""
    with _config.threads(n_threads, work(X, len(W), 1)) as n:
        Y, finite = _config.kernels(backend).outputs(X, Link(link), W, _rows_grid(X, len(W)), n)
    if not finite:
        check_finite(X)
        raise_too_large(X)
    return Y


def expand(X, *, n_threads=None):
    """The features of mapped rows, (N, d)."""
    with _config.threads(n_threads, X.shape[0] * X.shape[1]) as n:
        F = X.kernels.expand(X, grid(X.shape, 8), n)
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(F.sum(axis=0)).all()
    if not fine:
        check_finite(X)
    return F
