"""The closed-form models: scikit-learn's checks and results, streams, forgetting, merging, priors, samples."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import discriminant_analysis as rival_gaussian
from sklearn import naive_bayes as rival_bayes
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import (
    BernoulliNB,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)
from fastdisc._folds import fold_codes

LOADERS = (load_iris, load_wine, load_breast_cancer, load_digits)
MODELS = [
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    FisherDiscriminant(),
    LeastSquaresClassifier(),
    LeastSquaresClassifierCV(),
    BernoulliNB(),
    MultinomialNB(),
    PoissonNB(),
    GaussianNB(),
]
STREAMS = [
    *MODELS[:4],
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    LinearDiscriminantAnalysis(solver="eigen", priors=[0.2, 0.3, 0.5]),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    LeastSquaresClassifier(alpha=2.0),
    *MODELS[5:],
]
GENERATIVE = [model for model in MODELS if hasattr(model, "sample")]
COLLINEAR = pytest.mark.filterwarnings("ignore::fastdisc.CollinearWarning")
name = lambda model: repr(model).replace("\n", "")  # noqa: E731


@COLLINEAR
@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data(rng, n=120, d=4, K=3):
    """Counts, so that every model takes them; columns not collinear, each class with rows enough."""
    y = np.arange(n) % K
    return rng.poisson(2 + 2 * np.eye(K, d)[y] + np.arange(d)).astype(float), y


def scores(model, X):
    for verb in ("predict_targets", "predict_joint_log_proba", "decision_function"):
        if hasattr(model, verb):
            return getattr(model, verb)(X)


def assert_same(a, b, X, tol=1e-10):
    A, B = scores(a, X), scores(b, X)
    assert np.array_equal(a.classes_, b.classes_)
    assert np.abs(A - B).max() <= tol * max(1, np.abs(A).max())


# --- scikit-learn's results --------------------------------------------------------------------------------------------------


@COLLINEAR
@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"store_covariance": True, "n_components": 1},
        {"solver": "lsqr"},
        {"solver": "lsqr", "shrinkage": 0.3},
        {"solver": "lsqr", "shrinkage": "auto"},
        {"solver": "eigen", "shrinkage": 0.1},
        {"solver": "eigen", "shrinkage": "auto"},
    ],
    ids=str,
)
def test_lda_is_that_of_scikit_learn(load, options):
    X, y = load(return_X_y=True)
    priors = np.arange(1, y.max() + 2) / np.arange(1, y.max() + 2).sum()
    for more in ({}, {"priors": priors}):
        ours = LinearDiscriminantAnalysis(**options, **more).fit(X, y)
        theirs = rival_gaussian.LinearDiscriminantAnalysis(**options, **more).fit(X, y)
        # lstsq on columns of very different size leaves scikit-learn 8 digits or so
        tol = 1e-6 if options.get("solver") == "lsqr" else 1e-9
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=tol, atol=tol)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=tol)
        np.testing.assert_allclose(ours.predict_log_proba(X)[:5], np.log(ours.predict_proba(X)[:5] + 1e-300), atol=1e-6)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
        np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
        np.testing.assert_allclose(ours.priors_, theirs.priors_)
        if hasattr(theirs, "covariance_"):
            np.testing.assert_allclose(ours.covariance_, theirs.covariance_, atol=1e-9 * np.abs(theirs.covariance_).max())
        if options.get("solver") != "lsqr":
            np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-8)
            A, B = ours.transform(X), theirs.transform(X)
            np.testing.assert_allclose(np.abs(A), np.abs(B), atol=1e-7 * np.abs(B).max())
            assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist() or A.shape[1] == B.shape[1]


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("options", [{}, {"reg_param": 0.1, "store_covariance": True}, {"solver": "eigen", "shrinkage": "auto"}])
def test_qda_is_that_of_scikit_learn(load, options):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    if not options and load in (load_digits, load_breast_cancer):
        X = X[:, :20] + np.random.default_rng(0).standard_normal((len(X), 20))  # as they are, the columns are collinear
    if options.get("shrinkage") and load is load_digits:
        X = X[:, X.any(axis=0)] + 0.1 * np.random.default_rng(0).standard_normal((len(X), 61))
    ours = QuadraticDiscriminantAnalysis(**options).fit(X, y)
    theirs = rival_gaussian.QuadraticDiscriminantAnalysis(**options).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    for k in range(len(ours.classes_)):
        np.testing.assert_allclose(ours.scalings_[k], theirs.scalings_[k], atol=1e-9 * theirs.scalings_[k].max())
        if "store_covariance" in options:
            np.testing.assert_allclose(ours.covariance_[k], theirs.covariance_[k], atol=1e-9)


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_naive_bayes_is_that_of_scikit_learn(load, convert):
    X, y = load(return_X_y=True)
    A = convert(X)
    X = A.toarray() if sparse.issparse(A) else A.astype(float)
    pairs = [
        (BernoulliNB(binarize=X.mean()), rival_bayes.BernoulliNB(binarize=X.mean())),
        (BernoulliNB(alpha=0.3), rival_bayes.BernoulliNB(alpha=0.3)),
        (MultinomialNB(alpha=0.5), rival_bayes.MultinomialNB(alpha=0.5)),
        (MultinomialNB(fit_prior=False), rival_bayes.MultinomialNB(fit_prior=False)),
        (GaussianNB(), rival_bayes.GaussianNB()),
    ]
    for ours, theirs in pairs:
        ours.fit(A, y)
        theirs.fit(X, y)
        B = theirs.predict_joint_log_proba(X)
        np.testing.assert_allclose(ours.predict_joint_log_proba(A), B, atol=1e-10 * np.abs(B).max())
        np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(X), atol=1e-8)
        assert np.array_equal(ours.predict(A), theirs.predict(X))
        for attribute in ("feature_log_prob_", "feature_count_", "class_count_", "class_log_prior_", "theta_", "var_"):
            if hasattr(theirs, attribute):
                np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_threshold_below_zero_counts_empty_cells_too(convert, rng):
    X, y = np.rint(rng.standard_normal((80, 4))), np.arange(80) % 2
    ours, expected = BernoulliNB(binarize=-0.5).fit(convert(X), y), rival_bayes.BernoulliNB().fit(X > -0.5, y)
    np.testing.assert_allclose(ours.predict_proba(convert(X)), expected.predict_proba(X > -0.5), atol=1e-12)


@pytest.mark.parametrize("load", LOADERS)
def test_least_squares_is_ridge_and_adds_up_to_one(load):
    X, y = load(return_X_y=True)
    ours, theirs = LeastSquaresClassifier(alpha=1.0).fit(X, y), RidgeClassifier(alpha=1.0).fit(X, y)
    factor = 1 if len(ours.classes_) == 2 else 2  # scikit-learn's targets are -1 and 1
    np.testing.assert_allclose(factor * ours.coef_, np.atleast_2d(theirs.coef_), rtol=1e-6, atol=1e-9)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    plain = LeastSquaresClassifier().fit(X, y)
    X1 = np.column_stack([np.ones(len(X)), X])
    np.testing.assert_allclose(plain.predict_targets(X), X1 @ np.linalg.pinv(X1) @ np.eye(y.max() + 1)[y], atol=1e-7)  # (4.17)
    np.testing.assert_allclose(plain.predict_targets(X).sum(axis=1), 1, atol=1e-9)  # (4.19)


def test_targets_that_give_fishers_direction():
    X, y = load_breast_cancer(return_X_y=True)
    ours, fisher = LeastSquaresClassifier(targets="fisher").fit(X, y), FisherDiscriminant().fit(X, y)
    w, v = ours.coef_[0], fisher.scalings_[:, 0]
    assert w @ v / np.linalg.norm(w) / np.linalg.norm(v) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), (X - X.mean(axis=0)) @ w, atol=1e-6)  # (4.34)
    assert ours.predict_targets(X).shape == (len(X), 1)


# --- Fisher ------------------------------------------------------------------------------------------------------------------


@COLLINEAR
@pytest.mark.parametrize("load", LOADERS)
def test_fishers_directions_and_criterion(load, rng):
    X, y = load(return_X_y=True)
    model = FisherDiscriminant().fit(X, y)
    K = len(model.classes_)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(model.total_, centred.T @ centred, atol=1e-8 * np.abs(model.total_).max())  # (4.43)
    np.testing.assert_allclose(model.within_ + model.between_, model.total_)
    found = model.criterion()
    assert model.scalings_.shape == (X.shape[1], min(K - 1, X.shape[1]))
    other = rival_gaussian.LinearDiscriminantAnalysis().fit(X, y).transform(X)
    for a, b in zip(model.transform(X).T, other.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1, abs=1e-6)
    if K == 2:
        y0, y1 = (X[y == k] @ model.scalings_[:, 0] for k in (0, 1))
        spread = ((y0 - y0.mean()) ** 2).sum() + ((y1 - y1.mean()) ** 2).sum()
        assert found == pytest.approx((y1.mean() - y0.mean()) ** 2 / spread, rel=1e-6)  # (4.25)
    else:
        assert found == pytest.approx(model.eigenvalues_.sum(), rel=1e-6)
    for _ in range(20):
        assert model.criterion(model.scalings_.T + 0.1 * rng.standard_normal((K - 1, X.shape[1]))) <= found * (1 + 1e-9)
    assert model.score(X, y) > 0.95


def test_fishers_threshold_is_where_the_densities_cross():
    X, y = load_breast_cancer(return_X_y=True)
    model = FisherDiscriminant().fit(X, y)
    projected = model.transform(X)[:, 0]
    assert np.array_equal(model.predict(X) == 1, projected > model.threshold_)
    a, b = (projected[y == k] for k in (0, 1))
    density = lambda x: np.log(len(x)) - np.log(x.std()) - (model.threshold_ - x.mean()) ** 2 / (2 * x.var())  # noqa: E731
    assert density(a) == pytest.approx(density(b), abs=1e-8)
    assert a.mean() < model.threshold_ < b.mean()


# --- weights, streams, forgetting, merging, folds ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", STREAMS, ids=name)
def test_weights_are_repetition(model, rng):
    X, y = data(rng)
    s = rng.integers(0, 4, len(y))
    assert_same(clone(model).fit(X, y, sample_weight=s), clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s)), X)


@pytest.mark.parametrize("model", STREAMS, ids=name)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
@COLLINEAR
def test_a_stream_in_any_chunks_is_one_fit(model, seed):
    rng = np.random.default_rng(seed)
    X, y = data(rng)
    cuts = np.sort(rng.integers(1, len(y), 5))
    order = rng.permutation(len(y))
    X, y, s = X[order], y[order], rng.random(len(y))
    stream = clone(model)
    for rows in np.split(np.arange(len(y)), cuts):
        if len(rows):
            stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=s[rows])
    assert_same(stream, clone(model).fit(X, y, sample_weight=s), X)


@pytest.mark.parametrize("model", STREAMS, ids=name)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_forgetting_and_merging(model, seed):
    rng = np.random.default_rng(seed)
    X, y = data(rng)
    half = rng.permutation(len(y))[: len(y) // 2]
    rest = np.setdiff1d(np.arange(len(y)), half)
    if min(np.bincount(y[half], minlength=3).min(), np.bincount(y[rest], minlength=3).min()) < 8:
        return
    whole, first, second = (clone(model).fit(X[rows], y[rows]) for rows in (slice(None), half, rest))
    assert_same(first.merge(second), whole, X)
    assert_same(first, clone(model).fit(X[half], y[half]), X, tol=0)
    assert_same(whole.forget(X[rest], y[rest]), first, X, tol=1e-9)


@pytest.mark.parametrize("model", [model for model in STREAMS if model.get_params().get("priors") is None], ids=name)
@COLLINEAR
def test_new_classes_come_in_as_they_are_seen(model, rng):
    X, y = data(rng)
    order = np.argsort(y, kind="stable")
    stream = clone(model)
    for rows in np.split(order, 4):
        stream.partial_fit(X[rows], y[rows])
    assert_same(stream, clone(model).fit(X, y), X)


def test_a_class_that_has_not_come_yet_is_not_predicted(rng):
    X, y = data(rng)
    for model in (LinearDiscriminantAnalysis(), GaussianNB(), MultinomialNB(), QuadraticDiscriminantAnalysis()):
        model = clone(model).partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
        assert set(model.predict(X)) == {0, 1}
        assert np.isfinite(model.predict_proba(X)).all()


RIVALS = [
    (LinearDiscriminantAnalysis(), rival_gaussian.LinearDiscriminantAnalysis()),
    (QuadraticDiscriminantAnalysis(reg_param=0.1), rival_gaussian.QuadraticDiscriminantAnalysis(reg_param=0.1)),
    (GaussianNB(), rival_bayes.GaussianNB()),
    (MultinomialNB(), rival_bayes.MultinomialNB()),
    (BernoulliNB(binarize=2.0), rival_bayes.BernoulliNB(binarize=2.0)),
]


@COLLINEAR
@pytest.mark.parametrize(("ours", "theirs"), RIVALS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("cv", [None, 7, KFold(4, shuffle=True, random_state=0)], ids=str)
def test_cross_validation_from_moments(ours, theirs, cv):
    X, y = load_digits(return_X_y=True)
    names = np.array([f"class {k}" for k in range(10)])[y]
    found, models = cross_val_from_moments(ours, X, names, cv=cv, return_estimator=True)
    np.testing.assert_allclose(found, cross_val_score(theirs, X, names, cv=cv), atol=1e-12)
    assert len(models) == len(found) and models[0].score(X, names) > 0.7
    loss = cross_val_from_moments(ours, sparse.csr_array(X), names, cv=cv, scoring="neg_log_loss")
    np.testing.assert_allclose(loss, cross_val_score(theirs, X, names, cv=cv, scoring="neg_log_loss"), rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_folds_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    folds, K = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    y = rng.permutation(np.r_[np.repeat(np.arange(K), folds), rng.integers(0, K, int(rng.integers(0, 90)))])
    codes, count, tested = fold_codes(folds, y.astype(np.int32), K)
    assert count == tested == folds
    for f, (_, test) in enumerate(StratifiedKFold(folds).split(y, y)):
        assert np.array_equal(np.flatnonzero(codes == f), test)


def test_cross_validation_takes_folds_only():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="each row at most once"):
        cross_val_from_moments(GaussianNB(), X, y, cv=ShuffleSplit(3))
    with pytest.raises(ValueError, match="not a function of moments"):
        cross_val_from_moments(LogisticRegression(), X, y)


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
def test_least_squares_on_rows_held_out(cv, scoring):
    X, y = load_wine(return_X_y=True)
    X, y = X[::2], y[::2]
    alphas = [0.01, 1.0, 100.0, 1e6]
    model = LeastSquaresClassifierCV(alphas, cv=cv, scoring=scoring).fit(X, y)
    for alpha, score in zip(alphas, model.scores_, strict=True):
        total = 0.0
        splits = KFold(len(y)).split(X) if cv is None else StratifiedKFold(cv).split(X, y)
        for train, test in splits:
            Y = LeastSquaresClassifier(alpha).fit(X[train], y[train]).predict_targets(X[test])
            hits = (Y.argmax(axis=1) == y[test]) if scoring == "accuracy" else -((Y - np.eye(3)[y[test]]) ** 2).mean(axis=1)
            total += hits.sum()
        assert score == pytest.approx(total / len(y), abs=1e-9)
    best = max(model.scores_)
    assert model.alpha_ == max(a for a, score in zip(alphas, model.scores_, strict=True) if score == best)
    assert_same(model, LeastSquaresClassifier(model.alpha_).fit(X, y), X)


# --- priors and samples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [model for model in MODELS if hasattr(model, "predict_proba")], ids=name)
def test_other_priors_are_bayes_rule(model, rng):
    X, y = data(rng)
    model = clone(model).fit(X, y)
    priors = np.array([0.5, 0.2, 0.3])
    changed = model.with_priors(priors)
    expected = model.predict_proba(X) * priors / model.priors_
    np.testing.assert_allclose(changed.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-10)
    np.testing.assert_allclose(changed.priors_, priors)
    with pytest.raises(ValueError, match="add up to 1"):
        model.with_priors([0.5, 0.5, 0.5])


def test_least_squares_with_other_priors_is_a_weighted_fit(rng):
    X, y = data(rng)
    priors = np.array([0.5, 0.2, 0.3])
    weights = (priors * len(y) / np.bincount(y))[y]
    assert_same(LeastSquaresClassifier().fit(X, y).with_priors(priors), LeastSquaresClassifier().fit(X, y, weights), X)


@pytest.mark.parametrize("model", GENERATIVE, ids=name)
def test_samples_have_the_moments_they_are_drawn_from(model, rng):
    X, y = data(rng, 600)
    if isinstance(model, BernoulliNB):
        X = (X > 3).astype(float)
    model = clone(model).fit(X, np.array(["a", "b", "c"])[y]).with_priors([0.5, 0.25, 0.25])
    A, labels = model.sample(40_000, random_state=0)
    B, _ = model.sample(40_000, random_state=0)
    assert np.array_equal(A, B)
    target = model.transform(X) if isinstance(model, FisherDiscriminant) else X
    assert A.shape == (40_000, target.shape[1])
    for k, label in enumerate(model.classes_):
        mine, seen = A[labels == label], target[y == k]
        assert len(mine) == pytest.approx(40_000 * model.priors_[k], rel=0.05)
        spread = seen.std(axis=0) + 0.1
        np.testing.assert_allclose((mine.mean(axis=0) - seen.mean(axis=0)) / spread, 0, atol=0.1)
    if isinstance(model, (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis)):
        again = clone(model).set_params(priors=None).fit(A, labels)
        np.testing.assert_allclose(again.means_, model.means_, atol=0.1)


def test_gaussian_classes_give_the_logistic_posterior():
    """(10.13): with one covariance the log odds are linear, and logistic regression finds the same ones."""
    rng = np.random.default_rng(0)
    mix = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.2, 1.0]])
    y = rng.integers(0, 2, 200_000)
    X = rng.standard_normal((200_000, 3)) @ mix.T + np.outer(y, [0.8, -0.5, 0.3])
    lda, logistic = LinearDiscriminantAnalysis().fit(X, y), LogisticRegression(C=np.inf).fit(X, y)
    truth = np.linalg.solve(mix @ mix.T, [0.8, -0.5, 0.3])
    np.testing.assert_allclose(lda.coef_[0], truth, atol=0.03)
    np.testing.assert_allclose(lda.coef_, logistic.coef_, atol=0.03)
    np.testing.assert_allclose(lda.predict_proba(X[:1000]), logistic.predict_proba(X[:1000]), atol=0.01)


# --- life among the others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_pipelines_searches_pickles_and_frames(model, rng):
    pd = pytest.importorskip("pandas")
    X, y = data(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = clone(model).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    again = pickle.loads(pickle.dumps(fitted))
    if hasattr(model, "partial_fit"):
        assert_same(again.partial_fit(frame, y), clone(model).fit(pd.concat([frame, frame]), np.r_[y, y]), frame, 1e-9)
    if hasattr(model, "transform"):
        fitted.set_output(transform="pandas")
        assert fitted.transform(frame).columns.tolist() == fitted.get_feature_names_out().tolist()
    assert make_pipeline(clone(model)).fit(X, y).score(X, y) > 1 / 3
    parameter = {"n_threads": [1, 2]}
    search = GridSearchCV(clone(model), parameter, cv=3).fit(X, y)
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"][1], abs=0)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_backends_and_threads(model, rng):
    X, y = data(rng, 4000)
    first = clone(model).set_params(n_threads=1).fit(X, y)
    for n in (2, 3):
        assert_same(clone(model).set_params(n_threads=n).fit(X, y), first, X, tol=0)
    assert_same(clone(model).set_params(backend="numpy").fit(X, y), first, X)
