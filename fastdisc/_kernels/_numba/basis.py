"""The features of a basis. What expands a block of rows is compiled once, as a function that is
called by its address: inlined into every kernel, it would double their compile times (a sweep: 28 s
instead of 14)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from ..basis_program import TABLE_COLUMNS
from ..contract import Array
from ..enums import BasisKind
from .options import callback, jit
from .vector_math import exp_nonpositive

PRODUCTS, SINE, GAUSSIAN, LOG, THRESHOLD, RADIAL, HALFSPACE, SUBSPACE, CUSTOM = map(int, BasisKind)
INTS, REALS = types.CPointer(types.int64), types.CPointer(types.float64)
# Pointers and lengths: table, ints, reals, chosen, mean, scale; rows x, m, d; out, its row length.
EXPAND = types.int64(
    *(INTS, types.int64),
    *(INTS, types.int64),
    *(REALS, types.int64),
    *(INTS, types.int64),
    *(REALS, types.int64),
    *(REALS, types.int64),
    *(REALS, types.int64, types.int64),
    *(REALS, types.int64),
)


@intrinsic
def call_at(typingctx: Any, address: types.Type, arguments: types.Type) -> Any:
    """Call a function at its address; pointers among the arguments are given as integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, values = context.get_value_type(types.int64), cgutils.unpack_tuple(builder, args[1])
        kind = cgutils.ir.FunctionType(word, [word] * len(values))
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)

    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), codegen


class Parameters(NamedTuple):
    """One line of a program's table, with its parameters."""

    kind: int
    width: int
    size: int
    address: int
    ints: Array
    reals: Array


@jit()
def products(part: Parameters, x: Array, out: Array) -> None:
    """x_j, and higher-order terms   (10.2), (10.3)"""
    ints = part.ints
    done = ints[0]
    for j in range(done):
        out[j] = x[ints[1 + j]]
    at = 1 + done
    for _ in range(part.size):
        a, start, n = out[ints[at]], ints[at + 1], ints[at + 2]
        for j in range(n):
            out[done + j] = a * out[start + j]
        done, at = done + n, at + 3


@jit()
def of_one_column(part: Parameters, x: Array, out: Array) -> None:
    """Each pair of parameters applied to each column   (10.3)"""
    k, kind = 0, part.kind
    for i in range(part.ints[0]):
        v = x[part.ints[1 + i]]
        for j in range(part.size):
            p, q = part.reals[j], part.reals[part.size + j]
            if kind == SINE:
                out[k] = math.sin(p * v + q)
            elif kind == GAUSSIAN:
                out[k] = math.exp(-q * ((v - p) * (v - p)))
            elif kind == LOG:
                out[k] = math.log(v + p) if v + p > 0 else np.nan
            elif kind == THRESHOLD:
                out[k] = 1.0 if v > p else 0.0
            k += 1


@jit()
def against(distance: bool, x: Array, C: Array, n: int, out: Array) -> None:
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
def of_vectors(part: Parameters, x: Array, C: Array, z: Array, out: Array) -> None:
    """Functions of a row and n vectors, the columns of C   (10.3), (10.34); z is a buffer"""
    n, kind = part.size, part.kind
    if kind == RADIAL:
        against(True, x, C, n, out)
        for k in range(n):
            out[k] = exp_nonpositive(-part.reals[k] * out[k])
    elif kind == HALFSPACE:
        against(False, x, C, n, out)
        for k in range(n):
            out[k] = 1.0 if out[k] > part.reals[k] else 0.0
    elif kind == SUBSPACE:
        against(False, x, C, n, z)
        done = len(x)
        for j in range(done):
            out[j] = x[j]
        for j in range(n):
            for k in range(j, n):
                out[done] = z[j] * z[k]
                done += 1


@jit()
def expand_part(part: Parameters, x: Array, z: Array, out: Array) -> None:
    """The features of one part, of m rows   (10.3)"""
    (m, d), kind, n = x.shape, part.kind, part.size
    if kind == PRODUCTS:
        for i in range(m):
            products(part, x[i], out[i])
    elif kind == CUSTOM:
        rows, features = np.int64(x.ctypes.data), np.int64(out.ctypes.data)
        if call_at(part.address, (rows, m, d, features, out.strides[0] // 8)) == 0:
            out[:m, : part.width] = np.nan
    elif kind == RADIAL or kind == HALFSPACE or kind == SUBSPACE:
        ldc = (n + 7) // 8 * 8
        first = 0 if kind == SUBSPACE else n
        C = part.reals[first : first + d * ldc].reshape(d, ldc)
        for i in range(m):
            of_vectors(part, x[i], C, z, out[i])
    else:
        for i in range(m):
            of_one_column(part, x[i], out[i])


# The arguments are those of a C function: pointers and lengths.
def expand_rows(
    table: Any, n_lines: int, ints: Any, n_ints: int, reals: Any, n_reals: int, chosen: Any,
    n_chosen: int, mean: Any, n_mean: int, scale: Any, n_scale: int, x: Any, m: int, d: int,
    out: Any, row_length: int,
) -> int:  # fmt: skip
    """The features of m rows x; NaN for a row with a cell that is not finite."""
    table, ints = carray(table, (n_lines, TABLE_COLUMNS)), carray(ints, n_ints)
    reals, chosen = carray(reals, n_reals), carray(chosen, n_chosen)
    mean, scale = carray(mean, n_mean), carray(scale, n_scale)
    x, buffer = carray(x, (m, d)), carray(out, (m, row_length))
    width, z = table[-1, 1] + table[-1, 2], np.empty(d)
    full = buffer if n_chosen == 0 else np.empty((m, width))
    for p in range(n_lines):
        kind, first, features, size, address = (
            table[p, 0], table[p, 1], table[p, 2], table[p, 5], table[p, 6],
        )  # fmt: skip
        own_ints, own_reals = ints[table[p, 3] :], reals[table[p, 4] :]
        part = Parameters(kind, features, size, address, own_ints, own_reals)
        expand_part(part, x, z, full[:, first:])
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
def expander() -> CFunc:
    """`expand_rows`, compiled."""
    return callback(EXPAND, expand_rows)
