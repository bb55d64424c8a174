"""Models with a basis: the features inside the sweep are those of the matrix; quadratic discriminants."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import make_ball
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fastdisc
from fastdisc import LogisticRegression, LogisticRegressionCV, OnlineClassifier, Perceptron, config_context
from fastdisc._kernels import BACKENDS, NO_OFFSET, Link, grid, load
from fastdisc._sweep import Sweep
from fastdisc.basis import Polynomial, Quadratic, RadialGaussian, Threshold, concat

BASIS = concat(Quadratic(), RadialGaussian(5, random_state=1))
MODELS = {
    "logistic": LogisticRegression(tol=1e-12),
    "standardised": LogisticRegression(tol=1e-12, standardize=True),
    "L1": LogisticRegression(C=0.1, l1_ratio=0.7, tol=1e-12),
    "newton-cg": LogisticRegression(solver="newton-cg", tol=1e-12),
    "lbfgs": LogisticRegression(solver="lbfgs", tol=1e-12),
    "gd": LogisticRegression(solver="gd", max_iter=20, random_state=0),
    "CV": LogisticRegressionCV(Cs=3, cv=3, tol=1e-12),
    "CV by log loss": LogisticRegressionCV(Cs=3, cv=3, scoring="neg_log_loss", tol=1e-12),
    "perceptron": Perceptron(max_iter=3, tol=None),
    "standardised perceptron": Perceptron(max_iter=3, tol=None, standardize=True),
    "online": OnlineClassifier(
        "log_loss", learning_rate="constant", penalty="elasticnet", average=True, max_iter=3, tol=None, random_state=0
    ),
    "adaline": fastdisc.Adaline(max_iter=3, tol=None),
    "batch adaline": fastdisc.Adaline(solver="batch", max_iter=9, tol=None),
    "least squares": fastdisc.LeastSquaresClassifier(0.1),
    "least squares, leave one out": fastdisc.LeastSquaresClassifierCV(),
    "least squares, folds": fastdisc.LeastSquaresClassifierCV(cv=3),
    "sigmoid": fastdisc.SigmoidRegression(tol=1e-10),
    "LDA": fastdisc.LinearDiscriminantAnalysis(),
    "LDA, shrunk": fastdisc.LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    "Fisher": fastdisc.FisherDiscriminant(),
}


# Numba compiles each kernel anew for mapped rows, which all of them get by `fetch` or `pick`: sweep, online and moments will do.
SLOW = {("newton-cg", "numba"), ("Fisher", "numba")}
CASES = [(name, backend) for name in MODELS for backend in BACKENDS if (name, backend) not in SLOW]


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_fused_is_what_the_matrix_gives(name, backend):
    X, y = make_ball()
    with config_context(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few epochs will do to compare
        F = clone(BASIS).fit_transform(X)
        apart, fused = clone(MODELS[name]).fit(F, y), clone(MODELS[name]).set_params(basis=BASIS).fit(X, y)
        expected, Z = apart.decision_function(F), fused.decision_function(X)
    assert fused.n_features_in_ == 3 and fused.basis_.get_feature_names_out().shape == (14,)
    weights = [model.coef_ if hasattr(model, "coef_") else model.scalings_.T for model in (apart, fused)]
    assert weights[1].shape[1] == 14
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-10, atol=1e-10 * np.abs(weights[0]).max())
    np.testing.assert_allclose(Z, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(fused.predict(X), apart.predict(F))


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_same_bits_on_any_number_of_threads(backend):
    X, y = make_ball(3000)
    sweep = Sweep(clone(BASIS).fit(X).mapped(X), y.astype(np.int32), np.ones(1), Link.SOFTMAX)
    W, kernels = np.random.default_rng(0).standard_normal((3, 15)) / 10, load(backend)
    g = grid(sweep.X.shape, 8, 3, 2)
    arguments = sweep.X, Link.SOFTMAX, sweep.r, sweep.s, NO_OFFSET, W, 2, g
    first, *others = (kernels.sweep(*arguments, threads) for threads in (1, 2, 3))
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


RANKERS = {
    "newton": fastdisc.PairwiseRanker(tol=1e-10),
    "newton, L1": fastdisc.PairwiseRanker("squared_hinge", l1_ratio=1.0, tol=1e-8),
    "standardised": fastdisc.PairwiseRanker("squared_hinge", standardize=True, tol=1e-10),
    "online": fastdisc.PairwiseRanker("hinge", solver="online", max_iter=2, tol=0.0, random_state=0),
}


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_rankers_take_features(name, backend):
    X, y = make_ball(300)
    query = np.random.default_rng(1).integers(0, 20, 300)
    with config_context(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        F = clone(BASIS).fit_transform(X)
        apart = clone(RANKERS[name]).fit(F, y, group=query)
        fused = clone(RANKERS[name]).set_params(basis=BASIS).fit(X, y, group=query)
        np.testing.assert_allclose(fused.coef_, apart.coef_, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(fused.predict(X), apart.predict(F), rtol=1e-6, atol=1e-6)


def test_samples_and_columns_are_of_rows_as_they_are():
    X, y = make_ball(5000, 4)
    sweep = Sweep(Quadratic().fit(X).mapped(X), y.astype(np.int32), np.ones(1), Link.SOFTMAX)
    part = sweep.sample(500, 0)
    assert part.X.raw.shape == (part.rows, 4) and part.X.shape == (part.rows, 14)
    assert sweep.columns([3, 9]).X.raw is X


def test_the_reference_makes_some_features_at_a_time(monkeypatch):
    X, y = make_ball(700)
    reference, mapped, W = load("numpy"), Quadratic().fit(X).mapped(X), np.random.default_rng(0).standard_normal((3, 10))
    r, o, g = y.astype(np.int32), np.linspace(-1, 1, 2100).reshape(700, 3), grid((700, 9), 8)
    arguments = Link.SOFTMAX, r, np.linspace(0, 1, 700), o, W, 2, g, 1
    calls = {
        "sweep": lambda: reference.sweep(mapped, *arguments),
        "product": lambda: (reference.product(mapped, Link.SOFTMAX, np.ones(1), o, W, W[::-1].copy(), g, 1),),
        "outputs": lambda: reference.outputs(mapped, Link.SOFTMAX, W, g, 1),
    }
    whole = {name: call() for name, call in calls.items()}
    monkeypatch.setattr(reference, "CELLS", 9 * 64)
    sizes, take = [], type(mapped).take_rows
    monkeypatch.setattr(type(mapped), "take_rows", lambda self, rows: sizes.append(rows.stop - rows.start) or take(self, rows))
    for name, call in calls.items():
        for a, b in zip(call(), whole[name], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    assert set(sizes) == {64}


def test_columns_far_from_zero():
    """Products of such columns are all but collinear; Hessians of samples are of standardised features."""
    X, y = make_ball(4000, 2, 2)
    X = X + 1000
    F = Quadratic().fit_transform(X)
    fused = LogisticRegression(basis=Quadratic(), standardize=True, tol=1e-8).fit(X, y)
    apart = LogisticRegression(standardize=True, tol=1e-8).fit(F, y)
    np.testing.assert_allclose(fused.predict_proba(X), apart.predict_proba(F), atol=1e-6)


# --- quadratic discriminants -------------------------------------------------------------------------------------------------


def test_quadratic_is_symmetric_and_gives_the_scores():
    X, y = make_ball(500, 4)
    model = LogisticRegression(basis=Quadratic()).fit(X, y)
    assert model.quadratic_.shape == (3, 4, 4)
    np.testing.assert_array_equal(model.quadratic_, model.quadratic_.swapaxes(1, 2))
    Z = np.einsum("ni,kij,nj->nk", X, model.quadratic_, X) + X @ model.coef_[:, :4].T + model.intercept_
    np.testing.assert_allclose(Z, model.decision_function(X), rtol=1e-10, atol=1e-12)
    assert not hasattr(LogisticRegression().fit(X, y), "quadratic_")
    assert not hasattr(LogisticRegression(basis=Threshold()).fit(X, y), "quadratic_")


def test_the_published_update_learns_W():
    """Exercise 5: W_jkl += eta sum_t (r_j - y_j) x_k x_l, one step from given weights."""
    X, y = make_ball(60, 2)
    model = LogisticRegression(basis=Quadratic(), solver="gd", eta=0.01, C=np.inf, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        after = model.fit(X, y).quadratic_
    W = np.random.RandomState(0).uniform(-0.01, 0.01, (3, 6))
    F = np.column_stack([np.ones(60), X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])
    Y = np.exp(F @ W.T)
    E = np.eye(3)[y] - Y / Y.sum(axis=1, keepdims=True)
    W = W + 0.01 * E.T @ F
    expected = np.array([[[w[3], w[4] / 2], [w[4] / 2, w[5]]] for w in W])
    np.testing.assert_allclose(after, expected, rtol=1e-12)


def test_an_interval_is_a_class():
    """Exercise 9 and figure 10.12: (2, 4) against the rest by w_2 x^2 + w_1 x + w_0, which is (x - 3)^2 - 1 up to a factor."""
    x = np.linspace(0, 6, 1201)
    x = x[(np.abs(x - 2) > 1e-9) & (np.abs(x - 4) > 1e-9)]
    outside = (x < 2) | (x > 4)
    assert LogisticRegression().fit(x[:, None], outside).score(x[:, None], outside) < 0.7
    model = LogisticRegression(basis=Quadratic(), C=1e6).fit(x[:, None], outside)
    assert model.score(x[:, None], outside) == 1.0
    roots = np.roots([model.quadratic_[0, 0, 0], model.coef_[0, 0], model.intercept_[0]])
    np.testing.assert_allclose(np.sort(roots), [2, 4], atol=1e-2)
    a, b, c = model.quadratic_[0, 0, 0], model.coef_[0, 0], model.intercept_[0]
    np.testing.assert_allclose([b / a, c / a], [-6, 8], atol=0.05)
    at = np.array([[2.0], [3.0], [4.0]])
    np.testing.assert_array_equal(np.sign(model.decision_function([[1.0], [3.0], [5.0]])), [1, -1, 1])
    assert model.predict_proba(at)[1, 1] < 0.5  # the sigmoid is below a half inside, and at its least in the middle
    inside = model.predict_proba(np.linspace(2.1, 3.9, 19)[:, None])[:, 1]
    assert inside.argmin() == 9 or np.allclose(inside, 0, atol=1e-12)


def test_the_curve_of_figure_10_12():
    """Labels drawn with the odds of the figure: the discriminant comes out as (x - 3)^2 - 1, its sigmoid a half at 2 and 4."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 6, 200_000)
    r = rng.random(len(x)) < 1 / (1 + np.exp(-((x - 3) ** 2 - 1)))
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(x[:, None], r)
    np.testing.assert_allclose([model.quadratic_[0, 0, 0], model.coef_[0, 0], model.intercept_[0]], [1, -6, 8], rtol=0.03)
    np.testing.assert_allclose(model.predict_proba([[2.0], [4.0]])[:, 1], 0.5, atol=0.01)
    assert model.predict_proba([[3.0]])[0, 1] == pytest.approx(1 / (1 + np.e), abs=0.01)


def test_large_gaussian_samples_agree_with_quadratic_discriminant_analysis():
    rng = np.random.default_rng(1)
    A = [rng.standard_normal((3, 3)) / 2 + np.eye(3) for _ in range(3)]
    y = rng.integers(0, 3, 200_000)
    X = np.empty((len(y), 3))
    for k in range(3):
        mine = y == k
        X[mine] = rng.standard_normal((mine.sum(), 3)) @ A[k].T + k
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(X, y)
    parametric = fastdisc.QuadraticDiscriminantAnalysis().fit(X, y)
    assert np.abs(model.predict_proba(X) - parametric.predict_proba(X)).mean() < 0.005
    for k in (1, 2):
        difference = np.linalg.inv(A[0] @ A[0].T) / 2 - np.linalg.inv(A[k] @ A[k].T) / 2
        np.testing.assert_allclose(
            model.quadratic_[k] - model.quadratic_[0], difference, atol=0.05 * np.abs(difference).max() + 0.02
        )


@pytest.mark.parametrize("K", [2, 3])
def test_rank_keeps_the_leading_eigenvectors(K):
    rng = np.random.default_rng(2)
    d, n = 8, 20_000
    V = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    X = rng.standard_normal((n, d))
    Z = X @ V.T
    scores = np.column_stack([np.zeros(n), 2 * Z[:, 0] ** 2 - 2, -2 * Z[:, 1] ** 2 + Z[:, 0]])[:, :K]
    y = (np.exp(scores).cumsum(axis=1) / np.exp(scores).sum(axis=1)[:, None] < rng.random(n)[:, None]).sum(axis=1)
    rank = K - 1
    model = LogisticRegression(basis=Quadratic(rank=rank)).fit(X, y)
    assert model.coef_.shape[1] == d + rank * (rank + 1) // 2
    assert all(np.linalg.matrix_rank(W, tol=1e-8) <= rank for W in model.quadratic_)
    np.testing.assert_allclose(np.linalg.svd(model.basis_.directions_ @ V[:rank].T)[1], 1, atol=0.01)  # the same subspace
    assert model.score(X, y) > LogisticRegression(basis=Quadratic()).fit(X, y).score(X, y) - 0.005
    everything = LogisticRegression(basis=Quadratic(rank=d), tol=1e-8, C=np.inf).fit(X[:3000], y[:3000])
    full = LogisticRegression(basis=Quadratic(), tol=1e-8, C=np.inf).fit(X[:3000], y[:3000])
    np.testing.assert_allclose(everything.predict_proba(X), full.predict_proba(X), atol=1e-5)
    F = Quadratic(rank=rank).fit(X, y).transform(X)
    np.testing.assert_array_equal(F[:, :d], X)


# --- at home in scikit-learn -------------------------------------------------------------------------------------------------


def test_pipelines_searches_pickles_and_names():
    X, y = make_ball()
    X = pd.DataFrame(X, columns=list("abc"))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(basis=Polynomial())),
        {"logisticregression__basis__degree": [1, 2]},
        cv=3,
    ).fit(X, (X**2).sum(axis=1) > 3)
    assert search.best_params_ == {"logisticregression__basis__degree": 2}
    search = GridSearchCV(LogisticRegression(basis=concat(Polynomial(), Threshold())), {"basis__0__degree": [1, 2]}, cv=3)
    assert search.fit(X, (X**2).sum(axis=1) > 3).best_params_ == {"basis__0__degree": 2}
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(X, y == 0)
    assert "a b" in str(model.summary())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_streams_keep_the_basis_of_their_first_rows():
    X, y = make_ball()
    for model in (Perceptron(basis=BASIS), fastdisc.LeastSquaresClassifier(basis=BASIS), LogisticRegression(basis=BASIS)):
        model.partial_fit(X[:200], y[:200], classes=[0, 1, 2])
        first = model.basis_
        model.partial_fit(X[200:], y[200:])
        assert model.basis_ is first and model.coef_.shape == (3, 14)


@pytest.mark.filterwarnings("ignore:every one of max_iter")
@pytest.mark.parametrize("name", ["logistic", "CV", "perceptron", "LDA", "least squares"])
def test_a_fitted_model_keeps_the_basis_that_it_was_fitted_with(name):
    X, y = make_ball()
    plain = clone(MODELS[name]).fit(X, y)
    expected = plain.decision_function(X)
    np.testing.assert_array_equal(plain.set_params(basis=Polynomial(1)).decision_function(X), expected)
    bent = clone(MODELS[name]).set_params(basis=Polynomial(1)).fit(X, y)
    np.testing.assert_allclose(bent.set_params(basis=None).decision_function(X), expected, rtol=1e-6, atol=1e-6)
    bent = clone(MODELS[name]).set_params(basis=Polynomial(2)).fit(X, y)
    scores = bent.decision_function(X)
    np.testing.assert_array_equal(bent.set_params(basis=None).decision_function(X), scores)
    with pytest.raises(ValueError, match="not a linear model of the features"):
        fastdisc.geometry.hyperplane(bent)
    if hasattr(bent, "partial_fit"):
        assert bent.partial_fit(X, y).coef_.shape[1] == 9 and plain.partial_fit(X, y).coef_.shape[1] == 3
    assert bent.fit(X, y).coef_.shape[1] == 3 and not hasattr(bent, "basis_")


def test_models_of_different_bases_do_not_merge():
    X, y = make_ball()
    make = lambda rows: fastdisc.LinearDiscriminantAnalysis(basis=RadialGaussian(4)).fit(X[rows], y[rows])  # noqa: E731
    with pytest.raises(ValueError, match="bases that are not the same"):
        make(slice(0, 200)).merge(make(slice(200, 400)))
    one, other = (fastdisc.LinearDiscriminantAnalysis(basis=Quadratic()).fit(X[i::2], y[i::2]) for i in (0, 1))
    both = fastdisc.LinearDiscriminantAnalysis(basis=Quadratic()).fit(X, y)
    np.testing.assert_allclose(one.merge(other).coef_, both.coef_, rtol=1e-8)


def test_cross_validation_from_moments_takes_a_basis():
    X, y = make_ball()
    F = Quadratic().fit_transform(X)
    np.testing.assert_array_equal(
        fastdisc.cross_val_from_moments(fastdisc.LinearDiscriminantAnalysis(basis=Quadratic()), X, y),
        fastdisc.cross_val_from_moments(fastdisc.LinearDiscriminantAnalysis(), F, y),
    )


def fit(model, X=None, y=None):
    rows, labels = make_ball()
    return model.fit(rows if X is None else X, labels if y is None else y)


BAD = {
    "no basis": (lambda: fit(LogisticRegression(basis="quadratic")), "basis must be one of fastdisc.basis"),
    "a class": (lambda: fit(LogisticRegression(basis=Quadratic)), "basis must be one of fastdisc.basis"),
    "its parameters": (lambda: fit(Perceptron(basis=Polynomial(0))), "degree must be"),
    "NaN": (lambda: fit(LogisticRegression(basis=Threshold()), np.full((400, 3), np.nan)), "row 0, column 0"),
    "undefined": (lambda: fit(LogisticRegression(basis=fastdisc.basis.Log())), r"'log\(x\d\)' is nan first in row"),
    "prediction": (
        lambda: fit(LogisticRegression(basis=Threshold())).predict([[1.0, 2.0, 3.0], [0.0, np.inf, 1.0]]),
        "infinity, first in row 1, column 1",
    ),
    "columns": (lambda: fit(LogisticRegression(basis=Quadratic())).predict(np.ones((2, 4))), "X has 4 features"),
    "no basis, CV": (lambda: fit(LogisticRegressionCV(basis="x")), "basis must be one of fastdisc.basis"),
    "a class, CV": (lambda: fit(LogisticRegressionCV(basis=Quadratic)), "basis must be one of fastdisc.basis"),
    "labels held out of a part": (
        lambda: fit(LogisticRegressionCV(basis=concat(Polynomial(1), Quadratic(rank=1)))),
        "also from those of the rows held out",
    ),
    "labels held out": (lambda: fit(LogisticRegressionCV(basis=Quadratic(rank=1))), "also from those of the rows held out"),
    "rows to draw": (lambda: fit(fastdisc.LinearDiscriminantAnalysis(basis=Quadratic())).sample(3), "not rows"),
    "directions": (lambda: fit(fastdisc.FisherDiscriminant(basis=Quadratic())).criterion(np.ones(3)), "9 columns"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_sparse_rows_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(ValueError, match="X is sparse"):
        fit(LogisticRegression(basis=Quadratic()), csr_array(make_ball()[0]))


@parametrize_with_checks([LogisticRegression(basis=Quadratic()), fastdisc.LeastSquaresClassifier(1.0, basis=Polynomial())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
