"""Linear algebra on moments, against definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf as expected_ledoit_wolf
from sklearn.preprocessing import StandardScaler

from fastdisc._solvers import closed_form

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**31)


def covariance(rng, d, scale=0.0):
    """A random covariance matrix whose columns differ by a factor of 10^scale at most."""
    A = rng.standard_normal((d + 5, d)) * 10.0 ** (scale * rng.random(d))
    return A.T @ A / (d + 5)


def test_log_priors_of_classes_without_rows_are_finite():
    found = closed_form.log_priors(np.array([0.5, 0.0, 0.5]))
    np.testing.assert_allclose(found[[0, 2]], np.log(0.5))
    assert found[1] == closed_form.MIN_SCORE and np.isfinite(found).all()


def test_positive_counts_are_unchanged():
    counts = closed_form.clip_positive(np.array([0.0, 1e-3, 5.0]))
    np.testing.assert_array_equal(counts[1:], [1e-3, 5.0])
    assert counts[0] > 0 and np.isfinite(np.log(counts[0]))


@PROFILE
@given(seed=SEEDS, d=st.integers(1, 6), shrinkage=st.floats(0, 1))
def test_shrinkage_keeps_the_trace(seed, d, shrinkage):
    C = covariance(np.random.default_rng(seed), d)
    found = closed_form.shrink(C, shrinkage)
    expected = (1 - shrinkage) * C + shrinkage * np.trace(C) / d * np.eye(d)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert np.trace(found) == pytest.approx(np.trace(C))


@pytest.mark.parametrize("d", [1, 2, 7])
def test_ledoit_wolf_is_that_of_scikit_learn(rng, d):
    X = rng.standard_normal((40, d)) * np.arange(1, d + 1)
    U = X - X.mean(axis=0)
    both = np.hstack([U, U**2])
    scale = X.std(axis=0)
    standard, _ = expected_ledoit_wolf(StandardScaler().fit_transform(X))
    found = closed_form.ledoit_wolf(40.0, both.T @ both)
    np.testing.assert_allclose(found, standard * np.outer(scale, scale), rtol=1e-9)


@PROFILE
@given(seed=SEEDS, d=st.integers(1, 8), scale=st.sampled_from([0.0, 6.0]))
def test_whitening_makes_the_covariance_the_identity(seed, d, scale):
    rng = np.random.default_rng(seed)
    C, A = covariance(rng, d, scale), rng.standard_normal((5, d))
    W = closed_form.whiten(C, 1e-4)
    T = W.transform_rows(np.eye(d))
    np.testing.assert_allclose(T.T @ C @ T, np.eye(W.rank), atol=1e-7)
    np.testing.assert_allclose(
        W.transform_rows(A), A @ T, rtol=1e-9, atol=1e-9 * np.abs(A @ T).max()
    )
    V = rng.standard_normal((W.rank, 2))
    np.testing.assert_allclose(
        W.back_transform(V), T @ V, rtol=1e-9, atol=1e-9 * np.abs(T @ V).max()
    )


def test_whitening_leaves_out_dependent_directions(rng):
    A = rng.standard_normal((50, 3))
    A = np.column_stack([A, A[:, 0] + A[:, 1], np.full(50, 2.0)])
    U = A - A.mean(axis=0)
    C = U.T @ U / 50
    W = closed_form.whiten(C, 1e-4)
    T = W.transform_rows(np.eye(5))
    assert W.rank == 3 and not W.triangular
    np.testing.assert_allclose(T.T @ C @ T, np.eye(3), atol=1e-8)


@PROFILE
@given(seed=SEEDS, d=st.integers(1, 8))
def test_solve_symmetric_solves_systems(seed, d):
    rng = np.random.default_rng(seed)
    C, B = covariance(rng, d, 4.0), rng.standard_normal((d, 2))
    scale = np.sqrt(np.diag(C))[:, None]
    found = closed_form.solve_symmetric(C, scale * B)
    np.testing.assert_allclose(C @ found / scale, B, atol=1e-6)


def test_solve_symmetric_of_a_singular_matrix_has_the_least_norm(rng):
    A = rng.standard_normal((20, 3))
    A = np.column_stack([A, A[:, 0]])
    C, b = A.T @ A, A.T @ rng.standard_normal((20, 1))
    found = closed_form.solve_symmetric(C, b)
    np.testing.assert_allclose(found, np.linalg.pinv(C) @ b, atol=1e-8)


@PROFILE
@given(seed=SEEDS, d=st.integers(1, 6), rank=st.integers(0, 6))
def test_roots_and_axes_rebuild_the_matrix(seed, d, rank):
    A = np.random.default_rng(seed).standard_normal((min(rank, d), d))
    C = A.T @ A
    root = closed_form.covariance_root(C)
    np.testing.assert_allclose(root @ root.T, C, atol=1e-9)
    values, V = closed_form.principal_axes(C)
    np.testing.assert_allclose((V * values) @ V.T, C, atol=1e-9)
    assert (np.diff(values) <= 0).all() and (values >= 0).all()
    np.testing.assert_allclose(V.T @ V, np.eye(d), atol=1e-9)


def test_triangular_factor_has_the_same_squares(rng):
    A = rng.standard_normal((3, 3))
    R = closed_form.triangular_factor(A)
    np.testing.assert_allclose(R.T @ R, A.T @ A)
    np.testing.assert_array_equal(np.tril(R, -1), 0)
