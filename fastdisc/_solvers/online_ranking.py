"""Online ranking: epochs of updates until none is left, or no fewer than before."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._kernels.contract import Array
from .result import History

MAX_EPOCHS_WITHOUT_GAIN = 5  # epochs in which the updates do not become fewer
MIN_CHANGE = 1e-3  # of the weights in an epoch, relative, for losses whose updates never end


class Epochs(Protocol):
    """What the solver asks of the pairs."""

    @property
    def updates_end(self) -> bool: ...

    def run(self, w: Array, share: float = 1.0) -> int: ...

    def is_ordered(self, w: Array, updates: int) -> bool: ...


def solve(
    epochs: Epochs, w: Array, *, max_iter: int, verbose: int = 0
) -> tuple[Array, History, bool]:
    """Run epochs; the weights, the history of updates, and whether the solver converged.

    1. an epoch; the steps of losses whose updates never end shrink as 1 / sqrt(epoch)
    2. stop if no pair is left to learn from, or if the weights of such losses no longer change
    3. stop if the updates have not become fewer for some epochs

    The weights are the last; for the hinge those after the epoch with the fewest updates.
    """
    history: History = {"updates": []}
    fewest, best, waited = np.inf, w.copy(), 0
    endless = not epochs.updates_end
    for n_iter in range(1, max_iter + 1):
        before = w.copy()
        updates = epochs.run(w, n_iter**-0.5 if endless else 1.0)  # 1
        history["updates"].append(updates)
        if verbose:
            print(f"[online] {n_iter:>5}  updates {updates}", flush=True)
        waited = 0 if updates < fewest else waited + 1
        if updates < fewest or endless:
            fewest, best = updates, w.copy()
        unchanged = np.linalg.norm(w - before) <= MIN_CHANGE * np.linalg.norm(w)
        if (endless and unchanged) or epochs.is_ordered(w, updates):  # 2
            return w, history, True
        if waited >= MAX_EPOCHS_WITHOUT_GAIN and not endless:  # 3
            break
    return best, history, False
