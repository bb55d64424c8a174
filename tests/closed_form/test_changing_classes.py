"""Closed-form models whose classes and rows are added, removed and merged."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from fastdisc import (
    BernoulliNB,
    CollinearWarning,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LinearDiscriminantAnalysis,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)

CENTRES = np.repeat([[0, 0], [100, 0], [0, 100]], 30, axis=0)
FAR = np.random.default_rng(0).standard_normal((90, 2)) + CENTRES
FAR_Y = np.repeat([0, 1, 2], 30)
ALL = [
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    FisherDiscriminant,
    LeastSquaresClassifier,
    GaussianNB,
]


@pytest.mark.parametrize("model", ALL)
def test_class_without_rows_is_never_predicted(model):
    seen = FAR_Y < 2
    np.testing.assert_array_equal(cross_val_from_moments(model(), FAR, FAR_Y, cv=KFold(3)), 0)
    forgot = model().fit(FAR, FAR_Y).forget(FAR[~seen], FAR_Y[~seen])
    early = model().partial_fit(FAR[seen], FAR_Y[seen], classes=[0, 1, 2])
    for other in (forgot, early):
        assert not (other.predict(FAR) == 2).any()


@pytest.mark.parametrize("present", [0, 1])
def test_fisher_targets_predict_the_only_class_seen(present):
    model = LeastSquaresClassifier(targets="fisher").partial_fit(
        FAR[:30], np.full(30, present), classes=[0, 1]
    )
    assert (model.predict(FAR) == present).all()


def test_moments_of_models_with_other_parameters_are_not_merged():
    one = LinearDiscriminantAnalysis(solver="lsqr")
    other = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.2, 0.3, 0.5])
    one.fit(FAR, FAR_Y)
    other.fit(FAR, FAR_Y)
    with pytest.raises(ValueError, match="other parameters"):
        one.merge(other)
    with pytest.raises(ValueError, match="other parameters"):
        BernoulliNB(binarize=1.0).fit(FAR, FAR_Y).merge(BernoulliNB(binarize=3.0).fit(FAR, FAR_Y))
    one.set_params(shrinkage="auto")
    for method in (one.partial_fit, one.forget):
        with pytest.raises(ValueError, match="other parameters"):
            method(FAR, FAR_Y)


@pytest.mark.parametrize("model", [*ALL, PoissonNB])
def test_forget_refuses_rows_that_were_not_learnt(model):
    X = np.abs(FAR)
    with pytest.raises(ValueError, match="cannot all have been learnt from"):
        model().fit(X, FAR_Y).forget(X[:20] * 50 + 1, FAR_Y[:20])


@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis, LeastSquaresClassifier, PoissonNB])
def test_predict_names_the_only_class_seen(model):
    with pytest.raises(ValueError, match="only rows of class 0"):
        model().partial_fit(np.abs(FAR[:30]), FAR_Y[:30]).predict(FAR)


def test_partial_fit_refuses_labels_of_another_type():
    with pytest.raises(ValueError, match="names in one part"):
        GaussianNB().fit(FAR, FAR_Y).partial_fit(FAR, np.array(list("abc"))[FAR_Y])


def test_fisher_without_variation_within_classes_warns():
    X, y = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0), np.repeat([0, 1], 5)
    with pytest.warns(CollinearWarning):
        np.testing.assert_array_equal(FisherDiscriminant().fit(X, y).predict(X), y)
    with pytest.warns(CollinearWarning):
        np.testing.assert_allclose(
            FisherDiscriminant().fit(np.ones((10, 3)), y).predict_proba(np.ones((1, 3))), 0.5
        )
