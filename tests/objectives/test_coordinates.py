"""Standardised coordinates: the way there and back, and what is minimised does not change."""

import numpy as np
import pytest
from helpers.fits import FORMS, draw_classes, fit, make_problem, row_sums
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.coordinates import (
    MAX_SHIFT,
    PILOT_ROWS,
    Problem,
    Standardized,
    Units,
)

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def units(draw):
    """Coordinates, and a random generator."""
    d, rng = draw(st.integers(1, 5)), np.random.default_rng(draw(st.integers(0, 2**31)))
    return Units(rng.standard_normal(d), rng.random(d) + 0.1), rng


@PROFILE
@given(case=units(), K=st.integers(1, 3))
def test_weights_go_there_and_back(case, K):
    coordinates, rng = case
    d = len(coordinates.mean)
    W, X = rng.standard_normal((K, d + 1)), rng.standard_normal((7, d))
    V = coordinates.to_raw(W)
    np.testing.assert_allclose(coordinates.to_standard(V), W, atol=1e-10)
    A = (X - coordinates.mean) / coordinates.scale
    np.testing.assert_allclose(
        X @ V[:, 1:].T + V[:, 0], A @ W[:, 1:].T + W[:, 0], rtol=1e-8, atol=1e-8
    )


@PROFILE
@given(case=units())
def test_derivatives_follow_the_chain_rule(case):
    coordinates, rng = case
    D = len(coordinates.mean) + 1
    J = np.array([coordinates.to_raw(e[None])[0] for e in np.eye(D)])  # rows: d raw / d standard
    g, A = rng.standard_normal((1, D)), rng.standard_normal((D, D))
    np.testing.assert_allclose(coordinates.pull_back(g), g @ J.T, atol=1e-10)
    H = A @ A.T
    np.testing.assert_allclose(coordinates.pull_back_matrix(H), J @ H @ J.T, atol=1e-8)


def test_hessian_of_standardised_classes_follows_the_chain_rule(rng):
    X, y, _ = draw_classes(200, 3, 3)
    data = row_sums(X + 2, y)
    coordinates = Units(np.full(3, 2.0), np.array([1.0, 2.0, 3.0]))
    term, W = Standardized(data, coordinates), rng.standard_normal((3, 4))
    J = np.array([coordinates.to_raw(e[None])[0] for e in np.eye(4)])
    blocks = np.kron(np.eye(3), J)
    expected = blocks @ data.hessian(coordinates.to_raw(W)).hessian @ blocks.T
    np.testing.assert_allclose(term.hessian(W).hessian, expected, rtol=1e-9, atol=1e-9)
    V = rng.standard_normal((3, 4))
    np.testing.assert_allclose(term.product(W, V).ravel(), expected @ V.ravel(), rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_rescaling_does_not_change_the_optimum(intercept):
    X, y, _ = draw_classes(500, 4, 3)
    X = X * [1, 10, 100, 0.1] + [0, 5, 0, 1]
    options = {"intercept": intercept}
    plain, rescaled = (
        fit(X, y, "newton", tol=1e-9, problem=options | {"rescale": rescale}).V
        for rescale in (False, True)
    )
    np.testing.assert_allclose(plain[:, 1:], rescaled[:, 1:], rtol=1e-5, atol=1e-7)


def test_standardised_penalty_does_not_depend_on_the_scale_of_columns():
    X, y, _ = draw_classes(500, 4, 2)
    scale, optima = np.array([1, 10, 100, 0.1]), []
    for data in (row_sums(X, y), row_sums(X * scale, y)):
        problem = Problem(data, standardize=True)
        assert (problem.penalty(2.0).l2 == 2.0).all() and (problem.l1(3.0) == 3.0).all()
        optima.append(problem)
    W = np.ones(optima[0].shape)
    values = [problem.penalized(2.0).value_and_gradient(W).value for problem in optima]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_penalties_of_rescaled_problems_are_those_of_raw_weights():
    X, y, rng = draw_classes(500, 4, 2)
    problem = make_problem(X * [1, 10, 100, 0.1], y)
    W = rng.standard_normal(problem.shape)
    V = problem.to_raw(W)
    assert problem.penalty(2.0).value(W) == pytest.approx((V[:, 1:] ** 2).sum())
    l1 = (problem.l1(3.0) * np.abs(W[:, 1:])).sum()
    assert l1 == pytest.approx(3 * np.abs(V[:, 1:]).sum())
    np.testing.assert_allclose(problem.to_solver(V), W, rtol=1e-9)


def test_sparse_data_are_not_rescaled():
    X, y, _ = draw_classes(100, 4, 2)
    problem = make_problem(FORMS["csr"](X), y)
    assert problem.units is None and problem.term is problem.data
    V = np.ones(problem.shape)
    assert problem.to_solver(V) is not V and problem.to_raw(V) is V


def test_scale_of_many_rows_comes_from_a_sample_unless_it_must_be_exact():
    X, y, _ = draw_classes(20 * PILOT_ROWS, 3, 2)
    sampled, exact = make_problem(X, y), Problem(row_sums(X, y), standardize=True)
    np.testing.assert_allclose(exact.scale, X.std(axis=0), rtol=1e-10)
    np.testing.assert_allclose(sampled.scale, X.std(axis=0), rtol=0.1)
    assert not np.allclose(sampled.scale, exact.scale, rtol=1e-6)


def test_rare_columns_get_their_exact_scale():
    X, y, _ = draw_classes(20 * PILOT_ROWS, 3, 2)
    X[:, 1], X[:, 2] = 0, 7.0
    X[5, 1] = 1.0
    problem = make_problem(X, y)
    assert problem.scale[1] == pytest.approx(X[:, 1].std())
    assert problem.scale[2] == 1.0  # constant


def test_samples_of_columns_far_from_0_are_standardised_in_memory():
    X, y, rng = draw_classes(3000, 3, 2)
    far = make_problem(X + 1e6, y)
    assert far.units.is_far and not make_problem(X + MAX_SHIFT / 10, y).units.is_far
    objective = far.penalized(1.0)
    part = objective.sample(3000, 0)
    assert not isinstance(part.data, Standardized) and part.n_rows == 3000
    W = 0.1 * rng.standard_normal(objective.shape)
    one, other = part.value_and_gradient(W), objective.value_and_gradient(W)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    A = np.column_stack([np.ones(3000), (X + 1e6 - far.mean) / far.scale])
    p = 1 / (1 + np.exp(-A @ W[0]))
    H = A.T @ ((p * (1 - p))[:, None] * A) + np.diag(objective.penalty.diagonal)
    np.testing.assert_allclose(part.hessian(W).hessian, H, rtol=1e-9, atol=1e-6)


def test_cell_that_is_not_finite_is_named_by_its_row_in_all_of_x():
    X, y, _ = draw_classes(10_000, 3, 2)
    X[7777] = np.nan
    for order in (slice(None), slice(7777, None)):
        with pytest.raises(ValueError, match=r"NaN, first in row \d+, column 0"):
            fit(X[order], y[order], "newton")
    with pytest.raises(ValueError, match="NaN, first in row 7777, column 0"):
        Problem(row_sums(X, y), standardize=True)
