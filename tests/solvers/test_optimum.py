"""The optimum of each solver on real and on hard data: scikit-learn's, or the conditions of an
optimum as NumPy computes them."""

from functools import cache

import numpy as np
import pytest
from helpers.data_sets import SETS, STANDARDIZED
from helpers.fits import (
    EXACT_SOLVERS,
    FORMS,
    HARD,
    assert_same_weights,
    draw_classes,
    fit,
    scikit_learn,
    violation,
)
from scipy import sparse

from fastdisc import LogisticRegression

ALL_EXACT = pytest.mark.parametrize("solver", EXACT_SOLVERS)


@cache
def expected_weights(name, C):
    return scikit_learn(*STANDARDIZED[name], C=C)


def first_digits(K):
    X, y = SETS["digits"]
    return X[y < K], y[y < K]


@cache
def expected_digits(K):
    return scikit_learn(*first_digits(K), C=1e-3)


@pytest.mark.parametrize("name", SETS)
@ALL_EXACT
def test_optimum_is_that_of_scikit_learn(name, solver):
    C = 0.02 if name == "digits" else 1.0
    found = fit(*STANDARDIZED[name], solver, C=C, tol=1e-8)
    assert found.result.converged and found.result.gradient_norm <= 1e-8
    assert_same_weights(found.V, expected_weights(name, C))


@pytest.mark.parametrize(
    ("solver", "l1_ratio"), [*((solver, 0.0) for solver in EXACT_SOLVERS), ("proximal", 1.0)]
)
def test_intercepts_of_classes_add_up_to_0(solver, l1_ratio):
    """Otherwise scores would differ from solver to solver by what softmax does not see."""
    X, y = STANDARDIZED["iris"]
    model = LogisticRegression(solver=solver, l1_ratio=l1_ratio, tol=1e-8).fit(X, y)
    assert abs(model.intercept_.sum()) < 1e-9


@pytest.mark.parametrize(
    ("form", "K"),
    [*((form, 2) for form in FORMS), *((form, 3) for form in ("float64", "uint8", "csr"))],
)
@ALL_EXACT
def test_types_and_layouts_have_the_same_optimum(solver, form, K):
    X, y = first_digits(K)
    found = fit(FORMS[form](X), y, solver, C=1e-3, tol=1e-8)
    assert found.result.converged
    assert_same_weights(found.V, expected_digits(K), tol=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("solver", (*EXACT_SOLVERS, "gd"))
def test_row_weights_count(solver, name, intercept):
    X, y = STANDARDIZED[name]
    s = np.random.default_rng(0).integers(0, 4, len(y)) + 0.25 * (y == 1)
    found = fit(X, y, solver, C=0.05, tol=1e-8, problem={"s": s, "intercept": intercept})
    expected = scikit_learn(X, y, s, C=0.05, fit_intercept=intercept)
    assert_same_weights(found.V, expected, tol=1e-5)


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("solver", (*EXACT_SOLVERS, "gd"))
def test_class_weights_count(solver, name):
    X, y = STANDARDIZED[name]
    s = np.random.default_rng(0).integers(0, 4, len(y)) + 0.25 * (y == 1)
    options = {"C": 0.05, "class_weight": "balanced"}
    ours = LogisticRegression(solver=solver, tol=1e-8, random_state=0, **options).fit(X, y, s)
    V = np.column_stack([ours.intercept_, ours.coef_])
    assert_same_weights(V, scikit_learn(X, y, s, **options), tol=1e-5)


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs", "proximal"])
@pytest.mark.parametrize("hard", HARD)
def test_hard_data_without_samples(hard, solver):
    X, y, _ = draw_classes(d=5)
    X, y = HARD[hard](X, y)
    found = fit(X, y, solver)
    assert found.result.converged
    assert violation(found.V, X, y, 1.0) <= 2e-6


@ALL_EXACT
@pytest.mark.parametrize(("form", "K"), [("float64", 2), ("float64", 3), ("csr", 2)])
def test_more_columns_than_rows(solver, form, K):
    X, y, _ = draw_classes(40, 100, K)
    X = FORMS[form](X)
    found = fit(X, y, solver)
    assert found.result.converged
    assert violation(found.V, X, y, 1.0) <= 2e-6


@pytest.mark.parametrize("K", [2, 3])
def test_wide_dense_data_too_large_to_copy(K):
    X, y, _ = draw_classes(2100, 2000, K)
    model = LogisticRegression(C=1e-3).fit(X, y)
    assert model.converged_
    V = np.column_stack([model.intercept_, model.coef_])
    assert violation(V, X, y, 1e-3) <= 2e-6


@pytest.mark.parametrize(
    ("solver", "form", "l1_ratio"),
    [
        *(("newton", form, 0.0) for form in ("float64", "float32", "csr")),
        *((solver, "float64", 0.0) for solver in ("newton-cg", "lbfgs", "sgd")),
        *(("proximal", form, 1.0) for form in ("float64", "csr")),
    ],
)
def test_results_do_not_depend_on_threads(solver, form, l1_ratio):
    X, y, _ = draw_classes(d=10)
    options = {"C": 0.01, "l1_ratio": l1_ratio} | ({"max_iter": 2} if solver == "sgd" else {})
    X = FORMS[form](X)
    first, *others = (fit(X, y, solver, problem={"n_threads": n}, **options) for n in (1, 2, 3))
    for other in others:
        assert np.array_equal(other.V, first.V)
        assert other.result.history == first.result.history


@ALL_EXACT
def test_warm_start_at_the_optimum_takes_at_most_one_step(solver):
    X, y = STANDARDIZED["wine"]
    first = fit(X, y, solver, tol=1e-8)
    again = fit(X, y, solver, tol=1e-8, start=first.V)
    assert again.result.n_iter <= 1
    other = fit(X, y, solver, tol=1e-8, C=0.1, start=first.V)
    assert_same_weights(other.V, expected_weights("wine", 0.1), tol=1e-5)


@ALL_EXACT
def test_start_is_not_changed(solver):
    X, y = STANDARDIZED["wine"]
    start = np.full((3, X.shape[1] + 1), 0.1)
    before = start.copy()
    fit(X, y, solver, start=start, problem={"rescale": False})
    assert np.array_equal(start, before)


def test_rows_of_the_caller_are_never_written_to():
    """Weights so uneven that a sample misses a class, and columns far from 0: the rows used to be
    standardised in place."""
    rng = np.random.default_rng(0)
    X = 1000 + rng.standard_normal((50_000, 3))
    y = np.arange(len(X)) % 2
    s = (y == 0).astype(float)
    s[12345] = 1
    before = X.copy()
    X.flags.writeable = False
    found = fit(X, y, "newton", tol=1e-8, problem={"s": s})
    np.testing.assert_array_equal(X, before)
    assert found.result.converged
    other = fit(X, y, "lbfgs", tol=1e-9, problem={"s": s})
    np.testing.assert_allclose(found.V[:, 1:], other.V[:, 1:], rtol=1e-3)


def test_few_rows_with_a_weight():
    X, y, rng = draw_classes()
    n = len(y)
    for some in (slice(50), rng.choice(n, 40, replace=False), slice(n - 3000, None)):
        weight = np.zeros(n)
        weight[some] = 1.0
        all_rows = fit(X, y, "newton", tol=1e-9, problem={"s": weight})
        own = fit(X[weight > 0], y[weight > 0], "newton", tol=1e-9)
        assert_same_weights(all_rows.V, own.V, tol=1e-5)


def test_sparse_columns_of_very_different_sizes():
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 60, 0.2, format="csr", random_state=0)
    y = (X @ rng.standard_normal(60) + 0.3 * rng.standard_normal(3000) > 0).astype(int)
    X = sparse.csr_array(X @ sparse.diags(np.geomspace(1e-4, 1e4, 60)))
    found = fit(X, y, "proximal", l1_ratio=1.0)
    assert found.result.converged and found.result.n_iter < 200
