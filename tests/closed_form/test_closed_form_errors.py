"""Closed-form models: errors name what is invalid, and change nothing."""

import numpy as np
import pytest
from helpers.closed_form_models import draw_on_grid
from helpers.data_sets import with_bad_cell
from scipy import sparse
from sklearn.covariance import OAS
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as SklearnLDA

from fastdisc import (
    BernoulliNB,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)

X = np.abs(np.random.default_rng(0).standard_normal((30, 3)))
Y = np.arange(30) % 3
LDA, QDA = LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
LSQ, LSQ_CV = LeastSquaresClassifier, LeastSquaresClassifierCV
FISHER = FisherDiscriminant
EVERY = [LDA, QDA, FISHER, LSQ, LSQ_CV, BernoulliNB, MultinomialNB, PoissonNB, GaussianNB]

INVALID_DATA = {
    "NaN in X": ({"X": with_bad_cell(X, np.nan)}, "NaN, first in row 7, column 1"),
    "infinity in X": ({"X": with_bad_cell(X, np.inf)}, "infinity, first in row 7, column 1"),
    "NaN in CSR": (
        {"X": sparse.csr_array(with_bad_cell(X, np.nan))},
        "NaN, first in row 7, column 1",
    ),
    "short y": ({"y": Y[:20]}, "X has 30 rows, y has 20"),
    "one class": ({"y": np.zeros(30, int)}, "only one class"),
    "continuous y": ({"y": X[:, 0]}, "continuous"),
    "negative weight": (
        {"sample_weight": np.where(np.arange(30) == 9, -1.0, 1)},
        "in row 9 it is -1",
    ),
    "weights all zero": ({"sample_weight": np.zeros(30)}, "zero in every row"),
    "unknown backend": ({"backend": "fortran"}, "backend must be"),
    "zero threads": ({"n_threads": 0}, "n_threads must be"),
}
INVALID_OPTIONS = [
    (LDA, {"solver": "magic"}, "solver must be one of 'svd', 'lsqr', 'eigen', got 'magic'"),
    (LDA, {"solver": "lsqr", "shrinkage": 1.5}, "shrinkage must be a number from 0 to 1"),
    (LDA, {"solver": "lsqr", "shrinkage": "much"}, "shrinkage must be a number"),
    (
        LDA,
        {"solver": "lsqr", "shrinkage": 0.1, "covariance_estimator": OAS()},
        "only one of the two",
    ),
    (LDA, {"covariance_estimator": OAS()}, "not supported with solver='svd'"),
    (LDA, {"n_components": 3}, r"n_components cannot be larger.*3 > 2"),
    (LDA, {"tol": -1}, "tol must be a number >= 0"),
    (LDA, {"store_covariance": "yes"}, "store_covariance must be one of"),
    (LDA, {"y": np.arange(30)}, "more than the number of classes"),
    (LDA, {"priors": [0.5, 0.5]}, r"priors.shape == \(2,\), expected \(3,\)"),
    (LDA, {"priors": [0.5, 0.5, 0.5]}, "add up to 1"),
    (QDA, {"reg_param": 2.0}, "reg_param must be a number from 0 to 1"),
    (QDA, {"solver": "lsqr"}, "solver must be one of 'svd', 'eigen', got 'lsqr'"),
    (FISHER, {"n_components": 3}, "n_components cannot be larger"),
    (FISHER, {"n_components": 0}, "n_components must be a whole number >= 1"),
    (LSQ, {"alpha": -1.0}, "alpha must be a number >= 0"),
    (LSQ, {"targets": "both"}, "targets must be one of"),
    (LSQ, {"targets": "fisher"}, "for two classes, y has 3"),
    (LSQ_CV, {"alphas": [-1.0]}, "alphas must be numbers >= 0"),
    (LSQ_CV, {"scoring": "roc_auc"}, "scoring must be one of"),
    (BernoulliNB, {"alpha": -1.0}, "alpha must be a number >= 0"),
    (BernoulliNB, {"alpha": [1.0, 1.0]}, "alpha has 2 numbers, X has 3 columns"),
    (BernoulliNB, {"binarize": "half"}, "binarize must be a number"),
    (BernoulliNB, {"class_prior": [0.2, 0.2, 0.2]}, "add up to 1"),
    (BernoulliNB, {"fit_prior": "no"}, "fit_prior must be one of"),
    (MultinomialNB, {"X": X - 1}, "Negative values in data passed to MultinomialNB"),
    (PoissonNB, {"X": sparse.csr_array(X - 1)}, "Negative values in data passed to PoissonNB"),
    (GaussianNB, {"var_smoothing": -1.0}, "var_smoothing must be a number >= 0"),
]


def assert_fit_fails(cls, given, message):
    """And that the model predicts as before."""
    options = dict(given)
    names = [name for name in ("X", "y", "sample_weight") if name in options]
    data = {"X": X, "y": Y} | {name: options.pop(name) for name in names}
    model = cls().fit(X, Y)
    before = model.predict(X)
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    model.set_params(**cls().get_params())
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("what", INVALID_DATA)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_invalid_data_are_named(cls, what):
    assert_fit_fails(cls, *INVALID_DATA[what])


@pytest.mark.parametrize(
    ("cls", "given", "message"),
    INVALID_OPTIONS,
    ids=[f"{cls.__name__}-{'-'.join(given)}" for cls, given, _ in INVALID_OPTIONS],
)
def test_invalid_options_are_named(cls, given, message):
    assert_fit_fails(cls, given, message)


# --- partial_fit, forget, merge -------------------------------------------------------------------


@pytest.fixture
def model():
    return LinearDiscriminantAnalysis().partial_fit(X, Y, classes=[0, 1, 2])


CALLS = {
    "partial_fit, unknown label": (
        lambda model: model.partial_fit(X, Y + 5),
        "y has a label that is not among the classes: 5 in row 0",
    ),
    "partial_fit, other classes": (
        lambda model: model.partial_fit(X, Y, classes=[0, 1]),
        r"classes=\[0, 1\] is not what it was before: \[0, 1, 2\]",
    ),
    "forget, unknown label": (
        lambda model: model.forget(X, Y + 5),
        "not among the classes",
    ),
    "forget, too many rows": (
        lambda model: model.forget(np.vstack([X, X]), np.r_[Y, Y]),
        "class number 0 has a weight of 10",
    ),
    "forget, all rows": (lambda model: model.forget(X, Y), "no row would be left"),
    "merge, another model": (
        lambda model: model.merge(GaussianNB().fit(X, Y)),
        "merge: cannot merge",
    ),
    "merge, other columns": (
        lambda model: model.merge(LinearDiscriminantAnalysis().fit(X[:, :2], Y)),
        "this model has 3 columns, the other has 2",
    ),
    "sample, no row": (lambda model: model.sample(0), "n must be a whole number >= 1"),
}


@pytest.mark.parametrize("what", CALLS)
def test_invalid_calls_are_named_and_change_nothing(model, what):
    call, message = CALLS[what]
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        call(model)
    assert np.array_equal(model.decision_function(X), before)


def test_criterion_needs_the_columns_of_X():
    with pytest.raises(ValueError, match="must have 3 columns"):
        FisherDiscriminant().fit(X, Y).criterion(np.ones(2))


def test_unsupported_combinations_of_options():
    with pytest.raises(NotImplementedError, match="transform not implemented for 'lsqr'"):
        LinearDiscriminantAnalysis(solver="lsqr").fit(X, Y).transform(X)
    with pytest.raises(NotImplementedError, match="shrinkage not supported with 'svd'"):
        LinearDiscriminantAnalysis(shrinkage=0.1).fit(X, Y)


# --- covariance_estimator -------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_covariance_estimator_equals_that_of_sklearn(rng, solver):
    A, y = draw_on_grid(rng, n=90)
    options = {"solver": solver, "covariance_estimator": OAS()}
    ours, theirs = LinearDiscriminantAnalysis(**options).fit(A, y), SklearnLDA(**options).fit(A, y)
    np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(A), atol=1e-9)


def test_covariance_estimator_needs_all_rows(rng):
    model = LinearDiscriminantAnalysis(solver="eigen", covariance_estimator=OAS()).fit(X, Y)
    for call in ("partial_fit", "forget"):
        with pytest.raises(ValueError, match=f"{call}.*covariance_estimator"):
            getattr(model, call)(X, Y)
    with pytest.raises(ValueError, match=r"cross_val_from_moments.*covariance_estimator"):
        cross_val_from_moments(model, X, Y)
