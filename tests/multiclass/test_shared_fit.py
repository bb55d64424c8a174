"""Logistic discriminants fitted over shared rows equal those fitted separately."""

import numpy as np
import pytest
from helpers.data_sets import SETS
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fastdisc import LogisticRegression, OneVsRestClassifier, PairwiseClassifier
from fastdisc._solvers import newton
from fastdisc.basis import Quadratic
from fastdisc.geometry import boundary_2d, hyperplane
from fastdisc.multiclass.shared_fit import SharedFit

KINDS = pytest.mark.parametrize("kind", [PairwiseClassifier, OneVsRestClassifier])


@pytest.fixture
def fit_shared(monkeypatch):
    """Fit a model, and check that its problems were solved over shared rows."""

    def fit(model, *data, **more):
        calls, solve = [], newton.solve_shared
        with monkeypatch.context() as patch:
            patch.setattr(newton, "solve_shared", lambda *a, **k: calls.append(1) or solve(*a, **k))
            model.fit(*data, **more)
        assert calls
        return model

    return fit


@pytest.fixture
def fit_separately(monkeypatch):
    """Fit a model, one problem after the other."""

    def fit(model, *data, **more):
        with monkeypatch.context() as patch:
            patch.setattr(SharedFit, "supports", lambda estimator: False)
            patch.delattr(newton, "solve_shared")
            return model.fit(*data, **more)

    return fit


def draw_classes(rng, n=20_000, d=6, K=4):
    Z = rng.standard_normal((n, d))
    y = (Z @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return Z * np.arange(1, d + 1) + 2, y


def assert_same_fits(shared, separate, tol):
    np.testing.assert_allclose(shared.coef_, separate.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(shared.intercept_, separate.intercept_, rtol=tol, atol=10 * tol)
    for a, b in zip(shared.estimators_, separate.estimators_, strict=True):
        assert a.converged_ and a.solver_ == "newton"
        assert a.n_features_in_ == b.n_features_in_ and np.array_equal(a.classes_, b.classes_)
        np.testing.assert_allclose(a.priors_, b.priors_)
        np.testing.assert_allclose(a.history_["loss"][-1], b.history_["loss"][-1], rtol=1e-9)
        np.testing.assert_allclose(a.history_["errors"][-1], b.history_["errors"][-1], rtol=1e-3)


# --- equal weights --------------------------------------------------------------------------------

CASES = ("plain", "float32", "csr", "F order", "sorted", "weights", "no intercept", "small C")


@KINDS
@pytest.mark.parametrize("case", CASES)
def test_shared_fits_equal_separate_fits(kind, case, fit_shared, fit_separately, rng):
    X, y = draw_classes(rng)
    options, more = {"tol": 1e-9}, {}
    if case == "float32":
        X = X.astype(np.float32)
    elif case == "csr":
        X = sparse.csr_array(np.where(np.abs(X) > 2, X, 0))
    elif case == "F order":
        X = np.asfortranarray(X)
    elif case == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    elif case == "weights":
        more["sample_weight"] = rng.random(len(y)) * 3
    elif case == "no intercept":
        options["fit_intercept"] = False
    elif case == "small C":
        options["C"] = 1e-4
    names = np.array(["a", "b", "c", "d"])[y]
    shared = fit_shared(kind(LogisticRegression(**options)), X, names, **more)
    separate = fit_separately(kind(LogisticRegression(**options)), X, names, **more)
    assert_same_fits(shared, separate, 2e-6)
    assert np.array_equal(shared.predict(X[:200]), separate.predict(X[:200]))


@KINDS
def test_few_rows_of_many_classes(kind, fit_shared, fit_separately):
    estimator, data = LogisticRegression(C=0.01, tol=1e-9), SETS["digits"]
    shared, separate = fit_shared(kind(estimator), *data), fit_separately(kind(estimator), *data)
    assert_same_fits(shared, separate, 1e-6)


@KINDS
def test_rare_classes_and_outliers(kind, fit_shared, fit_separately, rng):
    X, y = draw_classes(rng)
    X[::1000] *= 30
    y[y == 3] = 0
    y[:40] = 3
    estimator = LogisticRegression(tol=1e-9)
    shared, separate = fit_shared(kind(estimator), X, y), fit_separately(kind(estimator), X, y)
    assert_same_fits(shared, separate, 1e-5)


def test_overlapping_classes(fit_shared, fit_separately, rng):
    X, y = draw_classes(rng)
    some = (y == 3) | (rng.random(len(y)) < 0.1)
    Y = np.column_stack([y == 0, y > 1, some, np.ones(len(y), bool)]).astype(int)
    estimator = LogisticRegression(tol=1e-9)
    shared = fit_shared(OneVsRestClassifier(estimator), X, Y)
    separate = fit_separately(OneVsRestClassifier(estimator), X, Y)
    for a, b in zip(shared.estimators_[:3], separate.estimators_[:3], strict=True):
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-7)
    assert np.array_equal(shared.predict(X), separate.predict(X))
    assert shared.predict(X)[:, 3].all()


@KINDS
def test_weights_do_not_depend_on_threads(kind, rng):
    X, y = draw_classes(rng, n=60_000)
    one, three = (kind(n_threads=n).fit(X, y) for n in (1, 3))
    assert np.array_equal(one.coef_, three.coef_)
    assert np.array_equal(one.intercept_, three.intercept_)


@pytest.mark.parametrize("name", ["numba", "numpy"])
def test_backends_find_the_same_weights(rng, name):
    X, y = draw_classes(rng, n=600)
    cython, other = (
        PairwiseClassifier(LogisticRegression(tol=1e-10), backend=backend).fit(X, y)
        for backend in ("cython", name)
    )
    np.testing.assert_allclose(other.coef_, cython.coef_, rtol=1e-6, atol=1e-8)
    expected = cython.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), expected, rtol=1e-5, atol=1e-7)


# --- the fitted estimators ------------------------------------------------------------------------


def test_fitted_estimators_have_all_attributes(rng):
    X, y = draw_classes(rng, n=2000)
    model, target = OneVsRestClassifier().fit(X, y), (y == 0).astype(int)
    first, single = model.estimators_[0], LogisticRegression().fit(X, target)
    assert first.score(X, target) == single.score(X, target)
    np.testing.assert_allclose(first.predict_proba(X).sum(axis=1), 1)
    assert first.with_priors([0.5, 0.5]).intercept_ > first.intercept_
    assert model.estimators_[1] is not first
    assert first.get_params() == LogisticRegression().get_params()


UNSUPPORTED = {
    "L1": {"l1_ratio": 1.0},
    "no penalty": {"C": np.inf},
    "gd": {"solver": "gd", "max_iter": 20, "random_state": 0},
    "class_weight": {"class_weight": "balanced"},
    "priors": {"priors": [0.5, 0.5]},
    "standardize": {"standardize": True},
    "early stopping": {"early_stopping": True},
}


def test_plain_logistic_regression_is_supported():
    assert SharedFit.supports(LogisticRegression())


@KINDS
@pytest.mark.parametrize("what", UNSUPPORTED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unsupported_estimators_are_fitted_separately(what, kind, rng):
    X, y = draw_classes(rng, n=500)
    options = UNSUPPORTED[what]
    assert not SharedFit.supports(LogisticRegression(**options))
    model = kind(LogisticRegression(**options)).fit(X, y)
    target = (y == 0).astype(int)
    if kind is PairwiseClassifier:
        X, target = X[y < 2], y[y < 2]
    single = LogisticRegression(**options).fit(X, target)
    np.testing.assert_array_equal(model.estimators_[0].coef_, single.coef_)


@KINDS
def test_discriminants_with_a_basis_are_not_linear(kind, rng):
    X = rng.uniform(-2, 2, (600, 2))
    y = np.digitize((X**2).sum(axis=1), [1.0, 2.5])  # rings
    model = kind(LogisticRegression(C=100, basis=Quadratic())).fit(X, y)
    assert not SharedFit.supports(model.estimator) and not hasattr(model, "coef_")
    assert model.score(X, y) > 0.9
    assert (model.predict_proba(X).argmax(axis=1) == y).mean() > 0.9
    with pytest.raises(ValueError, match="has a basis"):
        hyperplane(model.estimators_[0])
    with pytest.raises(ValueError, match="not a linear model"):
        boundary_2d(model, (-2, 2, -2, 2))


def test_wide_data_are_fitted_separately(rng):
    X, y = rng.standard_normal((60, 400)), np.arange(60) % 3
    assert {each.solver_ for each in PairwiseClassifier().fit(X, y).estimators_} == {"newton-cg"}


# --- messages -------------------------------------------------------------------------------------


def test_warning_if_iterations_are_not_enough(rng):
    X, y = draw_classes(rng)
    with pytest.warns(ConvergenceWarning, match="solver 'newton' stopped after 1 iterations"):
        model = OneVsRestClassifier(LogisticRegression(max_iter=1, tol=1e-12)).fit(X, y)
    assert not all(each.converged_ for each in model.estimators_)


def test_verbose_prints_iterations(rng, capsys):
    X, y = draw_classes(rng, n=500)
    PairwiseClassifier(verbose=1).fit(X, y)
    assert "[newton]" in capsys.readouterr().out


@KINDS
def test_error_names_a_cell_by_its_row_in_X(kind, rng):
    """Rows are sorted by class within a fit."""
    X, y = draw_classes(rng, n=5000)
    X[1234, 2] = np.nan
    with pytest.raises(ValueError, match="NaN, first in row 1234, column 2"):
        kind().fit(X, y)
