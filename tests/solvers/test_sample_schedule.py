"""Sizes of the samples that Newton's method grows through, and the costs behind them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._solvers import sample_schedule
from fastdisc._solvers.sample_schedule import (
    CALL_CELLS,
    MAX_GROWTH,
    MAX_PREDICTED_DECREASE,
    MIN_ROWS_PER_WEIGHT,
    MIN_ROWS_PER_WEIGHT_NONCONVEX,
    hessian_cost,
    hessian_price,
    sample_sizes,
    sufficient_decrease,
)

PROFILE = settings(max_examples=200, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("rows", "unknowns", "columns"),
    [(10**6, 29, 29), (10**6, 290, 29), (200_000, 201, 201), (10**7, 11, 11)],
)
def test_samples_of_many_rows_grow_from_a_few_rows_per_weight(rows, unknowns, columns):
    sizes = sample_sizes(rows, unknowns, columns)
    assert sizes[0] >= MIN_ROWS_PER_WEIGHT * unknowns and sizes[-1] < rows / 2
    assert all(a < b <= 1.01 * MAX_GROWTH * a for a, b in pairwise(sizes))


@PROFILE
@given(rows=st.integers(1, 10**8), columns=st.integers(2, 3000), K=st.integers(1, 20))
def test_samples_grow_and_have_at_most_all_rows(rows, columns, K):
    sizes = sample_sizes(rows, K * columns, columns)
    assert all(a < b for a, b in pairwise(sizes))
    assert all(isinstance(size, int) and size > 0 for size in sizes)
    assert sizes[-1] <= rows
    if rows * columns <= CALL_CELLS:
        assert sizes == [rows]


def test_few_rows_are_taken_at_once():
    assert sample_sizes(1000, 11, 11) == [1000]
    assert sample_sizes(CALL_CELLS // 10, 10, 10) == [CALL_CELLS // 10]


def test_samples_of_losses_that_are_not_convex_are_larger():
    convex, other = (
        sample_sizes(10**6, 29, 29, per_weight)[0]
        for per_weight in (MIN_ROWS_PER_WEIGHT, MIN_ROWS_PER_WEIGHT_NONCONVEX)
    )
    assert other >= MIN_ROWS_PER_WEIGHT_NONCONVEX * 29 > convex


def test_cost_of_a_hessian_grows_with_the_weights():
    assert hessian_cost(0) == 1
    assert hessian_cost(120) == 1 + 120 / sample_schedule.COLUMNS_PER_GRADIENT
    assert hessian_price(10**9, 120, 10) == pytest.approx(hessian_cost(120), rel=1e-3)
    assert hessian_price(1, 12, 12) == pytest.approx(1, rel=1e-3)  # a call costs more than a row


def test_smaller_samples_are_solved_less_exactly():
    shares = [sufficient_decrease(rows, 30, False) for rows in (10**3, 10**5, 10**7)]
    assert shares[0] == MAX_PREDICTED_DECREASE
    assert np.all(np.diff(shares) < 0)
    assert sufficient_decrease(10**5, 30, True) < shares[1]
