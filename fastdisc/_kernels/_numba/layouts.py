"""What kernels do with rows, whatever their layout: the verbs, and the table of layouts.

A layout is a file of its own: an entry in ARGUMENTS, which turns a rows object into what jitted
code takes (an array, or a NamedTuple type that no other layout has), and implementations of the
verbs for that type. `fetch` is enough: it converts a block of rows into a dense buffer, for which
the verbs of dense arrays serve. A layout that is read in place (as CSR) implements all verbs, and
its NamedTuple has the class attribute `in_place = True`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

from ..contract import Array, KernelRows
from .options import Function

ARGUMENTS: dict[str, Callable[[Any], Any]] = {}


def arguments(X: KernelRows) -> Any:
    """The rows as jitted code takes them; an unknown layout is an error."""
    if X.layout not in ARGUMENTS:
        raise ValueError(f"the numba backend has no layout {X.layout!r}")
    return ARGUMENTS[X.layout](X)


# --- blocks of rows -------------------------------------------------------------------------------


def fetch(X: Any, lo: int, m: int, buffer: Array) -> Any:
    """Rows lo to lo + m as `score`, `accumulate` and `gram` take them: a part of the rows, the
    buffer (block, d) with the converted rows, or all rows of a layout that is read in place."""


def score(x: Any, lo: int, m: int, W: Array, w0: Array, Z: Array) -> None:
    """Z[k, i] = w_k' x_i + w_k0   (10.6)"""


def accumulate(x: Any, lo: int, m: int, E: Array, G: Array) -> None:
    """G[k, j] += sum_i e_ki x_ij   (10.24), (10.33)"""


def gram(x: Any, lo: int, m: int, c: Array, P: Array, Q: Array, H: Array) -> None:
    """H += sum_i c_i [1 x_i][1 x_i]', on and above the diagonal   (10.33); P and Q are buffers"""


# --- single rows ----------------------------------------------------------------------------------


def pick(X: Any, t: int, buffer: Array) -> Any:
    """Row t as the verbs below take it: rows and its number in them. `buffer` is (1, d)."""


@overload(pick, strict=False)
def _pick_by_fetch(X: types.Type, t: types.Type, buffer: types.Type) -> Function | None:
    """For layouts that are not read in place."""
    tuple_class = getattr(X, "instance_class", None)
    if isinstance(X, types.Array) or getattr(tuple_class, "in_place", False):
        return None
    return lambda X, t, buffer: (fetch(X, t, 1, buffer), 0)


def dot_row(x: Any, t: int, w: Array) -> float:  # type: ignore[empty-body]
    """w' x_t   (10.6)"""


def add_row(x: Any, t: int, a: float, w: Array) -> None:
    """w += a x_t   (10.24)"""


def copy_row(x: Any, t: int, out: Array) -> None:
    """out = x_t, in float64"""


def row_size(x: Any, t: int) -> int:  # type: ignore[empty-body]
    """The number of cells of row t that are read"""


def row_column(x: Any, t: int, i: int) -> int:  # type: ignore[empty-body]
    """The column of the i-th cell of row t"""


def add_moments(
    x: Any, t: int, k: int, s: float, shift: Array, kind: int, M: Array, S: Array
) -> None:
    """Row t of weight s added to the sums of its class k   (4.21); for COUNTS a layout that reads
    only stored cells counts relative to a cell that is 0"""


def add_scatter(
    x: Any, t: int, shift: Array, kind: int, P: Array, at: int, H: Array, s: float
) -> int:
    """Row t, less its class's shift, as column `at` of the queue P: 1; or s x x' added to H: 0"""
