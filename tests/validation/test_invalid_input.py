"""LogisticRegression: errors name what is invalid and where, and a failed fit changes nothing."""

import numpy as np
import pytest
from helpers.data_sets import with_bad_cell
from scipy import sparse

from fastdisc import LogisticRegression

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


def with_value(value, place, values):
    """A float copy of values, with one replaced."""
    return np.where(np.arange(30) == place, value, values)


FEATURES = {
    "NaN": (with_bad_cell(X, np.nan), "NaN, first in row 7, column 1"),
    "infinity": (with_bad_cell(X, np.inf), "infinity, first in row 7, column 1"),
    "minus infinity in float32": (
        with_bad_cell(X, -np.inf, 29, 2, np.float32),
        "infinity, first in row 29, column 2",
    ),
    "NaN in F order": (
        np.asfortranarray(with_bad_cell(X, np.nan)),
        "NaN, first in row 7, column 1",
    ),
    "NaN in CSR": (
        sparse.csr_array(with_bad_cell(X, np.nan)),
        "NaN, first in row 7, column 1",
    ),
    "finite but too large": (np.sign(X) * 1.7e308, "too large"),
    "sums that overflow": (X * 1e200, "too large"),
    "no columns": (X[:, :0], "0 feature"),
    "complex": (X + 1j, "Complex"),
    "words": (np.array([["a", "b"]] * 30), "could not convert|dtype"),
}
LABELS = {
    "short": (Y[:20], "X has 30 rows, y has 20"),
    "None": (None, "requires y to be passed, but the target y is None"),
    "one class": (np.zeros(30, int), "only one class: .*0"),
    "continuous": (X[:, 0], "Unknown label type: continuous.*row 0"),
    "NaN": (with_value(np.nan, 4, Y), "Input y contains NaN, first in row 4"),
    "infinity": (with_value(np.inf, 4, Y), "Input y contains infinity, first in row 4"),
    "mixed types": (np.array([1, "a", None] * 10, dtype=object), "mixed types"),
    "NaN among objects": (
        np.array([0.0, 1.0, np.nan] * 10, dtype=object),
        "Input y contains NaN, first in row 2",
    ),
    "continuous objects": (np.array([0.5, 1.2, 2.5] * 10, dtype=object), "continuous"),
}
SAMPLE_WEIGHTS = {
    "short": (np.ones(20), r"\(20,\), expected \(30,\)"),
    "two dimensions": (np.ones((30, 1)), "Sample weights must be 1D"),
    "negative": (with_value(-1.0, 9, 1), "in row 9 it is -1"),
    "NaN": (with_value(np.nan, 9, 1), "in row 9 it is nan"),
    "all zero": (np.zeros(30), "zero in every row"),
}
OFFSETS = {
    "short": (np.zeros(20), r"offset.shape == \(20, 1\), expected \(30, 1\)"),
    "two columns for one score": (
        np.zeros((30, 2)),
        r"offset.shape == \(30, 2\), expected \(30, 1\)",
    ),
    "NaN": (with_value(np.nan, 9, 0), "offset must be finite; in row 9"),
    "infinity": (with_value(np.inf, 9, 0), "offset must be finite; in row 9"),
}
OPTIONS = [
    ({"C": 0}, "C must be a number > 0, got 0"),
    ({"C": "1"}, "C must be a number > 0, got '1'"),
    ({"tol": -1}, "tol must be a number >= 0"),
    ({"max_iter": 1.5}, "max_iter must be a whole number >= 1"),
    ({"solver": "magic"}, "solver must be one of 'auto', 'newton'.*got 'magic'"),
    ({"solver": "gd", "eta": -0.1}, "eta must be a number > 0"),
    ({"backend": "fortran"}, "backend must be"),
    ({"n_threads": 0}, "n_threads must be"),
    ({"n_threads": True}, "n_threads must be"),
    ({"fit_intercept": "no"}, "fit_intercept must be one of True, False, got 'no'"),
    ({"standardize": "yes"}, "standardize must be one of True, False, got 'yes'"),
    ({"verbose": -1}, "verbose must be a whole number >= 0"),
    ({"callback": "print"}, "callback must be callable, got 'print'"),
    ({"class_weight": "fair"}, "class_weight must be None, 'balanced' or a dict, got 'fair'"),
    ({"class_weight": [1, 2]}, "class_weight must be None, 'balanced' or a dict"),
    ({"class_weight": {5: 1.0}}, r"\[5\]"),
    ({"class_weight": {0: 0, 1: 0}}, "class_weight leaves no row"),
    ({"class_weight": {0: -1.0}}, "class_weight has values that are not finite and >= 0"),
    (
        {"penalty": "l3"},
        "penalty must be one of 'deprecated', 'l2', 'l1', 'elasticnet', None, got 'l3'",
    ),
    ({"l1_ratio": 1.1}, r"l1_ratio must be a number from 0 to 1, got 1\.1"),
    ({"l1_ratio": -0.1}, r"l1_ratio must be a number >= 0, got -0\.1"),
    ({"l1_ratio": np.nan}, "l1_ratio must be a number >= 0, got nan"),
    (
        {"solver": "lbfgs", "l1_ratio": 1.0},
        "solver 'lbfgs' does not support an L1 penalty.*'proximal'",
    ),
    ({"solver": "newton", "penalty": "l1"}, "solver 'newton' does not support an L1 penalty"),
    ({"reference_class": 2}, r"reference_class must be one of \[0, 1\], got 2"),
    ({"reference_class": "one"}, "reference_class must be one of"),
    ({"early_stopping": 0}, "early_stopping must be a whole number >= 1, got 0"),
    ({"early_stopping": 2.5}, "early_stopping must be a whole number >= 1"),
]
PRIORS = [
    ([0.2, 0.3, 0.5], r"priors.shape == \(3,\), expected \(2,\)"),
    ([0.5, 0.6], "priors must be positive and add up to 1"),
    ([0.0, 1.0], "priors must be positive and add up to 1"),
    ([0.5, np.nan], "priors must be positive and add up to 1"),
]


def assert_fit_fails(message, features=X, labels=Y, options=None, **data):
    model = LogisticRegression().fit(X, Y)
    before = model.coef_.copy()
    model.set_params(**(options or {}))
    with pytest.raises(ValueError, match=message):
        model.fit(features, labels, **data)
    assert np.array_equal(model.coef_, before)


@pytest.mark.parametrize("what", FEATURES)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_invalid_features_are_named(what):
    bad, message = FEATURES[what]
    assert_fit_fails(message, features=bad)


def test_arrays_of_another_shape_are_refused():
    assert_fit_fails("0 sample", X[:0], Y[:0])
    assert_fit_fails("2D array", X[0], Y[:3])


def test_features_of_rows_without_weight_are_checked():
    bad = with_bad_cell(X, np.nan)
    assert_fit_fails("NaN, first in row 7", bad, sample_weight=np.arange(30) != 7)


@pytest.mark.parametrize("what", LABELS)
def test_invalid_labels_are_named(what):
    bad, message = LABELS[what]
    assert_fit_fails(message, labels=bad)


@pytest.mark.parametrize("what", SAMPLE_WEIGHTS)
def test_invalid_sample_weights_are_named(what):
    bad, message = SAMPLE_WEIGHTS[what]
    assert_fit_fails(message, sample_weight=bad)


@pytest.mark.parametrize("what", OFFSETS)
def test_invalid_offsets_are_named(what):
    bad, message = OFFSETS[what]
    assert_fit_fails(message, offset=bad)


def test_offset_needs_a_column_for_each_score():
    assert_fit_fails(r"expected \(30, 3\)", labels=np.arange(30) % 3, offset=np.zeros(30))


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=str)
def test_invalid_options_are_named(options, message):
    assert_fit_fails(message, options=options)


@pytest.mark.parametrize(("priors", "message"), PRIORS, ids=str)
def test_invalid_priors_are_named(priors, message):
    assert_fit_fails(message, options={"priors": priors})
    with pytest.raises(ValueError, match=message):
        LogisticRegression().fit(X, Y).with_priors(priors)


def test_newton_refuses_data_that_are_too_wide():
    wide = sparse.csr_array((30, 30_000))
    assert_fit_fails("take solver='lbfgs'", wide, options={"solver": "newton"})


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
@pytest.mark.parametrize("K", [2, 3])
def test_invalid_features_to_predict_are_named(method, K):
    model = LogisticRegression().fit(X, np.arange(30) % K)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"{word}, first in row 7, column 1"):
            getattr(model, method)(with_bad_cell(X, value))
    with pytest.raises(ValueError, match="3 features"):
        getattr(model, method)(X[:, :2])
