"""Proximal Newton: elastic nets meet the conditions of an optimum; working sets; the model."""

import numpy as np
import pytest
from helpers.data_sets import STANDARDIZED
from helpers.fits import FORMS, HARD, draw_classes, fit, violation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression as ScikitLearn

from fastdisc import _kernels
from fastdisc._solvers import proximal, quadratic_model
from fastdisc._solvers.quadratic_model import QuadraticModel

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("C", [0.02, 5.0])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_elastic_net_meets_the_conditions_of_an_optimum(name, form, C, l1_ratio):
    X, y = STANDARDIZED[name]
    X, s = FORMS[form](X), np.random.default_rng(1).random(len(y))
    found = fit(X, y, "proximal", C=C, l1_ratio=l1_ratio, problem={"s": s})
    assert found.result.converged
    assert violation(found.V, X, y, C, l1_ratio, s) <= 2e-6


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_elastic_net_of_ten_classes(l1_ratio):
    X, y = STANDARDIZED["digits"]
    found = fit(X, y, "proximal", C=0.02, l1_ratio=l1_ratio)
    assert found.result.converged
    assert violation(found.V, X, y, 0.02, l1_ratio) <= 2e-6


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_elastic_net_of_hard_data(hard, l1_ratio):
    X, y, _ = draw_classes()
    X, y = HARD[hard](X, y)
    found = fit(X, y, "proximal", C=0.01, l1_ratio=l1_ratio)
    assert found.result.converged
    assert violation(found.V, X, y, 0.01, l1_ratio) <= 2e-6


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_elastic_net_is_that_of_scikit_learn(name, l1_ratio):
    X, y = STANDARDIZED[name]
    options = {"l1_ratio": l1_ratio, "C": 0.1, "tol": 1e-9, "max_iter": 20_000}
    expected = ScikitLearn(solver="saga", random_state=0, **options).fit(X, y)
    V = fit(X, y, "proximal", l1_ratio=l1_ratio, C=0.1, tol=1e-9).V
    np.testing.assert_allclose(V[:, 1:], expected.coef_, rtol=1e-5, atol=1e-5)
    assert np.array_equal(V[:, 1:] != 0, np.abs(expected.coef_) > 1e-9)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_lasso_is_that_of_liblinear(C):
    """Without an intercept, which liblinear would penalise."""
    X, y = STANDARDIZED["breast_cancer"]
    options = {"l1_ratio": 1.0, "C": C, "tol": 1e-10, "max_iter": 10_000, "random_state": 0}
    expected = ScikitLearn(solver="liblinear", fit_intercept=False, **options).fit(X, y)
    options = {"l1_ratio": 1.0, "C": C, "tol": 1e-9}
    V = fit(X, y, "proximal", problem={"intercept": False}, **options).V
    np.testing.assert_allclose(V[:, 1:], expected.coef_, atol=1e-5)
    assert V[0, 0] == 0


def test_float32_products_that_limit_the_certificate_are_replaced():
    """Steps that lower nothing beyond rounding used to go on until max_iter."""
    X, y = STANDARDIZED["digits"]
    X, y = np.rint(4 * X[y < 3]).astype(np.int8), y[y < 3]
    for unrestricted in (True, False):
        found = fit(X, y, "proximal", C=1e-3, tol=1e-9, l1_ratio=0.0 if unrestricted else 0.5)
        assert found.result.converged and found.result.n_iter < 200


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_direction_that_only_the_penalty_determines(l1_ratio):
    """The same may be added to the weights of all classes: along there the loss has no curvature,
    and the penalty little."""
    X, y, _ = draw_classes(100, 2, 4, seed=1)
    X = 1000 * X
    found = fit(X, y, "proximal", l1_ratio=l1_ratio, tol=1e-8)
    assert found.result.converged
    assert violation(found.V, X, y, 1.0, l1_ratio) <= 2e-8


# --- which weights are 0 --------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "C"), [(2, 1.0), (2, 10.0), (3, 1.0)])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_working_sets_of_wide_sparse_data(K, C, l1_ratio):
    rng = np.random.default_rng(5)
    options = {"density": 0.02, "rng": rng, "data_sampler": rng.standard_normal, "format": "csr"}
    X = sparse.random_array((300, 3000), **options)
    W = np.where(rng.random((3000, K)) < 0.01, 3.0, 0) * rng.standard_normal((3000, K))
    y = (X @ W + 0.3 * rng.gumbel(size=(300, K))).argmax(axis=1)
    V, result, _ = fit(X, y, "proximal", C=C, l1_ratio=l1_ratio)
    assert result.converged and 0 < np.count_nonzero(V[:, 1:]) < V[:, 1:].size / 2
    assert violation(V, X, y, C, l1_ratio) <= 2e-6


def test_working_set_has_the_columns_that_violate_most():
    W, gap = np.zeros((1, 501)), np.zeros((1, 501))
    W[0, 1:4], gap[0, 100:400] = 1.0, np.arange(300) + 1
    chosen = proximal.working_set(gap, W)
    assert set(chosen) == {0, 1, 2, *range(299, 399)}
    assert len(proximal.working_set(np.zeros((1, 501)), np.zeros((1, 501)))) == 1


def test_strong_lasso_leaves_the_intercepts_alone():
    X, y = STANDARDIZED["wine"]
    V = fit(X, y, "proximal", C=1e-4, l1_ratio=1.0, tol=1e-10).V
    assert not V[:, 1:].any()
    probabilities = np.exp(V[:, 0]) / np.exp(V[:, 0]).sum()
    np.testing.assert_allclose(probabilities, np.bincount(y) / len(y), atol=1e-8)


@pytest.mark.parametrize("rows", [50, 300])
def test_strong_lasso_of_wide_data_leaves_the_intercept_alone(rows):
    X = np.random.default_rng(0).standard_normal((rows, proximal.MAX_UNRESTRICTED_WEIGHTS + 100))
    y = (np.arange(rows) % 5 == 0).astype(int)
    V, result, _ = fit(X, y, "proximal", l1_ratio=1.0, C=1e-3)
    assert not V[:, 1:].any() and result.converged
    np.testing.assert_allclose(V[0, 0], np.log(0.2 / 0.8), rtol=1e-4)


# --- the quadratic model --------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("backend", ["numpy", "cython"])
def test_minimum_of_the_model_where_columns_are_nearly_collinear(backend, strength):
    """Coordinate descent alone takes 275,000, 3,700 and 48 passes."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 1)) + 0.03 * rng.standard_normal((300, 40))
    W, g, penalty = *rng.standard_normal((2, 1, 40)), np.full((1, 40), strength)
    model, penalty[0, 0] = QuadraticModel(), 0
    model.H = A.T @ A
    V = model.minimise(_kernels.load(backend), W, g - W @ model.H, penalty)
    left = proximal.violation(g + (V - 2 * W) @ model.H, V, penalty)
    assert np.abs(left).max() <= 1e-6 * np.abs(g - W @ model.H).max()
    assert V[0, 0] != 0 and (strength < 1 or (V == 0).any())


@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(1, 12), strength=st.floats(0, 50))
def test_solve_signs_lowers_the_model_and_keeps_or_clears_signs(seed, n, strength):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n + 3, n))
    H, q = A.T @ A, 10 * rng.standard_normal(n)
    w, l1 = rng.standard_normal(n) * (rng.random(n) < 0.7), strength * rng.random(n)
    w[0] = 1.0

    def value(v):
        return v @ H @ v / 2 - q @ v + l1 @ np.abs(v)

    before = w.copy()
    if quadratic_model.solve_signs(H, q, l1, w):
        assert value(w) <= value(before) + 1e-9 * abs(value(before))
        assert (w[(l1 > 0) & (before == 0)] == 0).all()


@PROFILE
@given(seed=st.integers(0, 2**31), K=st.integers(2, 6), with_l1=st.booleans(), l2=st.booleans())
def test_least_penalty_shift_is_the_best_of_all_shifts(seed, K, with_l1, l2):
    rng = np.random.default_rng(seed)
    W, d = np.round(rng.standard_normal((K, 5)), 1), 4
    l1, l2 = with_l1 * rng.random(d), l2 * rng.random(d)

    def costs(w):
        return (l1 * np.abs(w) + l2 / 2 * w**2).sum(axis=0)

    found = quadratic_model.least_penalty_shift(W, l1, l2)
    shift = W[:, 1:] - found[:, 1:]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-12)
    assert np.array_equal(found[:, 0], W[:, 0])
    for c in np.linspace(-3, 3, 61):
        assert (costs(found[:, 1:]) <= costs(W[:, 1:] - c) + 1e-9).all()


def test_learned_steps_are_reproduced_by_the_model(rng):
    model, A = QuadraticModel(), rng.standard_normal((20, 6))
    H, model.H = A.T @ A, np.eye(6)
    for s in rng.standard_normal((4, 2, 3)):
        model.learn(s, (H @ s.ravel()).reshape(2, 3))
        np.testing.assert_allclose(model.H @ s.ravel(), H @ s.ravel(), rtol=1e-9)
    before = model.H.copy()
    model.learn(s, -s)  # negative curvature teaches nothing
    assert np.array_equal(model.H, before)
