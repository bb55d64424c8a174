"""The closed-form models: the results of scikit-learn's, and their definitions."""

import numpy as np
import pytest
from helpers.closed_form_models import assert_same_model
from helpers.data_sets import SETS, STANDARDIZED
from scipy import sparse
from sklearn import discriminant_analysis, naive_bayes
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold

from fastdisc import (
    BernoulliNB,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
)

NAMES = pytest.mark.parametrize("name", SETS)

# --- Gaussian classes -----------------------------------------------------------------------------

LDA_OPTIONS = [
    {},
    {"store_covariance": True, "n_components": 1},
    {"solver": "lsqr"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "lsqr", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": 0.1},
    {"solver": "eigen", "shrinkage": "auto"},
]


@pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
@NAMES
@pytest.mark.parametrize("options", LDA_OPTIONS, ids=str)
@pytest.mark.parametrize("with_priors", [False, True])
def test_lda_equals_that_of_sklearn(name, options, with_priors):
    X, y = SETS[name]
    if with_priors:
        priors = np.arange(1.0, y.max() + 2)
        options = options | {"priors": priors / priors.sum()}
    ours = LinearDiscriminantAnalysis(**options).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(**options).fit(X, y)
    # lstsq on columns of very different size leaves scikit-learn about 8 digits.
    tol = 1e-6 if options.get("solver") == "lsqr" else 1e-9
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=tol, atol=tol)
    P = ours.predict_proba(X)
    np.testing.assert_allclose(P, theirs.predict_proba(X), atol=tol)
    np.testing.assert_allclose(ours.predict_log_proba(X)[:5], np.log(P[:5] + 1e-300), atol=1e-6)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
    np.testing.assert_allclose(ours.priors_, theirs.priors_)
    if hasattr(theirs, "covariance_"):
        atol = 1e-9 * np.abs(theirs.covariance_).max()
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, atol=atol)
    if options.get("solver") != "lsqr":
        expected = theirs.explained_variance_ratio_
        np.testing.assert_allclose(ours.explained_variance_ratio_, expected, atol=1e-8)
        A, B = ours.transform(X), theirs.transform(X)
        np.testing.assert_allclose(np.abs(A), np.abs(B), atol=1e-7 * np.abs(B).max())


def test_lda_names_its_components_like_sklearn():
    X, y = SETS["wine"]
    ours = LinearDiscriminantAnalysis().fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis().fit(X, y)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


QDA_OPTIONS = [
    {},
    {"reg_param": 0.1, "store_covariance": True},
    {"solver": "eigen", "shrinkage": "auto"},
]


@NAMES
@pytest.mark.parametrize("options", QDA_OPTIONS, ids=str)
def test_qda_equals_that_of_sklearn(name, options):
    X, y = STANDARDIZED[name]
    rng = np.random.default_rng(0)
    if not options and name in ("digits", "breast_cancer"):
        X = X[:, :20] + rng.standard_normal((len(X), 20))  # else the columns are collinear
    if options.get("shrinkage") and name == "digits":
        X = X[:, X.any(axis=0)] + 0.1 * rng.standard_normal((len(X), 61))
    ours = QuadraticDiscriminantAnalysis(**options).fit(X, y)
    theirs = discriminant_analysis.QuadraticDiscriminantAnalysis(**options).fit(X, y)
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    for k in range(len(ours.classes_)):
        scalings = theirs.scalings_[k]
        np.testing.assert_allclose(ours.scalings_[k], scalings, atol=1e-9 * scalings.max())
        if "store_covariance" in options:
            np.testing.assert_allclose(ours.covariance_[k], theirs.covariance_[k], atol=1e-9)


def test_lda_and_logistic_regression_agree_on_gaussian_classes():
    """(10.13): with one covariance matrix the log odds are linear."""
    rng = np.random.default_rng(0)
    mix = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.2, 1.0]])
    y = rng.integers(0, 2, 200_000)
    X = rng.standard_normal((200_000, 3)) @ mix.T + np.outer(y, [0.8, -0.5, 0.3])
    lda, logistic = LinearDiscriminantAnalysis().fit(X, y), LogisticRegression(C=np.inf).fit(X, y)
    truth = np.linalg.solve(mix @ mix.T, [0.8, -0.5, 0.3])
    np.testing.assert_allclose(lda.coef_[0], truth, atol=0.03)
    np.testing.assert_allclose(lda.coef_, logistic.coef_, atol=0.03)
    some = X[:1000]
    np.testing.assert_allclose(lda.predict_proba(some), logistic.predict_proba(some), atol=0.01)


# --- naive Bayes ----------------------------------------------------------------------------------

NB_ATTRIBUTES = ("feature_log_prob_", "feature_count_", "theta_", "var_")
NB_ATTRIBUTES += ("class_count_", "class_log_prior_")


@NAMES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_naive_bayes_equals_that_of_sklearn(name, form):
    X, y = SETS[name]
    A = form(X)
    X = A.toarray() if sparse.issparse(A) else A.astype(float)
    pairs = [
        (BernoulliNB(binarize=X.mean()), naive_bayes.BernoulliNB(binarize=X.mean())),
        (BernoulliNB(alpha=0.3), naive_bayes.BernoulliNB(alpha=0.3)),
        (MultinomialNB(alpha=0.5), naive_bayes.MultinomialNB(alpha=0.5)),
        (MultinomialNB(fit_prior=False), naive_bayes.MultinomialNB(fit_prior=False)),
        (GaussianNB(), naive_bayes.GaussianNB()),
    ]
    for ours, theirs in pairs:
        ours.fit(A, y)
        theirs.fit(X, y)
        B = theirs.predict_joint_log_proba(X)
        atol = 1e-10 * np.abs(B).max()
        np.testing.assert_allclose(ours.predict_joint_log_proba(A), B, atol=atol)
        np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(X), atol=1e-8)
        assert np.array_equal(ours.predict(A), theirs.predict(X))
        for attribute in filter(theirs.__dict__.__contains__, NB_ATTRIBUTES):
            found, expected = getattr(ours, attribute), getattr(theirs, attribute)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_negative_threshold_counts_empty_cells(form, rng):
    X, y = np.rint(rng.standard_normal((80, 4))), np.arange(80) % 2
    ours = BernoulliNB(binarize=-0.5).fit(form(X), y)
    expected = naive_bayes.BernoulliNB().fit(X > -0.5, y).predict_proba(X > -0.5)
    np.testing.assert_allclose(ours.predict_proba(form(X)), expected, atol=1e-12)


# --- least squares --------------------------------------------------------------------------------


@NAMES
def test_penalised_least_squares_is_ridge_regression(name):
    X, y = SETS[name]
    ours, theirs = LeastSquaresClassifier(alpha=1.0).fit(X, y), RidgeClassifier(alpha=1.0).fit(X, y)
    factor = 1 if len(ours.classes_) == 2 else 2  # scikit-learn's targets are -1 and 1
    expected = np.atleast_2d(theirs.coef_)
    np.testing.assert_allclose(factor * ours.coef_, expected, rtol=1e-6, atol=1e-9)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@NAMES
def test_least_squares_is_the_pseudoinverse(name):
    """(4.17); targets add up to 1, (4.19)."""
    X, y = SETS[name]
    Y = LeastSquaresClassifier().fit(X, y).predict_targets(X)
    X1 = np.column_stack([np.ones(len(X)), X])
    np.testing.assert_allclose(Y, X1 @ np.linalg.pinv(X1) @ np.eye(y.max() + 1)[y], atol=1e-7)
    np.testing.assert_allclose(Y.sum(axis=1), 1, atol=1e-9)


def test_fisher_targets_give_the_direction_of_fisher():
    """The scores are w'(x - m), (4.34)."""
    X, y = SETS["breast_cancer"]
    ours, fisher = (
        LeastSquaresClassifier(targets="fisher").fit(X, y),
        FisherDiscriminant().fit(X, y),
    )
    w, v = ours.coef_[0], fisher.scalings_[:, 0]
    assert w @ v / np.linalg.norm(w) / np.linalg.norm(v) == pytest.approx(1, abs=1e-9)
    expected = (X - X.mean(axis=0)) @ w
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=1e-6)
    assert ours.predict_targets(X).shape == (len(X), 1)


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
def test_least_squares_cv_chooses_by_held_out_rows(cv, scoring):
    X, y = SETS["wine"]
    X, y = X[::2], y[::2]
    alphas = [0.01, 1.0, 100.0, 1e6]
    model = LeastSquaresClassifierCV(alphas, cv=cv, scoring=scoring).fit(X, y)
    for alpha, score in zip(alphas, model.scores_, strict=True):
        total = 0.0
        splits = KFold(len(y)).split(X) if cv is None else StratifiedKFold(cv).split(X, y)
        for train, test in splits:
            Y = LeastSquaresClassifier(alpha).fit(X[train], y[train]).predict_targets(X[test])
            if scoring == "accuracy":
                total += (Y.argmax(axis=1) == y[test]).sum()
            else:
                total -= ((Y - np.eye(3)[y[test]]) ** 2).mean(axis=1).sum()
        assert score == pytest.approx(total / len(y), abs=1e-9)
    best = [a for a, s in zip(alphas, model.scores_, strict=True) if s == max(model.scores_)]
    assert model.alpha_ == max(best)
    assert_same_model(model, LeastSquaresClassifier(model.alpha_).fit(X, y), X)


# --- Fisher's discriminant ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
@NAMES
def test_fisher_matrices_add_up_and_directions_equal_those_of_lda(name):
    X, y = SETS[name]
    model = FisherDiscriminant().fit(X, y)
    K, centred = len(model.classes_), X - X.mean(axis=0)
    atol = 1e-8 * np.abs(model.total_).max()
    np.testing.assert_allclose(model.total_, centred.T @ centred, atol=atol)  # (4.43)
    np.testing.assert_allclose(model.within_ + model.between_, model.total_)
    assert model.scalings_.shape == (X.shape[1], min(K - 1, X.shape[1]))
    lda = discriminant_analysis.LinearDiscriminantAnalysis().fit(X, y)
    for a, b in zip(model.transform(X).T, lda.transform(X).T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1, abs=1e-6)
    assert model.score(X, y) > 0.95


@pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
@NAMES
def test_fisher_directions_maximise_the_criterion(name, rng):
    X, y = SETS[name]
    model = FisherDiscriminant().fit(X, y)
    K, found = len(model.classes_), model.criterion()
    if K == 2:
        y0, y1 = (X[y == k] @ model.scalings_[:, 0] for k in (0, 1))
        spread = ((y0 - y0.mean()) ** 2).sum() + ((y1 - y1.mean()) ** 2).sum()
        assert found == pytest.approx((y1.mean() - y0.mean()) ** 2 / spread, rel=1e-6)  # (4.25)
    else:
        assert found == pytest.approx(model.eigenvalues_.sum(), rel=1e-6)
    for _ in range(20):
        other = model.scalings_.T + 0.1 * rng.standard_normal((K - 1, X.shape[1]))
        assert model.criterion(other) <= found * (1 + 1e-9)


def test_fisher_threshold_is_where_the_densities_are_equal():
    X, y = SETS["breast_cancer"]
    model = FisherDiscriminant().fit(X, y)
    z = model.transform(X)[:, 0]
    assert np.array_equal(model.predict(X) == 1, z > model.threshold_)

    def log_density(z):
        deviation = model.threshold_ - z.mean()
        return np.log(len(z)) - np.log(z.std()) - deviation**2 / (2 * z.var())

    a, b = (z[y == k] for k in (0, 1))
    assert log_density(a) == pytest.approx(log_density(b), abs=1e-8)
    assert a.mean() < model.threshold_ < b.mean()
