"""Cython and Numba against the reference: types, layouts, sizes, extremes."""

import numpy as np
import pytest
from conftest import FLOATS, KERNEL_CASES, NUMBA_CASES, make_problem

from fastdisc._kernels import CSR, NO_OFFSET, Grid, Link, grid


def tolerance(X, order=1):
    """Relative to the largest entry: float64 products, or float32 ones."""
    return 1e-11 if isinstance(X, CSR) or X.dtype == np.float64 or order == 2 else 2e-5


def assert_close(actual, expected, tol):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= tol * max(1e-30, np.abs(expected).max())


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("link", [Link.SIGMOID, Link.LINEAR])
def test_squared_errors(fast, reference, rng, dtype, layout, link):
    X, _, r, s, W = make_problem(rng, 203, 7, 2, dtype, layout)
    for order in (0, 1, 2):
        compare(fast, reference, (X, link, r, s, W), order)
    V, g = rng.standard_normal(W.shape), grid(X.shape, 8, 1, 1, len(X.data) if isinstance(X, CSR) else None)
    args = X, link, s, NO_OFFSET, W, V, g, 2
    assert_close(fast.product(*args), reference.product(*args), tolerance(X))


def compare(fast, reference, problem, order, threads=2):
    X, link, r, s, W = problem
    o = np.linspace(-1, 1, len(r) * len(W)).reshape(len(r), len(W)) if len(r) % 2 else NO_OFFSET
    g = grid(X.shape, 8, len(W), order, len(X.data) if isinstance(X, CSR) else None)
    actual = fast.sweep(X, link, r, s, o, W, order, g, threads)
    expected = reference.sweep(X, link, r, s, o, W, order, g, threads)
    tol = tolerance(X, order)
    assert_close(actual[0], expected[0], tol)
    assert abs(actual[1] - expected[1]) <= 1e-6 * len(r)
    if order:
        assert_close(actual[2], expected[2], tol)
    if order == 2:
        assert_close(actual[3], expected[3], 1e-11)
        assert np.array_equal(actual[3], actual[3].T)


@pytest.mark.parametrize(("fast", "dtype", "layout"), KERNEL_CASES, indirect=["fast"])
@pytest.mark.parametrize("K", [2, 3])
def test_types_and_layouts(fast, reference, rng, dtype, layout, K):
    for order in (1, 2):
        compare(fast, reference, make_problem(rng, 203, 7, K, dtype, layout), order)


@pytest.mark.parametrize("d", range(1, 18))
def test_remainders_of_columns(fast, reference, rng, d):
    for dtype in FLOATS:
        for K in (2, 4, 5):
            for order in (1, 2):
                compare(fast, reference, make_problem(rng, 37, d, K, dtype), order)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000])
def test_remainders_of_rows(fast, reference, rng, n):
    for K in (2, 3):
        compare(fast, reference, make_problem(rng, n, 5, K), 2)


def test_wide_rows(fast, reference, rng):
    for K in (2, 6):
        for dtype in FLOATS:
            compare(fast, reference, make_problem(rng, 50, 1031, K, dtype), 1)


@pytest.mark.parametrize("K", [2, 3])
def test_one_weight_for_all_rows(fast, reference, rng, K):
    X, link, r, _, W = make_problem(rng, 100, 6, K)
    compare(fast, reference, (X, link, r, np.array([2.5]), W), 2)


@pytest.mark.parametrize("K", [2, 3])
def test_all_weights_zero_but_one(fast, rng, K):
    X, link, r, s, W = make_problem(rng, 100, 6, K)
    s[:] = 0
    s[41] = 1.5
    all_rows = fast.sweep(X, link, r, s, NO_OFFSET, W, 2, grid(X.shape, 8, len(W), 2), 2)
    one_row = fast.sweep(X[41:42], link, r[41:42], s[41:42], NO_OFFSET, W, 2, grid((1, 6), 8, len(W), 2), 1)
    for a, b in zip(all_rows, one_row, strict=True):
        assert_close(a, b, 1e-12)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("size", [50.0, 700.0, 1e5, 1e300])
def test_huge_margins(fast, K, size):
    """Scores beyond the range of exp: losses are the margins themselves, nothing overflows."""
    X = np.array([[size], [-size], [size], [-size]])
    link, W = (
        (Link.LOGISTIC, np.array([[0.0, 1.0]])) if K == 2 else (Link.SOFTMAX, np.array([[0.0, k] for k in (-1.0, 1.0, 0.0, 0.0)]))
    )
    r = np.array([1, 0, 0, 1], dtype=np.int32)  # two right, two wrong
    loss, errors, G, H = fast.sweep(X, link, r, np.ones(1), NO_OFFSET, W, 2, Grid(16, 16), 1)
    margin = size if K == 2 else 2 * size
    assert errors == 2
    assert loss == pytest.approx(2 * margin, rel=1e-12)
    assert np.isfinite(G).all() and np.isfinite(H).all()


def test_small_losses_keep_their_digits(fast):
    X = np.linspace(20, 36, 16)[:, None]
    loss, *_ = fast.sweep(
        X, Link.LOGISTIC, np.ones(16, np.int32), np.ones(1), NO_OFFSET, np.array([[0.0, 1.0]]), 1, Grid(16, 16), 1
    )
    assert loss == pytest.approx(np.log1p(np.exp(-X)).sum(), rel=1e-14)


def test_constant_columns_and_empty_rows(fast, reference, rng):
    X, link, r, s, W = make_problem(rng, 90, 5, 3)
    X[:, 2] = 7
    compare(fast, reference, (X, link, r, s, W), 2)
    X, link, r, s, W = make_problem(rng, 90, 5, 3, layout="csr32")
    counts = np.diff(X.indptr)
    keep = np.repeat(np.arange(90) % 3 > 0, counts)
    counts[::3] = 0
    empty = CSR(X.data[keep], X.indices[keep], np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), 5)
    compare(fast, reference, (empty, link, r, s, W), 2)


def test_columns_stored_twice_add_up(fast, reference):
    X = CSR(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1], np.int32), np.array([0, 3, 4], np.int32), 2)
    W = np.array([[0.1, 0.2, -0.3]])
    compare(fast, reference, (X, Link.LOGISTIC, np.array([0, 1], np.int32), np.ones(2), W), 2)


def test_read_only_memory_map(fast, reference, rng, tmp_path):
    X, link, r, s, W = make_problem(rng, 300, 9, 2)
    X.tofile(tmp_path / "X.bin")
    mapped = np.memmap(tmp_path / "X.bin", dtype=np.float64, mode="r", shape=X.shape)
    for a in (r, s, W):
        a.flags.writeable = False
    compare(fast, reference, (mapped, link, r, s, W), 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("layout", ["C", "strided", "csr32"])
def test_what_is_not_finite_reaches_the_sums(backend, rng, value, K, layout):
    X, link, r, s, W = make_problem(rng, 40, 3, K, layout=layout)
    W[:, 2] = 0  # even where its weight is 0
    if layout == "csr32":
        X.data[np.flatnonzero(X.indices == 1)[3]] = value
    else:
        X[17, 1] = value
    with np.errstate(invalid="ignore"):
        _, _, G, _ = backend.sweep(X, link, r, s, NO_OFFSET, W, 1, grid(X.shape, 8, len(W)), 2)
        _, finite = backend.outputs(X, link, W, grid(X.shape, 8, len(W)), 2)
    assert not np.isfinite(G).all()
    assert not finite


@pytest.mark.parametrize(("fast", "dtype", "layout"), KERNEL_CASES, indirect=["fast"])
@pytest.mark.parametrize("K", [2, 5])
def test_outputs(fast, reference, rng, dtype, layout, K):
    X, link, _, _, W = make_problem(rng, 150, 6, K, dtype, layout)
    for kind in (Link.IDENTITY, link):
        actual, finite = fast.outputs(X, kind, W, grid(X.shape, 8, len(W)), 2)
        expected, _ = reference.outputs(X, kind, W, grid(X.shape, 8, len(W)), 2)
        assert finite
        assert_close(actual, expected, 1e-11)


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("K", [2, 5])
def test_product_is_that_of_the_reference(fast, reference, rng, dtype, layout, K):
    X, link, _, s, W = make_problem(rng, 333, 7, K, dtype, layout)
    V, o = rng.standard_normal(W.shape), rng.standard_normal((333, len(W)))
    g = grid(X.shape, 8, len(W), 1, len(X.data) if isinstance(X, CSR) else None)
    for weights, offset in ((s, o), (np.full(1, 0.5), NO_OFFSET)):
        args = X, link, weights, offset, W, V, g, 2
        assert_close(fast.product(*args), reference.product(*args), tolerance(X))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_coordinate_descent_is_that_of_the_reference(fast, reference, rng, n):
    A = rng.standard_normal((n + 20, n))
    H, q, l1 = A.T @ A, 10 * rng.standard_normal(n), 20 * rng.random(n)
    H[0], H[:, 0] = 0, 0  # a constant column: its weight stays as it is
    w, expected = np.full(n, 0.5), np.full(n, 0.5)
    assert fast.coordinate_descent(H, q, l1, w, 1e-26, 5000) < 5000
    reference.coordinate_descent(H, q, l1, expected, 1e-26, 5000)
    np.testing.assert_allclose(w, expected, atol=1e-10)
    assert w[0] == 0.5
