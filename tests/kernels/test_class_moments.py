"""Class moments and quadratic scores against their definitions."""

import numpy as np
import pytest
from helpers import oracles
from helpers.assertions import assert_all_close, same_bits
from helpers.cases import LAYOUTS, THREADS
from helpers.problems import make_features

from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Batch, Grid, MomentKind, moments_grid

GRID, TOL = Grid(16, 64), 1e-12
CASES = [
    *(("float64", layout) for layout in LAYOUTS),
    ("float32", "C"),
    ("float32", "csr64"),
    ("uint8", "C"),
    ("uint8", "F"),
    *((dtype, "C") for dtype in ("int8", "int16", "bool")),
]
GROUPS = {"one": [0, 0, 0], "each": [0, 1, 2], "some": [0, 1, 0]}


def make(
    rng, n, d, dtype="float64", layout="C", kind=MomentKind.SCATTER, group="some", weighted=True
):
    """The first four arguments of `class_moments`."""
    X = make_features(rng, n, d, dtype, layout)
    r = rng.integers(0, 3, n).astype(np.int32)
    s = rng.random(n) if weighted else np.array([1.5])
    shift = np.rint(rng.standard_normal((3, d)) * 2) + (4 if dtype == "uint8" else 0)
    if X.is_sparse and kind != MomentKind.COUNTS:
        shift[:] = 0
    shift = np.abs(shift) if dtype == "bool" else shift
    return Batch(X, r, s), shift, np.array(GROUPS[group], np.int32), kind


def by_definition(batch, shift, group, kind):
    return oracles.class_moments(*batch[:3], shift, group, kind)


@pytest.mark.parametrize(("dtype", "layout"), CASES)
@pytest.mark.parametrize("kind", MomentKind)
def test_types_and_layouts_give_the_definition(backend, rng, dtype, layout, kind):
    if kind == MomentKind.QUARTIC and layout.startswith("csr"):
        pytest.skip("dense only")
    for weighted in (True, False):
        problem = make(rng, 151, 5, dtype, layout, kind, weighted=weighted)
        assert_all_close(backend.class_moments(*problem, GRID, 2), by_definition(*problem), TOL)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_any_number_of_columns_and_groups_agrees(fast, reference, rng, group, dtype):
    for d in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 57, 100):
        args = *make(rng, 77, d, dtype, group=group, weighted=False), GRID, 1
        assert_all_close(fast.class_moments(*args), reference.class_moments(*args), TOL)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 63, 64, 65, 129])
def test_any_number_of_rows_agrees(fast, reference, rng, n):
    for dtype in ("float64", "uint8"):
        args = *make(rng, n, 6, dtype, weighted=False), GRID, 1
        assert_all_close(fast.class_moments(*args), reference.class_moments(*args), TOL)


@pytest.mark.parametrize("kind", MomentKind)
def test_results_do_not_depend_on_threads(backend, rng, kind):
    problem = make(rng, 5000, 9, kind=kind, group="each")
    grid = moments_grid((5000, 9), 8, 30, 9, 3)
    assert -(-5000 // grid.chunk) >= 4
    same_bits([backend.class_moments(*problem, grid, n) for n in THREADS])


def test_sums_of_bytes_are_exact(backend, rng):
    X = rng.integers(0, 256, (3000, 11)).astype(np.uint8)
    batch = Batch(DenseRows(X), rng.integers(0, 3, 3000).astype(np.int32), np.ones(1))
    shift, group = rng.integers(0, 256, (3, 11)).astype(float), np.zeros(3, np.int32)
    n, M, S = backend.class_moments(batch, shift, group, MomentKind.SCATTER, Grid(256, 1024), 2)
    U = X.astype(np.int64) - shift[batch.r].astype(np.int64)
    assert np.array_equal(n, np.bincount(batch.r))
    assert np.array_equal(S[0], U.T @ U)
    assert np.array_equal(M, [U[batch.r == k].sum(axis=0) for k in range(3)])


@pytest.mark.parametrize("kind", MomentKind)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_reach_the_sums(backend, rng, kind, value):
    batch, *rest = make(rng, 100, 4, kind=kind)
    batch.X.values[37, 2], batch.s[37] = value, 0
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(backend.class_moments(batch, *rest, GRID, 1)[1]).all()


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [("float64", "C"), ("float64", "csr32"), ("uint8", "C"), ("float64", "strided")],
)
def test_quadratic_scores_are_the_definition(backend, rng, dtype, layout):
    for d, p in ((1, 1), (5, 5), (9, 4), (4, 0)):
        X = make_features(rng, 83, d, dtype, layout)
        mean, c = rng.standard_normal((3, d)), rng.standard_normal(3)
        A = rng.standard_normal((3, p, d) if p else (3, d))
        found = [backend.quadratic_scores(X, mean, A, c, GRID, n) for n in (1, 2, 3)]
        assert_all_close(found[0][:1], [oracles.quadratic(X, mean, A, c)], TOL)
        assert found[0][1] is True
        same_bits([scores] for scores, _ in found)


def test_quadratic_scores_report_nan_and_infinity(backend, rng):
    X = DenseRows(rng.standard_normal((90, 3)))
    mean, A, c = np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2)
    for value in (np.nan, np.inf):
        X.values[70, 1] = value
        with np.errstate(invalid="ignore"):
            assert backend.quadratic_scores(X, mean, A, c, GRID, 2)[1] is False
