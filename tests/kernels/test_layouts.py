"""Layouts: unknown ones raise, and a new one is added by registration alone."""

import numpy as np
import pytest
from helpers.assertions import assert_all_close
from helpers.extensions import column_chunks
from helpers.problems import make_features, make_queries

from fastdisc import _kernels
from fastdisc._kernels import (
    Activation,
    Batch,
    Grid,
    MarginLoss,
    MomentKind,
    OnlineRule,
    OnlineState,
    PairLoss,
    PairRule,
    RowLoss,
    RowOrder,
    query_grid,
)

N, D, K = 203, 5, 3
GRID = Grid(32, 96)


class UnknownRows:
    """Rows that no backend has code for."""

    layout, lazy, shape, dtype, stored = "unknown", False, (4, 2), np.dtype(np.float64), None
    float32_products = False


@pytest.mark.parametrize("name", ["cython", "numba"])
def test_unknown_layout_raises(name):
    kernels, X = _kernels.load(name), UnknownRows()
    r, s, W = np.zeros(4, np.int32), np.ones(1), np.zeros((1, 3))
    with pytest.raises(ValueError, match=f"the {name} backend has no layout 'unknown'"):
        kernels.sweep(Batch(X, r, s), RowLoss.LOGISTIC, W, 1, GRID, 1)
    with pytest.raises(ValueError, match=f"the {name} backend has no layout 'unknown'"):
        kernels.outputs(X, Activation.IDENTITY, W, GRID, 1)


def sums_over_rows(kernels, X, rng):
    """Results of all kernels that read rows in blocks."""
    r, s, o = rng.integers(0, K, N).astype(np.int32), rng.random(N), rng.standard_normal((N, K))
    W, V = rng.standard_normal((2, K, D + 1))
    batch, e = Batch(X, r, s, o), rng.standard_normal(N)
    yield from kernels.sweep(batch, RowLoss.SOFTMAX, W, 2, GRID, 2)
    yield kernels.hessian_product(batch, RowLoss.SOFTMAX, W, V, GRID, 2)
    signs = rng.integers(-1, 2, (K, K)).astype(np.int8)
    yield from kernels.sweep_many(Batch(X, r, s), RowLoss.LOGISTIC, signs, W, 2, GRID, 2)
    yield kernels.outputs(X, Activation.SOFTMAX, W, GRID, 2)[0]
    yield kernels.weighted_row_sum(X, e, GRID, 2)
    queries, _ = make_queries(rng, N, 5, 3)
    rule, grid = PairRule(PairLoss.SQUARED_HINGE, 1.0), query_grid(queries.starts)
    yield from kernels.query_sweep(X, np.arange(N), queries, rule, W[0, 1:].copy(), e, grid, 2)


def sums_row_by_row(kernels, X, rng):
    """Results of all kernels that read rows one by one."""
    r, s = rng.integers(0, K, N).astype(np.int32), rng.random(N)
    batch, shift = Batch(X, r, s), np.rint(rng.standard_normal((K, D)))
    for kind in MomentKind:
        args = batch, shift, np.array([0, 1, 0], np.int32), kind, GRID, 2
        yield from kernels.class_moments(*args)
    mean, A, c = rng.standard_normal((K, D)), rng.standard_normal((K, 2, D)), np.ones(K)
    yield kernels.quadratic_scores(X, mean, A, c, GRID, 2)[0]
    state = OnlineState(*np.zeros((3, K, D + 1)), np.zeros(2))
    rule = OnlineRule(MarginLoss.LOG, eta=0.01, alpha=0.05, l1=0.3)
    yield from kernels.online_epoch(batch, state, rule, RowOrder(rng.permutation(26), 8), 1)
    yield from state
    w, pairs = np.zeros(D), rng.integers(0, N, (100, 2))
    yield kernels.online_pairs(X, pairs, np.ones(1), w, 0.01, PairRule(PairLoss.HINGE, 1.0))
    yield w


@pytest.mark.parametrize("name", ["numpy", "numba"])
@pytest.mark.parametrize("results", [sums_over_rows, sums_row_by_row])
def test_new_layout_gives_the_sums_of_dense_rows(name, results):
    kernels, dense = _kernels.load(name), make_features(np.random.default_rng(3), N, D)
    with column_chunks() as Layout:
        rows = Layout(dense.values, 48)
        assert all(block.flags.f_contiguous for block in rows.blocks) and len(rows.blocks) == 5
        actual, expected = (
            list(results(kernels, X, np.random.default_rng(4))) for X in (rows, dense)
        )
    assert_all_close(actual, expected, 1e-13)


def test_new_layout_is_unknown_before_and_after_its_registration(rng):
    X = make_features(rng, N, D)
    with column_chunks() as Layout:
        rows = Layout(X.values, 48)
    with pytest.raises(ValueError, match="no layout 'column_chunks'"):
        _kernels.load("numba").weighted_row_sum(rows, np.ones(N), GRID, 1)
