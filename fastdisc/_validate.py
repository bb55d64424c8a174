"""The only door for user arrays: what comes in through here is what the kernels' contract asks for."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number

import numpy as np
from scipy import sparse

from ._kernels import CSR, DTYPES, NO_OFFSET, Mapped
from ._kernels.maps import features as expanded

SLICE = 1 << 16  # labels


def features(estimator, X, *, reset, y=None):
    """X as the kernels read it: its rows as they are, or, where the estimator has a basis, rows that stand for their features.

    With `reset` the basis is fitted first, and stored as `basis_`; y is for a basis that asks for labels.
    """
    X = _rows(estimator, X, reset=reset)
    if reset:
        vars(estimator).pop("basis_", None)
        if getattr(estimator, "basis", None) is not None:
            estimator.basis_ = _fit_basis(estimator, estimator.basis, X, y)
    fitted = getattr(estimator, "basis_", None)  # not the parameter, which may have changed since
    return X if fitted is None else fitted.mapped(X, estimator.backend)


def _check_basis(basis):
    from .basis._base import Basis

    if not isinstance(basis, Basis):
        raise ValueError(f"basis must be one of fastdisc.basis, or None, got {basis!r}")


def _fit_basis(estimator, basis, X, y):
    from .basis._base import fit_clone

    _check_basis(basis)
    return fit_clone(basis, estimator, X, y)


def same_basis(one, other):
    """Whether two fitted models learn from the same features."""
    programs = [model.basis_.program() if hasattr(model, "basis_") else None for model in (one, other)]
    return programs[0] is programs[1] or (None not in programs and programs[0].same(programs[1]))


def blind(basis):
    """ValueError for a basis that learns from labels, where it would see those of rows that are held out."""
    if basis is None:
        return
    _check_basis(basis)
    if basis.__sklearn_tags__().target_tags.required:
        raise ValueError(
            f"{basis!r} learns from labels, also from those of the rows held out: take cross_val_score or GridSearchCV"
        )


def _rows(estimator, X, *, reset):
    """X as an array or CSR that the kernels read in place; a copy only where the type or the format forces one."""
    if _is_plain(X) and (reset or _is_known(X, estimator)):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
        return X
    from sklearn.utils.validation import validate_data

    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=list(DTYPES), ensure_all_finite=False, accept_large_sparse=True
    )
    if not sparse.issparse(X):
        return X if X.flags.aligned else X.copy()
    _check_structure(X)
    data = X.data if X.dtype in DTYPES[:2] else X.data.astype(np.float64)
    wide = X.indices.dtype == np.int64 or X.indptr.dtype == np.int64
    index = np.int64 if wide else np.int32
    indices, indptr = (np.ascontiguousarray(part, dtype=index) for part in (X.indices, X.indptr))
    return CSR(np.ascontiguousarray(data), indices, indptr, X.shape[1])


def _is_plain(X):
    """Whether X is what the kernels read, beyond doubt: scikit-learn's checks take ten times as long as scoring one row."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype in DTYPES and X.size > 0 and X.flags.aligned


def _is_known(X, estimator):
    """Whether X has the columns that the estimator was fitted with, and nobody named those."""
    return X.shape[1] == getattr(estimator, "n_features_in_", None) and not hasattr(estimator, "feature_names_in_")


def _check_structure(X):
    """SciPy takes any three arrays for a CSR matrix; a kernel would read and write wherever they point."""
    ends = X.indptr
    if ends[0] != 0 or ends[-1] > min(len(X.data), len(X.indices)) or (np.diff(ends) < 0).any():
        raise ValueError("X is not a valid CSR matrix: indptr must rise from 0 to at most the number of stored values")
    if len(X.indices) and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError(f"X is not a valid CSR matrix: a column index is outside 0 to {X.shape[1] - 1}")


def _column(y, n_rows):
    """y as one label for each row of X."""
    from sklearn.utils import column_or_1d

    y = y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(y)}")
    return y


def labels(y, n_rows, least=2):
    """The sorted classes, and the (N,) int32 code of each row's class."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = _column(y, n_rows)
    if y.dtype == object and all(isinstance(name, Number) for name in y):
        y = np.array(y.tolist())
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(f"Input y contains {'NaN' if np.isnan(y[row]) else 'infinity'}, first in row {row}")
        broken = y != np.floor(y)
        if broken.any():
            row = int(broken.argmax())
            raise ValueError(
                f"Unknown label type: continuous. Class labels are whole numbers or names; row {row} of y is {y[row]}"
            )
    classes, codes = _encode(y)
    if len(classes) < least:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, "
            f"but the data contains only one class: {classes.tolist()[0]!r}"
        )
    return classes, codes


def _count(y, low, high):
    """Classes and codes of whole numbers from low to high; a slice at a time: 64-bit copies of all labels are large."""
    if high - low <= 1:
        return np.arange(low, high + 1).astype(y.dtype), (y != low).astype(np.int32) if high > low else np.zeros(len(y), np.int32)
    codes, present = np.empty(len(y), np.int32), np.zeros(high - low + 1, bool)
    for begin in range(0, len(y), SLICE):
        part = np.subtract(y[begin : begin + SLICE], low, dtype=np.int64)
        codes[begin : begin + SLICE] = part
        present |= np.bincount(part, minlength=len(present)) > 0
    classes = (np.flatnonzero(present) + low).astype(y.dtype)
    if not present.all():
        table = (np.cumsum(present) - 1).astype(np.int32)
        for begin in range(0, len(y), SLICE):
            codes[begin : begin + SLICE] = table[codes[begin : begin + SLICE]]
    return classes, codes


def _encode(y):
    """np.unique with inverse; whole numbers in a narrow range by counting, which is many times faster."""
    if y.dtype.kind in "iub":
        low, high = int(y.min()), int(y.max())
        if high - low <= 100_000 and high < 2**62:
            return _count(y, low, high)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as problem:
        raise ValueError(f"labels of mixed types cannot be ordered: {problem}") from problem
    return classes, codes.astype(np.int32)


def is_indicator(y):
    """Whether y is a matrix, with a column for each of several classes."""
    shape = np.asarray(y).shape if y is not None and not sparse.issparse(y) else ()
    return sparse.issparse(y) or (len(shape) == 2 and shape[1] > 1)


def indicator(y, n_rows):
    """(N, K) bool, from a matrix of zeros and ones."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if y.shape[0] != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {y.shape[0]}")
    if y.dtype.kind not in "biuf":
        raise ValueError(f"Unknown label type: an indicator matrix is of zeros and ones, got {y.dtype}")
    bad = ~((y == 0) | (y == 1))
    if bad.any():
        row, column = divmod(int(bad.argmax()), y.shape[1])
        raise ValueError(f"an indicator matrix is of zeros and ones; in row {row}, column {column} of y it is {y[row, column]}")
    return y == 1


def sample_weight(weight, n_rows):
    """(N,) float64, or (1,) where every row weighs the same."""
    if weight is None:
        return np.ones(1)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = weight.reshape(1)
    elif weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    elif weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight for each row of X")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"sample_weight must be finite and >= 0; in row {row} it is {weight[row]}")
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return np.ascontiguousarray(weight)


def weighted_classes(s, classes, codes):
    """Row weights, which must not leave rows of one class only."""
    if len(s) > 1:
        present = np.flatnonzero(np.bincount(codes, s, len(classes)))
        if len(present) == 1:
            raise ValueError(f"sample_weight leaves rows of only one class: {classes[present].tolist()[0]!r}")
    return s


def all_classes(classes, known):
    """The sorted labels that a stream may have: those given in its first call, or `known` since."""
    if classes is None:
        return known
    classes = np.unique(classes)
    if known is None and len(classes) < 2:
        raise ValueError(f"classes must have at least 2 labels, got {classes.tolist()}")
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(f"classes={classes.tolist()} is not what it was before: {known.tolist()}")
    return classes


def codes(y, classes, n_rows):
    """The (N,) int32 code of each row's class, where the classes are known."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = _column(y, n_rows)
    try:
        r = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    except TypeError as problem:
        raise ValueError(f"y has labels of another type than the classes {classes.tolist()}: {problem}") from problem
    strange = classes[r] != y
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(f"y has a label that is not among the classes: {y[row]!r} in row {row}")
    return r.astype(np.int32)


def offset(values, n_rows, K):
    """(N, K) float64, or NO_OFFSET."""
    if values is None:
        return NO_OFFSET
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != (n_rows, K):
        raise ValueError(f"offset.shape == {values.shape}, expected {(n_rows, K)}: one number for each row and score")
    if not np.isfinite(values).all():
        raise ValueError(f"offset must be finite; in row {int((~np.isfinite(values)).any(axis=1).argmax())} it is not")
    return np.ascontiguousarray(values)


def priors(values, classes, shares):
    """(K,) probabilities that add up to 1, instead of the classes' shares of the sample."""
    if values is None:
        return shares
    if not shares.all():
        raise ValueError(f"priors: class {classes[shares.argmin()]!r} has no weight in the sample: its prior cannot change")
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(classes),):
        raise ValueError(f"priors.shape == {values.shape}, expected {(len(classes),)}: one for each class of {classes.tolist()}")
    if not ((values > 0).all() and abs(values.sum() - 1) <= 1e-6):
        raise ValueError(f"priors must be positive and add up to 1, got {values.tolist()}")
    return values / values.sum()


def strengths(Cs):
    """(n,) values of C."""
    Cs = np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
        raise ValueError(f"Cs must be numbers > 0, got {Cs.tolist()}")
    return Cs


def class_weight(weight, classes, codes, s, all_present=True):
    """Row weights times the weights of the rows' classes: None, "balanced", or a dict from class to weight."""
    if weight is None:
        return s
    if isinstance(weight, str) and not all_present:
        raise ValueError("class_weight='balanced' needs all rows at once: pass a dict")
    if isinstance(weight, str):
        if weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weight!r}")
        total = np.bincount(codes, np.broadcast_to(s, len(codes)), len(classes))
        if not total.all():
            raise ValueError(f"class_weight='balanced': class {classes[total.argmin()]!r} has no weight")
        factors = total.sum() / (len(classes) * total)
    elif not isinstance(weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weight!r}")
    else:
        known = set(classes.tolist())
        strange = [name for name in weight if name not in known]
        if strange:
            raise ValueError(f"The classes, {strange}, are not in class_label")
        factors = np.array([weight.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
        if not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"class_weight has values that are not finite and >= 0: {weight!r}")
    s = s * factors[codes]
    if all_present and not s.any():
        raise ValueError(f"class_weight leaves no row with a weight: {weight!r}")
    return s


def check_finite(X):
    """Name the first NaN or infinity in X. Called when a sum came out non-finite, so clean data pay nothing for the check."""
    if isinstance(X, Mapped):
        failure = X.failure()
        check_finite(X.raw)
        if failure is not None:
            raise failure
        _check_features(X)
    elif isinstance(X, CSR):
        bad = ~np.isfinite(X.data)
        if bad.any():
            place = int(bad.argmax())
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            _name(X.data[place], row, int(X.indices[place]))
    elif X.dtype.kind == "f":
        step = max(1, (1 << 20) // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            bad = ~np.isfinite(X[start : start + step])
            if bad.any():
                row, column = divmod(int(bad.argmax()), X.shape[1])
                _name(X[start + row, column], start + row, column)


def _check_features(X):
    """Name the first feature of a basis that is not finite where all cells of X are; an error of a user's function comes out."""
    step = max(1, (1 << 20) // max(1, X.program.width))
    for start in range(0, len(X), step):
        F = expanded(X.take_rows(slice(start, start + step)))
        bad = ~np.isfinite(F)
        if bad.any():
            row, column = divmod(int(bad.argmax()), F.shape[1])
            raise ValueError(
                f"the basis is not defined for all rows: {X.name(column)!r} is {F[row, column]} first in row {start + row}, "
                f"which has {X.raw[start + row].tolist()[:20]}"
            )


def raise_too_large(X):
    """The cells are finite, and yet their sums are not."""
    kind = "float64" if X.dtype == np.float64 else "float32"
    raise ValueError(f"Input X has values too large for sums in {kind}: scale the columns")


def _name(value, row, column):
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(f"Input X contains {what}, first in row {row}, column {column}. Drop such rows or impute the values.")
