"""Perceptron and Adaline: the published algorithm, its theorem, and scikit-learn's answers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Rival
from sklearn.preprocessing import StandardScaler

from fastdisc import Adaline, Perceptron

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


def test_the_four_steps_of_the_figure():
    """Figure 4.7's course: a start, a misclassified point, the plane turned, another point, and all are right."""
    X = np.array([[0.8, 0.6], [-0.6, -0.4], [0.2, -0.8], [-0.7, 0.5]])
    y = np.array([1, 0, 1, 0])
    start = {"coef_init": [[-0.2, 0.9]], "intercept_init": [0.0]}
    model = Perceptron(shuffle=False, fit_intercept=False, tol=None)
    weights = [np.array([-0.2, 0.9]), np.array([0.0, 0.1]), np.array([0.7, -0.4])]  # third row added, then the fourth subtracted
    for epochs, expected in ((1, weights[2]), (2, weights[2])):
        model.set_params(max_iter=epochs)
        if epochs == 1:
            with pytest.warns(ConvergenceWarning, match="every one of max_iter=1 epochs had mistakes"):
                model.fit(X, y, **start)
        else:
            model.fit(X, y, **start)
        np.testing.assert_allclose(model.coef_[0], expected, atol=1e-15)
    assert model.converged_ and model.n_mistakes_.tolist() == [2, 0] and model.n_updates_ == 2
    steps = Perceptron(shuffle=False, fit_intercept=False, warm_start=True)
    steps.coef_, steps.intercept_, steps.classes_, steps.n_features_in_ = np.array([weights[0]]), np.zeros(1), np.array([0, 1]), 2
    for rows, expected in ((slice(0, 3), weights[1]), (slice(3, 4), weights[2])):
        steps.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(steps.coef_[0], expected, atol=1e-15)


@pytest.mark.parametrize("gamma", [0.05, 0.2])
@pytest.mark.parametrize("shuffle", [True, False, "rows"])
def test_the_convergence_theorem(rng, gamma, shuffle):
    X, y = with_margin(rng, 2000, 5, gamma)
    model = Perceptron(tol=None, fit_intercept=False, shuffle=shuffle).fit(X, y)
    assert model.converged_ and model.n_mistakes_[-1] == 0 and model.score(X, y) == 1
    radius = np.linalg.norm(X, axis=1).max()
    assert model.n_updates_ <= (radius / gamma) ** 2, "more mistakes than the theorem allows"
    assert model.n_updates_ <= model.bound_
    z = np.where(y == 1, 1, -1) * (X @ model.coef_[0]) / np.linalg.norm(model.coef_)
    assert model.margin_ == pytest.approx(z.min())


@pytest.mark.parametrize("multi_class", ["winner", "ovr"])
def test_the_bound_for_many_classes(rng, multi_class):
    y = rng.integers(0, 4, 800)
    X = np.eye(4)[y] * 3 + 0.3 * rng.standard_normal((800, 4))
    model = Perceptron(tol=None, multi_class=multi_class).fit(X, y)
    assert model.converged_ and model.score(X, y) == 1 and 0 < model.n_updates_ <= model.bound_ and model.margin_ > 0


def test_separable_attributes_converge(rng):
    """Like the mushrooms: categories as zeros and ones, sparse, separable."""
    A = np.hstack([np.eye(5)[rng.integers(0, 5, 3000)] for _ in range(20)])
    y = (A[:, 3] + A[:, 11] - A[:, 20] - 2 * A[:, 42] > 0).astype(int)
    for X in (A, sparse.csr_array(A), A.astype(np.uint8), A.astype(bool)):
        model = Perceptron(tol=None).fit(X, y)
        assert model.converged_ and model.score(X, y) == 1


@pytest.mark.parametrize("penalty", [None, "l2", "l1"])
def test_one_against_the_rest_is_that_of_scikit_learn(penalty):
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
def test_chunks_of_a_stream_are_one_epoch(average, y):
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
            assert np.array_equal(stream.coef_, epoch.coef_) and np.array_equal(stream.intercept_, epoch.intercept_)
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
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), total / (rows - 49), rtol=1e-10)


def test_the_pocket_keeps_the_best(rng):
    X = rng.standard_normal((400, 2))
    y = (X[:, 0] + rng.standard_normal(400) > 0).astype(int)
    options = {"tol": None, "max_iter": 30}
    with pytest.warns(ConvergenceWarning, match="may not be separable"):
        plain, kept = Perceptron(**options).fit(X, y), Perceptron(pocket=True, **options).fit(X, y)
    epochs = []
    for n in range(1, 31):
        with pytest.warns(ConvergenceWarning):
            epochs.append(Perceptron(tol=None, max_iter=n).fit(X, y).score(X, y))
    assert not plain.converged_ and plain.bound_ is None
    assert kept.score(X, y) == max(epochs) > plain.score(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_types_layouts_backends_and_threads_agree():
    X, y = DIGITS
    models = [Perceptron(max_iter=3).fit(A, y) for A in (X, X.astype(np.uint8), X.astype(np.float32), np.asfortranarray(X))]
    models += [Perceptron(max_iter=3, n_threads=n).fit(X, y) for n in (1, 3)]
    models += [Perceptron(max_iter=3, backend=name).fit(X, y) for name in ("numba", "numpy")]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)  # whole numbers: all sums are exact


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_sorted_by_class_are_mixed():
    X, y = DIGITS
    order = np.argsort(y, kind="stable")
    assert Perceptron(max_iter=10).fit(X[order], y[order]).score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_early_stopping_and_class_weights(capsys):
    X, y = CANCER
    model = Perceptron(early_stopping=True, verbose=1).fit(X, y)
    assert model.n_iter_ < 100 and model.score(X, y) > 0.9
    assert capsys.readouterr().out.startswith("[online]     1  loss ")
    heavy = Perceptron(class_weight={0: 1.0, 1: 1000.0}, max_iter=1, shuffle=False).fit(X, y)
    assert (heavy.predict(X) == 1).mean() > (Perceptron(max_iter=1, shuffle=False).fit(X, y).predict(X) == 1).mean()


def least_squares(X, y):
    A, t = np.column_stack([np.ones(len(X)), X]), np.where(y == 1, 1.0, -1.0)
    return np.linalg.lstsq(A, t, rcond=None)[0]


def test_adaline_in_batch_is_least_squares():
    X, y = StandardScaler().fit_transform(load_iris().data), load_iris().target
    for A in (X, sparse.csr_array(X), X.astype(np.float32)):
        model = Adaline(solver="batch", tol=1e-8, max_iter=10_000).fit(A, y == 0)
        np.testing.assert_allclose(np.append(model.intercept_, model.coef_), least_squares(X, y == 0), atol=1e-5)
    many = Adaline(solver="batch", tol=1e-8, max_iter=10_000).fit(X, y)
    for k in range(3):
        np.testing.assert_allclose(many.coef_[k], least_squares(X, y == k)[1:], atol=1e-5)
    assert np.all(np.diff(many.history_["loss"]) <= 1e-12)


def test_adaline_online_nears_least_squares(rng):
    X = rng.standard_normal((20_000, 3))
    y = (X @ [1.0, -2.0, 0.5] + rng.standard_normal(20_000) > 0).astype(int)
    model = Adaline(max_iter=20, tol=None, shuffle="rows").fit(X, y)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), least_squares(X, y), atol=0.01)


def test_adaline_step_is_the_published_one():
    X, y = CANCER
    model = Adaline(eta0=0.01, average=False).partial_fit(X[:50], y[:50], classes=[0, 1])
    w = np.zeros(X.shape[1] + 1)
    for x, target in zip(np.column_stack([np.ones(50), X[:50]]), 2 * y[:50] - 1, strict=True):
        w += 0.01 * (target - w @ x) * x
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), w, rtol=1e-10)


@pytest.mark.parametrize("solver", ["online", "batch"])
def test_adaline_refuses_steps_that_diverge(solver):
    X, y = CANCER
    A = np.column_stack([np.ones(len(X)), X])
    limit = 2 / np.linalg.eigvalsh(A.T @ A / len(A))[-1]
    with pytest.raises(ValueError, match="largest eigenvalue"):
        Adaline(solver=solver, eta0=1.05 * limit).fit(X, y)
    if solver == "batch":
        with pytest.warns(ConvergenceWarning, match="max_iter=50 steps"):
            assert np.isfinite(Adaline(solver=solver, eta0=0.95 * limit, max_iter=50).fit(X, y).coef_).all()


def test_the_margin_is_that_of_the_weights_that_separate():
    """An average of weights need not separate what the last ones do."""
    rng = np.random.default_rng(4)
    A, w = rng.standard_normal((12, 2)), rng.standard_normal(2)
    b = (A @ w + 0.3 > 0).astype(int)
    model = Perceptron(average=True, tol=None, max_iter=3000).fit(A, b)
    assert model.converged_ and model.margin_ > 0
    assert model.n_updates_ <= model.bound_
