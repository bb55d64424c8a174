"""Online rules: the definition, the reference, the compiled backends, and any number of threads."""

import numpy as np
import pytest
from helpers import oracles
from helpers.assertions import same_bits
from helpers.cases import DTYPES, THREADS
from helpers.problems import make_features

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import (
    Activation,
    Batch,
    LearningRate,
    MarginLoss,
    OnlineRule,
    OnlineState,
    RowOrder,
    row_grid,
)

PERCEPTRONS = (MarginLoss.PERCEPTRON, MarginLoss.PERCEPTRON_MULTICLASS)
# Each type and layout of the backend that is compiled ahead; a few of the one that compiles each
# for seconds.
TYPES = [
    *(("cython", dtype, layout) for dtype in DTYPES for layout in ("C", "F")),
    *(("cython", "float64", layout) for layout in ("strided", "reversed", "csr32", "csr64")),
    ("cython", "float32", "csr64"),
    ("numba", "float64", "C"),
    ("numba", "uint8", "F"),
    ("numba", "float64", "csr32"),
]
FLOAT64_TYPES = [case for case in TYPES if case[1] == "float64" and case[2] != "csr64"]
PENALTIES = [(0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.1, 0.3)]


def make_order(rng, n, run, shuffled=True):
    runs = -(-n // run)
    return RowOrder(rng.permutation(runs) if shuffled else np.arange(runs), run)


def learn(kernels, batch, rule, order, *, K, threads=1, average=False, epochs=2):
    """Some epochs from zero weights: all that the kernel writes and returns."""
    shape = (1 if K == 2 else K, batch.X.shape[1] + 1)
    none = (0, shape[1])
    U, Q = np.zeros(shape if average else none), np.zeros(shape if rule.l1 else none)
    state = OnlineState(np.zeros(shape), U, Q, np.zeros(2))
    sums = [kernels.online_epoch(batch, state, rule, order, threads) for _ in range(epochs)]
    return *state, sums


def with_exact_sums(X):
    """Rows whose sums of products are exact, with the same layout."""
    if X.is_sparse:
        return X.map_values(lambda values: np.rint(values * 4) / 4)
    if X.dtype.kind == "f":
        X.values[...] = np.rint(X.values)
    return X


@pytest.mark.parametrize("loss", MarginLoss)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("alpha", "l1"), PENALTIES)
def test_reference_is_the_definition(reference, rng, loss, K, alpha, l1):
    if loss == MarginLoss.PERCEPTRON_MULTICLASS and K == 2:
        pytest.skip("for more than two classes")
    r, s = rng.integers(0, K, 40).astype(np.int32), rng.integers(0, 3, 40).astype(float)
    batch = Batch(make_features(rng, 40, 3), r, s)
    for rate, eta, power in (
        (LearningRate.CONSTANT, 0.1, 0.0),
        (LearningRate.OPTIMAL, 3.0, 20.0),
        (LearningRate.INVSCALING, 0.2, 0.5),
    ):
        intercept = rate != LearningRate.OPTIMAL
        rule = OnlineRule(loss, rate, eta, power, alpha, l1, intercept, 10.0)
        order = make_order(rng, 40, 7)
        W, U, _, clock, sums = learn(reference, batch, rule, order, K=K, average=True)
        visited = [t for run in order.order for t in range(7 * run, min(40, 7 * run + 7))]
        rates = rate.name, eta, power
        expected = oracles.online(
            *batch[:3], W.shape, loss.name, rates, alpha, l1, intercept, visited, 2, 10
        )
        for a, b in zip((W, U, clock[0], *sums[1]), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "dtype", "layout"), TYPES)
@pytest.mark.parametrize("K", [2, 4])
def test_perceptron_agrees_to_the_last_bit(reference, rng, name, dtype, layout, K):
    """Sums of these numbers are exact: only the order of the updates can differ."""
    X = with_exact_sums(make_features(rng, 203, 7, dtype, layout))
    r, s = rng.integers(0, K, 203).astype(np.int32), rng.integers(0, 3, 203).astype(float)
    for loss in PERCEPTRONS[: 1 if K == 2 else 2]:
        for run, shuffled in ((16, False), (16, True), (1, True)):
            args = Batch(X, r, s), OnlineRule(loss, eta=0.5), make_order(rng, 203, run, shuffled)
            actual, expected = (
                learn(kernels, *args, K=K, average=True)
                for kernels in (_kernels.load(name), reference)
            )
            for a, b in zip(actual[:4], expected[:4], strict=True):
                assert np.array_equal(a, b)
            assert [u for _, u in actual[4]] == [u for _, u in expected[4]]
            assert actual[4][0][1] > 0


@pytest.mark.parametrize(("name", "dtype", "layout"), FLOAT64_TYPES)
@pytest.mark.parametrize("K", [2, 3])
def test_rules_agree_with_reference(reference, rng, name, dtype, layout, K):
    X, kernels = make_features(rng, 150, 6, dtype, layout), _kernels.load(name)
    r = rng.integers(0, K, 150).astype(np.int32)
    batch = Batch(X, r, rng.random(150) * (rng.random(150) < 0.9))
    order = make_order(rng, 150, 8)
    rates = (
        (LearningRate.CONSTANT, 0.01, 0.0),
        (LearningRate.OPTIMAL, 3.0, 300.0),
        (LearningRate.INVSCALING, 0.03, 0.5),
    )
    losses = [loss for loss in MarginLoss if K > 2 or loss != MarginLoss.PERCEPTRON_MULTICLASS]
    for loss in losses:
        for alpha, l1 in ((0.0, 0.0), (0.05, 0.0), (0.05, 1.0), (0.05, 0.3)):
            for rate, eta, power in rates:
                rule = OnlineRule(loss, rate, eta, power, alpha, l1, True, 50.0)
                # Sparse rows apply the L1 penalty when a weight is next read: averages differ.
                average = not (l1 > 0 and X.is_sparse)
                actual, expected = (
                    learn(k, batch, rule, order, K=K, average=average) for k in (kernels, reference)
                )
                both = ((*found[:4], found[4][1]) for found in (actual, expected))
                found = zip(*both, strict=True)
                for a, b in found:
                    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11)


def test_strong_penalties_agree_with_reference(fast, reference, rng):
    """1 - eta alpha is 0 at once, or the scale factor gets too small within the epoch."""
    X, r = make_features(rng, 200, 4), rng.integers(0, 2, 200).astype(np.int32)
    for alpha in (5.0, 10.0):
        rule = OnlineRule(MarginLoss.LOG, eta=0.1, alpha=alpha)
        args = Batch(X, r, np.ones(1)), rule, make_order(rng, 200, 8)
        actual, expected = (learn(k, *args, K=2, average=True) for k in (fast, reference))
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(actual[1], expected[1], rtol=1e-9)


def nearly_separable(rng, n, d, K, dtype="float64", layout="C"):
    X = make_features(rng, n, d, dtype, layout)
    noise = 0.05 * rng.standard_normal((n, K))
    r = (X.dense() @ rng.standard_normal((d, K)) + noise).argmax(axis=1)
    return X, r.astype(np.int32)


@pytest.mark.parametrize(
    ("dtype", "layout", "d"),
    [("float64", "C", 9), ("uint8", "C", 21), ("float32", "F", 6), ("float64", "csr32", 12)],
)
@pytest.mark.parametrize(
    ("K", "loss"), [(2, MarginLoss.PERCEPTRON), (4, MarginLoss.PERCEPTRON_MULTICLASS)]
)
@pytest.mark.parametrize("run", [1, 64])
def test_results_do_not_depend_on_threads(rng, dtype, layout, d, K, loss, run):
    """Enough rows, and few enough mistakes, that most rows are scored ahead."""
    X, r = nearly_separable(rng, 20_011, d, K, dtype, layout)
    s = rng.random(len(r)) * (rng.random(len(r)) < 0.9)
    kernels, rule = _kernels.load("cython"), OnlineRule(loss, eta=0.3)
    for weights, shuffled in ((s, True), (np.ones(1), False)):
        args = kernels, Batch(X, r, weights), rule, make_order(rng, len(r), run, shuffled)
        found = [learn(*args, K=K, average=True, epochs=4, threads=n) for n in THREADS]
        assert found[0][4][-1][1] < 0.2 * len(r), "too many mistakes to be scored ahead"
        same_bits(found)


def test_one_vs_rest_does_not_depend_on_threads(rng):
    r = rng.integers(0, 3, 20_011).astype(np.int32)
    X = DenseRows(rng.standard_normal((len(r), 3)) + 4 * np.eye(3)[r])
    rule, order = OnlineRule(MarginLoss.PERCEPTRON), make_order(rng, len(r), 64)
    args = _kernels.load("cython"), Batch(X, r, np.ones(1)), rule, order
    found = [learn(*args, K=3, epochs=4, threads=n) for n in THREADS]
    assert found[0][4][-1][1] < 0.05 * len(r), "too many mistakes to be scored ahead"
    same_bits(found)


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_are_those_of_a_python_loop(rng, K, threads):
    """A loop over rows that are scored one at a time by another kernel: the same bits."""
    X, r = nearly_separable(rng, 3000, 530, K)
    kernels, W, mistakes = _kernels.load("cython"), np.zeros((1 if K == 2 else K, 531)), 0
    grid = row_grid((1, 530), 8, K)
    for t in range(3000):
        z = kernels.outputs(X.take(slice(t, t + 1)), Activation.IDENTITY, W, grid, 1)[0][0]
        x, own = np.append(1.0, X.values[t]), r[t]
        if K == 2:
            sign = 1.0 if own else -1.0
            if not sign * z[0] > 0:
                W[0] += sign * x
                mistakes += 1
            continue
        rival = np.where(np.arange(K) == own, -np.inf, z).argmax()
        if not z[own] > z[rival]:
            W[own] += x
            W[rival] -= x
            mistakes += 1
    rule, order = OnlineRule(PERCEPTRONS[K > 2]), make_order(rng, 3000, 16, False)
    args = kernels, Batch(X, r, np.ones(1)), rule, order
    actual = learn(*args, K=K, threads=threads, epochs=1)
    assert np.array_equal(actual[0], W) and actual[4][0][1] == mistakes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 2])
def test_nan_and_infinity_reach_the_loss(backend, rng, value, threads):
    n = 300 if backend is _kernels.load("numpy") else 6000
    X, r = nearly_separable(rng, n, 4, 2)
    X.values[-5, 1] = value
    for loss in (MarginLoss.PERCEPTRON, MarginLoss.LOG):
        args = backend, Batch(X, r, np.ones(1)), OnlineRule(loss), make_order(rng, n, 16, False)
        with np.errstate(all="ignore"):
            *_, sums = learn(*args, K=2, threads=threads)
        assert not np.isfinite(sums[1][0])


def test_parts_of_a_stream_are_one_epoch(fast, rng):
    X, r = nearly_separable(rng, 1000, 5, 3)
    s, rule = np.ones(1), OnlineRule(MarginLoss.PERCEPTRON_MULTICLASS)
    args = fast, Batch(X, r, s), rule, make_order(rng, 1000, 16, False)
    whole = learn(*args, K=3, epochs=1)
    none = np.zeros((0, 6))
    state = OnlineState(np.zeros((3, 6)), none, none, np.zeros(2))
    for lo, hi in ((0, 1), (1, 18), (18, 700), (700, 1000)):
        part = Batch(X.take(slice(lo, hi)), r[lo:hi], s)
        fast.online_epoch(part, state, rule, make_order(rng, hi - lo, 16, False), 1)
    assert np.array_equal(state.W, whole[0]) and state.clock[0] == 1000
