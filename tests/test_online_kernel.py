"""The online kernel: the definition, the reference, the compiled backends; and the same bits on any number of threads."""

import numpy as np
import oracles
import pytest
from conftest import make_features
from test_threads import same_bits

from fastdisc import _kernels
from fastdisc._kernels import Loss, Rate, Rule, Walk, grid

MISTAKES = (Loss.PERCEPTRON, Loss.WINNER)
# Every type and layout where kernels are compiled ahead; a few where each costs seconds of compilation.
TYPES = [
    *[("cython", dtype, layout) for dtype in ("float64", "float32", "uint8", "int8", "int16", "bool") for layout in ("C", "F")],
    *[("cython", "float64", layout) for layout in ("strided", "reversed", "csr32", "csr64")],
    ("cython", "float32", "csr64"),
    ("numba", "float64", "C"),
    ("numba", "uint8", "F"),
    ("numba", "float64", "csr32"),
]


def order(rng, n, run, shuffled=True):
    runs = -(-n // run)
    return Walk(rng.permutation(runs) if shuffled else np.arange(runs), run)


def learn(kernels, X, r, s, rule, walk, *, K, threads=1, average=False, epochs=2):
    """Some epochs from zero weights: all that the kernel writes and returns."""
    shape = (1 if K == 2 else K, X.shape[1] + 1)
    W, clock = np.zeros(shape), np.zeros(2)
    U, Q = np.zeros(shape if average else (0, shape[1])), np.zeros(shape if rule.l1 else (0, shape[1]))
    sums = [kernels.online(X, r, s, W, U, Q, clock, rule, walk, threads) for _ in range(epochs)]
    return W, U, Q, clock, sums


def whole(X):
    """CSR with values of which all sums are exact."""
    return X._replace(data=np.rint(X.data * 4) / 4) if isinstance(X, tuple) else X


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("alpha", "l1"), [(0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.1, 0.3)])
def test_the_reference_is_the_definition(reference, rng, loss, K, alpha, l1):
    if loss == Loss.WINNER and K == 2:
        pytest.skip("two classes have no winner among others")
    X = make_features(rng, 40, 3)
    r, s = rng.integers(0, K, 40).astype(np.int32), rng.integers(0, 3, 40).astype(float)
    for rate, eta, power in ((Rate.CONSTANT, 0.1, 0.0), (Rate.OPTIMAL, 3.0, 20.0), (Rate.INVSCALING, 0.2, 0.5)):
        rule = Rule(loss, rate, eta, power, alpha, l1, rate != Rate.OPTIMAL, 10.0)
        walk = order(rng, 40, 7)
        W, U, _, clock, sums = learn(reference, X, r, s, rule, walk, K=K, average=True)
        visited = [t for run in walk.order for t in range(7 * run, min(40, 7 * run + 7))]
        expected = oracles.online(X, r, s, W.shape, loss.name, (rate.name, eta, power), alpha, l1, rule.intercept, visited, 2, 10)
        for a, b in zip((W, U, clock[0], *sums[1]), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "dtype", "layout"), TYPES)
@pytest.mark.parametrize("K", [2, 4])
def test_perceptron_bit_for_bit(reference, rng, name, dtype, layout, K):
    """Sums of these numbers are exact: the order of the updates is all that can differ."""
    X = make_features(rng, 203, 7, dtype, layout)
    X = whole(X) if isinstance(X, tuple) else np.rint(X * 4) / 4 if dtype == "float64" and layout == "C" else X
    if not isinstance(X, tuple) and X.dtype.kind == "f":
        X = np.rint(X).astype(dtype) if layout in ("C", "F") else X
        if layout in ("strided", "reversed"):
            X[...] = np.rint(X)
    r, s = rng.integers(0, K, 203).astype(np.int32), rng.integers(0, 3, 203).astype(float)
    for loss in MISTAKES[: 1 if K == 2 else 2]:
        for run, shuffled in ((16, False), (16, True), (1, True)):
            walk = order(rng, 203, run, shuffled)
            kernels = _kernels.load(name)
            args = {"X": X, "r": r, "s": s, "rule": Rule(loss, eta=0.5), "walk": walk, "K": K, "average": True}
            actual, expected = (learn(k, **args) for k in (kernels, reference))
            for a, b in zip(actual[:4], expected[:4], strict=True):
                assert np.array_equal(a, b)
            assert [u for _, u in actual[4]] == [u for _, u in expected[4]] and actual[4][0][1] > 0


@pytest.mark.parametrize(("name", "dtype", "layout"), [case for case in TYPES if case[1] == "float64" and case[2] != "csr64"])
@pytest.mark.parametrize("K", [2, 3])
def test_losses_rates_penalties_and_averages(reference, rng, name, dtype, layout, K):
    X = make_features(rng, 150, 6, dtype, layout)
    r, s, kernels = rng.integers(0, K, 150).astype(np.int32), rng.random(150) * (rng.random(150) < 0.9), _kernels.load(name)
    walk = order(rng, 150, 8)
    for loss in Loss:
        if loss == Loss.WINNER and K == 2:
            continue
        for alpha, l1 in ((0.0, 0.0), (0.05, 0.0), (0.05, 1.0), (0.05, 0.3)):
            for rate, eta, power in ((Rate.CONSTANT, 0.01, 0.0), (Rate.OPTIMAL, 3.0, 300.0), (Rate.INVSCALING, 0.03, 0.5)):
                rule = Rule(loss, rate, eta, power, alpha, l1, True, 50.0)
                lazy = l1 > 0 and layout.startswith("csr")  # an average sees what is owed of L1 when the weight is next read
                args = {"X": X, "r": r, "s": s, "rule": rule, "walk": walk, "K": K, "average": not lazy}
                actual, expected = (learn(k, **args) for k in (kernels, reference))
                for a, b in zip((*actual[:4], actual[4][1]), (*expected[:4], expected[4][1]), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11)


def test_a_strong_penalty_lets_the_scale_run_out(fast, reference, rng):
    """1 - eta alpha is 0 at once, or the scale gets too small within the epoch."""
    X, r = make_features(rng, 200, 4), rng.integers(0, 2, 200).astype(np.int32)
    for alpha in (5.0, 10.0):
        args = {"X": X, "r": r, "s": np.ones(1), "rule": Rule(Loss.LOG, eta=0.1, alpha=alpha), "walk": order(rng, 200, 8), "K": 2}
        actual, expected = (learn(k, **args, average=True) for k in (fast, reference))
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(actual[1], expected[1], rtol=1e-9)


def nearly_separable(rng, n, d, K, dtype="float64", layout="C"):
    X = make_features(rng, n, d, dtype, layout)
    A = np.asarray(oracles.dense(X)) if isinstance(X, tuple) else X.astype(float)
    return X, (A @ rng.standard_normal((d, K)) + 0.05 * rng.standard_normal((n, K))).argmax(axis=1).astype(np.int32)


@pytest.mark.parametrize(
    ("dtype", "layout", "d"), [("float64", "C", 9), ("uint8", "C", 21), ("float32", "F", 6), ("float64", "csr32", 12)]
)
@pytest.mark.parametrize(("K", "loss"), [(2, Loss.PERCEPTRON), (4, Loss.WINNER)])
@pytest.mark.parametrize("run", [1, 64])
def test_bits_do_not_depend_on_threads(rng, dtype, layout, d, K, loss, run):
    """Enough rows, and few enough mistakes, that most are scored ahead; the weights are those of the plain loop."""
    X, r = nearly_separable(rng, 20_011, d, K, dtype, layout)
    s = rng.random(len(r)) * (rng.random(len(r)) < 0.9)
    for weights, shuffled in ((s, True), (np.ones(1), False)):
        walk, rule, kernels = order(rng, len(r), run, shuffled), Rule(loss, eta=0.3), _kernels.load("cython")
        args = {"X": X, "r": r, "s": weights, "rule": rule, "walk": walk, "K": K, "average": True, "epochs": 4}
        found = [learn(kernels, **args, threads=n) for n in (1, 2, 3, 8)]
        assert found[0][4][-1][1] < 0.2 * len(r), "too many mistakes to be scored ahead"
        same_bits(found)


def test_bits_of_each_class_against_the_rest_do_not_depend_on_threads(rng):
    r = rng.integers(0, 3, 20_011).astype(np.int32)
    X = rng.standard_normal((len(r), 3)) + 4 * np.eye(3)[r]
    args = {"X": X, "r": r, "s": np.ones(1), "rule": Rule(Loss.PERCEPTRON), "walk": order(rng, len(r), 64), "K": 3, "epochs": 4}
    found = [learn(_kernels.load("cython"), **args, threads=n) for n in (1, 2, 3, 8)]
    assert found[0][4][-1][1] < 0.05 * len(r), "too many mistakes to be scored ahead"
    same_bits(found)


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_are_those_of_the_plain_loop(rng, K, threads):
    """A loop in Python over rows, scored one at a time by another kernel: the same bits."""
    X, r = nearly_separable(rng, 3000, 530, K)
    kernels, W, mistakes, g = _kernels.load("cython"), np.zeros((1 if K == 2 else K, 531)), 0, grid((1, 530), 8, K)
    for t in range(3000):
        z = kernels.outputs(X[t : t + 1], 0, W, g, 1)[0][0]
        x, own = np.append(1.0, X[t]), r[t]
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
    loss = Loss.PERCEPTRON if K == 2 else Loss.WINNER
    actual = learn(kernels, X, r, np.ones(1), Rule(loss), order(rng, 3000, 16, False), K=K, threads=threads, epochs=1)
    assert np.array_equal(actual[0], W) and actual[4][0][1] == mistakes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_not_finite_reaches_the_loss(backend, rng, value, threads):
    X, r = nearly_separable(rng, 6000 if backend is not _kernels.load("numpy") else 300, 4, 2)
    X[-5, 1] = value
    for loss in (Loss.PERCEPTRON, Loss.LOG):
        with np.errstate(all="ignore"):
            *_, sums = learn(backend, X, r, np.ones(1), Rule(loss), order(rng, len(X), 16, False), K=2, threads=threads)
        assert not np.isfinite(sums[1][0])


def test_chunks_of_a_stream_are_one_epoch(fast, rng):
    X, r = nearly_separable(rng, 1000, 5, 3)
    whole_epoch = learn(fast, X, r, np.ones(1), Rule(Loss.WINNER), order(rng, 1000, 16, False), K=3, epochs=1)
    W, clock, none = np.zeros((3, 6)), np.zeros(2), np.zeros((0, 6))
    for lo, hi in ((0, 1), (1, 18), (18, 700), (700, 1000)):
        fast.online(X[lo:hi], r[lo:hi], np.ones(1), W, none, none, clock, Rule(Loss.WINNER), order(rng, hi - lo, 16, False), 1)
    assert np.array_equal(W, whole_epoch[0]) and clock[0] == 1000
