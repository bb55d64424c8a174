"""Visits of all rows, one after the other: data and their order behind one call that changes the weights. Online solvers see
nothing else of the data."""

from __future__ import annotations

import numpy as np

from . import _config
from ._kernels import CSR, Walk
from ._rows import canonical
from ._sweep import work
from ._validate import check_finite

# Bytes that are read in one go where runs of rows are shuffled: with a quarter of it memory is waited for (1M x 28: 35 ms, 26).
RUN = 1 << 17
MIXED = 256  # runs, at least: fewer of them would be no shuffle


def stretches(r):
    """Whether neighbours in r are alike far more often than by chance: rows are sorted by class, say."""
    some = r[: 1 << 20]
    shares = np.bincount(some) / len(some)
    chance = float(shares @ shares)
    return float((some[1:] == some[:-1]).mean()) > chance + 0.2 * (1 - chance) if len(some) > 1 else False


class State:
    """What an online rule carries from row to row: weights W (K, d+1), their sums U, the account Q of the L1 penalty, a clock."""

    def __init__(self, W, *, average=False, l1=False):
        empty = W[:0]
        self.W, self.clock = W, np.zeros(2)
        self.U, self.Q = (np.zeros_like(W) if wanted else empty.copy() for wanted in (average, l1))

    def want(self, *, average, l1):
        """Make room for sums, or for the account, where the rule asks for them only now."""
        if average and not len(self.U):
            self.U = np.zeros_like(self.W)
            self.U += self.clock[0] * self.W  # as if the weights so far had always been these
        if l1 and not len(self.Q):
            self.Q = np.zeros_like(self.W)

    def copy(self):
        other = State(self.W.copy())
        other.U, other.Q, other.clock = self.U.copy(), self.Q.copy(), self.clock.copy()
        return other

    def weights(self, begin):
        """The average of the weights since row `begin`, or the last ones where there is none."""
        rows = self.clock[0] - (begin - 1)
        return self.U / rows if len(self.U) and rows > 0 else self.W


class Visits:
    """Every row once, in an order that `shuffle` says: False, True for runs of rows, "rows" for single ones."""

    def __init__(self, X, r, s, *, shuffle=False, seed=0, backend=None, n_threads=None):
        self.X, self.r, self.s = canonical(X), r, s
        self.shuffle, self.rng = shuffle, np.random.default_rng(seed)
        self.kernels, self.n_threads = _config.kernels(backend), n_threads
        rows, width = X.shape[0], (12 * len(X.data) // max(1, X.shape[0]) if isinstance(X, CSR) else X.shape[1] * X.itemsize)
        run = min(RUN // max(1, width), rows // MIXED) // 4 * 4
        single = shuffle == "rows" or (shuffle and stretches(r))  # a run of one class would teach that class alone
        self.run = 1 if single else max(1, run) if shuffle else 512

    def walk(self):
        """The order of the next visit."""
        runs = -(-self.X.shape[0] // self.run)
        return Walk(self.rng.permutation(runs) if self.shuffle else np.arange(runs), self.run)

    def __call__(self, state, rule):
        """Visit all rows: the sum of losses, and the number of updates. The state changes."""
        with _config.threads(self.n_threads, work(self.X, len(state.W), 1)) as n, np.errstate(over="ignore", invalid="ignore"):
            loss, updates = self.kernels.online(
                self.X, self.r, self.s, state.W, state.U, state.Q, state.clock, rule, self.walk(), n
            )
        if not (np.isfinite(loss) and np.isfinite(state.W).all() and np.isfinite(state.U).all()):
            check_finite(self.X)
            raise ValueError(f"the weights ran away with steps of {rule.eta:g}: take smaller ones, or scale the columns")
        return loss, updates

    def total(self):
        """The weight of all rows."""
        return float(self.s[0] * self.X.shape[0] if len(self.s) == 1 else self.s.sum())
