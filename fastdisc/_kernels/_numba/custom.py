"""A user's function, compiled as a function of a block of rows that kernels of any backend call by
its address."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, cfunc, jit, literal_unroll, types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.extending import overload

from .options import Function

# Rows, their number, their length; features, and the length of a row of them.
SIGNATURE = types.int64(
    types.CPointer(types.float64),
    types.intp,
    types.intp,
    types.CPointer(types.float64),
    types.intp,
)


def put(value: Any, out: Any, width: int) -> None:
    """A function's result for one row into the first `width` numbers of out."""


@overload(put, strict=False)
def _put(value: types.Type, out: types.Type, width: types.Type) -> Function:
    if isinstance(value, (types.Number, types.Boolean)):
        return put_number
    return put_mixed if isinstance(value, types.Tuple) else put_many


def put_number(value: Any, out: Any, width: int) -> None:
    if width != 1:
        raise ValueError("the number of features is not that of the first row")
    out[0] = value


def put_many(value: Any, out: Any, width: int) -> None:
    if len(value) != width:
        raise ValueError("the number of features is not that of the first row")
    for j in range(width):
        out[j] = value[j]


def put_mixed(value: Any, out: Any, width: int) -> None:
    if len(value) != width:
        raise ValueError("the number of features is not that of the first row")
    j = 0
    for v in literal_unroll(value):
        out[j] = v
        j += 1


def put_rows(F: Any, out: Any, width: int) -> None:
    """The same for many rows."""


@overload(put_rows, strict=False)
def _put_rows(F: types.Type, out: types.Type, width: types.Type) -> Function:
    return put_column if F.ndim == 1 else put_matrix


def put_column(F: Any, out: Any, width: int) -> None:
    if len(F) != len(out):
        raise ValueError("the function must return a number for each row")
    for i in range(len(out)):
        out[i, 0] = F[i]


def put_matrix(F: Any, out: Any, width: int) -> None:
    if F.shape != (len(out), width):
        raise ValueError("the number of features is not that of the first row")
    for i in range(len(out)):
        for j in range(width):
            out[i, j] = F[i, j]


def with_bounds_checks(function: Function) -> Any:
    """The function compiled so that access beyond an array is an IndexError; functions that it
    calls are left as they are."""
    plain = {"nopython": True, "error_model": "numpy"}
    options = function.targetoptions if isinstance(function, Dispatcher) else plain
    return jit(**options | {"boundscheck": True})(getattr(function, "py_func", function))


def compile_block(function: Function, many: bool, writes: bool, d: int, width: int) -> CFunc:
    """A callback of SIGNATURE; raises what Numba raises if it cannot compile the function.

    `many`: the function takes many rows, else one. `writes`: it writes its features to a second
    argument, else it returns them. The function gets a copy of the rows, which it may change. A
    feature that it does not write is NaN, which shows in the sums. If it raises, the callback
    returns 0.
    """
    make = {
        (False, False): _returns_row,
        (False, True): _writes_row,
        (True, False): _returns_rows,
        (True, True): _writes_rows,
    }[many, writes]
    block = make(with_bounds_checks(function), d, width)
    return cfunc(SIGNATURE, error_model="numpy")(block)


def _returns_row(f: Any, d: int, width: int) -> Function:
    def block(x: Any, m: int, d_: int, out: Any, ld: int) -> int:
        X, F, row = carray(x, (m, d)), carray(out, (m, ld)), np.empty(d)
        try:
            for i in range(m):
                row[:] = X[i]
                put(f(row), F[i], width)
        except Exception:
            return 0
        return 1

    return block


def _writes_row(f: Any, d: int, width: int) -> Function:
    def block(x: Any, m: int, d_: int, out: Any, ld: int) -> int:
        X, F, row = carray(x, (m, d)), carray(out, (m, ld)), np.empty(d)
        try:
            for i in range(m):
                row[:] = X[i]
                F[i, :width] = np.nan
                f(row, F[i, :width])
        except Exception:
            return 0
        return 1

    return block


def _returns_rows(f: Any, d: int, width: int) -> Function:
    def block(x: Any, m: int, d_: int, out: Any, ld: int) -> int:
        try:
            put_rows(f(carray(x, (m, d)).copy()), carray(out, (m, ld)), width)
        except Exception:
            return 0
        return 1

    return block


def _writes_rows(f: Any, d: int, width: int) -> Function:
    def block(x: Any, m: int, d_: int, out: Any, ld: int) -> int:
        F = carray(out, (m, ld))[:, :width]
        F[:] = np.nan
        try:
            f(carray(x, (m, d)).copy(), F)
        except Exception:
            return 0
        return 1

    return block
