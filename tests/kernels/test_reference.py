"""The NumPy reference against the definitions: scalar loops and finite differences."""

import numpy as np
import pytest
from helpers import oracles
from helpers.problems import make_features, make_problem

from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Activation, Batch, RowLoss, row_grid

ANY = row_grid((1, 1), 8)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("layout", ["C", "csr32"])
def test_sweep_is_the_scalar_loop(reference, rng, K, layout):
    batch, row_loss, W = make_problem(rng, 23, 4, K, layout=layout)
    loss, errors, G, _ = reference.sweep(batch, row_loss, W, 1, ANY, 1)
    expected = (oracles.logistic if K == 2 else oracles.softmax)(*batch[:3], W)
    np.testing.assert_allclose([loss, errors], expected[:2], rtol=1e-12)
    np.testing.assert_allclose(G, expected[2], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_gradient_and_hessian_are_derivatives(reference, rng, K):
    batch, row_loss, W = make_problem(rng, 31, 3, K)

    def sweep(V, order):
        return reference.sweep(batch, row_loss, V, order, ANY, 1)

    _, _, G, H = sweep(W, 2)
    numeric = oracles.numerical_gradient(lambda V: sweep(V, 0)[0], W)
    np.testing.assert_allclose(G, numeric, rtol=1e-6, atol=1e-6)
    combination = np.arange(1.0, W.size + 1)
    for place in range(W.size):
        unit = np.eye(W.size)[place].reshape(W.shape)
        column = oracles.numerical_gradient(
            lambda t, unit=unit: sweep(W + t * unit, 1)[2].ravel() @ combination, np.zeros(1)
        )
        np.testing.assert_allclose(H[:, place] @ combination, column[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("K", [2, 4])
def test_hessian_product_is_the_hessian_times_a_vector(reference, rng, K):
    batch, loss, W = make_problem(rng, 40, 3, K)
    V, batch = rng.standard_normal(W.shape), batch._replace(o=rng.standard_normal((40, len(W))))
    _, _, _, H = reference.sweep(batch, loss, W, 2, ANY, 1)
    product = reference.hessian_product(batch, loss, W, V, ANY, 1)
    np.testing.assert_allclose(product.ravel(), H @ V.ravel(), rtol=1e-10)


@pytest.mark.parametrize("K", [2, 4])
def test_offset_is_a_column_of_weight_one(reference, rng, K):
    batch, loss, W = make_problem(rng, 40, 3, K)
    o = rng.standard_normal((40, len(W)))
    wide, V = np.hstack([batch.X.values, o]), np.hstack([W, np.eye(len(W))])
    by_offset = reference.sweep(batch._replace(o=o), loss, W, 1, ANY, 1)
    by_column = reference.sweep(batch._replace(X=DenseRows(wide)), loss, V, 1, ANY, 1)
    for a, b in zip(by_offset, by_column, strict=True):
        assert a is None or np.allclose(a, b if np.ndim(b) == 0 else b[:, :4], rtol=1e-12)


def test_coordinate_descent_meets_the_optimality_conditions(reference, rng):
    A = rng.standard_normal((30, 8))
    H, q, w = A.T @ A, 10 * rng.standard_normal(8), np.zeros(8)
    l1 = np.array([0, 1, 3, 3, 3, 20, 5, 5.0])
    assert reference.coordinate_descent(H, q, l1, w, 1e-24, 1000) < 1000
    slope = H @ w - q
    assert 0 < (w == 0).sum() < 8
    np.testing.assert_allclose(slope[w != 0], -(l1 * np.sign(w))[w != 0], atol=1e-9)
    assert (np.abs(slope[w == 0]) <= l1[w == 0]).all()


@pytest.mark.parametrize("K", [2, 4])
def test_outputs_are_the_definition(reference, rng, K):
    batch, _, W = make_problem(rng, 11, 3, K)
    Z, finite = reference.outputs(batch.X, Activation.IDENTITY, W, ANY, 1)
    assert finite
    expected = [oracles.scores(row, W) for row in batch.X.values]
    np.testing.assert_allclose(Z, expected, rtol=1e-12)
    if K == 2:
        Y, _ = reference.outputs(batch.X, Activation.SIGMOID, W, ANY, 1)
        expected = [[oracles.sigmoid(-z), oracles.sigmoid(z)] for z in Z[:, 0]]
    else:
        Y, _ = reference.outputs(batch.X, Activation.SOFTMAX, W, ANY, 1)
        expected = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Y, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("row_loss", "oracle"),
    [
        (RowLoss.SIGMOID_SQUARED, oracles.sigmoid_error),
        (RowLoss.SQUARED, oracles.linear_error),
    ],
)
def test_squared_errors_are_the_definition(reference, rng, row_loss, oracle):
    r, s, W = rng.integers(0, 2, 50).astype(np.int32), rng.random(50), rng.standard_normal((1, 4))
    batch = Batch(make_features(rng, 50, 3), r, s)
    loss, errors, G, H = reference.sweep(batch, row_loss, W, 2, ANY, 1)
    expected = oracle(*batch[:3], W)
    np.testing.assert_allclose((loss, errors), expected[:2], rtol=1e-12)
    np.testing.assert_allclose(G, expected[2], rtol=1e-10, atol=1e-12)
    numeric = oracles.numerical_gradient(lambda V: oracle(*batch[:3], V)[0], W)
    np.testing.assert_allclose(G, numeric, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(H, expected[3], rtol=1e-10, atol=1e-12)
    V = rng.standard_normal((1, 4))
    product = reference.hessian_product(batch, row_loss, W, V, ANY, 1)
    np.testing.assert_allclose(product[0], H @ V[0], rtol=1e-10)
