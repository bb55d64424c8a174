"""Epochs of online ranking: pairs in random order, one update (10.49) after the other."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array
from .._kernels.enums import PairLoss
from .pair_sums import PairSums
from .query_sums import QuerySums

STEP_SAMPLE_PAIRS = 1000  # from which the step size is estimated


class PairEpochs:
    """The pairs of an objective, drawn anew for each epoch: all of them if they are at most
    `max_pairs`."""

    def __init__(
        self,
        data: QuerySums | PairSums,
        *,
        eta: float | str,
        max_pairs: int,
        rng: np.random.Generator,
    ):
        data.X.check_finite()  # a NaN margin looks like an ordered pair: no update would show it
        self.data, self.max_pairs, self.rng, self.n_pairs = data, max_pairs, rng, data.n_pairs
        self.eta = self._safe_step() if isinstance(eta, str) else eta

    def _safe_step(self) -> float:
        """1 over the mean squared distance of the rows of a pair.

        Steps of the squared hinge grow with the error: one that is more than twice too long for a
        pair increases its loss. For it, 1 over twice the largest square, times the pair's weight.
        """
        if not self.n_pairs:
            return 1.0
        count = min(STEP_SAMPLE_PAIRS, self.n_pairs)
        places = np.linspace(0, self.n_pairs - 1, count).astype(np.int64)
        pairs, s = self.data.draw_pairs(places)
        X = self.data.X
        D = X.take(pairs[:, 0]).dense() - X.take(pairs[:, 1]).dense()
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", D, D)
            square = squares.mean()
            if self.data.rule.loss == PairLoss.SQUARED_HINGE:
                square = 2 * (s * squares).max()
        return float(1 / square) if square > 0 else 1.0

    @property
    def updates_end(self) -> bool:
        """Whether updates may cease: the logistic loss updates at every pair, and the squared hinge
        in ever smaller steps."""
        return self.data.rule.loss == PairLoss.HINGE

    def start(self) -> Array:
        """Zeros; small random weights, as in figure 10.6, for the hinge without a margin, which
        zeros minimise."""
        d, rule = self.data.X.shape[1], self.data.rule
        plain = rule.loss == PairLoss.HINGE and rule.margin == 0
        return self.rng.uniform(-0.01, 0.01, d) if plain else np.zeros(d)

    def run(self, w: Array, share: float = 1.0) -> int:
        """One epoch, in steps of `share` times eta; w is changed. The number of updates."""
        if self.n_pairs <= self.max_pairs:
            places = self.rng.permutation(self.n_pairs)
        else:
            places = self.rng.integers(0, self.n_pairs, self.max_pairs)
        pairs, s = self.data.draw_pairs(places)
        weight, step = np.ascontiguousarray(s), share * self.eta
        arguments = self.data.X, pairs, weight, w, step, self.data.rule
        updates = self.data.kernels.online_pairs(*arguments)
        if not np.isfinite(w).all():
            raise ValueError(
                f"the weights diverged with steps of {self.eta:g}: take a smaller eta, or scale "
                "the columns"
            )
        return updates

    def is_ordered(self, w: Array, updates: int) -> bool:
        """Whether all pairs are in order; an epoch over all pairs without updates shows it."""
        if updates or not self.n_pairs:
            return False
        if self.n_pairs <= self.max_pairs:
            return True
        _, errors = self.data.value_and_errors(np.concatenate([[0.0], w])[None, :])
        return errors == 0
