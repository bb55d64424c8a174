"""Perceptron: the published algorithm, the convergence theorem, agreement with scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Rival
from sklearn.preprocessing import StandardScaler

from fastdisc import Perceptron

DIGITS = load_digits(return_X_y=True)
CANCER = StandardScaler().fit_transform(load_breast_cancer().data), load_breast_cancer().target


def with_margin(rng, n, d, gamma):
    """Rows of norm at most 1 that a known plane through the origin separates by gamma."""
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, d))
    X -= np.outer(X @ w, w)
    X *= 0.8 / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = rng.integers(0, 2, n)
    return X + np.outer((2 * y - 1) * (gamma + 0.2 * rng.random(n)), w), y


# Figure 4.7: the initial weights, and those after each of the two updates, by rows 2 and 3.
FIGURE_X = np.array([[0.8, 0.6], [-0.6, -0.4], [0.2, -0.8], [-0.7, 0.5]])
FIGURE_Y = np.array([1, 0, 1, 0])
FIGURE_WEIGHTS = np.array([[-0.2, 0.9], [0.0, 0.1], [0.7, -0.4]])


def test_epochs_end_at_the_weights_of_the_figure():
    start = {"coef_init": FIGURE_WEIGHTS[:1], "intercept_init": [0.0]}
    model = Perceptron(shuffle=False, fit_intercept=False, tol=None, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="every one of max_iter=1 epochs had mistakes"):
        model.fit(FIGURE_X, FIGURE_Y, **start)
    np.testing.assert_allclose(model.coef_[0], FIGURE_WEIGHTS[2], atol=1e-15)
    model.set_params(max_iter=2).fit(FIGURE_X, FIGURE_Y, **start)
    np.testing.assert_allclose(model.coef_[0], FIGURE_WEIGHTS[2], atol=1e-15)
    assert model.converged_ and model.n_mistakes_.tolist() == [2, 0] and model.n_updates_ == 2


def test_partial_fits_make_the_updates_of_the_figure():
    model = Perceptron(shuffle=False, fit_intercept=False, warm_start=True)
    model.coef_, model.intercept_ = FIGURE_WEIGHTS[:1], np.zeros(1)
    model.classes_, model.n_features_in_ = np.array([0, 1]), 2
    for rows, expected in ((slice(0, 3), FIGURE_WEIGHTS[1]), (slice(3, 4), FIGURE_WEIGHTS[2])):
        model.partial_fit(FIGURE_X[rows], FIGURE_Y[rows])
        np.testing.assert_allclose(model.coef_[0], expected, atol=1e-15)


@pytest.mark.parametrize("gamma", [0.05, 0.2])
@pytest.mark.parametrize("shuffle", [True, False, "rows"])
def test_mistakes_are_within_the_bound_of_the_convergence_theorem(rng, gamma, shuffle):
    X, y = with_margin(rng, 2000, 5, gamma)
    model = Perceptron(tol=None, fit_intercept=False, shuffle=shuffle).fit(X, y)
    assert model.converged_ and model.n_mistakes_[-1] == 0 and model.score(X, y) == 1
    radius = np.linalg.norm(X, axis=1).max()
    assert model.n_updates_ <= (radius / gamma) ** 2, "more mistakes than the theorem allows"
    assert model.n_updates_ <= model.bound_
    z = np.where(y == 1, 1, -1) * (X @ model.coef_[0]) / np.linalg.norm(model.coef_)
    assert model.margin_ == pytest.approx(z.min())


@pytest.mark.parametrize("multi_class", ["winner", "ovr"])
def test_mistakes_are_within_the_bound_for_many_classes(rng, multi_class):
    y = rng.integers(0, 4, 800)
    X = np.eye(4)[y] * 3 + 0.3 * rng.standard_normal((800, 4))
    model = Perceptron(tol=None, multi_class=multi_class).fit(X, y)
    assert model.converged_ and model.score(X, y) == 1
    assert 0 < model.n_updates_ <= model.bound_ and model.margin_ > 0


def test_separable_binary_features_converge(rng):
    """One-hot categories with a linear rule, in several types and layouts."""
    A = np.hstack([np.eye(5)[rng.integers(0, 5, 3000)] for _ in range(20)])
    y = (A[:, 3] + A[:, 11] - A[:, 20] - 2 * A[:, 42] > 0).astype(int)
    for X in (A, sparse.csr_array(A), A.astype(np.uint8), A.astype(bool)):
        model = Perceptron(tol=None).fit(X, y)
        assert model.converged_ and model.score(X, y) == 1


@pytest.mark.parametrize("penalty", [None, "l2", "l1"])
def test_one_vs_rest_agrees_with_scikit_learn(penalty):
    X, y = DIGITS
    options = {"max_iter": 4, "tol": None, "shuffle": False, "penalty": penalty}
    with pytest.warns(ConvergenceWarning):
        ours = Perceptron(multi_class="ovr", **options).fit(X, y)
    theirs = Rival(**options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("y", [DIGITS[1], DIGITS[1] % 2], ids=["ten classes", "two classes"])
def test_partial_fits_of_parts_are_one_epoch(average, y):
    X = DIGITS[0]
    with pytest.warns(ConvergenceWarning):
        epoch = Perceptron(max_iter=1, shuffle=False, average=average).fit(X, y)
    for cuts in ([], [700], [1, 2, 900, 901]):
        stream = Perceptron(average=average)
        for rows in np.split(np.arange(len(y)), cuts):
            stream.partial_fit(X[rows], y[rows], classes=np.unique(y))
        if average:
            np.testing.assert_allclose(stream.coef_, epoch.coef_, rtol=1e-10, atol=1e-12)
        else:
            assert np.array_equal(stream.coef_, epoch.coef_)
            assert np.array_equal(stream.intercept_, epoch.intercept_)
    assert stream.t_ == 1 + len(y)


def test_average_is_the_mean_of_the_weights(rng):
    X, y = CANCER
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(average=50, max_iter=1, shuffle=False).fit(X, y)
    w, total, rows = np.zeros(X.shape[1] + 1), 0.0, 0
    for x, sign in zip(np.column_stack([np.ones(len(X)), X]), 2 * y - 1, strict=True):
        w = w + sign * x if sign * (w @ x) <= 0 else w
        rows += 1
        total = total + w if rows >= 50 else total
    np.testing.assert_allclose(
        np.append(model.intercept_, model.coef_), total / (rows - 49), rtol=1e-10
    )


def test_pocket_keeps_the_weights_of_the_best_epoch(rng):
    X = rng.standard_normal((400, 2))
    y = (X[:, 0] + rng.standard_normal(400) > 0).astype(int)
    options = {"tol": None, "max_iter": 30}
    with pytest.warns(ConvergenceWarning, match="may not be separable"):
        plain, best = Perceptron(**options).fit(X, y), Perceptron(pocket=True, **options).fit(X, y)
    epochs = []
    for n in range(1, 31):
        with pytest.warns(ConvergenceWarning):
            epochs.append(Perceptron(tol=None, max_iter=n).fit(X, y).score(X, y))
    assert not plain.converged_ and plain.bound_ is None
    assert best.score(X, y) == max(epochs) > plain.score(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_types_layouts_backends_and_threads_agree():
    X, y = DIGITS
    models = [
        Perceptron(max_iter=3).fit(A, y)
        for A in (X, X.astype(np.uint8), X.astype(np.float32), np.asfortranarray(X))
    ]
    models += [Perceptron(max_iter=3, n_threads=n).fit(X, y) for n in (1, 3)]
    models += [Perceptron(max_iter=3, backend=name).fit(X, y) for name in ("numba", "numpy")]
    for model in models[1:]:  # all features are integers, so that sums are exact
        assert np.array_equal(model.coef_, models[0].coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_sorted_by_class_are_shuffled():
    X, y = DIGITS
    order = np.argsort(y, kind="stable")
    assert Perceptron(max_iter=10).fit(X[order], y[order]).score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_early_stopping_ends_before_max_iter(capsys):
    X, y = CANCER
    model = Perceptron(early_stopping=True, verbose=1).fit(X, y)
    assert model.n_iter_ < 100 and model.score(X, y) > 0.9
    assert capsys.readouterr().out.startswith("[online]     1  loss ")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_class_weight_gives_more_predictions_of_the_class():
    X, y = CANCER
    shares = [
        Perceptron(class_weight=weights, max_iter=1, shuffle=False).fit(X, y).predict(X).mean()
        for weights in (None, {0: 1.0, 1: 1000.0})
    ]
    assert shares[1] > shares[0]


def test_margin_with_average_is_that_of_the_last_weights():
    """The averaged weights need not separate rows that the last weights separate."""
    rng = np.random.default_rng(4)
    A, w = rng.standard_normal((12, 2)), rng.standard_normal(2)
    b = (A @ w + 0.3 > 0).astype(int)
    model = Perceptron(average=True, tol=None, max_iter=3000).fit(A, b)
    assert model.converged_ and model.margin_ > 0
    assert model.n_updates_ <= model.bound_
