"""Decision regions of linear classifiers: segments within them, and polygons in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels.contract import Array
from .models import class_code, class_discriminants, largest_decides, linear_weights
from .planes import check_points

MIN_CELL_AREA = 1e-12  # relative to the box; smaller cells are rounding errors


def predicted_codes(model: Any, X: Any) -> Array:
    """Codes of the predicted classes, (N,); K for rows that the model rejects."""
    predict = getattr(model, "predict_without_rejection", model.predict)
    codes = np.searchsorted(model.classes_, predict(X))
    if hasattr(model, "reject_mask"):
        codes = np.where(model.reject_mask(X), len(model.classes_), codes)
    return codes


def region_contains_segment(model: Any, a: Any, b: Any, label: Any = None) -> bool | Array:
    """Whether the straight line from a to b lies within one decision region.

    The regions of a classifier that takes the largest of linear scores are convex (4.11)-(4.12): on
    the way from a to b, a difference of two scores lies between its values at the ends, so that the
    ends decide. Regions of a vote, or of rejection, need not be convex: there, every interval
    between two planes is checked.

    Parameters
    ----------
    model : fitted linear classifier
    a, b : array-like of shape (d,) or (N, d)
    label : optional
        The class of the region; by default that of a.

    Returns
    -------
    bool, or ndarray of shape (N,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.geometry import region_contains_segment
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> region_contains_segment(model, X[0], X[1]), region_contains_segment(model, X[0], X[149])
    (True, False)
    """
    coef, intercept = linear_weights(model)
    A, B = (
        check_points(np.atleast_2d(np.asarray(p, dtype=np.float64)), coef.shape[1]) for p in (a, b)
    )
    if len(A) != len(B):
        raise ValueError(f"segments need as many ends as beginnings, got {len(A)} and {len(B)}")
    code = None if label is None else class_code(model, label)
    if largest_decides(model):
        coef, intercept = class_discriminants(model)
        first, last = ((P @ coef.T + intercept).argmax(axis=1) for P in (A, B))
        inside = (first == last) & (first == (first if code is None else code))
    else:
        planes = _decision_planes(model)
        segments = zip(A, B, strict=True)
        inside = np.array([_stays(model, planes, p, q, code) for p, q in segments], dtype=bool)
    return bool(inside[0]) if np.ndim(a) == 1 else inside


def _stays(model: Any, planes: Array, p: Array, q: Array, code: int | None) -> bool:
    """Whether the decision, which may be rejection, is the same all the way from p to q."""
    codes = predicted_codes(model, _points_between(planes, p, q))
    return bool((codes == (codes[0] if code is None else code)).all())


def _points_between(planes: Array, p: Array, q: Array) -> Array:
    """Both ends of a segment, and a point of each interval between two planes that it crosses."""
    start, step = planes[:, 1:] @ p + planes[:, 0], planes[:, 1:] @ (q - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = -start / step
    crossed = np.unique(np.clip(crossed[np.isfinite(crossed)], 0, 1))
    edges = np.concatenate([[0.0], crossed, [1.0]])
    places = np.concatenate([[0.0], (edges[1:] + edges[:-1]) / 2, [1.0]])
    return p + places[:, None] * (q - p)


def _decision_planes(model: Any) -> Array:
    """All planes at which a decision may change, (n, d+1): those of the model's discriminants, and
    those on which the scores of two classes are equal."""
    coef, intercept = linear_weights(model)
    W = np.column_stack(class_discriminants(model)[::-1])
    i, j = np.triu_indices(len(W), 1)
    return np.vstack([np.column_stack([intercept, coef]), W[i] - W[j]])


def boundary_2d(model: Any, box: Any) -> dict[Any, list[Array]]:
    """Exact decision regions in two dimensions, as polygons.

    The region of a class is the box without the half-planes in which another class wins. A
    classifier that takes the largest score has at most one polygon per class. Regions of votes and
    of rejection need not be convex; they are returned as several convex polygons.

    Parameters
    ----------
    model : fitted linear classifier of two features
    box : (x_low, x_high, y_low, y_high)

    Returns
    -------
    dict from label to list of ndarrays of shape (m, 2)
        The vertices of each polygon, counter-clockwise. Rejected regions have the key None.

    Examples
    --------
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.geometry import boundary_2d
    >>> X = [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]]
    >>> model = LogisticRegression().fit(X, [0, 0, 1, 1])
    >>> boundary_2d(model, (0, 2, 0, 1))[1][0].round(6)
    array([[1., 0.],
           [2., 0.],
           [2., 1.],
           [1., 1.]])
    """
    d = linear_weights(model)[0].shape[1]
    if d != 2:
        raise ValueError(f"boundary_2d needs a model of 2 features, this one has {d}")
    box = np.asarray(box, dtype=np.float64)
    finite = box.shape == (4,) and np.isfinite(box).all()
    if not finite or not (box[0] < box[1] and box[2] < box[3]):
        raise ValueError(
            f"box must be (x_low, x_high, y_low, y_high) with low < high, got {box.tolist()}"
        )
    x = box[[0, 1, 1, 0]]
    y = box[[2, 2, 3, 3]]
    vertices = np.column_stack([x, y])
    if not largest_decides(model):
        return _cells(model, vertices, _decision_planes(model))
    W = np.column_stack(class_discriminants(model)[::-1])
    regions = [_winning_region(vertices, W, k) for k in range(len(W))]
    return dict(zip(model.classes_.tolist(), regions, strict=True))


def _winning_region(vertices: Array, W: Array, k: int) -> list[Array]:
    """The part of a polygon in which discriminant k is the largest: one polygon or none."""
    if (W[:k] == W[k]).all(axis=1).any():
        return []  # of equal discriminants the first wins everywhere
    for plane in W[k] - np.delete(W, k, axis=0):
        vertices = _clip(vertices, plane)
    return [vertices] if len(vertices) else []


def _clip(vertices: Array, plane: Array) -> Array:
    """The part of a convex polygon where w0 + w'x >= 0; empty if it has no area."""
    g = vertices @ plane[1:] + plane[0]
    if (g >= 0).all():
        return vertices if (g > 0).any() or not plane[1:].any() else vertices[:0]
    if (g <= 0).all():
        return vertices[:0]
    edges = zip(vertices, np.roll(vertices, -1, axis=0), g, np.roll(g, -1), strict=True)
    clipped = []
    for here, there, g_here, g_there in edges:
        if g_here >= 0:
            clipped.append(here)
        if (g_here < 0 < g_there) or (g_there < 0 < g_here):
            clipped.append(here + g_here / (g_here - g_there) * (there - here))
    return np.array(clipped)


def _area(vertices: Array) -> float:
    """The area of a polygon with counter-clockwise vertices."""
    x, y = (vertices - vertices.mean(axis=0)).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def _cells(model: Any, vertices: Array, planes: Array) -> dict[Any, list[Array]]:
    """A polygon cut along all planes, and the cells grouped by the decision of the model."""
    cells, min_area = [vertices], MIN_CELL_AREA * _area(vertices)
    for plane in planes[planes[:, 1:].any(axis=1)]:
        parts = [part for cell in cells for part in (_clip(cell, plane), _clip(cell, -plane))]
        cells = [part for part in parts if len(part) > 2 and _area(part) > min_area]
    codes = predicted_codes(model, np.array([cell.mean(axis=0) for cell in cells]))
    labels = [*model.classes_.tolist(), None]
    return {
        label: [cell for cell, code in zip(cells, codes, strict=True) if code == k]
        for k, label in enumerate(labels)
    }
