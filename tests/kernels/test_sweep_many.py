"""Sums of many two-class problems over shared rows."""

import numpy as np
import pytest
from helpers import oracles
from helpers.assertions import same_bits
from helpers.problems import grid_of, make_features

from fastdisc import _kernels
from fastdisc._kernels import Batch, RowLoss

GROUPS, K = 4, 5


def make_many(rng, n=703, d=7, dtype="float64", layout="C"):
    """A batch whose targets are row groups, the signs of K problems, and their weights."""
    X = make_features(rng, n, d, dtype, layout)
    signs = rng.integers(-1, 2, (GROUPS, K)).astype(np.int8)
    batch = Batch(X, rng.integers(0, GROUPS, n).astype(np.int32), rng.random(n) + 0.1)
    return batch, signs, rng.standard_normal((K, d + 1)) * 0.1


def grid(X, order):
    return grid_of(X, K, order, K)


def test_reference_sums_each_problem_separately(reference, rng):
    batch, signs, W = make_many(rng, n=60)
    args = batch, RowLoss.LOGISTIC, signs, W, 1, grid(batch.X, 1), 1
    losses, errors, G, _ = reference.sweep_many(*args)
    for k in range(K):
        sign = signs[batch.r, k]
        rows = sign != 0
        loss, wrong, g = oracles.logistic(
            batch.X.values[rows], sign[rows] > 0, batch.s[rows], W[k : k + 1]
        )
        assert losses[k] == pytest.approx(loss, rel=1e-12)
        assert errors[k] == pytest.approx(wrong, rel=1e-12)
        np.testing.assert_allclose(G[k], g[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "layout"), [("float64", "C"), ("float32", "C"), ("float64", "csr32")]
)
@pytest.mark.parametrize("loss", [RowLoss.LOGISTIC, RowLoss.SIGMOID_SQUARED, RowLoss.SQUARED])
def test_backends_agree(fast, reference, rng, dtype, layout, loss):
    batch, signs, W = make_many(rng, dtype=dtype, layout=layout)
    all_rows, equal = np.where(signs > 0, 1, -1).astype(np.int8), np.array([1.5])
    for table, s in ((signs, batch.s), (all_rows, equal)):
        for order in (1, 2):
            args = batch._replace(s=s), loss, table, W, order, grid(batch.X, order), 2
            tol = 1e-11 if dtype == "float64" or order == 2 else 2e-5
            found = zip(fast.sweep_many(*args), reference.sweep_many(*args), strict=True)
            for actual, expected in found:
                if expected is not None:
                    atol = tol * np.abs(expected).max()
                    np.testing.assert_allclose(actual, expected, rtol=tol, atol=atol)


def test_losses_without_gradients_agree(fast, reference, rng):
    batch, signs, W = make_many(rng)
    args = batch, RowLoss.LOGISTIC, signs, W, 0, grid(batch.X, 0), 2
    found = zip(fast.sweep_many(*args)[:2], reference.sweep_many(*args)[:2], strict=True)
    for actual, expected in found:
        np.testing.assert_allclose(actual, expected, rtol=1e-11)


def test_results_do_not_depend_on_threads(rng):
    kernels = _kernels.load("cython")
    batch, signs, W = make_many(rng, n=20_000)
    args = batch, RowLoss.LOGISTIC, signs, W, 2, grid(batch.X, 2)
    same_bits([kernels.sweep_many(*args, n) for n in (1, 2, 3)])
