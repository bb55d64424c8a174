"""Solvers: each one's optimum is scikit-learn's, or meets the conditions of an optimum as NumPy computes them."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from fastdisc import LogisticRegression, _config
from fastdisc._solvers import newton, proximal

SETS = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in ("iris", "wine", "breast_cancer", "digits")}
STANDARD = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in SETS.items()}
EXACT = ("newton", "newton-cg", "lbfgs", "proximal")
ROWS = 30_000
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: X.astype(np.uint8),
    "F order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


def rival(X, y, weight=None, **parameters):
    with threadpool_limits(1):  # on a busy machine two BLAS threads wait for each other, 20 s instead of 1
        return Rival(solver="newton-cholesky", tol=1e-12, max_iter=1000, **parameters).fit(X, y, weight)


@cache
def standard_rival(name, C):
    return rival(*STANDARD[name], C=C)


def first_digits(K):
    X, y = SETS["digits"]
    return X[y < K], y[y < K]


@cache
def first_rival(K):
    return rival(*first_digits(K), C=1e-3)


def same(ours, theirs, tol=1e-6):
    """The same weights and, up to what may be added to all of them, intercepts."""
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=tol, atol=tol)
    free = len(ours.intercept_) > 1
    a, b = (model.intercept_ - model.intercept_.mean() * free for model in (ours, theirs))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def scores(X, W):
    """Of all classes: for two, the first one's are 0."""
    Z = X @ W[:, 1:].T + W[:, 0]
    return Z if len(W) > 1 else np.hstack([np.zeros_like(Z), Z])


def gradient(X, y, W, s=1.0):
    """Of the weighted sum of losses, by each class's weights, the intercepts first: (K, d+1)."""
    Z = scores(X, W)
    Z = Z - Z.max(axis=1, keepdims=True)
    Y = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    E = (Y - (np.asarray(y)[:, None] == np.unique(y))) * np.broadcast_to(s, len(y))[:, None]
    g = np.column_stack([E.sum(axis=0), E.T @ X])
    return g if len(W) > 1 else g[1:]


def broken(model, X, y, C, ratio=0.0, s=1.0):
    """How far the weights are from the conditions of an optimum, relative to the gradient at 0.

    Columns of dense data count in units of their spread.
    """
    mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if sparse.issparse(X):
        X = X.toarray().astype(float)
    else:
        X = np.asarray(X, dtype=float)
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1)
    A, w = (X - mean) / scale, model.coef_ * scale
    W = np.column_stack([model.intercept_ + model.coef_ @ mean, w])
    g = gradient(A, y, W, s)
    g[:, 1:] += (1 - ratio) / C * w / scale**2
    l1 = ratio / C / scale
    g[:, 1:] = np.where(w != 0, g[:, 1:] + l1 * np.sign(w), np.sign(g[:, 1:]) * np.maximum(np.abs(g[:, 1:]) - l1, 0))
    return np.linalg.norm(g) / np.linalg.norm(gradient(A, y, 0 * W, s))


def made(n=ROWS, d=6, K=3, seed=0):
    """Rows drawn from the model itself, at weights of size 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("solver", EXACT)
def test_optimum_is_that_of_scikit_learn(name, solver):
    X, y = STANDARD[name]
    C = 0.02 if name == "digits" else 1.0
    ours = LogisticRegression(solver=solver, C=C, tol=1e-8).fit(X, y)
    assert ours.solver_ == solver and ours.converged_ and ours.gradient_norm_ <= 1e-8
    same(ours, standard_rival(name, C))


@pytest.mark.parametrize("solver, ratio", [*((solver, 0.0) for solver in EXACT), ("proximal", 1.0)])
def test_intercepts_add_up_to_0(solver, ratio):
    """As scikit-learn's do: otherwise scores differ from solver to solver by what softmax does not see."""
    X, y = STANDARD["iris"]
    model = LogisticRegression(solver=solver, l1_ratio=ratio, tol=1e-8).fit(X, y)
    assert abs(model.intercept_.sum()) < 1e-9


@pytest.mark.parametrize("name", SETS)
def test_gradient_descent_gets_there(name):
    X, y = STANDARD[name]
    ours = LogisticRegression(solver="gd", C=0.005, tol=1e-7, random_state=0, n_threads=1).fit(X, y)
    same(ours, standard_rival(name, 0.005), tol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name, form", [("digits", "float64"), *((n, f) for n in SETS if n != "digits" for f in ("float32", "csr"))]
)
def test_stochastic_steps_come_near(name, form):
    X, y = STANDARD[name]
    ours = LogisticRegression(solver="sgd", C=0.02, max_iter=100, random_state=0).fit(FORMS[form](X), y)
    theirs = standard_rival(name, 0.02)
    assert abs(ours.score(X, y) - theirs.score(X, y)) < 0.05
    assert np.linalg.norm(ours.coef_ - theirs.coef_) < 0.3 * np.linalg.norm(theirs.coef_)
    assert ours.n_iter_[0] == len(ours.history_["loss"]) == 100


@pytest.mark.parametrize("form, K", [*((form, 2) for form in FORMS), *((form, 3) for form in ("float64", "uint8", "csr"))])
@pytest.mark.parametrize("solver", EXACT)
def test_types_and_layouts(solver, form, K):
    X, y = first_digits(K)
    ours = LogisticRegression(solver=solver, C=1e-3, tol=1e-8).fit(FORMS[form](X), y)
    assert ours.converged_
    same(ours, first_rival(K), tol=1e-5)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("solver", (*EXACT, "gd"))
def test_weights_of_rows_and_classes(solver, name, options):
    X, y = STANDARD[name]
    weight = np.random.default_rng(0).integers(0, 4, len(y)) + 0.25 * (y == 1)
    ours = LogisticRegression(solver=solver, C=0.05, tol=1e-8, random_state=0, **options).fit(X, y, weight)
    same(ours, rival(X, y, weight, C=0.05, **options), tol=1e-5)


def sorted_by_class(X, y, rng):
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def rare_class(X, y, rng):
    rest = np.flatnonzero(y == 1)[10:]
    y = y.copy()
    y[rest] = 0
    return X, y


def rare_column(X, y, rng):
    X, y, rows = X.copy(), y.copy(), [17, 12_345, 29_000]
    X[:, 2] = 0
    X[rows, 2], y[rows] = [1.0, 2.0, 1.0], [0, 1, y.max()]
    y[rows[2]] %= 2 if y.max() == 1 else 3
    return X, y


def far_out_rows(X, y, rng):
    X = X.copy()
    X[[17, 12_345, 29_000]] *= 100
    return X, y


def scaled(X, y, rng):
    return X * np.geomspace(1e-6, 1e6, X.shape[1]), y


def nearly_collinear(X, y, rng):
    X = X.copy()
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    return X, y


def constant_column(X, y, rng):
    X = X.copy()
    X[:, 4] = 3.7
    return X, y


def large_mean(X, y, rng):
    return X + 1e6, y


HARD = {
    f.__name__: f
    for f in (sorted_by_class, rare_class, rare_column, far_out_rows, scaled, nearly_collinear, constant_column, large_mean)
}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("hard", HARD)
def test_hard_problems_with_samples(hard, C, K, monkeypatch):
    monkeypatch.setattr(newton, "CALL", 0)  # so few rows would be taken all at once
    monkeypatch.setattr(newton, "schedule", newton.schedule.__wrapped__)
    X, y, rng = made(K=K)
    X, y = HARD[hard](X, y, rng)
    assert newton.schedule(ROWS, (X.shape[1] + 1) * (1 if K == 2 else K), X.shape[1] + 1)[-1] < ROWS / 2  # samples are drawn
    model = LogisticRegression(C=C, solver="newton").fit(X, y)
    assert model.converged_ and model.gradient_norm_ <= 1e-6
    assert broken(model, X, y, C) <= 2e-6


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs", "proximal"])
@pytest.mark.parametrize("hard", HARD)
def test_hard_problems_without(hard, solver):
    X, y, rng = made(d=5)
    X, y = HARD[hard](X, y, rng)
    model = LogisticRegression(solver=solver).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1.0) <= 2e-6


@pytest.mark.parametrize("hard", ["sorted_by_class", "rare_class", "rare_column", "far_out_rows"])
@pytest.mark.parametrize("form", ["float32", "csr"])
def test_hard_problems_in_other_forms(hard, form):
    X, y, rng = made()
    X, y = HARD[hard](np.where(np.abs(X) > 1, X, 0), y, rng)
    X = FORMS[form](X)
    model = LogisticRegression(solver="newton").fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1.0) <= 2e-6


def test_sparse_rows_far_out():
    """The samples miss the rows that matter most."""
    rng, rows = np.random.default_rng(0), [1000, 10_000, 20_000]
    X = np.zeros((ROWS, 5))
    X[:, :4] = np.where(rng.random((ROWS, 4)) < 0.1, rng.random((ROWS, 4)), 0)
    y = rng.integers(0, 2, ROWS)
    X[rows, 4], y[rows] = 1000.0, 1
    X = sparse.csr_array(X)
    model = LogisticRegression(solver="newton").fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1.0) <= 2e-6


def test_few_rows_with_a_weight():
    X, y, rng = made()
    for weighted in (slice(50), rng.choice(ROWS, 40, replace=False), slice(ROWS - 3000, None)):
        weight = np.zeros(ROWS)
        weight[weighted] = 1.0
        ours = LogisticRegression(tol=1e-9).fit(X, y, weight)
        same(ours, LogisticRegression(tol=1e-9).fit(X[weight > 0], y[weight > 0]), tol=1e-5)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("form, K", [("float64", 2), ("float64", 3), ("csr", 2)])
def test_more_columns_than_rows(solver, form, K):
    X, y, _ = made(40, 100, K)
    X = FORMS[form](X)
    model = LogisticRegression(solver=solver).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1.0) <= 2e-6


@pytest.mark.parametrize("K", [2, 3])
def test_wide_dense_data(K):
    """Too many cells for a second copy of X."""
    X, y, _ = made(2100, 2000, K)
    model = LogisticRegression(C=1e-3).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1e-3) <= 2e-6


@pytest.mark.parametrize(
    "solver, form, ratio",
    [
        *(("newton", form, 0.0) for form in ("float64", "float32", "csr")),
        *((solver, "float64", 0.0) for solver in ("newton-cg", "lbfgs", "sgd")),
        *(("proximal", form, 1.0) for form in ("float64", "csr")),
    ],
)
@pytest.mark.filterwarnings("ignore:solver 'sgd' stopped")
def test_threads_change_no_bit(solver, form, ratio):
    X, y, _ = made(d=10)
    options = {"solver": solver, "C": 0.01, "l1_ratio": ratio, "max_iter": 2 if solver == "sgd" else None, "random_state": 0}
    one, *others = (LogisticRegression(n_threads=n, **options).fit(FORMS[form](X), y) for n in (1, 2, 3))
    for other in others:
        assert np.array_equal(other.coef_, one.coef_) and np.array_equal(other.intercept_, one.intercept_)
        assert other.history_ == one.history_


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("C", [0.02, 5.0])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_conditions_of_an_elastic_net(name, form, C, ratio):
    X, y = STANDARD[name]
    X = FORMS[form](X)
    weight = np.random.default_rng(1).random(len(y))
    model = LogisticRegression(C=C, l1_ratio=ratio).fit(X, y, weight)
    assert model.solver_ == "proximal" and model.converged_
    assert broken(model, X, y, C, ratio, weight) <= 2e-6


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_conditions_for_ten_classes(ratio):
    X, y = STANDARD["digits"]
    model = LogisticRegression(C=0.02, l1_ratio=ratio).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 0.02, ratio) <= 2e-6


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_conditions_on_hard_problems(hard, ratio):
    X, y, rng = made()
    X, y = HARD[hard](X, y, rng)
    model = LogisticRegression(C=0.01, l1_ratio=ratio).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 0.01, ratio) <= 2e-6


@pytest.mark.parametrize("strength", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("backend", ["numpy", "cython"])
def test_minimum_of_the_model(backend, strength):
    """Columns that are all but collinear: coordinate descent alone takes 275,000, 3,700 and 48 passes."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 1)) + 0.03 * rng.standard_normal((300, 40))
    model, W, g = proximal.Model(), rng.standard_normal((1, 40)), rng.standard_normal((1, 40))
    model.H, penalty = A.T @ A, np.full((1, 40), strength)
    penalty[0, 0] = 0
    V = model.minimise(_config.kernels(backend), W, g - W @ model.H, penalty)
    left = proximal.violation(g + (V - 2 * W) @ model.H, V, penalty)
    assert np.abs(left).max() <= 1e-6 * np.abs(g - W @ model.H).max()
    assert V[0, 0] != 0 and (strength < 1 or (V == 0).any())


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_what_only_the_penalty_settles(ratio):
    """The same may be added to the weights of all classes: along there the loss has no curvature, and the penalty little."""
    X, y, _ = made(100, 2, 4, seed=1)
    X = 1000 * X
    model = LogisticRegression(solver="proximal", l1_ratio=ratio, tol=1e-8).fit(X, y)
    assert model.converged_
    assert broken(model, X, y, 1.0, ratio) <= 2e-8


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_elastic_net_is_that_of_scikit_learn(name, ratio):
    X, y = STANDARD[name]
    theirs = Rival(solver="saga", l1_ratio=ratio, C=0.1, tol=1e-9, max_iter=20_000, random_state=0).fit(X, y)
    ours = LogisticRegression(l1_ratio=ratio, C=0.1, tol=1e-9).fit(X, y)
    same(ours, theirs, tol=1e-5)
    assert np.array_equal(ours.coef_ != 0, np.abs(theirs.coef_) > 1e-9)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_lasso_is_that_of_liblinear(C):
    """Which would penalise the intercept."""
    X, y = STANDARD["breast_cancer"]
    theirs = Rival(solver="liblinear", l1_ratio=1.0, C=C, tol=1e-10, max_iter=10_000, fit_intercept=False, random_state=0).fit(
        X, y
    )
    ours = LogisticRegression(l1_ratio=1.0, C=C, tol=1e-9, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == 0


@pytest.mark.parametrize("K, C", [(2, 1.0), (2, 10.0), (3, 1.0)])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_working_sets_of_wide_sparse_data(K, C, ratio):
    rng = np.random.default_rng(5)
    X = sparse.random_array((300, 3000), density=0.02, rng=rng, data_sampler=rng.standard_normal, format="csr")
    W = np.where(rng.random((3000, K)) < 0.01, 3.0, 0) * rng.standard_normal((3000, K))
    y = (X @ W + 0.3 * rng.gumbel(size=(300, K))).argmax(axis=1)
    model = LogisticRegression(C=C, l1_ratio=ratio).fit(X, y)
    assert model.converged_ and 0 < np.count_nonzero(model.coef_) < model.coef_.size / 2
    assert broken(model, X, y, C, ratio) <= 2e-6


def test_strong_lasso_leaves_the_intercept():
    X, y = STANDARD["wine"]
    model = LogisticRegression(C=1e-4, l1_ratio=1.0, tol=1e-10).fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-8)


@pytest.mark.parametrize("solver", EXACT)
def test_warm_start_of_every_solver(solver):
    X, y = STANDARD["wine"]
    model = LogisticRegression(solver=solver, warm_start=True, tol=1e-8).fit(X, y)
    assert model.fit(X, y).n_iter_[0] <= 1
    model.set_params(C=0.1).fit(X, y)
    same(model, rival(X, y, C=0.1), tol=1e-5)


def test_the_callers_rows_are_never_written_to():
    """Weights so uneven that a sample misses a class, and columns far from 0: the rows used to be standardised in place."""
    rng = np.random.default_rng(0)
    X = 1000 + rng.standard_normal((50_000, 3))
    y = np.arange(len(X)) % 2
    s = (y == 0).astype(float)
    s[12345] = 1
    before = X.copy()
    X.flags.writeable = False
    model = LogisticRegression(tol=1e-8).fit(X, y, s)
    np.testing.assert_array_equal(X, before)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, LogisticRegression(solver="lbfgs", tol=1e-9).fit(X, y, s).coef_, rtol=1e-3)


def test_sparse_columns_of_all_sizes():
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 60, 0.2, format="csr", random_state=0)
    y = (X @ rng.standard_normal(60) + 0.3 * rng.standard_normal(3000) > 0).astype(int)
    X = (X @ sparse.diags(np.geomspace(1e-4, 1e4, 60))).tocsr()
    model = LogisticRegression(l1_ratio=1.0, C=1.0).fit(X, y)
    assert model.converged_ and model.n_iter_[0] < 200


@pytest.mark.parametrize("rows", [50, 300])
def test_no_column_is_worth_a_weight(rows):
    X, y = np.random.default_rng(0).standard_normal((rows, 1300)), (np.arange(rows) % 5 == 0).astype(int)
    model = LogisticRegression(l1_ratio=1.0, C=1e-3).fit(X, y)  # more weights than are taken at once
    assert not model.coef_.any() and model.converged_
    np.testing.assert_allclose(model.intercept_, np.log(0.2 / 0.8), rtol=1e-4)
