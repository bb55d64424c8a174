"""Adaline: the least-mean-squares rule, online and in batch."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fastdisc import Adaline

CANCER = StandardScaler().fit_transform(load_breast_cancer().data), load_breast_cancer().target


def least_squares(X, y):
    A, t = np.column_stack([np.ones(len(X)), X]), np.where(y == 1, 1.0, -1.0)
    return np.linalg.lstsq(A, t, rcond=None)[0]


def test_batch_converges_to_least_squares():
    X, y = StandardScaler().fit_transform(load_iris().data), load_iris().target
    for A in (X, sparse.csr_array(X), X.astype(np.float32)):
        model = Adaline(solver="batch", tol=1e-8, max_iter=10_000).fit(A, y == 0)
        np.testing.assert_allclose(
            np.append(model.intercept_, model.coef_), least_squares(X, y == 0), atol=1e-5
        )
    many = Adaline(solver="batch", tol=1e-8, max_iter=10_000).fit(X, y)
    for k in range(3):
        np.testing.assert_allclose(many.coef_[k], least_squares(X, y == k)[1:], atol=1e-5)
    assert np.all(np.diff(many.history_["loss"]) <= 1e-12)


def test_online_approaches_least_squares(rng):
    X = rng.standard_normal((20_000, 3))
    y = (X @ [1.0, -2.0, 0.5] + rng.standard_normal(20_000) > 0).astype(int)
    model = Adaline(max_iter=20, tol=None, shuffle="rows").fit(X, y)
    np.testing.assert_allclose(
        np.append(model.intercept_, model.coef_), least_squares(X, y), atol=0.01
    )


def test_online_step_is_the_published_rule():
    X, y = CANCER
    model = Adaline(eta0=0.01, average=False).partial_fit(X[:50], y[:50], classes=[0, 1])
    w = np.zeros(X.shape[1] + 1)
    for x, target in zip(np.column_stack([np.ones(50), X[:50]]), 2 * y[:50] - 1, strict=True):
        w += 0.01 * (target - w @ x) * x
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), w, rtol=1e-10)


@pytest.mark.parametrize("solver", ["online", "batch"])
def test_steps_that_would_diverge_raise(solver):
    X, y = CANCER
    A = np.column_stack([np.ones(len(X)), X])
    limit = 2 / np.linalg.eigvalsh(A.T @ A / len(A))[-1]
    with pytest.raises(ValueError, match="largest eigenvalue"):
        Adaline(solver=solver, eta0=1.05 * limit).fit(X, y)
    if solver == "batch":
        with pytest.warns(ConvergenceWarning, match="max_iter=50 steps"):
            assert np.isfinite(
                Adaline(solver=solver, eta0=0.95 * limit, max_iter=50).fit(X, y).coef_
            ).all()
