"""Runs drivers on several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba

from .options import Driver

PROCESS = os.getpid()
_one_at_a_time = threading.Lock()


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """n threads for this call. The workqueue layer aborts if two Python threads enter it, so that
    with it they take turns."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(n)
        if threading_layer() in ("omp", "tbb"):
            yield
        else:
            with _one_at_a_time:
                yield
    finally:
        numba.set_num_threads(before)


def threading_layer() -> str:
    """Numba's threading layer; 'none yet' before the first parallel call."""
    try:
        return numba.threading_layer()
    except ValueError:
        return "none yet"


def run(driver: Driver, n_threads: int, chunks: int, *args: Any) -> None:
    """Run a driver on up to n_threads threads.

    One thread runs the parallel version too: the serial one is compiled separately and may round
    the last bit differently. A forked child runs the serial one, because Numba ends a process that
    enters its parent's thread pool.
    """
    if os.getpid() != PROCESS:
        driver.serial(*args)
        return
    with _threads(min(n_threads, chunks, numba.config.NUMBA_NUM_THREADS)):
        driver.parallel(*args)
