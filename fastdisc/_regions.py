"""Decision regions of linear classifiers: segments within them, and their polygons in two dimensions."""

from __future__ import annotations

import numpy as np

from ._planes import code_of, discriminants, largest_decides, points, weights


def region_contains_segment(model, a, b, label=None):
    """Whether the straight line from a to b stays within one decision region; a bool, or (N,) of them for rows.

    The regions of a classifier that takes the largest of linear scores are convex (4.11)-(4.12): on the way from a to b every
    difference of two scores lies between those at the ends, so that these tell. Those of a vote, or of what is left to reject,
    need not be: there every stretch between two planes is looked at.

    Parameters
    ----------
    model : fitted linear classifier
    a, b : arrays of shape (d,) or (N, d)
    label : optional
        The region; by default that of a.

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
    coef, intercept = weights(model)
    single = np.ndim(a) == 1
    A, B = (points(np.atleast_2d(np.asarray(p, dtype=np.float64)), coef.shape[1]) for p in (a, b))
    if len(A) != len(B):
        raise ValueError(f"segments need as many ends as beginnings, got {len(A)} and {len(B)}")
    wanted = None if label is None else code_of(model, label)
    if largest_decides(model):
        coef, intercept = discriminants(model)
        first, last = ((P @ coef.T + intercept).argmax(axis=1) for P in (A, B))
        inside = (first == last) & (first == (first if wanted is None else wanted))
    else:
        inside = np.array([_stays(model, coef, intercept, p, q, wanted) for p, q in zip(A, B, strict=True)], dtype=bool)
    return bool(inside[0]) if single else inside


def _stays(model, coef, intercept, p, q, wanted):
    """Whether one decision holds from p to q, of which rejecting is one."""
    codes = _decisions(model, _stops(model, coef, intercept, p, q))
    return bool((codes == (codes[0] if wanted is None else wanted)).all())


def _stops(model, coef, intercept, p, q):
    """Both ends, and a point on every stretch of the way between two planes that a decision may change at."""
    W = _planes(model, coef, intercept)
    start, step = W[:, 1:] @ p + W[:, 0], W[:, 1:] @ (q - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = -start / step
    crossed = np.unique(np.clip(crossed[np.isfinite(crossed)], 0, 1))
    edges = np.concatenate([[0.0], crossed, [1.0]])
    places = np.concatenate([[0.0], (edges[1:] + edges[:-1]) / 2, [1.0]])
    return p + places[:, None] * (q - p)


def _planes(model, coef, intercept):
    """Every plane at which a decision may change, (n, d+1): of pairs and of classes, and where two classes are equal."""
    W = np.column_stack([intercept, coef])
    return np.vstack([W, _differences(np.column_stack(discriminants(model)[::-1]))])


def _differences(W):
    """Each discriminant less each later one."""
    i, j = np.triu_indices(len(W), 1)
    return W[i] - W[j]


def _decisions(model, X):
    """Codes of the classes that are chosen; K where the model would rather not."""
    X = np.ascontiguousarray(X)
    codes = np.searchsorted(model.classes_, model._choose(X)) if hasattr(model, "_choose") else None
    if codes is None:
        coef, intercept = discriminants(model)
        codes = (X @ coef.T + intercept).argmax(axis=1)
    if hasattr(model, "reject_mask"):
        codes = np.where(model.reject_mask(X), len(model.classes_), codes)
    return codes


def boundary_2d(model, box):
    """Decision regions in two dimensions, exactly: {label: [polygon, ...]}, and under None what is rejected.

    The region of a class is what is left of the box after the half-planes in which another class wins are cut off; a polygon is
    an array (m, 2) of corners, counter-clockwise. A classifier that takes the largest score has at most one for each class. Votes
    and rejection may leave regions that are not convex: these come in convex pieces.

    Parameters
    ----------
    model : fitted linear classifier of two features
    box : (x_low, x_high, y_low, y_high)

    Examples
    --------
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.geometry import boundary_2d
    >>> model = LogisticRegression().fit([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]], [0, 0, 1, 1])
    >>> boundary_2d(model, (0, 2, 0, 1))[1][0].round(6)
    array([[1., 0.],
           [2., 0.],
           [2., 1.],
           [1., 1.]])
    """
    coef, intercept = weights(model)
    if coef.shape[1] != 2:
        raise ValueError(f"boundary_2d needs a model of 2 features, this one has {coef.shape[1]}")
    box = np.asarray(box, dtype=np.float64)
    if box.shape != (4,) or not np.isfinite(box).all() or not (box[0] < box[1] and box[2] < box[3]):
        raise ValueError(f"box must be (x_low, x_high, y_low, y_high) with low < high, got {box.tolist()}")
    corners = np.array([[box[0], box[2]], [box[1], box[2]], [box[1], box[3]], [box[0], box[3]]])
    if largest_decides(model):
        W = np.column_stack(discriminants(model)[::-1])
        own = [[] if (W[:k] == w).all(axis=1).any() else _convex(corners, w - np.delete(W, k, axis=0)) for k, w in enumerate(W)]
        return dict(zip(model.classes_.tolist(), own, strict=True))  # of classes with the same discriminant the first has it all
    return _cells(model, corners, _planes(model, coef, intercept))


def _convex(corners, planes):
    """The part of a polygon where all planes are positive: a list of one, or of none."""
    for plane in planes:
        corners = _clip(corners, plane)
    return [corners] if len(corners) else []


def _clip(corners, plane):
    """The part of a convex polygon where w0 + w'x >= 0; empty where that has no area."""
    g = corners @ plane[1:] + plane[0]
    if (g >= 0).all():
        return corners if (g > 0).any() or not plane[1:].any() else corners[:0]
    if (g <= 0).all():
        return corners[:0]
    kept = []
    for here, there, a, b in zip(corners, np.roll(corners, -1, axis=0), g, np.roll(g, -1), strict=True):
        if a >= 0:
            kept.append(here)
        if (a < 0 < b) or (b < 0 < a):
            kept.append(here + a / (a - b) * (there - here))
    return np.array(kept)


def _area(corners):
    """Of a polygon, counter-clockwise."""
    x, y = (corners - corners.mean(axis=0)).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def _cells(model, corners, planes):
    """The box cut along all planes, the pieces put together again by what the model decides in them."""
    pieces, least = [corners], 1e-12 * _area(corners)
    for plane in planes[planes[:, 1:].any(axis=1)]:
        parts = [part for piece in pieces for part in (_clip(piece, plane), _clip(piece, -plane))]
        pieces = [part for part in parts if len(part) > 2 and _area(part) > least]
    codes = _decisions(model, np.array([piece.mean(axis=0) for piece in pieces]))
    labels = [*model.classes_.tolist(), None]
    return {label: [piece for piece, code in zip(pieces, codes, strict=True) if code == k] for k, label in enumerate(labels)}
