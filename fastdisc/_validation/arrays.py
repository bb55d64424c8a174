"""Validation of X and of the arrays that go with its rows.

Features that kernels can read are not copied. NaN and infinity in X are reported later, when a sum
is not finite (`Rows.check_finite`), so that clean data do not pay for the check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._data import csr
from .._data.dense import DenseRows
from .._data.mapped import FeatureBasis
from .._data.rows import Rows
from .._kernels import DTYPES, NO_OFFSET
from .._kernels.contract import Array

CSR_DTYPES = DTYPES[:2]  # float64 and float32


def check_rows(estimator: Any, X: Any, *, reset: bool, y: Any = None) -> Rows:
    """X as rows in a layout that kernels read; mapped rows if the estimator has a basis.

    With `reset`, `n_features_in_` and `feature_names_in_` are set, and the basis is fitted and
    stored as `basis_`; y is for a basis that learns from labels.
    """
    rows = _input_rows(estimator, X, reset=reset)
    if reset:
        vars(estimator).pop("basis_", None)
        basis = getattr(estimator, "basis", None)
        if basis is not None:
            estimator.basis_ = _check_basis(basis).fit_clone(estimator, rows, y)
    fitted = getattr(estimator, "basis_", None)  # not the parameter, which may have changed since
    return rows if fitted is None else fitted.mapped(rows, estimator.backend)


def _check_basis(basis: Any) -> FeatureBasis:
    if not isinstance(basis, FeatureBasis):
        raise ValueError(f"basis must be one of fastdisc.basis, or None, got {basis!r}")
    return basis


def same_basis(one: Any, other: Any) -> bool:
    """Whether two fitted models learn from the same features."""
    first, second = (
        model.basis_.program() if hasattr(model, "basis_") else None for model in (one, other)
    )
    if first is None or second is None:
        return first is second
    return first.same(second)


def forbid_supervised_basis(basis: Any) -> None:
    """ValueError for a basis that learns from labels: it would see those of held-out rows."""
    if basis is None:
        return
    _check_basis(basis)
    if basis.__sklearn_tags__().target_tags.required:
        raise ValueError(
            f"{basis!r} learns from labels, also from those of the rows held out: use "
            "cross_val_score or GridSearchCV"
        )


def _input_rows(estimator: Any, X: Any, *, reset: bool) -> DenseRows | csr.CSRRows:
    """X without the basis; copied only where its type or format requires it."""
    if _is_readable(X) and (reset or _has_known_columns(X, estimator)):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
        return DenseRows(X)
    from sklearn.utils.validation import validate_data

    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=list(DTYPES),
        ensure_all_finite=False,
        accept_large_sparse=True,
    )
    if not sparse.issparse(X):
        return DenseRows(X if X.flags.aligned else X.copy())
    return _csr_rows(X)


def _is_readable(X: Any) -> bool:
    """Whether X is an array that kernels read. Then scikit-learn's checks, which take ten times as
    long as scoring one row, are not needed."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in DTYPES
        and X.size > 0
        and X.flags.aligned
    )


def _has_known_columns(X: Array, estimator: Any) -> bool:
    """Whether the estimator was fitted with as many columns, without names."""
    known = getattr(estimator, "n_features_in_", None)
    return X.shape[1] == known and not hasattr(estimator, "feature_names_in_")


def _csr_rows(X: Any) -> csr.CSRRows:
    _check_csr_structure(X)
    stored = slice(X.indptr[-1])  # the arrays may be longer
    data = X.data[stored]
    data = data if data.dtype in CSR_DTYPES else data.astype(np.float64)
    is_wide = X.indices.dtype == np.int64 or X.indptr.dtype == np.int64
    index_dtype = np.int64 if is_wide else np.int32
    indices = np.ascontiguousarray(X.indices[stored], dtype=index_dtype)
    indptr = np.ascontiguousarray(X.indptr, dtype=index_dtype)
    return csr.CSRRows(np.ascontiguousarray(data), indices, indptr, X.shape[1])


def _check_csr_structure(X: Any) -> None:
    """SciPy accepts any three arrays as CSR; kernels would access memory out of bounds."""
    indptr, indices = X.indptr, X.indices
    n_stored = min(len(X.data), len(indices))
    if indptr[0] != 0 or indptr[-1] > n_stored or (np.diff(indptr) < 0).any():
        raise ValueError(
            "X is not a valid CSR matrix: indptr must rise from 0 to at most the number of stored "
            "values"
        )
    indices = indices[: indptr[-1]]
    if len(indices) and not (indices.min() >= 0 and indices.max() < X.shape[1]):
        raise ValueError(
            f"X is not a valid CSR matrix: a column index is outside 0 to {X.shape[1] - 1}"
        )


def check_sample_weight(weight: Any, n_rows: int) -> Array:
    """(N,) float64, or (1,) if all rows have the same weight."""
    if weight is None:
        return np.ones(1)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = weight.reshape(1)
    elif weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    elif weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight for each row "
            "of X"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"sample_weight must be finite and >= 0; in row {row} it is {weight[row]}")
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return np.ascontiguousarray(weight)


def check_offset(values: Any, n_rows: int, K: int) -> Array:
    """(N, K) float64, or NO_OFFSET."""
    if values is None:
        return NO_OFFSET
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != (n_rows, K):
        raise ValueError(
            f"offset.shape == {values.shape}, expected {(n_rows, K)}: one number for each row and "
            "score"
        )
    finite = np.isfinite(values)
    if not finite.all():
        raise ValueError(
            f"offset must be finite; in row {int((~finite).any(axis=1).argmax())} it is not"
        )
    return np.ascontiguousarray(values)


def check_Cs(Cs: Any) -> Array:
    """(n,) inverse regularization strengths."""
    Cs = np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
        raise ValueError(f"Cs must be numbers > 0, got {Cs.tolist()}")
    return Cs
