"""LogisticRegression: scikit-learn's answers, the published gradient descent, pipelines and all."""

import pickle

import numpy as np
import oracles
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import LogisticRegression

SETS = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in ("iris", "wine", "breast_cancer", "digits")}


@parametrize_with_checks([LogisticRegression(), LogisticRegression(solver="gd", max_iter=20_000)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:sklearn")
def test_check_estimator(estimator, check):
    check(estimator)


def rival(X, y, **parameters):
    weight = parameters.pop("sample_weight", None)
    return Rival(solver="newton-cholesky", tol=1e-13, max_iter=1000, **parameters).fit(X, y, weight)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_coefficients_are_those_of_scikit_learn(name, C):
    X, y = SETS[name]
    X = StandardScaler().fit_transform(X)
    ours, theirs = LogisticRegression(C=C, tol=1e-10).fit(X, y), rival(X, y, C=C)
    assert ours.converged_ and ours.gradient_norm_ <= 1e-10
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    "options", [{"fit_intercept": False}, {"class_weight": "balanced"}, {"class_weight": {0: 2.0, 1: 0.5}}], ids=str
)
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_options_mean_what_they_mean_there(name, options):
    X, y = SETS[name]
    X = StandardScaler().fit_transform(X)
    weight = np.random.default_rng(0).random(len(y))
    ours = LogisticRegression(tol=1e-10, **options).fit(X, y, weight)
    theirs = rival(X, y, sample_weight=weight, **options)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
@pytest.mark.parametrize("solver", ["newton", "gd"])
def test_backends_and_solvers_meet(backend, solver):
    X, y = SETS["iris"]
    X = StandardScaler().fit_transform(X)
    ours = LogisticRegression(solver=solver, backend=backend, tol=1e-9, max_iter=50_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, rival(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_gradient_descent_is_the_figure(K):
    """Figures 10.6 and 10.8 step by step, from the same random weights."""
    X, y = SETS["iris"]
    X, y = X[:: 3 - K + 2][: 50 * K], y[:: 3 - K + 2][: 50 * K]
    keep = y < K
    X, y = X[keep], y[keep]
    with pytest.warns(ConvergenceWarning, match="25 iterations"):
        model = LogisticRegression(solver="gd", C=np.inf, eta=0.001, max_iter=25, random_state=5).fit(X, y)
    start = np.random.RandomState(5).uniform(-0.01, 0.01, (1 if K == 2 else K, 5))
    W, losses, errors = oracles.gradient_descent(X, y, start, 0.001, 25)
    np.testing.assert_allclose(np.column_stack([model.intercept_, model.coef_]), W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.history_["loss"], losses, rtol=1e-10)
    assert model.history_["errors"] == errors
    assert len(model.history_["norm"]) == 26 and model.history_["norm"][-1] == pytest.approx(np.linalg.norm(W[:, 1:]))


def test_gradient_descent_that_diverges_says_so():
    X, y = SETS["breast_cancer"]
    with pytest.raises(ValueError, match="diverged with eta"), np.errstate(all="ignore"):
        LogisticRegression(solver="gd", eta=1e300, C=1e-3).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_automatic_eta_never_raises_the_loss():
    for name in ("wine", "breast_cancer"):
        X, y = SETS[name]
        loss = LogisticRegression(solver="gd", max_iter=300, random_state=0).fit(X, y).history_["loss"]
        assert (np.diff(loss) <= 1e-9 * np.abs(loss[:-1])).all()


@pytest.mark.parametrize(("name", "steps"), [("iris", 15), ("wine", 15), ("breast_cancer", 15), ("digits", 30)])
def test_newton_takes_few_steps_and_says_what_it_did(name, steps):
    X, y = SETS[
        name
    ]  # of the digits, most steps are gradients in a cheaper metric: a Hessian of 650 weights costs dozens of them
    model = LogisticRegression().fit(X, y)
    assert model.converged_ and model.n_iter_[0] <= steps
    assert model.gradient_norm_ <= 1e-6
    assert len(model.history_["loss"]) == model.n_iter_[0] + 1


@pytest.mark.parametrize("K", [2, 3])
def test_singular_problems_without_penalty(K):
    """A constant column, a column twice, and no penalty: many optima; the fit is one of them."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((400, 3))
    y = (A @ rng.standard_normal((3, K)) + 2 * rng.gumbel(size=(400, K))).argmax(axis=1)
    X = np.column_stack([A, np.full(400, 3.0), A[:, 0]])
    model = LogisticRegression(C=np.inf, tol=1e-9).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(
        model.predict_proba(X), LogisticRegression(C=np.inf, tol=1e-9).fit(A, y).predict_proba(A), atol=1e-7
    )


@pytest.mark.parametrize("K", [2, 3])
def test_badly_scaled_columns(K):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((500, 4))
    y = (A @ rng.standard_normal((4, K)) + rng.gumbel(size=(500, K))).argmax(axis=1)
    scale = np.array([1e-6, 1.0, 1e3, 1e6])
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(A, y)
    scaled = LogisticRegression(C=np.inf, tol=1e-10).fit(A * scale, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
def test_other_types_of_features(dtype):
    X, y = SETS["digits"]
    expected = LogisticRegression(tol=1e-10).fit(X, y)
    actual = LogisticRegression(tol=1e-8).fit(X.astype(dtype), y)
    np.testing.assert_allclose(actual.coef_, expected.coef_, atol=1e-4)
    assert np.array_equal(actual.predict(X.astype(dtype)), expected.predict(X))


def test_pipelines_search_clone_and_pickle():
    X, y = SETS["wine"]
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0]}, cv=3).fit(pd.DataFrame(X).add_prefix("column "), y)
    assert search.best_score_ > 0.95
    model = search.best_estimator_[-1]
    assert list(model.feature_names_in_[:2]) == ["column 0", "column 1"]
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.coef_, model.coef_)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).mean() > 0.95


def test_names_of_columns_are_checked():
    X, y = SETS["iris"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LogisticRegression().fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def test_labels_with_names():
    X, y = SETS["iris"]
    names = np.array(["setosa", "versicolor", "virginica"])
    model, plain = LogisticRegression().fit(X, names[y]), LogisticRegression().fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X), names[plain.predict(X)])


def test_warm_start():
    X, y = SETS["digits"]
    model = LogisticRegression(warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_[0] == 0
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:, :10], y)


def test_warm_start_from_gradient_descent():
    """Random weights do not add up to 0 over the classes, as Newton's own do."""
    X, y = SETS["iris"]
    model = LogisticRegression(solver="gd", max_iter=3, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    model.set_params(solver="newton", max_iter=None).fit(X, y)
    assert model.converged_ and model.n_iter_[0] <= 15
    np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, y).coef_, atol=1e-5)


def test_warm_start_drops_the_intercept():
    X, y = SETS["breast_cancer"]
    X = StandardScaler().fit_transform(X) + 1
    model = LogisticRegression(warm_start=True, tol=1e-9).fit(X, y)
    model.set_params(fit_intercept=False).fit(X, y)
    assert model.intercept_ == 0
    np.testing.assert_allclose(model.coef_, LogisticRegression(fit_intercept=False, tol=1e-9).fit(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e30, 1e160])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_huge_and_tiny_weights(unit, dtype):
    X, y = SETS["wine"]
    X = StandardScaler().fit_transform(X).astype(dtype)
    plain = LogisticRegression().fit(X, y)
    scaled = LogisticRegression(C=1 / unit).fit(X, y, np.full(len(y), unit))
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-5)


def test_float32_predictions_are_those_of_float64():
    X, y = SETS["breast_cancer"]
    X = (100 * StandardScaler().fit_transform(X) + 1e6).astype(np.float32)
    model = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(X.astype(float)), atol=1e-6)


def test_verbose_shows_progress(capsys):
    X, y = SETS["iris"]
    LogisticRegression(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[newton]       150 rows: 5 steps, loss 28.8938"
    assert lines[1].startswith("[newton]     0  loss 28.8938  errors 4  norm 6.76279")


def test_sparse_is_dense():
    X, y = SETS["digits"]
    ours = LogisticRegression(tol=1e-10).fit(sparse.csr_array(X), y)
    assert ours.solver_ == "newton-cg" and ours.converged_  # another way to the same weights
    np.testing.assert_allclose(ours.coef_, LogisticRegression(tol=1e-10).fit(X, y).coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(sparse.csr_array(X)), ours.predict_proba(X), atol=1e-12)


def test_log_probabilities_stay_finite():
    X = np.array([[-1e6], [-1.0], [1.0], [1e6]])
    for y in ([0, 0, 1, 1], [0, 1, 1, 2]):
        log_p = LogisticRegression(C=10).fit(X / 1e6, y).predict_log_proba(X * 1e3)
        assert np.isfinite(log_p).all() and log_p.min() < -1000
