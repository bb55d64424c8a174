"""The reject option: thresholds by definition, by cost, by wanted rates; the curve against a loop; bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import LogisticRegression, PairwiseClassifier, RejectOption
from fastdisc.reject import ErrorRejectCurve, curve

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


@parametrize_with_checks([RejectOption(), RejectOption(rejection=0.2, cv=2)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    """Three classes that overlap: 600 rows to learn from, and 6,000 others."""
    rng = np.random.default_rng(0)
    y = np.arange(6600) % 3
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.6]])[y] + rng.standard_normal((6600, 2))
    return X[:600], y[:600], X[600:], y[600:]


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(20, random_state=0), PairwiseClassifier()])
def test_low_posteriors_are_rejected(blobs, estimator):
    X, y, others, _ = blobs
    model = RejectOption(estimator, threshold=0.7, reject_label=-1).fit(X, y)
    P = clone(estimator).fit(X, y).predict_proba(others)
    low = P.max(axis=1) < 0.7
    assert low.any() and not low.all() and np.array_equal(model.reject_mask(others), low)
    assert np.array_equal(model.predict(others), np.where(low, -1, P.argmax(axis=1)))
    quiet = RejectOption(estimator, threshold=0.7).fit(X, y)
    assert np.array_equal(quiet.predict(others), P.argmax(axis=1)) and np.array_equal(quiet.reject_mask(others), low)


def test_chow(blobs):
    """With posteriors that are right no threshold has a smaller loss than 1 - cost, but for chance."""
    X, y, others, truth = blobs
    for cost in (0.1, 0.25, 0.4):
        model = RejectOption(cost=cost).fit(X, y)
        assert model.threshold_ == 1 - cost
        found = model.error_reject_curve(others, truth)
        loss = found.error * (1 - found.rejection) + cost * found.rejection
        mask = model.reject_mask(others)
        own = cost * mask.mean() + ((model.predict(others) != truth) & ~mask).mean()
        assert own <= loss.min() + 0.005
        tuned = clone(model).fit(X, y).tune(others, truth, cost=cost)
        mask = tuned.reject_mask(others)
        assert cost * mask.mean() + ((tuned.predict(others) != truth) & ~mask).mean() == pytest.approx(loss.min(), abs=1e-12)


@pytest.mark.parametrize("wanted", [{"error": 0.1}, {"rejection": 0.15}, {"error": 0.5}, {"rejection": 0.0}])
def test_wanted_rates(blobs, wanted):
    X, y, others, truth = blobs
    held = RejectOption(**wanted).fit(X, y)
    tuned = RejectOption().fit(X, y).tune(others, truth, **wanted)
    for model, slack in ((held, 0.05), (tuned, 1e-12)):  # 600 rows know a rate to some 2%
        mask = model.reject_mask(others)
        wrong = (model.predict(others) != truth)[~mask].mean()
        if "error" in wanted:
            assert wrong <= wanted["error"] + slack
            assert wanted["error"] == 0.1 or not mask.any()  # no more than it takes
        else:
            assert mask.mean() <= wanted["rejection"] + slack
            assert abs(mask.mean() - wanted["rejection"]) <= 0.03
    assert isinstance(held.curve_, ErrorRejectCurve)


def test_rejecting_more_leaves_fewer_errors(blobs):
    X, y, others, truth = blobs
    found = RejectOption().fit(X, y).error_reject_curve(others, truth)
    assert found.thresholds[0] == 0 and found.rejection[0] == 0 and (np.diff(found.rejection) > 0).all()
    assert found.error[0] == pytest.approx((LogisticRegression().fit(X, y).predict(others) != truth).mean())
    at = [found.error[np.searchsorted(found.rejection, share)] for share in (0.0, 0.2, 0.4, 0.6, 0.8)]
    assert (np.diff(at) < 0).all()
    random = ErrorRejectCurve(found.thresholds, found.rejection, np.full(len(found.error), found.error[0]))
    assert 0 < found.area < random.area


@PROFILE
@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), digits=st.sampled_from([1, 6]))
def test_the_curve_is_its_definition(seed, n, digits):
    rng = np.random.default_rng(seed)
    P = np.round(rng.dirichlet(np.ones(3), n), digits)
    r, s = rng.integers(0, 3, n), rng.integers(0, 3, n).astype(float)
    s[0] += 1
    found = curve(P, r, s)
    assert len(set(found.thresholds)) == len(found.thresholds)
    for threshold, rejection, error in zip(*found, strict=True):
        below = [t for t in range(n) if P[t].max() < threshold]
        kept = [t for t in range(n) if P[t].max() >= threshold]
        assert rejection == pytest.approx(sum(s[t] for t in below) / s.sum())
        assert error == pytest.approx(sum(s[t] for t in kept if P[t].argmax() != r[t]) / sum(s[t] for t in kept))


def test_weights_are_repetition(blobs):
    X, y, *_ = blobs
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    model = RejectOption().fit(X, y)
    weighted, repeated = model.error_reject_curve(X, y, counts), model.error_reject_curve(X[rows], y[rows])
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b)


def test_folds_frames_names_pickle(blobs):
    X, y, others, _ = blobs
    frame, names = pd.DataFrame(X, columns=["a", "b"]), np.array(["x", "y", "z"])[y]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model = RejectOption(rejection=0.2, reject_label="?", cv=cv).fit(frame, names)
    assert model.predict(pd.DataFrame(others, columns=["a", "b"])).dtype.kind == "U"
    assert (pickle.loads(pickle.dumps(model)).predict(frame) == model.predict(frame)).all()
    same = RejectOption(rejection=0.2, reject_label="?", cv=list(cv.split(X, y))).fit(frame, names)
    assert same.threshold_ == model.threshold_
    assert RejectOption(backend="numpy", n_threads=1).fit(X, y).estimator_.backend == "numpy"
    S = RejectOption(GaussianNB()).fit(X, y)
    assert not hasattr(S, "decision_function") and hasattr(RejectOption(), "decision_function")
    assert np.array_equal(RejectOption().fit(sparse.csr_array(X), y).reject_mask(X), RejectOption().fit(X, y).reject_mask(X))


def test_pipelines_and_search():
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), RejectOption(LogisticRegression(), rejection=0.1))
    search = GridSearchCV(pipe, {"rejectoption__estimator__C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    calibrated = RejectOption(CalibratedClassifierCV(LinearSVC(dual=False)), cost=0.05).fit(StandardScaler().fit_transform(X), y)
    assert 0 < calibrated.reject_mask(StandardScaler().fit_transform(X)).mean() < 0.6


X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.arange(60) % 2
LINE = np.linspace(-3, 3, 60)[:, None] * [1, 0, 0]
ENDS = ((LINE[:, 0] > 0) != (np.abs(LINE[:, 0]) > 2.5)).astype(int)  # the surest rows are at the ends: they are wrong
BAD = {
    "two rules": (
        {"threshold": 0.5, "cost": 0.1},
        "only one of .* may be given, got threshold and cost",
    ),
    "threshold too high": ({"threshold": 1.5}, "threshold must be a number from 0 to 1, got 1.5"),
    "cost negative": ({"cost": -0.1}, "cost must be a number >= 0"),
    "error a word": ({"error": "low"}, "error must be a number"),
    "an error out of reach": ({"error": 0.0, "X": LINE, "y": ENDS}, "no threshold brings"),
    "no posteriors": ({"estimator": LinearSVC()}, "must have predict_proba"),
    "a class": ({"estimator": LogisticRegression}, "must have predict_proba"),
    "one class": ({"y": np.zeros(60, int)}, "only one class"),
    "short y": ({"y": Y[:9]}, "X has 60 rows, y has 9"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "0 sample"),
    "NaN": ({"X": np.where(np.arange(60)[:, None] == 7, np.nan, X)}, "NaN, first in row 7, column 0"),
    "negative weight": ({"sample_weight": -np.ones(60)}, "row 0 it is -1"),
    "weights of one class": ({"sample_weight": (Y == 0).astype(float)}, "only one class: 0"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(what):
    given, message = BAD[what]
    given = dict(given)
    data = {"X": X, "y": Y} | {key: given.pop(key) for key in ("X", "y", "sample_weight") if key in given}
    model = RejectOption().fit(X, Y)
    before = vars(model.set_params(**given)).copy()
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert vars(model) == before


def test_bad_tuning():
    model = RejectOption().fit(X, Y)
    with pytest.raises(ValueError, match="needs one of cost, error and rejection"):
        model.tune(X, Y)
    with pytest.raises(ValueError, match="not among the classes"):
        model.tune(X, Y + 5, error=0.1)
