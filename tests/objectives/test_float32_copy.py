"""Small dense data: Hessian products on a float32 copy of the rows."""

import numpy as np
import pytest
from helpers.operators import check_float32_operator
from helpers.problems import make_features

from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import NO_OFFSET, Batch, RowLoss
from fastdisc._objectives import hessian_operators
from fastdisc._objectives.coordinates import Standardized, Units
from fastdisc._objectives.penalized import Penalized
from fastdisc._objectives.penalty import Penalty
from fastdisc._objectives.row_sums import RowSums

N, D = 200, 12
UNITS = Units(np.full(D, 0.5), np.linspace(1, 3, D))
FIXED = [{}, {"intercept": False}, {"reference": 1}]


def make_data(rng, K, dtype="float64", layout="C", loss=None):
    """The same data as they are and in float64, and the shape of their weights."""
    outputs = 1 if K == 2 else K
    X, r = make_features(rng, N, D, dtype, layout), rng.integers(0, K, N).astype(np.int32)
    s = np.ones(1) if K == 3 else rng.random(N) + 0.1
    o = NO_OFFSET if K == 3 else rng.standard_normal((N, outputs))
    loss = (RowLoss.LOGISTIC if K == 2 else RowLoss.SOFTMAX) if loss is None else loss
    exact = DenseRows(X.to_float64())
    return [RowSums(MemorySource(Batch(A, r, 2 * s, o)), loss) for A in (X, exact)]


@pytest.mark.parametrize("block_columns", [hessian_operators.MAX_BLOCK_COLUMNS, 0])
@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize(
    ("K", "dtype", "layout"),
    [(2, "float64", "F"), (3, "uint8", "C"), (4, "float32", "strided")],
)
def test_products_agree_with_the_hessian(rng, monkeypatch, K, dtype, layout, fixed, block_columns):
    monkeypatch.setattr(hessian_operators, "MAX_BLOCK_COLUMNS", block_columns)
    if K == 2 and "reference" in fixed:
        pytest.skip("two classes have one row of weights")
    data, exact = make_data(rng, K, dtype, layout)
    penalty = Penalty(data.shape, rng.random(D) + 0.1, **fixed)
    objectives = [Penalized(Standardized(part, UNITS), penalty) for part in (data, exact)]
    W, g = 0.3 * rng.standard_normal((2, *data.shape))
    check_float32_operator(*objectives, W, g, data.unit)


def test_preconditioner_is_used_again_after_few_products(rng):
    objective = Penalized(Standardized(make_data(rng, 3)[0], UNITS), Penalty((3, D + 1), 0.5))
    W, V = 0.3 * rng.standard_normal((2, 3, D + 1))
    first = objective.hessian_operator(W)
    again = objective.hessian_operator(2 * W, previous=first)
    assert again.inverse is first.inverse
    for _ in range(N):
        first.product(V.astype(np.float32))
    assert objective.hessian_operator(2 * W, previous=first).inverse is not first.inverse
    other = Penalized(objective.data, Penalty((3, D + 1), 0.6))
    assert other.hessian_operator(W, previous=again).inverse is not again.inverse


def test_singular_blocks_leave_their_diagonal(rng):
    """More columns than digits tell apart: the inverse of the diagonal."""
    x = rng.standard_normal((N, 1)) * np.ones((1, D))  # all columns are equal
    r = rng.integers(0, 3, N).astype(np.int32)
    data = RowSums(MemorySource(Batch(DenseRows(x), r, np.ones(1))), RowLoss.SOFTMAX)
    units = Units(np.zeros(D), np.ones(D))
    objective = Penalized(Standardized(data, units), Penalty(data.shape))
    operator = objective.hessian_operator(np.zeros(data.shape))
    assert np.isfinite(operator.inverse).all()
    for block in operator.inverse:
        assert (np.linalg.eigvalsh(block.astype(float)) > 0).all()


def test_inverse_of_an_indefinite_block_is_that_of_its_diagonal():
    H = np.float32([[1, -9, 0, 0], [-9, 2, 0, 0], [0, 0, 4, 0], [0, 0, 0, 8]])
    found = hessian_operators._inverse(H, H.diagonal(), np.arange(4) == 3)
    np.testing.assert_allclose(found, np.diag([1, 0.5, 0.25, 0]), rtol=1e-6)


def test_which_data_are_copied(rng):
    rows = DenseRows(rng.standard_normal((100, 20)))
    assert rows.is_small_dense(1)
    assert not rows.take(slice(50)).is_small_dense(1)
    assert not make_features(rng, 100, 20, "float64", "csr32").is_small_dense(3)
    values = rows.values
    assert not DenseRows(np.broadcast_to(values[:1], (60_000, 20))).is_small_dense(10)
    assert DenseRows(np.broadcast_to(values[0, 0], (1000, 3000))).is_small_dense(10)


def test_only_losses_with_probabilities_are_copied(rng):
    for loss in RowLoss:
        K = 3 if loss == RowLoss.SOFTMAX else 2
        data = make_data(rng, K, loss=loss)[0]
        expected = loss in (RowLoss.LOGISTIC, RowLoss.SOFTMAX)
        assert data.costs.is_small_dense == expected
