"""Quasi-Newton: the stopping rule, the memory, and the state machine of a descent."""

import numpy as np
import pytest
from helpers.fits import draw_classes, make_problem
from helpers.objectives import numpy_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.protocol import Evaluation, gradient_norm
from fastdisc._solvers import descent, lbfgs
from fastdisc._solvers.descent import Descent, memory_size, two_loop_recursion
from fastdisc._solvers.result import Trace

PROFILE = settings(max_examples=50, deadline=None, derandomize=True)


def solve(objective, W=None, **options):
    limits = {"tol": 1e-6, "max_iter": 500, "trace": Trace()} | options
    return lbfgs.solve(objective, np.zeros(objective.shape) if W is None else W, **limits)


def relative_norm(objective, W):
    """The gradient norm relative to that at zero weights."""
    norms = [
        np.linalg.norm(objective.value_and_gradient(V).gradient)
        for V in (W, np.zeros(objective.shape))
    ]
    return norms[0] / norms[1]


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
def test_lbfgs_stops_at_tolerance(rng, tol):
    objective = numpy_problem(rng, 400, 6, 3)
    result = solve(objective, tol=tol)
    assert result.converged and result.gradient_norm <= tol
    assert relative_norm(objective, result.start) == pytest.approx(result.gradient_norm, rel=1e-6)
    before = solve(objective, tol=tol, max_iter=result.n_iter - 1)
    assert not before.converged and before.gradient_norm > tol


def test_warm_start_does_not_tighten_the_tolerance(rng):
    objective = numpy_problem(rng, 400, 6, 3)
    first = solve(objective, tol=1e-4)
    again = solve(objective, first.W, tol=1e-4)
    assert again.converged and again.n_iter == 0
    assert again.gradient_norm == pytest.approx(relative_norm(objective, first.W))


def test_history_has_a_falling_loss(rng):
    result = solve(numpy_problem(rng, 400, 6, 3), trace=Trace())
    loss = np.array(result.history["loss"])
    assert len(loss) == result.n_iter + 1 and (np.diff(loss) <= 1e-12 * loss[0]).all()


def test_callback_stops_the_solver(rng):
    trace = Trace(callback=lambda step, values: step == 2)
    result = solve(numpy_problem(rng, 400, 6, 3), tol=1e-12, trace=trace)
    assert result.stopped and not result.converged and result.n_iter == 2


def test_float64_products_replace_float32_products_that_limit_the_certificate():
    X, y, _ = draw_classes(2000, 20, 3)
    problem = make_problem(X.astype(np.float32), y)
    objective = problem.penalized(1.0)
    assert objective.use_float64() is not objective
    result = solve(objective, tol=1e-7)
    assert result.converged
    assert relative_norm(objective.use_float64(), result.start) <= 1.1e-7


def test_memory_is_limited_in_pairs_and_in_numbers():
    assert memory_size(1) == descent.MAX_PAIRS
    assert memory_size(10**9) == descent.MIN_PAIRS
    assert memory_size(25_000) * 25_000 <= descent.MAX_MEMORY


@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(1, 8))
def test_two_loop_recursion_is_the_bfgs_inverse(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n + 3, n))
    H, B = A.T @ A + np.eye(n), np.eye(n) * 0.5
    pairs = [(s, H @ s) for s in rng.standard_normal((4, n))]
    for s, y in pairs:  # the inverse, updated by each pair
        left = np.eye(n) - np.outer(s, y) / (s @ y)
        B = left @ B @ left.T + np.outer(s, s) / (s @ y)
    g = rng.standard_normal(n)
    found = two_loop_recursion(g, pairs, lambda q: 0.5 * q)
    np.testing.assert_allclose(found, B @ g, rtol=1e-6, atol=1e-8)


# --- the state machine ----------------------------------------------------------------------------


def bowl(W):
    """||w||^2 / 2."""
    return Evaluation(float((W**2).sum()) / 2, 0.0, W.copy())


def start_descent(W, base=lambda g: g.copy(), **options):
    settings = {"shift_invariant": False, "memory": 5} | options
    return Descent(np.asarray(W, float), base, **settings)


def test_descent_asks_for_the_start_first():
    one = start_descent([[3.0, 4.0]])
    np.testing.assert_array_equal(one.trial_point, [[3, 4]])
    one.receive(bowl(one.trial_point))
    assert one.steps == 0 and one.norm == 5
    np.testing.assert_array_equal(one.trial_point, [[0, 0]])


def test_descent_shortens_steps_that_overshoot():
    one = start_descent([[1.0, 0.0]], lambda g: 10 * g)
    one.receive(bowl(one.trial_point))
    one.receive(bowl(one.trial_point))
    assert one.shortened and one.steps == 0
    assert 0.1 <= one.t <= 0.5
    one.receive(bowl(one.trial_point))
    assert one.steps == 1 and np.abs(one.W).max() < 1


def test_first_shortening_replaces_the_interpolated_step():
    one = start_descent([[1.0, 0.0]], lambda g: 10 * g, first_shortening=0.25)
    one.receive(bowl(one.trial_point))
    one.receive(bowl(one.trial_point))
    assert one.t == 0.25


def test_descent_without_progress_is_stuck():
    one = start_descent([[1.0, 0.0]])
    one.receive(bowl(one.trial_point))
    for _ in range(100):
        if one.stuck:
            break
        one.receive(Evaluation(1.0, 0.0, np.array([[1.0, 0.0]])))  # no step lowers this loss
    assert one.stuck and one.remaining_steps(0.1) == np.inf
    assert one.can_renew
    one.retry(lambda g: 0.5 * g)
    assert not one.stuck and not one.can_renew


def test_descent_evaluates_again_with_higher_precision():
    seen = []
    one = start_descent([[1.0, 0.0]], record=lambda found, W: seen.append(found.value))
    one.receive(bowl(one.trial_point))
    one.receive(bowl(one.trial_point))
    W = one.W.copy()
    one.reevaluate()
    np.testing.assert_array_equal(one.trial_point, W)
    one.receive(bowl(one.trial_point)._replace(value=0.125))
    assert one.evaluation.value == 0.125 and len(seen) == 2  # the trace has each step once


def test_remaining_steps_follow_the_rate_of_convergence():
    one = start_descent([[1.0, 0.0]])
    one.norms = [1.0, 0.1, 0.01]
    assert one.remaining_steps(1e-6) == pytest.approx(4)
    assert one.remaining_steps(0) == 0


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1.0, 1e200])
def test_gradient_norm_does_not_overflow_or_underflow(size):
    assert gradient_norm(size * np.array([[3.0, 4.0]])) == pytest.approx(5 * size)
    assert gradient_norm(np.zeros((2, 3))) == 0.0
