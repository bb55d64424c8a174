"""Properties that hold for all data: weights are repetition, parts add up to the whole, names of labels do not matter."""

import numpy as np
import pytest
from conftest import make_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc import LogisticRegression, _kernels
from fastdisc._kernels import NO_OFFSET, Link, PairLoss, PairRule, grid, group_grid
from fastdisc._sweep import Sweep

PROFILE = settings(max_examples=40, deadline=None, derandomize=True)
BACKENDS = pytest.mark.parametrize("name", ["cython", "numba"])


@st.composite
def problems(draw, max_rows=60):
    n, d, K = draw(st.integers(2, max_rows)), draw(st.integers(1, 9)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    X = rng.standard_normal((n, d)) * scale
    r = rng.integers(0, K, n).astype(np.int32)
    W = rng.standard_normal((1 if K == 2 else K, d + 1))
    return X, Link.LOGISTIC if K == 2 else Link.SOFTMAX, r, W, rng


def close(a, b, tol=1e-9):
    for p, q in zip(a, b, strict=True):
        p, q = np.asarray(p), np.asarray(q)
        assert np.abs(p - q).max() <= tol * max(1.0, np.abs(q).max())


@BACKENDS
@PROFILE
@given(problem=problems())
def test_weights_are_repetition(name, problem):
    X, link, r, W, rng = problem
    counts = rng.integers(0, 4, len(r))
    counts[0] += 1
    kernels = _kernels.load(name)
    weighted = kernels.sweep(X, link, r, counts.astype(float), NO_OFFSET, W, 2, grid(X.shape, 8, len(W), 2), 1)
    rows = np.repeat(np.arange(len(r)), counts)
    repeated = kernels.sweep(X[rows], link, r[rows], np.ones(1), NO_OFFSET, W, 2, grid(X[rows].shape, 8, len(W), 2), 1)
    close(weighted, repeated)


@BACKENDS
@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(2, 150), loss=st.sampled_from(list(PairLoss)))
def test_ranking_counts_differences_alone(name, seed, n, loss):
    """The derivatives by the scores add up to 0, and an offset of all scores changes nothing."""
    rng, kernels = np.random.default_rng(seed), _kernels.load(name)
    queries, _ = make_queries(rng, n, int(rng.integers(0, 3)), int(rng.integers(1, 9)))
    z, rule, g = rng.integers(-20, 20, n) / 4, PairRule(loss, 1.0, 0.5), group_grid(queries.starts)
    loss, active, e = kernels.rank_link(z, queries, rule, g, 1)
    assert abs(e.sum()) <= 1e-10 * max(1.0, np.abs(e).sum())
    close((loss, active, e), kernels.rank_link(z + 64.0, queries, rule, g, 1))


@BACKENDS
@PROFILE
@given(problem=problems(), cut=st.floats(0, 1))
def test_parts_add_up_to_the_whole(name, problem, cut):
    X, link, r, W, _ = problem
    cut = 1 + int(cut * (len(r) - 2))
    whole, first, second = (
        Sweep(X[rows], r[rows], np.ones(1), link, backend=name)(W, 2) for rows in (slice(None), slice(cut), slice(cut, None))
    )
    close(first.merge(second), whole)


@BACKENDS
@PROFILE
@given(problem=problems(max_rows=400), threads=st.integers(2, 9))
def test_threads_change_no_bit(name, problem, threads):
    X, link, r, W, _ = problem
    kernels, g = _kernels.load(name), _kernels.Grid(16, 32)
    one, many = (kernels.sweep(X, link, r, np.ones(1), NO_OFFSET, W, 2, g, n) for n in (1, threads))
    for a, b in zip(one, many, strict=True):
        assert np.array_equal(a, b)


@PROFILE
@given(problem=problems())
def test_order_of_rows_does_not_matter(problem):
    X, link, r, W, rng = problem
    order = rng.permutation(len(r))
    close(Sweep(X[order], r[order], np.ones(1), link)(W, 2), Sweep(X, r, np.ones(1), link)(W, 2))


@PROFILE
@given(problem=problems())
def test_names_of_labels_do_not_matter(problem):
    X, _, r, _, _ = problem
    if len(np.unique(r)) < 2:
        return
    names = np.array(["alpha", "beta", "gamma", "omega"])
    one, other = LogisticRegression().fit(X, r), LogisticRegression().fit(X, names[r])
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(names[one.predict(X)], other.predict(X))


@PROFILE
@given(problem=problems())
def test_a_fit_is_an_optimum(problem):
    X, _, r, _, _ = problem
    if len(np.unique(r)) < 2:
        return
    model = LogisticRegression(tol=1e-8).fit(X, r)
    assert model.converged_ and model.gradient_norm_ <= 1e-8


def fit(X, r, s=None, **options):
    return LogisticRegression(tol=1e-8 if options.get("l1_ratio") else 1e-10, **options).fit(X, r, s)


def close_fits(model, other, X):
    """The same weights; of an elastic net, the same outputs, since the penalty may leave weights all but undecided."""
    close([other.predict_proba(X)], [model.predict_proba(X)], tol=1e-5)
    if not model.l1_ratio:
        close([other.coef_, other.intercept_], [model.coef_, model.intercept_], tol=1e-6)


@PROFILE
@given(problem=problems(), ratio=st.sampled_from([0.0, 0.5]))
def test_order_of_rows_does_not_change_the_optimum(problem, ratio):
    X, _, r, _, rng = problem
    if len(np.unique(r)) < 2:
        return
    order, s = rng.permutation(len(r)), rng.random(len(r)) + 0.1
    close_fits(fit(X, r, s, l1_ratio=ratio), fit(X[order], r[order], s[order], l1_ratio=ratio), X)


@PROFILE
@given(problem=problems())
def test_units_of_columns_do_not_matter_when_standardised(problem):
    X, _, r, _, rng = problem
    if len(np.unique(r)) < 2:
        return
    unit = 10.0 ** rng.integers(-5, 6, X.shape[1])
    model, other = (fit(A, r, C=0.1, standardize=True) for A in (X, X * unit))
    close([other.coef_ * unit, other.intercept_], [model.coef_, model.intercept_], tol=1e-6)


@PROFILE
@given(problem=problems(), ratio=st.sampled_from([0.0, 0.5]))
def test_weights_are_repetition_in_a_fit(problem, ratio):
    X, _, r, _, rng = problem
    if len(np.unique(r)) < 2:
        return
    counts = rng.integers(0, 4, len(r))
    counts[np.unique(r, return_index=True)[1]] += 1  # no class without weight
    rows = np.repeat(np.arange(len(r)), counts)
    close_fits(fit(X, r, counts, l1_ratio=ratio), fit(X[rows], r[rows], l1_ratio=ratio), X)


@PROFILE
@given(problem=problems())
def test_two_softmax_outputs_are_one_sigmoid(problem):
    """Exercise 4."""
    X, _, r, W, _ = problem
    r = (r > 0).astype(np.int32)
    w = W[:1]
    sigmoid = Sweep(X, r, np.ones(1), Link.LOGISTIC)(w)
    softmax = Sweep(X, r, np.ones(1), Link.SOFTMAX)(np.vstack([np.zeros_like(w), w]))
    close([sigmoid.loss, sigmoid.g[0]], [softmax.loss, softmax.g[1]])
