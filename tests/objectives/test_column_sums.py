"""Wide sparse rows: sums by columns equal sums by blocks of rows."""

import numpy as np
import pytest
from helpers.operators import check_float32_operator
from helpers.problems import make_features

from fastdisc._data import csr
from fastdisc._data.source import MemorySource
from fastdisc._kernels import NO_OFFSET, Batch, RowLoss
from fastdisc._objectives.column_sums import transpose
from fastdisc._objectives.hessian_operators import PlainOperator
from fastdisc._objectives.penalized import Penalized
from fastdisc._objectives.penalty import Penalty
from fastdisc._objectives.row_sums import RowSums

K, N, D = 4, 120, 90


@pytest.fixture(params=["equal weights", "weights", "offset", "two classes"])
def both(request, rng, monkeypatch):
    """The same data summed by columns and by rows."""
    two = request.param == "two classes"
    outputs, loss = (1, RowLoss.LOGISTIC) if two else (K, RowLoss.SOFTMAX)
    X = make_features(rng, N, D, "float64", "csr64")
    r = rng.integers(0, 2 if two else K, N).astype(np.int32)
    s = np.ones(1) if request.param == "equal weights" else rng.random(N) + 0.1
    has_offset = request.param in ("offset", "two classes")
    o = rng.standard_normal((N, outputs)) if has_offset else NO_OFFSET
    by_columns, by_rows = (RowSums(MemorySource(Batch(X, r, 3 * s, o)), loss) for _ in range(2))
    assert by_columns.column_sums is not None
    monkeypatch.setattr(csr, "MAX_SCORE_CELLS", 0)
    assert by_rows.column_sums is None
    return by_columns, by_rows


def test_sums_and_products_are_those_of_rows(both, rng):
    by_columns, by_rows = both
    W, V = 0.2 * rng.standard_normal((2, *by_rows.shape))
    found = (data.value_and_gradient(W)[:3] for data in both)
    for actual, expected in zip(*found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-10)
    for point in (W, W, 2 * W):  # the sums have left probabilities at W, and none at 2 W
        actual, expected = by_columns.product(point, V), by_rows.product(point, V)
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("fixed", [{}, {"reference": 1}, {"intercept": False}])
def test_float32_products_agree_with_the_hessian(both, rng, fixed):
    shape = both[0].shape
    if shape[0] == 1 and "reference" in fixed:
        pytest.skip("two classes have one row of weights")
    penalty = Penalty(shape, rng.random(D), **fixed)
    W, g = 0.2 * rng.standard_normal((2, *shape))
    check_float32_operator(*(Penalized(data, penalty) for data in both), W, g, both[0].unit)


def test_diverged_weights_are_not_blamed_on_the_data(both):
    by_columns, _ = both
    K, D = by_columns.shape
    W = np.full((K, D), 1e307) * np.arange(1, K + 1)[:, None]
    assert not np.isfinite(by_columns.value_and_gradient(W).value)


def test_squares_beyond_the_range_of_float32_need_float64(rng):
    X = make_features(rng, N, D, "float64", "csr64")
    rows = X.map_values(lambda values: 1e22 * values)
    r = rng.integers(0, K, N).astype(np.int32)
    data = RowSums(MemorySource(Batch(rows, r, np.ones(1))), RowLoss.SOFTMAX)
    operator = data.hessian_operator(np.zeros(data.shape))
    assert isinstance(operator, PlainOperator)


def test_few_values_are_multiplied_in_float64(rng):
    X = make_features(rng, 12, 80, "float64", "csr32")
    r = (np.arange(12) % 3).astype(np.int32)
    data = RowSums(MemorySource(Batch(X, r, np.ones(1))), RowLoss.SOFTMAX)
    assert data.column_sums is not None and not data.column_sums.enough_values
    assert isinstance(data.hessian_operator(np.zeros(data.shape)), PlainOperator)


def test_which_data_are_summed_by_columns(rng):
    wide = make_features(rng, 40, 200, "float32", "csr64")
    narrow = make_features(rng, 4000, 5, "float64", "csr32")
    assert wide.prefers_columns(3) and wide.prefers_columns(1)
    assert not narrow.prefers_columns(3)
    assert not make_features(rng, 40, 200).prefers_columns(3)
    for loss in (RowLoss.SIGMOID_SQUARED, RowLoss.SQUARED):
        r = rng.integers(0, 2, 40).astype(np.int32)
        data = RowSums(MemorySource(Batch(wide, r, np.ones(1))), loss)
        assert data.column_sums is None


@pytest.mark.parametrize("shape", [(1, 1), (3, 2000), (2000, 3), (700, 700)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_transpose_is_in_c_order(rng, shape, dtype):
    A = rng.standard_normal(shape)
    found = transpose(A, dtype)
    np.testing.assert_array_equal(found, A.T.astype(dtype))
    assert found.flags.c_contiguous and found.dtype == dtype
