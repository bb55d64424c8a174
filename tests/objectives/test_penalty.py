"""The L2 penalty and fixed weights."""

import numpy as np
import pytest
from helpers.oracles import numerical_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._objectives.penalty import Penalty

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def penalties(draw):
    """A penalty, and a random generator."""
    K, d = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    reference = draw(st.sampled_from([None, *range(K)])) if K > 1 else None
    options = {"intercept": draw(st.booleans()), "reference": reference}
    return Penalty((K, d + 1), rng.random(d), **options), rng


def free_weights(penalty, rng):
    return np.where(penalty.fixed, 0, rng.standard_normal(penalty.shape))


@PROFILE
@given(case=penalties())
def test_gradient_is_the_derivative_of_the_value(case):
    penalty, rng = case
    W, G = free_weights(penalty, rng), np.zeros(penalty.shape)
    penalty.add_gradient(W, G)
    expected = np.where(penalty.fixed, 0, numerical_gradient(penalty.value, W, 1e-4))
    np.testing.assert_allclose(G, expected, atol=1e-7)
    assert penalty.values(W).sum() == pytest.approx(penalty.value(W))


@PROFILE
@given(case=penalties())
def test_hessian_is_the_derivative_of_the_gradient(case):
    penalty, rng = case
    (K, D), H = penalty.shape, np.zeros((W_size := np.prod(penalty.shape), W_size))
    penalty.add_hessian(H)
    fixed = penalty.fixed.ravel()
    np.testing.assert_array_equal(H, np.diag(np.where(fixed, 1, np.tile(penalty.diagonal, K))))
    V, HV = free_weights(penalty, rng), np.zeros((K, D))
    penalty.add_product(V, HV)
    np.testing.assert_allclose(HV.ravel(), np.where(fixed, 0, H @ V.ravel()))


@PROFILE
@given(case=penalties(), strength=st.floats(0, 10))
def test_replaced_penalty_is_that_of_a_new_hessian(case, strength):
    old, rng = case
    new, size = old.with_l2(strength * rng.random(len(old.l2))), int(np.prod(old.shape))
    A = rng.standard_normal((size, size))
    with_old, with_new = A @ A.T, A @ A.T
    old.add_hessian(with_old)
    new.add_hessian(with_new)
    free = ~old.fixed.ravel()
    before = with_old.copy()
    found = new.replace_in(with_old, old)
    np.testing.assert_array_equal(with_old, before)
    np.testing.assert_allclose(found[np.ix_(free, free)], with_new[np.ix_(free, free)])
    assert old.replace_in(with_old, old) is with_old


@PROFILE
@given(case=penalties(), unit=st.floats(0.1, 10), transposed=st.booleans())
def test_float32_penalty_has_the_same_products(case, unit, transposed):
    penalty, rng = case
    V, HV = free_weights(penalty, rng).astype(np.float32), np.zeros(penalty.shape)
    penalty.add_product(V.astype(float), HV)
    arguments = (np.ascontiguousarray(a.T) if transposed else a for a in (V, np.zeros_like(V)))
    V, found = arguments
    penalty.in_float32(unit, transposed=transposed).add_product(V, found)
    found = found.T if transposed else found
    np.testing.assert_allclose(found, HV / unit, rtol=1e-5, atol=1e-7)


def test_which_weights_are_fixed():
    free = Penalty((3, 4), 1.0)
    assert not free.has_fixed and not free.fixed.any() and free.shift_invariant
    without = Penalty((3, 4), 1.0, intercept=False)
    assert without.has_fixed and without.shift_invariant
    np.testing.assert_array_equal(without.fixed, np.arange(4) == np.zeros((3, 1)))
    reference = Penalty((3, 4), 1.0, reference=2)
    np.testing.assert_array_equal(reference.fixed.all(axis=1), [False, False, True])
    assert not reference.shift_invariant
    assert not Penalty((1, 4), 1.0).shift_invariant


def test_columns_keep_strength_and_fixed_weights():
    penalty = Penalty((3, 5), [1.0, 2.0, 3.0, 4.0], reference=0, intercept=False)
    part = penalty.columns(np.array([2, 0]))
    np.testing.assert_array_equal(part.l2, [3.0, 1.0])
    assert part.shape == (3, 3) and part.reference == 0 and not part.intercept


def test_gradient_is_added_for_any_number_of_problems(rng):
    penalty = Penalty((1, 4), 2.0, intercept=False)
    W, G = rng.standard_normal((2, 7, 4))
    expected = G + 2 * W
    expected[:, 0] = 0
    penalty.add_gradient(W, G)
    np.testing.assert_allclose(G, expected)
