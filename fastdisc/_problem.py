"""From validated arrays to what a solver takes: the objective in coordinates that suit it, and the way there and back."""

from __future__ import annotations

import numpy as np

from ._rows import strata
from ._sweep import Penalized, Standardized

PILOT = 2048  # rows that tell a column's spread well enough to scale by


class Problem:
    """Data, coordinates and penalty of a linear model.

    `standardize` puts the penalty on the weights of standardised features. `rescale` only changes the coordinates in which the
    solver works, not what it minimises: the penalty is rescaled along. Sparse data are not rescaled.
    """

    def __init__(self, sweep, *, intercept=True, reference=None, standardize=False, rescale=True):
        self.raw, self.intercept, self.reference, self.standardize = sweep, intercept, reference, standardize
        self.d = sweep.X.shape[1]
        self.mean, self.scale, self.sweep = np.zeros(self.d), np.ones(self.d), sweep
        if standardize or (rescale and not sweep.sparse):
            self.mean, self.scale = self._moments(sweep, standardize)
            if not (standardize or intercept):
                self.scale, self.mean = np.hypot(self.mean, self.scale), np.zeros(self.d)
            self.sweep = Standardized(sweep, self.mean, self.scale)

    def _moments(self, sweep, exact):
        """Means and deviations of the columns, 1 for constant ones; on a sample unless they must be exact."""
        some = sweep
        if not exact and sweep.rows > PILOT:
            some = sweep.part(strata(sweep.rows, PILOT, np.random.default_rng(0)))
            some = some if some.total() else sweep
        try:
            mean, scale = some.moments()
        except ValueError:
            sweep.moments()  # names the cell by its place in all of X
            raise
        still = np.flatnonzero(scale == 0)
        if len(still) and some is not sweep:  # a column that is rarely other than 0, say: all rows tell
            mean[still], scale[still] = sweep.columns(still).moments()
        return mean, np.where(scale > 0, scale, 1.0)

    def penalized(self, l2, sweep=None):
        """The objective with this much of an L2 penalty."""
        sweep = self.sweep if sweep is None else sweep
        return Penalized(sweep, self.l2(l2), self.intercept, self.reference)

    def l2(self, l2):
        """The L2 penalty of each column, (d,)."""
        return self._per_column(l2, 2)

    def l1(self, l1):
        """The L1 penalty of each column, (d,)."""
        return self._per_column(l1, 1)

    def _per_column(self, strength, power):
        return np.full(self.d, float(strength)) / (1 if self.standardize else self.scale**power)

    def inward(self, V):
        """Weights of the features as they are, in the solver's coordinates."""
        return self.sweep.standard(V) if self.sweep is not self.raw else V.copy()

    def outward(self, W):
        """The solver's weights, for the features as they are."""
        return self.sweep.raw(W) if self.sweep is not self.raw else W
