"""Wide sparse rows of many classes: sums by way of the columns equal sums by blocks of rows."""

import numpy as np
import pytest
from conftest import make_features
from scipy import sparse

from fastdisc import LogisticRegression, _turned
from fastdisc._kernels import NO_OFFSET, Grid, Link
from fastdisc._sweep import Penalized, Sweep

K, N, D = 4, 120, 90


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "csr32"), ("float32", "csr64")])
@pytest.mark.parametrize("single", [False, True])
def test_rows_times_a_matrix(fast, reference, rng, dtype, layout, single):
    X = make_features(rng, 203, 37, dtype, layout)
    X.data[X.indptr[5] : X.indptr[6]] = 0
    for columns in (1, 3, 4, 5, 8, 9, 15, 16, 17, 20, 32, 33, 50):
        B = rng.standard_normal((37, columns)).astype(np.float32 if single else np.float64)
        actual, expected = np.full((2, 203, columns), np.nan, B.dtype)
        fast.times(X, B, actual, Grid(16, 7), 2)
        reference.times(X, B, expected, Grid(16, 7), 2)
        np.testing.assert_allclose(actual, expected, atol=1e-5 if single else 1e-13)


def test_rows_times_a_matrix_on_any_number_of_threads(backend, rng):
    X, B = make_features(rng, 1003, 37, "float64", "csr32"), rng.standard_normal((37, 20))
    X.data[X.indptr[11]] = np.nan
    found = np.zeros((4, 1003, 20))
    for Z, n in zip(found, (1, 2, 3, 8), strict=True):
        backend.times(X, B, Z, Grid(16, 16), n)
        np.testing.assert_array_equal(Z, found[0])
    assert np.flatnonzero(np.isnan(found[0]).all(axis=1)).tolist() == [11]


@pytest.fixture(params=["one weight", "weights", "offset", "two classes"])
def sweeps(request, rng, monkeypatch):
    """The same data behind both ways, and the shape of their weights."""
    two = request.param == "two classes"
    rows, link = (1, Link.LOGISTIC) if two else (K, Link.SOFTMAX)
    X, r = make_features(rng, N, D, "float64", "csr64"), rng.integers(0, 2 if two else K, N).astype(np.int32)
    s = np.ones(1) if request.param == "one weight" else rng.random(N) + 0.1
    offset = rng.standard_normal((N, rows)) if request.param in ("offset", "two classes") else NO_OFFSET
    by_columns, by_rows = (Sweep(X, r, 3 * s, link, offset=offset) for _ in range(2))
    assert by_columns.turned is not None
    monkeypatch.setattr(_turned, "FEW", 0)
    assert by_rows.turned is None
    return by_columns, by_rows, (rows, D + 1)


def test_sums_and_products(sweeps, rng):
    by_columns, by_rows, shape = sweeps
    W, V = rng.standard_normal((2, *shape)) * 0.2
    for actual, expected in zip(by_columns(W)[:3], by_rows(W)[:3], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-10)
    for point in (W, W, 2 * W):  # the first two find what the sums have left, the third must not
        np.testing.assert_allclose(by_columns.product(point, V), by_rows.product(point, V), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("held", [{}, {"reference": 1}, {"intercept": False}])
def test_products_in_float32(sweeps, rng, held):
    *both, shape = sweeps
    if shape[0] == 1 and "reference" in held:
        return  # two classes have one row of weights
    l2 = rng.random(D)
    by_columns, by_rows = (Penalized(sweep, l2, **held) for sweep in both)
    W, g = rng.standard_normal((2, *shape)) * 0.2
    check_bent(by_columns, by_rows, W, g)


def check_bent(quick, exact, W, g):
    """The Hessian at W of few digits beside the exact one: products, preconditioner, ways in and out, and the end of it."""
    free = ~exact.held(W.shape)
    W, g = W * free, g * free
    bent, size = quick.bent(W), float(np.linalg.norm(g))
    V = bent.inward(g, size)
    assert V.dtype == np.float32
    np.testing.assert_allclose(bent.outward(V, size), g / bent.unit, rtol=1e-6)
    expected = exact.product(W, g) / bent.unit**2
    np.testing.assert_allclose(bent.outward(bent.product(V), size), expected, atol=1e-5 * np.abs(expected).max())
    H, K, D = exact(W, order=2).H, *W.shape
    blocks = np.stack([H[k * D : k * D + D, k * D : k * D + D] for k in range(K)])
    inverse = np.linalg.inv(blocks) if bent.blocks else np.stack([np.diag(1 / block.diagonal()) for block in blocks])
    expected = np.where(free, np.matmul(inverse, g[:, :, None])[:, :, 0], 0)
    actual = np.where(free, bent.outward(bent.precondition(V), size), 0)
    np.testing.assert_allclose(actual, expected, atol=1e-3 * np.abs(expected).max())
    assert quick.sharpen()
    assert quick.bent(W) is None
    assert not quick.sharpen()


def test_weights_that_run_away_are_not_the_fault_of_the_data(sweeps):
    by_columns, _, shape = sweeps
    assert not np.isfinite(by_columns(np.full(shape, 1e307) * np.arange(1, shape[0] + 1)[:, None]).loss)


@pytest.mark.parametrize("classes", [2, K])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e22])  # squares of the last are beyond float32: it is done in float64
def test_a_fit_by_columns(rng, monkeypatch, scale, classes):
    X = sparse.csr_array(sparse.random(300, 900, 0.02, random_state=3, format="csr"))
    y, C = (X @ rng.standard_normal((900, classes))).argmax(axis=1), scale**-2
    models = [LogisticRegression(solver="newton-cg", C=C, tol=1e-9, n_threads=n).fit(X * scale, y) for n in (1, 2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    monkeypatch.setattr(_turned, "FEW", 0)
    by_rows = LogisticRegression(solver="newton-cg", C=C, tol=1e-9).fit(X * scale, y)
    np.testing.assert_allclose(models[0].coef_ * scale, by_rows.coef_ * scale, atol=1e-7)
    assert models[0].converged_


def test_which_data_are_turned(rng):
    wide, narrow = make_features(rng, 40, 200, "float32", "csr64"), make_features(rng, 4000, 5, "float64", "csr32")
    assert _turned.suits(wide, Link.SOFTMAX, 3)
    assert _turned.suits(wide, Link.LOGISTIC, 1)
    assert not _turned.suits(wide, Link.SIGMOID, 1)
    assert not _turned.suits(narrow, Link.SOFTMAX, 3)
    assert not _turned.suits(make_features(rng, 40, 200), Link.SOFTMAX, 3)
