"""Basis functions as the kernels read them: a table with one line per part of the basis.

A part maps a row x (d,) to some features (10.3). Its kind, its parameters and its number of
features are all that a kernel needs. `_numpy/basis.py` is the reference of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .contract import Array
from .enums import BasisKind

TABLE_COLUMNS = 7


class Part(NamedTuple):
    """One basis function. `function`, of CUSTOM, maps rows (n, d) to features (n, width); kernels
    call it by its `address`."""

    kind: BasisKind
    width: int
    ints: Array = np.zeros(0, np.int64)
    reals: Array = np.zeros(0)
    size: int = 0  # steps of PRODUCTS, parameter pairs of functions of one column, n of the others
    function: Callable[..., Any] | None = None
    address: int = 0


def padded(n: int) -> int:
    """Doubles of a row of n that is padded to whole cache lines."""
    return -(-n // 8) * 8


def padded_transpose(A: Array) -> Array:
    """A' as the kernels read it: (d, n), flattened, each row padded with zeros."""
    rows = np.zeros((A.shape[1], padded(len(A))))
    rows[:, : len(A)] = A.T
    return rows.ravel()


class Program(NamedTuple):
    """The parts of a basis: a table line for each, and their parameters in two flat arrays."""

    parts: tuple[Part, ...]
    # (parts, TABLE_COLUMNS) int64: kind, first feature, width, first int, first real, size, address
    table: Array
    ints: Array
    reals: Array
    width: int  # features of all parts

    def same(self, other: Program) -> bool:
        """Whether another program computes the same features."""
        arrays = zip(self[1:4], other[1:4], strict=True)
        return self.width == other.width and all(np.array_equal(a, b) for a, b in arrays)


def assemble(parts: Sequence[Part]) -> Program:
    """The program of some parts."""
    sizes = [(part.width, len(part.ints), len(part.reals)) for part in parts]
    ends = np.cumsum(sizes, axis=0)
    begins = (ends - sizes).tolist()
    lines = [
        (part.kind, first, part.width, first_int, first_real, part.size, part.address)
        for part, (first, first_int, first_real) in zip(parts, begins, strict=True)
    ]
    ints = np.concatenate([*(part.ints for part in parts), np.zeros(1)]).astype(np.int64)
    reals = np.concatenate([*(part.reals for part in parts), np.zeros(1)]).astype(np.float64)
    return Program(tuple(parts), np.array(lines, np.int64), ints, reals, int(ends[-1, 0]))
