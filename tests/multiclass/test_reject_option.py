"""RejectOption: thresholds by definition, by cost and by rates; the error-reject curve."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.data_sets import SETS, STANDARDIZED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fastdisc import LogisticRegression, PairwiseClassifier, RejectOption
from fastdisc.multiclass.reject import ErrorRejectCurve

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def blobs():
    """Three classes that overlap: 600 training rows, and 6,000 others."""
    rng = np.random.default_rng(0)
    y = np.arange(6600) % 3
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.6]])[y] + rng.standard_normal((6600, 2))
    return X[:600], y[:600], X[600:], y[600:]


def error_rate(model, X, y, accepted):
    return (model.predict(X) != y)[accepted].mean()


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), RandomForestClassifier(20, random_state=0), PairwiseClassifier()],
)
def test_rows_of_low_posteriors_are_rejected(blobs, estimator):
    X, y, others, _ = blobs
    model = RejectOption(estimator, threshold=0.7, reject_label=-1).fit(X, y)
    P = clone(estimator).fit(X, y).predict_proba(others)
    low = P.max(axis=1) < 0.7
    assert low.any() and not low.all() and np.array_equal(model.reject_mask(others), low)
    assert np.array_equal(model.predict(others), np.where(low, -1, P.argmax(axis=1)))
    nearest = RejectOption(estimator, threshold=0.7).fit(X, y)
    assert np.array_equal(nearest.predict(others), P.argmax(axis=1))
    assert np.array_equal(nearest.reject_mask(others), low)


@pytest.mark.parametrize("cost", [0.1, 0.25, 0.4])
def test_threshold_of_a_cost_has_the_least_loss(blobs, cost):
    """Chow's threshold 1 - cost, for correct posteriors; that of `tune`, on its rows."""
    X, y, others, truth = blobs

    def loss(model):
        mask = model.reject_mask(others)
        return cost * mask.mean() + ((model.predict(others) != truth) & ~mask).mean()

    model = RejectOption(cost=cost).fit(X, y)
    assert model.threshold_ == 1 - cost
    curve = model.error_reject_curve(others, truth)
    least = (curve.error * (1 - curve.rejection) + cost * curve.rejection).min()
    assert loss(model) <= least + 0.005
    tuned = RejectOption(cost=cost).fit(X, y).tune(others, truth, cost=cost)
    assert loss(tuned) == pytest.approx(least, abs=1e-12)


RATES = [{"error": 0.1}, {"rejection": 0.15}, {"error": 0.5}, {"rejection": 0.0}]


@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("tuned", [False, True])
def test_given_rates_are_met(blobs, rates, tuned):
    X, y, others, truth = blobs
    if tuned:
        model, slack = RejectOption().fit(X, y).tune(others, truth, **rates), 1e-12
    else:
        model, slack = RejectOption(**rates).fit(X, y), 0.05  # of 600 rows a rate is uncertain
    mask = model.reject_mask(others)
    if "error" in rates:
        assert error_rate(model, others, truth, ~mask) <= rates["error"] + slack
        assert rates["error"] == 0.1 or not mask.any()  # an error of 0.5 needs no rejection
    else:
        assert mask.mean() <= rates["rejection"] + slack
        assert abs(mask.mean() - rates["rejection"]) <= 0.03
    assert isinstance(model.curve_, ErrorRejectCurve)


# --- the curve ------------------------------------------------------------------------------------


def test_more_rejections_leave_fewer_errors(blobs):
    X, y, others, truth = blobs
    curve = RejectOption().fit(X, y).error_reject_curve(others, truth)
    assert curve.thresholds[0] == 0 and curve.rejection[0] == 0
    assert (np.diff(curve.rejection) > 0).all()
    plain = LogisticRegression().fit(X, y)
    assert curve.error[0] == pytest.approx((plain.predict(others) != truth).mean())
    shares = (0.0, 0.2, 0.4, 0.6, 0.8)
    errors = [curve.error[np.searchsorted(curve.rejection, share)] for share in shares]
    assert (np.diff(errors) < 0).all()
    constant = np.full(len(curve.error), curve.error[0])
    assert 0 < curve.area < ErrorRejectCurve(curve.thresholds, curve.rejection, constant).area


@PROFILE
@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), digits=st.sampled_from([1, 6]))
def test_curve_equals_its_definition(seed, n, digits):
    rng = np.random.default_rng(seed)
    P = np.round(rng.dirichlet(np.ones(3), n), digits)
    r, s = rng.integers(0, 3, n), rng.integers(0, 3, n).astype(float)
    s[0] += 1
    curve = ErrorRejectCurve.from_posteriors(P, r, s)
    assert len(set(curve.thresholds)) == len(curve.thresholds)
    for threshold, rejection, error in zip(*curve, strict=True):
        rejected = [t for t in range(n) if P[t].max() < threshold]
        accepted = [t for t in range(n) if P[t].max() >= threshold]
        wrong = sum(s[t] for t in accepted if P[t].argmax() != r[t])
        assert rejection == pytest.approx(sum(s[t] for t in rejected) / s.sum())
        assert error == pytest.approx(wrong / sum(s[t] for t in accepted))


def test_integer_sample_weights_equal_repeated_rows(blobs):
    X, y, *_ = blobs
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    model = RejectOption().fit(X, y)
    weighted = model.error_reject_curve(X, y, counts)
    repeated = model.error_reject_curve(X[rows], y[rows])
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b)


def test_rejected_shares_allow_for_rounding():
    weight = np.full(10, 0.1)
    rejection = np.append(0.0, np.cumsum(weight))[:-1] / weight.sum()
    curve = ErrorRejectCurve(np.linspace(0, 0.9, 10), rejection, np.linspace(0.3, 0.0, 10))
    assert curve.at_rejection(0.3) == pytest.approx(0.3)
    assert curve.at_rejection(0.7) == pytest.approx(0.7)


# --- conventions of scikit-learn ------------------------------------------------------------------


def test_frames_names_folds_and_pickle(blobs):
    X, y, others, _ = blobs
    frame, names = pd.DataFrame(X, columns=["a", "b"]), np.array(["x", "y", "z"])[y]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    options = {"rejection": 0.2, "reject_label": "?"}
    model = RejectOption(cv=cv, **options).fit(frame, names)
    assert model.predict(pd.DataFrame(others, columns=["a", "b"])).dtype.kind == "U"
    assert (pickle.loads(pickle.dumps(model)).predict(frame) == model.predict(frame)).all()
    listed = RejectOption(cv=list(cv.split(X, y)), **options).fit(frame, names)
    assert listed.threshold_ == model.threshold_


def test_backend_and_threads_are_set_on_the_estimator(blobs):
    X, y, *_ = blobs
    assert RejectOption(backend="numpy", n_threads=1).fit(X, y).estimator_.backend == "numpy"


def test_decision_function_is_available_if_the_estimator_has_one(blobs):
    X, y, *_ = blobs
    assert not hasattr(RejectOption(GaussianNB()).fit(X, y), "decision_function")
    assert hasattr(RejectOption(), "decision_function")


def test_sparse_rows_are_rejected_like_dense_rows(blobs):
    X, y, *_ = blobs
    sparse_fit, dense_fit = RejectOption().fit(sparse.csr_array(X), y), RejectOption().fit(X, y)
    assert np.array_equal(sparse_fit.reject_mask(X), dense_fit.reject_mask(X))


def test_pipeline_and_search():
    pipe = make_pipeline(StandardScaler(), RejectOption(LogisticRegression(), rejection=0.1))
    grid = {"rejectoption__estimator__C": [0.01, 1.0]}
    assert GridSearchCV(pipe, grid, cv=3).fit(*SETS["breast_cancer"]).best_score_ > 0.95


def test_calibrated_estimator():
    X, y = STANDARDIZED["breast_cancer"]
    model = RejectOption(CalibratedClassifierCV(LinearSVC(dual=False)), cost=0.05).fit(X, y)
    assert 0 < model.reject_mask(X).mean() < 0.6


# --- invalid input --------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.arange(60) % 2
LINE = np.linspace(-3, 3, 60)[:, None] * [1, 0, 0]
# The rows of the largest posteriors are at both ends, and misclassified.
ENDS = ((LINE[:, 0] > 0) != (np.abs(LINE[:, 0]) > 2.5)).astype(int)
INVALID = {
    "two rules": (
        {"threshold": 0.5, "cost": 0.1},
        "only one of .* may be given, got threshold and cost",
    ),
    "large threshold": ({"threshold": 1.5}, "threshold must be a number from 0 to 1, got 1.5"),
    "negative cost": ({"cost": -0.1}, "cost must be a number >= 0"),
    "error a word": ({"error": "low"}, "error must be a number"),
    "unattainable error": ({"error": 0.0, "X": LINE, "y": ENDS}, "no threshold brings"),
    "no posteriors": ({"estimator": LinearSVC()}, "must have predict_proba"),
    "class instead of estimator": ({"estimator": LogisticRegression}, "must have predict_proba"),
    "one class": ({"y": np.zeros(60, int)}, "only one class"),
    "short y": ({"y": Y[:9]}, "X has 60 rows, y has 9"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "0 sample"),
    "NaN": (
        {"X": np.where(np.arange(60)[:, None] == 7, np.nan, X)},
        "NaN, first in row 7, column 0",
    ),
    "negative weight": ({"sample_weight": -np.ones(60)}, "in row 0 it is -1"),
    "weights of one class": ({"sample_weight": (Y == 0).astype(float)}, "only one class: 0"),
    "unknown backend": ({"backend": "fortran"}, "backend must be"),
    "no fold": ({"error": 0.1, "cv": []}, "cv has no fold"),
}


@pytest.mark.parametrize("what", INVALID)
def test_error_names_what_is_invalid_and_changes_nothing(what):
    options, message = dict(INVALID[what][0]), INVALID[what][1]
    names = [name for name in ("X", "y", "sample_weight") if name in options]
    data = {"X": X, "y": Y} | {name: options.pop(name) for name in names}
    model = RejectOption().fit(X, Y).set_params(**options)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert vars(model) == before


def test_tune_needs_a_goal_and_known_labels():
    model = RejectOption().fit(X, Y)
    with pytest.raises(ValueError, match="needs one of cost, error and rejection"):
        model.tune(X, Y)
    with pytest.raises(ValueError, match="not among the classes: 5 in row 0"):
        model.tune(X, Y + 5, error=0.1)
