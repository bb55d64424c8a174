"""LogisticRegressionCV: the scores, choices and weights of scikit-learn's estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.data_sets import SETS, STANDARDIZED
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegressionCV as SklearnLogisticRegressionCV
from sklearn.metrics import f1_score, log_loss, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit

from fastdisc import LogisticRegression, LogisticRegressionCV

CS = [0.01, 1.0, 0.1, 10.0]
NAMES = pytest.mark.parametrize("name", ["iris", "breast_cancer"])


def sklearn_fit(X, y, weight=None, **options):
    defaults = {"Cs": CS, "l1_ratios": (0.0,), "scoring": "accuracy", "solver": "newton-cholesky"}
    defaults |= {"tol": 1e-10, "max_iter": 1000, "use_legacy_attributes": False}
    return SklearnLogisticRegressionCV(**defaults | options).fit(X, y, sample_weight=weight)


def assert_same_results(ours, theirs, tol=1e-5):
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=tol)
    assert (ours.C_, ours.l1_ratio_) == (theirs.C_, theirs.l1_ratio_)
    assert np.array_equal(ours.Cs_, theirs.Cs_)
    assert np.array_equal(ours.l1_ratios_, theirs.l1_ratios_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=tol, atol=tol)
    assert ours.n_iter_.shape == theirs.n_iter_.shape


def stratified_folds(y, n):
    """The folds that cv=n means."""
    return list(StratifiedKFold(n).split(np.zeros(len(y)), y))


# --- against scikit-learn -------------------------------------------------------------------------


@NAMES
def test_results_equal_those_of_sklearn(name):
    X, y = STANDARDIZED[name]
    ours, theirs = LogisticRegressionCV(Cs=CS, tol=1e-9).fit(X, y), sklearn_fit(X, y)
    assert_same_results(ours, theirs)
    np.testing.assert_allclose(ours.coefs_paths_, theirs.coefs_paths_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@NAMES
def test_number_of_strengths(name):
    X, y = STANDARDIZED[name]
    ours = LogisticRegressionCV(Cs=3, tol=1e-9, cv=3).fit(X, y)
    assert_same_results(ours, sklearn_fit(X, y, Cs=3, cv=3), tol=1e-4)


@NAMES
@pytest.mark.parametrize(
    "options", [{"class_weight": "balanced"}, {"fit_intercept": False}], ids=str
)
def test_options_apply_to_all_fits(name, options):
    X, y = STANDARDIZED[name]
    ours = LogisticRegressionCV(Cs=CS, tol=1e-9, cv=3, **options).fit(X, y)
    assert_same_results(ours, sklearn_fit(X, y, cv=3, **options))


@NAMES
@pytest.mark.parametrize(
    "scoring",
    ["neg_log_loss", "balanced_accuracy", make_scorer(f1_score, average="macro")],
    ids=str,
)
def test_scoring(name, scoring):
    X, y = STANDARDIZED[name]
    ours = LogisticRegressionCV(Cs=CS, tol=1e-9, cv=3, scoring=scoring).fit(X, y)
    assert_same_results(ours, sklearn_fit(X, y, cv=3, scoring=scoring))


@NAMES
@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True, random_state=0),
        StratifiedShuffleSplit(3, random_state=1),
        [(np.arange(0, 150, 2), np.arange(1, 150, 2))],
    ],
    ids=["KFold", "StratifiedShuffleSplit", "list"],
)
def test_splitters(name, cv):
    X, y = STANDARDIZED[name]
    ours = LogisticRegressionCV(Cs=CS, tol=1e-9, cv=cv).fit(X, y)
    assert_same_results(ours, sklearn_fit(X, y, cv=cv))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_elastic_nets():
    X, y = STANDARDIZED["iris"]
    options = {"Cs": [0.05, 0.5], "l1_ratios": [0.0, 0.5, 1.0], "cv": 3}
    ours = LogisticRegressionCV(tol=1e-9, scoring="neg_log_loss", **options).fit(X, y)
    options |= {"solver": "saga", "tol": 1e-7, "max_iter": 5000, "random_state": 0}
    theirs = sklearn_fit(X, y, scoring="neg_log_loss", **options)
    assert ours.scores_.shape == (3, 3, 2)
    assert_same_results(ours, theirs, tol=1e-4)
    train, _ = stratified_folds(y, 3)[1]
    for i, ratio in enumerate(ours.l1_ratios_):
        single = LogisticRegression(C=0.5, l1_ratio=ratio, tol=1e-9).fit(X[train], y[train])
        np.testing.assert_allclose(ours.coefs_paths_[1, i, 1, :, :-1], single.coef_, atol=1e-5)


# --- by definition --------------------------------------------------------------------------------


@NAMES
def test_without_refit_the_weights_of_the_folds_are_averaged(name):
    X, y = STANDARDIZED[name]
    model = LogisticRegressionCV(Cs=CS, tol=1e-9, refit=False).fit(X, y)
    W = model.coefs_paths_[:, 0, CS.index(model.C_)].mean(axis=0)
    np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), W)


@NAMES
def test_sample_weights_apply_to_fits_and_to_accuracy(name):
    X, y = STANDARDIZED[name]
    weight = np.random.default_rng(0).integers(1, 5, len(y)) / 2
    ours = LogisticRegressionCV(Cs=CS, tol=1e-9, cv=3).fit(X, y, weight)
    theirs = sklearn_fit(X, y, weight, cv=3)
    np.testing.assert_allclose(ours.coefs_paths_, theirs.coefs_paths_, atol=1e-5)
    for fold, (_, test) in enumerate(stratified_folds(y, 3)):
        for j in range(len(CS)):
            W = ours.coefs_paths_[fold, 0, j]
            Z = X[test] @ W[:, :-1].T + W[:, -1]
            hit = ((Z[:, 0] > 0).astype(int) if len(W) == 1 else Z.argmax(axis=1)) == y[test]
            expected = np.average(hit, weights=weight[test])
            assert ours.scores_[fold, 0, j] == pytest.approx(expected)
    best = LogisticRegression(C=ours.C_, tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, best.coef_, atol=1e-5)


def test_standardize_uses_training_rows_only():
    X, y = SETS["breast_cancer"]
    options = {"standardize": True, "tol": 1e-9}
    model = LogisticRegressionCV(Cs=[0.1], cv=3, **options).fit(X, y)
    for fold, (train, test) in enumerate(stratified_folds(y, 3)):
        single = LogisticRegression(C=0.1, **options).fit(X[train], y[train])
        assert model.scores_[fold, 0, 0] == pytest.approx(single.score(X[test], y[test]))
        found = model.coefs_paths_[fold, 0, 0, :, :-1]
        np.testing.assert_allclose(found, single.coef_, rtol=1e-5, atol=1e-7)


def test_repeated_training_rows_count_as_often():
    X, y = STANDARDIZED["breast_cancer"]
    rows = np.random.default_rng(0).integers(0, len(y) - 30, 200)
    test = np.arange(len(y) - 30, len(y))
    model = LogisticRegressionCV(Cs=[1.0], cv=[(rows, test)], scoring="neg_log_loss").fit(X, y)
    plain = LogisticRegression().fit(X[rows], y[rows])
    expected = -log_loss(y[test], plain.predict_proba(X[test]))
    np.testing.assert_allclose(model.scores_[0, 0, 0], expected, rtol=1e-5)


# --- forms of data --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        np.float32,
        pd.DataFrame,
        np.ndarray.tolist,
    ],
)
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_forms_of_data(form, scoring):
    X, y = STANDARDIZED["iris"]
    model = LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, scoring=scoring)
    names = np.array(["a", "b", "c"])[y]
    plain, other = clone(model).fit(X, names), model.fit(form(X), list(names))
    np.testing.assert_allclose(other.scores_, plain.scores_, atol=1e-5)
    assert np.array_equal(other.predict(form(X)), plain.predict(X))


def test_two_classes_of_sparse_rows(rng):
    X = sparse.random(300, 40, 0.2, format="csr", random_state=0)
    y = (X @ rng.standard_normal(40) > 0).astype(int)
    ours = LogisticRegressionCV(Cs=[0.1, 10.0], cv=3, tol=1e-8).fit(X, y)
    dense = LogisticRegressionCV(Cs=[0.1, 10.0], cv=3, tol=1e-8).fit(X.toarray(), y)
    np.testing.assert_allclose(ours.scores_, dense.scores_)
    np.testing.assert_allclose(ours.coefs_paths_, dense.coefs_paths_, atol=1e-6)


def test_parameters_and_pickle():
    X, y = STANDARDIZED["iris"]
    model = LogisticRegressionCV(Cs=2, cv=3, n_jobs=-1, dual=False).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()
    assert np.array_equal(model.fit(X, y).coef_, copy.coef_)


# --- invalid input --------------------------------------------------------------------------------

INVALID = {
    "negative C": ({"Cs": [1.0, -1.0]}, "Cs must be numbers > 0"),
    "no Cs": ({"Cs": []}, "Cs must be"),
    "zero Cs": ({"Cs": 0}, "Cs must be a whole number >= 1"),
    "l1_ratios too large": ({"l1_ratios": [0.5, 2.0]}, "l1_ratio"),
    "no l1_ratios": ({"l1_ratios": []}, "l1_ratios has no value to try"),
    "L1 and another solver": (
        {"l1_ratios": [1.0], "solver": "lbfgs"},
        "solver 'lbfgs' does not support an L1 penalty",
    ),
    "refit a word": ({"refit": "yes"}, "refit must be one of"),
    "scoring unknown": ({"scoring": "beauty"}, "beauty"),
    "too many folds": ({"cv": 60}, "n_splits=60|fold"),
    "a fold without a class": ({"cv": KFold(3)}, "fold 0 has no training rows of class 0"),
}


@pytest.mark.parametrize("what", INVALID)
def test_error_names_what_is_invalid(what):
    X, y = STANDARDIZED["iris"]
    options, message = INVALID[what]
    with pytest.raises(ValueError, match=message):
        LogisticRegressionCV(**options).fit(X, y)


def test_fold_without_weight_is_refused():
    X, y = STANDARDIZED["breast_cancer"]
    s = np.ones(len(y))
    s[: -(-len(y) // 5)] = 0
    with pytest.raises(ValueError, match="a fold holds out no row with a weight"):
        LogisticRegressionCV(Cs=[1e-4, 1.0], cv=KFold(5)).fit(X, y, sample_weight=s)


def test_folds_may_be_tuples(rng):
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
    cv = [(tuple(range(3, 40)), (0, 1, 2))]
    assert LogisticRegressionCV(Cs=2, cv=cv).fit(X, y).scores_.shape == (1, 1, 2)


def test_fold_with_missing_rows_is_refused(rng):
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
    cv = [(tuple(range(3, 40)), (0, 1, 400))]
    with pytest.raises(ValueError, match="fold 0 has rows that X, with its 40 rows, does not have"):
        LogisticRegressionCV(Cs=2, cv=cv).fit(X, y)
