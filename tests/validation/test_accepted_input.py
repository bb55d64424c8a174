"""Features and labels that are accepted: which are not copied, and which are converted."""

import numpy as np
import pytest
from scipy import sparse

from fastdisc import LogisticRegression
from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._validation.arrays import check_rows
from fastdisc._validation.labels import encode_labels

X = np.random.default_rng(0).standard_normal((30, 3))
SPARSE_X = np.where(np.abs(X) > 0.5, X, 0)
Y = np.arange(30) % 2


def fit(X, **options):
    return LogisticRegression(**options).fit(X, Y)


# --- dense features -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int8", "int16", "bool"])
def test_readable_features_are_not_copied(dtype):
    C = np.ones((8, 3), dtype)
    for A in (C, np.asfortranarray(C), np.ones((16, 6), dtype)[::2, ::2]):
        rows = check_rows(LogisticRegression(), A, reset=True)
        assert isinstance(rows, DenseRows) and np.shares_memory(rows.values, A)


def test_other_byte_order_is_converted():
    np.testing.assert_allclose(fit(X.astype(">f8")).coef_, fit(X).coef_)


def test_unaligned_features_are_copied():
    packed = np.zeros(30, dtype=[("flag", "i1"), ("x", "f8", 3)])
    packed["x"] = X
    assert not packed["x"].flags.aligned
    assert np.array_equal(fit(packed["x"]).coef_, fit(X).coef_)


# --- sparse features ------------------------------------------------------------------------------


def test_readable_csr_is_not_copied():
    S = sparse.csr_array(np.eye(5))
    rows = check_rows(LogisticRegression(), S, reset=True)
    assert isinstance(rows, CSRRows)
    assert np.shares_memory(rows.data, S.data) and np.shares_memory(rows.indices, S.indices)


@pytest.mark.parametrize(
    "form", [sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.csr_array]
)
def test_sparse_formats_are_converted(form):
    expected, actual = fit(SPARSE_X, tol=1e-10), fit(form(SPARSE_X), tol=1e-10)
    np.testing.assert_allclose(actual.coef_, expected.coef_, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("part", ["data", "indices"])
def test_strided_csr_is_converted(part):
    S = sparse.csr_array(SPARSE_X)
    strided, wide = S.copy(), np.zeros(2 * S.nnz, getattr(S, part).dtype)
    wide[::2] = getattr(S, part)
    setattr(strided, part, wide[::2])
    assert np.array_equal(fit(strided).coef_, fit(S).coef_)


def test_surplus_of_csr_arrays_is_ignored():
    S = sparse.csr_array(SPARSE_X)
    data, indices = np.append(S.data, [1e6] * 9), np.append(S.indices, [0] * 9)
    longer = sparse.csr_array(SPARSE_X.shape)
    longer.data, longer.indices, longer.indptr = data, indices, S.indptr
    weight = np.linspace(1, 2, 30)
    for options in ({"standardize": True}, {"solver": "lbfgs"}):
        model = LogisticRegression(**options).fit(longer, Y, sample_weight=weight)
        expected = LogisticRegression(**options).fit(S, Y, sample_weight=weight)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_invalid_csr_is_refused(part):
    S = sparse.csr_array(SPARSE_X)
    getattr(S, part)[3] = 99
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        fit(S)


# --- labels ---------------------------------------------------------------------------------------

LABELS = [
    np.array([3, -5, 3, 7]),
    np.array([0, 10**12, 0]),
    np.array([2**63 + 5, 2**63], np.uint64),
    np.array([True, False]),
    np.array([2, 0, 255], np.uint8),
    np.array(["b", "a", "b"]),
    np.array(["b", "a", "c"], dtype=object),
    np.array([1.0, 0.0, 2.0]),
]


@pytest.mark.parametrize("y", LABELS, ids=lambda y: str(y.dtype))
def test_labels_are_encoded_like_np_unique(y):
    classes, codes = encode_labels(y, len(y))
    expected, inverse = np.unique(y, return_inverse=True)
    assert classes.dtype == expected.dtype and np.array_equal(classes, expected)
    assert codes.dtype == np.int32 and np.array_equal(codes, inverse)
