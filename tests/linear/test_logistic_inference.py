"""Fits without a penalty: warnings of separable classes, and `summary`."""

import warnings

import numpy as np
import pytest
from helpers.data_sets import draw_logistic
from scipy import optimize

from fastdisc import LogisticRegression
from fastdisc.exceptions import SeparationWarning

SOLVERS = ("newton", "newton-cg", "lbfgs", "proximal")
UNPENALIZED = {"tol": 1e-10, "C": np.inf}


def assert_equal(actual, expected, tol=1e-6):
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


# --- separable classes ----------------------------------------------------------------------------


def draw_separable(K, n, partial):
    """Classes that a column separates; with `partial`, only the rows of the last class where the
    column is not 0."""
    X, y, _ = draw_logistic(n, K=K)
    X = X / [1.0, 2.0, 3.0, 4.0]
    if partial:
        X[:, 2] = (y == K - 1) & (np.arange(n) % 3 == 0)
    else:
        X[:, 2] += 20 * y
    return X, y


@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver, n", [*((solver, 200) for solver in SOLVERS), ("newton", 30_000)])
def test_separation_warns_without_a_penalty_only(K, partial, n, solver):
    X, y = draw_separable(K, n, partial)
    with pytest.warns(SeparationWarning, match="the likelihood has no maximum"):
        model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.converged_
    LogisticRegression(C=10.0).fit(X, y)


def is_separable(X, y, K):
    """Whether some change of the weights raises the odds of some rows and lowers none: by a linear
    program."""
    A = np.column_stack([np.ones(len(y)), X])
    rows = [
        np.kron(np.eye(K)[r] - np.eye(K)[k], a)
        for a, r in zip(A, y, strict=True)
        for k in range(K)
        if k != r
    ]
    R = np.array(rows)
    bounds = [(-1, 1)] * R.shape[1]
    found = optimize.linprog(-R.sum(axis=0), A_ub=-R, b_ub=np.zeros(len(R)), bounds=bounds)
    return -found.fun > 1e-6


@pytest.mark.parametrize("K", [2, 3])
def test_separation_is_what_a_linear_program_finds(K):
    warned = []
    for seed in range(20):
        X, y, _ = draw_logistic(20 * K, 3, K, seed)
        if len(np.unique(y)) < K:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LogisticRegression(C=np.inf).fit(X, y)
        warned.append(any(warning.category is SeparationWarning for warning in caught))
        assert len(caught) == warned[-1] == is_separable(X, y, K), f"seed {seed}"
    assert any(warned) and not all(warned)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n", [500, 30_000])
def test_overlapping_classes_do_not_warn(n, K):
    for seed in range(3):
        X, y, _ = draw_logistic(n, K=K, seed=seed)
        assert LogisticRegression(C=np.inf).fit(X, y).converged_


# --- summary --------------------------------------------------------------------------------------


def assert_same_summary(ours, theirs, params):
    assert_equal(ours.estimate, params.ravel())
    assert_equal(ours.std_error, np.asarray(theirs.bse).T.ravel())
    assert_equal(ours.z, np.asarray(theirs.tvalues).T.ravel())
    assert_equal(ours.p_value, np.asarray(theirs.pvalues).T.ravel())
    assert_equal(ours.conf_int, np.asarray(theirs.conf_int()).reshape(-1, 2))
    assert_equal([ours.log_likelihood, ours.aic], [theirs.llf, theirs.aic])


@pytest.mark.parametrize("n", [500, 30_000])
@pytest.mark.parametrize("intercept", [True, False])
def test_summary_of_two_classes_equals_that_of_statsmodels(intercept, n):
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = draw_logistic(n, K=2)
    logit = sm.Logit(y, sm.add_constant(X) if intercept else X)
    theirs = logit.fit(disp=0, method="newton", tol=1e-12)
    ours = LogisticRegression(fit_intercept=intercept, **UNPENALIZED).fit(X, y).summary()
    assert_same_summary(ours, theirs, theirs.params)
    assert ours.names == ["intercept"] * intercept + ["x0", "x1", "x2", "x3"]
    assert ours.n_rows == n and "log-likelihood" in str(ours)
    estimate = ours.to_frame().loc["x1", "estimate"]
    np.testing.assert_allclose(estimate, theirs.params[1 + intercept], rtol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("reference", [None, 0, 1, 2])
def test_summary_of_three_classes_equals_that_of_statsmodels(reference, standardize):
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = draw_logistic()
    first = 0 if reference is None else reference
    order = [first, *(k for k in range(3) if k != first)]
    logit = sm.MNLogit(np.argsort(order)[y], sm.add_constant(X))
    theirs = logit.fit(disp=0, method="newton", tol=1e-12, maxiter=50)
    options = {"reference_class": reference, "standardize": standardize}
    ours = LogisticRegression(**options, **UNPENALIZED).fit(X, y).summary()
    assert_same_summary(ours, theirs, theirs.params.T)
    assert ours.names[0] == f"{order[1]}: intercept" and ours.names[-1] == f"{order[2]}: x3"


def test_level_of_the_confidence_intervals():
    X, y, _ = draw_logistic()
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.summary(level=0.5).conf_int[0, 0] > model.summary().conf_int[0, 0]
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        model.summary(level=1.5)


def test_summary_needs_a_fit_without_a_penalty():
    X, y, _ = draw_logistic()
    refitted = LogisticRegression(C=np.inf).fit(X, y).set_params(C=1.0).fit(X, y)
    for penalized in (LogisticRegression(C=1e6).fit(X, y), refitted):
        with pytest.raises(ValueError, match=r"needs a maximum-likelihood fit.*C=np\.inf"):
            penalized.summary()
