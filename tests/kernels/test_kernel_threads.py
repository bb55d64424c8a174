"""Kernels on several threads: the same bits, no GIL, no deadlock after a fork."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from helpers.assertions import same_bits
from helpers.cases import FAST_BACKENDS, NUMBA_CASES, THREADS
from helpers.problems import grid_of, make_features, make_problem, make_queries

from fastdisc._kernels import (
    Activation,
    MarginLoss,
    OnlineRule,
    OnlineState,
    PairLoss,
    PairRule,
    RankMetric,
    RowOrder,
    pair_grid,
    query_grid,
    row_grid,
)


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("K", [2, 4])
def test_sums_do_not_depend_on_threads(backend, rng, layout, dtype, K):
    batch, loss, W = make_problem(rng, 10_003, 6, K, dtype, layout)
    batch = batch._replace(o=rng.standard_normal((10_003, len(W))))
    for order in (1, 2):
        grid = grid_of(batch.X, len(W), order)
        assert -(-10_003 // grid.chunk) >= 8, "too few chunks to tell"
        same_bits([backend.sweep(batch, loss, W, order, grid, n) for n in THREADS])
    activation = Activation.SIGMOID if K == 2 else Activation.SOFTMAX
    same_bits([backend.outputs(batch.X, activation, W, grid, n) for n in THREADS])
    V = W[:, ::-1].copy()
    same_bits([[backend.hessian_product(batch, loss, W, V, grid, n)] for n in THREADS])


def test_ranking_does_not_depend_on_threads(backend, rng):
    X, z, u = make_features(rng, 3000, 5), rng.standard_normal(3000), rng.standard_normal(3000)
    queries, y = make_queries(rng, 3000, 40, 5)
    grid, places, w = query_grid(queries.starts), np.arange(3000), np.ones(5)
    assert len(grid.bounds) > 8
    given, given_grid = rng.integers(0, 3000, (20_000, 2)), pair_grid(3000, 20_000)
    assert given_grid.chunk < 5000
    for rule in (PairRule(PairLoss.SQUARED_HINGE, 1.0), PairRule(PairLoss.LOGISTIC)):
        by_query, by_pair = (queries, rule, grid), (given, np.ones(1), rule, given_grid)
        same_bits([backend.query_loss(z, *by_query, n) for n in THREADS])
        same_bits([[backend.query_curvature_product(z, u, *by_query, n)] for n in THREADS])
        same_bits([[backend.query_hessian(X, z, *by_query, n)] for n in THREADS])
        args = X, places, queries, rule, w, z, grid
        same_bits([backend.query_sweep(*args, n) for n in THREADS])
        same_bits([backend.pair_loss(z, *by_pair, n) for n in THREADS])
        same_bits([[backend.pair_curvature_product(z, u, *by_pair, n)] for n in THREADS])
    same_bits([[backend.weighted_row_sum(X, u, row_grid(X.shape, 8), n)] for n in THREADS])
    args = RankMetric.NDCG, y + 1, z, queries.starts, 10, grid
    same_bits([[backend.query_metric(*args, n)] for n in THREADS])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_python_threads_may_call_kernels_at_the_same_time(backend, rng, n_threads):
    problems = [make_problem(rng, 20_000, 8, K) for K in (2, 3)]
    calls = [(*p, 2, grid_of(p[0].X, len(p[2]), 2)) for p in problems]
    expected = [backend.sweep(*args, 1) for args in calls]
    results = [[], []]

    def work(i):
        for _ in range(10):
            results[i].append(backend.sweep(*calls[i], n_threads))

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    for i in (0, 1):
        assert len(results[i]) == 10
        same_bits([expected[i], *results[i]])


def calls_of(kernel, fast, rng):
    """A function that runs a kernel for some milliseconds."""
    batch, loss, W = make_problem(rng, 400_000, 20, 2)
    grid, none = row_grid(batch.X.shape, 8), np.zeros((0, 21))
    if kernel == "sweep":
        return lambda: fast.sweep(batch, loss, W, 2, grid, 1)
    rule, order = OnlineRule(MarginLoss.LOG), RowOrder(np.arange(6250), 64)
    return lambda: fast.online_epoch(
        batch, OnlineState(W.copy(), none, none, np.zeros(2)), rule, order, 1
    )


@pytest.mark.parametrize("kernel", ["sweep", "online_epoch"])
def test_the_gil_is_released(fast, rng, kernel):
    """Another Python thread runs in the middle of one long call."""
    call = calls_of(kernel, fast, rng)
    call()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(20):  # a loaded machine may starve the other thread in one call, not in twenty
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
        early, late = begin + 0.3 * (end - begin), begin + 0.7 * (end - begin)
        middle = [t for t in ticks if early < t < late]
        if middle:
            break
    stop.set()
    thread.join()
    assert middle


FORK = """
import os, sys
import numpy as np
from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, RowLoss, row_grid

rng = np.random.default_rng(0)
X, r = rng.standard_normal((200000, 8)), rng.integers(0, 2, 200000).astype(np.int32)
kernels, batch = _kernels.load({backend!r}), Batch(DenseRows(X), r, np.ones(1))
args = batch, RowLoss.LOGISTIC, np.ones((1, 9)), 2, row_grid(X.shape, 8, 1, 2)
parent = kernels.sweep(*args, 2)  # a parallel region before the fork
pid = os.fork()
if pid == 0:
    child = kernels.sweep(*args, {child_threads})
    equal = all(np.allclose(a, b, rtol={tol}, atol=0) for a, b in zip(child, parent))
    os._exit(0 if equal else 3)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("name", FAST_BACKENDS)
def test_forked_child_does_not_hang(name):
    """On one thread, as the configuration says for a forked child; Numba on several, too."""
    tol, child_threads = (0, 1) if name == "cython" else (1e-9, 2)
    code = FORK.format(backend=name, tol=tol, child_threads=child_threads)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
