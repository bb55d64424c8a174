"""The package as a whole: cost and side effects of an import, SIMD levels, show_config."""

import importlib.metadata
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fastdisc
from fastdisc._kernels import _cython, query_grid, row_grid
from fastdisc._kernels.grid import MAX_CHUNKS


def run(code, **environment):
    """What a Python program prints, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    env = os.environ | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_no_large_package():
    code = """
    import sys, fastdisc
    large = ("numba", "sklearn", "joblib", "pandas", "scipy.sparse")
    print([name for name in large if name in sys.modules])
    """
    assert run(code) == "[]"


def test_kernels_need_neither_scikit_learn_nor_numba():
    code = """
    import sys
    import numpy as np
    from fastdisc import _kernels
    from fastdisc._data.dense import DenseRows
    X, grid = DenseRows(np.ones((2, 2))), _kernels.row_grid((2, 2), 8)
    Z, finite = _kernels.load("cython").outputs(X, 0, np.ones((1, 3)), grid, 1)
    print(Z[0, 0], "sklearn" in sys.modules, "numba" in sys.modules)
    """
    assert run(code) == "3.0 False False"


@pytest.mark.parametrize("name", ["cython", "numba"])
def test_subnormal_numbers_are_not_flushed_to_zero(name):
    """-ffast-math at link time would set the process to flush-to-zero."""
    code = f"""
    import numpy as np
    from fastdisc import _kernels
    from fastdisc._data.dense import DenseRows
    kernels = _kernels.load({name!r})
    tiny = np.array([5e-324, 1e-310])
    before = (tiny / 1).tolist()
    batch = _kernels.Batch(DenseRows(np.ones((40, 3))), np.zeros(40, np.int32), np.ones(1))
    kernels.sweep(batch, 0, np.zeros((1, 4)), 1, _kernels.Grid(16, 16), 2)
    print((tiny / 1).tolist() == before == [5e-324, 1e-310])
    print(float(np.float64(2.2250738585072014e-308) / 2) > 0)
    """
    assert run(code).split() == ["True", "True"]


@pytest.mark.parametrize("level", _cython.NEEDS)
def test_simd_levels_agree_with_reference(level):
    if not all(_cython._features().get(feature) for feature in _cython.NEEDS[level]):
        pytest.skip(f"this CPU has no {level}")
    code = """
    import numpy as np
    from fastdisc._data.dense import DenseRows
    from fastdisc._kernels import (
        Batch, MarginLoss, OnlineRule, OnlineState, RowLoss, RowOrder, _cython, load, row_grid
    )
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((999, 13)), rng.integers(0, 3, 999).astype(np.int32)
    W = rng.standard_normal((3, 14))
    for dtype, tol in (("float64", 1e-11), ("float32", 1e-5)):
        batch = Batch(DenseRows(X.astype(dtype)), r, np.ones(1))
        for order in (1, 2):
            args = batch, RowLoss.SOFTMAX, W, order, row_grid(X.shape, 8, 3, order), 2
            actual, expected = (load(name).sweep(*args) for name in ("cython", "numpy"))
            assert abs(actual[0] / expected[0] - 1) < tol
            for a, b in zip(actual[2:], expected[2:], strict=True):
                assert b is None or np.abs(a - b).max() <= tol * np.abs(b).max()
    batch, none = Batch(DenseRows(X), (r > 0).astype(np.int32), np.ones(1)), np.zeros((0, 14))
    for threads in (1, 2):
        state = OnlineState(np.zeros((1, 14)), np.zeros((1, 14)), none, np.zeros(2))
        rule, order = OnlineRule(MarginLoss.PERCEPTRON), RowOrder(np.arange(63), 16)
        load("cython").online_epoch(batch, state, rule, order, threads)
        assert np.isfinite(state.W).all() and state.W.any()
    print(_cython.SIMD)
    """
    assert run(code, FASTDISC_SIMD=level) == level


def test_unknown_simd_level_raises():
    code = """
    import fastdisc
    try:
        fastdisc.LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    except ValueError as error:
        print(error)
    """
    assert "FASTDISC_SIMD must be one of" in run(code, FASTDISC_SIMD="v9")


def test_missing_backend_is_replaced_with_a_warning():
    code = """
    import sys, warnings, fastdisc
    sys.modules["fastdisc._kernels._cython"] = None  # as if it had not been compiled
    from fastdisc import runtime
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(runtime.kernels().__name__, len(caught), "cython" in str(caught[0].message))
    fastdisc.show_config()
    """
    first, *rest = run(code).splitlines()
    assert first == "fastdisc._kernels._numba 1 True"
    assert any(line.startswith("cython") and "missing" in line for line in rest)


def test_show_config_prints_versions_backends_and_threads(capsys):
    fastdisc.show_config()
    text = capsys.readouterr().out
    assert fastdisc.__version__ in text and f"SIMD level {_cython.SIMD}" in text
    for word in ("numba", "numpy", "threads", "BLAS", "threading layer", "cache in"):
        assert word in text


def test_functions_are_compiled_without_a_cache_if_no_folder_is_writable():
    """Numba raises for cache=True if it finds no folder to write to."""
    code = """
    import numba.core.caching as caching
    def no_folder(*args, **options):
        raise RuntimeError("cannot cache function: no locator available")
    caching.FunctionCache.__init__ = no_folder
    from fastdisc._kernels._numba.options import jit
    print(jit()(lambda x: x + 1)(1))
    """
    assert run(code) == "2"


def test_version_is_that_of_the_metadata():
    assert importlib.metadata.version("fastdisc") == fastdisc.__version__


def test_public_names_resolve():
    for name in fastdisc.__all__:
        assert getattr(fastdisc, name) is not None
    assert set(fastdisc.__all__) <= set(dir(fastdisc))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fastdisc.nonsense  # noqa: B018


@pytest.mark.parametrize("shape", [(1, 1), (5, 100_000), (10**7, 3), (1000, 784)])
@pytest.mark.parametrize("K", [1, 10])
@pytest.mark.parametrize("order", [1, 2])
def test_row_grid_has_whole_blocks_and_a_limited_number_of_chunks(shape, K, order):
    block, chunk, _ = row_grid(shape, 8, K, order)
    assert block % 16 == 0 and chunk % block == 0 and chunk >= block
    assert -(-shape[0] // chunk) <= MAX_CHUNKS


def test_query_grid_covers_all_queries():
    starts = np.array([0, 1, 5, 1000, 1001, 5000])
    bounds = query_grid(starts, 4).bounds
    assert bounds[0] == 0 and bounds[-1] == len(starts) - 1 and (np.diff(bounds) > 0).all()
