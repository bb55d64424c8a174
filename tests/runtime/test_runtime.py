"""Settings, numbers of threads, and the limit of BLAS threads."""

import os
import subprocess
import sys

import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

import fastdisc
from fastdisc import _kernels, runtime

LARGE_WORK = 10**9
DEFAULTS = {"backend": "auto", "n_threads": None}


# --- settings -------------------------------------------------------------------------------------


def test_settings_can_be_saved_and_restored():
    before = fastdisc.get_config()
    try:
        fastdisc.set_config(n_threads=3, backend="numpy")
        assert fastdisc.get_config() == {"backend": "numpy", "n_threads": 3}
    finally:
        fastdisc.set_config(**before)
    assert fastdisc.get_config() == before


def test_config_context_restores_the_settings():
    with fastdisc.config_context(backend="numba", n_threads=1):
        assert fastdisc.get_config() == {"backend": "numba", "n_threads": 1}
        assert runtime.kernels() is _kernels.load("numba")
        with fastdisc.config_context(n_threads=None):
            assert fastdisc.get_config() == {"backend": "numba", "n_threads": None}
    assert fastdisc.get_config() == DEFAULTS


INVALID_SETTINGS = [
    ({"backend": "fortran"}, "backend must be 'auto' or one of .*got 'fortran'"),
    ({"backend": None}, "backend must not be None"),
    ({"n_threads": 0}, "n_threads must be None or a whole number >= 1, got 0"),
    ({"n_threads": 1.5}, r"n_threads must be .*got 1\.5"),
    ({"n_threads": "two"}, "n_threads must be .*got 'two'"),
    ({"n_threads": True}, "n_threads must be .*got True"),
]


@pytest.mark.parametrize(("options", "message"), INVALID_SETTINGS, ids=str)
def test_invalid_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fastdisc.set_config(**options)
    assert fastdisc.get_config() == DEFAULTS


# --- numbers of threads ---------------------------------------------------------------------------


def n_threads_given(n_threads=None, work=runtime.MIN_PARALLEL_WORK):
    with runtime.threads(n_threads, work) as n:
        return n


def test_threadpool_limits_hold():
    with threadpool_limits(1):
        assert n_threads_given() == n_threads_given(8) == 1


def test_limit_of_the_environment_holds():
    code = "from fastdisc import runtime\nwith runtime.threads(None, 10**9) as n: print(n)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"


def test_small_work_gets_one_thread():
    assert n_threads_given(8, runtime.MIN_PARALLEL_WORK - 1) == 1


def test_explicit_number_of_threads_is_given():
    with threadpool_limits(None):
        assert n_threads_given(3) == 3


def test_simultaneous_calls_share_the_cpus(monkeypatch):
    monkeypatch.setattr(runtime, "cpus", lambda: 8)
    monkeypatch.setattr(runtime, "_openmp_limit", lambda: runtime.NO_LIMIT)
    with runtime.threads(None, LARGE_WORK) as first:
        with runtime.threads(None, LARGE_WORK) as second:
            assert (first, second) == (8, 4)
    assert n_threads_given() == 8


def test_joblib_workers_do_not_oversubscribe_the_cpus():
    given = Parallel(n_jobs=2, backend="loky")(delayed(n_threads_given)() for _ in range(2))
    assert max(given) <= max(1, runtime.cpus() // 2)


# --- BLAS -----------------------------------------------------------------------------------------


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_last_of_overlapping_blas_limits_restores_the_threads():
    before = blas_threads()
    first, second = runtime.one_blas_thread(), runtime.one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
