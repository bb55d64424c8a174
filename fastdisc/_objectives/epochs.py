"""Epochs of an online rule: passes over all rows that update the weights row by row, and the state
that is carried from row to row."""

from __future__ import annotations

from typing import cast

import numpy as np

from .. import runtime
from .._data.outputs import sweep_flops
from .._data.rows import Rows
from .._kernels import Batch, OnlineRule, OnlineState, RowOrder
from .._kernels.contract import Array

# Bytes of a shuffled run of rows. With a quarter of this, an epoch waits for memory (1M x 28: 35 ms
# instead of 26).
MAX_RUN_BYTES = 1 << 17
MIN_SHUFFLED_RUNS = 256  # with fewer runs the order would hardly be random
SEQUENTIAL_RUN_ROWS = 512
MAX_INSPECTED_LABELS = 1 << 20
MAX_EQUAL_NEIGHBOURS = 0.2  # excess over chance, as a share of the largest possible excess


def initial_state(W: Array, *, average: bool = False, l1: bool = False) -> OnlineState:
    """A state at weights W (K, d+1), with the buffers that averaging or an L1 penalty need."""
    return with_buffers(OnlineState(W, W[:0], W[:0], np.zeros(2)), average=average, l1=l1)


def with_buffers(state: OnlineState, *, average: bool, l1: bool) -> OnlineState:
    """The same state with the buffers that a rule needs, if it does not have them.

    Sums of weights begin as if the weights had always been the present ones.
    """
    W, U, Q, clock = state
    if average and not len(U):
        U = clock[0] * W
    if l1 and not len(Q):
        Q = np.zeros_like(W)
    return OnlineState(W, U, Q, clock)


def copy_state(state: OnlineState) -> OnlineState:
    """A copy that can be updated independently."""
    return OnlineState(*(array.copy() for array in state))


def averaged_weights(state: OnlineState, begin: float) -> Array:
    """The average of the weights since row `begin`; the present weights if there is none."""
    n_averaged = state.clock[0] - (begin - 1)
    return state.U / n_averaged if len(state.U) and n_averaged > 0 else state.W


def is_sorted_by_class(r: Array) -> bool:
    """Whether neighbours in r are equal far more often than by chance."""
    some = r[:MAX_INSPECTED_LABELS]
    if len(some) < 2:
        return False
    shares = np.bincount(some) / len(some)
    chance = float(shares @ shares)
    equal = float((some[1:] == some[:-1]).mean())
    return equal > chance + MAX_EQUAL_NEIGHBOURS * (1 - chance)


class Epochs:
    """Epochs over the rows of a batch.

    `shuffle` selects the order of the rows: False for their own, True for a random order of runs of
    consecutive rows, "rows" for a random order of single rows.
    """

    def __init__(
        self,
        batch: Batch,
        *,
        shuffle: bool | str = False,
        seed: int = 0,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.X = cast(Rows, batch.X).canonical()
        self.batch = batch._replace(X=self.X)
        self.shuffle, self.rng = shuffle, np.random.default_rng(seed)
        self.kernels, self.n_threads = runtime.kernels(backend), n_threads
        self.run_rows = self._run_rows()

    def _run_rows(self) -> int:
        """The number of rows of a run."""
        if not self.shuffle:
            return SEQUENTIAL_RUN_ROWS
        # A run of a single class would train towards that class alone.
        if self.shuffle == "rows" or is_sorted_by_class(self.batch.r):
            return 1
        most = MAX_RUN_BYTES // max(1, self.X.bytes_per_row)
        return max(1, min(most, self.X.shape[0] // MIN_SHUFFLED_RUNS) // 4 * 4)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        s = self.batch.s
        return float(s[0] * self.X.shape[0] if len(s) == 1 else s.sum())

    def next_order(self) -> RowOrder:
        """The order of the next epoch."""
        n_runs = -(-self.X.shape[0] // self.run_rows)
        order = self.rng.permutation(n_runs) if self.shuffle else np.arange(n_runs)
        return RowOrder(order, self.run_rows)

    def run(self, state: OnlineState, rule: OnlineRule) -> tuple[float, int]:
        """Run an epoch: the sum of losses and the number of updates. The arrays of the state are
        updated."""
        flops = sweep_flops(self.X, len(state.W), 1)
        with (
            runtime.threads(self.n_threads, flops) as n,
            np.errstate(over="ignore", invalid="ignore"),
        ):
            loss, updates = self.kernels.online_epoch(self.batch, state, rule, self.next_order(), n)
        if not (np.isfinite(loss) and np.isfinite(state.W).all() and np.isfinite(state.U).all()):
            self.X.check_finite()
            raise ValueError(
                f"the weights diverged with steps of {rule.eta:g}: use smaller ones, or scale the "
                "columns"
            )
        return loss, updates
