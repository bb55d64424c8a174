"""PairwiseClassifier and OneVsRestClassifier as estimators: against scikit-learn, invalid input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.data_sets import SETS, with_bad_cell
from scipy import sparse
from sklearn import linear_model, multiclass, naive_bayes, svm, tree
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastdisc import LogisticRegression, OneVsRestClassifier, PairwiseClassifier, Perceptron

X, Y = SETS["iris"]
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TIGHT = {"tol": 1e-10}
KINDS = pytest.mark.parametrize("kind", [PairwiseClassifier, OneVsRestClassifier])

# --- against scikit-learn -------------------------------------------------------------------------

SCALED_RIDGE = make_pipeline(StandardScaler(), linear_model.RidgeClassifier())
ESTIMATORS = [
    linear_model.LogisticRegression(),
    linear_model.Perceptron(shuffle=False, max_iter=5, tol=None),  # the order of rows matters
    svm.LinearSVC(),
    naive_bayes.GaussianNB(),  # has no decision_function
    tree.DecisionTreeClassifier(random_state=0),
    SCALED_RIDGE,
]
FORMS = {
    "array": X,
    "csr": sparse.csr_array(X),
    "frame": pd.DataFrame(X, columns=list("abcd")),
}


def assert_same_scores(ours, theirs, X):
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", FORMS)
def test_pairs_equal_one_versus_one_of_sklearn(estimator, form):
    if form == "csr" and (estimator is SCALED_RIDGE or type(estimator) is naive_bayes.GaussianNB):
        pytest.skip("the estimator takes no sparse matrix")
    A = FORMS[form]
    theirs = multiclass.OneVsOneClassifier(estimator).fit(A, NAMES)
    ours = PairwiseClassifier(estimator, n_jobs=2).fit(A, NAMES)
    assert ours.n_features_in_ == 4 and ours.n_classes_ == 3
    assert np.array_equal(ours.classes_, theirs.classes_)
    assert [type(m) for m in ours.estimators_] == [type(m) for m in theirs.estimators_]
    assert np.array_equal(ours.predict(A), theirs.predict(A))
    if hasattr(estimator, "decision_function"):
        assert_same_scores(ours, theirs, A)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("K", [2, 3])
def test_classes_against_the_rest_equal_one_versus_rest_of_sklearn(estimator, K):
    A, y = X[Y < K], NAMES[Y < K]
    theirs = multiclass.OneVsRestClassifier(estimator).fit(A, y)
    ours = OneVsRestClassifier(estimator).fit(A, y)
    assert len(ours.estimators_) == len(theirs.estimators_) and not ours.multilabel_
    assert np.array_equal(ours.predict(A), theirs.predict(A))
    assert hasattr(ours, "predict_proba") == hasattr(theirs, "predict_proba")
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(A), rtol=1e-9)
    if hasattr(estimator, "decision_function"):
        assert_same_scores(ours, theirs, A)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_overlapping_classes_equal_one_versus_rest_of_sklearn(form):
    A, labels = make_multilabel_classification(200, 6, n_classes=4, random_state=0)
    estimator = linear_model.LogisticRegression(tol=1e-10, max_iter=1000)
    theirs = multiclass.OneVsRestClassifier(estimator).fit(A, labels)
    for ours in (OneVsRestClassifier(estimator), OneVsRestClassifier(LogisticRegression(**TIGHT))):
        ours.fit(A, form(labels))
        assert ours.multilabel_ and np.array_equal(ours.classes_, np.arange(4))
        assert np.array_equal(ours.predict(A), theirs.predict(A))
        assert not ours.reject_mask(A).any()
        np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(A), atol=1e-4)


# --- special cases --------------------------------------------------------------------------------


def test_labels_of_all_rows_and_of_no_row():
    labels = np.column_stack([np.ones(150, int), np.zeros(150, int), Y > 0])
    model = OneVsRestClassifier().fit(X, labels)
    assert np.array_equal(model.predict(X), labels)
    assert np.array_equal(model.predict_proba(X)[:, :2], labels[:, :2])
    assert not hasattr(model, "coef_")


@KINDS
def test_integer_sample_weights_equal_repeated_rows(kind):
    counts = np.random.default_rng(0).integers(1, 4, 150)
    rows = np.repeat(np.arange(150), counts)
    weighted = kind(LogisticRegression(**TIGHT)).fit(X, Y, sample_weight=counts)
    repeated = kind(LogisticRegression(**TIGHT)).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


@KINDS
def test_two_classes_have_one_discriminant(kind):
    A, y = X[50:], NAMES[50:]
    single = LogisticRegression(**TIGHT).fit(A, y)
    model = kind(LogisticRegression(**TIGHT)).fit(A, y)
    expected = single.decision_function(A)
    np.testing.assert_allclose(model.decision_function(A), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(A), single.predict_proba(A), rtol=1e-5)
    assert np.array_equal(model.predict(A), single.predict(A))
    assert not model.reject_mask(A).any()


# --- conventions of scikit-learn ------------------------------------------------------------------


@KINDS
def test_pipeline_search_pickle_and_frame(kind):
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), kind(LogisticRegression()))
    step = kind.__name__.lower()
    grid = {f"{step}__estimator__C": [0.1, 1.0], f"{step}__decision": [kind().decision]}
    assert GridSearchCV(pipeline, grid).fit(frame, NAMES).best_score_ > 0.9
    fitted = kind().fit(frame, NAMES)
    assert np.array_equal(fitted.feature_names_in_, list("abcd"))
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict(frame), fitted.predict(frame))
    for model in fitted.estimators_:
        assert isinstance(model, LogisticRegression) and model.converged_


def test_rows_of_text_are_passed_to_a_pipeline():
    texts = ["red apple", "green pear", "blue plum"]
    texts += ["red apples here", "a green pear", "one blue plum"]
    texts, y = texts * 3, [0, 1, 2] * 6
    model = PairwiseClassifier(make_pipeline(CountVectorizer(), LogisticRegression()))
    assert (model.fit(texts, y).predict(texts) == y).all()


@KINDS
def test_backend_and_threads_are_set_on_estimators_that_have_them(kind):
    found = kind(Perceptron(), backend="numpy", n_threads=1).fit(X, Y).estimators_
    assert {(each.backend, each.n_threads) for each in found} == {("numpy", 1)}
    assert len(kind(naive_bayes.GaussianNB(), n_threads=1).fit(X, Y).estimators_) == 3


# --- invalid input --------------------------------------------------------------------------------

INVALID = {
    "NaN in X": ({"X": with_bad_cell(X, np.nan)}, "NaN, first in row 7, column 1"),
    "infinity in X": ({"X": with_bad_cell(X, np.inf)}, "infinity, first in row 7, column 1"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "0 sample|only one class|zero-size"),
    "short y": ({"y": Y[:100]}, "X has 150 rows, y has 100"),
    "one class": ({"y": np.zeros(150, int)}, "only one class: .*0"),
    "continuous y": ({"y": X[:, 0]}, "Unknown label type: continuous"),
    "short weights": ({"sample_weight": np.ones(9)}, r"\(9,\), expected \(150,\)"),
    "negative weight": (
        {"sample_weight": np.where(np.arange(150) == 9, -1.0, 1)},
        "in row 9 it is -1",
    ),
    "class instead of estimator": ({"estimator": Perceptron}, "an estimator with fit"),
    "no estimator": ({"estimator": 3}, "estimator must be an estimator with fit, got 3"),
    "estimator without weights": (
        {"estimator": make_pipeline(LogisticRegression()), "sample_weight": np.ones(150)},
        "the fit of Pipeline takes no sample_weight",
    ),
    "unknown decision": ({"decision": "dice"}, "decision must be one of .*got 'dice'"),
    "negative verbose": ({"verbose": -1}, "verbose must be"),
    "unknown backend": ({"backend": "fortran"}, "backend must be"),
    "zero threads": ({"n_threads": 0}, "n_threads must be"),
    "parameter of the estimator": (
        {"estimator": LogisticRegression(C=-1)},
        "C must be a number > 0",
    ),
}


@KINDS
@pytest.mark.parametrize("what", INVALID)
def test_error_names_what_is_invalid_and_changes_nothing(kind, what):
    options, message = dict(INVALID[what][0]), INVALID[what][1]
    names = [name for name in ("X", "y", "sample_weight") if name in options]
    data = {"X": X, "y": Y} | {name: options.pop(name) for name in names}
    model = kind().fit(X, Y).set_params(**options)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert vars(model) == before


def test_unknown_coupling_is_refused():
    with pytest.raises(ValueError, match="coupling must be one of 'quadratic', 'likelihood'"):
        PairwiseClassifier(coupling="tight").fit(X, Y)


def test_indicator_that_is_not_zero_or_one_is_refused():
    with pytest.raises(ValueError, match="row 0, column 1 of y it is 2"):
        OneVsRestClassifier().fit(X, np.tile([0, 2], (150, 1)))


@KINDS
def test_invalid_rows_to_predict_are_refused(kind):
    model = kind().fit(X, Y)
    with pytest.raises(ValueError, match="NaN, first in row 7, column 1"):
        model.predict(with_bad_cell(X, np.nan))
    with pytest.raises(ValueError, match="4 features"):
        model.reject_mask(X[:, :2])
