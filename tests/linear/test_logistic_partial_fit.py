"""LogisticRegression.partial_fit, and the solver "sgd"."""

import pickle

import numpy as np
import pytest
from helpers.data_sets import draw_logistic, weights_of
from scipy import sparse

from fastdisc import LogisticRegression


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_partial_fits_approach_the_optimum(K, form):
    X, y, _ = draw_logistic(30_000, K=K)
    model = LogisticRegression()
    for rows in np.array_split(np.arange(len(y)), 30):
        model.partial_fit(form(X[rows]), y[rows], classes=np.arange(K))
    best = LogisticRegression().fit(X, y)
    assert model.score(X, y) > best.score(X, y) - 0.01
    assert model.n_iter_[0] == 30


def test_first_call_needs_classes():
    X, y, _ = draw_logistic()
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        LogisticRegression().partial_fit(X, y)


def test_refused_rows_change_nothing():
    X, y, _ = draw_logistic()
    model = LogisticRegression().partial_fit(X, y, classes=[0, 1, 2])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="row 2"):
        model.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:3, :2], y[:3])
    assert np.array_equal(model.coef_, before)
    assert not np.array_equal(model.partial_fit(X, y).coef_, before)


def test_priors_are_frequencies_of_all_calls():
    """A class may be absent from the first rows."""
    X, y, _ = draw_logistic()
    first = np.minimum(y[:50], 1)
    model = LogisticRegression().partial_fit(X[:50], first, classes=[0, 1, 2])
    assert model.coef_.shape == (3, 4)
    model.partial_fit(X, y)
    shares = np.bincount(np.concatenate([first, y])) / (50 + len(y))
    np.testing.assert_allclose(model.priors_, shares)
    shift = model.with_priors([0.2, 0.3, 0.5]).intercept_ - model.intercept_
    np.testing.assert_allclose(shift, np.log([0.2, 0.3, 0.5]) - np.log(shares))


def test_partial_fit_continues_from_fit():
    X, y, _ = draw_logistic(5000)
    model = LogisticRegression().fit(X, y)
    fitted = weights_of(model)
    model.partial_fit(X[:200], y[:200])
    assert 0 < np.abs(weights_of(model) - fitted).max() < 0.5
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.02
    model.fit(X, y)
    assert np.array_equal(weights_of(model), fitted)


@pytest.mark.filterwarnings("ignore:solver 'sgd' stopped")
def test_batches_without_weight_are_skipped():
    X, y, _ = draw_logistic()
    weight = np.zeros(len(y))
    weight[:100] = 1.0
    partial = LogisticRegression().partial_fit(X, y, [0, 1, 2], weight)
    for model in (partial, LogisticRegression(solver="sgd").fit(X, y, weight)):
        assert np.isfinite(weights_of(model)).all() and model.coef_.any()


def test_pickled_model_continues_alike():
    X, y, _ = draw_logistic()
    first = LogisticRegression().partial_fit(X, y, classes=[0, 1, 2])
    copy = pickle.loads(pickle.dumps(first)).partial_fit(X, y)
    assert np.array_equal(weights_of(copy), weights_of(first.partial_fit(X, y)))
