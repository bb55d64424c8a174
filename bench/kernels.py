"""Every kernel on every backend at the shapes of the figures. Each row carries two ratios, taken in turn in this process:
its speed-up over the NumPy reference, and its time over that of merely reading X. Compilation happens before any clock starts."""

from __future__ import annotations

import time

import numpy as np
import pytest
from measure import best_of, reader
from problems import dense, groups, images, sparse

from fastdisc import _config, _kernels
from fastdisc._kernels import (
    CSR,
    NO_OFFSET,
    Grid,
    Link,
    Loss,
    Metric,
    Moment,
    PairLoss,
    PairRule,
    Rule,
    Walk,
    grid,
    group_grid,
    moments_grid,
)
from fastdisc._rank_sweep import RankSweep
from fastdisc.basis import Quadratic, RadialGaussian

BACKENDS = ("cython", "numba", "numpy")
THREADS = min(2, _config.cpus())
ONE = np.ones(1)
_numpy_time = {}


def weights(K, d):
    return np.random.default_rng(1).standard_normal((K, d + 1)) * 0.1


def sweep(n, d, dtype, order, K=2, link=None):
    def make():
        X, y = images(n, d, K, dtype) if d == 784 else dense(n, d, K, dtype)
        W = weights(1 if K == 2 else K, d) * (0.01 if d == 784 else 1)
        kind = link or (Link.LOGISTIC if K == 2 else Link.SOFTMAX)
        r = y.astype(np.int32)
        g = grid(X.shape, 8 if order == 2 else max(4, X.itemsize), len(W), order)
        X64 = images(n, d, K, "float64")[0] if d == 784 else X  # "over _numpy on float64"
        calls = {name: lambda k, A=X: k.sweep(A, kind, r, ONE, NO_OFFSET, W, order, g, THREADS) for name in ("cython", "numba")}
        calls["numpy"] = lambda k: k.sweep(X64, kind, r, ONE, NO_OFFSET, W, order, g, THREADS)
        return X, THREADS, calls

    return make


def mapped(n, d, basis):
    def make():
        X, y = dense(n, d)
        rows = basis.fit(X).mapped(X)
        W, r, g = weights(1, rows.shape[1]), y.astype(np.int32), grid(rows.shape, 8, 1, 1)
        call = lambda k: k.sweep(rows, Link.LOGISTIC, r, ONE, NO_OFFSET, W, 1, g, THREADS)  # noqa: E731
        return X, THREADS, dict.fromkeys(BACKENDS, call)

    return make


def class_moments(n, d, dtype, kind, K=10, own=False):
    def make():
        X, y = images(n, d, K, dtype) if d == 784 else dense(n, d, K, dtype)
        group = (np.arange(K) if own else np.zeros(K)).astype(np.int32)
        shift, r = np.rint(X[:100].mean(axis=0)) * np.ones((K, 1)), y.astype(np.int32)
        g = moments_grid(X.shape, X.itemsize, K * (d + 1), d if kind >= Moment.SCATTER else 0, len(np.unique(group)))
        call = lambda k: k.class_moments(X, r, ONE, shift, group, int(kind), g, THREADS)  # noqa: E731
        return X, THREADS, dict.fromkeys(BACKENDS, call)

    return make


def quadratic(n, d, K=10, diagonal=False):
    def make():
        X, _ = dense(n, d, K)
        A = np.random.default_rng(1).standard_normal((K, d) if diagonal else (K, d, d))
        A = A if diagonal else np.triu(A)
        call = lambda k: k.quadratic(X, np.zeros((K, d)), A, np.zeros(K), grid(X.shape, 8, 1, 2), THREADS)  # noqa: E731
        return X, THREADS, dict.fromkeys(BACKENDS, call)

    return make


def online(n, d, K, noise, rule):
    def make():
        X, y = dense(n, d, K, noise=noise)
        r, shape = y.astype(np.int32), (1 if K == 2 else K, d + 1)
        slow = min(n, 20_000)  # the reference is a Python loop: timed on a part, scaled to the whole

        def epoch(k, n):
            W, walk = np.zeros(shape), Walk(np.arange(-(-n // 512)), 512)
            return k.online(X[:n], r[:n], ONE, W, W[:0], W[:0], np.zeros(2), rule, walk, 1)

        calls = {name: lambda k: epoch(k, n) for name in ("cython", "numba")}
        calls["numpy"] = lambda k: epoch(k, slow)
        return X, 1, calls, n / slow

    return make


def rank_link(rule, n=145_000, count=150):
    def make():
        X, r, starts = groups(n, count)
        sweep = RankSweep(X[:, :1], np.repeat(np.arange(len(starts) - 1), np.diff(starts)), r, ONE, rule)
        z = np.ascontiguousarray(X[sweep.places] @ weights(1, X.shape[1])[0, 1:])
        call = lambda k: k.rank_link(z, sweep.queries, rule, sweep.grid, THREADS)  # noqa: E731
        return X, THREADS, dict.fromkeys(BACKENDS, call)

    return make


def rank_sweep(rule, n=145_000, count=150, d=74):
    def make():
        X, r, starts = groups(n, count, d)
        sweep = RankSweep(X, np.repeat(np.arange(len(starts) - 1), np.diff(starts)), r, ONE, rule)
        w, none = weights(1, d)[0, 1:].copy(), np.empty(0)
        call = lambda k: k.rank_sweep(X, sweep.places, sweep.queries, rule, w, none, sweep.sweep_grid, THREADS)  # noqa: E731
        return X, THREADS, dict.fromkeys(BACKENDS, call)

    return make


def combine(n=145_000, d=74):
    def make():
        X, _, _ = groups(n, 150, d)
        e = np.random.default_rng(1).standard_normal(n)
        return X, THREADS, dict.fromkeys(BACKENDS, lambda k: k.combine(X, e, grid(X.shape, 8), THREADS))

    return make


def times(n=11_000, d=42_000, each=130, K=20):
    def make():
        S, _ = sparse(n, d, each)
        X, B, Z = CSR(S.data, S.indices, S.indptr, d), weights(d, K - 1).astype(np.float32), np.empty((n, K), np.float32)
        return S.data, THREADS, dict.fromkeys(BACKENDS, lambda k: k.times(X, B, Z, Grid(16, -(-n // 256)), THREADS))

    return make


def rank_pairs(d=46, count=500_000):
    def make():
        X, _ = dense(50_000, d)
        pairs, rule = np.random.default_rng(2).integers(0, len(X), (count, 2)), PairRule(PairLoss.HINGE, 1.0)
        slow = 10_000
        calls = {name: lambda k: k.rank_pairs(X, pairs, ONE, np.zeros(d), 0.01, rule) for name in ("cython", "numba")}
        calls["numpy"] = lambda k: k.rank_pairs(X, pairs[:slow], ONE, np.zeros(d), 0.01, rule)
        return X, 1, calls, count / slow

    return make


def group_metric(n=1_000_000, count=10_000):
    def make():
        rng = np.random.default_rng(3)
        y, z = rng.integers(0, 5, n).astype(float), rng.standard_normal((n, 1))
        starts = np.unique(np.concatenate([[0, n], rng.integers(1, n, count - 1)])).astype(np.int64)
        g = group_grid(starts)
        call = lambda k: k.group_metric(int(Metric.NDCG), y, z[:, 0], starts, 10, g, THREADS)  # noqa: E731
        return z, THREADS, dict.fromkeys(BACKENDS, call)

    return make


# name -> problem. The names are what compare.py matches and the README's table shows.
PROBLEMS = {
    "logistic gradient 1M x 50 float64": sweep(1_000_000, 50, "float64", 1),
    "logistic gradient 1M x 50 float32": sweep(1_000_000, 50, "float32", 1),
    "logistic gradient 1M x 28 float64": sweep(1_000_000, 28, "float64", 1),
    "logistic gradient 200k x 500 float64": sweep(200_000, 500, "float64", 1),
    "logistic gradient 2M x 10 float64": sweep(2_000_000, 10, "float64", 1),
    "logistic Hessian 1M x 28 float64": sweep(1_000_000, 28, "float64", 2),
    "logistic gradient 200k x 20, quadratic basis (230)": mapped(200_000, 20, Quadratic()),
    "logistic gradient 200k x 10, radial basis (200)": mapped(200_000, 10, RadialGaussian(200)),
    "softmax gradient K=10 60k x 784 uint8": sweep(60_000, 784, "uint8", 1, K=10),
    "softmax gradient K=10 60k x 784 float32": sweep(60_000, 784, "float32", 1, K=10),
    "softmax gradient K=10 1M x 28 float64": sweep(1_000_000, 28, "float64", 1, K=10),
    "class sums K=10 1M x 28 float64": class_moments(1_000_000, 28, "float64", Moment.SUMS),
    "scatter within classes K=10 1M x 28 float64": class_moments(1_000_000, 28, "float64", Moment.SCATTER),
    "scatter of each class K=10 1M x 28 float64": class_moments(1_000_000, 28, "float64", Moment.SCATTER, own=True),
    "scatter within classes K=10 60k x 784 uint8": class_moments(60_000, 784, "uint8", Moment.SCATTER),
    "quadratic scores K=10 1M x 28": quadratic(1_000_000, 28),
    "quadratic scores, diagonal, K=10 1M x 28": quadratic(1_000_000, 28, diagonal=True),
    "perceptron epoch 1M x 28, 9% mistakes": online(1_000_000, 28, 2, 0.1, Rule(Loss.PERCEPTRON)),
    "perceptron epoch 1M x 28, 39% mistakes": online(1_000_000, 28, 2, 1.0, Rule(Loss.PERCEPTRON)),
    "perceptron epoch K=10 200k x 28": online(200_000, 28, 10, 0.1, Rule(Loss.WINNER)),
    "log loss epoch 1M x 28": online(1_000_000, 28, 2, 1.0, Rule(Loss.LOG, eta=0.01, alpha=1e-4)),
    "sigmoid squared error gradient 1M x 28 float64": sweep(1_000_000, 28, "float64", 1, link=Link.SIGMOID),
    "ranking, squared hinge of 145k scores, 150 queries": rank_link(PairRule(PairLoss.SQUARED_HINGE, 1.0)),
    "ranking, logistic pairs of 145k scores, 150 queries": rank_link(PairRule(PairLoss.LOGISTIC)),
    "ranking, gradient of logistic pairs 145k x 74, 150 queries": rank_sweep(PairRule(PairLoss.LOGISTIC)),
    "ranking, rows times errors 145k x 74": combine(),
    "ranking updates 500k pairs, d=46": rank_pairs(),
    "sparse rows (11k x 42k) times a matrix, K=20, float32": times(),
    "NDCG@10 of 1M rows, 10k queries": group_metric(),
}


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    """One problem at a time: all of them at once would not fit in memory."""
    for maker in (dense, images, groups):
        maker.cache_clear()
    made = PROBLEMS[request.param]()
    X, threads, calls, *scale = made
    return request.param, X, threads, calls, scale[0] if scale else 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernel(benchmark, problem, backend):
    name, X, threads, calls, scale = problem
    kernels = _kernels.load(backend)
    call = lambda: calls[backend](kernels)  # noqa: E731
    begin = time.perf_counter()
    if backend != "numpy":
        call()
    first = time.perf_counter() - begin
    rounds = 1 if backend == "numpy" and "of 145k scores" in name else 3 if backend == "numpy" else 9
    benchmark.pedantic(call, rounds=rounds, iterations=1)
    read = reader(X, threads)
    kernel_time, read_time = best_of([call, read], rounds)
    kernel_time *= scale if backend == "numpy" else 1
    if name not in _numpy_time:
        reference = _kernels.load("numpy")
        _numpy_time[name] = scale * best_of([lambda: calls["numpy"](reference)], 1 if "of 145k scores" in name else 3)[0]
    benchmark.extra_info.update(
        problem=name,
        backend=backend,
        milliseconds=1e3 * kernel_time,
        over_numpy=_numpy_time[name] / kernel_time,
        over_read=kernel_time / read_time,
        read_gigabytes_per_second=X.nbytes / read_time / 1e9,
        first_call=first,
    )
