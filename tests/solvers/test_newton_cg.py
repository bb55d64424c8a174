"""Truncated Newton: conjugate gradients, operators in float32, and what happens where their digits
end."""

import numpy as np
import pytest
from helpers.data_sets import SETS
from helpers.fits import fit, make_problem, scikit_learn
from helpers.objectives import NumpyOperator, numpy_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fastdisc._data import csr
from fastdisc._objectives.hessian_operators import Float32CopyOperator, TransposedOperator
from fastdisc._objectives.protocol import Precision
from fastdisc._solvers import newton_cg
from fastdisc._solvers.registry import choose_solver
from fastdisc._solvers.result import Trace

PROFILE = settings(max_examples=50, deadline=None, derandomize=True)


@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(1, 30))
def test_conjugate_gradients_solve_the_system(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n + 5, n))
    H, b = A.T @ A + 0.1 * np.eye(n), rng.standard_normal(n)
    x = newton_cg.conjugate_gradients(lambda v: H @ v, b, lambda r: r / H.diagonal(), 1e-9)
    np.testing.assert_allclose(H @ x, b, atol=1e-6)


def test_conjugate_gradients_stop_at_the_forcing(rng):
    products, A = [], rng.standard_normal((60, 40))
    H, b = A.T @ A, rng.standard_normal(40)

    def product(v):
        products.append(v)
        return H @ v

    x = newton_cg.conjugate_gradients(product, b, lambda r: r.copy(), 0.3)
    loose = len(products)
    newton_cg.conjugate_gradients(product, b, lambda r: r.copy(), 1e-6)
    assert np.linalg.norm(H @ x - b) <= 0.3 * np.linalg.norm(b)
    assert loose < len(products) / 3


def test_conjugate_gradients_follow_a_direction_without_curvature():
    x = newton_cg.conjugate_gradients(lambda v: 0 * v, np.ones(3), lambda r: r.copy(), 0.1)
    np.testing.assert_array_equal(x, np.ones(3))


def test_direction_solves_for_the_negative_gradient(rng):
    objective = numpy_problem(rng, 100, 5, 3)
    W = rng.standard_normal(objective.shape)
    operator, (_, _, g, H) = objective.hessian_operator(W), objective.hessian(W)
    p = newton_cg.newton_direction(operator, g, 1e-10, lambda: lambda r: r.copy())
    np.testing.assert_allclose(H @ p.ravel(), -g.ravel(), atol=1e-6)


def test_operators_own_preconditioner_is_preferred(rng):
    objective = numpy_problem(rng, 100, 5, 2)
    operator, used = objective.hessian_operator(np.zeros((1, 6))), []
    operator.preconditioner = lambda r: used.append(r) or r.copy()

    def fail():
        raise AssertionError("a preconditioner was estimated")

    newton_cg.newton_direction(operator, np.ones((1, 6)), 0.1, fail)
    assert used


class FailingOperator(NumpyOperator):
    """Products in float32 that have lost all digits."""

    precision = Precision.FLOAT32

    def product(self, direction):
        return np.full_like(direction, np.nan)


def test_float64_products_follow_where_no_step_lowers_the_loss(rng):
    objective, asked = numpy_problem(rng, 200, 4, 2), []
    exact = objective.hessian_operator

    def operator(W, precision=Precision.FLOAT32, previous=None):
        asked.append(precision)
        return FailingOperator(np.eye(5)) if precision is Precision.FLOAT32 else exact(W)

    objective.hessian_operator = operator
    limits = {"tol": 1e-8, "max_iter": 50, "trace": Trace()}
    result = newton_cg.solve(objective, np.zeros((1, 5)), **limits)
    assert result.converged
    assert asked[0] is Precision.FLOAT32
    assert set(asked[1:]) == {Precision.FLOAT64}


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_float32_copy_has_the_optimum_of_newton(C):
    X, y = SETS["digits"]
    problem = make_problem(X, y)
    objective = problem.penalized(1 / C)
    assert choose_solver(objective, 0.0, prefer_products=True) == "newton-cg"
    assert isinstance(objective.hessian_operator(np.zeros((10, 65))), Float32CopyOperator)
    by_products, by_hessians = (
        fit(X, y, name, C=C, tol=1e-9).V[:, 1:] for name in ("newton-cg", "newton")
    )
    np.testing.assert_allclose(by_products, by_hessians, atol=1e-5)


def test_float32_copy_has_the_optimum_of_scikit_learn():
    X, y = SETS["digits"]
    V = fit(X / 16, y, "newton-cg", tol=1e-8).V
    np.testing.assert_allclose(V[:, 1:], scikit_learn(X / 16, y)[:, 1:], atol=1e-4)


def test_badly_scaled_and_dependent_columns(rng):
    X, y = rng.standard_normal((400, 60)) * np.logspace(-6, 6, 60), rng.integers(0, 3, 400)
    X[:, 7], X[:, 9] = 3.0, X[:, 8] * 2
    probabilities = []
    for name in ("newton-cg", "newton"):
        V = fit(X, y, name, tol=1e-8).V
        Z = X @ V[:, 1:].T + V[:, 0]
        U = np.exp(Z - Z.max(axis=1, keepdims=True))
        probabilities.append(U / U.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(*probabilities, atol=1e-6)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e22])  # squares of the last are beyond float32
def test_sums_by_columns_have_the_optimum_of_sums_by_rows(rng, monkeypatch, scale, K):
    X = sparse.csr_array(sparse.random(300, 900, 0.02, random_state=3, format="csr"))
    y, C = (X @ rng.standard_normal((900, K))).argmax(axis=1), scale**-2
    operator = (
        make_problem(X, y).penalized(1.0).hessian_operator(np.zeros((1, 901))) if K == 2 else 0
    )
    assert K > 2 or isinstance(operator, TransposedOperator)
    options = {"C": C, "tol": 1e-9}
    first, second = (
        fit(X * scale, y, "newton-cg", problem={"n_threads": n}, **options) for n in (1, 2)
    )
    np.testing.assert_array_equal(first.V, second.V)
    assert first.result.converged
    monkeypatch.setattr(csr, "MAX_SCORE_CELLS", 0)
    by_rows = fit(X * scale, y, "newton-cg", **options)
    np.testing.assert_allclose(first.V[:, 1:] * scale, by_rows.V[:, 1:] * scale, atol=1e-7)
