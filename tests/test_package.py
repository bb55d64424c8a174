"""The package as a whole: what an import costs and leaves alone, SIMD levels, what show_config says."""

import importlib.metadata
import os
import subprocess
import sys

import numpy as np
import pytest

import fastdisc
from fastdisc import _kernels
from fastdisc._kernels import _cython


def run(code, **environment):
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    code = (
        "import sys, fastdisc; print([m for m in ('numba', 'sklearn', 'joblib', 'pandas', 'scipy.sparse') if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_kernels_need_no_scikit_learn():
    code = (
        "import sys, numpy as np\nfrom fastdisc import _kernels\n"
        "print(_kernels.load('cython').outputs(np.ones((2, 2)), 0, np.ones((1, 3)), _kernels.grid((2, 2), 8), 1)[0][0, 0],"
        " 'sklearn' in sys.modules, 'numba' in sys.modules)"
    )
    assert run(code) == "3.0 False False"


@pytest.mark.parametrize("name", ["cython", "numba"])
def test_subnormal_numbers_survive(name):
    """-ffast-math at link time would set the process to flush-to-zero."""
    code = f"""
import numpy as np
from fastdisc import _kernels
kernels = _kernels.load({name!r})
tiny = np.array([5e-324, 1e-310])
before = (tiny / 1).tolist()
r, W = np.zeros(40, np.int32), np.zeros((1, 4))
kernels.sweep(np.ones((40, 3)), 1, r, np.ones(1), _kernels.NO_OFFSET, W, 1, _kernels.Grid(16, 16), 2)
print((tiny / 1).tolist() == before == [5e-324, 1e-310], float(np.float64(2.2250738585072014e-308) / 2) > 0)
"""
    assert run(code) == "True True"


@pytest.mark.parametrize("level", _cython.NEEDS)
def test_simd_levels_agree(level):
    if not all(_cython._features().get(feature) for feature in _cython.NEEDS[level]):
        pytest.skip(f"this CPU has no {level}")
    code = """
import numpy as np
from fastdisc import _kernels
from fastdisc._kernels import _cython
rng = np.random.default_rng(0)
X, r = rng.standard_normal((999, 13)), rng.integers(0, 3, 999).astype(np.int32)
kernels = {name: _kernels.load(name) for name in ("cython", "numpy")}
W = rng.standard_normal((3, 14))
for A, tol in ((X, 1e-11), (X.astype(np.float32), 1e-5)):
    for order in (1, 2):
        args = (A, 2, r, np.ones(1), _kernels.NO_OFFSET, W, order, _kernels.grid(A.shape, 8, 3, order), 2)
        a, b = (k.sweep(*args) for k in kernels.values())
        assert abs(a[0] / b[0] - 1) < tol
        for p, q in zip(a[2:], b[2:]):
            assert p is None or np.abs(p - q).max() <= tol * np.abs(q).max()
U, Q = np.zeros((1, 14)), np.zeros((0, 14))
for threads in (1, 2):
    V = np.zeros((1, 14))
    walk = _kernels.Walk(np.arange(63), 16)
    kernels["cython"].online(X, (r > 0).astype(np.int32), np.ones(1), V, U, Q, np.zeros(2), _kernels.Rule(0), walk, threads)
    assert np.isfinite(V).all() and V.any()
print(_cython.SIMD)
"""
    assert run(code, FASTDISC_SIMD=level) == level


def test_unknown_simd_level_is_refused():
    code = (
        "import fastdisc, numpy\ntry: fastdisc.LogisticRegression().fit([[0.0], [1.0]], [0, 1])\nexcept ValueError as e: print(e)"
    )
    assert "FASTDISC_SIMD must be one of" in run(code, FASTDISC_SIMD="v9")


def test_missing_backend_is_said_and_replaced_with_a_warning():
    code = """
import sys, warnings, numpy as np, fastdisc
sys.modules["fastdisc._kernels._cython"] = None  # as where no compiler has been
from fastdisc import _config
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(_config.kernels().__name__, len(caught), "cython" in str(caught[0].message))
fastdisc.show_config()
"""
    first, *rest = run(code).splitlines()
    assert first == "fastdisc._kernels._numba 1 True"
    assert any(line.startswith("cython") and "missing" in line for line in rest)


def test_show_config(capsys):
    fastdisc.show_config()
    text = capsys.readouterr().out
    for word in (
        fastdisc.__version__,
        f"SIMD level {_cython.SIMD}",
        "numba",
        "numpy",
        "threads",
        "BLAS",
        "threading layer",
        "cache in",
    ):
        assert word in text


def test_unwritable_cache_does_not_crash(tmp_path):
    """Numba refuses to decorate with cache=True where it finds no place to write."""
    code = (
        "import numba.core.caching as c\n"
        "def no_place(*a, **k): raise RuntimeError('cannot cache function: no locator available')\n"
        "c.FunctionCache.__init__ = no_place\n"
        "from fastdisc._kernels._numba.options import jit\n"
        "print(jit()(lambda x: x + 1)(1))"
    )
    assert run(code) == "2"


def test_version_is_that_of_the_metadata():
    assert importlib.metadata.version("fastdisc") == fastdisc.__version__


def test_public_names_resolve():
    for name in fastdisc.__all__:
        assert getattr(fastdisc, name) is not None
    assert set(fastdisc.__all__) <= set(dir(fastdisc))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fastdisc.nonsense  # noqa: B018


def test_grid_depends_on_shapes_alone():
    for shape in ((1, 1), (5, 100_000), (10**7, 3), (1000, 784)):
        for K in (1, 10):
            for order in (1, 2):
                block, chunk, _ = _kernels.grid(shape, 8, K, order)
                assert block % 16 == 0 and chunk % block == 0 and chunk >= block
                assert -(-shape[0] // chunk) <= _kernels.CHUNKS


def test_group_grid_covers_all_groups():
    starts = np.array([0, 1, 5, 1000, 1001, 5000])
    bounds = _kernels.group_grid(starts, 4).bounds
    assert bounds[0] == 0 and bounds[-1] == len(starts) - 1 and (np.diff(bounds) > 0).all()
