"""Every kernel on every backend.

    python -m pytest bench/kernels.py --benchmark-enable --benchmark-json=FILE -p no:xdist

A row of the results has two ratios: the speed-up over the NumPy reference, and the time relative
to that of only reading X. The calls of a ratio alternate in one process. Compilation happens before
any time is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from measure import best_of, reader
from problems import dense, images, queries, sparse

from fastdisc import _kernels, runtime
from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import (
    Batch,
    Grid,
    Kernels,
    MarginLoss,
    MomentKind,
    OnlineRule,
    OnlineState,
    PairLoss,
    PairRule,
    RankMetric,
    RowLoss,
    RowOrder,
    moments_grid,
    query_grid,
    row_grid,
)
from fastdisc._objectives.query_sums import QuerySums
from fastdisc.basis import Quadratic, RadialGaussian

BACKENDS = ("cython", "numba", "numpy")
COMPILED = ("cython", "numba")
THREADS = min(2, runtime.cpus())
RUN_ROWS = 512  # of an online epoch
EQUAL = np.ones(1)  # all rows have the weight 1
NONE = np.empty(0)

Call = Callable[[Kernels], Any]
_numpy_time: dict[str, float] = {}


class Problem(NamedTuple):
    """What is measured: a call for each backend, and the array that it reads."""

    X: np.ndarray
    n_threads: int
    calls: dict[str, Call]
    scale: float = 1.0  # the whole problem relative to the part that the reference computes


Maker = Callable[[], Problem]


def for_all(X: np.ndarray, call: Call) -> Problem:
    """The same call on every backend."""
    return Problem(X, THREADS, dict.fromkeys(BACKENDS, call))


def with_slow_reference(X: np.ndarray, call: Call, part: Call, scale: float) -> Problem:
    """Serial kernels whose reference is a loop in Python, measured on a part of the problem."""
    return Problem(X, 1, dict.fromkeys(COMPILED, call) | {"numpy": part}, scale)


def random_weights(K: int, d: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((K, d + 1)) * 0.1


def rows_and_classes(n: int, d: int, K: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows, or images if they have that many columns."""
    return images(n, d, K, dtype) if d == 784 else dense(n, d, K, dtype)


# --- rows -----------------------------------------------------------------------------------------


def sweep(n: int, d: int, dtype: str, order: int, K: int = 2, loss: RowLoss | None = None) -> Maker:
    def make() -> Problem:
        X, y = rows_and_classes(n, d, K, dtype)
        W = random_weights(1 if K == 2 else K, d) * (0.01 if d == 784 else 1)
        default = RowLoss.LOGISTIC if K == 2 else RowLoss.SOFTMAX
        code = default if loss is None else loss
        batch = Batch(DenseRows(X), y.astype(np.int32), EQUAL)
        grid = row_grid(X.shape, 8 if order == 2 else max(4, X.itemsize), len(W), order)
        # The reference multiplies in float64, to which conversion would add.
        batch64 = batch._replace(X=DenseRows(X.astype(np.float64))) if d == 784 else batch
        compiled: Call = lambda k: k.sweep(batch, code, W, order, grid, THREADS)  # noqa: E731
        calls = dict.fromkeys(COMPILED, compiled)
        calls["numpy"] = lambda k: k.sweep(batch64, code, W, order, grid, THREADS)
        return Problem(X, THREADS, calls)

    return make


def mapped(n: int, d: int, basis: Any) -> Maker:
    def make() -> Problem:
        X, y = dense(n, d)
        batch = Batch(basis.fit(X).mapped(DenseRows(X)), y.astype(np.int32), EQUAL)
        W, grid = random_weights(1, batch.X.shape[1]), row_grid(batch.X.shape, 8, 1, 1)
        return for_all(X, lambda k: k.sweep(batch, RowLoss.LOGISTIC, W, 1, grid, THREADS))

    return make


def class_moments(
    n: int, d: int, dtype: str, kind: MomentKind, K: int = 10, each_class: bool = False
) -> Maker:
    def make() -> Problem:
        X, y = rows_and_classes(n, d, K, dtype)
        batch = Batch(DenseRows(X), y.astype(np.int32), EQUAL)
        group = (np.arange(K) if each_class else np.zeros(K)).astype(np.int32)
        shift = np.rint(X[:100].mean(axis=0)) * np.ones((K, 1))
        columns = d if kind >= MomentKind.SCATTER else 0
        grid = moments_grid(X.shape, X.itemsize, K * (d + 1), columns, len(np.unique(group)))
        return for_all(X, lambda k: k.class_moments(batch, shift, group, int(kind), grid, THREADS))

    return make


def quadratic_scores(n: int, d: int, K: int = 10, diagonal: bool = False) -> Maker:
    def make() -> Problem:
        X, _ = dense(n, d, K)
        A = np.random.default_rng(1).standard_normal((K, d) if diagonal else (K, d, d))
        A = A if diagonal else np.triu(A)
        rows, mean, c, grid = (
            DenseRows(X),
            np.zeros((K, d)),
            np.zeros(K),
            row_grid(X.shape, 8, 1, 2),
        )
        return for_all(X, lambda k: k.quadratic_scores(rows, mean, A, c, grid, THREADS))

    return make


def online_epoch(n: int, d: int, K: int, noise: float, rule: OnlineRule) -> Maker:
    def make() -> Problem:
        X, y = dense(n, d, K, noise=noise)
        r, shape = y.astype(np.int32), (1 if K == 2 else K, d + 1)
        n_slow = min(n, 20_000)

        def epoch(n_rows: int) -> Call:
            batch = Batch(DenseRows(X[:n_rows]), r[:n_rows], EQUAL)
            order = RowOrder(np.arange(-(-n_rows // RUN_ROWS)), RUN_ROWS)

            def call(kernels: Kernels) -> Any:
                W = np.zeros(shape)
                state = OnlineState(W, W[:0], W[:0], np.zeros(2))
                return kernels.online_epoch(batch, state, rule, order, 1)

            return call

        return with_slow_reference(X, epoch(n), epoch(n_slow), n / n_slow)

    return make


def matmul(n: int = 11_000, d: int = 42_000, per_row: int = 130, K: int = 20) -> Maker:
    def make() -> Problem:
        S, _ = sparse(n, d, per_row)
        rows, grid = CSRRows(S.data, S.indices, S.indptr, d), Grid(16, -(-n // 256))
        B, out = random_weights(d, K - 1).astype(np.float32), np.empty((n, K), np.float32)
        return for_all(S.data, lambda k: k.matmul(rows, B, out, grid, THREADS))

    return make


# --- ranking --------------------------------------------------------------------------------------


def ranked_rows(n: int, n_queries: int, d: int, rule: PairRule, columns: int) -> QuerySums:
    """The loss over the pairs of some queries, of the first columns."""
    X, grades, starts = queries(n, n_queries, d)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return QuerySums(DenseRows(X[:, :columns]), group, grades, EQUAL, rule)


def query_loss(rule: PairRule, n: int = 145_000, n_queries: int = 150, d: int = 74) -> Maker:
    def make() -> Problem:
        X, _, _ = queries(n, n_queries, d)
        data = ranked_rows(n, n_queries, d, rule, 1)
        z = np.ascontiguousarray(X[data.places] @ random_weights(1, d)[0, 1:])
        return for_all(X, lambda k: k.query_loss(z, data.queries, rule, data.grid, THREADS))

    return make


def query_sweep(rule: PairRule, n: int = 145_000, n_queries: int = 150, d: int = 74) -> Maker:
    def make() -> Problem:
        X, _, _ = queries(n, n_queries, d)
        data, w = ranked_rows(n, n_queries, d, rule, d), random_weights(1, d)[0, 1:].copy()
        arguments = DenseRows(X), data.places, data.queries, rule, w, NONE, data.sweep_grid
        return for_all(X, lambda k: k.query_sweep(*arguments, THREADS))

    return make


def weighted_row_sum(n: int = 145_000, n_queries: int = 150, d: int = 74) -> Maker:
    def make() -> Problem:
        X, _, _ = queries(n, n_queries, d)
        rows, grid = DenseRows(X), row_grid(X.shape, 8)
        e = np.random.default_rng(1).standard_normal(n)
        return for_all(X, lambda k: k.weighted_row_sum(rows, e, grid, THREADS))

    return make


def online_pairs(d: int = 46, n_pairs: int = 500_000, n_slow: int = 10_000) -> Maker:
    def make() -> Problem:
        X, _ = dense(50_000, d)
        pairs = np.random.default_rng(2).integers(0, len(X), (n_pairs, 2))
        rows, rule = DenseRows(X), PairRule(PairLoss.HINGE, 1.0)

        def epoch(some: np.ndarray) -> Call:
            return lambda k: k.online_pairs(rows, some, EQUAL, np.zeros(d), 0.01, rule)

        return with_slow_reference(X, epoch(pairs), epoch(pairs[:n_slow]), n_pairs / n_slow)

    return make


def query_metric(n: int = 1_000_000, n_queries: int = 10_000) -> Maker:
    def make() -> Problem:
        rng = np.random.default_rng(3)
        y, z = rng.integers(0, 5, n).astype(float), rng.standard_normal((n, 1))
        cuts = np.concatenate([[0, n], rng.integers(1, n, n_queries - 1)])
        starts = np.unique(cuts).astype(np.int64)
        arguments = int(RankMetric.NDCG), y, z[:, 0], starts, 10, query_grid(starts)
        return for_all(z, lambda k: k.query_metric(*arguments, THREADS))

    return make


# --- problems -------------------------------------------------------------------------------------

SQUARED_HINGE, LOGISTIC = PairRule(PairLoss.SQUARED_HINGE, 1.0), PairRule(PairLoss.LOGISTIC)
PERCEPTRON = OnlineRule(MarginLoss.PERCEPTRON)
PERCEPTRON_MULTICLASS = OnlineRule(MarginLoss.PERCEPTRON_MULTICLASS)
LOG = OnlineRule(MarginLoss.LOG, eta=0.01, alpha=1e-4)
SUMS, SCATTER = MomentKind.SUMS, MomentKind.SCATTER
F64 = "float64"

# The names stay the same: compare.py matches them across revisions, and README shows them.
PROBLEMS: dict[str, Maker] = {
    "logistic gradient 1M x 50 float64": sweep(1_000_000, 50, F64, 1),
    "logistic gradient 1M x 50 float32": sweep(1_000_000, 50, "float32", 1),
    "logistic gradient 1M x 28 float64": sweep(1_000_000, 28, F64, 1),
    "logistic gradient 200k x 500 float64": sweep(200_000, 500, F64, 1),
    "logistic gradient 2M x 10 float64": sweep(2_000_000, 10, F64, 1),
    "logistic Hessian 1M x 28 float64": sweep(1_000_000, 28, F64, 2),
    "logistic gradient 200k x 20, quadratic basis (230)": mapped(200_000, 20, Quadratic()),
    "logistic gradient 200k x 10, radial basis (200)": mapped(200_000, 10, RadialGaussian(200)),
    "softmax gradient K=10 60k x 784 uint8": sweep(60_000, 784, "uint8", 1, K=10),
    "softmax gradient K=10 60k x 784 float32": sweep(60_000, 784, "float32", 1, K=10),
    "softmax gradient K=10 1M x 28 float64": sweep(1_000_000, 28, F64, 1, K=10),
    "class sums K=10 1M x 28 float64": class_moments(1_000_000, 28, F64, SUMS),
    "scatter within classes K=10 1M x 28 float64": class_moments(1_000_000, 28, F64, SCATTER),
    "scatter of each class K=10 1M x 28 float64": class_moments(
        1_000_000, 28, F64, SCATTER, each_class=True
    ),
    "scatter within classes K=10 60k x 784 uint8": class_moments(60_000, 784, "uint8", SCATTER),
    "quadratic scores K=10 1M x 28": quadratic_scores(1_000_000, 28),
    "quadratic scores, diagonal, K=10 1M x 28": quadratic_scores(1_000_000, 28, diagonal=True),
    "perceptron epoch 1M x 28, 9% mistakes": online_epoch(1_000_000, 28, 2, 0.1, PERCEPTRON),
    "perceptron epoch 1M x 28, 39% mistakes": online_epoch(1_000_000, 28, 2, 1.0, PERCEPTRON),
    "perceptron epoch K=10 200k x 28": online_epoch(200_000, 28, 10, 0.1, PERCEPTRON_MULTICLASS),
    "log loss epoch 1M x 28": online_epoch(1_000_000, 28, 2, 1.0, LOG),
    "sigmoid squared error gradient 1M x 28 float64": sweep(
        1_000_000, 28, F64, 1, loss=RowLoss.SIGMOID_SQUARED
    ),
    "ranking, squared hinge of 145k scores, 150 queries": query_loss(SQUARED_HINGE),
    "ranking, logistic pairs of 145k scores, 150 queries": query_loss(LOGISTIC),
    "ranking, gradient of logistic pairs 145k x 74, 150 queries": query_sweep(LOGISTIC),
    "ranking, rows times errors 145k x 74": weighted_row_sum(),
    "ranking updates 500k pairs, d=46": online_pairs(),
    "sparse rows (11k x 42k) times a matrix, K=20, float32": matmul(),
    "NDCG@10 of 1M rows, 10k queries": query_metric(),
}


def n_rounds(name: str, backend: str) -> int:
    """The reference takes long, and minutes for the pairs of 145k scores."""
    if backend != "numpy":
        return 9
    return 1 if "of 145k scores" in name else 3


@pytest.fixture(scope="module", params=PROBLEMS)
def named_problem(request: pytest.FixtureRequest) -> tuple[str, Problem]:
    """One problem at a time: all of them at once would not fit in memory."""
    for maker in (dense, images, queries):
        maker.cache_clear()
    return request.param, PROBLEMS[request.param]()


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernel(benchmark: Any, named_problem: tuple[str, Problem], backend: str) -> None:
    name, problem = named_problem
    kernels, reference = _kernels.load(backend), _kernels.load("numpy")

    def call() -> None:
        problem.calls[backend](kernels)

    begin = time.perf_counter()
    if backend != "numpy":
        call()
    first = time.perf_counter() - begin
    rounds = n_rounds(name, backend)
    benchmark.pedantic(call, rounds=rounds, iterations=1)
    kernel_time, read_time = best_of([call, reader(problem.X, problem.n_threads)], rounds)
    kernel_time *= problem.scale if backend == "numpy" else 1
    if name not in _numpy_time:
        calls = [lambda: problem.calls["numpy"](reference)]
        _numpy_time[name] = problem.scale * best_of(calls, n_rounds(name, "numpy"))[0]
    benchmark.extra_info.update(
        problem=name,
        backend=backend,
        milliseconds=1e3 * kernel_time,
        over_numpy=_numpy_time[name] / kernel_time,
        over_read=kernel_time / read_time,
        read_gigabytes_per_second=problem.X.nbytes / read_time / 1e9,
        first_call=first,
    )
