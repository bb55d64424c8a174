"""Batch gradient descent: the book's steps, the safe step size, divergence."""

import numpy as np
import pytest
from helpers import oracles
from helpers.data_sets import SETS, STANDARDIZED
from helpers.fits import assert_same_weights, fit, scikit_learn
from helpers.objectives import numpy_problem

from fastdisc._solvers import gd
from fastdisc._solvers.result import Trace


def solve(objective, W=None, **options):
    limits = {"tol": 1e-6, "max_iter": 1000, "trace": Trace()} | options
    return gd.solve(objective, np.zeros(objective.shape) if W is None else W, **limits)


@pytest.mark.parametrize("name", SETS)
def test_gd_reaches_the_optimum_of_scikit_learn(name):
    X, y = STANDARDIZED[name]
    found = fit(X, y, "gd", C=0.005, tol=1e-7, problem={"rescale": False, "n_threads": 1})
    assert found.result.converged
    assert_same_weights(found.V, scikit_learn(X, y, C=0.005), tol=1e-5)


@pytest.mark.parametrize("K", [2, 3])
def test_gd_takes_the_steps_of_the_book(rng, K):
    """Figures 10.6 and 10.8."""
    objective = numpy_problem(rng, 30, 3, K, l2=0.0)
    objective = objective.like(s=np.ones(30))
    W = 0.01 * rng.standard_normal(objective.shape)
    result = solve(objective, W, tol=0, max_iter=20, eta=0.01)
    args = objective.A[:, 1:], objective.r, W, 0.01, 20
    expected, losses, errors = oracles.gradient_descent(*args)
    np.testing.assert_allclose(result.W, expected, rtol=1e-10)
    np.testing.assert_allclose(result.history["loss"], losses, rtol=1e-10)
    np.testing.assert_allclose(result.history["errors"], errors)
    assert result.n_iter == 20 and not result.converged


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_automatic_steps_lower_the_loss(rng, scale):
    objective = numpy_problem(rng, 100, 3, 3)
    A = objective.A * [1, scale, 1, 1]
    result = solve(objective.like(A=A), tol=0, max_iter=50)
    loss = np.array(result.history["loss"])
    assert (np.diff(loss) <= 1e-12 * loss[0]).all() and loss[-1] < loss[0]


def test_steps_too_long_raise_an_error_that_says_so(rng):
    objective = numpy_problem(rng, 100, 3, 2, l2=1e6)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="diverged with eta=10: take a smaller one"),
    ):
        solve(objective, np.ones(objective.shape), eta=10.0)


def test_gd_stops_at_tolerance(rng):
    objective = numpy_problem(rng, 100, 3, 2)
    result = solve(objective, tol=1e-3)
    assert result.converged and result.gradient_norm <= 1e-3
    before = solve(objective, tol=1e-3, max_iter=result.n_iter - 1)
    assert not before.converged and before.gradient_norm > 1e-3


def test_gd_stops_when_the_callback_says_so(rng):
    trace = Trace(callback=lambda step, values: step == 3)
    result = solve(numpy_problem(rng, 100, 3, 2), trace=trace)
    assert result.stopped and result.n_iter == 3


def test_verbose_prints_every_hundredth_step(rng, capsys):
    solve(numpy_problem(rng, 100, 3, 2), tol=0, max_iter=250, trace=Trace(verbose=1))
    assert capsys.readouterr().out.count("[gd]") == 3
