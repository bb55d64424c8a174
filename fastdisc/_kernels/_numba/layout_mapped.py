"""Mapped rows: the features of a block are computed when it is fetched."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from ..contract import Array, Grid, KernelRows
from ..enums import BasisKind
from .basis import call_at, expander
from .codes import checked
from .layouts import ARGUMENTS, arguments, fetch
from .options import driver, implements, jit
from .sweep import chunk_count, plain_grid
from .threads import run

EMPTY = np.empty(0, np.int64), np.empty(0), np.empty(0)


class MappedArguments(NamedTuple):
    """What jitted code takes for mapped rows."""

    inputs: Array
    # The address of `expand_rows`, then address and length of each array that it reads. They are
    # valid while the rows object lives.
    program: Array


def mapped_arguments(X: Any) -> MappedArguments:
    for kind in X.program.table[:, 0]:
        checked("basis kind", kind, BasisKind)
    options = X.chosen, X.mean, X.scale
    given = (none if some is None else some for some, none in zip(options, EMPTY, strict=True))
    arrays = X.program.table, X.program.ints, X.program.reals, *given
    numbers = [number for array in arrays for number in (array.ctypes.data, len(array))]
    return MappedArguments(arguments(X.inputs), np.array([expander().address, *numbers], np.int64))


ARGUMENTS["mapped"] = mapped_arguments


@jit()
def expand_block(X: MappedArguments, lo: int, m: int, buffer: Array) -> None:
    """The features of rows lo to lo + m"""
    inputs, p = X
    d = inputs.shape[1]
    x = np.empty((m, d))
    for i in range(m):
        for j in range(d):
            x[i, j] = inputs[lo + i, j]
    program = p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12]
    rows, features = np.int64(x.ctypes.data), np.int64(buffer.ctypes.data)
    call_at(p[0], (*program, rows, m, d, features, np.int64(buffer.shape[1])))


@implements(fetch, MappedArguments)
def fetch_mapped(X: MappedArguments, lo: int, m: int, buffer: Array) -> Array:
    expand_block(X, lo, m, buffer)
    return buffer


@driver
def expand_driver(X: Any, n: int, grid: Grid, out: Array) -> None:
    for c in prange((n + grid.chunk - 1) // grid.chunk):
        for lo in range(c * grid.chunk, min(n, c * grid.chunk + grid.chunk), grid.block):
            hi = min(n, c * grid.chunk + grid.chunk, lo + grid.block)
            fetch(X, lo, hi - lo, out[lo:hi])


def expand(X: KernelRows, grid: Grid, n_threads: int) -> Array:
    """The features of mapped rows: (10.3), (10.35)."""
    if X.layout != "mapped":
        raise ValueError(f"expand takes mapped rows, got layout {X.layout!r}")
    n, out = X.shape[0], np.empty(X.shape)
    run(expand_driver, n_threads, chunk_count(X, grid), arguments(X), n, plain_grid(grid), out)
    return out
