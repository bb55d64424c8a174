"""The compiled kernels: the build for the best SIMD level that this CPU has, or for the one that
FASTDISC_SIMD (baseline, v3 or v4) asks for."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, cast

# What GCC's -march=x86-64-v3 and -v4 require, in NumPy's names for CPU features; best level first.
NEEDS = {
    "v4": ("AVX512F", "AVX512CD", "AVX512_SKX"),
    "v3": ("AVX2", "FMA3", "F16C"),
    "baseline": (),
}


def _features() -> dict[str, bool]:
    try:
        from numpy._core._multiarray_umath import __cpu_features__
    except ImportError:
        return {}
    return cast("dict[str, bool]", __cpu_features__)


def _choose() -> str:
    """The best level, or the requested one, that the CPU supports and that was built."""
    forced = os.environ.get("FASTDISC_SIMD")
    if forced and forced not in NEEDS:
        raise ValueError(f"FASTDISC_SIMD must be one of {', '.join(NEEDS)}, got {forced!r}")
    has = _features()
    for level, needs in NEEDS.items():
        missing = [feature for feature in needs if not has.get(feature, False)]
        if forced == level and missing:
            raise ValueError(f"FASTDISC_SIMD={forced}: this CPU lacks {', '.join(missing)}")
        requested = not forced or forced == level
        if requested and not missing and importlib.util.find_spec(f"{__name__}.{level}"):
            return level
    level = forced or "baseline"
    raise ImportError(f"the compiled kernels ({level}) are missing: 'pip install .' builds them")


SIMD = _choose()
if TYPE_CHECKING:  # all levels are builds of one source, and have the same stubs
    from . import baseline as _module
else:
    _module = importlib.import_module(f"{__name__}.{SIMD}")

CONSTANTS = _module.CONSTANTS
ENUMS = _module.ENUMS  # the values of all codes, as compiled
openmp_threads = _module.openmp_threads

class_moments = _module.class_moments
coordinate_descent = _module.coordinate_descent
expand = _module.expand
hessian_product = _module.hessian_product
matmul = _module.matmul
online_epoch = _module.online_epoch
online_pairs = _module.online_pairs
outputs = _module.outputs
pair_curvature_product = _module.pair_curvature_product
pair_loss = _module.pair_loss
quadratic_scores = _module.quadratic_scores
query_curvature_product = _module.query_curvature_product
query_hessian = _module.query_hessian
query_loss = _module.query_loss
query_metric = _module.query_metric
query_sweep = _module.query_sweep
sweep = _module.sweep
sweep_many = _module.sweep_many
weighted_row_sum = _module.weighted_row_sum
