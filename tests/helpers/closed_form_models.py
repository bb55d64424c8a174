"""The closed-form models, data for them, and comparisons of fitted ones."""

import numpy as np

from fastdisc import (
    BernoulliNB,
    FisherDiscriminant,
    GaussianNB,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
)

MODELS = [
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    FisherDiscriminant(),
    LeastSquaresClassifier(),
    LeastSquaresClassifierCV(),
    BernoulliNB(),
    MultinomialNB(),
    PoissonNB(),
    GaussianNB(),
]
# Those with partial_fit, forget and merge.
INCREMENTAL_MODELS = [
    *MODELS[:4],
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    LinearDiscriminantAnalysis(solver="eigen", priors=[0.2, 0.3, 0.5]),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    LeastSquaresClassifier(alpha=2.0),
    *MODELS[5:],
]
GENERATIVE_MODELS = [model for model in MODELS if hasattr(model, "sample")]


def label_of(model):
    """A model on one line, for the names of tests."""
    return repr(model).replace("\n", "")


def draw_counts(rng, n=120, d=4, K=3):
    """Counts, which every model accepts; columns are not collinear, and no class has few rows."""
    y = np.arange(n) % K
    return rng.poisson(2 + 2 * np.eye(K, d)[y] + np.arange(d)).astype(float), y


def draw_on_grid(rng, n=3000, d=3, K=3, distance=1.0):
    """Rows of standard deviation 1, rounded so that adding 1e8 to them is exact."""
    r = rng.integers(0, K, n).astype(np.int32)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3) + distance * np.eye(K, d)[r]
    return np.rint(X * 2**20) / 2**20, r


def assert_same_model(actual, expected, X, tol=1e-10):
    """The same classes, and the same scores of X, relative to the largest."""
    A, B = _scores(actual, X), _scores(expected, X)
    assert np.array_equal(actual.classes_, expected.classes_)
    assert np.abs(A - B).max() <= tol * max(1, np.abs(B).max())


def _scores(model, X):
    for name in ("predict_targets", "predict_joint_log_proba", "decision_function"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError(f"{model} has no scores")
