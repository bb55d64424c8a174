"""How times are taken: in one process, in turn, best of several; and the time that reading the data takes at all."""

from __future__ import annotations

import time

import numpy as np
from numba import njit, prange, set_num_threads


def best_of(calls, rounds=7):
    """The best time of each call, in seconds; the calls take turns, so that a slow spell of the machine hits all alike."""
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


@njit(parallel=True, fastmath=True, cache=True)
def _read(words, parts):
    for c in prange(len(parts)):
        total = 0.0
        for i in range(c * 8192, (c + 1) * 8192):
            total += words[i]
        parts[c] = total


def reader(X, n_threads):
    """A call that reads all of X once, front to back, and does no more than add it up."""
    words = X.reshape(-1).view(np.uint8)
    words = words[: len(words) // 65536 * 65536].view(np.float64)
    parts = np.empty(len(words) // 8192)

    def read():
        set_num_threads(n_threads)
        _read(words, parts)

    read()
    return read
