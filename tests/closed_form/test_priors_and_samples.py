"""Closed-form models: changed priors, samples, and the conventions of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.closed_form_models import (
    GENERATIVE_MODELS,
    MODELS,
    assert_same_model,
    draw_counts,
    label_of,
)
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from fastdisc import (
    BernoulliNB,
    FisherDiscriminant,
    LeastSquaresClassifier,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

ALL_MODELS = pytest.mark.parametrize("model", MODELS, ids=label_of)
PROBABILISTIC = [model for model in MODELS if hasattr(model, "predict_proba")]


# --- priors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", PROBABILISTIC, ids=label_of)
def test_with_priors_is_bayes_rule(model, rng):
    X, y = draw_counts(rng)
    model = clone(model).fit(X, y)
    priors = np.array([0.5, 0.2, 0.3])
    changed = model.with_priors(priors)
    P = model.predict_proba(X) * priors / model.priors_
    P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(changed.predict_proba(X), P, atol=1e-10)
    np.testing.assert_allclose(changed.priors_, priors)
    with pytest.raises(ValueError, match="priors must be positive and add up to 1"):
        model.with_priors([0.5, 0.5, 0.5])


def test_least_squares_with_priors_is_a_weighted_fit(rng):
    X, y = draw_counts(rng)
    priors = np.array([0.5, 0.2, 0.3])
    weights = (priors * len(y) / np.bincount(y))[y]
    changed = LeastSquaresClassifier().fit(X, y).with_priors(priors)
    assert_same_model(changed, LeastSquaresClassifier().fit(X, y, weights), X)


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", GENERATIVE_MODELS, ids=label_of)
def test_samples_have_the_priors_and_means_of_the_classes(model, rng):
    X, y = draw_counts(rng, 600)
    if isinstance(model, BernoulliNB):
        X = (X > 3).astype(float)
    names = np.array(["a", "b", "c"])[y]
    model = clone(model).fit(X, names).with_priors([0.5, 0.25, 0.25])
    A, labels = model.sample(40_000, random_state=0)
    assert np.array_equal(A, model.sample(40_000, random_state=0)[0])
    Z = model.transform(X) if isinstance(model, FisherDiscriminant) else X
    assert A.shape == (40_000, Z.shape[1])
    for k, label in enumerate(model.classes_):
        drawn, seen = A[labels == label], Z[y == k]
        assert len(drawn) == pytest.approx(40_000 * model.priors_[k], rel=0.05)
        spread = seen.std(axis=0) + 0.1
        distance = (drawn.mean(axis=0) - seen.mean(axis=0)) / spread
        np.testing.assert_allclose(distance, 0, atol=0.1)
    if isinstance(model, (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis)):
        again = clone(model).set_params(priors=None).fit(A, labels)
        np.testing.assert_allclose(again.means_, model.means_, atol=0.1)


# --- conventions of scikit-learn ------------------------------------------------------------------


@ALL_MODELS
def test_frames_and_pickle(model, rng):
    X, y = draw_counts(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = clone(model).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    copy = pickle.loads(pickle.dumps(fitted))
    assert_same_model(copy, fitted, frame, tol=0)
    if hasattr(model, "partial_fit"):
        twice = clone(model).fit(pd.concat([frame, frame]), np.r_[y, y])
        assert_same_model(copy.partial_fit(frame, y), twice, frame, 1e-9)
    if hasattr(model, "transform"):
        fitted.set_output(transform="pandas")
        names = fitted.get_feature_names_out().tolist()
        assert fitted.transform(frame).columns.tolist() == names


@ALL_MODELS
def test_pipeline_and_search(model, rng):
    X, y = draw_counts(rng)
    assert make_pipeline(clone(model)).fit(X, y).score(X, y) > 1 / 3
    search = GridSearchCV(clone(model), {"n_threads": [1, 2]}, cv=3).fit(X, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"][1]


@ALL_MODELS
def test_models_do_not_depend_on_backend_or_threads(model, rng):
    X, y = draw_counts(rng, 4000)
    first = clone(model).set_params(n_threads=1).fit(X, y)
    for n in (2, 3):
        assert_same_model(clone(model).set_params(n_threads=n).fit(X, y), first, X, tol=0)
    assert_same_model(clone(model).set_params(backend="numpy").fit(X, y), first, X)
