"""Basis functions as transformers: definitions, types and layouts, names, parameters, bad input."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import oracles
from helpers.cases import DTYPES, FAST_BACKENDS
from helpers.problems import make_array
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from fastdisc import basis, config_context
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import BACKENDS, Grid, load, row_grid
from fastdisc.basis import (
    Custom,
    Gaussian,
    HalfSpace,
    Log,
    Polynomial,
    Quadratic,
    RadialGaussian,
    Sine,
    Threshold,
    concat,
)

RNG = np.random.default_rng(5)
CENTERS, NORMALS = RNG.standard_normal((6, 4)), RNG.standard_normal((9, 4))
OFFSETS = RNG.standard_normal(9)


def polar(x):
    return math.hypot(x[0], x[1]), x[2] > 0, 1


def total(x):
    return x.sum() * x


def squares(X):
    return X**2


def write(x, out):
    for j in range(len(x)):
        out[j] = 2 * x[j]


# name -> basis, and its features of one row by definition
BASES = {
    "polynomial": (Polynomial(3), lambda x: oracles.monomials(x, 3)),
    "interactions": (
        Polynomial(3, interactions_only=True),
        lambda x: oracles.monomials(x, 3, different=True),
    ),
    "columns": (Polynomial(2, columns=[2, 0]), lambda x: oracles.monomials(x[[2, 0]], 2)),
    "quadratic": (Quadratic(), lambda x: oracles.monomials(x, 2)),
    "sine": (
        Sine([1.0, 2.5], [0.0, 0.3]),
        lambda x: [math.sin(f * v + p) for v in x for f, p in ((1.0, 0.0), (2.5, 0.3))],
    ),
    "gaussian": (
        Gaussian([0.0, 1.0, -2.0], 0.7, columns=[1]),
        lambda x: [math.exp(-((x[1] - m) ** 2) / (2 * 0.7**2)) for m in (0.0, 1.0, -2.0)],
    ),
    "log": (Log(10.0), lambda x: [math.log(v + 10) for v in x]),
    "threshold": (Threshold([0.0, 0.5]), lambda x: [float(v > c) for v in x for c in (0.0, 0.5)]),
    "radial": (
        RadialGaussian(CENTERS, width=[1.0, 2.0, 0.5, 1.0, 1.5, 3.0]),
        lambda x: [
            math.exp(-sum((x - m) ** 2) / (2 * w**2))
            for m, w in zip(CENTERS, (1.0, 2.0, 0.5, 1.0, 1.5, 3.0), strict=True)
        ],
    ),
    "half-space": (
        HalfSpace(NORMALS, OFFSETS),
        lambda x: [float(a @ x > c) for a, c in zip(NORMALS, OFFSETS, strict=True)],
    ),
    "tuple": (Custom(polar), lambda x: [math.hypot(x[0], x[1]), x[2] > 0, 1]),
    "array": (Custom(total), lambda x: sum(x) * x),
    "vectorized": (Custom(squares, vectorized=True), lambda x: x**2),
    "written": (Custom(write, n_features=4), lambda x: 2 * x),
    "concat": (concat(Quadratic(), RadialGaussian(CENTERS, 1.0)), None),
}


@pytest.mark.parametrize("name", [name for name, (_, row) in BASES.items() if row])
@pytest.mark.parametrize("backend", BACKENDS)
def test_features_are_those_of_the_definition(name, backend):
    model, row = BASES[name]
    X = np.random.default_rng(0).standard_normal((37, 4))
    expected = np.array([row(x) for x in X], dtype=float)
    with config_context(backend=backend):
        F = clone(model).fit_transform(X)
    assert F.dtype == np.float64 and F.shape == expected.shape
    np.testing.assert_allclose(F, expected, rtol=1e-13, atol=1e-14)
    assert len(set(clone(model).fit(X).get_feature_names_out())) == F.shape[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_types_and_layouts_agree_with_reference(rng, dtype, layout):
    X = make_array(rng, 70, 4, dtype, layout)
    model = concat(
        Polynomial(2), RadialGaussian(CENTERS, 2.0), HalfSpace(NORMALS, OFFSETS), Threshold(0.5)
    ).fit(X)
    F = model.transform(X)
    with config_context(backend="numpy"):
        np.testing.assert_allclose(F, model.transform(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(F, model.transform(np.ascontiguousarray(X).astype(np.float64)))


def test_numba_features_of_8_bit_columns_agree_with_float64(rng):
    X = make_array(rng, 70, 4, "uint8", "F")
    model = concat(Polynomial(2), Sine()).fit(X)
    with config_context(backend="numba"):
        np.testing.assert_allclose(model.transform(X), model.transform(X.astype(float)), rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_chosen_and_standardized_features_agree_with_the_matrix(rng, backend):
    X = rng.standard_normal((50, 4))
    mapped = concat(Quadratic(), RadialGaussian(CENTERS, 1.0)).fit(X).mapped(DenseRows(X))
    F, chosen = mapped.dense(), np.array([17, 0, 5])
    mean, scale = F.mean(axis=0), F.std(axis=0)
    expand = partial(load(backend).expand, grid=Grid(16, 32), n_threads=2)
    first = mapped.columns(np.arange(19)).standardized(mean[:19], scale[:19])
    some = first.columns(chosen).take(slice(3, 44))
    expected = ((F - mean) / scale)[3:44][:, chosen]
    np.testing.assert_allclose(expand(some), expected, rtol=1e-12, atol=1e-13)
    twice = mapped.standardized(mean, 2 * scale).standardized(0 * mean + 1, 0 * mean + 3)
    expected = ((F - mean) / (2 * scale) - 1) / 3
    np.testing.assert_allclose(expand(twice), expected, rtol=1e-11, atol=1e-13)


def test_chosen_features_keep_their_names(rng):
    X = rng.random((9, 3))
    mapped = concat(Quadratic(), Log()).fit(X).mapped(DenseRows(np.array([[1.0, 2.0, -3.0]])))
    with pytest.raises(ValueError, match=r"'log\(x2\)' is nan first in row 0"):
        mapped.columns(np.array([11, 0])).check_finite()


@pytest.mark.parametrize("backend", FAST_BACKENDS)
def test_features_do_not_depend_on_threads_and_blocks(rng, backend):
    X = rng.standard_normal((500, 4))
    mapped = concat(Polynomial(3), RadialGaussian(CENTERS, 1.0)).fit(X).mapped(DenseRows(X))
    first = load(backend).expand(mapped, row_grid(mapped.shape, 8), 1)
    for blocks, threads in ((Grid(16, 16), 1), (Grid(32, 96), 2), (Grid(256, 512), 4)):
        np.testing.assert_array_equal(load(backend).expand(mapped, blocks, threads), first)


@given(
    d=st.integers(1, 7),
    degree=st.integers(1, 5),
    only=st.booleans(),
    n=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_polynomials_agree_with_scikit_learn(d, degree, only, n, seed):
    X = np.random.default_rng(seed).standard_normal((n, d))
    ours = Polynomial(degree, interactions_only=only).fit(X)
    theirs = PolynomialFeatures(degree, interaction_only=only, include_bias=False).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())


def test_basis_functions_are_nonzero_where_defined():
    """Exercise 1: except at multiples of pi; near a; near a; for x > 0 except at 1; above c; on one
    side of a line."""
    x = np.array([[0.0, 1.0], [np.pi, 2.0], [30.0, 1.0]])
    assert (np.abs(Sine(columns=[0]).fit_transform(x)) < 1e-14).ravel().tolist() == [
        True,
        True,
        False,
    ]
    assert (Gaussian(0.0, 1.0, columns=[0]).fit_transform(x) < 1e-3).ravel().tolist() == [
        False,
        False,
        True,
    ]
    assert (RadialGaussian([[0.0, 1.0]], 1.0).fit_transform(x) < 1e-3).ravel().tolist() == [
        False,
        False,
        True,
    ]
    assert (Log(columns=[1]).fit_transform(x) == 0).ravel().tolist() == [True, False, True]
    assert Threshold(3.0, columns=[0]).fit_transform(x).ravel().tolist() == [0, 1, 1]
    assert HalfSpace([[1.0, 2.0]], 7.0).fit_transform(x).ravel().tolist() == [0, 1, 1]


def test_centers_are_found_by_kmeans_or_drawn_from_the_rows(rng):
    blobs = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.repeat(blobs, 100, axis=0) + 0.1 * rng.standard_normal((300, 2))
    found = RadialGaussian(3, method="kmeans").fit(X)
    assert sorted(np.abs(np.rint(found.centers_)).tolist()) == sorted(blobs.tolist())
    assert found.width_ == pytest.approx(np.full(3, 10.0), abs=0.2)  # the median of 10, 10 and 14.1
    drawn = RadialGaussian(20, random_state=1).fit(X)
    assert all((center == X).all(axis=1).any() for center in drawn.centers_)
    assert not np.array_equal(drawn.centers_, RadialGaussian(20, random_state=2).fit(X).centers_)


def test_features_are_named_after_the_columns_of_data_frames(rng):
    X = pd.DataFrame(rng.random((20, 3)) + 1, columns=["width", "height", "depth"])
    model = concat(Quadratic(), Log(columns=["depth"]), Sine(2.0, columns=["width"])).set_output(
        transform="pandas"
    )
    F = model.fit_transform(X)
    assert list(F.columns[:4]) == ["width", "height", "depth", "width^2"] and list(
        F.columns[-2:]
    ) == [
        "log(depth)",
        "sin(2 width)",
    ]
    np.testing.assert_allclose(F["log(depth)"], np.log(X["depth"]))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={"depth": "length"}))


@pytest.mark.parametrize("name", BASES)
def test_pickled_basis_computes_the_same_features(rng, name):
    X = rng.standard_normal((30, 4))
    model = clone(BASES[name][0]).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert "_program" not in again.__getstate__()


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (Polynomial(2), {"degree": 3}),
        (Polynomial(2), {"interactions_only": True}),
        (Quadratic(rank=2), {"rank": None}),
        (Quadratic(), {"rank": 1}),
        (
            Custom(squares, vectorized=True),
            {"function": total, "vectorized": False, "n_features": 7},
        ),
        (Sine(np.array([1.0, 2.0])), {"frequency": 3.0}),
    ],
)
def test_fitted_basis_does_not_depend_on_later_parameters(rng, model, changes):
    X = rng.standard_normal((60, 4))
    model = clone(model).fit(X, X[:, 0] > X[:, 1] ** 2)
    F, names = model.transform(X), list(model.get_feature_names_out())
    model.set_params(**changes)
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(fitted.transform(X), F)
        assert list(fitted.get_feature_names_out()) == names


def test_arrays_of_parameters_are_copied(rng):
    X, frequency = rng.standard_normal((9, 2)), np.array([1.0, 2.0])
    model = Sine(frequency).fit(X)
    F = model.transform(X)
    frequency[:] = 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), F)


def test_parameters_of_parts_are_set_by_number(rng):
    model = concat(Polynomial(2), Sine())
    assert model.get_params()["0__degree"] == 2 and set(model.get_params(deep=False)) == {"parts"}
    model.set_params(**{"0__degree": 1, "1": Threshold(), "1__threshold": 0.5})
    X = rng.standard_normal((9, 1))
    assert list(model.fit(X).get_feature_names_out()) == ["x0", "1(x0 > 0.5)"]
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(**{"2__degree": 1})


BAD = {
    "degree": (Polynomial(0), "degree must be a whole number >= 1"),
    "features": (Polynomial(400), "more than 10,000,000 features"),
    "interactions": (Polynomial(interactions_only=2), "interactions_only must be one of"),
    "column": (
        Sine(columns=[4]),
        r"columns must be numbers or names of columns of X, which has 4; got \[4\]",
    ),
    "column's name": (Sine(columns=["z"]), "columns must be numbers or names"),
    "no column": (Sine(columns=[]), "columns must be numbers or names"),
    "frequency": (Sine("high"), "frequency must be a finite number"),
    "phases": (Sine([1.0, 2.0, 3.0], [0.0, 1.0]), "Sine: one number for all"),
    "column None": (
        Sine(columns=[None]),
        r"columns must be numbers or names of columns of X, which has 4; got \[None\]",
    ),
    "width": (Gaussian(0.0, 0.0), "width must be > 0"),
    "tiny width": (Gaussian(0.0, 1e-200), "neither so small nor so large"),
    "huge width": (Gaussian(0.0, 1e200), "neither so small nor so large"),
    "tiny radial width": (RadialGaussian(3, 1e-200), "neither so small nor so large"),
    "centers": (
        RadialGaussian([[1.0]]),
        "centers must be a whole number, or an array with 4 columns",
    ),
    "too many centers": (RadialGaussian(51), "centers=51 cannot be found in n_samples=50"),
    "method": (RadialGaussian(3, method="guess"), "method must be one of 'sample', 'kmeans'"),
    "radial width": (
        RadialGaussian(3, width=[1.0, 2.0]),
        "one for all or one for each of 3 centers",
    ),
    "width's name": (RadialGaussian(3, width="mean"), "width must be one of 'median'"),
    "normals": (HalfSpace(0), "normals must be a whole number >= 1"),
    "offsets": (HalfSpace(3, [1.0, 2.0]), "one for each of 3 normals"),
    "rank": (Quadratic(rank=5), "rank=5 is more than X has columns"),
    "rank without y": (Quadratic(rank=1), "requires y to be passed"),
    "function": (Custom(3), "function must be callable"),
    "n_features": (
        Custom(total, n_features=3),
        "returned 4 features for the first row, n_features is 3",
    ),
    "unknown n_features": (Custom(write), "n_features must be given"),
    "log": (Log(), r"'log\(x\d\)' is nan first in row"),
    "concat": (concat(Sine(), 3), "parts must be a list of bases"),
    "nothing": (concat(), "parts must be a list of bases"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_raise(name):
    model, message = BAD[name]
    X = np.random.default_rng(0).standard_normal((50, 4))
    with pytest.raises(ValueError, match=message):
        model.fit(X).transform(X)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "model",
    [Threshold(0.0), RadialGaussian(np.zeros((1, 2)), 1.0), Quadratic()],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_raise_though_the_features_are_finite(backend, model, bad):
    X = np.ones((20, 2))
    model = clone(model).fit(X)
    X[7, 1] = bad
    with (
        config_context(backend=backend),
        pytest.raises(ValueError, match="first in row 7, column 1"),
    ):
        model.transform(X)


def test_failed_fit_leaves_the_basis_unchanged(rng):
    model = RadialGaussian(3).fit(rng.standard_normal((9, 2)))
    before = vars(model).copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 4), np.nan))
    assert vars(model) == before


def test_sparse_rows_raise():
    with pytest.raises(ValueError, match="X is sparse"):
        Sine().fit(csr_array(np.eye(3)))


def test_public_names_are_sorted_and_exist():
    assert sorted(basis.__all__) == basis.__all__
    assert all(hasattr(basis, name) for name in basis.__all__)


@parametrize_with_checks(
    [
        Polynomial(),
        Quadratic(),
        Quadratic(rank=1),
        Sine(),
        Gaussian(),
        RadialGaussian(3),
        RadialGaussian(2, method="kmeans"),
        Log(shift=100.0),
        Threshold(),
        HalfSpace(5),
        concat(Polynomial(), Sine()),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_scikit_learn_conventions_of_custom():
    check_estimator(
        Custom(squares, vectorized=True), on_skip=None
    )  # as a parameter it would have an id with an address
