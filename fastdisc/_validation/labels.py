"""Validation of class labels, class weights and priors."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

from .._kernels.contract import Array

LABELS_PER_SLICE = 1 << 16  # labels that are encoded at a time, which bounds temporary memory
MAX_COUNTED_RANGE = 100_000  # integer labels in a wider range are sorted instead of counted


def check_column(y: Any, n_rows: int) -> Array:
    """y as an array with one value for each row of X."""
    from sklearn.utils import column_or_1d

    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)
    check_same_length(n_rows, len(y))
    return y


def check_same_length(n_rows: int, n_targets: int) -> None:
    """ValueError, in scikit-learn's words, unless y has as many rows as X."""
    if n_targets != n_rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, y has {n_targets}"
        )


def encode_labels(y: Any, n_rows: int, min_classes: int = 2) -> tuple[Array, Array]:
    """The sorted classes (K,), and the code of each row's class (N,) int32."""
    y = check_column(y, n_rows)
    if y.dtype == object and all(isinstance(label, Number) for label in y):
        y = np.array(y.tolist())
    if y.dtype.kind == "f":
        _check_integral(y)
    classes, codes = encode_values(y)
    if len(classes) < min_classes:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, "
            f"but the data contains only one class: {classes.tolist()[0]!r}"
        )
    return classes, codes


def _check_integral(y: Array) -> None:
    bad = ~np.isfinite(y)
    if bad.any():
        row = int(bad.argmax())
        what = "NaN" if np.isnan(y[row]) else "infinity"
        raise ValueError(f"Input y contains {what}, first in row {row}")
    fractional = y != np.floor(y)
    if fractional.any():
        row = int(fractional.argmax())
        raise ValueError(
            "Unknown label type: continuous. Class labels are whole numbers or names; "
            f"row {row} of y is {y[row]}"
        )


def encode_values(values: Array) -> tuple[Array, Array]:
    """`np.unique` with int32 inverse. Integers in a narrow range are counted, which is many times
    faster than sorting."""
    if values.dtype.kind in "iub":
        low, high = int(values.min()), int(values.max())
        if high - low <= MAX_COUNTED_RANGE and high < 2**62:
            return _encode_by_counting(values, low, high)
    try:
        unique, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"labels of mixed types cannot be ordered: {error}") from error
    return unique, codes.astype(np.int32)


def _encode_by_counting(values: Array, low: int, high: int) -> tuple[Array, Array]:
    if high == low:
        return np.array([low]).astype(values.dtype), np.zeros(len(values), np.int32)
    if high - low == 1:
        return np.array([low, high]).astype(values.dtype), (values != low).astype(np.int32)
    codes, present = np.empty(len(values), np.int32), np.zeros(high - low + 1, bool)
    parts = [slice(lo, lo + LABELS_PER_SLICE) for lo in range(0, len(values), LABELS_PER_SLICE)]
    for part in parts:
        shifted = np.subtract(values[part], low, dtype=np.int64)
        codes[part] = shifted
        present |= np.bincount(shifted, minlength=len(present)) > 0
    if not present.all():
        table = (np.cumsum(present) - 1).astype(np.int32)
        for part in parts:
            codes[part] = table[codes[part]]
    return (np.flatnonzero(present) + low).astype(values.dtype), codes


def encode_known(y: Any, classes: Array, n_rows: int) -> Array:
    """The code of each row's class, (N,) int32, among known classes."""
    y = check_column(y, n_rows)
    try:
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    except TypeError as error:
        raise ValueError(
            f"y has labels of another type than the classes {classes.tolist()}: {error}"
        ) from error
    unknown = classes[codes] != y
    if unknown.any():
        row = int(unknown.argmax())
        label = y[row : row + 1].tolist()[0]
        raise ValueError(f"y has a label that is not among the classes: {label!r} in row {row}")
    return codes.astype(np.int32)


def check_classes(classes: Any, known: Array | None) -> Any:
    """The sorted labels of a stream: those given in its first call; afterwards `known`, which they
    must be equal to. None if there are neither."""
    if classes is None:
        return known
    classes = np.unique(classes)
    if known is None and len(classes) < 2:
        raise ValueError(f"classes must have at least 2 labels, got {classes.tolist()}")
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(f"classes={classes.tolist()} is not what it was before: {known.tolist()}")
    return classes


def is_indicator(y: Any) -> bool:
    """Whether y is a matrix with one column per class."""
    if y is None or sparse.issparse(y):
        return y is not None
    shape = np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def check_indicator(y: Any, n_rows: int) -> Array:
    """(N, K) bool, from a matrix of zeros and ones."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y)
    check_same_length(n_rows, y.shape[0])
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"Unknown label type: an indicator matrix has zeros and ones, got {y.dtype}"
        )
    bad = ~((y == 0) | (y == 1))
    if bad.any():
        row, column = divmod(int(bad.argmax()), y.shape[1])
        raise ValueError(
            "an indicator matrix has zeros and ones; "
            f"in row {row}, column {column} of y it is {y[row, column]}"
        )
    return y == 1


def check_weighted_classes(s: Array, classes: Array, codes: Array) -> Array:
    """Row weights, which must be positive for some rows of at least two classes."""
    if len(s) > 1:
        present = np.flatnonzero(np.bincount(codes, s, len(classes)))
        if len(present) == 1:
            label = classes[present].tolist()[0]
            raise ValueError(f"sample_weight leaves rows of only one class: {label!r}")
    return s


def check_class_weight(
    weight: Any, classes: Array, codes: Array, s: Array, all_present: bool = True
) -> Array:
    """Row weights times the weights of the rows' classes: None, "balanced", or a dict from class to
    weight. `all_present` says that these are all rows, not some of a stream."""
    if weight is None:
        return s
    if isinstance(weight, Mapping):
        factors = _class_factors(weight, classes)
    elif not isinstance(weight, str):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weight!r}")
    elif not all_present:
        raise ValueError("class_weight='balanced' needs all rows at once: pass a dict")
    elif weight != "balanced":
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weight!r}")
    else:
        factors = _balanced_factors(classes, codes, s)
    s = s * factors[codes]
    if all_present and not s.any():
        raise ValueError(f"class_weight leaves no row with a weight: {weight!r}")
    return s


def _balanced_factors(classes: Array, codes: Array, s: Array) -> Array:
    total = np.bincount(codes, np.broadcast_to(s, len(codes)), len(classes))
    if not total.all():
        label = classes.tolist()[total.argmin()]
        raise ValueError(f"class_weight='balanced': class {label!r} has no weight")
    return total.sum() / (len(classes) * total)


def _class_factors(weight: Mapping[Any, Any], classes: Array) -> Array:
    labels = classes.tolist()
    known = set(labels)
    unknown = [label for label in weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight has labels that are not in y: {unknown}")
    factors = np.array([weight.get(label, 1.0) for label in labels], dtype=np.float64)
    if not (np.isfinite(factors) & (factors >= 0)).all():
        raise ValueError(f"class_weight has values that are not finite and >= 0: {weight!r}")
    return factors


def check_priors(values: Any, classes: Array, shares: Array) -> Array:
    """(K,) probabilities that add up to 1; the classes' shares of the sample if there are none."""
    if values is None:
        return shares
    if not shares.all():
        label = classes.tolist()[shares.argmin()]
        raise ValueError(
            f"priors: class {label!r} has no weight in the sample: its prior cannot be changed"
        )
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(classes),):
        raise ValueError(
            f"priors.shape == {values.shape}, expected {(len(classes),)}: "
            f"one for each class of {classes.tolist()}"
        )
    if not ((values > 0).all() and abs(values.sum() - 1) <= 1e-6):
        raise ValueError(f"priors must be positive and add up to 1, got {values.tolist()}")
    return values / values.sum()
