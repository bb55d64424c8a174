"""The loss over given pairs of rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import runtime
from .._data.rows import Rows
from .._kernels._numpy.ranking import pair_values
from .._kernels.contract import Array, PairRule
from .._kernels.grid import pair_grid
from .score_sums import EMPTY, ScoreSums

# Multiply-adds that take as long as a given pair, 15 ns (2M hinge pairs of 100k rows on one thread:
# 31 ms).
FLOPS_PER_PAIR = 60
MAX_GATHERED_CELLS = 1 << 19  # of differences that are formed at a time for a Hessian


class PairSums(ScoreSums):
    """Loss, gradient and Hessian over (preferred, other) pairs of rows, (P, 2) int64; s is (P,) or
    (1,)."""

    def __init__(
        self,
        X: Rows,
        pairs: Array,
        s: Array,
        rule: PairRule,
        *,
        offset: Array = EMPTY,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        super().__init__(X, rule, offset=offset, backend=backend, n_threads=n_threads)
        self.pairs, self.s = pairs, s
        self.grid = pair_grid(self.n_rows, len(pairs))

    def pair_loss(self, z: Array) -> tuple[float, float, Array]:
        with runtime.threads(self.n_threads, FLOPS_PER_PAIR * len(self.pairs)) as n:
            return self.kernels.pair_loss(z, self.pairs, self.s, self.rule, self.grid, n)

    def curvature_product(self, z: Array, u: Array) -> Array:
        with runtime.threads(self.n_threads, FLOPS_PER_PAIR * len(self.pairs)) as n:
            arguments = z, u, self.pairs, self.s, self.rule, self.grid, n
            return self.kernels.pair_curvature_product(*arguments)

    @property
    def n_pairs(self) -> int:
        return len(self.pairs)

    @property
    def total_weight(self) -> float:  # type: ignore[override]
        return float(self.s.sum() if len(self.s) > 1 else self.s[0] * len(self.pairs))

    def pair_weights_of_rows(self) -> Array:
        return self._pair_weights_of_rows

    @cached_property
    def _pair_weights_of_rows(self) -> Array:
        s = np.broadcast_to(self.s, len(self.pairs))
        first, second = (np.bincount(side, s, self.n_rows) for side in self.pairs.T)
        return first + second

    def row_weights(self) -> Array:
        return self._pair_weights_of_rows

    def feature_hessian(self, W: Array) -> Array:
        """(d, d), from the differences of pairs, some of them at a time."""
        z, d = self.scores(W), self.X.shape[1]
        H, step = np.zeros((d, d)), max(64, MAX_GATHERED_CELLS // d)
        for lo in range(0, len(self.pairs), step):
            u, v = self.pairs[lo : lo + step].T
            s = self.s[lo : lo + step] if len(self.s) > 1 else self.s
            c = s * pair_values(z[v] - z[u] + self.rule.margin, self.rule)[2]
            curved = np.flatnonzero(c)  # few, if the corner is narrow
            D = self.X.take(u[curved]).dense() - self.X.take(v[curved]).dense()
            H += D.T @ (c[curved, None] * D)
        return H

    def replace(self, **changes: Any) -> PairSums:
        """The same objective except for the named arguments."""
        now = {name: getattr(self, name) for name in ("X", "pairs", "s", "rule")}
        return PairSums(**(now | self.options | changes))

    def draw_pairs(self, places: Array) -> tuple[Array, Array]:
        """The pairs at these places, and their weights."""
        return self.pairs[places], self.s[places] if len(self.s) > 1 else self.s

    def sample(self, m: int, seed: int, by_norm: bool = False) -> PairSums:
        """The objective of about m pairs of the same rows, weighted so that its sums estimate those
        of all pairs."""
        count = len(self.pairs)
        if m >= count or m >= self.n_rows:
            return self
        chosen = np.sort(np.random.default_rng(seed).permutation(count)[:m])
        s = (self.s[chosen] if len(self.s) > 1 else self.s) * (count / m)
        return self.replace(pairs=self.pairs[chosen], s=s)

    def columns(self, chosen: Array) -> PairSums:
        """The objective of some of the columns."""
        return self.replace(X=self.X.columns(chosen))
