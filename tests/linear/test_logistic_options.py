"""LogisticRegression: offsets, reference classes, priors, standardisation, stopping, paths."""

import pickle

import numpy as np
import pytest
from helpers.data_sets import SETS, STANDARDIZED, draw_logistic, weights_of
from scipy import sparse, special
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.preprocessing import StandardScaler

from fastdisc import LogisticRegression

SOLVERS = ("newton", "newton-cg", "lbfgs", "proximal")  # those that reach a tight tolerance
SMALL_SETS = ("iris", "wine", "breast_cancer")
UNPENALIZED = {"tol": 1e-10, "C": np.inf}
FORMATS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


def assert_equal(actual, expected, tol=1e-6):
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def test_two_probabilities_are_sigmoids():
    X, y, _ = draw_logistic(K=2)
    model = LogisticRegression().fit(X, y)
    X = np.vstack([X, 30 * X, np.zeros_like(X)])
    z = model.decision_function(X)
    expected = np.column_stack([special.expit(-z), special.expit(z)])
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-13)


# --- offsets --------------------------------------------------------------------------------------


def test_offset_has_the_meaning_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y, rng = draw_logistic(K=2)
    offset, weight = rng.standard_normal(len(y)), rng.integers(1, 4, len(y))
    options = {"family": sm.families.Binomial(), "offset": offset, "freq_weights": weight}
    theirs = sm.GLM(y, sm.add_constant(X), **options).fit(tol=1e-13, maxiter=100)
    ours = LogisticRegression(**UNPENALIZED).fit(X, y, weight, offset=offset)
    assert_equal(weights_of(ours)[0], theirs.params)
    assert_equal(ours.summary().std_error, theirs.bse)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver, n", [*((solver, 500) for solver in SOLVERS), ("newton", 30_000)])
@FORMATS
def test_offset_replaces_weights(K, solver, form, n):
    """With the scores of some weights as offsets, a fit finds the difference from its optimum."""
    X, y, rng = draw_logistic(n, K=K)
    X = X * [1.0, 0.5, 0.3, 0.25]
    A = rng.standard_normal((1 if K == 2 else K, 5))
    A -= A.mean(axis=0) * (K > 2)
    options = {"solver": solver, "C": np.inf, "tol": 1e-8}
    plain = LogisticRegression(**options).fit(form(X), y)
    model = LogisticRegression(**options).fit(form(X), y, offset=X @ A[:, 1:].T + A[:, 0])
    weights = weights_of(plain), weights_of(model) + A
    expected, actual = (W - W.mean(axis=0) * (K > 2) for W in weights)
    assert_equal(actual, expected, tol=1e-5)


# --- reference classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("reference", ["setosa", "virginica"])
def test_reference_class_has_zero_weights(solver, reference):
    X, y = SETS["iris"]
    X = X + np.random.default_rng(0).standard_normal(X.shape)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    plain = LogisticRegression(**UNPENALIZED).fit(X, y)
    options = {"C": np.inf, "tol": 1e-8, "solver": solver, "reference_class": reference}
    model = LogisticRegression(**options).fit(X, y)
    row = list(model.classes_).index(reference)
    assert not model.coef_[row].any() and model.intercept_[row] == 0
    assert_equal(model.predict_proba(X), plain.predict_proba(X), tol=1e-5)
    assert_equal(weights_of(model), weights_of(plain) - weights_of(plain)[row], tol=1e-4)


def test_reference_class_of_two_changes_nothing():
    X, y, _ = draw_logistic(K=2)
    plain = LogisticRegression().fit(X, y)
    for reference in (0, 1):
        model = LogisticRegression(reference_class=reference).fit(X, y)
        assert np.array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@FORMATS
def test_penalty_is_relative_to_the_reference_class(solver, form):
    """The gradient of the loss plus ||v||^2 / 2C, v_k the weights of the other classes, is 0."""
    X, y, _ = draw_logistic()
    options = {"C": 0.1, "reference_class": 1, "solver": solver, "tol": 1e-9}
    model = LogisticRegression(**options).fit(form(X), y)
    E = model.predict_proba(X) - np.eye(3)[y]
    g = np.column_stack([E.sum(axis=0), E.T @ X + model.coef_ / 0.1])[[0, 2]]
    assert np.abs(g).max() < 1e-5


# --- priors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3])
def test_priors_shift_log_odds(K):
    X, y, _ = draw_logistic(K=K)
    plain = LogisticRegression().fit(X, y)
    before = np.bincount(y) / len(y)
    priors = np.array([0.2, 0.8]) if K == 2 else np.array([0.2, 0.7, 0.1])
    np.testing.assert_allclose(plain.priors_, before)
    moved, fitted = plain.with_priors(priors), LogisticRegression(priors=priors).fit(X, y)
    assert np.array_equal(moved.coef_, plain.coef_) and np.array_equal(plain.priors_, before)
    log_P, P = plain.predict_log_proba(X), plain.predict_proba(X)
    shift = np.log(priors / before)
    for model in (moved, fitted):
        np.testing.assert_allclose(model.priors_, priors)
        odds = model.predict_log_proba(X) - model.predict_log_proba(X)[:, :1]
        expected = np.broadcast_to(shift - shift[0], odds.shape)
        np.testing.assert_allclose(odds - (log_P - log_P[:, :1]), expected, atol=1e-10)
        Q = P * priors / before
        Q /= Q.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X), Q, atol=1e-12)
        np.testing.assert_allclose(model.with_priors(before).predict_proba(X), P, atol=1e-12)


def test_priors_are_weighted_class_frequencies():
    X, y, _ = draw_logistic()
    balanced = LogisticRegression(class_weight="balanced").fit(X, y)
    assert balanced.priors_ == pytest.approx([1 / 3] * 3)
    weight = np.where(y == 0, 2.0, 1.0)
    expected = np.bincount(y, weight) / weight.sum()
    assert LogisticRegression().fit(X, y, weight).priors_ == pytest.approx(expected)


def test_prior_of_a_class_without_weight_is_refused():
    X, y, _ = draw_logistic()
    with pytest.raises(ValueError, match="priors: class 0 has no weight"):
        LogisticRegression(priors=[0.2, 0.3, 0.5]).fit(X, y, (y > 0).astype(float))


# --- standardize ----------------------------------------------------------------------------------


@FORMATS
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"l1_ratio": 1.0}, {"solver": "lbfgs"}], ids=str
)
@pytest.mark.parametrize("name", SMALL_SETS)
def test_standardize_equals_a_standard_scaler(name, options, form):
    X, y = SETS[name]
    X = np.column_stack(
        [X, np.full(len(X), 0.3)]
    )  # a constant column has no deviation to divide by
    weight = np.random.default_rng(0).random(len(y))
    scaler = StandardScaler().fit(X, sample_weight=weight)
    Z, options = scaler.transform(X), {"C": 0.1, "tol": 1e-8} | options
    scaled = LogisticRegression(**options).fit(Z, y, weight)
    model = LogisticRegression(standardize=True, **options).fit(form(X), y, weight)
    assert_equal(model.mean_, scaler.mean_, tol=1e-9)
    assert_equal(model.scale_, scaler.scale_, tol=1e-9)
    assert_equal(model.coef_ * scaler.scale_, scaled.coef_, tol=1e-5)
    assert_equal(model.predict_proba(form(X)), scaled.predict_proba(Z), tol=1e-5)


def test_standardized_fit_does_not_depend_on_units():
    X, y, _ = draw_logistic()
    unit = np.array([1e-5, 1.0, 1e3, 1e6])
    options = {"C": 0.01, "standardize": True, "tol": 1e-10}
    scaled = LogisticRegression(**options).fit(sparse.csr_array(X * unit), y)
    for A in (X, sparse.csr_array(X)):
        model = LogisticRegression(**options).fit(A, y)
        assert_equal(scaled.coef_ * unit, model.coef_, tol=1e-7)


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*SOLVERS, "gd"])
def test_early_stopping_at_the_first_iteration_without_errors(solver):
    X, y = SETS["iris"]
    X, y = X[y < 2], y[y < 2]
    options = {"C": 1e6, "tol": 1e-12, "early_stopping": True, "random_state": 0}
    model = LogisticRegression(solver=solver, **options).fit(X, y)
    errors = model.history_["errors"]
    assert errors[-1] == 0 and all(errors[:-1])
    assert model.score(X, y) == 1


@pytest.mark.parametrize("patience", [True, 3])
def test_early_stopping_when_errors_stop_decreasing(patience):
    X, y, _ = draw_logistic()
    options = {"tol": 1e-14, "early_stopping": patience, "random_state": 0}
    model = LogisticRegression(solver="gd", **options).fit(X, y)
    errors, wait = np.array(model.history_["errors"]), 10 if patience is True else patience
    assert not model.converged_ and len(errors) > wait
    assert errors[-wait:].min() >= errors[:-wait].min()
    waited = [i - errors[: i + 1].argmin() for i in range(len(errors))]
    assert max(waited[:-1]) < wait and waited[-1] == wait


@pytest.mark.parametrize("solver", [*SOLVERS, "gd"])
def test_callback_receives_every_iteration(solver):
    X, y = STANDARDIZED["wine"]
    received = []
    callback = lambda step, values: received.append((step, values))  # noqa: E731
    model = LogisticRegression(solver=solver, C=0.1, callback=callback).fit(X, y)
    assert [step for step, _ in received] == list(range(len(model.history_["loss"])))
    for key in ("loss", "errors", "norm"):
        assert [values[key] for _, values in received] == model.history_[key]


def test_callback_stops_the_solver_without_a_warning():
    X, y = STANDARDIZED["wine"]
    options = {"callback": lambda step, values: step == 3, "random_state": 0}
    model = LogisticRegression(solver="gd", **options).fit(X, y)
    assert model.n_iter_[0] == 3 and not model.converged_


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"l1_ratio": 0.7}, {"standardize": True}, {"priors": [0.2, 0.2, 0.6]}], ids=str
)
def test_path_equals_separate_fits(options):
    X, y = SETS["wine"]
    Cs = [0.1, 10.0, 0.001, 1.0]
    model = LogisticRegression(tol=1e-9, **options)
    path = model.fit_path(X, y, Cs)
    assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")
    assert path.coefs.shape == (4, 3, 13) and path.intercepts.shape == (4, 3)
    assert path.n_iter.shape == (4,)
    assert list(path.Cs) == Cs and (path.gradient_norms <= 1e-9).all()
    for i, C in enumerate(Cs):
        single = LogisticRegression(tol=1e-9, C=C, **options).fit(X, y)
        assert_equal(path.coefs[i], single.coef_, tol=1e-5)
        assert_equal(path.intercepts[i], single.intercept_, tol=1e-4)


# --- names of parameters in scikit-learn ----------------------------------------------------------

EQUIVALENT_OPTIONS = [
    ({"penalty": "l1", "solver": "liblinear"}, {"l1_ratio": 1.0}),
    ({"penalty": "l1", "solver": "saga"}, {"l1_ratio": 1.0}),
    ({"penalty": "elasticnet", "solver": "saga", "l1_ratio": 0.5}, {"l1_ratio": 0.5}),
    ({"penalty": "l2", "solver": "newton-cholesky"}, {}),
    ({"penalty": "l2", "l1_ratio": 0.5}, {}),
    ({"penalty": None}, {"C": np.inf}),
    ({"penalty": None, "C": 0.01}, {"C": np.inf}),
    ({"solver": "sag", "n_jobs": -1, "dual": False, "intercept_scaling": 2.0, "verbose": 0}, {}),
]


@pytest.mark.parametrize("theirs, ours", EQUIVALENT_OPTIONS, ids=str)
def test_options_of_sklearn_are_accepted(theirs, ours):
    X, y, _ = draw_logistic(K=2)
    model, expected = LogisticRegression(**theirs).fit(X, y), LogisticRegression(**ours).fit(X, y)
    assert model.solver_ == ("proximal" if ours.get("l1_ratio") else "newton")
    assert np.array_equal(weights_of(model), weights_of(expected))


def test_penalty_may_be_the_first_positional_argument():
    X, y = STANDARDIZED["iris"]
    model = LogisticRegression("l1", C=0.1, tol=1e-8).fit(X, y)
    options = {"solver": "saga", "l1_ratio": 1.0, "tol": 1e-9, "max_iter": 10_000}
    theirs = SklearnLogisticRegression(C=0.1, random_state=0, **options).fit(X, y)
    assert_equal(model.coef_, theirs.coef_, tol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l1_ratio": 0.5},
        {"standardize": True},
        {"C": np.inf, "reference_class": 1},
        {"priors": [0.1, 0.2, 0.7]},
    ],
    ids=str,
)
def test_clone_and_pickle(options):
    X, y, _ = draw_logistic()
    model = LogisticRegression(**options).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.get_params() == model.get_params()
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert np.array_equal(weights_of(fresh.fit(X, y)), weights_of(model))
    if options.get("C"):
        assert str(copy.summary()) == str(model.summary())
