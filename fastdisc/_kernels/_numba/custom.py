"""A user's function, compiled as a function of a block of rows that kernels of any backend call by its address."""

from numba import carray, cfunc, literal_unroll, njit, types
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
    out[0] = value


def put_many(value, out, width):
    if len(value) != width:
        raise ValueError("the number of features is not that of the first row")
    for j in range(width):
        out[j] = value[j]


def put_mixed(value, out, width):
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


def compile_block(function, many, writes, d, width):
    """A cfunc of SIGNATURE; raises what Numba raises where it cannot compile the function."""
    f = function if isinstance(function, Dispatcher) else njit(error_model="numpy")(function)

    def row_returns(x, m, d_, out, ld):
        X, F = carray(x, (m, d)), carray(out, (m, ld))
        try:
            for i in range(m):
                put(f(X[i]), F[i], width)
        except Exception:
            return 0
        return 1

    def row_writes(x, m, d_, out, ld):
        X, F = carray(x, (m, d)), carray(out, (m, ld))
        try:
            for i in range(m):
                f(X[i], F[i, :width])
        except Exception:
            return 0
        return 1

    def rows_return(x, m, d_, out, ld):
        try:
            put_rows(f(carray(x, (m, d))), carray(out, (m, ld)), width)
        except Exception:
            return 0
        return 1

    def rows_write(x, m, d_, out, ld):
        try:
            f(carray(x, (m, d)), carray(out, (m, ld))[:, :width])
        except Exception:
            return 0
        return 1

    block = {(False, False): row_returns, (False, True): row_writes, (True, False): rows_return, (True, True): rows_write}
    return cfunc(SIGNATURE, error_model="numpy")(block[many, writes])
