"""Geometry of linear discriminants: distances, projections, planes between classes, decision regions and their polygons.

A model is anything fitted that has `coef_` and `intercept_`, of this library or of scikit-learn; a `Hyperplane` does where one
plane is meant. Points are rows.
"""

from __future__ import annotations

import numpy as np

from ._planes import Hyperplane, called, code_of, discriminants, input_names, of_pairs, weights
from ._regions import boundary_2d, region_contains_segment

__all__ = [
    "Hyperplane",
    "between",
    "boundary_2d",
    "distance_to_origin",
    "hyperplane",
    "project",
    "region_contains_segment",
    "side",
    "signed_distance",
]


def hyperplane(model):
    """Where a model's discriminants are 0: a `Hyperplane`, or a list of them where there are several.

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
        The one discriminant of two classes is positive for the second; of K classes each has one that is positive for it; of a
        `PairwiseClassifier` each pair has one that is positive for the first of its two classes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fastdisc.geometry import hyperplane
    >>> model = LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 0, 1])
    >>> print(hyperplane(model))
    g(x) = 0.6954 x0 + 0.2823 x1 - 1.628 = 0, at distance 2.17 from the origin
    """
    if isinstance(model, Hyperplane):
        return model
    coef, intercept = weights(model)
    names, features = called(model, len(coef)), input_names(model)
    planes = [Hyperplane(w, w0, name, features) for w, w0, name in zip(coef, intercept, names, strict=True)]
    return planes[0] if len(planes) == 1 else planes


def _one_or_all(model, measure):
    planes = hyperplane(model)
    return measure(planes) if isinstance(planes, Hyperplane) else np.stack([measure(plane) for plane in planes], axis=-1)


def signed_distance(model, X):
    """Distances g(x) / ||w|| of points to the planes (10.4), (4.7): positive on the positive side; (N,) or (N, K).

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array of shape (N, d)

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, signed_distance
    >>> signed_distance(Hyperplane([0, 2], -2), [[5, 3]])
    array([2.])
    """
    return _one_or_all(model, lambda plane: plane.signed_distance(X))


def project(model, X):
    """The nearest points on the planes, x - r w / ||w|| (4.6): (N, d), or (N, K, d) for several.

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array of shape (N, d)

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, project
    >>> project(Hyperplane([0, 2], -2), [[5, 3]])
    array([[5., 1.]])
    """
    planes = hyperplane(model)
    return planes.project(X) if isinstance(planes, Hyperplane) else np.stack([plane.project(X) for plane in planes], axis=1)


def distance_to_origin(model):
    """w0 / ||w|| (10.5): positive where the origin is on the positive side; a number, or (K,) for several planes.

    Parameters
    ----------
    model : fitted linear model, or Hyperplane

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, distance_to_origin
    >>> distance_to_origin(Hyperplane([3, 4], -10))
    -2.0
    """
    return _one_or_all(model, lambda plane: plane.distance_to_origin)


def side(model, X):
    """Which half-space points are in: +1, -1, or 0 on the plane itself; (N,) or (N, K).

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array of shape (N, d)

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, side
    >>> side(Hyperplane([1, 0], 0), [[-3, 1], [0, 1], [3, 1]])
    array([-1,  0,  1], dtype=int8)
    """
    return _one_or_all(model, lambda plane: plane.side(X))


def between(model, i, j):
    """The plane between two classes, (w_i - w_j)'x + w_i0 - w_j0 = 0 (4.10), positive on the side of i.

    Of a `PairwiseClassifier` it is the plane that was learned for the two, g_ij.

    Parameters
    ----------
    model : fitted linear classifier
    i, j : labels of two classes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LinearDiscriminantAnalysis
    >>> from fastdisc.geometry import between
    >>> X, y = load_iris(return_X_y=True)
    >>> print(between(LinearDiscriminantAnalysis().fit(X[:, 2:], y), 1, 2))
    g[1, 2](x) = -4.168 x0 - 12.81 x1 + 41.92 = 0, at distance 3.112 from the origin
    """
    a, b, name = code_of(model, i), code_of(model, j), f"g[{i}, {j}]"
    if a == b:
        raise ValueError(f"there is no plane between class {i!r} and itself")
    if of_pairs(model):
        coef, intercept = weights(model)
        row = int(np.flatnonzero((model.pairs_ == sorted((a, b))).all(axis=1))[0])
        sign = 1 if a < b else -1
        return Hyperplane(sign * coef[row], sign * intercept[row], name, input_names(model))
    coef, intercept = discriminants(model)
    return Hyperplane(coef[a] - coef[b], intercept[a] - intercept[b], name, input_names(model))
