"""Numerical precision: data far from zero, moments in high precision, degenerate data."""

import mpmath
import numpy as np
import pytest
from helpers.closed_form_models import draw_on_grid, label_of
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as SklearnLDA
from sklearn.model_selection import KFold

from fastdisc import (
    BernoulliNB,
    CollinearWarning,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)
from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._data.moments import collect
from fastdisc._kernels import MomentKind

FAR = 1e8
EQUAL = np.ones(1)


# --- data far from zero ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
def test_moments_far_from_zero_keep_their_digits(rng, backend):
    X, r = draw_on_grid(rng)
    near, far = (
        collect(DenseRows(A), r, EQUAL, 3, MomentKind.QUARTIC, per_class=True, backend=backend)
        for A in (X, X + FAR)
    )
    assert np.abs(far.S - near.S).max() <= 1e-6 * np.abs(near.S).max()
    assert np.abs(far.mean - FAR - near.mean).max() <= 1e-7
    # Sums of squares without a shift would have no correct digit.
    naive = ((X + FAR) ** 2).sum(axis=0) - len(X) * (X + FAR).mean(axis=0) ** 2
    true = len(X) * X.var(axis=0)
    assert (np.abs(naive - true) > 0.5 * true).any()


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(), GaussianNB(var_smoothing=0)],
    ids=label_of,
)
def test_posteriors_far_from_zero(rng, model):
    X, y = draw_on_grid(rng)
    near, far = clone(model).fit(X, y), clone(model).fit(X + FAR, y)
    P = near.predict_proba(X)
    np.testing.assert_allclose(far.predict_proba(X + FAR), P, atol=1e-6)
    partial = clone(model)
    for rows in np.array_split(np.arange(len(y)), 7):
        partial.partial_fit(X[rows] + FAR, y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(partial.predict_proba(X + FAR), P, atol=1e-6)
    for name in ("scalings_", "var_"):
        if hasattr(near, name):
            found, expected = np.abs(getattr(far, name)), np.abs(getattr(near, name))
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", [LeastSquaresClassifier(), FisherDiscriminant()], ids=label_of)
def test_directions_far_from_zero(rng, model):
    X, y = draw_on_grid(rng)
    near, far = clone(model).fit(X, y), clone(model).fit(X + FAR, y)
    name = "coef_" if hasattr(near, "coef_") else "scalings_"
    found, expected = np.abs(getattr(far, name)), np.abs(getattr(near, name))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_scatter_of_classes_far_from_each_other(rng):
    """The scatter of all rows minus that between classes would have no correct digit."""
    X, r = draw_on_grid(rng, distance=FAR)
    found = collect(DenseRows(X), r, EQUAL, 3, MomentKind.SCATTER)
    centred = [X[r == k] - X[r == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(found.within, sum(U.T @ U for U in centred), rtol=1e-6)


def test_variance_of_a_class_too_rare_for_the_sample_of_shifts(rng):
    X, r = draw_on_grid(rng, n=60_000, K=2)
    rare = rng.choice(len(r), 5, replace=False)
    r[rare], X[rare] = 2, X[rare] + FAR
    found = collect(DenseRows(X), r, EQUAL, 3, MomentKind.SQUARES)
    np.testing.assert_allclose(found.S[2] / 5, X[rare].var(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", [MomentKind.SCATTER, MomentKind.SQUARES])
def test_sparse_rows_with_a_column_far_from_zero(rng, kind):
    X, r = draw_on_grid(rng, d=30)
    X = np.where(rng.random(X.shape) < 0.1, X, 0)
    X[:, 3] += FAR
    S = CSRRows.from_scipy(sparse.csr_array(X), np.int32)
    found, expected = (collect(rows, r, EQUAL, 3, kind).S for rows in (S, DenseRows(X)))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_moments_equal_those_in_high_precision(rng):
    """Weights, means, S_W and S_T of 60 digits: of all rows, of merged parts, of a difference."""
    mpmath.mp.dps = 60
    X, r = draw_on_grid(rng, n=40, d=2)
    X, s = X + FAR, rng.random(40)
    rows, w = [[mpmath.mpf(float(x)) for x in row] for row in X], [mpmath.mpf(float(a)) for a in s]

    def weighted_mean(members):
        total = sum(w[t] for t in members)
        return [sum(w[t] * rows[t][j] for t in members) / total for j in range(2)]

    def scatter(origin):  # origin(t): what is subtracted from row t
        products = np.zeros((2, 2))
        for i, j in np.ndindex(2, 2):
            terms = (
                w[t] * (rows[t][i] - origin(t)[i]) * (rows[t][j] - origin(t)[j]) for t in range(40)
            )
            products[i, j] = float(sum(terms))
        return products

    members = [np.flatnonzero(r == k) for k in range(3)]
    n = [float(sum(w[t] for t in some)) for some in members]
    mean, overall = [weighted_mean(some) for some in members], weighted_mean(range(40))
    within, total = scatter(lambda t: mean[r[t]]), scatter(lambda t: overall)

    def moments(X, r, s):
        return collect(DenseRows(X), r, s, 3, MomentKind.SCATTER)

    whole = moments(X, r, s)
    parts = [moments(X[p], r[p], s[p]) for p in np.array_split(np.arange(40), 3)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    more = X[::-1] + 5
    rest = moments(np.vstack([X, more]), np.r_[r, r], np.r_[s, s]).subtract(moments(more, r, s))
    for found in (whole, merged, rest):
        np.testing.assert_allclose(found.n, n, rtol=1e-13)
        np.testing.assert_allclose(found.mean, np.array(mean, dtype=float), rtol=1e-14)
        np.testing.assert_allclose(found.within, within, rtol=1e-6)
        np.testing.assert_allclose(found.within + found.between, total, rtol=1e-6)


def test_moments_do_not_change(rng):
    X, r = draw_on_grid(rng, n=100)
    first, second = (
        collect(DenseRows(X[rows]), r[rows], EQUAL, 3, MomentKind.SCATTER, per_class=True)
        for rows in (slice(0, 50), slice(50, 100))
    )
    arrays = [a for a in first if isinstance(a, np.ndarray)]
    before = [a.copy() for a in arrays]
    first.merge(second).subtract(second)
    first.about(np.ones((3, 3)))
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


# --- degenerate data ------------------------------------------------------------------------------


def add_collinear_columns(X):
    """With a sum of two columns, a constant and a repeated column: 6 columns, 3 directions."""
    return np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 0.1), X[:, 2]])


@pytest.mark.parametrize(
    ("model", "regular"),
    [
        (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis()),
        (LinearDiscriminantAnalysis(solver="eigen"), LinearDiscriminantAnalysis()),
        (FisherDiscriminant(), FisherDiscriminant()),
    ],
    ids=["svd", "eigen", "fisher"],
)
def test_collinear_columns_change_no_posterior(rng, model, regular):
    X, y = draw_on_grid(rng, n=200)
    wide = add_collinear_columns(X)
    with pytest.warns(CollinearWarning, match="6 columns vary in 3 directions"):
        found = clone(model).fit(wide, y)
    expected = clone(regular).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found.predict_proba(wide), expected, atol=1e-8)


def test_lda_of_collinear_columns_equals_that_of_sklearn(rng):
    X, y = draw_on_grid(rng, n=200)
    wide = np.delete(add_collinear_columns(X), 4, axis=1)
    # Without the constant: for scikit-learn the rounding of 0.1 is a direction.
    expected = SklearnLDA().fit(wide, y).predict_proba(wide)
    found = LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_qda_warns_of_collinear_columns(rng):
    X, y = draw_on_grid(rng, n=200)
    wide, message = add_collinear_columns(X), r"class 0, 1, 2 is not full rank.*tol=0\.0001"
    with pytest.warns(CollinearWarning, match=message):
        model = QuadraticDiscriminantAnalysis().fit(wide, y)
    assert np.isfinite(model.predict_proba(wide)).all() and model.score(wide, y) > 0.5


def test_collinear_columns_change_no_least_squares_target(rng):
    X, y = draw_on_grid(rng, n=200)
    wide = add_collinear_columns(X)
    found = LeastSquaresClassifier().fit(wide, y).predict_targets(wide)
    expected = LeastSquaresClassifier().fit(X, y).predict_targets(X)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def draw_class_of_one_row(rng):
    X, y = draw_on_grid(rng, n=200, K=2)
    return np.vstack([X, [9.0, 9.0, 9.0]]), np.append(y, 7)


def test_qda_warns_of_a_class_with_one_row(rng):
    X, y = draw_class_of_one_row(rng)
    with pytest.warns(CollinearWarning, match="class 7 is not full rank"):
        model = QuadraticDiscriminantAnalysis().fit(X, y)
    assert model.predict(X[-1:])[0] == 7


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminantAnalysis(), FisherDiscriminant(), GaussianNB(), LeastSquaresClassifier()],
    ids=label_of,
)
def test_class_with_one_row(rng, model):
    X, y = draw_class_of_one_row(rng)
    found = clone(model).fit(X, y)
    assert found.predict(X[-1:])[0] == 7 or isinstance(model, LeastSquaresClassifier)
    assert np.isfinite(found.decision_function(X)).all()


def test_constant_columns_of_a_fold_have_no_weight(rng):
    """Column 3 is constant; column 4 is once the first fold is held out."""
    X, y = draw_on_grid(rng, n=300)
    some = np.where(np.arange(len(X)) < 60, 1e3, 0.1)
    wide, model = np.column_stack([X, np.full(len(X), 0.1), some]), LinearDiscriminantAnalysis()
    with pytest.warns(CollinearWarning):
        _, models = cross_val_from_moments(model, wide, y, cv=KFold(5), return_estimator=True)
    assert all((fitted.coef_[:, 3] == 0).all() for fitted in models)
    assert (models[0].coef_[:, 4] == 0).all()
    expected = LinearDiscriminantAnalysis().fit(X[60:], y[60:]).coef_
    np.testing.assert_allclose(models[0].coef_[:, :3], expected, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [PoissonNB(), MultinomialNB(alpha=0), BernoulliNB(alpha=0), GaussianNB(var_smoothing=0)],
    ids=label_of,
)
def test_columns_of_zeros_have_finite_posteriors(rng, model):
    X, y = np.column_stack([rng.poisson(2, 50), np.zeros(50)]), np.arange(50) % 2
    found = clone(model).fit(X, y)
    assert np.isfinite(found.predict_proba(X)).all()
    assert np.isfinite(found.predict_log_proba(X)).all()
