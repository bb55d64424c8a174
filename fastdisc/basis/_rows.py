"""Functions of a whole row: radial Gaussians, and half-spaces."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from .. import _validate
from .._base import choice, number
from .._kernels.maps import Map, Part, turned
from .._rows import strata
from ._base import Basis, numbers, precisions

ROWS_EACH = 200  # rows for each centre that k-means looks at
PAIRS = 500  # centres whose distances tell the width


def _given(value, name, d):
    """(n, d) from a parameter."""
    try:
        found = np.array(value, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    if found.ndim != 2 or found.shape[1] != d or not len(found) or not np.isfinite(found).all():
        raise ValueError(f"{name} must be a whole number, or an array with {d} columns, as X has, of finite numbers")
    return found


class RadialGaussian(Basis):
    """exp(-||x - m||^2 / (2 width^2)), for each centre m (10.3).

    Parameters
    ----------
    centers : int or array of shape (n, d), default=100
        The centres, or how many are to be found.
    width : float, array of shape (n,) or "median", default="median"
        "median" is the median distance between two centres.
    method : {"sample", "kmeans"}, default="sample"
        How centres are found: rows drawn at random, or the means of clusters of rows.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    centers_ : array of shape (n, d)
    width_ : array of shape (n,)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.basis import RadialGaussian
    >>> X, y = make_circles(200, noise=0.05, factor=0.5, random_state=0)
    >>> LogisticRegression(basis=RadialGaussian(20, width=0.5)).fit(X, y).score(X, y)
    1.0
    """

    def __init__(self, centers=100, width="median", *, method="sample", random_state=0):
        self.centers = centers
        self.width = width
        self.method = method
        self.random_state = random_state

    def _learn(self, X, y):
        choice(self.method, "method", ("sample", "kmeans"))
        _validate.check_finite(X)  # centres are rows
        self.centers_ = self._find(X) if isinstance(self.centers, Integral) else _given(self.centers, "centers", X.shape[1])
        self.width_ = np.broadcast_to(self._widths(), len(self.centers_)).copy()
        precisions(self.width_, self.width)

    def _find(self, X):
        n = number(self.centers, "centers", low=1, whole=True)
        if n > len(X):
            raise ValueError(f"centers={n} cannot be found in n_samples={len(X)} rows")
        rng = check_random_state(self.random_state)
        if self.method == "sample":
            return X[np.sort(rng.choice(len(X), n, replace=False))].astype(np.float64)
        from sklearn.cluster import KMeans

        seed = int(rng.randint(2**31))
        some = X[strata(len(X), ROWS_EACH * n, np.random.default_rng(seed))].astype(np.float64)
        return KMeans(n, n_init=1, random_state=seed).fit(some).cluster_centers_

    def _widths(self):
        if isinstance(self.width, str):
            choice(self.width, "width", ("median",))
            some = self.centers_[strata(len(self.centers_), PAIRS, np.random.default_rng(0))]
            middle = float(np.median(pdist(some))) if len(some) > 1 else 0.0
            return np.array([middle or 1.0])
        width = numbers(self.width, "width")
        if len(width) not in (1, len(self.centers_)):
            raise ValueError(f"width must be one for all or one for each of {len(self.centers_)} centers: {self.width!r}")
        return width

    def _parts(self):
        reals = np.concatenate([precisions(self.width_, self.width_), turned(self.centers_)])
        return [Part(Map.RADIAL, len(self.centers_), reals=reals, size=len(self.centers_))]

    def _names(self, names):
        return [f"radial{k}" for k in range(len(self.centers_))]


class HalfSpace(Basis):
    """1 where a'x > c, else 0, for each normal vector a and offset c (10.3): thresholds along oblique directions.

    Parameters
    ----------
    normals : int or array of shape (n, d), default=100
        The vectors a, or how many are to be drawn: of random directions, in units of the columns' spread.
    offsets : float, array of shape (n,) or None, default=None
        The numbers c. None for planes through rows drawn at random.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    normals_ : array of shape (n, d)
    offsets_ : array of shape (n,)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import HalfSpace
    >>> HalfSpace([[1.0, 1.0]], offsets=1.0).fit_transform([[0.0, 0.5], [1.0, 0.5]])
    array([[0.],
           [1.]])
    """

    def __init__(self, normals=100, offsets=None, *, random_state=0):
        self.normals = normals
        self.offsets = offsets
        self.random_state = random_state

    def _learn(self, X, y):
        _validate.check_finite(X)  # planes go through rows
        rng, d = check_random_state(self.random_state), X.shape[1]
        if isinstance(self.normals, Integral):
            n = number(self.normals, "normals", low=1, whole=True)
            some = X[strata(len(X), 4096, np.random.default_rng(0))].astype(np.float64)
            spread = some.std(axis=0)
            self.normals_ = rng.standard_normal((n, d)) / np.where(spread > 0, spread, 1.0)
        else:
            self.normals_ = _given(self.normals, "normals", d)
        if self.offsets is None:
            rows = X[rng.randint(len(X), size=len(self.normals_))].astype(np.float64)
            self.offsets_ = np.einsum("ij,ij->i", rows, self.normals_)
            return
        offsets = numbers(self.offsets, "offsets")
        if len(offsets) not in (1, len(self.normals_)):
            raise ValueError(f"offsets must be one for all or one for each of {len(self.normals_)} normals, got {len(offsets)}")
        self.offsets_ = np.broadcast_to(offsets, len(self.normals_)).copy()

    def _parts(self):
        reals = np.concatenate([self.offsets_, turned(self.normals_)])
        return [Part(Map.HALFSPACE, len(self.normals_), reals=reals, size=len(self.normals_))]

    def _names(self, names):
        return [f"halfspace{k}" for k in range(len(self.normals_))]
