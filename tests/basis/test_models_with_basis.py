"""Models with a basis: they agree with models of the matrix of features."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.assertions import same_bits
from helpers.cases import FAST_BACKENDS, THREADS
from helpers.problems import make_ball
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fastdisc
from fastdisc import (
    LinearDiscriminantAnalysis,
    LogisticRegression,
    LogisticRegressionCV,
    OnlineClassifier,
    Perceptron,
    config_context,
)
from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import BACKENDS, Activation, Batch, RowLoss, load, row_grid
from fastdisc._kernels._numpy import basis as numpy_basis
from fastdisc._kernels._numpy import rows as numpy_rows
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
        "log_loss",
        learning_rate="constant",
        penalty="elasticnet",
        average=True,
        max_iter=3,
        tol=None,
        random_state=0,
    ),
    "adaline": fastdisc.Adaline(max_iter=3, tol=None),
    "batch adaline": fastdisc.Adaline(solver="batch", max_iter=9, tol=None),
    "least squares": fastdisc.LeastSquaresClassifier(0.1),
    "least squares, leave one out": fastdisc.LeastSquaresClassifierCV(),
    "least squares, folds": fastdisc.LeastSquaresClassifierCV(cv=3),
    "sigmoid": fastdisc.SigmoidRegression(tol=1e-10),
    "LDA": LinearDiscriminantAnalysis(),
    "LDA, shrunk": LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    "Fisher": fastdisc.FisherDiscriminant(),
}

# Numba compiles each kernel anew for mapped rows: these cover sweeps, online epochs and moments.
SLOW = {("newton-cg", "numba"), ("Fisher", "numba")}

CASES = [(name, backend) for name in MODELS for backend in BACKENDS if (name, backend) not in SLOW]


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_models_agree_with_those_of_the_matrix(name, backend):
    X, y = make_ball()
    with config_context(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few epochs suffice
        F = clone(BASIS).fit_transform(X)
        of_matrix = clone(MODELS[name]).fit(F, y)
        model = clone(MODELS[name]).set_params(basis=BASIS).fit(X, y)
        expected, Z = of_matrix.decision_function(F), model.decision_function(X)
    assert model.n_features_in_ == 3 and model.basis_.get_feature_names_out().shape == (14,)
    weights = [m.coef_ if hasattr(m, "coef_") else m.scalings_.T for m in (of_matrix, model)]
    assert weights[1].shape[1] == 14
    np.testing.assert_allclose(
        weights[1], weights[0], rtol=1e-10, atol=1e-10 * np.abs(weights[0]).max()
    )
    np.testing.assert_allclose(Z, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(model.predict(X), of_matrix.predict(F))


@pytest.mark.parametrize("backend", FAST_BACKENDS)
def test_sums_do_not_depend_on_threads(backend):
    X, y = make_ball(3000)
    rows = clone(BASIS).fit(X).mapped(DenseRows(X))
    batch = Batch(rows, y.astype(np.int32), np.ones(1))
    W, kernels = np.random.default_rng(0).standard_normal((3, 15)) / 10, load(backend)
    grid = row_grid(rows.shape, 8, 3, 2)
    same_bits([kernels.sweep(batch, RowLoss.SOFTMAX, W, 2, grid, n) for n in THREADS])


RANKERS = {
    "newton": fastdisc.PairwiseRanker(tol=1e-10),
    "newton, L1": fastdisc.PairwiseRanker("squared_hinge", l1_ratio=1.0, tol=1e-8),
    "standardised": fastdisc.PairwiseRanker("squared_hinge", standardize=True, tol=1e-10),
    "online": fastdisc.PairwiseRanker(
        "hinge", solver="online", max_iter=2, tol=0.0, random_state=0
    ),
}


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("backend", FAST_BACKENDS)
def test_rankers_agree_with_those_of_the_matrix(name, backend):
    X, y = make_ball(300)
    query = np.random.default_rng(1).integers(0, 20, 300)
    with config_context(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        F = clone(BASIS).fit_transform(X)
        of_matrix = clone(RANKERS[name]).fit(F, y, group=query)
        model = clone(RANKERS[name]).set_params(basis=BASIS).fit(X, y, group=query)
        np.testing.assert_allclose(model.coef_, of_matrix.coef_, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.predict(X), of_matrix.predict(F), rtol=1e-6, atol=1e-6)


def test_samples_take_inputs_and_columns_take_features():
    X, y = make_ball(5000, 4)
    rows = Quadratic().fit(X).mapped(DenseRows(X))
    source = MemorySource(Batch(rows, y.astype(np.int32), np.ones(1)))
    part = source.draw(500, 0).X
    assert part.inputs.shape == (part.shape[0], 4) and part.shape[1] == 14
    assert source.columns(np.array([3, 9])).X.inputs is rows.inputs


def test_reference_expands_a_limited_number_of_features_at_a_time(monkeypatch):
    X, y = make_ball(700)
    reference, rows = load("numpy"), Quadratic().fit(X).mapped(DenseRows(X))
    W, o = np.random.default_rng(0).standard_normal((3, 10)), np.linspace(-1, 1, 2100)
    batch = Batch(rows, y.astype(np.int32), np.linspace(0, 1, 700), o.reshape(700, 3))
    end = row_grid((700, 9), 8), 1
    calls = [
        lambda: reference.sweep(batch, RowLoss.SOFTMAX, W, 2, *end),
        lambda: [reference.hessian_product(batch, RowLoss.SOFTMAX, W, W[::-1].copy(), *end)],
        lambda: reference.outputs(rows, Activation.SOFTMAX, W, *end),
    ]
    expected = [call() for call in calls]
    sizes, features = [], numpy_basis.features

    def counted(program, X):
        sizes.append(len(X))
        return features(program, X)

    monkeypatch.setattr(numpy_basis, "features", counted)
    monkeypatch.setattr(numpy_rows, "MAX_EXPANDED_CELLS", 9 * 64)
    for call, whole in zip(calls, expected, strict=True):
        for a, b in zip(call(), whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    assert sizes and set(sizes) == {64, 700 % 64}


def test_columns_far_from_zero_keep_their_digits():
    """Products of such columns are almost collinear: the features are standardised."""
    X, y = make_ball(4000, 2, 2)
    X = X + 1000
    F = Quadratic().fit_transform(X)
    model = LogisticRegression(basis=Quadratic(), standardize=True, tol=1e-8).fit(X, y)
    of_matrix = LogisticRegression(standardize=True, tol=1e-8).fit(F, y)
    np.testing.assert_allclose(model.predict_proba(X), of_matrix.predict_proba(F), atol=1e-6)


def test_pipeline_grid_search_pickle_and_names():
    X, y = make_ball()
    X = pd.DataFrame(X, columns=list("abc"))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(basis=Polynomial())),
        {"logisticregression__basis__degree": [1, 2]},
        cv=3,
    ).fit(X, (X**2).sum(axis=1) > 3)
    assert search.best_params_ == {"logisticregression__basis__degree": 2}
    search = GridSearchCV(
        LogisticRegression(basis=concat(Polynomial(), Threshold())),
        {"basis__0__degree": [1, 2]},
        cv=3,
    )
    assert search.fit(X, (X**2).sum(axis=1) > 3).best_params_ == {"basis__0__degree": 2}
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(X, y == 0)
    assert "a b" in str(model.summary())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_partial_fit_keeps_the_basis_of_the_first_rows():
    X, y = make_ball()
    for model in (
        Perceptron(basis=BASIS),
        fastdisc.LeastSquaresClassifier(basis=BASIS),
        LogisticRegression(basis=BASIS),
    ):
        model.partial_fit(X[:200], y[:200], classes=[0, 1, 2])
        first = model.basis_
        model.partial_fit(X[200:], y[200:])
        assert model.basis_ is first and model.coef_.shape == (3, 14)


@pytest.mark.filterwarnings("ignore:every one of max_iter")
@pytest.mark.parametrize("name", ["logistic", "CV", "perceptron", "LDA", "least squares"])
def test_fitted_model_keeps_its_basis(name):
    X, y = make_ball()
    plain = clone(MODELS[name]).fit(X, y)
    expected = plain.decision_function(X)
    np.testing.assert_array_equal(
        plain.set_params(basis=Polynomial(1)).decision_function(X), expected
    )
    mapped = clone(MODELS[name]).set_params(basis=Polynomial(1)).fit(X, y)
    np.testing.assert_allclose(
        mapped.set_params(basis=None).decision_function(X), expected, rtol=1e-6, atol=1e-6
    )
    mapped = clone(MODELS[name]).set_params(basis=Polynomial(2)).fit(X, y)
    scores = mapped.decision_function(X)
    np.testing.assert_array_equal(mapped.set_params(basis=None).decision_function(X), scores)
    with pytest.raises(ValueError, match="not a linear model of the features"):
        fastdisc.geometry.hyperplane(mapped)
    if hasattr(mapped, "partial_fit"):
        assert mapped.partial_fit(X, y).coef_.shape[1] == 9
        assert plain.partial_fit(X, y).coef_.shape[1] == 3
    assert mapped.fit(X, y).coef_.shape[1] == 3 and not hasattr(mapped, "basis_")


def test_models_of_different_bases_do_not_merge():
    X, y = make_ball()
    first, second = (
        LinearDiscriminantAnalysis(basis=RadialGaussian(4)).fit(X[i::2], y[i::2]) for i in (0, 1)
    )
    with pytest.raises(ValueError, match="bases that are not the same"):
        first.merge(second)


def test_models_of_the_same_basis_merge():
    X, y = make_ball()
    one, other = (
        LinearDiscriminantAnalysis(basis=Quadratic()).fit(X[i::2], y[i::2]) for i in (0, 1)
    )
    both = LinearDiscriminantAnalysis(basis=Quadratic()).fit(X, y)
    np.testing.assert_allclose(one.merge(other).coef_, both.coef_, rtol=1e-8)


def test_cross_validation_from_moments_supports_a_basis():
    X, y = make_ball()
    F = Quadratic().fit_transform(X)
    np.testing.assert_array_equal(
        fastdisc.cross_val_from_moments(LinearDiscriminantAnalysis(basis=Quadratic()), X, y),
        fastdisc.cross_val_from_moments(LinearDiscriminantAnalysis(), F, y),
    )


def fit(model, X=None, y=None):
    rows, labels = make_ball()
    return model.fit(rows if X is None else X, labels if y is None else y)


BAD = {
    "no basis": (
        lambda: fit(LogisticRegression(basis="quadratic")),
        "basis must be one of fastdisc.basis",
    ),
    "a class": (
        lambda: fit(LogisticRegression(basis=Quadratic)),
        "basis must be one of fastdisc.basis",
    ),
    "its parameters": (lambda: fit(Perceptron(basis=Polynomial(0))), "degree must be"),
    "NaN": (
        lambda: fit(LogisticRegression(basis=Threshold()), np.full((400, 3), np.nan)),
        "row 0, column 0",
    ),
    "undefined": (
        lambda: fit(LogisticRegression(basis=fastdisc.basis.Log())),
        r"'log\(x\d\)' is nan first in row",
    ),
    "prediction": (
        lambda: fit(LogisticRegression(basis=Threshold())).predict(
            [[1.0, 2.0, 3.0], [0.0, np.inf, 1.0]]
        ),
        "infinity, first in row 1, column 1",
    ),
    "columns": (
        lambda: fit(LogisticRegression(basis=Quadratic())).predict(np.ones((2, 4))),
        "X has 4 features",
    ),
    "no basis, CV": (
        lambda: fit(LogisticRegressionCV(basis="x")),
        "basis must be one of fastdisc.basis",
    ),
    "a class, CV": (
        lambda: fit(LogisticRegressionCV(basis=Quadratic)),
        "basis must be one of fastdisc.basis",
    ),
    "labels of held-out rows, in a part": (
        lambda: fit(LogisticRegressionCV(basis=concat(Polynomial(1), Quadratic(rank=1)))),
        "also from those of the rows held out",
    ),
    "labels of held-out rows": (
        lambda: fit(LogisticRegressionCV(basis=Quadratic(rank=1))),
        "also from those of the rows held out",
    ),
    "rows to draw": (
        lambda: fit(LinearDiscriminantAnalysis(basis=Quadratic())).sample(3),
        "not rows",
    ),
    "directions": (
        lambda: fit(fastdisc.FisherDiscriminant(basis=Quadratic())).criterion(np.ones(3)),
        "9 columns",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_raises(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_sparse_rows_raise():
    with pytest.raises(ValueError, match="X is sparse"):
        fit(LogisticRegression(basis=Quadratic()), csr_array(make_ball()[0]))


@parametrize_with_checks(
    [
        LogisticRegression(basis=Quadratic()),
        fastdisc.LeastSquaresClassifier(1.0, basis=Polynomial()),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
