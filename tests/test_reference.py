"""The NumPy reference against the definitions: scalar loops and finite differences."""

import numpy as np
import oracles
import pytest
from conftest import make_features, make_problem

from fastdisc._kernels import NO_OFFSET, Link, grid

ANY = grid((1, 1), 8)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("layout", ["C", "csr32"])
def test_sweep_is_the_figure(reference, rng, K, layout):
    X, link, r, s, W = make_problem(rng, 23, 4, K, layout=layout)
    loss, errors, G, _ = reference.sweep(X, link, r, s, NO_OFFSET, W, 1, ANY, 1)
    expected = (oracles.logistic if K == 2 else oracles.softmax)(X, r, s, W)
    np.testing.assert_allclose([loss, errors], expected[:2], rtol=1e-12)
    np.testing.assert_allclose(G, expected[2], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_gradient_and_hessian_are_derivatives(reference, rng, K):
    X, link, r, s, W = make_problem(rng, 31, 3, K)
    _, _, G, H = reference.sweep(X, link, r, s, NO_OFFSET, W, 2, ANY, 1)
    numeric = oracles.numerical_gradient(lambda V: reference.sweep(X, link, r, s, NO_OFFSET, V, 0, ANY, 1)[0], W)
    np.testing.assert_allclose(G, numeric, rtol=1e-6, atol=1e-6)
    for place in range(W.size):
        column = oracles.numerical_gradient(
            lambda t, place=place: (
                reference.sweep(X, link, r, s, NO_OFFSET, W + t * np.eye(W.size)[place].reshape(W.shape), 1, ANY, 1)[2].ravel()
                @ np.arange(1.0, W.size + 1)
            ),
            np.zeros(1),
        )
        np.testing.assert_allclose(H[:, place] @ np.arange(1.0, W.size + 1), column[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("K", [2, 4])
def test_product_is_the_hessian_times(reference, rng, K):
    X, link, r, s, W = make_problem(rng, 40, 3, K)
    V, o = rng.standard_normal(W.shape), rng.standard_normal((40, len(W)))
    _, _, _, H = reference.sweep(X, link, r, s, o, W, 2, ANY, 1)
    np.testing.assert_allclose(reference.product(X, link, s, o, W, V, ANY, 1).ravel(), H @ V.ravel(), rtol=1e-10)


@pytest.mark.parametrize("K", [2, 4])
def test_an_offset_is_a_column_of_weight_one(reference, rng, K):
    X, link, r, s, W = make_problem(rng, 40, 3, K)
    o = rng.standard_normal((40, len(W)))
    wide, V = np.hstack([X, o]), np.hstack([W, np.eye(len(W))])
    for a, b in zip(
        reference.sweep(X, link, r, s, o, W, 1, ANY, 1), reference.sweep(wide, link, r, s, NO_OFFSET, V, 1, ANY, 1), strict=True
    ):
        assert a is None or np.allclose(a, b if np.ndim(b) == 0 else b[:, :4], rtol=1e-12)


def test_coordinate_descent_meets_its_conditions(reference, rng):
    A = rng.standard_normal((30, 8))
    H, q, l1, w = A.T @ A, 10 * rng.standard_normal(8), np.array([0, 1, 3, 3, 3, 20, 5, 5.0]), np.zeros(8)
    assert reference.coordinate_descent(H, q, l1, w, 1e-24, 1000) < 1000
    slope = H @ w - q
    assert 0 < (w == 0).sum() < 8
    np.testing.assert_allclose(slope[w != 0], -(l1 * np.sign(w))[w != 0], atol=1e-9)
    assert (np.abs(slope[w == 0]) <= l1[w == 0]).all()


@pytest.mark.parametrize("K", [2, 4])
def test_outputs(reference, rng, K):
    X, link, _, _, W = make_problem(rng, 11, 3, K)
    Z, finite = reference.outputs(X, Link.IDENTITY, W, ANY, 1)
    assert finite
    np.testing.assert_allclose(Z, [oracles.scores(row, W) for row in X], rtol=1e-12)
    Y, _ = reference.outputs(X, link, W, ANY, 1)
    if K == 2:
        np.testing.assert_allclose(Y, [[oracles.sigmoid(-z), oracles.sigmoid(z)] for z in Z[:, 0]], rtol=1e-12)
    else:
        np.testing.assert_allclose(Y, np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize(("link", "oracle"), [(Link.SIGMOID, oracles.sigmoid_error), (Link.LINEAR, oracles.linear_error)])
def test_squared_errors(reference, rng, link, oracle):
    X, r, s = make_features(rng, 50, 3), rng.integers(0, 2, 50).astype(np.int32), rng.random(50)
    W = rng.standard_normal((1, 4))
    loss, errors, G, H = reference.sweep(X, link, r, s, NO_OFFSET, W, 2, ANY, 1)
    expected = oracle(X, r, s, W)
    np.testing.assert_allclose((loss, errors), expected[:2], rtol=1e-12)
    np.testing.assert_allclose(G, expected[2], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(G, oracles.numerical_gradient(lambda V: oracle(X, r, s, V)[0], W), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(H, expected[3], rtol=1e-10, atol=1e-12)
    V = rng.standard_normal((1, 4))
    np.testing.assert_allclose(reference.product(X, link, s, NO_OFFSET, W, V, ANY, 1)[0], H @ V[0], rtol=1e-10)
