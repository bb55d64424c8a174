"""The contract of a data source, and the source that holds its rows in memory.

A source runs a task over its rows and merges the partial sums in a fixed order (`reduce`), and
draws reproducible samples (`draw`). Tasks need no more than that; `RowSums` still needs the members
of `MemorySource` that concern its batch, its classes and its columns.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from .. import runtime
from .._kernels.contract import Array, Batch, Kernels
from .rows import RowIndex, Rows, finite_moments, unit_scale
from .sampling import stratified_rows

MIN_CLASS_ROWS = 50  # rows of each class that a sample has, unless there are fewer
COUNT_SLICE = 1 << 16  # codes that are counted at a time: bincount makes 64-bit copies


class PartialSums(Protocol):
    """What a task returns for some rows. Sums over parts merge to the sums over all rows."""

    def merge(self, other: Any) -> Self: ...


S = TypeVar("S", bound=PartialSums, covariant=True)


class Task(Protocol[S]):
    """A pass over rows."""

    def flops(self, X: Rows) -> int:
        """About how many operations the pass takes: what decides whether threads pay."""
        ...

    def __call__(self, kernels: Kernels, batch: Batch, n_threads: int) -> S:
        """The sums over a batch. Kernels divide it into chunks and merge those in order."""
        ...


class Source(Protocol):
    """Where batches of rows, targets, weights and offsets come from."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def total_weight(self) -> float: ...

    def reduce(self, task: Task[S]) -> S:
        """Run a task over all rows and merge the partial sums in the order of the rows."""
        ...

    def draw(self, m: int, seed: int, by_norm: bool = False) -> MemorySource:
        """A sample of about m rows, weighted so that its sums estimate those of all rows; all rows,
        as they are, if there are no more than m.

        The choice depends on row numbers, m and the seed alone. With `by_norm`, rows are drawn with
        probabilities that grow with their standardised norm.
        """
        ...


class MemorySource:
    """Rows in memory: one batch."""

    def __init__(self, batch: Batch, *, backend: str | None = None, n_threads: int | None = None):
        self.batch, self.backend, self.n_threads = batch, backend, n_threads
        self.X: Rows = batch.X  # type: ignore[assignment]
        self.kernels = runtime.kernels(backend)

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    def reduce(self, task: Task[S]) -> S:
        with runtime.threads(self.n_threads, task.flops(self.X)) as n:
            return task(self.kernels, self.batch, n)

    def like(self, batch: Batch) -> MemorySource:
        """Another batch with the same backend and threads."""
        return MemorySource(batch, backend=self.backend, n_threads=self.n_threads)

    def with_weights(self, s: Array) -> MemorySource:
        """The same rows with other weights."""
        return self.like(self.batch._replace(s=s))

    def take(self, rows: RowIndex, factors: Array | float = 1.0) -> MemorySource:
        """Some of the rows, their weights multiplied."""
        _, r, s, o = self.batch
        weight = np.asarray((s[rows] if len(s) > 1 else s) * factors).reshape(-1)
        return self.like(Batch(self.X.take(rows), r[rows], weight, o[rows] if len(o) else o))

    def columns(self, chosen: Array) -> MemorySource:
        """Some of the columns, copied."""
        return self.like(self.batch._replace(X=self.X.columns(chosen)))

    @cached_property
    def class_counts(self) -> Array:
        """Rows of each class."""
        r = self.batch.r
        K = int(r.max()) + 1
        if K == 2:
            ones = np.count_nonzero(r)
            return np.array([self.n_rows - ones, ones])
        parts = (r[lo : lo + COUNT_SLICE] for lo in range(0, len(r), COUNT_SLICE))
        return sum((np.bincount(part, minlength=K) for part in parts), np.zeros(K, np.int64))

    @cached_property
    def class_weights(self) -> Array:
        """The weight of the rows of each class."""
        s = self.batch.s
        return self.class_counts * s[0] if len(s) == 1 else np.bincount(self.batch.r, s)

    @property
    def class_fractions(self) -> Array:
        """The share of each class in the weight."""
        return self.class_weights / self.class_weights.sum()

    @property
    def total_weight(self) -> float:
        return float(self.class_weights.sum())

    def moments(self) -> tuple[Array, Array]:
        """Weighted mean and standard deviation of each column."""
        return finite_moments(self.X, self.batch.s)

    @cached_property
    def row_norms(self) -> Array:
        """The mean square of each row's standardised features, (N,)."""
        mean, deviation = self.moments()
        return self.X.row_squares(mean, unit_scale(deviation)) / self.n_columns

    def draw(self, m: int, seed: int, by_norm: bool = False) -> MemorySource:
        """As `Source.draw`. A class of which the sample would have too few rows is drawn more
        densely; the weight of each class is preserved."""
        if m >= self.n_rows:
            return self
        rng, r = np.random.default_rng(seed), self.batch.r
        if by_norm:
            rows, factors = self._draw_by_norm(m, rng)
        else:
            rows = stratified_rows(self.n_rows, int(m), rng)
            factors = np.ones(len(rows))
        rows, factors = self._add_rare_classes(rows, factors, m, rng)
        s, K = self.batch.s, len(self.class_counts)
        weight = factors * (s[rows] if len(s) > 1 else s[0])
        drawn = np.bincount(r[rows], weight, K)
        if not (drawn[self.class_weights > 0] > 0).all():
            return self  # weights so uneven that a class was missed
        share = np.divide(self.class_weights, drawn, out=np.zeros(K), where=drawn > 0)
        return self.take(rows, factors * share[r[rows]])

    def _draw_by_norm(self, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        likely = 0.5 + 0.5 * self.row_norms
        p = np.minimum(1, m * likely / likely.sum())
        p = np.minimum(1, p * m / p.sum())
        rows = np.flatnonzero(rng.random(self.n_rows) < p)
        return rows, 1 / p[rows]

    def _add_rare_classes(
        self, rows: Array, factors: Array, m: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Replace the rows of classes that have too few in the sample by a denser draw."""
        r, counts = self.batch.r, self.class_counts
        found = np.bincount(r[rows], minlength=len(counts))
        wanted = np.minimum(counts, max(MIN_CLASS_ROWS, m // (8 * len(counts))))
        for k in np.flatnonzero(found < wanted):
            own = np.flatnonzero(r == k)
            if counts[k] > 2 * wanted[k]:
                own = rng.choice(own, wanted[k], replace=False)
            keep = r[rows] != k
            rows = np.concatenate([rows[keep], own])
            factors = np.concatenate([factors[keep], np.ones(len(own))])
            order = np.argsort(rows, kind="stable")
            rows, factors = rows[order], factors[order]
        return rows, factors
