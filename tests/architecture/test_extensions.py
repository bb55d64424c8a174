"""A loss and a layout that are registered at run time serve the whole stack: objectives,
coordinates and solvers. No file of the package knows them."""

import numpy as np
import pytest
from helpers.extensions import column_chunks, complementary_log_log
from scipy import optimize

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._data.moments import collect
from fastdisc._data.outputs import outputs
from fastdisc._data.source import MemorySource
from fastdisc._kernels import Activation, Batch, MomentKind, PairLoss, PairRule, RowLoss
from fastdisc._objectives.coordinates import Problem
from fastdisc._objectives.query_sums import QuerySums
from fastdisc._objectives.row_sums import RowSums
from fastdisc._solvers.registry import SOLVERS
from fastdisc._solvers.result import Trace

EXTENSIBLE = ("numpy", "numba")
N, D, L2 = 400, 4, 2.0
SOLVER_NAMES = ("newton", "newton-cg", "lbfgs", "proximal", "gd")


@pytest.fixture(params=EXTENSIBLE)
def backend(request):
    return request.param


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, D)) * [1, 5, 0.2, 1] + [0, 3, 0, -1]


def solve(problem, name, l2=L2):
    """Weights of the features as they are."""
    objective, W = problem.penalized(l2), np.zeros(problem.shape)
    limits = {"tol": 1e-9, "max_iter": 20_000, "trace": Trace()}
    options = {"l1": 0.0, "backend": "numpy"} if name == "proximal" else {}
    result = SOLVERS[name].solve(objective, W, **limits, **options)
    assert result.converged
    return problem.to_raw(result.W)


def minimise(loss, X):
    """The intercept and weights with the smallest loss(scores) and L2 penalty, by SciPy. `loss`
    returns the value and the derivative by the scores."""
    X1 = np.column_stack([np.ones(len(X)), X])

    def value_and_gradient(w):
        value, slope = loss(X1 @ w)
        penalty = L2 * np.concatenate([[0], w[1:]])
        return value + penalty @ w / 2, X1.T @ slope + penalty

    options = {"gtol": 1e-7, "maxiter": 10_000}
    start = np.zeros(X1.shape[1])
    return optimize.minimize(value_and_gradient, start, jac=True, options=options).x


# --- a loss ---------------------------------------------------------------------------------------


def complementary_loss(y, s):
    """By its definition: y = 1 with probability 1 - exp(-exp(z))."""

    def loss(z):
        t = np.exp(z)
        miss = np.exp(-t)
        value = -np.where(y == 1, np.log1p(-miss), -t)
        return s @ value, s * np.where(y == 1, -t * miss / (1 - miss), t)

    return loss


@pytest.fixture
def binary(rng, X):
    z = X @ [0.5, -0.2, 2.0, 0.3] - 0.5
    y = (rng.random(N) < 1 - np.exp(-np.exp(z))).astype(np.int32)
    return Batch(DenseRows(X), y, rng.random(N) + 0.5)


@pytest.mark.parametrize("name", SOLVER_NAMES)
def test_new_loss_is_fitted_by_every_solver(backend, binary, name):
    expected = minimise(complementary_loss(binary.r, binary.s), binary.X.values)
    with complementary_log_log() as loss:
        problem = Problem(RowSums(MemorySource(binary, backend=backend), loss))
        found = solve(problem, name)
    np.testing.assert_allclose(found[0], expected, atol=2e-5)


def test_new_loss_serves_problems_over_shared_rows(backend, binary):
    from fastdisc._objectives.shared_rows import SharedRows
    from fastdisc._solvers.newton import solve_shared

    expected = minimise(complementary_loss(binary.r, binary.s), binary.X.values)
    with complementary_log_log() as loss:
        problem = Problem(RowSums(MemorySource(binary, backend=backend), loss))
        shared = SharedRows.of(problem, [[-1, 1], [1, -1]], L2)
        limits = {"tol": 1e-9, "max_iter": 200, "trace": Trace()}
        first, _ = solve_shared(shared, [np.zeros(shared.shape)] * 2, **limits)
    np.testing.assert_allclose(problem.to_raw(first.W)[0], expected, atol=2e-5)


def test_new_loss_is_an_error_where_it_is_not_registered(binary):
    with complementary_log_log() as loss:
        data = RowSums(MemorySource(binary, backend="cython"), loss)
        with pytest.raises(ValueError, match=f"the cython backend has no row loss {loss}"):
            data.value_and_gradient(np.zeros(data.shape))
    with pytest.raises(ValueError, match=f"unknown row loss {loss}: not in ROW_LOSSES"):
        RowSums(MemorySource(binary), loss)


# --- a layout -------------------------------------------------------------------------------------


@pytest.fixture
def three_classes(rng, X):
    Z = X @ rng.standard_normal((D, 3)) + rng.gumbel(size=(N, 3))
    return Z.argmax(axis=1).astype(np.int32), rng.random(N) + 0.5


def logistic_loss(y, s):
    def loss(z):
        return s @ (np.logaddexp(0, z) - y * z), s * (1 / (1 + np.exp(-z)) - y)

    return loss


@pytest.mark.parametrize("name", SOLVER_NAMES)
def test_new_layout_is_fitted_by_every_solver(backend, X, three_classes, name):
    r, s = (three_classes[0] > 0).astype(np.int32), three_classes[1]
    expected = minimise(logistic_loss(r, s), X)
    with column_chunks() as Layout:
        source = MemorySource(Batch(Layout(X, 48), r, s), backend=backend)
        found = solve(Problem(RowSums(source, RowLoss.LOGISTIC)), name)
    np.testing.assert_allclose(found[0], expected, atol=2e-5)


@pytest.mark.parametrize("name", ["newton", "newton-cg", "lbfgs"])
def test_new_layout_serves_several_classes(backend, X, three_classes, name):
    r, s = three_classes
    found = {}
    with column_chunks() as Layout:
        for rows, kernels in ((Layout(X, 48), backend), (DenseRows(X), "numpy")):
            source = MemorySource(Batch(rows, r, s), backend=kernels)
            found[kernels, rows.layout] = solve(Problem(RowSums(source, RowLoss.SOFTMAX)), name)
    one, other = found.values()
    np.testing.assert_allclose(one[:, 1:], other[:, 1:], atol=1e-6)


def test_new_layout_serves_rankers_moments_and_predictions(rng, backend, X):
    group, y = np.sort(rng.integers(0, 9, N)), rng.integers(0, 3, N).astype(float)
    rule, W = PairRule(PairLoss.LOGISTIC), rng.standard_normal((1, D + 1))
    found = []
    with column_chunks() as Layout:
        for rows, kernels in ((Layout(X, 48), backend), (DenseRows(X), "numpy")):
            data = QuerySums(rows, group, y, np.ones(1), rule, backend=kernels)
            ranker = solve(Problem(data, intercept=False), "newton")
            r = y.astype(np.int32)
            moments = collect(rows, r, np.ones(1), 3, MomentKind.SCATTER, backend=kernels)
            Y = outputs(rows, Activation.SIGMOID, W, backend=kernels)
            found.append((ranker, moments.n, moments.mean, moments.within, Y))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_new_layout_is_an_error_where_it_is_not_registered(X):
    batch_of = lambda rows: Batch(rows, np.zeros(N, np.int32), np.ones(1))  # noqa: E731
    with column_chunks() as Layout:
        rows = Layout(X, 48)
        source = MemorySource(batch_of(rows), backend="cython")
        with pytest.raises(ValueError, match="the cython backend has no layout 'column_chunks'"):
            RowSums(source, RowLoss.LOGISTIC).value_and_gradient(np.zeros((1, D + 1)))
    assert rows.layout not in _kernels.load("numba").layouts.ARGUMENTS
