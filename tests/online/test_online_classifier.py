"""OnlineClassifier: agreement with SGDClassifier, sparse rows, streams, probabilities."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from fastdisc import OnlineClassifier
from fastdisc._kernels import BACKENDS

X, Y = load_digits(return_X_y=True)
X = X / 16
LOSSES = ("hinge", "log_loss", "modified_huber", "squared_hinge", "squared_error")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rate", ["constant", "invscaling", "adaptive"])
@pytest.mark.parametrize(
    ("penalty", "average"), [("l2", False), ("l2", True), (None, 100), ("l1", False)]
)
@pytest.mark.parametrize("y", [Y, Y % 2], ids=["ten classes", "two classes"])
def test_weights_agree_with_scikit_learn(loss, rate, penalty, average, y):
    options = {
        "loss": loss,
        "learning_rate": rate,
        "penalty": penalty,
        "alpha": 1e-3,
        "average": average,
        "eta0": 0.01,
    }
    options |= {"max_iter": 3, "tol": None, "shuffle": False}
    ours, theirs = OnlineClassifier(**options).fit(X, y), SGDClassifier(**options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(
        ours.intercept_, theirs.intercept_, atol=1e-9 * np.abs(theirs.coef_).max()
    )
    assert ours.t_ == theirs.t_ and ours.n_iter_ == theirs.n_iter_


@pytest.mark.parametrize("penalty", ["l2", None])
def test_optimal_steps_agree_with_scikit_learn(penalty):
    options = {"penalty": penalty, "alpha": 1e-2, "max_iter": 5, "tol": None, "shuffle": False}
    ours, theirs = OnlineClassifier(**options).fit(X, Y), SGDClassifier(**options).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("loss", LOSSES[:-1])
def test_default_parameters_converge_to_the_accuracy_of_scikit_learn(loss):
    ours, theirs = (
        OnlineClassifier(loss, random_state=0).fit(X, Y),
        SGDClassifier(loss, random_state=0).fit(X, Y),
    )
    assert ours.converged_ and ours.score(X, Y) > theirs.score(X, Y) - 0.04


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_sparse_rows_give_the_weights_of_dense_rows(penalty):
    A = np.where(X > 0.4, X, 0)
    options = {
        "loss": "log_loss",
        "penalty": penalty,
        "alpha": 1e-3,
        "learning_rate": "constant",
        "max_iter": 3,
        "shuffle": False,
    }
    ours = OnlineClassifier(**options).fit(sparse.csr_array(A), Y)
    np.testing.assert_allclose(ours.coef_, OnlineClassifier(**options).fit(A, Y).coef_, atol=1e-10)
    assert penalty == "l2" or (ours.coef_ == 0).any()


def test_duplicate_entries_are_summed():
    A = sparse.csr_array(np.where(X > 0.4, X, 0))
    twice = sparse.csr_array(
        (np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape
    )
    models = [
        OnlineClassifier("perceptron", penalty=None, max_iter=2, shuffle=False).fit(B, Y)
        for B in (A, twice)
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", None])
def test_partial_fits_of_parts_are_one_epoch(penalty):
    options = {
        "loss": "log_loss",
        "penalty": penalty,
        "average": penalty == "l2",
        "learning_rate": "invscaling",
    }
    epoch = OnlineClassifier(max_iter=1, shuffle=False, **options).fit(X, Y)
    stream = OnlineClassifier(**options)
    for rows in np.split(np.arange(len(Y)), [3, 400, 401, 1500]):
        stream.partial_fit(X[rows], Y[rows], classes=np.arange(10))
    np.testing.assert_allclose(stream.coef_, epoch.coef_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("y", [Y, Y % 2], ids=["ten classes", "two classes"])
def test_probabilities_agree_with_scikit_learn(loss, y):
    options = {
        "loss": loss,
        "learning_rate": "constant",
        "max_iter": 2,
        "tol": None,
        "shuffle": False,
    }
    ours, theirs = OnlineClassifier(**options).fit(X, y), SGDClassifier(**options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), atol=1e-12)


def test_losses_without_probabilities_have_no_predict_proba():
    model = OnlineClassifier(max_iter=1).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


def test_adaptive_steps_converge():
    model = OnlineClassifier(
        "log_loss", learning_rate="adaptive", eta0=1.0, n_iter_no_change=2, random_state=0
    ).fit(X, Y)
    assert model.converged_ and model.score(X, Y) > 0.95


CONSTANT = {"max_iter": 2, "shuffle": False, "learning_rate": "constant"}


def test_warm_start_continues_from_the_last_weights():
    model = OnlineClassifier("log_loss", warm_start=True, **CONSTANT)
    first = model.fit(X, Y).coef_.copy()
    assert not np.array_equal(model.fit(X, Y).coef_, first)
    with pytest.raises(ValueError, match="warm_start: the last fit had"):
        model.fit(X[:, :10], Y)


def test_backends_agree():
    weights = [
        OnlineClassifier("log_loss", backend=name, **CONSTANT).fit(X, Y).coef_ for name in BACKENDS
    ]
    for other in weights[1:]:
        np.testing.assert_allclose(other, weights[0], rtol=1e-9, atol=1e-12)
