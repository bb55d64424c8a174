"""Wide sparse rows of many classes: sums by way of the columns equal sums by blocks of rows."""

import numpy as np
import pytest
from conftest import make_features

from fastdisc import _turned
from fastdisc._kernels import NO_OFFSET, Link
from fastdisc._sweep import Sweep

K, N, D = 4, 120, 90


@pytest.fixture(params=["one weight", "weights", "offset"])
def sweeps(request, rng, monkeypatch):
    """The same data behind both ways."""
    X, r = make_features(rng, N, D, "float64", "csr32"), rng.integers(0, K, N).astype(np.int32)
    s = np.ones(1) if request.param == "one weight" else rng.random(N) + 0.1
    offset = rng.standard_normal((N, K)) if request.param == "offset" else NO_OFFSET
    by_columns, by_rows = (Sweep(X, r, 3 * s, Link.SOFTMAX, offset=offset) for _ in range(2))
    assert by_columns.turned is not None
    monkeypatch.setattr(_turned, "FEW", 0)
    assert by_rows.turned is None
    return by_columns, by_rows


def test_sums_and_products(sweeps, rng):
    W, V = rng.standard_normal((2, K, D + 1)) * 0.2
    by_columns, by_rows = sweeps
    for actual, expected in zip(by_columns(W)[:3], by_rows(W)[:3], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-10)
    for point in (W, W, 2 * W):  # the second finds what the first has left, the third must not
        np.testing.assert_allclose(by_columns.product(point, V), by_rows.product(point, V), rtol=1e-10, atol=1e-10)


def test_weights_that_run_away_are_not_the_fault_of_the_data(sweeps):
    assert not np.isfinite(sweeps[0](np.full((K, D + 1), 1e307) * np.arange(K)[:, None]).loss)


def test_which_data_are_turned(rng):
    wide, narrow = make_features(rng, 40, 200, "float32", "csr64"), make_features(rng, 4000, 5, "float64", "csr32")
    assert _turned.suits(wide, Link.SOFTMAX, 3)
    assert not _turned.suits(wide, Link.LOGISTIC, 1)
    assert not _turned.suits(narrow, Link.SOFTMAX, 3)
    assert not _turned.suits(make_features(rng, 40, 200), Link.SOFTMAX, 3)
