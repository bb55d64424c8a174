"""Models with the quadratic basis: quadratic discriminants and their published examples."""

import numpy as np
import pytest
from helpers.problems import make_ball
from sklearn.exceptions import ConvergenceWarning

from fastdisc import LogisticRegression, QuadraticDiscriminantAnalysis
from fastdisc.basis import Quadratic, Threshold


def test_quadratic_attribute_is_symmetric_and_gives_the_scores():
    X, y = make_ball(500, 4)
    model = LogisticRegression(basis=Quadratic()).fit(X, y)
    assert model.quadratic_.shape == (3, 4, 4)
    np.testing.assert_array_equal(model.quadratic_, model.quadratic_.swapaxes(1, 2))
    Z = (
        np.einsum("ni,kij,nj->nk", X, model.quadratic_, X)
        + X @ model.coef_[:, :4].T
        + model.intercept_
    )
    np.testing.assert_allclose(Z, model.decision_function(X), rtol=1e-10, atol=1e-12)
    assert not hasattr(LogisticRegression().fit(X, y), "quadratic_")
    assert not hasattr(LogisticRegression(basis=Threshold()).fit(X, y), "quadratic_")


def test_gradient_descent_makes_the_published_update():
    """Exercise 5: W_jkl += eta sum_t (r_j - y_j) x_k x_l, one step from given weights."""
    X, y = make_ball(60, 2)
    model = LogisticRegression(
        basis=Quadratic(), solver="gd", eta=0.01, C=np.inf, max_iter=1, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        after = model.fit(X, y).quadratic_
    W = np.random.RandomState(0).uniform(-0.01, 0.01, (3, 6))
    F = np.column_stack([np.ones(60), X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])
    Y = np.exp(F @ W.T)
    E = np.eye(3)[y] - Y / Y.sum(axis=1, keepdims=True)
    W = W + 0.01 * E.T @ F
    expected = np.array([[[w[3], w[4] / 2], [w[4] / 2, w[5]]] for w in W])
    np.testing.assert_allclose(after, expected, rtol=1e-12)


def test_interval_is_separated_from_the_rest():
    """Exercise 9 and figure 10.12: (2, 4) against the rest by w_2 x^2 + w_1 x + w_0, which is
    proportional to (x - 3)^2 - 1."""
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
    signs = np.sign(model.decision_function([[1.0], [3.0], [5.0]]))
    assert signs.tolist() == [1, -1, 1]
    # The probability is below a half inside, and smallest in the middle.
    assert model.predict_proba([[3.0]])[0, 1] < 0.5
    inside = model.predict_proba(np.linspace(2.1, 3.9, 19)[:, None])[:, 1]
    assert inside.argmin() == 9 or np.allclose(inside, 0, atol=1e-12)


def test_odds_of_figure_10_12_are_estimated():
    """Labels are drawn with the odds of the figure: the discriminant is (x - 3)^2 - 1, and its
    sigmoid is a half at 2 and 4."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 6, 200_000)
    r = rng.random(len(x)) < 1 / (1 + np.exp(-((x - 3) ** 2 - 1)))
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(x[:, None], r)
    np.testing.assert_allclose(
        [model.quadratic_[0, 0, 0], model.coef_[0, 0], model.intercept_[0]], [1, -6, 8], rtol=0.03
    )
    np.testing.assert_allclose(model.predict_proba([[2.0], [4.0]])[:, 1], 0.5, atol=0.01)
    assert model.predict_proba([[3.0]])[0, 1] == pytest.approx(1 / (1 + np.e), abs=0.01)


def test_gaussian_classes_give_the_discriminants_of_quadratic_discriminant_analysis():
    rng = np.random.default_rng(1)
    A = [rng.standard_normal((3, 3)) / 2 + np.eye(3) for _ in range(3)]
    y = rng.integers(0, 3, 200_000)
    X = np.empty((len(y), 3))
    for k in range(3):
        mine = y == k
        X[mine] = rng.standard_normal((mine.sum(), 3)) @ A[k].T + k
    model = LogisticRegression(basis=Quadratic(), C=np.inf).fit(X, y)
    parametric = QuadraticDiscriminantAnalysis().fit(X, y)
    assert np.abs(model.predict_proba(X) - parametric.predict_proba(X)).mean() < 0.005
    for k in (1, 2):
        difference = np.linalg.inv(A[0] @ A[0].T) / 2 - np.linalg.inv(A[k] @ A[k].T) / 2
        np.testing.assert_allclose(
            model.quadratic_[k] - model.quadratic_[0],
            difference,
            atol=0.05 * np.abs(difference).max() + 0.02,
        )


@pytest.mark.parametrize("K", [2, 3])
def test_rank_finds_the_subspace_of_the_leading_eigenvectors(K):
    rng = np.random.default_rng(2)
    d, n = 8, 20_000
    V = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    X = rng.standard_normal((n, d))
    Z = X @ V.T
    scores = np.column_stack([np.zeros(n), 2 * Z[:, 0] ** 2 - 2, -2 * Z[:, 1] ** 2 + Z[:, 0]])[
        :, :K
    ]
    y = (
        np.exp(scores).cumsum(axis=1) / np.exp(scores).sum(axis=1)[:, None] < rng.random(n)[:, None]
    ).sum(axis=1)
    rank = K - 1
    model = LogisticRegression(basis=Quadratic(rank=rank)).fit(X, y)
    assert model.coef_.shape[1] == d + rank * (rank + 1) // 2
    assert all(np.linalg.matrix_rank(W, tol=1e-8) <= rank for W in model.quadratic_)
    np.testing.assert_allclose(
        np.linalg.svd(model.basis_.directions_ @ V[:rank].T)[1], 1, atol=0.01
    )
    assert model.score(X, y) > LogisticRegression(basis=Quadratic()).fit(X, y).score(X, y) - 0.005
    everything = LogisticRegression(basis=Quadratic(rank=d), tol=1e-8, C=np.inf).fit(
        X[:3000], y[:3000]
    )
    full = LogisticRegression(basis=Quadratic(), tol=1e-8, C=np.inf).fit(X[:3000], y[:3000])
    np.testing.assert_allclose(everything.predict_proba(X), full.predict_proba(X), atol=1e-5)
    F = Quadratic(rank=rank).fit(X, y).transform(X)
    np.testing.assert_array_equal(F[:, :d], X)
