"""The hinge with a margin: the certificate of the gap, and its limits."""

import numpy as np
import pytest
from helpers.objectives import NumpyObjective, huber, numpy_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.penalty import Penalty
from fastdisc._solvers import lbfgs, newton, smoothed
from fastdisc._solvers.result import Result, Trace

PROFILE = settings(max_examples=20, deadline=None, derandomize=True)


def make_hinge(rng, n=80, d=3, l2=1.0):
    """A function from the width of the corner to an objective, and the exact objective."""
    D = rng.standard_normal((n, d)) + 0.5
    A, r, s = np.column_stack([np.zeros(n), D]), np.zeros(n, int), rng.random(n) + 0.5
    penalty = Penalty((1, d + 1), l2, intercept=False)

    def exact(W):
        return float(s @ np.maximum(1 - A @ W[0], 0)) + l2 / 2 * float(W[0, 1:] @ W[0, 1:])

    return lambda width: NumpyObjective(A, r, s, huber(width), penalty), exact


def solve(objectives, exact, d=3, **options):
    limits = {"inner": smoothed.newton, "tol": 1e-4, "max_iter": 500, "trace": Trace()} | options
    return smoothed.solve(objectives, exact, np.zeros((1, d + 1)), **limits)


@PROFILE
@given(seed=st.integers(0, 2**31), l2=st.sampled_from([0.1, 1.0, 10.0]))
def test_certificate_bounds_the_distance_from_the_minimum(seed, l2):
    objectives, exact = make_hinge(np.random.default_rng(seed), l2=l2)
    rough = solve(objectives, exact, tol=1e-2)
    fine = solve(objectives, exact, tol=1e-6, fallback=lbfgs.solve, max_iter=2000)
    assert rough.converged and fine.converged
    assert exact(rough.W) - exact(fine.W) <= rough.gradient_norm * exact(rough.W) * (1 + 1e-9)
    assert rough.gradient_norm <= 1e-2 and fine.gradient_norm <= 1e-6


def test_smooth_values_are_below_the_exact_one_by_at_most_half_a_width(rng):
    objectives, exact = make_hinge(rng)
    for width in (2.0, 0.5, 0.01):
        for W in rng.standard_normal((10, 1, 4)):
            W[0, 0] = 0
            objective = objectives(width)
            gap = exact(W) - objective.value_and_gradient(W).value
            assert gap >= -1e-9
            assert gap <= width / 2 * objective.total_weight + 1e-9


def test_without_a_certificate_the_inner_tolerance_holds(rng):
    objectives, exact = make_hinge(rng)
    result = solve(objectives, exact, certified=False, tol=1e-5)
    assert result.converged
    fine = solve(objectives, exact, tol=1e-8)
    assert exact(result.W) <= exact(fine.W) * (1 + 1e-4)


def test_iterations_are_limited(rng):
    result = solve(*make_hinge(rng), tol=1e-12, max_iter=3)
    assert not result.converged and result.n_iter <= 4
    assert np.isfinite(result.gradient_norm)


def test_callback_stops_the_solver(rng):
    trace = Trace(callback=lambda step, values: step == 1)
    result = solve(*make_hinge(rng), tol=1e-12, trace=trace)
    assert result.stopped and not result.converged


def idle(objective, W, *, trace, **options):
    """A solver that does nothing."""
    return Result(W, False, 0, 1.0, trace.history)


def test_fallback_continues_where_the_inner_solver_makes_no_progress(rng):
    objectives, exact = make_hinge(rng)
    calls = []

    def fallback(objective, W, **options):
        calls.append(options["max_iter"])
        return lbfgs.solve(objective, W, **options)

    result = solve(objectives, exact, inner=idle, fallback=fallback, max_iter=2000)
    assert result.converged and calls and max(calls) < 2000


def test_solver_that_never_moves_is_given_up(rng):
    result = solve(*make_hinge(rng), inner=idle, max_iter=10**6)
    assert not result.converged and result.n_iter <= smoothed.MAX_UNCHANGED + 1


@pytest.mark.parametrize("solver", [smoothed.newton, smoothed.newton_cg])
def test_damped_newton_agrees_with_newton_on_smooth_losses(rng, solver):
    objective = numpy_problem(rng, 200, 4, 2)
    limits = {"tol": 1e-9, "max_iter": 100, "trace": Trace()}
    damped, plain = (s(objective, np.zeros((1, 5)), **limits) for s in (solver, newton.solve))
    assert damped.converged
    np.testing.assert_allclose(damped.W, plain.W, atol=1e-7)
