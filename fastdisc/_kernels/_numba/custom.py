"""A user's function, compiled as a function of a block of rows that kernels of any backend call by its address."""

import numpy as np
from numba import carray, cfunc, jit, literal_unroll, types
from numba.core.dispatcher import Dispatcher
from numba.extending import overload

SIGNATURE = types.int64(types.CPointer(types.float64), types.intp, types.intp, types.CPointer(types.float64), types.intp)


def put(value, out, width):
    """A function's result for one row into the first `width` numbers of out."""


@overload(put)
def _put(value, out, width):
    if isinstance(value, (types.Number, types.Boolean)):
        return put_number
    return put_mixed if isinstance(value, types.Tuple) else put_many


def put_number(value, out, width):
    if width != 1:
        raise ValueError("the number of features is not that of the first row")
    out[0] = value


def put_many(value, out, width):
    if len(value) != width:
        raise ValueError("the number of features is not that of the first row")
    for j in range(width):
        out[j] = value[j]


def put_mixed(value, out, width):
    if len(value) != width:
        raise ValueError("the number of features is not that of the first row")
    j = 0
    for v in literal_unroll(value):
        out[j] = v
        j += 1


def put_rows(F, out, width):
    """The same for many rows."""


@overload(put_rows)
def _put_rows(F, out, width):
    return put_column if F.ndim == 1 else put_matrix


def put_column(F, out, width):
    if len(F) != len(out):
        raise ValueError("the function must return a number for each row")
    for i in range(len(out)):
        out[i, 0] = F[i]


def put_matrix(F, out, width):
    if F.shape != (len(out), width):
        raise ValueError("the number of features is not that of the first row")
    for i in range(len(out)):
        for j in range(width):
            out[i, j] = F[i, j]


def checked(function):
    """The function by Numba, with an IndexError where it would read or write beside an array; what it calls is as it is."""
    options = function.targetoptions if isinstance(function, Dispatcher) else {"nopython": True, "error_model": "numpy"}
    return jit(**options | {"boundscheck": True})(getattr(function, "py_func", function))


def compile_block(function, many, writes, d, width):
    """A cfunc of SIGNATURE; raises what Numba raises where it cannot compile the function.

    The function may do with a row what it likes: it gets a copy. What it does not write is NaN, which the sums will show.
    """
    f = checked(function)

    def row_returns(x, m, d_, out, ld):
        X, F, row = carray(x, (m, d)), carray(out, (m, ld)), np.empty(d)
        try:
            for i in range(m):
                row[:] = X[i]
                put(f(row), F[i], width)
        except Exception:
            return 0
        return 1

    def row_writes(x, m, d_, out, ld):
        X, F, row = carray(x, (m, d)), carray(out, (m, ld)), np.empty(d)
        try:
            for i in range(m):
                row[:] = X[i]
                F[i, :width] = np.nan
                f(row, F[i, :width])
        except Exception:
            return 0
        return 1

    def rows_return(x, m, d_, out, ld):
        try:
            put_rows(f(carray(x, (m, d)).copy()), carray(out, (m, ld)), width)
        except Exception:
            return 0
        return 1

    def rows_write(x, m, d_, out, ld):
        F = carray(out, (m, ld))[:, :width]
        F[:] = np.nan
        try:
            f(carray(x, (m, d)).copy(), F)
        except Exception:
            return 0
        return 1

    block = {(False, False): row_returns, (False, True): row_writes, (True, False): rows_return, (True, True): rows_write}
    return cfunc(SIGNATURE, error_model="numpy")(block[many, writes])
