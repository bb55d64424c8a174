"""What all estimators promise: scikit-learn's checks, and failed calls that change nothing.

Online estimators, rankers and basis functions are checked in their own folders.
"""

import warnings

import numpy as np
import pytest
from helpers.closed_form_models import MODELS as CLOSED_FORM_MODELS
from sklearn import linear_model, naive_bayes
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import fastdisc
from fastdisc import (
    LogisticRegression,
    LogisticRegressionCV,
    OneVsRestClassifier,
    PairwiseClassifier,
    RejectOption,
)

# --- checks of scikit-learn -----------------------------------------------------------------------

# Some checks compare fits to 7 digits: solvers whose last step is long need a tighter tolerance.


@parametrize_with_checks(
    [
        LogisticRegression(),
        LogisticRegression(solver="gd", max_iter=20_000),
        LogisticRegression(l1_ratio=1.0),
        *(LogisticRegression(solver=name, tol=1e-9) for name in ("newton-cg", "lbfgs", "proximal")),
        LogisticRegressionCV(),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:sklearn")
def test_linear_models_pass_the_checks_of_sklearn(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        PairwiseClassifier(),
        OneVsRestClassifier(),
        PairwiseClassifier(linear_model.RidgeClassifier(), decision="all"),
        OneVsRestClassifier(naive_bayes.GaussianNB()),
        RejectOption(),
        RejectOption(rejection=0.2, cv=2),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_combined_classifiers_pass_the_checks_of_sklearn(estimator, check):
    check(estimator)


@parametrize_with_checks(CLOSED_FORM_MODELS)
@pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
def test_closed_form_models_pass_the_checks_of_sklearn(estimator, check):
    check(estimator)


# --- failed calls ---------------------------------------------------------------------------------

X = np.abs(np.random.default_rng(0).standard_normal((60, 4)))
Y = np.arange(60) % 2


def classifiers(method):
    """The names of the public classifiers with some method."""
    public = {name: getattr(fastdisc, name) for name in fastdisc.__all__}
    return [
        name
        for name, value in public.items()
        if isinstance(value, type)
        and issubclass(value, BaseEstimator)
        and is_classifier(value())
        and hasattr(value(), method)
    ]


def make(name):
    return getattr(fastdisc, name)()


def quietly(fit, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*data)


def test_public_classifiers_are_found():
    assert {"LogisticRegression", "GaussianNB", "Adaline"} <= set(classifiers("partial_fit"))
    assert {"PairwiseClassifier", "RejectOption"} <= set(classifiers("fit"))


@pytest.mark.parametrize("name", classifiers("fit"))
def test_failed_fit_changes_nothing(name):
    model = quietly(make(name).fit, X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="class"):
        model.fit(X[:, :3], np.zeros(60, int))
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("name", classifiers("partial_fit"))
def test_partial_fit_refuses_other_classes_and_changes_nothing(name):
    model = make(name)
    with pytest.raises(ValueError, match="classes must have at least 2 labels"):
        model.partial_fit(X, np.ones(60, int), classes=[1])
    quietly(model.partial_fit, X, Y, [0, 1])
    before = model.predict(X)
    with pytest.raises(ValueError, match="is not what it was before"):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="y is None"):
        model.partial_fit(X, None)
    np.testing.assert_array_equal(model.predict(X), before)
