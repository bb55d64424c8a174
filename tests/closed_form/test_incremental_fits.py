"""Closed-form models of parts of the data: partial_fit, forget, merge, cross-validation."""

import numpy as np
import pytest
from helpers.closed_form_models import (
    INCREMENTAL_MODELS,
    assert_same_model,
    draw_counts,
    label_of,
)
from helpers.data_sets import SETS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import discriminant_analysis, naive_bayes
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_score

from fastdisc import (
    BernoulliNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)
from fastdisc._validation.splits import fold_codes

COLLINEAR = pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
MODELS = pytest.mark.parametrize("model", INCREMENTAL_MODELS, ids=label_of)
FEW_EXAMPLES = settings(max_examples=8, deadline=None, derandomize=True)


# --- partial_fit, forget, merge -------------------------------------------------------------------


@MODELS
def test_integer_sample_weights_equal_repeated_rows(model, rng):
    X, y = draw_counts(rng)
    s = rng.integers(0, 4, len(y))
    repeated = clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert_same_model(clone(model).fit(X, y, sample_weight=s), repeated, X)


@MODELS
@FEW_EXAMPLES
@given(seed=st.integers(0, 10**6))
@COLLINEAR
def test_partial_fits_equal_one_fit(model, seed):
    rng = np.random.default_rng(seed)
    X, y = draw_counts(rng)
    cuts, order = np.sort(rng.integers(1, len(y), 5)), rng.permutation(len(y))
    X, y, s = X[order], y[order], rng.random(len(y))
    partial = clone(model)
    for rows in np.split(np.arange(len(y)), cuts):
        if len(rows):
            partial.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=s[rows])
    assert_same_model(partial, clone(model).fit(X, y, sample_weight=s), X)


@MODELS
@FEW_EXAMPLES
@given(seed=st.integers(0, 10**6))
def test_merge_and_forget_equal_fits_of_the_rows(model, seed):
    rng = np.random.default_rng(seed)
    X, y = draw_counts(rng)
    half = rng.permutation(len(y))[: len(y) // 2]
    rest = np.setdiff1d(np.arange(len(y)), half)
    if min(np.bincount(y[rows], minlength=3).min() for rows in (half, rest)) < 8:
        return
    whole, first, second = (
        clone(model).fit(X[rows], y[rows]) for rows in (slice(None), half, rest)
    )
    assert_same_model(first.merge(second), whole, X)
    assert_same_model(first, clone(model).fit(X[half], y[half]), X, tol=0)
    assert_same_model(whole.forget(X[rest], y[rest]), first, X, tol=1e-9)


WITHOUT_PRIORS = [m for m in INCREMENTAL_MODELS if m.get_params().get("priors") is None]


@pytest.mark.parametrize("model", WITHOUT_PRIORS, ids=label_of)
@COLLINEAR
def test_classes_may_appear_later(model, rng):
    X, y = draw_counts(rng)
    partial = clone(model)
    for rows in np.split(np.argsort(y, kind="stable"), 4):
        partial.partial_fit(X[rows], y[rows])
    assert_same_model(partial, clone(model).fit(X, y), X)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        GaussianNB(),
        MultinomialNB(),
        QuadraticDiscriminantAnalysis(),
    ],
    ids=label_of,
)
def test_class_without_rows_is_not_predicted(model, rng):
    X, y = draw_counts(rng)
    model = clone(model).partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert set(model.predict(X)) == {0, 1}
    assert np.isfinite(model.predict_proba(X)).all()


# --- cross-validation -----------------------------------------------------------------------------

SKLEARN_MODELS = [
    (LinearDiscriminantAnalysis(), discriminant_analysis.LinearDiscriminantAnalysis()),
    (
        QuadraticDiscriminantAnalysis(reg_param=0.1),
        discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    ),
    (GaussianNB(), naive_bayes.GaussianNB()),
    (MultinomialNB(), naive_bayes.MultinomialNB()),
    (BernoulliNB(binarize=2.0), naive_bayes.BernoulliNB(binarize=2.0)),
]


@COLLINEAR
@pytest.mark.parametrize(("ours", "theirs"), SKLEARN_MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("cv", [None, 7, KFold(4, shuffle=True, random_state=0)], ids=str)
def test_cross_validation_equals_that_of_sklearn(ours, theirs, cv):
    X, y = SETS["digits"]
    names = np.array([f"class {k}" for k in range(10)])[y]
    found, models = cross_val_from_moments(ours, X, names, cv=cv, return_estimator=True)
    np.testing.assert_allclose(found, cross_val_score(theirs, X, names, cv=cv), atol=1e-12)
    assert len(models) == len(found) and models[0].score(X, names) > 0.7
    options = {"cv": cv, "scoring": "neg_log_loss"}
    loss = cross_val_from_moments(ours, sparse.csr_array(X), names, **options)
    np.testing.assert_allclose(loss, cross_val_score(theirs, X, names, **options), rtol=1e-5)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_folds_equal_those_of_sklearn(seed):
    rng = np.random.default_rng(seed)
    n_folds, K = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    more = rng.integers(0, K, int(rng.integers(0, 90)))
    y = rng.permutation(np.r_[np.repeat(np.arange(K), n_folds), more])
    codes, n_parts, found = fold_codes(n_folds, y.astype(np.int32), K)
    assert n_parts == found == n_folds
    for f, (_, test) in enumerate(StratifiedKFold(n_folds).split(y, y)):
        assert np.array_equal(np.flatnonzero(codes == f), test)


def test_splits_that_are_not_folds_are_refused():
    with pytest.raises(ValueError, match="each row at most once"):
        cross_val_from_moments(GaussianNB(), *SETS["iris"], cv=ShuffleSplit(3))


def test_cross_validation_of_other_models_is_refused():
    with pytest.raises(ValueError, match="not a function of moments"):
        cross_val_from_moments(LogisticRegression(), *SETS["iris"])
