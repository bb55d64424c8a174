"""exp and log1p by short polynomials, which vectorise: those of the Cython backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from .options import EXACT_INLINE, Function

F32 = np.float32


@intrinsic
def bits(typingctx: Any, x: types.Type) -> Any:
    """The bit pattern of a float as an integer, and back."""
    kinds = {
        types.float64: types.int64,
        types.int64: types.float64,
        types.float32: types.int32,
        types.int32: types.float32,
    }
    result = kinds[x]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(x), codegen


def exp_nonpositive(x: float) -> float:  # type: ignore[empty-body]
    """exp(x) for x <= 0"""


@overload(exp_nonpositive, jit_options=EXACT_INLINE, strict=False)
def _exp_nonpositive(x: types.Type) -> Function:
    return exp_float64 if x == types.float64 else exp_float32


def exp_float64(x: float) -> float:
    t = x * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    q = (
        (2.510038549551032e-08 * r + 2.7620088445409746e-07) * (r * r)
        + (2.7557268459997064e-06 * r + 2.4801521295954376e-05)
    ) * ((r * r) * (r * r)) + (
        (1.9841269863053618e-04 * r + 1.3888888917213717e-03) * (r * r)
        + (8.333333333330062e-03 * r + 4.166666666662413e-02)
    )
    q = q * (r * r) + (0.16666666666666669 * r + 0.5)
    return 0.0 if x < -708.0 else bits(bits(q * (r * r) + r + 1.0) + (bits(t) << np.int64(52)))


def exp_float32(x: Any) -> Any:
    t = x * F32(1.44269504) + F32(12582912.0)
    n = t - F32(12582912.0)
    r = (x - n * F32(0.693145752)) - n * F32(1.42860677e-6)
    q = (
        (F32(1.3926183587713494e-03) * r + F32(8.363179052722578e-03)) * (r * r)
        + (F32(4.1666554617204574e-02) * r + F32(1.6666576989698775e-01))
    ) * r + F32(0.5)
    p = bits(q * (r * r) + r + F32(1.0))
    return F32(0.0) if x < F32(-87.0) else bits(np.int32(p + np.int32(bits(t) << np.int32(23))))


def log1p_ratio(f: float) -> float:  # type: ignore[empty-body]
    """log(1 + u) for 0 <= u <= 1, from f = u / (2 + u)"""


@overload(log1p_ratio, jit_options=EXACT_INLINE, strict=False)
def _log1p_ratio(f: types.Type) -> Function:
    return log1p_float64 if f == types.float64 else log1p_float32


def log1p_float64(f: float) -> float:
    g = f * f
    q = (
        (
            (0.1687070066109721 * g + 0.10322669270499082) * (g * g)
            + (0.135023424717571 * g + 0.15373274876358003)
        )
        * (g * g)
        + (0.18182261108419745 * g + 0.22222212557929713)
    ) * (g * g) + (0.2857142867666099 * g + 0.39999999999560126)
    return 2.0 * f + f * g * (q * g + 0.6666666666666697)


def log1p_float32(f: Any) -> Any:
    g = f * f
    q = (F32(0.2685149802283715) * g + F32(0.2823661980531048)) * (g * g) + (
        F32(0.40007560644911205) * g + F32(0.6666664033669923)
    )
    return F32(2.0) * f + f * g * q
