"""The kernels of moments and of quadratic scores against their definitions: types, layouts, sizes, threads, extremes."""

import numpy as np
import oracles
import pytest
from conftest import LAYOUTS, make_features

from fastdisc._kernels import CSR, Grid, Moment, moments_grid

GRID = Grid(16, 64)
CASES = [("float64", layout) for layout in LAYOUTS] + [("float32", "C"), ("float32", "csr64"), ("uint8", "C"), ("uint8", "F")]
CASES += [(dtype, "C") for dtype in ("int8", "int16", "bool")]
CHOICES = {"one": [0, 0, 0], "each": [0, 1, 2], "some": [0, 1, 0]}


def make(rng, n, d, dtype="float64", layout="C", kind=Moment.SCATTER, group="some", weighted=True):
    X = make_features(rng, n, d, dtype, layout)
    r = rng.integers(0, 3, n).astype(np.int32)
    s = rng.random(n) if weighted else np.array([1.5])
    shift = np.rint(rng.standard_normal((3, d)) * 2) + (4 if dtype == "uint8" else 0)
    if isinstance(X, CSR) and kind != Moment.COUNTS:
        shift[:] = 0
    return X, r, s, np.abs(shift) if dtype == "bool" else shift, np.array(CHOICES[group], np.int32), kind


def close(actual, expected, tol=1e-12):
    for a, b in zip(actual, expected, strict=True):
        if b is None:
            assert a is None
        else:
            assert np.shape(a) == np.shape(b)
            assert np.abs(a - b).max() <= tol * max(1.0, np.abs(b).max())


@pytest.mark.parametrize(("dtype", "layout"), CASES)
@pytest.mark.parametrize("kind", Moment)
def test_types_and_layouts(backend, rng, dtype, layout, kind):
    if kind == Moment.QUARTIC and layout.startswith("csr"):
        pytest.skip("dense only")
    for weighted in (True, False):
        problem = make(rng, 151, 5, dtype, layout, kind, weighted=weighted)
        close(backend.class_moments(*problem, GRID, 2), oracles.class_moments(*problem))


@pytest.mark.parametrize("group", CHOICES)
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_remainders_of_columns_and_groups(fast, reference, rng, group, dtype):
    for d in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 57, 100):
        problem = make(rng, 77, d, dtype, group=group, weighted=False)
        close(fast.class_moments(*problem, GRID, 1), reference.class_moments(*problem, GRID, 1))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 63, 64, 65, 129])
def test_remainders_of_rows(fast, reference, rng, n):
    for dtype in ("float64", "uint8"):
        problem = make(rng, n, 6, dtype, weighted=False)
        close(fast.class_moments(*problem, GRID, 1), reference.class_moments(*problem, GRID, 1))


@pytest.mark.parametrize("kind", Moment)
def test_bits_do_not_depend_on_threads(backend, rng, kind):
    X, *rest = make(rng, 5000, 9, kind=kind, group="each")
    grid = moments_grid(X.shape, 8, 30, 9, 3)
    assert -(-5000 // grid.chunk) >= 4
    first, *others = [backend.class_moments(X, *rest, grid, n) for n in (1, 2, 3, 8)]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert (a is None and b is None) or np.array_equal(a, b)


def test_bytes_have_exact_sums(backend, rng):
    X = rng.integers(0, 256, (3000, 11)).astype(np.uint8)
    r = rng.integers(0, 3, 3000).astype(np.int32)
    shift = rng.integers(0, 256, (3, 11)).astype(float)
    n, M, S = backend.class_moments(X, r, np.ones(1), shift, np.zeros(3, np.int32), Moment.SCATTER, Grid(256, 1024), 2)
    U = X.astype(np.int64) - shift[r].astype(np.int64)
    assert np.array_equal(n, np.bincount(r))
    assert np.array_equal(S[0], U.T @ U)
    assert np.array_equal(M, [U[r == k].sum(axis=0) for k in range(3)])


@pytest.mark.parametrize("kind", Moment)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_the_sums(backend, rng, kind, value):
    X, r, s, *rest = make(rng, 100, 4, kind=kind)
    X[37, 2], s[37] = value, 0
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(backend.class_moments(X, r, s, *rest, GRID, 1)[1]).all()


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "C"), ("float64", "csr32"), ("uint8", "C"), ("float64", "strided")])
def test_quadratic_scores(backend, rng, dtype, layout):
    for d, p in ((1, 1), (5, 5), (9, 4), (4, 0)):
        X = make_features(rng, 83, d, dtype, layout)
        mean, c = rng.standard_normal((3, d)), rng.standard_normal(3)
        A = rng.standard_normal((3, p, d) if p else (3, d))
        first, *others = [backend.quadratic(X, mean, A, c, GRID, n) for n in (1, 2, 3)]
        close(first[:1], [oracles.quadratic(X, mean, A, c)])
        assert first[1] is True
        assert all(np.array_equal(first[0], other[0]) for other in others)


def test_quadratic_scores_tell_what_is_not_finite(backend, rng):
    X = rng.standard_normal((90, 3))
    for value in (np.nan, np.inf):
        X[70, 1] = value
        with np.errstate(invalid="ignore"):
            assert backend.quadratic(X, np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2), GRID, 2)[1] is False
