"""SigmoidRegression: the published update, minima that no other solver lowers, overlapping classes."""

import gzip
import os
from pathlib import Path

import numpy as np
import oracles
import pytest
from scipy import optimize, sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from fastdisc import SigmoidRegression

CANCER = StandardScaler().fit_transform(load_breast_cancer().data), load_breast_cancer().target
IRIS = load_iris(return_X_y=True)


def weights(model):
    return np.column_stack([model.intercept_, model.coef_])


def scipy_minimum(X, r, C, start):
    """L-BFGS on the definition in NumPy: the loss."""
    A = np.column_stack([np.ones(len(X)), X])

    def objective(w):
        y = 1 / (1 + np.exp(-np.clip(A @ w, -500, 500)))
        g = A.T @ ((y - r) * y * (1 - y))
        g[1:] += w[1:] / C
        return ((y - r) ** 2).sum() / 2 + w[1:] @ w[1:] / (2 * C), g

    return optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9, "ftol": 1e-15}
    )


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_solvers_find_the_minimum(solver, C):
    X, y = CANCER
    model = SigmoidRegression(C=C, solver=solver, tol=1e-8).fit(X, y)
    found = scipy_minimum(X, y, C, np.zeros(31))
    assert model.converged_ and model.history_[0]["loss"][-1] <= found.fun * (1 + 1e-8)
    np.testing.assert_allclose(weights(model)[0], found.x, atol=2e-3)


@pytest.mark.parametrize("K", [2, 3])
def test_gradient_descent_is_the_published_update(K):
    """(10.40) and (10.45), step by step from the same random weights."""
    X, y = IRIS[0][: 50 * K], IRIS[1][: 50 * K]
    with pytest.warns(ConvergenceWarning, match="25 iterations"):
        model = SigmoidRegression(solver="gd", C=np.inf, eta=0.005, max_iter=25, random_state=5).fit(X, y)
    W = np.random.RandomState(5).uniform(-0.01, 0.01, (1 if K == 2 else K, 5))
    for k, w in enumerate(W):
        target = (y == (1 if K == 2 else k)).astype(int)
        for _ in range(25):
            w -= 0.005 * oracles.sigmoid_error(X, target, np.ones(len(y)), w[None])[2][0]
    np.testing.assert_allclose(weights(model), W, rtol=1e-9, atol=1e-12)
    assert len(model.history_) == len(W) and len(model.history_[0]["loss"]) == 26


def test_classes_are_problems_of_their_own():
    X, y = IRIS
    model = SigmoidRegression().fit(X, y)
    for k in range(3):
        one = SigmoidRegression().fit(X, y == k)
        np.testing.assert_allclose(weights(model)[k], weights(one)[0], rtol=1e-9, atol=1e-12)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X)) and model.score(X, y) > 0.8


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda Y: Y.astype(bool), lambda Y: Y.tolist()])
def test_overlapping_classes(rng, form):
    X = rng.standard_normal((500, 4))
    Y = (X @ rng.standard_normal((4, 3)) + 0.3 * rng.standard_normal((500, 3)) > 0.5).astype(int)
    assert (Y.sum(axis=1) == 0).any() and (Y.sum(axis=1) > 1).any()
    model = SigmoidRegression(tol=1e-9).fit(X, form(Y))
    assert model.multilabel_ and model.classes_.tolist() == [0, 1, 2]
    assert model.predict(X).shape == model.predict_proba(X).shape == model.decision_function(X).shape == (500, 3)
    assert np.array_equal(model.predict(X), (model.predict_proba(X) > 0.5).astype(int))
    assert model.score(X, Y) == (model.predict(X) == Y).all(axis=1).mean() > 0.6
    for k in range(3):
        np.testing.assert_allclose(weights(model)[k], weights(SigmoidRegression(tol=1e-9).fit(X, Y[:, k]))[0], atol=1e-9)


def test_a_label_that_nobody_has(rng):
    X = rng.standard_normal((80, 3))
    Y = np.column_stack([X[:, 0] > 0, np.zeros(80), np.ones(80)]).astype(int)
    P = SigmoidRegression().fit(X, Y).predict(X)
    assert not P[:, 1].any() and P[:, 2].all()


def yeast(part):
    """The 103 features and 14 labels of the yeast genes, where FASTDISC_DATA has them."""
    folder = os.environ.get("FASTDISC_DATA")
    file = Path(folder or ".") / "mulan_yeast" / f"yeast-{part}.arff.gz"
    if not folder or not file.exists():
        pytest.skip("FASTDISC_DATA names no folder with mulan_yeast")
    with gzip.open(file, "rt") as lines:
        rows = [line for line in lines if line.strip() and line[0] not in "@%"]
    table = np.loadtxt(rows, delimiter=",")
    return table[:, :-14], table[:, -14:].astype(int)


def test_yeast_beside_one_against_the_rest():
    (X, Y), (A, B) = yeast("train"), yeast("test")
    ours = SigmoidRegression().fit(X, Y).predict(A)
    theirs = OneVsRestClassifier(Rival(max_iter=1000)).fit(X, Y).predict(A)
    assert f1_score(B, ours, average="micro") > f1_score(B, theirs, average="micro") - 0.02
    assert (ours == B).mean() > (theirs == B).mean() - 0.02


@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
def test_backends_types_and_threads_agree(backend):
    X, y = CANCER
    expected = weights(SigmoidRegression(tol=1e-9).fit(X, y))
    np.testing.assert_allclose(weights(SigmoidRegression(tol=1e-9, backend=backend).fit(X, y)), expected, atol=1e-6)
    if backend == "cython":
        for A in (sparse.csr_array(X), np.asfortranarray(X)):
            np.testing.assert_allclose(weights(SigmoidRegression(tol=1e-9).fit(A, y)), expected, atol=1e-5)
        models = [SigmoidRegression(n_threads=n).fit(np.tile(X, (20, 1)), np.tile(y, 20)) for n in (1, 2, 3, 8)]
        for model in models[1:]:
            assert np.array_equal(weights(model), weights(models[0]))


def test_weights_repeat_rows():
    X, y = CANCER
    repeat = np.arange(len(y)) % 3
    weighted = SigmoidRegression(tol=1e-10).fit(X, y, repeat)
    repeated = SigmoidRegression(tol=1e-10).fit(np.repeat(X, repeat, axis=0), np.repeat(y, repeat))
    np.testing.assert_allclose(weights(weighted), weights(repeated), atol=1e-6)
