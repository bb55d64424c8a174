"""Displays: they are drawn, are not empty, and agree with the model."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import LinearSVC

from fastdisc import (
    LogisticRegression,
    OneVsRestClassifier,
    PairwiseClassifier,
    QuadraticDiscriminantAnalysis,
    RejectOption,
)
from fastdisc.plot import plot_hyperplanes, plot_posteriors, plot_regions

mpl.use("Agg")
X, Y = load_iris(return_X_y=True)
X = X[:, 2:]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def count_colors(display):
    """The number of colors of the drawn figure."""
    display.figure_.canvas.draw()
    return len(
        np.unique(np.ascontiguousarray(display.figure_.canvas.buffer_rgba()).view(np.uint32))
    )


REGIONS = [
    LogisticRegression(),
    PairwiseClassifier(decision="all"),
    PairwiseClassifier(),
    OneVsRestClassifier(decision="single"),
    QuadraticDiscriminantAnalysis(),
    RandomForestClassifier(5, random_state=0),
    RejectOption(QuadraticDiscriminantAnalysis(), threshold=0.9),
]


@pytest.mark.parametrize("model", REGIONS, ids=str)
def test_regions_are_polygons_of_linear_models_and_pixels_of_others(model):
    model.fit(X, Y)
    display = plot_regions(model, X, Y, resolution=60)
    assert display.ax_.figure is display.figure_ and count_colors(display) > 20
    assert len(display.ax_.get_legend().get_texts()) == 3
    linear = isinstance(model, (LogisticRegression, PairwiseClassifier, OneVsRestClassifier))
    assert (display.polygons is not None) == linear
    assert len(display.ax_.patches) == (sum(map(len, display.polygons.values())) if linear else 0)
    if not linear:
        seen = set(np.unique(display.codes))
        assert seen >= {0, 1, 2} and (3 in seen) == isinstance(model, RejectOption)


def test_regions_without_labels_are_drawn_on_given_axes():
    import matplotlib.pyplot as plt

    model = LogisticRegression().fit(X, Y)
    display = plot_regions(model, X)
    assert not display.ax_.collections and display.ax_.get_legend() is None
    other = plt.subplots()[1]
    assert display.plot(ax=other).ax_ is other and len(other.patches) == 3


@pytest.mark.parametrize(
    "model", [LogisticRegression(), PairwiseClassifier(LinearSVC()), OneVsRestClassifier()], ids=str
)
def test_hyperplanes_are_drawn_where_scores_are_zero(model):
    model.fit(X, Y)
    display = plot_hyperplanes(model, X, Y)
    assert len(display.planes) == 3 and count_colors(display) > 20
    for plane, ends in zip(display.planes, display.segments, strict=True):
        if ends is not None:
            np.testing.assert_allclose(plane.signed_distance(ends), 0, atol=1e-9)
    assert len(display.ax_.lines) == sum(ends is not None for ends in display.segments) > 0


def test_two_classes_have_one_hyperplane():
    model = LogisticRegression().fit(X[:100], Y[:100])
    display = plot_hyperplanes(model, X[:100], Y[:100], normals=False)
    assert (
        len(display.ax_.lines) == 1
        and display.ax_.lines[0].get_label() == "g(x) = 0"
        and not display.ax_.texts
    )


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("d", [1, 2])
def test_posteriors_are_curves_of_one_feature_and_an_image_of_two(K, d):
    rows = Y < K
    frame = pd.DataFrame(X[rows, :d], columns=["length", "width"][:d])
    model = LogisticRegression().fit(frame, Y[rows])
    display = plot_posteriors(model, frame, Y[rows], resolution=50)
    np.testing.assert_allclose(display.posteriors.sum(axis=-1), 1)
    assert count_colors(display) > 20 and display.ax_.get_xlabel() == "length"
    assert len(display.ax_.lines) == (K if d == 1 else 0) and len(display.ax_.images) == (d == 2)


def test_posterior_of_one_class_is_its_image():
    model = LogisticRegression().fit(X, Y)
    display = plot_posteriors(model, X, Y, label=1, resolution=40)
    drawn = display.ax_.images[0].get_array()
    np.testing.assert_allclose(drawn, display.posteriors[:, :, 1])


BAD = {
    "four features": (
        lambda m: plot_regions(m, np.zeros((9, 4))),
        r"2 features, X has the shape \(9, 4\)",
    ),
    "NaN": (lambda m: plot_regions(m, np.full((9, 2), np.nan)), "finite"),
    "short y": (lambda m: plot_hyperplanes(m, X, Y[:9]), "X has 150 rows"),
    "a negative margin": (lambda m: plot_regions(m, X, margin=-1), "margin must be"),
    "a coarse grid": (lambda m: plot_posteriors(m, X, resolution=1), "resolution must be"),
    "no such class": (lambda m: plot_posteriors(m, X, label=7), "7 is not one of"),
    "no posteriors": (lambda m: plot_posteriors(LinearSVC().fit(X, Y), X), "no predict_proba"),
    "not fitted": (lambda m: plot_regions(LogisticRegression(), X), "not fitted"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_raises(what):
    call, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        call(LogisticRegression().fit(X, Y))


def test_missing_matplotlib_raises_with_the_install_command(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'fastdisc\[plot\]'"):
        plot_regions(LogisticRegression().fit(X, Y), X, Y)
