"""Problems over shared rows keep the protocol `SharedObjective`."""

import numpy as np
import pytest
from helpers.fits import draw_classes, make_problem, row_sums
from helpers.objectives import Strict, members
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.coordinates import Problem
from fastdisc._objectives.protocol import Capability, SharedObjective
from fastdisc._objectives.shared_rows import Segment, SharedRows

PROFILE = settings(max_examples=20, deadline=None, derandomize=True)
SIGNS = np.array([[1, -1, -1, 0], [-1, 1, -1, 1], [-1, -1, 1, -1]], np.int8)  # (groups, problems)


def make_shared(n=300, rescale=True, l2=2.0, intercept=True, **options):
    X, y, rng = draw_classes(n, 3, 3)
    problem = make_problem(X + 1, y, loss=0, rescale=rescale, intercept=intercept, **options)
    return SharedRows.of(problem, SIGNS, l2), problem, X + 1, y, rng


def alone(problem, X, y, k, l2=2.0):
    """The objective of one of the problems, by itself."""
    sign = SIGNS[y, k]
    data = row_sums(X[sign != 0], sign[sign != 0] > 0)
    single = Problem(data, intercept=problem.intercept, rescale=False)
    single.units, single.mean, single.scale = problem.units, problem.mean, problem.scale
    return single.penalized(l2)


def weights(shared, rng):
    W = 0.3 * rng.standard_normal((shared.n_problems, *shared.shape))
    return list(np.where(shared.penalty.fixed, 0, W))


def test_members_are_those_of_the_protocol():
    shared, *_ = make_shared()
    assert [m for m in members(SharedObjective) if not hasattr(shared, m)] == []
    assert shared.capabilities <= set(Capability) and shared.convex
    assert shared.n_problems == 4 and shared.shape == (1, 4) == shared.penalty.shape


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_each_problem_is_that_of_its_own_rows(rescale, intercept, order):
    shared, problem, X, y, rng = make_shared(rescale=rescale, intercept=intercept)
    W, strict = weights(shared, rng), Strict(shared, SharedObjective)
    found = strict.evaluate(W=W, problems=np.arange(4), order=order)
    for k, evaluation in enumerate(found):
        single = alone(problem, X, y, k)
        expected = single.hessian(W[k]) if order == 2 else single.value_and_gradient(W[k])
        assert evaluation.value == pytest.approx(expected.value, rel=1e-10)
        assert evaluation.errors == pytest.approx(expected.errors)
        np.testing.assert_allclose(evaluation.gradient, expected.gradient, atol=1e-8)
        if order == 2:
            np.testing.assert_allclose(evaluation.hessian, expected.hessian, atol=1e-8)


def test_some_problems_are_evaluated_without_the_others():
    shared, _, _, _, rng = make_shared()
    W = weights(shared, rng)
    expected = shared.evaluate(W, np.arange(4), 1)
    for some in ([2], [0, 3], [1, 2, 3]):
        fresh, *_ = make_shared()
        found = fresh.evaluate([W[k] for k in some], np.array(some), 1)
        for k, evaluation in zip(some, found, strict=True):
            assert evaluation.value == pytest.approx(expected[k].value, rel=1e-12)
            np.testing.assert_allclose(evaluation.gradient, expected[k].gradient, rtol=1e-9)


@PROFILE
@given(seed=st.integers(0, 2**31))
def test_order_of_calls_changes_no_result(seed):
    """The last evaluation of each problem is cached."""
    rng, (shared, *_) = np.random.default_rng(seed), make_shared()
    W = weights(shared, rng)
    fresh, *_ = make_shared()
    expected = fresh.evaluate(W, np.arange(4), 1)
    shared.evaluate(weights(shared, rng), np.arange(4), 1)
    shared.evaluate([W[1]], np.array([1]), 1)
    shared.evaluate(W[2:], np.array([2, 3]), 2)
    for _ in range(2):
        for one, other in zip(shared.evaluate(W, np.arange(4), 1), expected, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-14)
            np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-12, atol=1e-12)


def test_segments_add_up():
    shared, problem, X, y, rng = make_shared()
    segments = []
    for k in range(3):
        own = np.flatnonzero(SIGNS[k])
        rows = row_sums(X[y == k], np.zeros((y == k).sum()), loss=0)
        segments.append(Segment(rows, np.ascontiguousarray(SIGNS[k : k + 1, own]), own))
    split = SharedRows(segments, problem.units, problem.penalty(2.0))
    assert split.n_problems == 4 and split.n_rows == shared.n_rows
    W = weights(shared, rng)
    for order in (1, 2):
        both = (objective.evaluate(W, np.arange(4), order) for objective in (shared, split))
        for one, other in zip(*both, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-12)
            np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-9)
            if order == 2:
                np.testing.assert_allclose(one.hessian, other.hessian, atol=1e-9)


def test_rows_are_those_of_the_smallest_problem():
    shared, _, _, y, _ = make_shared()
    assert shared.n_rows == (y != 0).sum()  # the last problem excludes the first group


def test_sample_estimates_all_problems():
    shared, _, _, _, rng = make_shared(n=4000)
    W = weights(shared, rng)
    assert shared.sample(shared.n_rows, 0) is shared
    parts = [shared.sample(600, seed).evaluate(W, np.arange(4), 1) for seed in range(20)]
    expected = [e.value for e in shared.evaluate(W, np.arange(4), 1)]
    means = np.mean([[e.value for e in part] for part in parts], axis=0)
    np.testing.assert_allclose(means, expected, rtol=0.03)


def test_penalty_is_applied_exactly_once():
    shared, problem, _, _, rng = make_shared()
    free, W = shared.with_penalty(problem.penalty(0.0)), weights(shared, rng)
    l2 = shared.penalty.l2
    pairs = zip(shared.evaluate(W, np.arange(4), 2), free.evaluate(W, np.arange(4), 2), strict=True)
    for w, (one, other) in zip(W, pairs, strict=True):
        assert one.value - other.value == pytest.approx((l2 * w[:, 1:] ** 2).sum() / 2)
        difference = one.gradient - other.gradient
        np.testing.assert_allclose(difference[:, 1:], l2 * w[:, 1:], atol=1e-9)
        np.testing.assert_allclose(one.hessian - other.hessian, np.diag([0, *l2]), atol=1e-8)
