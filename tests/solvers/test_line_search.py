"""Steps along a direction: which are accepted, and what follows where they are not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.protocol import Evaluation
from fastdisc._solvers.line_search import ARMIJO, ROUNDING, line_search, next_step

PROFILE = settings(max_examples=100, deadline=None, derandomize=True)
P = np.array([[1.0]])


def at(value, slope=0.0):
    """An evaluation on a line: its value, and the derivative along P."""
    return Evaluation(value, 0.0, np.array([[slope]]))


class Line:
    """A function of one weight as an objective, which counts its evaluations."""

    def __init__(self, value, slope):
        self.functions, self.calls = (value, slope), 0

    def value_and_gradient(self, W):
        self.calls += 1
        value, slope = (function(W[0, 0]) for function in self.functions)
        return at(value, slope)


def search(line, w, p, **options):
    W, p = np.array([[w]]), np.array([[p]])
    start = line.value_and_gradient(W)
    return line_search(line, W, p, start, float(start.gradient[0, 0] * p[0, 0]), **options)


def test_full_step_that_lowers_the_value_is_accepted():
    line = Line(lambda w: w**2 / 2, lambda w: w)
    t, found = search(line, 1.0, -1.0)
    assert (t, found.value, line.calls) == (1.0, 0.0, 2)


@PROFILE
@given(length=st.floats(0.01, 1e6), start=st.floats(0.1, 100))
def test_accepted_steps_lower_a_parabola(length, start):
    line = Line(lambda w: w**2 / 2, lambda w: w)
    t, found = search(line, start, -length * start)
    assert found.value <= start**2 / 2 * (1 + ROUNDING)
    assert found.value <= start**2 / 2 - ARMIJO * t * length * start**2 + ROUNDING * start**2


def test_step_to_infinity_is_divided_by_ten():
    assert next_step(at(1.0), -1.0, P, 0.5, at(np.inf)) == pytest.approx(0.05)
    assert next_step(at(1.0), -1.0, P, 0.5, at(np.nan)) == pytest.approx(0.05)


@PROFILE
@given(excess=st.floats(1e-3, 1e9), t=st.floats(1e-6, 1))
def test_shorter_steps_are_a_tenth_to_a_half(excess, t):
    shorter = next_step(at(1.0), -1.0, P, t, at(1.0 + excess, 1.0))
    assert 0.1 * t * (1 - 1e-12) <= shorter <= 0.5 * t * (1 + 1e-12)


def test_below_rounding_the_slope_at_the_far_end_decides():
    start, slope = at(1e6), -1e-12
    above = 1e6 + 1e-8  # a rise by rounding error
    assert next_step(start, slope, P, 1.0, at(above, 1e-13)) is None
    assert next_step(start, slope, P, 1.0, at(above, -1e-13)) is None
    assert next_step(start, slope, P, 1.0, at(above, 2e-12)) is not None


def test_rises_beyond_rounding_are_never_accepted():
    assert next_step(at(1.0), -1.0, P, 1.0, at(1.0 + 1e-6, -1.0)) is not None


def test_search_without_an_acceptable_step_ends():
    line = Line(lambda w: 1.0 + w, lambda w: -1.0)  # a gradient that is wrong
    assert search(line, 0.0, 1.0) is None
    few = Line(lambda w: 1.0 + w, lambda w: -1.0)
    assert search(few, 0.0, 1.0, min_step=0.1) is None
    assert few.calls < line.calls
