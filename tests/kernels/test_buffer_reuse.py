"""Buffers that calls take from a pool."""

import numpy as np
from helpers.assertions import assert_all_close

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, RowLoss, row_grid


def test_buffers_are_used_again_without_what_was_left_in_them(rng):
    fast, reference = _kernels.load("cython"), _kernels.load("numpy")
    for n, d, K in [(3000, 40, 4), (500, 3, 2), (3000, 40, 4), (1200, 11, 3)]:
        r = rng.integers(0, K, n).astype(np.int32)
        batch = Batch(DenseRows(rng.standard_normal((n, d))), r, np.ones(1))
        W, grid = 0.1 * rng.standard_normal((K, d + 1)), row_grid((n, d), 8, K, 2)
        args = batch, RowLoss.SOFTMAX, W, 2, grid
        assert_all_close(fast.sweep(*args, 2), reference.sweep(*args, 1), 1e-9)
