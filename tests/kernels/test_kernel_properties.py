"""Properties of kernels that hold for all data."""

import numpy as np
import pytest
from helpers.assertions import assert_all_close, same_bits
from helpers.problems import grid_of, make_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, Grid, PairLoss, PairRule, RowLoss, query_grid

PROFILE = settings(max_examples=40, deadline=None, derandomize=True)
BACKENDS = pytest.mark.parametrize("name", ["cython", "numba"])


@st.composite
def problems(draw, max_rows=60):
    """A batch of equal weights, its loss, its weights W, and a random generator."""
    n, d, K = draw(st.integers(2, max_rows)), draw(st.integers(1, 9)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([1e-3, 1.0, 30.0]))
    batch = Batch(DenseRows(X), rng.integers(0, K, n).astype(np.int32), np.ones(1))
    W = rng.standard_normal((1 if K == 2 else K, d + 1))
    return batch, RowLoss.LOGISTIC if K == 2 else RowLoss.SOFTMAX, W, rng


@BACKENDS
@PROFILE
@given(problem=problems())
def test_integer_weights_are_repetitions(name, problem):
    batch, loss, W, rng = problem
    counts = rng.integers(0, 4, len(batch.r))
    counts[0] += 1
    rows = np.repeat(np.arange(len(batch.r)), counts)
    weighted = batch._replace(s=counts.astype(float))
    repeated = batch._replace(X=batch.X.take(rows), r=batch.r[rows])
    first, second = (
        _kernels.load(name).sweep(some, loss, W, 2, grid_of(some.X, len(W), 2), 1)
        for some in (weighted, repeated)
    )
    assert_all_close(first, second, 1e-9)


@BACKENDS
@PROFILE
@given(seed=st.integers(0, 2**31), n=st.integers(2, 150), loss=st.sampled_from(list(PairLoss)))
def test_ranking_depends_on_differences_of_scores_only(name, seed, n, loss):
    """The derivatives by the scores add up to 0, and a shift of all scores changes nothing."""
    rng, kernels = np.random.default_rng(seed), _kernels.load(name)
    queries, _ = make_queries(rng, n, int(rng.integers(0, 3)), int(rng.integers(1, 9)))
    z, args = rng.integers(-20, 20, n) / 4, (PairRule(loss, 1.0, 0.5), query_grid(queries.starts))
    found = kernels.query_loss(z, queries, *args, 1)
    assert abs(found[2].sum()) <= 1e-10 * max(1.0, np.abs(found[2]).sum())
    assert_all_close(found, kernels.query_loss(z + 64.0, queries, *args, 1), 1e-9)


@BACKENDS
@PROFILE
@given(problem=problems(), cut=st.floats(0, 1))
def test_sums_of_parts_add_up(name, problem, cut):
    batch, loss, W, _ = problem
    at = 1 + int(cut * (len(batch.r) - 2))
    halves = slice(at), slice(at, None)
    parts = [Batch(batch.X.take(rows), batch.r[rows], batch.s) for rows in halves]
    whole, first, second = (
        _kernels.load(name).sweep(some, loss, W, 2, grid_of(some.X, len(W), 2), 1)
        for some in (batch, *parts)
    )
    assert_all_close([a + b for a, b in zip(first, second, strict=True)], whole, 1e-9)


@BACKENDS
@PROFILE
@given(problem=problems(max_rows=400), threads=st.integers(2, 9))
def test_sums_do_not_depend_on_threads(name, problem, threads):
    batch, loss, W, _ = problem
    kernels = _kernels.load(name)
    same_bits([kernels.sweep(batch, loss, W, 2, Grid(16, 32), n) for n in (1, threads)])
