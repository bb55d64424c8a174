"""Approximations of the inverse Hessian, and the inverse itself."""

import numpy as np
import pytest
from helpers.objectives import numpy_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.protocol import Capability
from fastdisc._solvers import preconditioners
from fastdisc._solvers.preconditioners import diagonal, estimate, inverse_hessian, kronecker

PROFILE = settings(max_examples=50, deadline=None, derandomize=True)
PENALTIES = {
    "free": {},
    "no intercept": {"intercept": False},
    "reference": {"reference": 1},
}


@PROFILE
@given(seed=st.integers(0, 2**31), K=st.integers(1, 3), d=st.integers(1, 6))
def test_inverse_hessian_solves_the_system(seed, K, d):
    rng, D = np.random.default_rng(seed), d + 1
    A = rng.standard_normal((K * D + 3, K * D)) * np.tile(np.geomspace(1e-4, 1e4, D), K)
    H, g = A.T @ A, rng.standard_normal((K, D))
    solved = inverse_hessian(H, (K, D), shift_invariant=False)(
        g * np.sqrt(H.diagonal().reshape(K, D))
    )
    np.testing.assert_allclose(
        (H @ solved.ravel()).reshape(K, D) / np.sqrt(H.diagonal().reshape(K, D)), g, atol=1e-6
    )


def test_inverse_hessian_of_shift_invariant_classes_has_no_common_shift(rng):
    objective = numpy_problem(rng, 200, 4, 3)
    W = rng.standard_normal(objective.shape)
    W -= W.mean(axis=0)
    _, _, g, H = objective.hessian(W)
    p = inverse_hessian(H, objective.shape, shift_invariant=True)(g)
    np.testing.assert_allclose((H @ p.ravel()).reshape(p.shape), g, atol=1e-8)
    np.testing.assert_allclose(p.mean(axis=0), 0, atol=1e-10)


def test_inverse_hessian_of_singular_matrices_has_the_least_norm(rng):
    A = rng.standard_normal((20, 4))
    A = np.column_stack([A, A[:, 0], np.zeros(20)])  # collinear and constant columns
    H, g = A.T @ A, A.T @ rng.standard_normal(20)
    x = inverse_hessian(H, (1, 6), shift_invariant=False)(g[None])
    np.testing.assert_allclose(H @ x[0], g, atol=1e-8)
    assert x[0, 0] == pytest.approx(x[0, 4]) and x[0, 5] == 0


def dense_kronecker(objective, B, M):
    """(B x M + penalty) with unit rows for fixed weights."""
    H = np.kron(B, M) + np.diag(np.tile(objective.penalty.diagonal, len(B)))
    fixed = objective.penalty.fixed.ravel()
    H[fixed], H[:, fixed] = 0, 0
    H[fixed, fixed] = 1
    return H


@pytest.mark.parametrize("K", [2, 3])
def test_kronecker_is_the_inverse_of_the_product(rng, K):
    objective = numpy_problem(rng, 200, 4, K)
    W = 0.1 * rng.standard_normal(objective.shape)
    B, M = objective.curvature_factors(W)
    g = objective.value_and_gradient(W).gradient
    p = kronecker(objective.penalty, (B, M))(g)
    H = dense_kronecker(objective, B, M)
    np.testing.assert_allclose((H @ p.ravel()).reshape(g.shape), g, atol=1e-5 * np.abs(g).max())


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("make", [diagonal, lambda o: estimate(o, np.zeros(o.shape))])
def test_fixed_weights_get_no_step(rng, kind, make):
    objective = numpy_problem(rng, 200, 4, 3, **PENALTIES[kind])
    p = make(objective)(rng.standard_normal(objective.shape))
    assert (p[objective.penalty.fixed] == 0).all()
    assert (p[~objective.penalty.fixed] != 0).all()


@pytest.mark.parametrize("make", [diagonal, lambda o: estimate(o, np.zeros(o.shape))])
@pytest.mark.parametrize("K", [2, 3])
def test_preconditioners_are_symmetric_and_positive(rng, K, make):
    objective = numpy_problem(rng, 200, 3, K)
    apply, size = make(objective), objective.shape[0] * 4
    P = np.array([apply(e.reshape(objective.shape)).ravel() for e in np.eye(size)])
    np.testing.assert_allclose(P, P.T, atol=1e-9 * np.abs(P).max())
    values = np.linalg.eigvalsh(P)
    assert (values > 1e-12 * values[-1]).sum() == size


def test_estimate_takes_the_diagonal_where_factors_are_missing_or_too_wide(rng, monkeypatch):
    objective = numpy_problem(rng, 200, 4, 3)
    without = objective.like(capabilities=objective.capabilities - {Capability.CURVATURE_FACTORS})
    g, W = rng.standard_normal((2, *objective.shape))
    expected, full = diagonal(objective)(g.copy()), estimate(objective, W)(g.copy())
    assert not np.allclose(full, expected)
    np.testing.assert_array_equal(estimate(without, W)(g.copy()), expected)
    monkeypatch.setattr(preconditioners, "MAX_GRAM_COLUMNS", 4)
    np.testing.assert_array_equal(estimate(objective, W)(g.copy()), expected)
