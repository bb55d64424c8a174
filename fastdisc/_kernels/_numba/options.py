"""JIT options, in one place, and the one thing that plain Numba cannot say."""

from __future__ import annotations

from types import FunctionType

from numba import njit, types
from numba.extending import intrinsic

# Sums may be reordered (that is what vectorises them) and multiply-adds fused; NaN and infinity keep their meaning.
SUMS = {"reassoc", "contract", "nsz"}


def jit(parallel=False, sums=True):
    """The one place for JIT options. Without a writable place for the disk cache, functions are compiled anew each time."""
    options = {"nogil": True, "error_model": "numpy", "parallel": parallel, "fastmath": SUMS if sums else {"contract"}}

    def decorate(function):
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return decorate


@intrinsic
def bits(typingctx, x):
    """The bit pattern of a float as an integer, and back."""
    pairs = {types.float64: types.int64, types.int64: types.float64, types.float32: types.int32, types.int32: types.float32}
    result = pairs[x]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(x), codegen


def drivers(*functions):
    """Each function jitted twice, plain and parallel: a dict from (function, parallel) to what runs.

    The plain one is for forked children, which must not touch their parent's thread pool. The twins get names of their own,
    because the disk cache tells functions apart by name alone, not by option.
    """
    twins = {}
    for function in functions:
        for parallel in (False, True):
            name = function.__name__ + "_parallel" * parallel
            copy = FunctionType(function.__code__, function.__globals__, name)
            copy.__qualname__ = name
            twins[function, parallel] = jit(parallel)(copy)
    return twins
