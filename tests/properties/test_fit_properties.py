"""Properties of sums and fits that hold for all data."""

import numpy as np
import pytest
from helpers.assertions import assert_all_close, same_bits
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastdisc import LogisticRegression
from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import Batch, RowLoss
from fastdisc._objectives.row_sums import RowSums

PROFILE = settings(max_examples=40, deadline=None, derandomize=True)
BACKENDS = pytest.mark.parametrize("backend", ["cython", "numba"])


@st.composite
def data_sets(draw, max_rows=60):
    """Features X, codes r of K classes, and a random generator."""
    n, d, K = draw(st.integers(2, max_rows)), draw(st.integers(1, 9)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([1e-3, 1.0, 30.0]))
    return X, rng.integers(0, K, n).astype(np.int32), rng


@st.composite
def training_sets(draw):
    """The same, with rows of at least two classes."""
    X, r, rng = draw(data_sets())
    assume(len(np.unique(r)) > 1)
    return X, r, rng


# --- sums over rows -------------------------------------------------------------------------------


def sums(X, r, W, loss=None, backend="cython"):
    """The loss, the misclassified weight, the gradient and the Hessian at W (K, d+1)."""
    if loss is None:
        loss = RowLoss.LOGISTIC if len(W) == 1 else RowLoss.SOFTMAX
    source = MemorySource(Batch(DenseRows(X), r, np.ones(1)), backend=backend)
    found = RowSums(source, loss, n_outputs=len(W)).hessian(W)
    return found.value, found.errors, found.gradient, found.hessian


def draw_weights(X, r, rng):
    K = r.max() + 1
    return rng.standard_normal((1 if K <= 2 else K, X.shape[1] + 1))


@BACKENDS
@PROFILE
@given(data=data_sets(), cut=st.floats(0, 1))
def test_sums_of_parts_add_up(backend, data, cut):
    X, r, rng = data
    W, at = draw_weights(X, r, rng), 1 + int(cut * (len(r) - 2))
    parts = (slice(None), slice(at), slice(at, None))
    whole, first, second = (sums(X[rows], r[rows], W, backend=backend) for rows in parts)
    assert_all_close([a + b for a, b in zip(first, second, strict=True)], whole, 1e-9)


@PROFILE
@given(data=data_sets())
def test_sums_do_not_depend_on_the_order_of_rows(data):
    X, r, rng = data
    W, order = draw_weights(X, r, rng), rng.permutation(len(r))
    assert_all_close(sums(X[order], r[order], W), sums(X, r, W), 1e-9)


@PROFILE
@given(data=data_sets())
def test_two_softmax_outputs_equal_one_sigmoid(data):
    """Exercise 4 of chapter 10."""
    X, r, rng = data
    r = (r > 0).astype(np.int32)
    w = rng.standard_normal((1, X.shape[1] + 1))
    loss, errors, g, _ = sums(X, r, w)
    both = sums(X, r, np.vstack([np.zeros_like(w), w]), RowLoss.SOFTMAX)
    assert_all_close(both[:2], [loss, errors], 1e-9)
    assert_all_close(both[2], [-g[0], g[0]], 1e-9)


# --- fits -----------------------------------------------------------------------------------------


def fit(X, r, s=None, **options):
    tol = 1e-8 if options.get("l1_ratio") else 1e-10
    return LogisticRegression(tol=tol, **options).fit(X, r, s)


def assert_same_fit(actual, expected, X):
    """The same outputs; without an L1 penalty, which may leave weights almost undetermined, the
    same weights."""
    assert_all_close([actual.predict_proba(X)], [expected.predict_proba(X)], tol=1e-5)
    if not expected.l1_ratio:
        found, weights = ([m.coef_, m.intercept_] for m in (actual, expected))
        assert_all_close(found, weights, tol=1e-6)


@PROFILE
@given(data=training_sets())
def test_fits_converge_to_a_tight_tolerance(data):
    X, r, _ = data
    model = LogisticRegression(tol=1e-8).fit(X, r)
    assert model.converged_ and model.gradient_norm_ <= 1e-8


@PROFILE
@given(data=training_sets())
def test_fits_do_not_depend_on_label_names(data):
    X, r, _ = data
    names = np.array(["alpha", "beta", "gamma", "omega"])
    plain, named = LogisticRegression().fit(X, r), LogisticRegression().fit(X, names[r])
    assert np.array_equal(plain.coef_, named.coef_)
    assert np.array_equal(names[plain.predict(X)], named.predict(X))


@PROFILE
@given(data=training_sets(), threads=st.integers(2, 9))
def test_fits_do_not_depend_on_threads(data, threads):
    X, r, _ = data
    models = [LogisticRegression(n_threads=n).fit(X, r) for n in (1, threads)]
    same_bits([(model.coef_, model.intercept_, model.predict_proba(X)) for model in models])


@PROFILE
@given(data=training_sets(), ratio=st.sampled_from([0.0, 0.5]))
def test_fits_do_not_depend_on_the_order_of_rows(data, ratio):
    X, r, rng = data
    order, s = rng.permutation(len(r)), rng.random(len(r)) + 0.1
    permuted = fit(X[order], r[order], s[order], l1_ratio=ratio)
    assert_same_fit(permuted, fit(X, r, s, l1_ratio=ratio), X)


@PROFILE
@given(data=training_sets(), ratio=st.sampled_from([0.0, 0.5]))
def test_integer_sample_weights_equal_repeated_rows(data, ratio):
    X, r, rng = data
    counts = rng.integers(0, 4, len(r))
    counts[np.unique(r, return_index=True)[1]] += 1  # no class without weight
    rows = np.repeat(np.arange(len(r)), counts)
    repeated = fit(X[rows], r[rows], l1_ratio=ratio)
    assert_same_fit(repeated, fit(X, r, counts, l1_ratio=ratio), X)


@PROFILE
@given(data=training_sets())
def test_standardized_fits_do_not_depend_on_units(data):
    X, r, rng = data
    unit = 10.0 ** rng.integers(-5, 6, X.shape[1])
    model, scaled = (fit(A, r, C=0.1, standardize=True) for A in (X, X * unit))
    found, expected = [scaled.coef_ * unit, scaled.intercept_], [model.coef_, model.intercept_]
    assert_all_close(found, expected, tol=1e-6)
