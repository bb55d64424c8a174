"""Sparse rows times a matrix."""

import numpy as np
import pytest
from helpers.cases import THREADS
from helpers.problems import make_features

from fastdisc._kernels import Grid


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "csr32"), ("float32", "csr64")])
@pytest.mark.parametrize("float32", [False, True])
def test_products_agree_with_reference(fast, reference, rng, dtype, layout, float32):
    X = make_features(rng, 203, 37, dtype, layout)
    X.data[X.indptr[5] : X.indptr[6]] = 0
    for columns in (1, 3, 4, 5, 8, 9, 15, 16, 17, 20, 32, 33, 50):
        B = rng.standard_normal((37, columns)).astype(np.float32 if float32 else np.float64)
        actual, expected = np.full((2, 203, columns), np.nan, B.dtype)
        fast.matmul(X, B, actual, Grid(16, 7), 2)
        reference.matmul(X, B, expected, Grid(16, 7), 2)
        np.testing.assert_allclose(actual, expected, atol=1e-5 if float32 else 1e-13)


def test_products_do_not_depend_on_threads(backend, rng):
    X, B = make_features(rng, 1003, 37, "float64", "csr32"), rng.standard_normal((37, 20))
    X.data[X.indptr[11]] = np.nan
    found = np.zeros((len(THREADS), 1003, 20))
    for out, n in zip(found, THREADS, strict=True):
        backend.matmul(X, B, out, Grid(16, 16), n)
        np.testing.assert_array_equal(out, found[0])
    assert np.flatnonzero(np.isnan(found[0]).all(axis=1)).tolist() == [11]
