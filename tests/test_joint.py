"""Logistic discriminants trained together are those trained one by one: all data, both combinations; when they are not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from fastdisc import LogisticRegression, OneVsRestClassifier, PairwiseClassifier, _combined
from fastdisc._joint import covers
from fastdisc.basis import Quadratic
from fastdisc.geometry import boundary_2d, hyperplane

DIGITS, DIGIT = load_digits(return_X_y=True)


@pytest.fixture
def alone(monkeypatch):
    """The same fit, one problem after the other."""

    def fit(model, *data, **more):
        with monkeypatch.context() as patch:
            patch.setattr(_combined, "covers", lambda estimator: False)
            return model.fit(*data, **more)

    return fit


def made(rng, n=20_000, d=6, K=4):
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) + 2
    return X, ((X - 2) / np.arange(1, d + 1) @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)


def check_same(together, separate, tol):
    assert {each.solver_ for each in together.estimators_} == {"together"}
    assert "together" not in {each.solver_ for each in separate.estimators_}
    np.testing.assert_allclose(together.coef_, separate.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(together.intercept_, separate.intercept_, rtol=tol, atol=10 * tol)
    for a, b in zip(together.estimators_, separate.estimators_, strict=True):
        assert a.converged_ and a.n_features_in_ == b.n_features_in_ and np.array_equal(a.classes_, b.classes_)
        np.testing.assert_allclose(a.priors_, b.priors_)
        np.testing.assert_allclose(a.history_["loss"][-1], b.history_["loss"][-1], rtol=1e-9)
        np.testing.assert_allclose(a.history_["errors"][-1], b.history_["errors"][-1], rtol=1e-3)


@pytest.mark.parametrize("kind", [PairwiseClassifier, OneVsRestClassifier])
@pytest.mark.parametrize("what", ["plain", "float32", "csr", "F order", "sorted", "weights", "no intercept", "strong"])
def test_together_as_alone(kind, what, alone, rng):
    X, y = made(rng)
    options, more = {"tol": 1e-9}, {}
    if what == "float32":
        X = X.astype(np.float32)
    elif what == "csr":
        X = sparse.csr_array(np.where(np.abs(X) > 2, X, 0))
    elif what == "F order":
        X = np.asfortranarray(X)
    elif what == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    elif what == "weights":
        more["sample_weight"] = rng.random(len(y)) * 3
    elif what == "no intercept":
        options["fit_intercept"] = False
    elif what == "strong":
        options["C"] = 1e-4
    names = np.array(["a", "b", "c", "d"])[y]
    together = kind(LogisticRegression(**options)).fit(X, names, **more)
    separate = alone(kind(LogisticRegression(**options)), X, names, **more)
    check_same(together, separate, 2e-6)
    rows = X[:200]
    assert np.array_equal(together.predict(rows), separate.predict(rows))


def test_few_rows_of_many_classes(alone):
    for kind in (PairwiseClassifier, OneVsRestClassifier):
        model = kind(LogisticRegression(C=0.01, tol=1e-9))
        check_same(model.fit(DIGITS, DIGIT), alone(kind(LogisticRegression(C=0.01, tol=1e-9)), DIGITS, DIGIT), 1e-6)


def test_classes_that_overlap(alone, rng):
    X, y = made(rng)
    Y = np.column_stack([y == 0, y > 1, (y == 3) | (rng.random(len(y)) < 0.1), np.ones(len(y), bool)]).astype(int)
    together = OneVsRestClassifier(LogisticRegression(tol=1e-9)).fit(X, Y)
    separate = alone(OneVsRestClassifier(LogisticRegression(tol=1e-9)), X, Y)
    for a, b in zip(together.estimators_[:3], separate.estimators_[:3], strict=True):
        assert a.solver_ == "together" != b.solver_
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-7)
    assert np.array_equal(together.predict(X), separate.predict(X)) and together.predict(X)[:, 3].all()


def test_rare_classes_and_rows_that_lie_far_out(alone, rng):
    X, y = made(rng)
    X[::1000] *= 30
    y[y == 3] = 0
    y[:40] = 3
    for kind in (PairwiseClassifier, OneVsRestClassifier):
        check_same(kind(LogisticRegression(tol=1e-9)).fit(X, y), alone(kind(LogisticRegression(tol=1e-9)), X, y), 1e-5)


@pytest.mark.parametrize("kind", [PairwiseClassifier, OneVsRestClassifier])
def test_threads_change_no_bit(kind, rng):
    X, y = made(rng, n=60_000)
    one, three = (kind(n_threads=n).fit(X, y) for n in (1, 3))
    assert np.array_equal(one.coef_, three.coef_) and np.array_equal(one.intercept_, three.intercept_)


def test_every_backend(rng):
    X, y = made(rng, n=600)
    fits = [PairwiseClassifier(LogisticRegression(tol=1e-10), backend=name).fit(X, y) for name in ("cython", "numba", "numpy")]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef_, fits[0].coef_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(other.decision_function(X), fits[0].decision_function(X), rtol=1e-5, atol=1e-7)


def test_fitted_estimators_are_whole(rng):
    X, y = made(rng, n=2000)
    model = OneVsRestClassifier().fit(X, y)
    first = model.estimators_[0]
    target = (y == 0).astype(int)
    assert first.score(X, target) == LogisticRegression().fit(X, target).score(X, target)
    np.testing.assert_allclose(first.predict_proba(X).sum(axis=1), 1)
    assert first.with_priors([0.5, 0.5]).intercept_ > first.intercept_
    assert model.estimators_[1] is not first and first.get_params() == LogisticRegression().get_params()


ELSEWHERE = {
    "L1": {"l1_ratio": 1.0},
    "no penalty": {"C": np.inf},
    "gd": {"solver": "gd", "max_iter": 20, "random_state": 0},
    "class_weight": {"class_weight": "balanced"},
    "priors": {"priors": [0.5, 0.5]},
    "standardize": {"standardize": True},
    "early stopping": {"early_stopping": True},
}


@pytest.mark.parametrize("what", ELSEWHERE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_its_own_way_of_fitting(what, rng):
    X, y = made(rng, n=500)
    estimator = LogisticRegression(**ELSEWHERE[what])
    assert not covers(estimator) and covers(LogisticRegression())
    for kind in (PairwiseClassifier, OneVsRestClassifier):
        model = kind(estimator).fit(X, y)
        target = (y == 0).astype(int) if kind is OneVsRestClassifier else (y[(y == 0) | (y == 1)] == 1).astype(int)
        rows = slice(None) if kind is OneVsRestClassifier else (y == 0) | (y == 1)
        assert model.estimators_[0].solver_ != "together"
        np.testing.assert_array_equal(
            model.estimators_[0].coef_, LogisticRegression(**ELSEWHERE[what]).fit(X[rows], target).coef_
        )


def test_a_basis_bends_every_discriminant(rng):
    X = rng.uniform(-2, 2, (600, 2))
    y = np.digitize((X**2).sum(axis=1), [1.0, 2.5])  # rings
    for kind in (PairwiseClassifier, OneVsRestClassifier):
        model = kind(LogisticRegression(C=100, basis=Quadratic())).fit(X, y)
        assert not covers(model.estimator) and model.score(X, y) > 0.9 and not hasattr(model, "coef_")
        assert (model.predict_proba(X).argmax(axis=1) == y).mean() > 0.9
        with pytest.raises(ValueError, match="has a basis"):
            hyperplane(model.estimators_[0])
        with pytest.raises(ValueError, match="not a linear model"):
            boundary_2d(model, (-2, 2, -2, 2))


def test_wide_data_are_fitted_one_by_one(rng):
    X, y = rng.standard_normal((60, 400)), np.arange(60) % 3
    assert {each.solver_ for each in PairwiseClassifier().fit(X, y).estimators_} == {"newton-cg"}


def test_stopping_short_is_said(rng):
    X, y = made(rng)
    with pytest.warns(ConvergenceWarning, match="'together' stopped after 1 iterations"):
        model = OneVsRestClassifier(LogisticRegression(max_iter=1, tol=1e-12)).fit(X, y)
    assert not all(each.converged_ for each in model.estimators_)


def test_progress_is_shown(rng, capsys):
    X, y = made(rng, n=500)
    PairwiseClassifier(verbose=1).fit(X, y)
    assert "[together]" in capsys.readouterr().out


def test_bad_cells_are_named_by_their_place(rng):
    X, y = made(rng, n=5000)
    X[1234, 2] = np.nan
    for model in (PairwiseClassifier(), OneVsRestClassifier()):
        with pytest.raises(ValueError, match="NaN, first in row 1234, column 2"):
            model.fit(X, y)
