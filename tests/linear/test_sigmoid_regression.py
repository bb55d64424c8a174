"""SigmoidRegression: the published update, minima found by SciPy, overlapping classes."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from helpers import oracles
from helpers.data_sets import SETS, STANDARDIZED, weights_of
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from fastdisc import SigmoidRegression

CANCER, IRIS = STANDARDIZED["breast_cancer"], SETS["iris"]


def scipy_minimum(X, r, C):
    """The penalised squared error, written in NumPy and minimised by SciPy."""
    A = np.column_stack([np.ones(len(X)), X])

    def objective(w):
        y = 1 / (1 + np.exp(-np.clip(A @ w, -500, 500)))
        g = A.T @ ((y - r) * y * (1 - y))
        g[1:] += w[1:] / C
        return ((y - r) ** 2).sum() / 2 + w[1:] @ w[1:] / (2 * C), g

    start, options = np.zeros(A.shape[1]), {"maxiter": 5000, "gtol": 1e-9, "ftol": 1e-15}
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)


# --- minima ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_solvers_find_the_minimum(solver, C):
    X, y = CANCER
    model = SigmoidRegression(C=C, solver=solver, tol=1e-8).fit(X, y)
    found = scipy_minimum(X, y, C)
    assert model.converged_
    assert model.history_[0]["loss"][-1] <= found.fun * (1 + 1e-8)
    np.testing.assert_allclose(weights_of(model)[0], found.x, atol=2e-3)


@pytest.mark.parametrize("K", [2, 3])
def test_gradient_descent_equals_the_published_update(K):
    """(10.40) and (10.45), step by step from the same random weights."""
    X, y = IRIS[0][: 50 * K], IRIS[1][: 50 * K]
    options = {"C": np.inf, "eta": 0.005, "max_iter": 25, "random_state": 5}
    with pytest.warns(ConvergenceWarning, match="25 iterations"):
        model = SigmoidRegression(solver="gd", **options).fit(X, y)
    W = np.random.RandomState(5).uniform(-0.01, 0.01, (1 if K == 2 else K, 5))
    for k, w in enumerate(W):
        target = (y == (1 if K == 2 else k)).astype(int)
        for _ in range(25):
            w -= 0.005 * oracles.sigmoid_error(X, target, np.ones(len(y)), w[None])[2][0]
    np.testing.assert_allclose(weights_of(model), W, rtol=1e-9, atol=1e-12)
    assert len(model.history_) == len(W) and len(model.history_[0]["loss"]) == 26


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
def test_backends_find_the_same_minimum(backend):
    X, y = CANCER
    expected = weights_of(SigmoidRegression(tol=1e-9).fit(X, y))
    found = weights_of(SigmoidRegression(tol=1e-9, backend=backend).fit(X, y))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("form", [sparse.csr_array, np.asfortranarray])
def test_layouts_have_the_same_minimum(form):
    X, y = CANCER
    expected = weights_of(SigmoidRegression(tol=1e-9).fit(X, y))
    found = weights_of(SigmoidRegression(tol=1e-9).fit(form(X), y))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_weights_do_not_depend_on_threads():
    X, y = np.tile(CANCER[0], (20, 1)), np.tile(CANCER[1], 20)
    first, *others = (SigmoidRegression(n_threads=n).fit(X, y) for n in (1, 2, 3, 8))
    for model in others:
        assert np.array_equal(weights_of(model), weights_of(first))


def test_integer_sample_weights_equal_repeated_rows():
    X, y = CANCER
    repeat = np.arange(len(y)) % 3
    weighted = SigmoidRegression(tol=1e-10).fit(X, y, repeat)
    rows = np.repeat(np.arange(len(y)), repeat)
    repeated = SigmoidRegression(tol=1e-10).fit(X[rows], y[rows])
    np.testing.assert_allclose(weights_of(weighted), weights_of(repeated), atol=1e-6)


# --- several classes ------------------------------------------------------------------------------


def test_outputs_of_classes_are_independent_problems():
    X, y = IRIS
    model = SigmoidRegression().fit(X, y)
    for k in range(3):
        one = SigmoidRegression().fit(X, y == k)
        expected = weights_of(one)[0]
        np.testing.assert_allclose(weights_of(model)[k], expected, rtol=1e-9, atol=1e-12)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, lambda Y: Y.astype(bool), lambda Y: Y.tolist()]
)
def test_overlapping_classes(rng, form):
    X = rng.standard_normal((500, 4))
    Z = X @ rng.standard_normal((4, 3)) + 0.3 * rng.standard_normal((500, 3))
    Y = (Z > 0.5).astype(int)
    assert (Y.sum(axis=1) == 0).any() and (Y.sum(axis=1) > 1).any()
    model = SigmoidRegression(tol=1e-9).fit(X, form(Y))
    assert model.multilabel_ and model.classes_.tolist() == [0, 1, 2]
    for method in (model.predict, model.predict_proba, model.decision_function):
        assert method(X).shape == (500, 3)
    assert np.array_equal(model.predict(X), (model.predict_proba(X) > 0.5).astype(int))
    assert model.score(X, Y) == (model.predict(X) == Y).all(axis=1).mean() > 0.6
    for k in range(3):
        one = SigmoidRegression(tol=1e-9).fit(X, Y[:, k])
        np.testing.assert_allclose(weights_of(model)[k], weights_of(one)[0], atol=1e-9)


def test_classes_of_no_row_and_of_all_rows(rng):
    X = rng.standard_normal((80, 3))
    Y = np.column_stack([X[:, 0] > 0, np.zeros(80), np.ones(80)]).astype(int)
    P = SigmoidRegression().fit(X, Y).predict(X)
    assert not P[:, 1].any() and P[:, 2].all()


def load_yeast(part):
    """103 features and 14 labels of yeast genes, from the directory FASTDISC_DATA."""
    folder = os.environ.get("FASTDISC_DATA")
    file = Path(folder or ".") / "mulan_yeast" / f"yeast-{part}.arff.gz"
    if not folder or not file.exists():
        pytest.skip("FASTDISC_DATA is not a directory with mulan_yeast")
    with gzip.open(file, "rt") as lines:
        rows = [line for line in lines if line.strip() and line[0] not in "@%"]
    table = np.loadtxt(rows, delimiter=",")
    return table[:, :-14], table[:, -14:].astype(int)


def test_yeast_labels_are_predicted_as_well_as_by_one_versus_rest():
    (X, Y), (A, B) = load_yeast("train"), load_yeast("test")
    ours = SigmoidRegression().fit(X, Y).predict(A)
    rest = OneVsRestClassifier(SklearnLogisticRegression(max_iter=1000)).fit(X, Y)
    theirs = rest.predict(A)
    f1 = [f1_score(B, found, average="micro") for found in (ours, theirs)]
    assert f1[0] > f1[1] - 0.02
    assert (ours == B).mean() > (theirs == B).mean() - 0.02
