"""Measurement of time and memory. Times are the best of several calls that alternate in one
process, so that all of them are affected alike if the machine is slow for a while."""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numba import njit, prange, set_num_threads
from sklearn.exceptions import ConvergenceWarning

# Seconds before a call is timed: threads of OpenBLAS spin for 0.11 s after their last call, and
# occupy a CPU that the next call needs.
PAUSE = 0.15
READ_CHUNK = 8192  # float64 values of a chunk

Call = Callable[..., Any]


def best_of(calls: Sequence[Call], rounds: int = 7) -> list[float]:
    """The best time of each call, in seconds."""
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = perf_counter()
            call()
            best[i] = min(best[i], perf_counter() - begin)
    return best


def timed(call: Call, *arguments: Any) -> tuple[float, Any]:
    """The seconds of a call after a pause, and its result. Convergence warnings are ignored: the
    benchmarks report how far from the optimum a solver stopped."""
    sleep(PAUSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = perf_counter()
        found = call(*arguments)
        return perf_counter() - begin, found


def best_timed(calls: Sequence[Call], rounds: int, slow_rounds: int | None = None) -> list[float]:
    """The best time of each call, each after a pause; of `slow_rounds` calls that take more than a
    second."""
    limit = rounds if slow_rounds is None else slow_rounds
    best = [np.inf] * len(calls)
    for turn in range(rounds):
        for i, call in enumerate(calls):
            if turn < limit or best[i] <= 1.0:
                best[i] = min(best[i], timed(call)[0])
    return best


@njit(parallel=True, fastmath=True, cache=True)
def _sum_chunks(words: Any, sums: Any) -> None:
    for c in prange(len(sums)):
        total = 0.0
        for i in range(c * READ_CHUNK, (c + 1) * READ_CHUNK):
            total += words[i]
        sums[c] = total


def reader(X: np.ndarray, n_threads: int) -> Call:
    """A function that reads all of X once, in order, and only sums it."""
    words, size = X.reshape(-1).view(np.uint8), 8 * READ_CHUNK
    words = words[: len(words) // size * size].view(np.float64)
    sums = np.empty(len(words) // READ_CHUNK)

    def read() -> None:
        set_num_threads(n_threads)
        _sum_chunks(words, sums)

    read()
    return read


def in_child(function: Call, *arguments: Any) -> Any:
    """function(*arguments) in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def memory(call: Call) -> int:
    """The peak memory of a call in bytes, beyond what this process has before it (Linux).

    Not from ru_maxrss: that of a child begins with its parent's, and it cannot be reset after the
    data have been made.
    """
    ctypes.CDLL(None).malloc_trim(0)  # freed memory that was not returned would hide as much
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_memory()
    call()
    return peak_memory() - before


def peak_memory() -> int:
    """The peak resident memory of this process, in bytes."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])
