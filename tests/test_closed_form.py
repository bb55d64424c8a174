"""Numbers and refusals of the closed-form models: data far from zero, high precision, degenerate data, bad input."""

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.covariance import OAS
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Rival
from sklearn.model_selection import KFold

from fastdisc import (
    BernoulliNB,
    CollinearWarning,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    cross_val_from_moments,
)
from fastdisc._kernels import CSR, Moment
from fastdisc._moments import Moments, collect

FAR = 1e8


def grid_data(rng, n=3000, d=3, K=3, apart=1.0):
    """Rows of standard deviation 1, on a grid so that adding 1e8 to them is exact."""
    r = rng.integers(0, K, n).astype(np.int32)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3) + apart * np.eye(K, d)[r]
    return np.rint(X * 2**20) / 2**20, r


# --- far from zero -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
def test_moments_far_from_zero_keep_their_digits(rng, backend):
    X, r = grid_data(rng)
    near, far = (collect(A, r, np.ones(1), 3, Moment.QUARTIC, own=True, backend=backend) for A in (X, X + FAR))
    assert np.abs(far.S - near.S).max() <= 1e-6 * np.abs(near.S).max()
    assert np.abs(far.mean - FAR - near.mean).max() <= 1e-7
    naive = ((X + FAR) ** 2).sum(axis=0) - len(X) * (X + FAR).mean(axis=0) ** 2
    assert (np.abs(naive - len(X) * X.var(axis=0)) > 0.5 * len(X) * X.var(axis=0)).any(), "one pass without a shift would do"


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(), GaussianNB(var_smoothing=0)],
    ids=repr,
)
def test_models_far_from_zero(rng, model):
    X, y = grid_data(rng)
    near, far = clone(model).fit(X, y), clone(model).fit(X + FAR, y)
    np.testing.assert_allclose(far.predict_proba(X + FAR), near.predict_proba(X), atol=1e-6)
    stream = clone(model)
    for rows in np.array_split(np.arange(len(y)), 7):
        stream.partial_fit(X[rows] + FAR, y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(stream.predict_proba(X + FAR), near.predict_proba(X), atol=1e-6)
    for name in ("scalings_", "var_"):
        if hasattr(near, name):
            np.testing.assert_allclose(np.abs(getattr(far, name)), np.abs(getattr(near, name)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", [LeastSquaresClassifier(), FisherDiscriminant()], ids=repr)
def test_directions_far_from_zero(rng, model):
    X, y = grid_data(rng)
    near, far = clone(model).fit(X, y), clone(model).fit(X + FAR, y)
    name = "coef_" if hasattr(near, "coef_") else "scalings_"
    np.testing.assert_allclose(np.abs(getattr(far, name)), np.abs(getattr(near, name)), rtol=1e-6, atol=1e-7)


def test_classes_far_from_each_other(rng):
    """A scatter matrix of all rows less that between classes would have no digits left."""
    X, r = grid_data(rng, apart=FAR)
    found = collect(X, r, np.ones(1), 3, Moment.SCATTER)
    expected = sum((X[r == k] - X[r == k].mean(axis=0)).T @ (X[r == k] - X[r == k].mean(axis=0)) for k in range(3))
    np.testing.assert_allclose(found.within, expected, rtol=1e-6)


def test_a_class_that_the_pilot_misses_has_digits_too(rng):
    X, r = grid_data(rng, n=60_000, K=2)
    rare = rng.choice(len(r), 5, replace=False)
    r[rare], X[rare] = 2, X[rare] + FAR
    found = collect(X, r, np.ones(1), 3, Moment.SQUARES)
    np.testing.assert_allclose(found.S[2] / 5, X[rare].var(axis=0), rtol=1e-6)


def test_sparse_rows_with_a_column_far_from_zero(rng):
    X, r = grid_data(rng, d=30)
    X = np.where(rng.random(X.shape) < 0.1, X, 0)
    X[:, 3] += FAR
    for kind in (Moment.SCATTER, Moment.SQUARES):
        S = sparse.csr_array(X)
        thin = collect(CSR(S.data, S.indices, S.indptr, 30), r, np.ones(1), 3, kind)
        full = collect(X, r, np.ones(1), 3, kind)
        np.testing.assert_allclose(thin.S, full.S, atol=1e-6 * np.abs(full.S).max())


def test_moments_in_high_precision(rng):
    """n, means, S_W, S_B and S_T to 60 digits, from float64 rows far from zero, merged from parts and with a part taken away."""
    mpmath.mp.dps = 60
    X, r = grid_data(rng, n=40, d=2)
    X, s = X + FAR, rng.random(40)
    rows, w = [[mpmath.mpf(float(x)) for x in row] for row in X], [mpmath.mpf(float(a)) for a in s]
    n = [sum(w[t] for t in range(40) if r[t] == k) for k in range(3)]
    mean = [[sum(w[t] * rows[t][j] for t in range(40) if r[t] == k) / n[k] for j in range(2)] for k in range(3)]
    centre = [sum(w[t] * rows[t][j] for t in range(40)) / sum(w) for j in range(2)]
    product = lambda i, j, origin: sum(w[t] * (rows[t][i] - origin(t)[i]) * (rows[t][j] - origin(t)[j]) for t in range(40))  # noqa: E731
    matrix = lambda origin: np.array([[float(product(i, j, origin)) for j in range(2)] for i in range(2)])  # noqa: E731
    within, total = matrix(lambda t: mean[r[t]]), matrix(lambda t: centre)
    whole = collect(X, r, s, 3, Moment.SCATTER)
    parts = [collect(X[part], r[part], s[part], 3, Moment.SCATTER) for part in np.array_split(np.arange(40), 3)]
    more = collect(np.vstack([X, X[::-1] + 5]), np.r_[r, r], np.r_[s, s], 3, Moment.SCATTER)
    rest = more.subtract(collect(X[::-1] + 5, r, s, 3, Moment.SCATTER))
    for found in (whole, parts[0].merge(parts[1]).merge(parts[2]), rest):
        np.testing.assert_allclose(found.n, [float(a) for a in n], rtol=1e-13)
        np.testing.assert_allclose(found.mean, np.array(mean, dtype=float), rtol=1e-14)
        np.testing.assert_allclose(found.within, within, rtol=1e-6)
        np.testing.assert_allclose(found.within + found.between, total, rtol=1e-6)


# --- degenerate data ---------------------------------------------------------------------------------------------------------


def test_constant_and_dependent_columns(rng):
    X, y = grid_data(rng, n=200)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 0.1), X[:, 2]])
    for model in (LinearDiscriminantAnalysis(), FisherDiscriminant()):
        with pytest.warns(CollinearWarning, match="6 columns vary in 3 directions"):
            found = clone(model).fit(wide, y)
        np.testing.assert_allclose(found.predict_proba(wide), clone(model).fit(X, y).predict_proba(X), atol=1e-8)
    some = np.delete(wide, 4, axis=1)  # the rounding of a constant 0.1 is a direction to scikit-learn
    np.testing.assert_allclose(
        LinearDiscriminantAnalysis().fit(X, y).predict_proba(X), Rival().fit(some, y).predict_proba(some), atol=1e-8
    )
    with pytest.warns(CollinearWarning, match="6 columns vary in 3"):
        found = LinearDiscriminantAnalysis(solver="eigen").fit(wide, y)
    np.testing.assert_allclose(found.predict_proba(wide), LinearDiscriminantAnalysis().fit(X, y).predict_proba(X), atol=1e-8)
    with pytest.warns(CollinearWarning, match="class 0, 1, 2 is not full rank.*tol=0.0001"):
        found = QuadraticDiscriminantAnalysis().fit(wide, y)
    assert np.isfinite(found.predict_proba(wide)).all() and found.score(wide, y) > 0.5
    plain = LeastSquaresClassifier().fit(wide, y)
    np.testing.assert_allclose(plain.predict_targets(wide), LeastSquaresClassifier().fit(X, y).predict_targets(X), atol=1e-8)


def test_a_class_with_one_row(rng):
    X, y = grid_data(rng, n=200, K=2)
    X, y = np.vstack([X, [9.0, 9.0, 9.0]]), np.append(y, 7)
    with pytest.warns(CollinearWarning, match="class 7 is not full rank"):
        found = QuadraticDiscriminantAnalysis().fit(X, y)
    assert found.predict(X[-1:])[0] == 7
    for model in (LinearDiscriminantAnalysis(), FisherDiscriminant(), GaussianNB(), LeastSquaresClassifier()):
        found = clone(model).fit(X, y)
        assert found.predict(X[-1:])[0] == 7 or isinstance(model, LeastSquaresClassifier), model
        assert np.isfinite(found.decision_function(X)).all(), model


def test_constant_columns_stay_constant_when_a_fold_is_taken_away(rng):
    X, y = grid_data(rng, n=300)
    wide = np.column_stack([X, np.full(len(X), 0.1), np.where(np.arange(len(X)) < 60, 1e3, 0.1)])
    with pytest.warns(CollinearWarning):
        _, models = cross_val_from_moments(LinearDiscriminantAnalysis(), wide, y, cv=KFold(5), return_estimator=True)
    assert all((model.coef_[:, 3] == 0).all() for model in models)
    assert (models[0].coef_[:, 4] == 0).all()
    np.testing.assert_allclose(models[0].coef_[:, :3], LinearDiscriminantAnalysis().fit(X[60:], y[60:]).coef_, rtol=1e-9)


def test_columns_that_are_always_zero(rng):
    X = np.column_stack([rng.poisson(2, 50), np.zeros(50)])
    y = np.arange(50) % 2
    for model in (PoissonNB(), MultinomialNB(alpha=0), BernoulliNB(alpha=0), GaussianNB(var_smoothing=0)):
        found = clone(model).fit(X, y)
        assert np.isfinite(found.predict_proba(X)).all()
        assert np.isfinite(found.predict_log_proba(X)).all()


def test_somebody_elses_covariance(rng):
    X, y = grid_data(rng, n=90)
    for solver in ("lsqr", "eigen"):
        options = {"solver": solver, "covariance_estimator": OAS()}
        ours, theirs = LinearDiscriminantAnalysis(**options).fit(X, y), Rival(**options).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    for call in ("partial_fit", "forget"):
        with pytest.raises(ValueError, match=f"{call} has no covariance_estimator"):
            getattr(ours, call)(X, y)
    with pytest.raises(ValueError, match="cross_val_from_moments has no covariance_estimator"):
        cross_val_from_moments(LinearDiscriminantAnalysis(**options), X, y)


def test_moments_never_change(rng):
    X, r = grid_data(rng, n=100)
    first, second = (
        collect(X[part], r[part], np.ones(1), 3, Moment.SCATTER, own=True) for part in (slice(0, 50), slice(50, 100))
    )
    before = [np.array(a) for a in first if isinstance(a, np.ndarray)]
    whole = first.merge(second)
    whole.subtract(second)
    first.about(np.ones((3, 3)))
    assert all(np.array_equal(a, b) for a, b in zip(before, (a for a in first if isinstance(a, np.ndarray)), strict=True))
    assert isinstance(whole, Moments)


# --- bad input ---------------------------------------------------------------------------------------------------------------

X = np.abs(np.random.default_rng(0).standard_normal((30, 3)))
Y = np.arange(30) % 3


def spoiled(value):
    bad = X.copy()
    bad[7, 1] = value
    return bad


LDA, QDA, LSQ, CV = (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
)
BAD = {
    "NaN in X": (None, {"X": spoiled(np.nan)}, "NaN, first in row 7, column 1"),
    "infinity in X": (None, {"X": spoiled(np.inf)}, "infinity, first in row 7, column 1"),
    "NaN in CSR": (None, {"X": sparse.csr_array(spoiled(np.nan))}, "NaN, first in row 7, column 1"),
    "short y": (None, {"y": Y[:20]}, "X has 30 rows, y has 20"),
    "one class": (None, {"y": np.zeros(30, int)}, "only one class"),
    "continuous y": (None, {"y": X[:, 0]}, "continuous"),
    "negative weight": (None, {"sample_weight": np.where(np.arange(30) == 9, -1.0, 1)}, "row 9 it is -1"),
    "weights all zero": (None, {"sample_weight": np.zeros(30)}, "zero in every row"),
    "backend unknown": (None, {"backend": "fortran"}, "backend must be"),
    "threads zero": (None, {"n_threads": 0}, "n_threads must be"),
    "LDA: solver": (LDA, {"solver": "magic"}, "solver must be one of 'svd', 'lsqr', 'eigen', got 'magic'"),
    "LDA: shrinkage too large": (LDA, {"solver": "lsqr", "shrinkage": 1.5}, "shrinkage must be a number from 0 to 1"),
    "LDA: shrinkage a word": (LDA, {"solver": "lsqr", "shrinkage": "much"}, "shrinkage must be a number"),
    "LDA: both": (LDA, {"solver": "lsqr", "shrinkage": 0.1, "covariance_estimator": OAS()}, "only one of the two"),
    "LDA: estimator and svd": (LDA, {"covariance_estimator": OAS()}, "not supported with solver='svd'"),
    "LDA: too many components": (LDA, {"n_components": 3}, r"n_components cannot be larger.*3 > 2"),
    "LDA: tol": (LDA, {"tol": -1}, "tol must be a number >= 0"),
    "LDA: store_covariance": (LDA, {"store_covariance": "yes"}, "store_covariance must be one of"),
    "LDA: as many classes as rows": (LDA, {"y": np.arange(30)}, "more than the number of classes"),
    "LDA: priors": (LDA, {"priors": [0.5, 0.5]}, r"priors.shape == \(2,\), expected \(3,\)"),
    "LDA: priors do not add up": (LDA, {"priors": [0.5, 0.5, 0.5]}, "add up to 1"),
    "QDA: reg_param": (QDA, {"reg_param": 2.0}, "reg_param must be a number from 0 to 1"),
    "QDA: solver": (QDA, {"solver": "lsqr"}, "solver must be one of 'svd', 'eigen', got 'lsqr'"),
    "Fisher: components": (FisherDiscriminant, {"n_components": 3}, "n_components cannot be larger"),
    "Fisher: no components": (FisherDiscriminant, {"n_components": 0}, "n_components must be a whole number >= 1"),
    "least squares: alpha": (LSQ, {"alpha": -1.0}, "alpha must be a number >= 0"),
    "least squares: targets": (LSQ, {"targets": "both"}, "targets must be one of"),
    "least squares: Fisher's targets": (LSQ, {"targets": "fisher"}, "for two classes, y has 3"),
    "least squares CV: alphas": (CV, {"alphas": [-1.0]}, "alphas must be numbers >= 0"),
    "least squares CV: scoring": (CV, {"scoring": "roc_auc"}, "scoring must be one of"),
    "Bernoulli: alpha": (BernoulliNB, {"alpha": -1.0}, "alpha must be a number >= 0"),
    "Bernoulli: alphas": (BernoulliNB, {"alpha": [1.0, 1.0]}, "alpha has 2 numbers, X has 3 columns"),
    "Bernoulli: binarize": (BernoulliNB, {"binarize": "half"}, "binarize must be a number"),
    "Bernoulli: priors": (BernoulliNB, {"class_prior": [0.2, 0.2, 0.2]}, "add up to 1"),
    "Bernoulli: fit_prior": (BernoulliNB, {"fit_prior": "no"}, "fit_prior must be one of"),
    "multinomial: negative": (MultinomialNB, {"X": X - 1}, "Negative values in data passed to MultinomialNB"),
    "Poisson: negative": (PoissonNB, {"X": sparse.csr_array(X - 1)}, "Negative values in data passed to PoissonNB"),
    "Gaussian: smoothing": (GaussianNB, {"var_smoothing": -1.0}, "var_smoothing must be a number >= 0"),
}
EVERY = [LDA, QDA, FisherDiscriminant, LSQ, CV, BernoulliNB, MultinomialNB, PoissonNB, GaussianNB]
CASES = [(cls, what) for what, (only, _, _) in BAD.items() for cls in ([only] if only else EVERY)]


@pytest.mark.parametrize(("cls", "what"), CASES, ids=[f"{cls.__name__}, {what}" for cls, what in CASES])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_input_is_named(cls, what):
    _, given, message = BAD[what]
    rows = {"X": X, "y": Y} | {key: given[key] for key in ("X", "y", "sample_weight") if key in given}
    model = cls().fit(X, Y)
    before = model.predict(X)
    model.set_params(**{key: value for key, value in given.items() if key not in ("X", "y", "sample_weight")})
    with pytest.raises(ValueError, match=message):
        model.fit(**rows)
    model.set_params(**cls().get_params())
    assert np.array_equal(model.predict(X), before), "a failed fit changed the model"


def test_bad_rows_to_learn_forget_and_merge():
    model = LinearDiscriminantAnalysis().partial_fit(X, Y, classes=[0, 1, 2])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"not among the classes: .*5.* in row 0"):
        model.partial_fit(X, Y + 5)
    with pytest.raises(ValueError, match=r"classes=.* is not what it was before"):
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        model.forget(X, Y + 5)
    with pytest.raises(ValueError, match="cannot all have been learnt from; class number 0 has a weight of 10"):
        model.forget(np.vstack([X, X]), np.r_[Y, Y])
    with pytest.raises(ValueError, match="no row would be left"):
        model.forget(X, Y)
    with pytest.raises(ValueError, match="merge: cannot merge"):
        model.merge(GaussianNB().fit(X, Y))
    with pytest.raises(ValueError, match="3 columns here, 2 there"):
        model.merge(LinearDiscriminantAnalysis().fit(X[:, :2], Y))
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="must have 3 columns"):
        FisherDiscriminant().fit(X, Y).criterion(np.ones(2))
    with pytest.raises(NotImplementedError, match="transform not implemented for 'lsqr'"):
        LinearDiscriminantAnalysis(solver="lsqr").fit(X, Y).transform(X)
    with pytest.raises(NotImplementedError, match="shrinkage not supported with 'svd'"):
        LinearDiscriminantAnalysis(shrinkage=0.1).fit(X, Y)
    assert np.array_equal(model.decision_function(X), before)
