"""Every layout keeps the contract of rows."""

import numpy as np
import pytest
from helpers.row_cases import CASES, D, N, csr_case, dense_case, mapped_case
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._data.rows import Rows, finite_moments, slices, unit_scale
from fastdisc._kernels import DTYPES, MomentKind
from fastdisc.basis import Log

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)
MEMBERS = {name for name in dir(Rows) if not name.startswith("_")} | set(Rows.__annotations__)
ALL_CASES = pytest.mark.parametrize("name", CASES)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
ROWS = {
    "slice": slice(7, 31),
    "empty slice": slice(9, 9),
    "open slice": slice(40, None),
    "consecutive": np.arange(5, 25),
    "rising": np.array([0, 3, 4, 20, 52]),
    "any order": np.array([30, 2, 2, 52, 7]),
}


@pytest.fixture
def case(name, rng):
    return CASES[name](rng)


def tolerance(case):
    """float32 cells are exact in float64, but their squares and means may be taken in float32."""
    return {"rtol": 2e-6, "atol": 2e-6} if case.rows.dtype == np.float32 else CLOSE


# --- facts ----------------------------------------------------------------------------------------


@ALL_CASES
def test_rows_have_the_members_of_the_contract(case):
    rows, (n, d) = case.rows, case.A.shape
    optional = set() if rows.is_sparse else {"transpose", "map_values"}
    assert [m for m in MEMBERS - optional if not hasattr(rows, m)] == []
    assert rows.shape == (n, d) and rows.dtype in DTYPES
    assert isinstance(rows.layout, str) and rows.lazy in (True, False)
    assert (rows.stored is None) == (not rows.is_sparse)
    assert 0 < rows.n_values <= 2 * n * d
    assert rows.bytes_per_row > 0 and rows.flops_per_output > 0
    assert rows.lazy == (rows.layout == "mapped")


@ALL_CASES
def test_facts_are_answers(case):
    rows = case.rows
    for n_outputs in (1, 10):
        assert rows.is_small_dense(n_outputs) in (True, False)
        assert rows.prefers_columns(n_outputs) in (True, False)
    for kind in MomentKind:
        assert rows.prefers_dense_moments(kind) in (True, False)
    assert rows.float32_products == (rows.layout == "dense" and rows.dtype != np.float64)


@ALL_CASES
def test_rows_are_the_same_features_in_every_conversion(case):
    rows, A = case
    dense = rows.dense()
    assert dense.dtype == np.float64 and dense.flags.c_contiguous
    np.testing.assert_allclose(dense, A, rtol=1e-12)
    converted = rows.to_float64()
    assert converted.dtype == np.float64
    W = np.arange(2.0 * A.shape[1]).reshape(-1, 2)
    np.testing.assert_allclose(converted @ W, A @ W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(converted.T @ A, A.T @ A, rtol=1e-10, atol=1e-10)


@ALL_CASES
def test_dense_slices_are_all_rows_in_order(case):
    seen = 0
    for rows, part in case.rows.dense_slices():
        assert rows.start == seen and isinstance(part, DenseRows)
        np.testing.assert_allclose(part.dense(), case.A[rows], rtol=1e-12)
        seen = rows.stop
    assert seen == N


# --- rows and columns -----------------------------------------------------------------------------


@ALL_CASES
@pytest.mark.parametrize("kind", ROWS)
def test_take_has_the_rows_asked_for(case, kind):
    rows, A = case
    taken = rows.take(ROWS[kind])
    assert type(taken) is type(rows) and taken.shape == A[ROWS[kind]].shape
    np.testing.assert_allclose(taken.dense(), A[ROWS[kind]], rtol=1e-12)


@pytest.mark.parametrize("name", ["dense float64", "dense strided", "csr", "csr float32"])
def test_slices_are_not_copied(case):
    rows = case.rows
    for part in (rows.take(slice(7, 31)), rows.take(np.arange(7, 31)) if rows.is_sparse else rows):
        arrays = [(a, b) for a, b in zip(vars(rows).values(), vars(part).values(), strict=True)]
        cells = [(a, b) for a, b in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        assert cells and all(np.shares_memory(a, b) for a, b in cells)


@ALL_CASES
@pytest.mark.parametrize("chosen", [[1], [2, 0], [0, 1, 2]])
def test_columns_has_the_columns_asked_for(case, chosen):
    rows, A = case
    some = rows.columns(np.array(chosen))
    assert type(some) is type(rows) and some.shape == (N, len(chosen))
    np.testing.assert_allclose(some.dense(), A[:, chosen], rtol=1e-12)
    again = some.columns(np.arange(len(chosen))[::-1])
    np.testing.assert_allclose(again.dense(), A[:, chosen[::-1]], rtol=1e-12)


@ALL_CASES
@pytest.mark.parametrize("n_threads", [1, 2])
def test_gather_has_all_rows_in_another_order(case, rng, n_threads):
    order = rng.permutation(N)
    found = case.rows.gather(order, n_threads)
    assert type(found) is type(case.rows) and found.dtype == case.rows.dtype
    np.testing.assert_allclose(found.dense(), case.A[order], rtol=1e-12)


def test_gather_of_many_rows_uses_several_tasks(rng):
    A = rng.standard_normal((200_000, 2))
    order = rng.permutation(len(A))
    np.testing.assert_array_equal(DenseRows(A).gather(order, 3).values, A[order])


@ALL_CASES
def test_standardized_subtracts_means_and_divides(case, rng):
    rows, A = case
    mean, scale = rng.standard_normal(A.shape[1]), rng.random(A.shape[1]) + 0.5
    found = rows.standardized(mean, scale)
    expected = A / scale if rows.is_sparse else (A - mean) / scale
    np.testing.assert_allclose(found.dense(), expected, **tolerance(case))
    twice = found.standardized(mean, scale)
    expected = expected / scale if rows.is_sparse else (expected - mean) / scale
    np.testing.assert_allclose(twice.dense(), expected, **tolerance(case))


@ALL_CASES
def test_canonical_rows_are_the_same_rows(case):
    rows = case.rows.canonical()
    np.testing.assert_allclose(rows.dense(), case.A, rtol=1e-12)
    if rows.is_sparse:
        for lo, hi in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            assert len(set(rows.indices[lo:hi])) == hi - lo


def test_canonical_leaves_the_rows_of_the_caller_alone(rng):
    rows, _ = csr_case(rng, duplicates=True)
    before = rows.data.copy(), rows.indices.copy()
    rows.canonical()
    np.testing.assert_array_equal(rows.data, before[0])
    np.testing.assert_array_equal(rows.indices, before[1])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("csr")])
def test_transposed_sparse_rows(case):
    found = case.rows.transpose()
    assert found.shape == case.A.T.shape
    np.testing.assert_allclose(found.dense(), case.A.T, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("csr")])
def test_map_values_keeps_the_cells(case):
    found = case.rows.map_values(lambda values: 3 * values)
    np.testing.assert_allclose(found.dense(), 3 * case.A, rtol=1e-6)
    assert found.indices is case.rows.indices


@ALL_CASES
def test_methods_do_not_change_the_rows(case, rng):
    rows, A = case
    rows.take(ROWS["rising"]), rows.columns(np.array([0])), rows.canonical()
    rows.standardized(np.ones(A.shape[1]), np.full(A.shape[1], 2.0))
    list(rows.above(0.5))
    rows.moments(np.ones(1)), rows.gather(rng.permutation(N), 1)
    np.testing.assert_allclose(rows.dense(), A, rtol=1e-12)


# --- sums -----------------------------------------------------------------------------------------


@pytest.fixture(params=["equal weights", "weights"])
def s(request, rng):
    return np.full(1, 0.7) if request.param == "equal weights" else rng.random(N)


@ALL_CASES
def test_moments_are_weighted_means_and_deviations(case, s):
    mean, deviation = case.rows.moments(s)
    weight = np.broadcast_to(s, N)
    expected = np.average(case.A, axis=0, weights=weight)
    squares = np.average((case.A - expected) ** 2, axis=0, weights=weight)
    np.testing.assert_allclose(mean, expected, **tolerance(case))
    np.testing.assert_allclose(deviation, np.sqrt(squares), **tolerance(case))


@ALL_CASES
def test_column_squares_are_weighted_sums(case, s):
    expected = (np.broadcast_to(s, N)[:, None] * case.A**2).sum(axis=0)
    np.testing.assert_allclose(case.rows.column_squares(s), expected, **tolerance(case))


@ALL_CASES
def test_row_squares_are_norms(case, rng):
    rows, A = case
    mean, scale = rng.standard_normal(A.shape[1]), rng.random(A.shape[1]) + 0.5
    np.testing.assert_allclose(rows.row_squares(), (A**2).sum(axis=1), **tolerance(case))
    expected = A / scale if rows.is_sparse else (A - mean) / scale
    found = rows.row_squares(mean, scale)
    np.testing.assert_allclose(found, (expected**2).sum(axis=1), **tolerance(case))


@pytest.mark.parametrize("make", [dense_case, csr_case])
def test_constant_columns_have_no_deviation(rng, make):
    rows, A = make(rng)
    A[:, 2] = 1 / 3
    rows = DenseRows(A) if not rows.is_sparse else CSRRows.from_scipy(sparse.csr_array(A), np.int32)
    for s in (np.ones(1), rng.random(N)):
        mean, deviation = rows.moments(s)
        assert mean[2] == pytest.approx(1 / 3) and deviation[2] == 0
        assert (deviation[[0, 1, 3, 4]] > 0).all()
        np.testing.assert_array_equal(unit_scale(deviation)[2], 1.0)


def test_moments_of_columns_far_from_0_keep_their_digits(rng):
    A = 1e8 + rng.standard_normal((1000, 3))
    _, deviation = DenseRows(A).moments(np.ones(1))
    np.testing.assert_allclose(deviation, (A - 1e8).std(axis=0), rtol=1e-6)
    _, deviation = CSRRows.from_scipy(sparse.csr_array(A), np.int32).moments(np.ones(1))
    np.testing.assert_allclose(deviation, (A - 1e8).std(axis=0), rtol=1e-6)


@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(1, 400), cut=st.floats(0, 1))
def test_sums_of_dense_and_sparse_rows_agree(seed, n, cut):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, 4)) < cut, 0, rng.standard_normal((n, 4)))
    dense, csr = DenseRows(A), CSRRows.from_scipy(sparse.csr_array(A), np.int32)
    for s in (np.ones(1), rng.random(n) + 0.01):
        for one, other in zip(dense.moments(s), csr.moments(s), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(dense.column_squares(s), csr.column_squares(s), atol=1e-9)
    np.testing.assert_allclose(dense.row_squares(), csr.row_squares(), rtol=1e-9)
    assert dense.has_negative() == csr.has_negative() == (A < 0).any()


# --- thresholds and checks ------------------------------------------------------------------------


@ALL_CASES
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.5])
def test_above_is_1_where_cells_are_larger(case, threshold):
    parts = [part.dense() for part in case.rows.above(threshold)]
    np.testing.assert_array_equal(np.vstack(parts), threshold < case.A)


@ALL_CASES
def test_has_negative_tells(case):
    assert case.rows.has_negative() == bool((case.A < 0).any())


def test_has_negative_adds_what_is_stored_twice():
    indices, indptr = np.zeros(2, np.int32), np.array([0, 2], np.int32)
    for first, expected in ((-1.0, False), (-3.0, True)):
        rows = CSRRows(np.array([first, 2.0]), indices, indptr, 1)
        assert rows.has_negative() == expected


def test_has_negative_of_rows_without_values():
    empty = CSRRows.from_scipy(sparse.csr_array((3, 4)), np.int32)
    assert not empty.has_negative()
    assert not DenseRows(np.zeros((3, 4), np.uint8)).has_negative()


@ALL_CASES
def test_finite_rows_pass_the_check(case):
    case.rows.check_finite()


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "csr"])
def test_check_names_the_first_bad_cell(rng, value, what, dtype, layout):
    A = np.array(dense_case(rng, dtype).A, dtype)
    A[31, 4], A[31, 2], A[40, 0] = value, value, np.inf
    if layout == "csr":
        rows = CSRRows.from_scipy(sparse.csr_array(A), np.int32)
    elif layout == "strided":
        wide = np.zeros((2 * N, 2 * D), dtype)
        wide[::2, ::2] = A
        rows = DenseRows(wide[::2, ::2])
    else:
        rows = DenseRows(np.asarray(A, order=layout))
    message = f"Input X contains {what}, first in row 31, column 2"
    with pytest.raises(ValueError, match=message):
        rows.check_finite()
    with pytest.raises(ValueError, match=message):
        list(rows.above(0.0))
    with pytest.raises(ValueError, match=message):
        finite_moments(rows, np.ones(1))


def test_bad_cell_beyond_the_first_slice_is_named():
    A = np.zeros((1 << 20, 2))
    A[-3, 1] = np.nan
    with pytest.raises(ValueError, match=f"NaN, first in row {len(A) - 3}, column 1"):
        DenseRows(A).check_finite()


def test_new_layout_names_the_bad_cell(rng):
    A = rng.standard_normal((N, D))
    A[20, 3] = np.inf
    rows = type(CASES["new layout"](rng).rows)(A, 12)
    with pytest.raises(ValueError, match="infinity, first in row 20, column 3"):
        rows.check_finite()


def test_mapped_rows_name_the_bad_input_or_feature(rng):
    rows, _ = mapped_case(rng)
    rows.inputs.values[11, 1] = np.nan
    with pytest.raises(ValueError, match="NaN, first in row 11, column 1"):
        rows.check_finite()
    X = rng.random((N, 2)) + 1
    basis = Log().fit(X)
    X[5, 1] = -7.0
    with (
        np.errstate(invalid="ignore", divide="ignore"),
        pytest.raises(ValueError, match=r"the basis is not defined.*first in row 5, which has \["),
    ):
        basis.mapped(DenseRows(X)).check_finite()


def test_values_too_large_for_sums_are_told_from_bad_cells():
    with pytest.raises(ValueError, match="too large for sums in float64"):
        finite_moments(DenseRows(np.array([[1e300], [-1e300]])), np.ones(1))


@PROFILE
@given(n=st.integers(0, 10**7), d=st.integers(0, 10**6), cells=st.integers(1, 10**7))
def test_slices_are_all_rows_once(n, d, cells):
    if n > 1000 * max(1, cells // max(1, d)):
        return  # millions of slices
    found = slices((n, d), cells)
    ends = [0, *(part.stop for part in found)]
    assert [part.start for part in found] == ends[:-1] and ends[-1] == n
    assert all((part.stop - part.start) * d <= max(cells, d) for part in found)
