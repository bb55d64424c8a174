"""What LogisticRegression has beyond an optimum: offsets, priors, standardised penalties, stopping, paths, chunks."""

import pickle

import numpy as np
import pytest
from scipy import sparse, special
from sklearn import datasets
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import LogisticRegression

SETS = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in ("iris", "wine", "breast_cancer")}
STANDARD = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in SETS.items()}
EXACT = ("newton", "newton-cg", "lbfgs", "proximal")
TIGHT = {"tol": 1e-10}
FREE = {"tol": 1e-10, "C": np.inf}


@parametrize_with_checks(
    [LogisticRegression(l1_ratio=1.0), *(LogisticRegression(solver=solver) for solver in ("newton-cg", "lbfgs", "proximal"))]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:sklearn")
def test_check_estimator(estimator, check):
    check(estimator)


def made(n=500, d=4, K=3, seed=0):
    """Rows drawn from the model itself: classes overlap, so that a maximum of the likelihood exists."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) + 2
    y = (X @ (rng.standard_normal((d, K)) / np.arange(1, d + 1)[:, None]) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng


def rows_of(model):
    return np.column_stack([model.intercept_, model.coef_])


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_two_probabilities_are_sigmoids():
    X, y, _ = made(K=2)
    model = LogisticRegression().fit(X, y)
    X = np.vstack([X, 30 * X, np.zeros_like(X)])
    z = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), np.column_stack([special.expit(-z), special.expit(z)]), rtol=1e-13)


def test_offset_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y, rng = made(K=2)
    offset, weight = rng.standard_normal(len(y)), rng.integers(1, 4, len(y))
    family = sm.families.Binomial()
    theirs = sm.GLM(y, sm.add_constant(X), family=family, offset=offset, freq_weights=weight).fit(tol=1e-13, maxiter=100)
    ours = LogisticRegression(**FREE).fit(X, y, weight, offset=offset)
    close(rows_of(ours)[0], theirs.params)
    close(ours.summary().std_error, theirs.bse)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver, n", [*((solver, 500) for solver in EXACT), ("newton", 30_000)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_offset_takes_over_weights(K, solver, form, n):
    """Scores that are known need not be learnt; the penalty is then on what is left."""
    X, y, rng = made(n, K=K)
    X = X * [1.0, 0.5, 0.3, 0.25]
    A = rng.standard_normal((1 if K == 2 else K, 5))
    A -= A.mean(axis=0) * (K > 2)
    plain = LogisticRegression(solver=solver, C=np.inf, tol=1e-8).fit(form(X), y)
    model = LogisticRegression(solver=solver, C=np.inf, tol=1e-8).fit(form(X), y, offset=X @ A[:, 1:].T + A[:, 0])
    a, b = (W - W.mean(axis=0) * (K > 2) for W in (rows_of(plain), rows_of(model) + A))
    close(a, b, tol=1e-5)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("reference", ["setosa", "virginica"])
def test_reference_class(solver, reference):
    X, y = SETS["iris"]
    X, y = X + np.random.default_rng(0).standard_normal(X.shape), np.array(["setosa", "versicolor", "virginica"])[y]
    plain = LogisticRegression(**FREE).fit(X, y)
    model = LogisticRegression(C=np.inf, tol=1e-8, solver=solver, reference_class=reference).fit(X, y)
    row = list(model.classes_).index(reference)
    assert not model.coef_[row].any() and model.intercept_[row] == 0
    close(model.predict_proba(X), plain.predict_proba(X), tol=1e-5)
    close(rows_of(model), rows_of(plain) - rows_of(plain)[row], tol=1e-4)


def test_reference_class_of_two():
    X, y, _ = made(K=2)
    plain = LogisticRegression().fit(X, y)
    for reference in (0, 1):
        assert np.array_equal(LogisticRegression(reference_class=reference).fit(X, y).coef_, plain.coef_)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_penalty_is_relative_to_the_reference_class(solver, form):
    """With weights v_k of the others: no gradient of the loss plus ||v||^2 / 2C is left."""
    X, y, _ = made()
    model = LogisticRegression(C=0.1, reference_class=1, solver=solver, tol=1e-9).fit(form(X), y)
    E = model.predict_proba(X) - np.eye(3)[y]
    g = np.column_stack([E.sum(axis=0), E.T @ X + model.coef_ / 0.1])[[0, 2]]
    assert np.abs(g).max() < 1e-5


@pytest.mark.parametrize("K", [2, 3])
def test_priors_shift_log_odds(K):
    X, y, _ = made(K=K)
    plain = LogisticRegression().fit(X, y)
    before = np.bincount(y) / len(y)
    priors = np.array([0.2, 0.8]) if K == 2 else np.array([0.2, 0.7, 0.1])
    np.testing.assert_allclose(plain.priors_, before)
    moved, fitted = plain.with_priors(priors), LogisticRegression(priors=priors).fit(X, y)
    assert np.array_equal(moved.coef_, plain.coef_) and np.array_equal(plain.priors_, before)
    for model in (moved, fitted):
        np.testing.assert_allclose(model.priors_, priors)
        odds = model.predict_log_proba(X) - model.predict_log_proba(X)[:, :1]
        odds_before = plain.predict_log_proba(X) - plain.predict_log_proba(X)[:, :1]
        shift = np.log(priors / before)
        np.testing.assert_allclose(odds - odds_before, np.broadcast_to(shift - shift[0], odds.shape), atol=1e-10)
        P = plain.predict_proba(X) * priors / before
        np.testing.assert_allclose(model.predict_proba(X), P / P.sum(axis=1, keepdims=True), atol=1e-12)
        np.testing.assert_allclose(model.with_priors(before).predict_proba(X), plain.predict_proba(X), atol=1e-12)


def test_priors_count_weights():
    X, y, _ = made()
    assert LogisticRegression(class_weight="balanced").fit(X, y).priors_ == pytest.approx([1 / 3] * 3)
    weight = np.where(y == 0, 2.0, 1.0)
    assert LogisticRegression().fit(X, y, weight).priors_ == pytest.approx(np.bincount(y, weight) / weight.sum())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"l1_ratio": 1.0}, {"solver": "lbfgs"}], ids=str)
@pytest.mark.parametrize("name", SETS)
def test_standardize_is_a_scaler_in_front(name, options, form):
    X, y = SETS[name]
    X = np.column_stack([X, np.full(len(X), 0.3)])  # a constant column has no spread to divide by
    weight = np.random.default_rng(0).random(len(y))
    scaler = StandardScaler().fit(X, sample_weight=weight)
    inner = LogisticRegression(C=0.1, tol=1e-8, **options).fit(scaler.transform(X), y, weight)
    model = LogisticRegression(C=0.1, tol=1e-8, standardize=True, **options).fit(form(X), y, weight)
    close(model.mean_, scaler.mean_, tol=1e-9)
    close(model.scale_, scaler.scale_, tol=1e-9)
    close(model.coef_ * scaler.scale_, inner.coef_, tol=1e-5)
    close(model.predict_proba(form(X)), inner.predict_proba(scaler.transform(X)), tol=1e-5)


def test_standardize_does_not_see_units():
    X, y, _ = made()
    unit = np.array([1e-5, 1.0, 1e3, 1e6])
    for A in (X, sparse.csr_array(X)):
        model, scaled = (LogisticRegression(C=0.01, standardize=True, **TIGHT).fit(B, y) for B in (A, sparse.csr_array(X * unit)))
        close(scaled.coef_ * unit, model.coef_, tol=1e-7)


@pytest.mark.parametrize("solver", [*EXACT, "gd"])
def test_early_stopping_at_no_errors(solver):
    X, y = SETS["iris"]
    X, y = X[y < 2], y[y < 2]
    model = LogisticRegression(solver=solver, C=1e6, tol=1e-12, early_stopping=True, random_state=0).fit(X, y)
    errors = model.history_["errors"]
    assert errors[-1] == 0 and all(errors[:-1])
    assert model.score(X, y) == 1


@pytest.mark.parametrize("patience", [True, 3])
def test_early_stopping_when_errors_do_not_fall(patience):
    X, y, _ = made()
    model = LogisticRegression(solver="gd", tol=1e-14, early_stopping=patience, random_state=0).fit(X, y)
    errors, wait = np.array(model.history_["errors"]), 10 if patience is True else patience
    assert not model.converged_ and len(errors) > wait
    assert errors[-wait:].min() >= errors[:-wait].min()
    waits = [i - errors[: i + 1].argmin() for i in range(len(errors))]
    assert max(waits[:-1]) < wait and waits[-1] == wait


@pytest.mark.parametrize("solver", [*EXACT, "gd"])
def test_callback_sees_every_iteration(solver):
    X, y = STANDARD["wine"]
    seen = []
    model = LogisticRegression(solver=solver, C=0.1, callback=lambda step, values: seen.append((step, values))).fit(X, y)
    assert [step for step, _ in seen] == list(range(len(model.history_["loss"])))
    for key in ("loss", "errors", "norm"):
        assert [values[key] for _, values in seen] == model.history_[key]


def test_callback_stops_the_solver():
    """And nobody is warned of what was asked for."""
    X, y = STANDARD["wine"]
    model = LogisticRegression(solver="gd", callback=lambda step, values: step == 3, random_state=0).fit(X, y)
    assert model.n_iter_[0] == 3 and not model.converged_


@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.7}, {"standardize": True}, {"priors": [0.2, 0.2, 0.6]}], ids=str)
def test_path_is_separate_fits(options):
    X, y = SETS["wine"]
    Cs = [0.1, 10.0, 0.001, 1.0]
    model = LogisticRegression(tol=1e-9, **options)
    path = model.fit_path(X, y, Cs)
    assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")
    assert path.coefs.shape == (4, 3, 13) and path.intercepts.shape == (4, 3) and path.n_iter.shape == (4,)
    assert list(path.Cs) == Cs and (path.gradient_norms <= 1e-9).all()
    for i, C in enumerate(Cs):
        single = LogisticRegression(tol=1e-9, C=C, **options).fit(X, y)
        close(path.coefs[i], single.coef_, tol=1e-5)
        np.testing.assert_allclose(path.intercepts[i], single.intercept_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_chunks_approach_the_optimum(K, form):
    X, y, _ = made(30_000, K=K)
    model = LogisticRegression()
    for rows in np.array_split(np.arange(len(y)), 30):
        model.partial_fit(form(X[rows]), y[rows], classes=np.arange(K))
    best = LogisticRegression().fit(X, y)
    assert model.score(X, y) > best.score(X, y) - 0.01
    assert model.n_iter_[0] == 30


def test_chunks():
    X, y, _ = made()
    with pytest.raises(ValueError, match="classes"):
        LogisticRegression().partial_fit(X, y)
    model = LogisticRegression().partial_fit(X[:50], np.minimum(y[:50], 1), classes=[0, 1, 2])  # a class may come later
    assert model.coef_.shape == (3, 4)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="row 2"):
        model.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:3, :2], y[:3])
    assert np.array_equal(model.coef_, before)
    assert not np.array_equal(model.partial_fit(X, y).coef_, before)
    shares = np.bincount(np.concatenate([np.minimum(y[:50], 1), y])) / (50 + len(y))
    np.testing.assert_allclose(model.priors_, shares)
    shift = model.with_priors([0.2, 0.3, 0.5]).intercept_ - model.intercept_
    np.testing.assert_allclose(shift, np.log([0.2, 0.3, 0.5]) - np.log(shares))


def test_chunks_continue_after_a_fit():
    X, y, _ = made(5000)
    model = LogisticRegression().fit(X, y)
    fitted = rows_of(model)
    model.partial_fit(X[:200], y[:200])
    assert 0 < np.abs(rows_of(model) - fitted).max() < 0.5
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.02
    model.fit(X, y)
    assert np.array_equal(rows_of(model), fitted)


@pytest.mark.filterwarnings("ignore:solver 'sgd' stopped")
def test_batches_without_weight():
    X, y, _ = made()
    weight = np.zeros(len(y))
    weight[:100] = 1.0
    for model in (LogisticRegression().partial_fit(X, y, [0, 1, 2], weight), LogisticRegression(solver="sgd").fit(X, y, weight)):
        assert np.isfinite(rows_of(model)).all() and model.coef_.any()


def test_priors_of_a_class_without_weight():
    """Of which nothing is known: no prior can be put in its place."""
    X, y, _ = made()
    with pytest.raises(ValueError, match="prior"):
        LogisticRegression(priors=[0.2, 0.3, 0.5]).fit(X, y, (y > 0).astype(float))


CALLS = [
    ({"penalty": "l1", "solver": "liblinear"}, {"l1_ratio": 1.0}),
    ({"penalty": "l1", "solver": "saga"}, {"l1_ratio": 1.0}),
    ({"penalty": "elasticnet", "solver": "saga", "l1_ratio": 0.5}, {"l1_ratio": 0.5}),
    ({"penalty": "l2", "solver": "newton-cholesky"}, {}),
    ({"penalty": "l2", "l1_ratio": 0.5}, {}),
    ({"penalty": None}, {"C": np.inf}),
    ({"penalty": None, "C": 0.01}, {"C": np.inf}),
    ({"solver": "sag", "n_jobs": -1, "dual": False, "intercept_scaling": 2.0, "verbose": 0}, {}),
]


@pytest.mark.parametrize("theirs, ours", CALLS, ids=str)
def test_calls_of_scikit_learn(theirs, ours):
    X, y, _ = made(K=2)
    model = LogisticRegression(**theirs).fit(X, y)
    assert model.solver_ == ("proximal" if ours.get("l1_ratio") else "newton")
    assert np.array_equal(rows_of(model), rows_of(LogisticRegression(**ours).fit(X, y)))


def test_penalty_may_come_first():
    X, y = STANDARD["iris"]
    model = LogisticRegression("l1", C=0.1, tol=1e-8).fit(X, y)
    theirs = Rival(solver="saga", l1_ratio=1.0, C=0.1, tol=1e-9, max_iter=10_000, random_state=0).fit(X, y)
    close(model.coef_, theirs.coef_, tol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"l1_ratio": 0.5}, {"standardize": True}, {"C": np.inf, "reference_class": 1}, {"priors": [0.1, 0.2, 0.7]}],
    ids=str,
)
def test_clone_and_pickle(options):
    X, y, _ = made()
    model = LogisticRegression(**options).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X)) and copy.get_params() == model.get_params()
    fresh = clone(model)
    assert not hasattr(fresh, "coef_") and np.array_equal(rows_of(fresh.fit(X, y)), rows_of(model))
    if options.get("C"):
        assert str(copy.summary()) == str(model.summary())
    half = pickle.loads(pickle.dumps(LogisticRegression().partial_fit(X, y, classes=[0, 1, 2])))
    again = LogisticRegression().partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X, y)
    assert np.array_equal(rows_of(half.partial_fit(X, y)), rows_of(again))
