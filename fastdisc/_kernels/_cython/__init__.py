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

sweep = _module.sweep
sweeps = _module.sweeps
product = _module.product
times = _module.times
coordinate_descent = _module.coordinate_descent
outputs = _module.outputs
online = _module.online
rank_pairs = _module.rank_pairs
combine = _module.combine
rank_link = _module.rank_link
rank_bend = _module.rank_bend
rank_hessian = _module.rank_hessian
rank_sweep = _module.rank_sweep
pair_link = _module.pair_link
pair_bend = _module.pair_bend
group_metric = _module.group_metric
class_moments = _module.class_moments
quadratic = _module.quadratic
expand = _module.expand
openmp_threads = _module.openmp_threads
