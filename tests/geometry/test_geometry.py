"""Geometry: identities of planes, regions against predictions, models of any library, bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import fastdisc
from fastdisc import OneVsRestClassifier, PairwiseClassifier
from fastdisc.geometry import (
    Hyperplane,
    between,
    boundary_2d,
    distance_to_origin,
    hyperplane,
    project,
    region_contains_segment,
    side,
    signed_distance,
)

PROFILE = settings(max_examples=60, deadline=None, derandomize=True)
IRIS, SPECIES = load_iris(return_X_y=True)
TWO = IRIS[:, 2:]


@st.composite
def planes(draw):
    d = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    w = rng.standard_normal(d) * draw(st.sampled_from([1e-150, 1e-3, 1.0, 1e4, 1e160]))
    size = np.abs(w).max()
    plane = Hyperplane(w, size * rng.standard_normal())
    return plane, rng.standard_normal((20, d)) * draw(st.sampled_from([0.1, 1.0, 50.0]))


@PROFILE
@given(case=planes())
def test_distances_and_projections_satisfy_their_identities(case):
    plane, X = case
    r, projected = plane.signed_distance(X), plane.project(X)
    tol = 1e-12 * (1 + np.abs(X).max() + abs(plane.distance_to_origin))
    np.testing.assert_allclose(np.abs(r), np.linalg.norm(X - projected, axis=1), atol=tol)
    np.testing.assert_allclose(plane.signed_distance(projected), 0, atol=tol)
    np.testing.assert_allclose(projected + r[:, None] * plane.normal, X, atol=tol)  # (4.6)
    within = projected - projected[0]
    np.testing.assert_allclose(within @ plane.normal, 0, atol=tol)
    assert np.array_equal(np.sign(r), plane.side(X))
    assert plane.distance_to_origin == plane.signed_distance(np.zeros((1, X.shape[1])))[0]  # (10.5)
    np.testing.assert_allclose((-plane).signed_distance(X), -r)


@PROFILE
@given(case=planes(), factor=st.floats(1e-3, 1e3))
def test_distances_do_not_depend_on_the_length_of_w(case, factor):
    plane, X = case
    longer = Hyperplane(plane.w * factor, plane.w0 * factor)
    np.testing.assert_allclose(
        longer.signed_distance(X), plane.signed_distance(X), rtol=1e-10, atol=1e-12
    )


class Linear:
    """A classifier with given weights."""

    def __init__(self, coef, intercept):
        self.coef_, self.intercept_ = np.array(coef, dtype=float), np.array(intercept, dtype=float)
        self.classes_ = np.arange(max(2, len(self.coef_)))

    def predict(self, X):
        Z = np.asarray(X) @ self.coef_.T + self.intercept_
        return (Z[:, 0] > 0).astype(int) if len(self.coef_) == 1 else Z.argmax(axis=1)


@st.composite
def classifiers(draw, d=None):
    d, K = d or draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Linear(
        rng.standard_normal((K if K > 2 else 1, d)), rng.standard_normal(K if K > 2 else 1)
    ), rng


@PROFILE
@given(case=classifiers())
def test_regions_of_linear_classifiers_are_convex(case):
    model, rng = case
    A, B = rng.standard_normal((2, 200, model.coef_.shape[1])) * 2
    inside = region_contains_segment(model, A, B)
    same = model.predict(A) == model.predict(B)
    assert np.array_equal(inside, same)
    for a, b in zip(A[same][:20], B[same][:20], strict=True):  # (4.11)-(4.12)
        segment = a + np.linspace(0, 1, 50)[:, None] * (b - a)
        assert len(set(model.predict(segment))) == 1
        assert region_contains_segment(model, a, b, label=model.predict(segment[:1])[0])


@PROFILE
@given(case=classifiers())
def test_scores_of_two_classes_are_equal_on_their_plane(case):
    model, rng = case
    X = rng.standard_normal((30, model.coef_.shape[1]))
    plane = between(model, 1, 0)
    Z = X @ model.coef_.T + model.intercept_
    difference = Z[:, 0] if Z.shape[1] == 1 else Z[:, 1] - Z[:, 0]
    np.testing.assert_allclose(plane(X), difference, atol=1e-12)
    projected = plane.project(X)
    np.testing.assert_allclose(between(model, 0, 1)(projected), 0, atol=1e-10)


def contains(polygon, points):
    """Whether points are within a convex polygon whose corners are counter-clockwise."""
    edges = np.roll(polygon, -1, axis=0) - polygon
    apart = points[:, None] - polygon
    return (edges[:, 0] * apart[:, :, 1] - edges[:, 1] * apart[:, :, 0] >= 0).all(axis=1)


def count_containing(pieces, points):
    """The number of polygons that contain each point."""
    return (
        np.sum([contains(piece, points) for piece in pieces], axis=0)
        if pieces
        else np.zeros(len(points), int)
    )


def check_polygons(polygons, points, codes, labels):
    """Every point is in one region, that of its decision; areas add up to that of the box, 36."""
    covered = np.array([count_containing(polygons[label], points) for label in labels])
    assert np.array_equal(covered.sum(axis=0), np.ones(len(points)))
    assert np.array_equal(covered.argmax(axis=0), codes)
    x = [piece for pieces in polygons.values() for piece in pieces]
    areas = [
        0.5 * float(p[:, 0] @ np.roll(p[:, 1], -1) - p[:, 1] @ np.roll(p[:, 0], -1)) for p in x
    ]
    assert min(areas) > 0 and abs(sum(areas) - 36) < 1e-9


@PROFILE
@given(case=classifiers(d=2))
def test_polygons_are_the_regions_of_linear_classifiers(case):
    model, rng = case
    polygons = boundary_2d(model, (-3, 3, -3, 3))
    points = rng.uniform(-3, 3, (300, 2))
    assert max(map(len, polygons.values())) == 1
    covered = np.array([count_containing(pieces, points) for pieces in polygons.values()])
    assert np.array_equal(covered.sum(axis=0), np.ones(300))
    assert np.array_equal(covered.argmax(axis=0), model.predict(points))


COMBINATIONS = [
    PairwiseClassifier(decision="vote"),
    PairwiseClassifier(decision="sum"),
    PairwiseClassifier(decision="all"),
    OneVsRestClassifier(decision="single"),
    OneVsRestClassifier(decision="max"),
]


def blobs(rng):
    """Four overlapping classes in a square of side 6."""
    y = np.arange(240) % 4
    centers = np.array([[-1.5, 0], [1.5, 0.5], [0, 1.5], [0.2, -0.4]])
    return centers[y] + 0.6 * rng.standard_normal((240, 2)), y


@pytest.mark.parametrize("model", COMBINATIONS, ids=str)
def test_polygons_and_segments_of_combinations_agree_with_decisions(model, rng):
    X, y = blobs(rng)
    model.fit(X, y)
    points = rng.uniform(-3, 3, (500, 2))
    codes = np.where(model.reject_mask(points), 4, model.predict(points))
    polygons = boundary_2d(model, (-3, 3, -3, 3))
    labels = [0, 1, 2, 3, None] if None in polygons else [0, 1, 2, 3]
    check_polygons(polygons, points, codes, labels)
    for a, b in zip(points[:60], points[60:120], strict=True):
        segment = a + np.linspace(0, 1, 400)[:, None] * (b - a)
        seen = np.where(model.reject_mask(segment), 4, model.predict(segment))
        inside = region_contains_segment(model, a, b)
        assert not (inside and len(set(seen)) > 1)
        assert inside or len(set(seen)) > 1 or _changes_briefly(model, segment)


def _changes_briefly(model, segment):
    """Whether the decision differs on a part of the segment that is shorter than its steps."""
    steps = np.linspace(0, 1, 200_001)[:, None]
    fine = segment[0] + steps * (segment[-1] - segment[0])
    return len(set(np.where(model.reject_mask(fine), 4, model.predict(fine)))) > 1


MODELS = [
    fastdisc.LogisticRegression(),
    fastdisc.LinearDiscriminantAnalysis(),
    fastdisc.LeastSquaresClassifier(),
    fastdisc.Perceptron(),
    fastdisc.SigmoidRegression(),
    linear_model.LogisticRegression(),
    linear_model.RidgeClassifier(),
    linear_model.Perceptron(),
    linear_model.SGDClassifier(),
    svm.LinearSVC(),
    LinearDiscriminantAnalysis(),
    OneVsRestClassifier(),
]


@pytest.mark.parametrize(
    "model",
    MODELS,
    ids=lambda model: f"{type(model).__module__.split('.')[0]} {type(model).__name__}",
)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_linear_models_of_any_library_have_planes_and_regions(model, K):
    X, y = TWO[SPECIES < K], np.array(["setosa", "versicolor", "virginica"])[SPECIES[SPECIES < K]]
    model.fit(X, y)
    Z = model.decision_function(X).reshape(len(X), -1)
    length = np.linalg.norm(np.atleast_2d(model.coef_), axis=1)
    np.testing.assert_allclose(signed_distance(model, X).reshape(len(X), -1), Z / length, atol=1e-9)
    assert np.array_equal(side(model, X).reshape(len(X), -1), np.sign(Z))
    np.testing.assert_allclose(
        np.ravel(distance_to_origin(model)), np.ravel(model.intercept_) / length
    )
    projected = project(model, X)
    assert projected.shape == ((len(X), 2) if Z.shape[1] == 1 else (len(X), Z.shape[1], 2))
    names = [plane.name for plane in np.atleast_1d(hyperplane(model))]
    assert names == (["g"] if Z.shape[1] == 1 else ["g[setosa]", "g[versicolor]", "g[virginica]"])
    chosen = model.predict(X)
    polygons = boundary_2d(model, (0, 8, -1, 4))
    for label, pieces in polygons.items():
        assert np.array_equal(count_containing(pieces, X), chosen == label)


def test_planes_of_pairs_are_named():
    import pandas as pd

    frame = pd.DataFrame(TWO, columns=["length", "width"])
    model = PairwiseClassifier().fit(frame, SPECIES)
    G = model.pairwise_decision_function(frame)
    for p, (i, j) in enumerate(model.pairs_):
        np.testing.assert_allclose(between(model, i, j)(TWO), G[:, p], atol=1e-10)
        np.testing.assert_allclose(between(model, j, i)(TWO), -G[:, p], atol=1e-10)
    text = str(between(model, 0, 2))
    assert text.startswith("g[0, 2](x) = -") and " width " in text
    assert [plane.name for plane in hyperplane(model)] == ["g[0, 1]", "g[0, 2]", "g[1, 2]"]


def test_regression_and_sparse_weights_have_planes():
    y = TWO @ [1.0, 2.0] + 3
    plane = hyperplane(linear_model.LinearRegression().fit(TWO, y))
    np.testing.assert_allclose([*plane.w, plane.w0], [1, 2, 3])
    assert hyperplane(plane) is plane
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = linear_model.SGDClassifier().fit(TWO, SPECIES)
    dense = signed_distance(model, TWO)
    assert np.array_equal(signed_distance(model.sparsify(), sparse.csr_array(TWO)), dense)


def test_long_planes_are_printed_abbreviated():
    text = str(Hyperplane(np.arange(1, 31), -0.5))
    assert text.count("...") == 1 and len(text) < 120
    assert str(Hyperplane([0, -1.5], 0)) == "g(x) = -1.5 x1 = 0, at distance 0 from the origin"


FITTED = fastdisc.LogisticRegression().fit(TWO, SPECIES)
BAD = {
    "no direction": (lambda: Hyperplane([0, 0], 1), "all 0: it has no direction"),
    "a matrix": (lambda: Hyperplane([[1, 2]], 0), r"shapes \(1, 2\)"),
    "NaN": (lambda: Hyperplane([1, np.nan], 0), "must be finite"),
    "too few names": (lambda: Hyperplane([1, 2], 0, "g", ["a"]), "1 names for 2 weights"),
    "points of another size": (
        lambda: signed_distance(FITTED, IRIS),
        r"shape \(N, 2\), got \(150, 4\)",
    ),
    "NaN in a point": (lambda: side(FITTED, [[0, 1], [np.nan, 2]]), "row 1, column 0 it is nan"),
    "not linear": (
        lambda: hyperplane(fastdisc.QuadraticDiscriminantAnalysis().fit(TWO, SPECIES)),
        "it is not a linear",
    ),
    "not a model": (lambda: hyperplane(3), "int has no coef_"),
    "not fitted": (lambda: hyperplane(fastdisc.LogisticRegression()), "not fitted"),
    "a class that is not there": (
        lambda: between(FITTED, 0, 7),
        r"7 is not one of the classes \[0, 1, 2\]",
    ),
    "a class and itself": (lambda: between(FITTED, 1, 1), "between class 1 and itself"),
    "a regression": (
        lambda: between(linear_model.LinearRegression().fit(TWO, SPECIES), 0, 1),
        "not a classifier",
    ),
    "pairs of another library": (
        lambda: hyperplane(svm.SVC(kernel="linear").fit(TWO, SPECIES)),
        "pairs of its own",
    ),
    "four features": (
        lambda: boundary_2d(fastdisc.LogisticRegression().fit(IRIS, SPECIES), (0, 1, 0, 1)),
        "this one has 4",
    ),
    "an empty box": (lambda: boundary_2d(FITTED, (0, 0, 1, 2)), "low < high"),
    "half a box": (lambda: boundary_2d(FITTED, (0, 1)), "x_low"),
    "ends without beginnings": (
        lambda: region_contains_segment(FITTED, TWO[:2], TWO[:3]),
        "got 2 and 3",
    ),
    "classes that overlap": (
        lambda: between(OneVsRestClassifier().fit(TWO, np.eye(3, dtype=int)[SPECIES]), 0, 1),
        "do not exclude",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_raises(what):
    call, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        call()
