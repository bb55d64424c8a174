"""Comparisons that several test files use."""

import numpy as np


def assert_close(actual, expected, tol=1e-10):
    """Equal shapes, and a difference of at most tol times the largest expected value."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    largest = max(1e-30, np.abs(expected).max(initial=0))
    assert np.abs(actual - expected).max(initial=0) <= tol * largest


def assert_all_close(actual, expected, tol=1e-10):
    """The same for each of several results, relative to at least 1; None where None is expected."""
    for a, b in zip(actual, expected, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape
            assert np.abs(a - b).max(initial=0) <= tol * max(1.0, np.abs(b).max(initial=0))


def same_bits(results):
    """All results, each a sequence of arrays, numbers or None, are equal to the last bit."""
    first, *others = results
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert (a is None and b is None) or np.array_equal(np.asarray(a), np.asarray(b))
