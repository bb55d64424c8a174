"""LogisticRegression: the optimum of scikit-learn's estimator, and its conventions."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import oracles
from helpers.data_sets import SETS, STANDARDIZED
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastdisc import LogisticRegression


def sklearn_fit(X, y, sample_weight=None, **options):
    options = {"solver": "newton-cholesky", "tol": 1e-13, "max_iter": 1000} | options
    return SklearnLogisticRegression(**options).fit(X, y, sample_weight)


# --- against scikit-learn -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_results_equal_those_of_sklearn(name, C):
    X, y = STANDARDIZED[name]
    ours, theirs = LogisticRegression(C=C, tol=1e-10).fit(X, y), sklearn_fit(X, y, C=C)
    assert ours.converged_ and ours.gradient_norm_ <= 1e-10
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(
        ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    "options",
    [{"fit_intercept": False}, {"class_weight": "balanced"}, {"class_weight": {0: 2.0, 1: 0.5}}],
    ids=str,
)
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_options_have_the_meaning_of_sklearn(name, options):
    X, y = STANDARDIZED[name]
    weight = np.random.default_rng(0).random(len(y))
    ours = LogisticRegression(tol=1e-10, **options).fit(X, y, weight)
    theirs = sklearn_fit(X, y, weight, **options)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
@pytest.mark.parametrize("solver", ["newton", "gd"])
def test_backends_and_solvers_find_the_same_optimum(backend, solver):
    X, y = STANDARDIZED["iris"]
    options = {"tol": 1e-9, "max_iter": 50_000, "random_state": 0}
    ours = LogisticRegression(solver=solver, backend=backend, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, sklearn_fit(X, y).coef_, atol=1e-6)


# --- gradient descent -----------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3])
def test_gradient_descent_equals_the_published_algorithm(K):
    """Figures 10.6 and 10.8 step by step, from the same random weights."""
    X, y = SETS["iris"]
    X, y = X[:: 3 - K + 2][: 50 * K], y[:: 3 - K + 2][: 50 * K]
    X, y = X[y < K], y[y < K]
    options = {"C": np.inf, "eta": 0.001, "max_iter": 25, "random_state": 5}
    with pytest.warns(ConvergenceWarning, match="25 iterations"):
        model = LogisticRegression(solver="gd", **options).fit(X, y)
    start = np.random.RandomState(5).uniform(-0.01, 0.01, (1 if K == 2 else K, 5))
    W, losses, errors = oracles.gradient_descent(X, y, start, 0.001, 25)
    found = np.column_stack([model.intercept_, model.coef_])
    np.testing.assert_allclose(found, W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.history_["loss"], losses, rtol=1e-10)
    assert model.history_["errors"] == errors
    assert len(model.history_["norm"]) == 26
    assert model.history_["norm"][-1] == pytest.approx(np.linalg.norm(W[:, 1:]))


def test_gradient_descent_reports_divergence():
    X, y = SETS["breast_cancer"]
    with pytest.raises(ValueError, match="diverged with eta"), np.errstate(all="ignore"):
        LogisticRegression(solver="gd", eta=1e300, C=1e-3).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_automatic_eta_never_increases_the_loss(name):
    X, y = SETS[name]
    model = LogisticRegression(solver="gd", max_iter=300, random_state=0).fit(X, y)
    loss = model.history_["loss"]
    assert (np.diff(loss) <= 1e-9 * np.abs(loss[:-1])).all()


# --- difficult data -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "max_steps"), [("iris", 15), ("wine", 15), ("breast_cancer", 15), ("digits", 30)]
)
def test_newton_takes_few_steps_and_records_each(name, max_steps):
    # On digits most steps only evaluate a gradient: a Hessian of 650 weights costs dozens of them.
    model = LogisticRegression().fit(*SETS[name])
    assert model.converged_ and model.n_iter_[0] <= max_steps
    assert model.gradient_norm_ <= 1e-6
    assert len(model.history_["loss"]) == model.n_iter_[0] + 1


@pytest.mark.parametrize("K", [2, 3])
def test_singular_hessian_without_penalty(K):
    """A constant column and a repeated one: of many optima, the fit is one."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((400, 3))
    y = (A @ rng.standard_normal((3, K)) + 2 * rng.gumbel(size=(400, K))).argmax(axis=1)
    X = np.column_stack([A, np.full(400, 3.0), A[:, 0]])
    model = LogisticRegression(C=np.inf, tol=1e-9).fit(X, y)
    regular = LogisticRegression(C=np.inf, tol=1e-9).fit(A, y)
    assert model.converged_
    np.testing.assert_allclose(model.predict_proba(X), regular.predict_proba(A), atol=1e-7)


@pytest.mark.parametrize("K", [2, 3])
def test_columns_of_very_different_scale(K):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((500, 4))
    y = (A @ rng.standard_normal((4, K)) + rng.gumbel(size=(500, K))).argmax(axis=1)
    scale = np.array([1e-6, 1.0, 1e3, 1e6])
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(A, y)
    scaled = LogisticRegression(C=np.inf, tol=1e-10).fit(A * scale, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-30, 1e30, 1e160])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_huge_and_tiny_sample_weights(unit, dtype):
    X, y = STANDARDIZED["wine"]
    X = X.astype(dtype)
    plain = LogisticRegression().fit(X, y)
    scaled = LogisticRegression(C=1 / unit).fit(X, y, np.full(len(y), unit))
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
def test_other_types_of_features(dtype):
    X, y = SETS["digits"]
    expected = LogisticRegression(tol=1e-10).fit(X, y)
    actual = LogisticRegression(tol=1e-8).fit(X.astype(dtype), y)
    np.testing.assert_allclose(actual.coef_, expected.coef_, atol=1e-4)
    assert np.array_equal(actual.predict(X.astype(dtype)), expected.predict(X))


def test_sparse_rows_have_the_optimum_of_dense_rows():
    X, y = SETS["digits"]
    ours = LogisticRegression(tol=1e-10).fit(sparse.csr_array(X), y)
    assert ours.solver_ == "newton-cg" and ours.converged_  # not the solver of dense rows
    np.testing.assert_allclose(ours.coef_, LogisticRegression(tol=1e-10).fit(X, y).coef_, atol=1e-6)
    sparse_outputs = ours.predict_proba(sparse.csr_array(X))
    np.testing.assert_allclose(sparse_outputs, ours.predict_proba(X), atol=1e-12)


def test_float32_predictions_equal_those_of_float64():
    X, y = STANDARDIZED["breast_cancer"]
    X = (100 * X + 1e6).astype(np.float32)
    model = LogisticRegression().fit(X, y)
    in_float64 = model.predict_proba(X.astype(float))
    np.testing.assert_allclose(model.predict_proba(X), in_float64, atol=1e-6)


def test_log_probabilities_stay_finite():
    X = np.array([[-1e6], [-1.0], [1.0], [1e6]])
    for y in ([0, 0, 1, 1], [0, 1, 1, 2]):
        log_p = LogisticRegression(C=10).fit(X / 1e6, y).predict_log_proba(X * 1e3)
        assert np.isfinite(log_p).all() and log_p.min() < -1000


# --- warm starts ----------------------------------------------------------------------------------


def test_warm_start_at_the_optimum_takes_no_iteration():
    X, y = SETS["digits"]
    model = LogisticRegression(warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_[0] == 0
    with pytest.raises(ValueError, match=r"warm_start: the last fit had \(10, 64\) weights"):
        model.fit(X[:, :10], y)


def test_warm_start_from_gradient_descent():
    """Its weights do not add up to 0 over the classes, as those of Newton's method do."""
    X, y = SETS["iris"]
    model = LogisticRegression(solver="gd", max_iter=3, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    model.set_params(solver="newton", max_iter=None).fit(X, y)
    assert model.converged_ and model.n_iter_[0] <= 15
    np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, y).coef_, atol=1e-5)


def test_warm_start_without_the_previous_intercept():
    X, y = STANDARDIZED["breast_cancer"]
    X = X + 1
    model = LogisticRegression(warm_start=True, tol=1e-9).fit(X, y)
    model.set_params(fit_intercept=False).fit(X, y)
    cold = LogisticRegression(fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.intercept_ == 0
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-6)


# --- conventions of scikit-learn ------------------------------------------------------------------


def test_pipeline_search_clone_and_pickle():
    X, y = SETS["wine"]
    frame = pd.DataFrame(X).add_prefix("column ")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0]}, cv=3).fit(frame, y)
    assert search.best_score_ > 0.95
    model = search.best_estimator_[-1]
    assert list(model.feature_names_in_[:2]) == ["column 0", "column 1"]
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.coef_, model.coef_)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).mean() > 0.95


def test_feature_names_are_checked():
    X, y = SETS["iris"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LogisticRegression().fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def test_labels_may_be_strings():
    X, y = SETS["iris"]
    names = np.array(["setosa", "versicolor", "virginica"])
    model, plain = LogisticRegression().fit(X, names[y]), LogisticRegression().fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X), names[plain.predict(X)])


def test_verbose_prints_iterations(capsys):
    LogisticRegression(verbose=1).fit(*SETS["iris"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[newton]       150 rows: 5 steps, loss 28.8938"
    assert lines[1].startswith("[newton]     0  loss 28.8938  errors 4  norm 6.76279")
