"""Online ranking: pairs in random order, one update (10.49) after the other."""

from __future__ import annotations

import numpy as np

from ._kernels import PairLoss
from ._rows import dense, take_rows
from ._validate import check_finite

PATIENCE = 5  # epochs in which the updates do not become fewer
STILL = 1e-3  # change of the weights in an epoch, relative, of the losses whose updates never end


class Stream:
    """Pairs of a sweep, drawn anew for each epoch: all of them where there are no more than `most`."""

    def __init__(self, sweep, *, eta, most, rng):
        check_finite(sweep.X)  # a margin that is NaN looks like a pair in order: no update would tell
        self.sweep, self.most, self.rng, self.count = sweep, most, rng, sweep.count()
        self.eta = self._safe() if isinstance(eta, str) else eta

    def _safe(self, some=1000):
        """1 over the mean squared distance of a pair's rows, of some pairs.

        Steps of the squared hinge grow with the error: one that is more than twice too long for a pair makes that larger. There
        it is 1 over twice the largest square, times the pair's weight.
        """
        if not self.count:
            return 1.0
        pairs, s = self.sweep.draw(np.linspace(0, self.count - 1, min(some, self.count)).astype(np.int64))
        D = dense(take_rows(self.sweep.X, pairs[:, 0])) - dense(take_rows(self.sweep.X, pairs[:, 1]))
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", D, D)
            square = 2 * (s * squares).max() if self.sweep.rule.loss == PairLoss.SQUARED_HINGE else squares.mean()
        return float(1 / square) if square > 0 else 1.0

    def start(self):
        """Zeros; small random weights, as in figure 10.6, for the hinge without a margin, which zeros satisfy."""
        d = self.sweep.X.shape[1]
        plain = self.sweep.rule.loss == PairLoss.HINGE and self.sweep.rule.margin == 0
        return self.rng.uniform(-0.01, 0.01, d) if plain else np.zeros(d)

    def epoch(self, w, share=1.0):
        """One pass, in steps of `share` times eta; w is changed; the number of updates."""
        few = self.count <= self.most
        places = self.rng.permutation(self.count) if few else self.rng.integers(0, self.count, self.most)
        pairs, s = self.sweep.draw(places)
        updates = self.sweep.kernels.rank_pairs(
            self.sweep.X, pairs, np.ascontiguousarray(s), w, share * self.eta, self.sweep.rule
        )
        if not np.isfinite(w).all():
            raise ValueError(f"the weights ran away with steps of {self.eta:g}: take a smaller eta, or scale the columns")
        return updates

    def settled(self, w, updates):
        """Whether no pair is left to learn from: an epoch without updates tells, if it went through all pairs."""
        if updates or not self.count:
            return False
        return self.count <= self.most or self.sweep(np.concatenate([[0.0], w])[None, :], 0).errors == 0

    def learn(self, w, max_iter, verbose=0):
        """Epochs until there are no updates, or no fewer than before: weights, history, converged.

        The logistic loss updates at every pair, and the squared hinge in ever smaller steps: theirs shrink with the epoch, and
        they end when the weights stand still. The weights are the last; for the hinges those after the epoch with the fewest
        updates.
        """
        history, best, kept, waited = {"updates": []}, np.inf, w.copy(), 0
        endless = self.sweep.rule.loss != PairLoss.HINGE
        for n_iter in range(1, max_iter + 1):
            before = w.copy()
            updates = self.epoch(w, n_iter**-0.5 if endless else 1.0)
            history["updates"].append(updates)
            if verbose:
                print(f"[online] {n_iter:>5}  updates {updates}", flush=True)
            waited = 0 if updates < best else waited + 1
            if updates < best or endless:
                best, kept = updates, w.copy()
            still = endless and np.linalg.norm(w - before) <= STILL * np.linalg.norm(w)
            if still or self.settled(w, updates):
                return w, history, True
            if waited >= PATIENCE and not endless:
                break
        return kept, history, False
