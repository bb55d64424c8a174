"""Many two-class problems over the same rows behind one call: folds of a cross-validation, classes against the rest, pairs."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from . import _config
from ._sweep import FAR, Standardized, _grid, work
from ._validate import check_finite, raise_too_large

WIDEST = 300  # columns up to which a Hessian for each problem pays


def suits(problem):
    """Whether many problems on these data are best solved together: not too wide, nor so far from 0 that Hessians lose digits."""
    return problem.d <= WIDEST and not (np.abs(problem.mean) > FAR * problem.scale).any()


class Many(NamedTuple):
    """What a call returns, for each of the problems that were asked for."""

    losses: np.ndarray  # (k,)
    errors: np.ndarray  # (k,)
    G: np.ndarray  # (k, d+1)
    H: np.ndarray | None  # (k, d+1, d+1)


class Segment(NamedTuple):
    """Some rows, and the problems that they have a part in."""

    sweep: object  # a Sweep whose r holds the kinds of the rows
    sides: np.ndarray  # (kinds, k) int8: 1, -1, or 0 where rows of a kind are left out
    problems: np.ndarray  # (k,) the numbers of the problems


class Seen:
    """Where each problem was evaluated last, and the sums there."""

    def __init__(self, K, D):
        self.V = np.full((K, D), np.nan)
        self.sums = np.zeros(K), np.zeros(K), np.zeros((K, D))


class Together:
    """Penalised losses of K problems as functions of their weights (K, d+1), in coordinates of mean 0 and spread 1.

    Rows lie in one segment, or in several that differ in which problems they have a part in: rows grouped by class, say, where
    each class has a part in K - 1 pairs. Sums over segments add up.
    """

    def __init__(self, segments, mean, scale, l2, intercept=True):
        self.segments, self.mean, self.scale, self.l2, self.intercept = segments, mean, scale, l2, intercept
        self.K = 1 + max(int(segment.problems.max()) for segment in segments)
        self.units = Standardized(segments[0].sweep, mean, scale)
        self.seen = Seen(self.K, len(mean) + 1)

    @classmethod
    def of(cls, problem, sides, l2):
        """One segment: all rows of a Problem whose targets are kinds of rows."""
        segment = Segment(problem.raw, np.asarray(sides, np.int8), np.arange(np.shape(sides)[1]))
        return cls([segment], problem.mean, problem.scale, problem.l2(l2), problem.intercept)

    def like(self, l2):
        """The same problems with another penalty on each column, (d,)."""
        other = Together(self.segments, self.mean, self.scale, l2, self.intercept)
        other.seen = self.seen
        return other

    @cached_property
    def rows(self):
        """Rows of the smallest problem."""
        counts = np.zeros(self.K)
        for sweep, sides, problems in self.segments:
            counts[problems] += sweep.counts @ (sides[: len(sweep.counts)] != 0)
        return int(counts.min())

    def sample(self, m, seed):
        """The same problems on so many rows that the smallest one has about m; each kind of rows keeps its weight."""
        rows, least = self.rows, 50
        if m >= rows:
            return self
        share = m / rows
        segments = [
            segment._replace(sweep=segment.sweep.sample(max(least, int(share * segment.sweep.rows)), seed))
            for segment in self.segments
            if segment.sweep.rows
        ]
        return Together(segments, self.mean, self.scale, self.l2, self.intercept)

    def __call__(self, W, asked, order=1) -> Many:
        """Sums of the problems `asked`, (k,) numbers in rising order; W (k, d+1) has their weights."""
        V = self.units.raw(W)
        if order == 2:
            sums = self._raw(V, asked, 2)
        else:  # where one solution ends the next on a path begins, and only the penalty has changed
            new = (self.seen.V[asked] != V).any(axis=1)
            if new.any():
                sums = self._raw(V[new], asked[new], order)
                self.seen.V[asked[new]] = V[new]
                for values, found in zip(self.seen.sums, sums[:3], strict=True):
                    values[asked[new]] = found
            losses, errors, G = (values[asked] for values in self.seen.sums)
            sums = Many(losses, errors, G, None)
        losses, errors, G, H = sums
        return self._penalized(W, Many(losses, errors, self.units.pull(G), None if H is None else self._turn(H)))

    def _raw(self, V, asked, order):
        """Sums for weights of the features as they are, without the penalty."""
        k, D = V.shape
        losses, errors, G = np.zeros(k), np.zeros(k), np.zeros((k, D))
        H = np.zeros((k, D, D)) if order == 2 else None
        for sweep, sides, problems in self.segments:
            _, mine, theirs = np.intersect1d(asked, problems, assume_unique=True, return_indices=True)
            if not len(mine):
                continue
            sums = sweeps(sweep, np.ascontiguousarray(sides[:, theirs]), np.ascontiguousarray(V[mine]), order)
            losses[mine] += sums.losses
            errors[mine] += sums.errors
            G[mine] += sums.G
            if H is not None:
                H[mine] += sums.H
        return Many(losses, errors, G, H)

    def _turn(self, H):
        return self.units.pull(self.units.pull(H).swapaxes(1, 2))

    def _penalized(self, W, sums):
        losses, _, G, H = sums
        losses += (self.l2 * W[:, 1:] ** 2).sum(axis=1) / 2
        G[:, 1:] += self.l2 * W[:, 1:]
        if H is not None:
            np.einsum("kjj->kj", H)[:, 1:] += self.l2
        if not self.intercept:
            G[:, 0] = 0
            if H is not None:
                H[:, 0], H[:, :, 0] = 0, 0
                H[:, 0, 0] = 1
        return sums


def sweeps(sweep, sides, V, order):
    """The kernel's sums, over rows as they are."""
    X, cells = sweep.X, _grid(sweep.X, len(V), order, single=False, pairs=len(V))
    with _config.threads(sweep.n_threads, work(X, len(V), 1) * (1 + (order == 2) * X.shape[1] // 4)) as n:
        losses, errors, G, H = sweep.kernels.sweeps(X, sweep.link, sweep.r, sweep.s, sides, V, order, cells, n)
    if not (np.isfinite(losses).all() and (order == 0 or np.isfinite(G).all())):
        check_finite(X)
        if np.abs(V).max() <= 1:
            raise_too_large(X)
    unit = sweep.unit
    return Many(unit * losses, unit * errors, unit * G, None if H is None else unit * H)
