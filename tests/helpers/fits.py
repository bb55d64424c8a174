"""Linear problems for solvers, without estimators: from arrays to the solver's result and weights
of the features as they are; and an independent measure of how far weights are from an optimum."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression as ScikitLearn
from threadpoolctl import threadpool_limits

from fastdisc._data.csr import CSRRows
from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import NO_OFFSET, Batch, RowLoss
from fastdisc._objectives.coordinates import Problem
from fastdisc._objectives.row_sums import RowSums
from fastdisc._solvers.registry import SOLVERS
from fastdisc._solvers.result import Result, Trace

EXACT_SOLVERS = ("newton", "newton-cg", "lbfgs", "proximal")
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: X.astype(np.uint8),
    "F order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


class Fit(NamedTuple):
    """A solution."""

    V: Any  # (K, d+1) of the features as they are
    result: Result
    problem: Problem


def rows_of(X):
    """An array or SciPy matrix as rows."""
    return CSRRows.from_scipy(X, np.int32) if sparse.issparse(X) else DenseRows(np.asarray(X))


def row_sums(X, y, s=None, *, loss=None, offset=NO_OFFSET, backend=None, n_threads=None):
    """The logistic loss for two classes, softmax for more; or another loss."""
    r = np.unique(y, return_inverse=True)[1].astype(np.int32)
    s = np.ones(1) if s is None else np.asarray(s, float)
    source = MemorySource(Batch(rows_of(X), r, s, offset), backend=backend, n_threads=n_threads)
    if loss is None:
        loss = RowLoss.LOGISTIC if r.max() == 1 else RowLoss.SOFTMAX
    return RowSums(source, loss)


def make_problem(X, y, s=None, *, intercept=True, reference=None, rescale=True, **options):
    """The same in standardised coordinates."""
    data = row_sums(X, y, s, **options)
    return Problem(data, intercept=intercept, reference=reference, rescale=rescale)


def fit(X, y, solver, *, C=1.0, l1_ratio=0.0, start=None, problem=None, **options):
    """The solution of a solver of the registry; `problem` holds options of `make_problem`."""
    problem = make_problem(X, y, **({"rescale": solver != "gd"} | (problem or {})))
    limits = {"tol": 1e-6, "max_iter": SOLVERS[solver].max_iter, "trace": Trace()}
    if solver == "proximal":
        limits["l1"] = problem.l1(l1_ratio / C)
    W = np.zeros(problem.shape) if start is None else problem.to_solver(start)
    objective = problem.penalized((1 - l1_ratio) / C)
    result = SOLVERS[solver].solve(objective, W, **(limits | options))
    return Fit(problem.to_raw(result.W), result, problem)


def scikit_learn(X, y, s=None, **parameters):
    """Weights (K, d+1) of scikit-learn's exact solver."""
    with threadpool_limits(1):  # on a busy machine two BLAS threads wait for each other
        solver = ScikitLearn(solver="newton-cholesky", tol=1e-12, max_iter=1000, **parameters)
        model = solver.fit(X, y, s)
    return np.column_stack([model.intercept_, model.coef_])


def assert_same_weights(actual, expected, tol=1e-6):
    """Equal weights and, up to what may be added to all of them, intercepts."""
    free = (np.arange(actual.shape[1]) == 0) & (len(actual) > 1)
    actual, expected = (V - free * V[:, 0].mean() for V in (actual, expected))
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def gradient(X, y, W, s=1.0):
    """Of the weighted sum of losses, by the weights of each class, (K, d+1)."""
    Z = X @ W[:, 1:].T + W[:, 0]
    Z = Z if len(W) > 1 else np.hstack([np.zeros_like(Z), Z])
    Z = Z - Z.max(axis=1, keepdims=True)
    Y = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    E = (Y - (np.asarray(y)[:, None] == np.unique(y))) * np.broadcast_to(s, len(y))[:, None]
    g = np.column_stack([E.sum(axis=0), E.T @ X])
    return g if len(W) > 1 else g[1:]


def violation(V, X, y, C, l1_ratio=0.0, s=1.0):
    """How far weights V (K, d+1) are from the conditions of an optimum, relative to the gradient at
    zero weights. Columns of dense data count in units of their standard deviation."""
    mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if sparse.issparse(X):
        X = X.toarray().astype(float)
    else:
        X = np.asarray(X, dtype=float)
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1)
    A, w = (X - mean) / scale, V[:, 1:] * scale
    W = np.column_stack([V[:, 0] + V[:, 1:] @ mean, w])
    g = gradient(A, y, W, s)
    g[:, 1:] += (1 - l1_ratio) / C * w / scale**2
    l1 = l1_ratio / C / scale
    at_zero = np.sign(g[:, 1:]) * np.maximum(np.abs(g[:, 1:]) - l1, 0)
    g[:, 1:] = np.where(w != 0, g[:, 1:] + l1 * np.sign(w), at_zero)
    return np.linalg.norm(g) / np.linalg.norm(gradient(A, y, 0 * W, s))


# --- data -----------------------------------------------------------------------------------------

MANY_ROWS = 30_000


def draw_classes(n=MANY_ROWS, d=6, K=3, seed=0):
    """Rows, their classes, drawn from the model itself at weights of size 1, and the generator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng


def sorted_by_class(X, y):
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def rare_class(X, y):
    y = y.copy()
    y[np.flatnonzero(y == 1)[10:]] = 0
    return X, y


def rare_column(X, y):
    X, y, rows = X.copy(), y.copy(), [17, 12_345, 29_000]
    X[:, 2] = 0
    X[rows, 2], y[rows] = [1.0, 2.0, 1.0], [0, 1, y.max()]
    y[rows[2]] %= 2 if y.max() == 1 else 3
    return X, y


def outlying_rows(X, y):
    X = X.copy()
    X[[17, 12_345, 29_000]] *= 100
    return X, y


def badly_scaled(X, y):
    return X * np.geomspace(1e-6, 1e6, X.shape[1]), y


def nearly_collinear(X, y):
    X = X.copy()
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    return X, y


def constant_column(X, y):
    X = X.copy()
    X[:, 4] = 3.7
    return X, y


def large_mean(X, y):
    return X + 1e6, y


HARD = {
    make.__name__: make
    for make in (
        sorted_by_class,
        rare_class,
        rare_column,
        outlying_rows,
        badly_scaled,
        nearly_collinear,
        constant_column,
        large_mean,
    )
}


def use_samples(monkeypatch):
    """Newton's method takes samples however few rows there are."""
    from fastdisc._solvers import newton, sample_schedule

    monkeypatch.setattr(sample_schedule, "CALL_CELLS", 0)
    monkeypatch.setattr(newton, "sample_sizes", sample_schedule.sample_sizes.__wrapped__)
