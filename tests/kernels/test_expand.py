"""Features of mapped rows: each kind of basis function, as a program, against the reference."""

import numpy as np
import pytest
from helpers.problems import make_array

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._data.mapped import MappedRows
from fastdisc._kernels import BasisKind, Batch, Grid, RowLoss
from fastdisc._kernels.basis_program import Part, assemble, padded_transpose

D, GRID = 4, Grid(16, 32)
COLUMNS = np.arange(-1, D)
COLUMNS[0] = D  # the number of columns comes first
VECTORS = np.random.default_rng(5).standard_normal((6, D))
Q, NO_INTS = np.linspace(0.5, 2.0, 6), np.zeros(0, np.int64)


def of_one_column(kind, p, q):
    return Part(kind, D * len(p), COLUMNS, np.array([*p, *q]), len(p))


def of_vectors(kind):
    return Part(kind, 6, NO_INTS, np.concatenate([Q, padded_transpose(VECTORS)]), 6)


PARTS = {
    BasisKind.PRODUCTS: Part(
        BasisKind.PRODUCTS,
        D + 10,
        np.concatenate([COLUMNS, [number for i in range(D) for number in (i, i, D - i)]]),
        size=D,
    ),
    BasisKind.SINE: of_one_column(BasisKind.SINE, [1.0, 2.5], [0.0, 0.3]),
    BasisKind.GAUSSIAN: of_one_column(BasisKind.GAUSSIAN, [0.0, 1.0, -2.0], [1.0, 1.0, 0.5]),
    BasisKind.LOG: of_one_column(BasisKind.LOG, [10.0], [0.0]),
    BasisKind.THRESHOLD: of_one_column(BasisKind.THRESHOLD, [0.0, 0.5], [0.0, 0.0]),
    BasisKind.RADIAL: of_vectors(BasisKind.RADIAL),
    BasisKind.HALFSPACE: of_vectors(BasisKind.HALFSPACE),
    BasisKind.SUBSPACE: Part(BasisKind.SUBSPACE, D + 6, NO_INTS, padded_transpose(VECTORS[:3]), 3),
}


def mapped(kernels, X, *parts):
    return MappedRows(DenseRows(X), assemble(parts), kernels, lambda: [])


@pytest.mark.parametrize("kind", PARTS)
def test_features_agree_with_reference(fast, reference, rng, kind):
    X = mapped(fast, rng.standard_normal((37, D)), PARTS[kind])
    F = fast.expand(X, GRID, 2)
    assert F.dtype == np.float64 and F.shape == X.shape
    np.testing.assert_allclose(F, reference.expand(X, GRID, 1), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "C"), ("uint8", "F")])
def test_types_and_layouts_of_inputs_agree_with_reference(fast, reference, rng, dtype, layout):
    X = mapped(fast, make_array(rng, 70, D, dtype, layout), *PARTS.values())
    expected = reference.expand(X, GRID, 1)
    np.testing.assert_allclose(fast.expand(X, GRID, 2), expected, rtol=1e-12, atol=1e-14)


def test_chosen_and_standardized_features_agree_with_reference(fast, reference, rng):
    X = mapped(fast, rng.standard_normal((50, D)), *PARTS.values())
    F = reference.expand(X, GRID, 1)
    mean, scale, chosen = F.mean(axis=0), F.std(axis=0) + 0.1, np.array([17, 0, 5])
    some = X.standardized(mean, scale).columns(chosen).take(slice(3, 44))
    expected = ((F - mean) / scale)[3:44][:, chosen]
    np.testing.assert_allclose(fast.expand(some, GRID, 2), expected, rtol=1e-12, atol=1e-13)


def test_features_of_a_row_that_is_not_finite_are_nan(backend, rng):
    values = rng.standard_normal((20, D))
    values[7, 2] = np.inf
    F = backend.expand(mapped(backend, values, *PARTS.values()), GRID, 1)
    assert np.isnan(F[7]).all() and np.isfinite(np.delete(F, 7, axis=0)).all()


def test_features_do_not_depend_on_threads_or_blocks(fast, rng):
    X = mapped(fast, rng.standard_normal((500, D)), *PARTS.values())
    first = fast.expand(X, Grid(256, 512), 1)
    for grid, threads in ((Grid(16, 16), 1), (Grid(32, 96), 2), (Grid(256, 512), 4)):
        np.testing.assert_array_equal(fast.expand(X, grid, threads), first)


def test_sums_over_mapped_rows_agree_with_reference(fast, reference, rng):
    X = mapped(fast, rng.standard_normal((101, D)), *PARTS.values())
    r, W = rng.integers(0, 2, 101).astype(np.int32), rng.standard_normal((1, X.shape[1] + 1)) * 0.1
    args = Batch(X, r, rng.random(101)), RowLoss.LOGISTIC, W, 2, GRID, 2
    for actual, expected in zip(fast.sweep(*args), reference.sweep(*args), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("name", ["numba", "numpy"])
def test_unknown_basis_kind_raises(name, rng):
    kernels = _kernels.load(name)
    X = mapped(kernels, rng.standard_normal((5, D)), PARTS[BasisKind.SINE]._replace(kind=77))
    with pytest.raises(ValueError, match=f"the {name} backend has no basis kind 77"):
        kernels.expand(X, GRID, 1)
