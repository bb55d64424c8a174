"""Threads: the same bits for any number of them, no GIL, no hang after a fork, no more of them than allowed."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import FAST, NUMBA_CASES, make_features, make_problem, make_queries
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

import fastdisc
from fastdisc import _config, _kernels
from fastdisc._kernels import CSR, NO_OFFSET, Loss, Metric, PairLoss, PairRule, Rule, Walk, grid, group_grid, pair_grid

NONE = np.zeros((0, 21))


def same_bits(results):
    first, *others = results
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert (a is None and b is None) or np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("K", [2, 4])
def test_bits_do_not_depend_on_threads(backend, rng, layout, dtype, K):
    problem = make_problem(rng, 10_003, 6, K, dtype, layout)
    X, link, _, s, W = problem
    o = rng.standard_normal((10_003, len(W)))
    for order in (1, 2):
        g = grid(X.shape, 8, len(W), order, len(X.data) if isinstance(X, CSR) else None)
        assert -(-10_003 // g.chunk) >= 8, "too few chunks to tell"
        same_bits([backend.sweep(*problem[:-1], o, W, order, g, n) for n in (1, 2, 3, 8)])
    same_bits([backend.outputs(X, link, W, g, n) for n in (1, 2, 3, 8)])
    same_bits([[backend.product(X, link, s, o, W, W[:, ::-1].copy(), g, n)] for n in (1, 2, 3, 8)])


def test_bits_of_ranking_do_not_depend_on_threads(backend, rng):
    X, z, u = make_features(rng, 3000, 5), rng.standard_normal(3000), rng.standard_normal(3000)
    queries, y = make_queries(rng, 3000, 40, 5)
    g, e = group_grid(queries.starts), rng.standard_normal(3000)
    assert len(g.bounds) > 8
    for rule in (PairRule(PairLoss.SQUARED_HINGE, 1.0), PairRule(PairLoss.LOGISTIC)):
        same_bits([backend.rank_link(z, queries, rule, g, n) for n in (1, 2, 3, 8)])
        same_bits([[backend.rank_bend(z, u, queries, rule, g, n)] for n in (1, 2, 3, 8)])
        same_bits([[backend.rank_hessian(X, z, queries, rule, g, n)] for n in (1, 2, 3, 8)])
        same_bits([backend.rank_sweep(X, np.arange(3000), queries, rule, np.ones(5), z, g, n) for n in (1, 2, 3, 8)])
        given, few = rng.integers(0, 3000, (20_000, 2)), pair_grid(3000, 20_000)
        assert few.chunk < 5000
        same_bits([backend.pair_link(z, given, np.ones(1), rule, few, n) for n in (1, 2, 3, 8)])
        same_bits([[backend.pair_bend(z, u, given, np.ones(1), rule, few, n)] for n in (1, 2, 3, 8)])
    same_bits([[backend.combine(X, e, grid(X.shape, 8), n)] for n in (1, 2, 3, 8)])
    same_bits([[backend.group_metric(Metric.NDCG, y + 1, z, queries.starts, 10, g, n)] for n in (1, 2, 3, 8)])


def test_a_fit_does_not_depend_on_threads(rng):
    X = rng.standard_normal((20000, 5))
    y = X @ np.ones(5) + rng.standard_normal(20000) > 0
    models = [fastdisc.LogisticRegression(n_threads=n).fit(X, y) for n in (1, 2, 3, 8)]
    same_bits([(m.coef_, m.intercept_, m.predict_proba(X)) for m in models])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_two_python_threads_at_once(backend, rng, n_threads):
    problems = [make_problem(rng, 20000, 8, K) for K in (2, 3)]
    grids = [grid(problem[0].shape, 8, len(problem[-1]), 2) for problem in problems]
    expected = [backend.sweep(*p[:-1], NO_OFFSET, p[-1], 2, g, 1) for p, g in zip(problems, grids, strict=True)]
    results = [[], []]

    def work(i):
        for _ in range(10):
            results[i].append(backend.sweep(*problems[i][:-1], NO_OFFSET, problems[i][-1], 2, grids[i], n_threads))

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    for i in (0, 1):
        assert len(results[i]) == 10
        same_bits([expected[i], *results[i]])


@pytest.mark.parametrize("kernel", ["sweep", "online"])
def test_the_gil_is_released(fast, rng, kernel):
    """A Python thread gets on with its work while a kernel runs: it ticks at least once in the middle of one long call."""
    X, link, r, s, W = make_problem(rng, 400_000, 20, 2)
    g = grid(X.shape, 8)
    call = (
        (lambda: fast.sweep(X, link, r, s, NO_OFFSET, W, 2, g, 1))
        if kernel == "sweep"
        else (lambda: fast.online(X, r, s, W.copy(), NONE, NONE, np.zeros(2), Rule(Loss.LOG), Walk(np.arange(6250), 64), 1))
    )
    call()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(20):  # a loaded machine may starve the ticker in one call, not in twenty
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
        middle = [t for t in ticks if begin + 0.3 * (end - begin) < t < begin + 0.7 * (end - begin)]
        if middle:
            break
    stop.set()
    thread.join()
    assert middle


FORK = """
import os, sys
import numpy as np
import fastdisc
from fastdisc import _kernels
from fastdisc._kernels import NO_OFFSET, Link, grid

rng = np.random.default_rng(0)
X, r = rng.standard_normal((200000, 8)), rng.integers(0, 2, 200000).astype(np.int32)
fastdisc.set_config(backend={backend!r})
parent = fastdisc.LogisticRegression(n_threads=2).fit(X, r)       # a parallel region before the fork
pid = os.fork()
if pid == 0:
    child = fastdisc.LogisticRegression(n_threads=2).fit(X, r)
    os._exit(0 if np.allclose(child.coef_, parent.coef_, rtol={tol}, atol=0) else 3)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("name", FAST)
def test_a_forked_child_does_not_hang(name):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK.format(backend=name, tol=0 if name == "cython" else 1e-9)],
        timeout=240,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def threads_given(n_threads=None, work=_config.SMALL):
    with _config.threads(n_threads, work) as n:
        return n


def test_threadpool_limits_hold():
    with threadpool_limits(1):
        assert threads_given() == threads_given(8) == 1


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS"])
def test_environment_limits_hold(name):
    code = "from fastdisc import _config\nwith _config.threads(None, 10**9) as n: print(n)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {name: "1"}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_small_work_gets_one_thread():
    assert threads_given(8, _config.SMALL - 1) == 1


def test_explicit_threads_are_given():
    with threadpool_limits(None):
        assert threads_given(3) == 3


def test_calls_at_the_same_time_share_the_cpus(monkeypatch):
    monkeypatch.setattr(_config, "cpus", lambda: 8)
    monkeypatch.setattr(_config, "_openmp_limit", lambda: 1 << 30)
    with _config.threads(None, 10**9) as alone:
        with _config.threads(None, 10**9) as second:
            assert (alone, second) == (8, 4)
    assert threads_given() == 8


def _threads_in_worker():
    return threads_given()


def test_joblib_workers_do_not_oversubscribe():
    inner = Parallel(n_jobs=2, backend="loky")(delayed(_threads_in_worker)() for _ in range(2))
    assert max(inner) <= max(1, _config.cpus() // 2)


def test_settings_can_be_saved_and_restored():
    before = fastdisc.get_config()
    fastdisc.set_config(n_threads=3, backend="numpy")
    assert fastdisc.get_config() == {"backend": "numpy", "n_threads": 3}
    fastdisc.set_config(**before)
    assert fastdisc.get_config() == before


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_overlapping_blas_limits_are_undone():
    before = blas_threads()
    first, second = _config.one_blas_thread(), _config.one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_unknown_settings_are_refused():
    for bad in (
        {"backend": "fortran"},
        {"backend": None},
        {"n_threads": 0},
        {"n_threads": 1.5},
        {"n_threads": "two"},
        {"n_threads": True},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fastdisc.set_config(**bad)
    assert fastdisc.get_config() == {"backend": "auto", "n_threads": None}


def test_config_context_is_undone():
    with fastdisc.config_context(backend="numba", n_threads=1):
        assert fastdisc.get_config() == {"backend": "numba", "n_threads": 1}
        assert _config.kernels() is _kernels.load("numba")
        with fastdisc.config_context(n_threads=None):
            assert fastdisc.get_config() == {"backend": "numba", "n_threads": None}
    assert fastdisc.get_config() == {"backend": "auto", "n_threads": None}
