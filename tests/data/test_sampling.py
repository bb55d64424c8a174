"""Samples of rows, bounds that are estimated on them, and the order of rows in queries."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._data.query_order import (
    ideal_gains,
    pair_totals,
    partner_weights,
    query_order,
    ranges,
    thin_cells,
)
from fastdisc._data.sampling import (
    largest_eigenvalue,
    largest_row_norm,
    standardize,
    stratified_rows,
)

PROFILE = settings(max_examples=80, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**31)


@PROFILE
@given(seed=SEEDS, n=st.integers(1, 5000), m=st.integers(1, 6000))
def test_stratified_rows_are_one_of_each_run(seed, n, m):
    rows = stratified_rows(n, m, np.random.default_rng(seed))
    assert len(rows) == min(n, m)
    edges = np.arange(len(rows) + 1) * n // len(rows)
    assert (edges[:-1] <= rows).all() and (rows < edges[1:]).all()


def test_stratified_rows_reach_every_row():
    rng = np.random.default_rng(0)
    found = np.concatenate([stratified_rows(20, 6, rng) for _ in range(400)])
    counts = np.bincount(found, minlength=20)
    assert (counts > 0.5 * counts.mean()).all()


@pytest.mark.parametrize(
    "make", [DenseRows, lambda A: CSRRows.from_scipy(sparse.csr_array(A), np.int32)]
)
def test_standardize_gives_deviation_1(rng, make):
    A = rng.standard_normal((200, 3)) * [1, 10, 0.1] + [0, 5, 1]
    rows, shift, scale = standardize(make(A), np.ones(1))
    np.testing.assert_allclose(rows.dense(), (A - shift) / scale)
    np.testing.assert_allclose(rows.dense().std(axis=0), 1)
    assert (shift == 0).all() == rows.is_sparse


@pytest.mark.parametrize("intercept", [True, False])
def test_largest_eigenvalue_is_that_of_the_gram_matrix(rng, intercept):
    A, s = rng.standard_normal((300, 5)) * np.arange(1, 6), rng.random(300)
    X1 = np.column_stack([np.ones(300), A]) if intercept else A
    gram = X1.T @ (s[:, None] * X1) / s.sum()
    found = largest_eigenvalue(DenseRows(A), s, intercept)
    assert found == pytest.approx(np.linalg.eigvalsh(gram)[-1], rel=2e-3)


@pytest.mark.parametrize("intercept", [True, False])
def test_largest_row_norm(rng, intercept):
    A, s = rng.standard_normal((300, 5)), rng.random(300)
    expected = (s * ((A**2).sum(axis=1) + intercept)).max()
    assert largest_row_norm(DenseRows(A), s, intercept) == pytest.approx(expected)


# --- queries --------------------------------------------------------------------------------------


@st.composite
def graded_rows(draw):
    """Queries, grades and weights of some rows, and a random generator."""
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(SEEDS))
    group = rng.integers(0, draw(st.integers(1, 6)), n)
    return group, rng.integers(0, 4, n).astype(float), rng.random(n), rng


@PROFILE
@given(case=graded_rows())
def test_query_order_sorts_by_query_and_falling_grade(case):
    group, y, _, _ = case
    rows, starts, above, below = query_order(group, y)
    assert sorted(rows) == list(range(len(y)))
    g, grades = group[rows], y[rows]
    assert (np.diff(g) >= 0).all() and starts[0] == 0 and starts[-1] == len(y)
    for lo, hi in pairwise(starts):
        assert len(set(g[lo:hi])) == 1 and (np.diff(grades[lo:hi]) <= 0).all()
        for i in range(lo, hi):
            same = np.flatnonzero(grades[lo:hi] == grades[i]) + lo
            assert (above[i], below[i]) == (same[0], same[-1] + 1)


@PROFILE
@given(case=graded_rows())
def test_partner_weights_and_totals_are_those_of_all_pairs(case):
    group, y, s, _ = case
    rows, starts, above, below = query_order(group, y)
    better, worse = partner_weights(s[rows], starts, above, below)
    same = group[:, None] == group
    expected = [(same & (y > y[:, None])) @ s, (same & (y < y[:, None])) @ s]
    np.testing.assert_allclose(better, expected[0][rows], atol=1e-12)
    np.testing.assert_allclose(worse, expected[1][rows], atol=1e-12)
    count = group.max() + 1
    totals = np.bincount(group, s * expected[1], count)
    np.testing.assert_allclose(pair_totals(group, y, s, count), totals, atol=1e-12)


def test_small_weights_beside_large_ones_keep_their_digits():
    group, y = np.repeat([0, 1], 3), np.tile([2.0, 1.0, 0.0], 2)
    s = np.array([1e20, 1e20, 1e20, 1e-3, 2e-3, 3e-3])
    rows, starts, above, below = query_order(group, y)
    _, worse = partner_weights(s[rows], starts, above, below)
    np.testing.assert_allclose(worse[3:], [5e-3, 3e-3, 0], rtol=1e-12)


@PROFILE
@given(case=graded_rows(), k=st.integers(1, 5))
def test_ideal_gains_are_shares_of_the_best_order(case, k):
    group, gain, s, _ = case
    codes = np.unique(group, return_inverse=True)[1]
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    found = ideal_gains(gain, s, codes, starts, k)
    for q in range(codes.max() + 1):
        own = codes == q
        best = sorted(gain[own], reverse=True)[:k]
        total = sum(g / np.log2(i + 2) for i, g in enumerate(best))
        expected = gain[own] / total if total else 0 * gain[own]
        np.testing.assert_allclose(found[own], expected)


def test_ranges_count_within_runs():
    np.testing.assert_array_equal(ranges(np.array([3, 0, 2])), [0, 1, 2, 0, 1])
    assert len(ranges(np.array([], int))) == 0


@PROFILE
@given(seed=SEEDS, m=st.integers(1, 80), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_thinned_cells_represent_all_rows(seed, m, sizes):
    cells = np.repeat(np.arange(len(sizes)), sizes)
    places, width = thin_cells(cells, m, np.random.default_rng(seed))
    assert (np.diff(places) >= 0).all()
    np.testing.assert_allclose(np.bincount(cells[places], width), sizes)
    assert len(places) <= max(m, len(sizes))
