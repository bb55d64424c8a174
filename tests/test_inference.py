"""What an unpenalised fit says of itself: whether there is a maximum at all, and how certain the weights are."""

import warnings

import numpy as np
import pytest
from scipy import optimize

from fastdisc import LogisticRegression
from fastdisc.exceptions import SeparationWarning

EXACT = ("newton", "newton-cg", "lbfgs", "proximal")
FREE = {"tol": 1e-10, "C": np.inf}


def made(n=500, d=4, K=3, seed=0):
    """Rows drawn from the model itself: classes overlap, so that a maximum of the likelihood exists."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) + 2
    y = (X @ (rng.standard_normal((d, K)) / np.arange(1, d + 1)[:, None]) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def apart(K, n, quasi):
    """Classes that a column separates: all of their rows, or only the last class's rows where it is not 0."""
    X, y, _ = made(n, K=K)
    X = X / [1.0, 2.0, 3.0, 4.0]
    if quasi:
        X[:, 2] = (y == K - 1) & (np.arange(n) % 3 == 0)
    else:
        X[:, 2] += 20 * y
    return X, y


@pytest.mark.parametrize("quasi", [True, False])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver, n", [*((solver, 200) for solver in EXACT), ("newton", 30_000)])
def test_separation_is_noticed(K, quasi, n, solver):
    X, y = apart(K, n, quasi)
    with pytest.warns(SeparationWarning, match="no maximum"):
        model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.converged_
    LogisticRegression(C=10.0).fit(X, y)  # with a penalty there is nothing to warn of


def without_end(X, y, K):
    """Whether some direction of the weights raises some rows' odds and lowers none, by a linear program."""
    A = np.column_stack([np.ones(len(y)), X])
    rows = [np.kron(np.eye(K)[r] - np.eye(K)[k], a) for a, r in zip(A, y, strict=True) for k in range(K) if k != r]
    R = np.array(rows)
    found = optimize.linprog(-R.sum(axis=0), A_ub=-R, b_ub=np.zeros(len(R)), bounds=[(-1, 1)] * R.shape[1])
    return -found.fun > 1e-6


@pytest.mark.parametrize("K", [2, 3])
def test_separation_is_what_a_linear_program_finds(K):
    answers = []
    for seed in range(20):
        X, y, _ = made(20 * K, 3, K, seed)
        if len(np.unique(y)) < K:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LogisticRegression(C=np.inf).fit(X, y)
        answers.append(any(warning.category is SeparationWarning for warning in caught))
        assert len(caught) == answers[-1] == without_end(X, y, K), f"seed {seed}"
    assert any(answers) and not all(answers)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n", [500, 30_000])
def test_ordinary_data_are_not_called_separable(n, K):
    for seed in range(3):
        X, y, _ = made(n, K=K, seed=seed)
        assert LogisticRegression(C=np.inf).fit(X, y).converged_


def check_summary(ours, theirs, params):
    close(ours.estimate, params.ravel())
    close(ours.std_error, np.asarray(theirs.bse).T.ravel())
    close(ours.z, np.asarray(theirs.tvalues).T.ravel())
    close(ours.p_value, np.asarray(theirs.pvalues).T.ravel())
    close(ours.conf_int, np.asarray(theirs.conf_int()).reshape(-1, 2))
    close([ours.log_likelihood, ours.aic], [theirs.llf, theirs.aic])


@pytest.mark.parametrize("n", [500, 30_000])
@pytest.mark.parametrize("intercept", [True, False])
def test_summary_is_that_of_statsmodels(intercept, n):
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = made(n, K=2)
    theirs = sm.Logit(y, sm.add_constant(X) if intercept else X).fit(disp=0, method="newton", tol=1e-12)
    ours = LogisticRegression(fit_intercept=intercept, **FREE).fit(X, y).summary()
    check_summary(ours, theirs, theirs.params)
    assert ours.names == ["intercept"] * intercept + ["x0", "x1", "x2", "x3"]
    assert ours.n_rows == n and "log-likelihood" in str(ours)
    np.testing.assert_allclose(ours.to_frame().loc["x1", "estimate"], theirs.params[1 + intercept], rtol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("reference", [None, 0, 1, 2])
def test_summary_of_three_classes(reference, standardize):
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = made()
    order = [0, 1, 2] if reference is None else [reference, *(k for k in range(3) if k != reference)]
    theirs = sm.MNLogit(np.argsort(order)[y], sm.add_constant(X)).fit(disp=0, method="newton", tol=1e-12, maxiter=50)
    ours = LogisticRegression(reference_class=reference, standardize=standardize, **FREE).fit(X, y).summary()
    check_summary(ours, theirs, theirs.params.T)
    assert ours.names[0] == f"{order[1]}: intercept" and ours.names[-1] == f"{order[2]}: x3"


def test_summary_needs_a_likelihood():
    X, y, _ = made()
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.summary(level=0.5).conf_int[0, 0] > model.summary().conf_int[0, 0]
    for penalised in (LogisticRegression(C=1e6).fit(X, y), model.set_params(C=1.0).fit(X, y)):
        with pytest.raises(ValueError, match=r"C=np\.inf"):
            penalised.summary()
    with pytest.raises(ValueError, match="level"):
        LogisticRegression(C=np.inf).fit(X, y).summary(level=1.5)
