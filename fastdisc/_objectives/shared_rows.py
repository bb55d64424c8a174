"""Two-class problems over shared rows: folds of a cross-validation, one class against the rest,
pairs of classes. Every pass reads a row once for all problems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from .._data.outputs import sweep_flops, sweep_grid
from .._data.rows import Rows, raise_too_large
from .._kernels.contract import Array, Batch, Kernels
from .coordinates import Problem, Units
from .penalty import Penalty
from .protocol import Capability, Evaluation
from .row_sums import RowSums

MAX_COLUMNS = 300  # up to which a Hessian for each problem pays
MIN_SEGMENT_ROWS = 50  # that a sample has of each segment


def worthwhile(problem: Problem) -> bool:
    """Whether many problems on these data are best solved in shared passes: few columns, whose
    means are not so far from 0 that Hessians lose digits."""
    far = problem.units is not None and problem.units.is_far
    return problem.d <= MAX_COLUMNS and not far


class ManySums(NamedTuple):
    """Sums of k problems."""

    losses: Array  # (k,)
    errors: Array  # (k,)
    G: Array  # (k, d+1)
    H: Array | None = None  # (k, d+1, d+1)

    def merge(self, other: ManySums) -> ManySums:
        H = None if self.H is None or other.H is None else self.H + other.H
        losses, errors = self.losses + other.losses, self.errors + other.errors
        return ManySums(losses, errors, self.G + other.G, H)


class SweepManyTask(NamedTuple):
    """Sums of many two-class problems at the weights V (k, d+1)."""

    loss: int
    signs: Array  # (groups, k)
    V: Array
    order: int

    def flops(self, X: Rows) -> int:
        hessian = 1 + (self.order == 2) * X.shape[1] // 4
        return sweep_flops(X, len(self.V), 1) * hessian

    def __call__(self, kernels: Kernels, batch: Batch, n_threads: int) -> ManySums:
        k = len(self.V)
        X = cast(Rows, batch.X)
        grid = sweep_grid(X, k, self.order, float32=False, hessian_blocks=k)
        arguments = batch, self.loss, self.signs, self.V, self.order, grid, n_threads
        return ManySums(*kernels.sweep_many(*arguments))


def sweep_many(data: RowSums, signs: Array, V: Array, order: int) -> ManySums:
    """Sums over rows as they are, of problems whose targets are row groups."""
    sums = data.source.reduce(SweepManyTask(data.loss, signs, V, order))
    finite = np.isfinite(sums.losses).all() and (order == 0 or np.isfinite(sums.G).all())
    if not finite:
        data.X.check_finite()
        if np.abs(V).max() <= 1:
            raise_too_large(data.X)
    H = None if sums.H is None else data.unit * sums.H
    return ManySums(data.unit * sums.losses, data.unit * sums.errors, data.unit * sums.G, H)


class Segment(NamedTuple):
    """Some rows, and the problems that they belong to."""

    data: RowSums  # whose targets are row groups
    signs: Array  # (groups, k) int8: 1, -1, or 0 for groups that a problem excludes
    problems: Array  # (k,) the numbers of the problems


class LastEvaluations:
    """A cache of the last evaluation of each problem: see `row_sums.LastEvaluation`."""

    def __init__(self, P: int, D: int):
        self.V = np.full((P, D), np.nan)
        self.sums = ManySums(np.zeros(P), np.zeros(P), np.zeros((P, D)))


class SharedRows:
    """The penalised losses of P problems, each a function of its weights (1, d+1).

    Rows are in one segment, or in several that differ in the problems they belong to: rows grouped
    by class, for example, where each class belongs to K - 1 pairs. Sums over segments add up.
    """

    convex = True
    capabilities = frozenset({Capability.HESSIAN, Capability.SAMPLE})

    def __init__(
        self,
        segments: list[Segment],
        units: Units | None,
        penalty: Penalty,
        cache: LastEvaluations | None = None,
    ):
        self.segments, self.penalty, self.shape = segments, penalty, penalty.shape
        d = self.shape[1] - 1
        self.units = Units(np.zeros(d), np.ones(d)) if units is None else units
        self.n_problems = 1 + max(int(segment.problems.max()) for segment in segments)
        new = LastEvaluations(self.n_problems, d + 1)
        self.last_evaluations = new if cache is None else cache

    @classmethod
    def of(cls, problem: Problem, signs: Array, l2: float) -> SharedRows:
        """All rows of a Problem, whose targets are row groups, in one segment."""
        signs = np.asarray(signs, np.int8)
        segment = Segment(problem.data, signs, np.arange(signs.shape[1]))
        return cls([segment], problem.units, problem.penalty(l2))

    def with_penalty(self, penalty: Penalty) -> SharedRows:
        """The same problems with another penalty."""
        return SharedRows(self.segments, self.units, penalty, self.last_evaluations)

    @cached_property
    def n_rows(self) -> int:
        """Rows of the smallest problem."""
        counts = np.zeros(self.n_problems)
        for data, signs, problems in self.segments:
            groups = data.source.class_counts
            counts[problems] += groups @ (signs[: len(groups)] != 0)
        return int(counts.min())

    def use_float64(self) -> SharedRows:
        """Products are always in float64."""
        return self

    def sample(self, m: int, seed: int, by_norm: bool = False) -> SharedRows:
        """The same problems on a sample of which the smallest problem has about m rows."""
        if m >= self.n_rows:
            return self
        share, segments = m / self.n_rows, []
        for segment in self.segments:
            rows = segment.data.n_rows
            if rows:
                wanted = max(MIN_SEGMENT_ROWS, int(share * rows))
                segments.append(segment._replace(data=segment.data.sample(wanted, seed)))
        return SharedRows(segments, self.units, self.penalty)

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        raise NotImplementedError("problems over shared rows have no Kronecker factors")

    def evaluate(self, W: Sequence[Array], problems: Array, order: int) -> list[Evaluation]:
        weights = np.vstack(W)
        V = self.units.to_raw(weights)
        sums = self._raw(V, problems, 2) if order == 2 else self._cached(V, problems, order)
        G, H = self.units.pull_back(sums.G), None
        if sums.H is not None:
            H = self.units.pull_back_matrix(sums.H)
            for block in H:
                self.penalty.add_hessian(block)
        self.penalty.add_gradient(weights, G)
        values = sums.losses + self.penalty.values(weights)
        return [
            Evaluation(values[i], sums.errors[i], G[i : i + 1], None if H is None else H[i])
            for i in range(len(problems))
        ]

    def _cached(self, V: Array, problems: Array, order: int) -> ManySums:
        """Sums at V; only problems that were not evaluated there last are evaluated."""
        cache = self.last_evaluations
        new = (cache.V[problems] != V).any(axis=1)
        if new.any():
            sums = self._raw(V[new], problems[new], order)
            cache.V[problems[new]] = V[new]
            for values, found in zip(cache.sums[:3], sums[:3], strict=True):
                values[problems[new]] = found
        return ManySums(*(values[problems] for values in cache.sums[:3]))

    def _raw(self, V: Array, problems: Array, order: int) -> ManySums:
        """Sums for weights of the features as they are, without the penalty."""
        k, D = V.shape
        H = np.zeros((k, D, D)) if order == 2 else None
        total = ManySums(np.zeros(k), np.zeros(k), np.zeros((k, D)), H)
        for data, signs, own in self.segments:
            _, mine, theirs = np.intersect1d(problems, own, assume_unique=True, return_indices=True)
            if not len(mine):
                continue
            chosen = np.ascontiguousarray(signs[:, theirs])
            sums = sweep_many(data, chosen, np.ascontiguousarray(V[mine]), order)
            total.losses[mine] += sums.losses
            total.errors[mine] += sums.errors
            total.G[mine] += sums.G
            if H is not None and sums.H is not None:
                H[mine] += sums.H
        return total
