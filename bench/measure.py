"""How times are taken: in one process, in turn, best of several; the time that reading the data takes at all; and memory."""

from __future__ import annotations

import ctypes
import re
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

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


def in_child(function, *arguments):
    """function(*arguments) in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def memory(call):
    """Bytes that a call needs at most, beyond what this process holds before it (Linux).

    Not by ru_maxrss: a child starts with its parent's, and it cannot be set back after the data have been made.
    """
    ctypes.CDLL(None).malloc_trim(0)  # what has been freed but not given back would hide as much
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    call()
    return peak() - before


def peak():
    """The most that this process has held, in bytes."""
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
