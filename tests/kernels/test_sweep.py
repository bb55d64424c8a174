"""Sums over rows: Cython and Numba against the reference; types, layouts, sizes and extremes."""

import numpy as np
import pytest
from helpers.assertions import assert_close
from helpers.cases import FLOATS, KERNEL_CASES, NUMBA_CASES
from helpers.problems import grid_of, make_features, make_problem

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Activation, Batch, Grid, RowLoss, row_grid


def tolerance(X, order=1):
    """Relative to the largest entry: of float32 products, or of float64 ones."""
    return 2e-5 if X.float32_products and order < 2 else 1e-11


def assert_sweeps_agree(fast, reference, problem, order, threads=2):
    batch, loss, W = problem
    n, K = len(batch.r), len(W)
    if n % 2:
        batch = batch._replace(o=np.linspace(-1, 1, n * K).reshape(n, K))
    args = batch, loss, W, order, grid_of(batch.X, K, order), threads
    actual, expected = fast.sweep(*args), reference.sweep(*args)
    tol = tolerance(batch.X, order)
    assert_close(actual[0], expected[0], tol)
    assert abs(actual[1] - expected[1]) <= 1e-6 * n
    if order:
        assert_close(actual[2], expected[2], tol)
    if order == 2:
        assert_close(actual[3], expected[3], 1e-11)
        assert np.array_equal(actual[3], actual[3].T)


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("loss", [RowLoss.SIGMOID_SQUARED, RowLoss.SQUARED])
def test_squared_errors_agree_with_reference(fast, reference, rng, dtype, layout, loss):
    batch, _, W = make_problem(rng, 203, 7, 2, dtype, layout)
    for order in (0, 1, 2):
        assert_sweeps_agree(fast, reference, (batch, loss, W), order)
    args = batch, loss, W, rng.standard_normal(W.shape), grid_of(batch.X), 2
    expected = reference.hessian_product(*args)
    assert_close(fast.hessian_product(*args), expected, tolerance(batch.X))


@pytest.mark.parametrize(("fast", "dtype", "layout"), KERNEL_CASES, indirect=["fast"])
@pytest.mark.parametrize("K", [2, 3])
def test_types_and_layouts_agree_with_reference(fast, reference, rng, dtype, layout, K):
    for order in (1, 2):
        assert_sweeps_agree(fast, reference, make_problem(rng, 203, 7, K, dtype, layout), order)


@pytest.mark.parametrize("d", range(1, 18))
def test_any_number_of_columns_agrees_with_reference(fast, reference, rng, d):
    for dtype in FLOATS:
        for K in (2, 4, 5):
            for order in (1, 2):
                assert_sweeps_agree(fast, reference, make_problem(rng, 37, d, K, dtype), order)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000])
def test_any_number_of_rows_agrees_with_reference(fast, reference, rng, n):
    for K in (2, 3):
        assert_sweeps_agree(fast, reference, make_problem(rng, n, 5, K), 2)


def test_wide_rows_agree_with_reference(fast, reference, rng):
    for K in (2, 6):
        for dtype in FLOATS:
            assert_sweeps_agree(fast, reference, make_problem(rng, 50, 1031, K, dtype), 1)


@pytest.mark.parametrize("K", [2, 3])
def test_equal_weights_agree_with_reference(fast, reference, rng, K):
    batch, loss, W = make_problem(rng, 100, 6, K)
    assert_sweeps_agree(fast, reference, (batch._replace(s=np.array([2.5])), loss, W), 2)


@pytest.mark.parametrize("K", [2, 3])
def test_rows_of_weight_zero_do_not_count(fast, rng, K):
    batch, loss, W = make_problem(rng, 100, 6, K)
    batch.s[:] = 0
    batch.s[41] = 1.5
    only = slice(41, 42)
    one = Batch(batch.X.take(only), batch.r[only], batch.s[only])
    all_rows = fast.sweep(batch, loss, W, 2, grid_of(batch.X, len(W), 2), 2)
    one_row = fast.sweep(one, loss, W, 2, grid_of(one.X, len(W), 2), 1)
    for a, b in zip(all_rows, one_row, strict=True):
        assert_close(a, b, 1e-12)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("size", [50.0, 700.0, 1e5, 1e300])
def test_scores_beyond_the_range_of_exp_do_not_overflow(fast, K, size):
    """The loss is then the margin itself."""
    X = DenseRows(np.array([[size], [-size], [size], [-size]]))
    loss, W = RowLoss.LOGISTIC, np.array([[0.0, 1.0]])
    if K > 2:
        loss, W = RowLoss.SOFTMAX, np.array([[0.0, k] for k in (-1.0, 1.0, 0.0, 0.0)])
    batch = Batch(X, np.array([1, 0, 0, 1], np.int32), np.ones(1))  # two right, two wrong
    value, errors, G, H = fast.sweep(batch, loss, W, 2, Grid(16, 16), 1)
    margin = size if K == 2 else 2 * size
    assert errors == 2
    assert value == pytest.approx(2 * margin, rel=1e-12)
    assert np.isfinite(G).all() and np.isfinite(H).all()


def test_small_losses_keep_their_digits(fast):
    X = np.linspace(20, 36, 16)[:, None]
    batch, W = Batch(DenseRows(X), np.ones(16, np.int32), np.ones(1)), np.array([[0.0, 1.0]])
    loss, *_ = fast.sweep(batch, RowLoss.LOGISTIC, W, 1, Grid(16, 16), 1)
    assert loss == pytest.approx(np.log1p(np.exp(-X)).sum(), rel=1e-14)


def test_constant_columns_agree_with_reference(fast, reference, rng):
    batch, loss, W = make_problem(rng, 90, 5, 3)
    batch.X.values[:, 2] = 7
    assert_sweeps_agree(fast, reference, (batch, loss, W), 2)


def test_empty_rows_agree_with_reference(fast, reference, rng):
    batch, loss, W = make_problem(rng, 90, 5, 3, layout="csr32")
    X = batch.X
    counts = np.diff(X.indptr)
    keep = np.repeat(np.arange(90) % 3 > 0, counts)
    counts[::3] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    batch = batch._replace(X=CSRRows(X.data[keep], X.indices[keep], indptr, 5))
    assert_sweeps_agree(fast, reference, (batch, loss, W), 2)


def test_cells_that_are_stored_twice_are_added(fast, reference):
    indices, indptr = np.array([0, 1, 0, 1], np.int32), np.array([0, 3, 4], np.int32)
    X = CSRRows(np.array([1.0, 2.0, 3.0, 4.0]), indices, indptr, 2)
    batch, W = Batch(X, np.array([0, 1], np.int32), np.ones(2)), np.array([[0.1, 0.2, -0.3]])
    assert_sweeps_agree(fast, reference, (batch, RowLoss.LOGISTIC, W), 2)


def test_read_only_memory_map_agrees_with_reference(fast, reference, rng, tmp_path):
    batch, loss, W = make_problem(rng, 300, 9, 2)
    batch.X.values.tofile(tmp_path / "X.bin")
    X = np.memmap(tmp_path / "X.bin", dtype=np.float64, mode="r", shape=batch.X.shape)
    for a in (batch.r, batch.s, W):
        a.flags.writeable = False
    assert_sweeps_agree(fast, reference, (batch._replace(X=DenseRows(X)), loss, W), 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("layout", ["C", "strided", "csr32"])
def test_nan_and_infinity_reach_the_sums(backend, rng, value, K, layout):
    batch, loss, W = make_problem(rng, 40, 3, K, layout=layout)
    X, grid = batch.X, row_grid(batch.X.shape, 8, len(W))
    W[:, 2] = 0  # even if their weight is 0
    if layout == "csr32":
        X.data[np.flatnonzero(X.indices == 1)[3]] = value
    else:
        X.values[17, 1] = value
    activation = Activation.SIGMOID if K == 2 else Activation.SOFTMAX
    with np.errstate(invalid="ignore"):
        _, _, G, _ = backend.sweep(batch, loss, W, 1, grid, 2)
        _, finite = backend.outputs(X, activation, W, grid, 2)
    assert not np.isfinite(G).all()
    assert not finite


@pytest.mark.parametrize(("fast", "dtype", "layout"), KERNEL_CASES, indirect=["fast"])
@pytest.mark.parametrize("K", [2, 5])
def test_outputs_agree_with_reference(fast, reference, rng, dtype, layout, K):
    batch, _, W = make_problem(rng, 150, 6, K, dtype, layout)
    grid = row_grid(batch.X.shape, 8, len(W))
    for activation in (Activation.IDENTITY, Activation.SIGMOID if K == 2 else Activation.SOFTMAX):
        actual, finite = fast.outputs(batch.X, activation, W, grid, 2)
        expected, _ = reference.outputs(batch.X, activation, W, grid, 2)
        assert finite
        assert_close(actual, expected, 1e-11)


@pytest.mark.parametrize(("dtype", "layout"), NUMBA_CASES)
@pytest.mark.parametrize("K", [2, 5])
def test_hessian_products_agree_with_reference(fast, reference, rng, dtype, layout, K):
    batch, loss, W = make_problem(rng, 333, 7, K, dtype, layout)
    V, o = rng.standard_normal(W.shape), rng.standard_normal((333, len(W)))
    for some in (batch._replace(o=o), batch._replace(s=np.full(1, 0.5))):
        args = some, loss, W, V, grid_of(batch.X, len(W)), 2
        expected = reference.hessian_product(*args)
        assert_close(fast.hessian_product(*args), expected, tolerance(batch.X))


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [("float64", "C"), ("float32", "C"), ("uint8", "F"), ("float32", "csr64")],
)
def test_weighted_row_sums_agree_with_reference(fast, reference, rng, dtype, layout):
    X, e = make_features(rng, 333, 7, dtype, layout), rng.standard_normal(333)
    args = X, e, row_grid(X.shape, 8), 2
    assert_close(fast.weighted_row_sum(*args), reference.weighted_row_sum(*args))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_coordinate_descent_agrees_with_reference(fast, reference, rng, n):
    A = rng.standard_normal((n + 20, n))
    H, q, l1 = A.T @ A, 10 * rng.standard_normal(n), 20 * rng.random(n)
    H[0], H[:, 0] = 0, 0  # a constant column: its weight does not change
    w, expected = np.full(n, 0.5), np.full(n, 0.5)
    assert fast.coordinate_descent(H, q, l1, w, 1e-26, 5000) < 5000
    reference.coordinate_descent(H, q, l1, expected, 1e-26, 5000)
    np.testing.assert_allclose(w, expected, atol=1e-10)
    assert w[0] == 0.5
