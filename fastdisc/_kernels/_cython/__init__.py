"""The compiled kernels, in the build for the best SIMD level that this CPU has; FASTDISC_SIMD=baseline|v3|v4 forces one."""

import importlib.util
import os

# What GCC's -march=x86-64-v3 and -v4 take for granted, in NumPy's names for CPU features.
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
    return __cpu_features__


def _choose() -> str:
    forced = os.environ.get("FASTDISC_SIMD")
    if forced and forced not in NEEDS:
        raise ValueError(f"FASTDISC_SIMD must be one of {', '.join(NEEDS)}, got {forced!r}")
    has = _features()
    for level, needs in NEEDS.items():
        able = all(has.get(feature, False) for feature in needs)
        if forced == level and not able:
            raise ValueError(f"FASTDISC_SIMD={forced}: this CPU lacks {', '.join(f for f in needs if not has.get(f, False))}")
        if (forced or level) == level and able and importlib.util.find_spec(f"{__name__}.{level}"):
            return level
    raise ImportError(f"the compiled kernels ({forced or 'baseline'}) are not there: 'pip install .' builds them")


SIMD = _choose()
_module = importlib.import_module(f"{__name__}.{SIMD}")

ENUMS = _module.ENUMS
sweep = _module.sweep
sweep_many = _module.sweep_many
hessian_product = _module.hessian_product
matmul = _module.matmul
coordinate_descent = _module.coordinate_descent
outputs = _module.outputs
online_epoch = _module.online_epoch
online_pairs = _module.online_pairs
weighted_row_sum = _module.weighted_row_sum
query_loss = _module.query_loss
query_curvature_product = _module.query_curvature_product
query_hessian = _module.query_hessian
query_sweep = _module.query_sweep
pair_loss = _module.pair_loss
pair_curvature_product = _module.pair_curvature_product
query_metric = _module.query_metric
class_moments = _module.class_moments
quadratic_scores = _module.quadratic_scores
expand = _module.expand
openmp_threads = _module.openmp_threads
