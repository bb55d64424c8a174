"""The layout of mapped rows; see _cython/basis.pxi. To the jitted code it is a pair: X, and the numbers of `program_of`.

What expands a block is compiled once, as a function at an address: a part of every kernel, it would double the time in which each
is compiled (a sweep: 28 s, not 14).
"""

import math
from functools import cache

import numpy as np
from numba import carray, cfunc, prange, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ..maps import Map
from .jitted import exp_, fetch
from .online import pick
from .options import SUMS, drivers, jit

PRODUCTS, SINE, GAUSSIAN, LOG, RADIAL, HALFSPACE, SUBSPACE, CUSTOM = (
    int(kind) for kind in (Map.PRODUCTS, Map.SINE, Map.GAUSSIAN, Map.LOG, Map.RADIAL, Map.HALFSPACE, Map.SUBSPACE, Map.CUSTOM)
)

NONE = np.empty(0, np.int64), np.empty(0), np.empty(0)
WHOLE, REAL = types.CPointer(types.int64), types.CPointer(types.float64)
EXPAND = types.int64(
    *[WHOLE, types.int64] * 2,
    REAL,
    types.int64,
    WHOLE,
    types.int64,
    *[REAL, types.int64] * 2,
    REAL,
    *[types.int64] * 2,
    REAL,
    types.int64,
)


@intrinsic
def call_at(typingctx, address, arguments):
    """Call a function at its address; pointers among the arguments are the numbers that they are."""

    def codegen(context, builder, signature, args):
        word, values = context.get_value_type(types.int64), cgutils.unpack_tuple(builder, args[1])
        kind = cgutils.ir.FunctionType(word, [word] * len(values))
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)

    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), codegen


@jit()
def products(ints, count, x, out):
    """x_j, and higher-order terms   (10.2), (10.3)"""
    done = ints[0]
    for j in range(done):
        out[j] = x[ints[1 + j]]
    at = 1 + done
    for _ in range(count):
        a, start, n = out[ints[at]], ints[at + 1], ints[at + 2]
        for j in range(n):
            out[done + j] = a * out[start + j]
        done, at = done + n, at + 3


@jit()
def of_one_column(kind, ints, reals, count, x, out):
    """Each pair of parameters to each column   (10.3)"""
    k = 0
    for i in range(ints[0]):
        v = x[ints[1 + i]]
        for j in range(count):
            p, q = reals[j], reals[count + j]
            if kind == SINE:
                out[k] = math.sin(p * v + q)
            elif kind == GAUSSIAN:
                out[k] = math.exp(-q * ((v - p) * (v - p)))
            elif kind == LOG:
                out[k] = math.log(v + p) if v + p > 0 else np.nan
            else:
                out[k] = 1.0 if v > p else 0.0
            k += 1


@jit()
def against(distance, x, C, n, out):
    """||x - c||^2, or c'x, for each of n vectors c, the columns of C"""
    for k in range(n):
        out[k] = 0.0
    for j in range(len(x)):
        if distance:
            for k in range(n):
                out[k] += (x[j] - C[j, k]) * (x[j] - C[j, k])
        else:
            for k in range(n):
                out[k] += x[j] * C[j, k]


@jit()
def expand_part(line, ints, reals, x, z, out):
    """The features of one line of the table, of m rows   (10.3)"""
    (m, d), kind, width, count = x.shape, line[0], line[2], line[5]
    ints, reals = ints[line[3] :], reals[line[4] :]
    if kind == CUSTOM:
        if call_at(line[6], (np.int64(x.ctypes.data), m, d, np.int64(out.ctypes.data), out.strides[0] // 8)) == 0:
            out[:m, :width] = np.nan
        return
    if kind <= 4:
        for i in range(m):
            if kind == PRODUCTS:
                products(ints, count, x[i], out[i])
            else:
                of_one_column(kind, ints, reals, count, x[i], out[i])
        return
    ldc = (count + 7) // 8 * 8
    first = 0 if kind == SUBSPACE else count
    C = reals[first : first + d * ldc].reshape(d, ldc)
    for i in range(m):
        against(kind == RADIAL, x[i], C, count, z if kind == SUBSPACE else out[i])
        if kind == RADIAL:
            for k in range(count):
                out[i, k] = exp_(-reals[k] * out[i, k])
        elif kind == HALFSPACE:
            for k in range(count):
                out[i, k] = 1.0 if out[i, k] > reals[k] else 0.0
        else:
            done = d
            for j in range(d):
                out[i, j] = x[i, j]
            for j in range(count):
                for k in range(j, count):
                    out[i, done] = z[j] * z[k]
                    done += 1


def expand_rows(table, lines, ints, n_ints, reals, n_reals, chosen, n_chosen, mean, n_mean, scale, n_scale, x, m, d, out, ld):
    """The features of m rows x; NaN where a cell of the row is not finite."""
    table, ints, reals, chosen = carray(table, (lines, 7)), carray(ints, n_ints), carray(reals, n_reals), carray(chosen, n_chosen)
    mean, scale = carray(mean, n_mean), carray(scale, n_scale)
    x, buffer = carray(x, (m, d)), carray(out, (m, ld))
    width, z = table[-1, 1] + table[-1, 2], np.empty(d)
    full = buffer if n_chosen == 0 else np.empty((m, width))
    for p in range(lines):
        expand_part(table[p], ints, reals, x, z, full[:, table[p, 1] :])
    for i in range(m):
        for j in range(d):
            if not np.isfinite(x[i, j]):
                full[i, :width] = np.nan
        for j in range(n_chosen):
            buffer[i, j] = full[i, chosen[j]]
        for j in range(n_mean):
            buffer[i, j] = (buffer[i, j] - mean[j]) / scale[j]
    return 1


@cache
def expander():
    """`expand_rows`, compiled."""
    options = {"error_model": "numpy", "fastmath": SUMS}
    try:
        return cfunc(EXPAND, cache=True, **options)(expand_rows)
    except RuntimeError:  # no place for the disk cache
        return cfunc(EXPAND, **options)(expand_rows)


def program_of(X):
    """Addresses and lengths of what `expand_rows` reads, its own address first."""
    chosen, mean, scale = (NONE[i] if some is None else some for i, some in enumerate((X.chosen, X.mean, X.scale)))
    arrays = X.program.table, X.program.ints, X.program.reals, chosen, mean, scale
    numbers = [number for array in arrays for number in (array.ctypes.data, len(array))]
    return np.array([expander().address, *numbers], np.int64)


@jit()
def expand_block(X, lo, m, buffer):
    """The features of rows lo to lo + m"""
    raw, p = X
    d = raw.shape[1]
    x = np.empty((m, d))
    for i in range(m):
        for j in range(d):
            x[i, j] = raw[lo + i, j]
    places = np.int64(x.ctypes.data), m, d, np.int64(buffer.ctypes.data), np.int64(buffer.shape[1])
    call_at(p[0], (p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], *places))
    return buffer


@overload(fetch)
def _fetch(X, lo, m, buffer):
    if isinstance(X, types.BaseTuple) and len(X) == 2:
        return lambda X, lo, m, buffer: expand_block(X, lo, m, buffer)


@overload(pick)
def _pick(X, t, room):
    if isinstance(X, types.BaseTuple) and len(X) == 2:
        return lambda X, t, room: (expand_block(X, t, 1, room), 0)


def expand_driver(X, n, block, chunk, out):
    for c in prange((n + chunk - 1) // chunk):
        for lo in range(c * chunk, min(n, c * chunk + chunk), block):
            hi = min(n, c * chunk + chunk, lo + block)
            expand_block(X, lo, hi - lo, out[lo:hi])


DRIVERS = drivers(expand_driver)
