"""Many two-class problems in one pass: the kernel, and the solver that shares its sweeps."""

import numpy as np
import oracles
import pytest
from conftest import make_features
from sklearn.datasets import load_breast_cancer, load_digits

from fastdisc import LogisticRegression, _kernels
from fastdisc._kernels import CSR, Link, grid
from fastdisc._problem import Problem
from fastdisc._solvers import Trace, together
from fastdisc._sweep import Sweep
from fastdisc._together import Segment, Together

KINDS, K = 4, 5


def make_many(rng, n=703, d=7, dtype="float64", layout="C"):
    X = make_features(rng, n, d, dtype, layout)
    sides = rng.integers(-1, 2, (KINDS, K)).astype(np.int8)
    return X, rng.integers(0, KINDS, n).astype(np.int32), rng.random(n) + 0.1, sides, rng.standard_normal((K, d + 1)) * 0.1


def cells(X, order):
    return grid(X.shape, 8, K, order, len(X.data) if isinstance(X, CSR) else None, K)


def test_the_reference_adds_up_each_problem_by_itself(reference, rng):
    X, r, s, sides, W = make_many(rng, n=60)
    losses, errors, G, _ = reference.sweeps(X, Link.LOGISTIC, r, s, sides, W, 1, cells(X, 1), 1)
    for k in range(K):
        side = sides[r, k]
        loss, wrong, g = oracles.logistic(X[side != 0], side[side != 0] > 0, s[side != 0], W[k : k + 1])
        assert losses[k] == pytest.approx(loss, rel=1e-12)
        assert errors[k] == pytest.approx(wrong, rel=1e-12)
        np.testing.assert_allclose(G[k], g[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "C"), ("float32", "C"), ("float64", "csr32")])
@pytest.mark.parametrize("link", [Link.LOGISTIC, Link.SIGMOID, Link.LINEAR])
def test_backends_agree(fast, reference, rng, dtype, layout, link):
    X, r, s, sides, W = make_many(rng, dtype=dtype, layout=layout)
    everyone = np.where(sides > 0, 1, -1).astype(np.int8)
    for table, weight, order in [(sides, s, 1), (sides, s, 2), (everyone, np.array([1.5]), 1), (everyone, np.array([1.5]), 2)]:
        args = X, link, r, weight, table, W, order, cells(X, order), 2
        for actual, expected in zip(fast.sweeps(*args), reference.sweeps(*args), strict=True):
            if expected is not None:
                tol = 1e-11 if dtype == "float64" or order == 2 else 2e-5
                np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol * np.abs(expected).max())


def test_losses_without_gradients(fast, reference, rng):
    X, r, s, sides, W = make_many(rng)
    args = X, Link.LOGISTIC, r, s, sides, W, 0, cells(X, 0), 2
    for actual, expected in zip(fast.sweeps(*args)[:2], reference.sweeps(*args)[:2], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11)


def test_threads_change_no_bit(rng):
    kernels = _kernels.load("cython")
    X, r, s, sides, W = make_many(rng, n=20_000)
    one, two, three = (kernels.sweeps(X, Link.LOGISTIC, r, s, sides, W, 2, cells(X, 2), n) for n in (1, 2, 3))
    for a, b, c in zip(one, two, three, strict=True):
        assert np.array_equal(a, b) and np.array_equal(b, c)


def solve(objective, d, **options):
    return together.solve(objective, np.zeros((objective.K, d + 1)), **{"tol": 1e-9, "max_iter": 200, "trace": Trace()} | options)


@pytest.mark.parametrize("intercept", [True, False])
def test_one_against_the_rest_equals_separate_fits(intercept):
    X, y = load_digits(return_X_y=True)
    problem = Problem(Sweep(X, y.astype(np.int32), np.ones(1), Link.LOGISTIC), intercept=intercept)
    results = solve(Together.of(problem, 2 * np.eye(10) - 1, 100.0), X.shape[1])
    for k, result in enumerate(results):
        alone = LogisticRegression(C=0.01, tol=1e-9, fit_intercept=intercept).fit(X, y == k)
        V = problem.outward(result.W)
        assert result.converged
        np.testing.assert_allclose(V[:, 1:], alone.coef_, atol=1e-7)
        np.testing.assert_allclose(V[:, 0], alone.intercept_, atol=1e-6)


def test_pairs_in_segments_equal_separate_fits(rng):
    X = rng.standard_normal((30_000, 6)) + 3
    y = ((X - 3) @ rng.standard_normal((6, 3)) + rng.gumbel(size=(30_000, 3))).argmax(axis=1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    pairs, starts = [(0, 1), (0, 2), (1, 2)], np.searchsorted(y, range(4))
    segments = []
    for k in range(3):
        rows, mine = slice(starts[k], starts[k + 1]), [p for p, pair in enumerate(pairs) if k in pair]
        sweep = Sweep(X[rows], np.zeros(rows.stop - rows.start, np.int32), np.ones(1), Link.LOGISTIC)
        segments.append(Segment(sweep, np.array([[1 if pairs[p][1] == k else -1 for p in mine]], np.int8), np.array(mine)))
    problem = Problem(Sweep(X, y.astype(np.int32), np.ones(1), Link.LOGISTIC))
    results = solve(Together(segments, problem.mean, problem.scale, problem.l2(1.0)), 6)
    for (i, j), result in zip(pairs, results, strict=True):
        rows = (y == i) | (y == j)
        alone = LogisticRegression(tol=1e-9).fit(X[rows], y[rows])
        np.testing.assert_allclose(problem.outward(result.W)[:, 1:], alone.coef_, rtol=1e-6, atol=1e-8)


def test_a_path_of_penalties_remembers_hessians_and_sums():
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem(Sweep(X, y.astype(np.int32), np.ones(1), Link.LOGISTIC))
    objective, model, W = Together.of(problem, [[1, -1], [-1, 1]], 1.0), together.Model(), np.zeros((2, X.shape[1] + 1))
    for C in (0.01, 0.1, 1.0):
        results = together.solve(objective.like(problem.l2(1 / C)), W, tol=1e-9, max_iter=200, trace=Trace(), model=model)
        W = np.vstack([result.W for result in results])
        alone = LogisticRegression(C=C, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(problem.outward(W)[1, 1:], alone.coef_[0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(W[0], -W[1], rtol=1e-5, atol=1e-7)
