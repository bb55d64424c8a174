"""The hyperplanes of a model, and distances of points to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._kernels.contract import Array
from .models import (
    class_code,
    class_discriminants,
    discriminant_names,
    input_names,
    is_pairwise,
    linear_weights,
)
from .planes import Hyperplane


def hyperplane(model: Any) -> Hyperplane | list[Hyperplane]:
    """The hyperplanes where the discriminants of a model are 0.

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
        For two classes there is one discriminant, positive for the second class; for K classes
        there is one per class, positive for it; for a `PairwiseClassifier` one per pair, positive
        for the first of its two classes.

    Returns
    -------
    Hyperplane or list of Hyperplane
        A list if there are several discriminants.

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
    coef, intercept = linear_weights(model)
    names, features = discriminant_names(model, len(coef)), input_names(model)
    planes = [
        Hyperplane(w, w0, name, features)
        for w, w0, name in zip(coef, intercept, names, strict=True)
    ]
    return planes[0] if len(planes) == 1 else planes


def _each_plane(model: Any, function: Callable[[Hyperplane], Any], axis: int = -1) -> Any:
    """A function of the model's plane, or of each of several, stacked along a new axis."""
    planes = hyperplane(model)
    if isinstance(planes, Hyperplane):
        return function(planes)
    return np.stack([function(plane) for plane in planes], axis=axis)


def signed_distance(model: Any, X: Any) -> Array:
    """Signed distances g(x) / ||w|| of points to the hyperplanes (10.4), (4.7).

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array-like of shape (N, d)

    Returns
    -------
    ndarray of shape (N,), or (N, K) for K planes
        Positive on the positive side.

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, signed_distance
    >>> signed_distance(Hyperplane([0, 2], -2), [[5, 3]])
    array([2.])
    """
    return _each_plane(model, lambda plane: plane.signed_distance(X))


def project(model: Any, X: Any) -> Array:
    """Orthogonal projections of points on the hyperplanes, x - r w / ||w|| (4.6).

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array-like of shape (N, d)

    Returns
    -------
    ndarray of shape (N, d), or (N, K, d) for K planes

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, project
    >>> project(Hyperplane([0, 2], -2), [[5, 3]])
    array([[5., 1.]])
    """
    return _each_plane(model, lambda plane: plane.project(X), axis=1)


def distance_to_origin(model: Any) -> Any:
    """Signed distance w0 / ||w|| of the origin to the hyperplanes (10.5).

    Parameters
    ----------
    model : fitted linear model, or Hyperplane

    Returns
    -------
    float, or ndarray of shape (K,) for K planes
        Positive if the origin is on the positive side.

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, distance_to_origin
    >>> distance_to_origin(Hyperplane([3, 4], -10))
    -2.0
    """
    return _each_plane(model, lambda plane: plane.distance_to_origin)


def side(model: Any, X: Any) -> Array:
    """The side of the hyperplanes that points are on.

    Parameters
    ----------
    model : fitted linear model, or Hyperplane
    X : array-like of shape (N, d)

    Returns
    -------
    ndarray of shape (N,), or (N, K) for K planes, int8
        +1 on the positive side, -1 on the negative side, 0 on the plane.

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane, side
    >>> side(Hyperplane([1, 0], 0), [[-3, 1], [0, 1], [3, 1]])
    array([-1,  0,  1], dtype=int8)
    """
    return _each_plane(model, lambda plane: plane.side(X))


def between(model: Any, i: Any, j: Any) -> Hyperplane:
    """The hyperplane between two classes, (w_i - w_j)'x + w_i0 - w_j0 = 0 (4.10).

    For a `PairwiseClassifier` it is the plane that was fitted to the two classes, g_ij.

    Parameters
    ----------
    model : fitted linear classifier
    i, j : labels of two classes

    Returns
    -------
    Hyperplane
        Positive on the side of class i.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LinearDiscriminantAnalysis
    >>> from fastdisc.geometry import between
    >>> X, y = load_iris(return_X_y=True)
    >>> print(between(LinearDiscriminantAnalysis().fit(X[:, 2:], y), 1, 2))
    g[1, 2](x) = -4.168 x0 - 12.81 x1 + 41.92 = 0, at distance 3.112 from the origin
    """
    a, b, name = class_code(model, i), class_code(model, j), f"g[{i}, {j}]"
    if a == b:
        raise ValueError(f"there is no plane between class {i!r} and itself")
    if is_pairwise(model):
        coef, intercept = linear_weights(model)
        row = int(np.flatnonzero((model.pairs_ == sorted((a, b))).all(axis=1))[0])
        sign = 1 if a < b else -1
        return Hyperplane(sign * coef[row], sign * intercept[row], name, input_names(model))
    coef, intercept = class_discriminants(model)
    return Hyperplane(coef[a] - coef[b], intercept[a] - intercept[b], name, input_names(model))
