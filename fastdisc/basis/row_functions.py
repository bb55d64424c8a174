"""Functions of a whole row: radial Gaussians and half-spaces."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from .._data.rows import Rows
from .._data.sampling import stratified_rows
from .._kernels.basis_program import Part, padded_transpose
from .._kernels.contract import Array
from .._kernels.enums import BasisKind
from .._validation.parameters import check_choice, check_number
from .base import Basis, finite_numbers, precisions

KMEANS_ROWS_PER_CENTER = 200
MAX_WIDTH_CENTERS = 500  # centres whose distances are computed for the median
MAX_SPREAD_ROWS = 4096  # rows from which the standard deviations of the columns are estimated


def _vectors(value: Any, name: str, d: int) -> Array:
    """A parameter that is an array of vectors: (n, d)."""
    try:
        found = np.array(value, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    if found.ndim != 2 or found.shape[1] != d or not len(found) or not np.isfinite(found).all():
        raise ValueError(
            f"{name} must be a whole number, or an array with {d} columns, as X has, of finite "
            "numbers"
        )
    return found


class RadialGaussian(Basis):
    """exp(-||x - m||^2 / (2 width^2)), for each centre m (10.3).

    Parameters
    ----------
    centers : int or array-like of shape (n, d), default=100
        The centres, or their number.
    width : float, array-like of shape (n,) or "median", default="median"
        "median" is the median distance between two centres.
    method : {"sample", "kmeans"}, default="sample"
        How centres are found: a random sample of the rows, or cluster centres by k-means.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    centers_ : ndarray of shape (n, d)
    width_ : ndarray of shape (n,)
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.basis import RadialGaussian
    >>> X, y = make_circles(200, noise=0.05, factor=0.5, random_state=0)
    >>> LogisticRegression(basis=RadialGaussian(20, width=0.5)).fit(X, y).score(X, y)
    1.0
    """

    centers_: Array
    width_: Array

    def __init__(
        self,
        centers: Any = 100,
        width: Any = "median",
        *,
        method: str = "sample",
        random_state: Any = 0,
    ):
        self.centers = centers
        self.width = width
        self.method = method
        self.random_state = random_state

    def _fit(self, X: Rows, y: Any) -> None:
        check_choice(self.method, "method", ("sample", "kmeans"))
        X.check_finite()  # centres are computed from rows
        if isinstance(self.centers, Integral):
            self.centers_ = self._find_centers(X)
        else:
            self.centers_ = _vectors(self.centers, "centers", X.shape[1])
        self.width_ = np.broadcast_to(self._widths(), len(self.centers_)).copy()
        precisions(self.width_, self.width)  # raises if they are not valid

    def _find_centers(self, X: Rows) -> Array:
        n, n_rows = check_number(self.centers, "centers", low=1, whole=True), X.shape[0]
        if n > n_rows:
            raise ValueError(f"centers={n} cannot be found in n_samples={n_rows} rows")
        rng = check_random_state(self.random_state)
        if self.method == "sample":
            return X.take(np.sort(rng.choice(n_rows, n, replace=False))).dense()
        from sklearn.cluster import KMeans

        seed = int(rng.randint(2**31))
        limit = KMEANS_ROWS_PER_CENTER * n
        sample = X.take(stratified_rows(n_rows, limit, np.random.default_rng(seed))).dense()
        return KMeans(n, n_init=1, random_state=seed).fit(sample).cluster_centers_

    def _widths(self) -> Array:
        n = len(self.centers_)
        if isinstance(self.width, str):
            check_choice(self.width, "width", ("median",))
            chosen = stratified_rows(n, MAX_WIDTH_CENTERS, np.random.default_rng(0))
            median = float(np.median(pdist(self.centers_[chosen]))) if len(chosen) > 1 else 0.0
            return np.array([median or 1.0])
        width = finite_numbers(self.width, "width")
        if len(width) not in (1, n):
            raise ValueError(
                f"width must be one for all or one for each of {n} centers: {self.width!r}"
            )
        return width

    def _parts(self) -> list[Part]:
        q = precisions(self.width_, self.width_)
        reals = np.concatenate([q, padded_transpose(self.centers_)])
        return [Part(BasisKind.RADIAL, len(q), reals=reals, size=len(q))]

    def _names(self, names: Iterable[str]) -> list[str]:
        return [f"radial{k}" for k in range(len(self.centers_))]


class HalfSpace(Basis):
    """1 if a'x > c, else 0, for each normal vector a and offset c (10.3).

    These are thresholds along oblique directions.

    Parameters
    ----------
    normals : int or array-like of shape (n, d), default=100
        The vectors a, or their number; then their directions are random, in units of the columns'
        standard deviations.
    offsets : float, array-like of shape (n,) or None, default=None
        The numbers c. None for planes through randomly chosen rows.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    normals_ : ndarray of shape (n, d)
    offsets_ : ndarray of shape (n,)
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import HalfSpace
    >>> HalfSpace([[1.0, 1.0]], offsets=1.0).fit_transform([[0.0, 0.5], [1.0, 0.5]])
    array([[0.],
           [1.]])
    """

    normals_: Array
    offsets_: Array

    def __init__(self, normals: Any = 100, offsets: Any = None, *, random_state: Any = 0):
        self.normals = normals
        self.offsets = offsets
        self.random_state = random_state

    def _fit(self, X: Rows, y: Any) -> None:
        X.check_finite()  # offsets are computed from rows
        rng = check_random_state(self.random_state)
        if isinstance(self.normals, Integral):
            self.normals_ = self._random_normals(X, rng)
        else:
            self.normals_ = _vectors(self.normals, "normals", X.shape[1])
        n = len(self.normals_)
        if self.offsets is None:
            rows = X.take(rng.randint(X.shape[0], size=n)).dense()
            self.offsets_ = np.einsum("ij,ij->i", rows, self.normals_)
            return
        offsets = finite_numbers(self.offsets, "offsets")
        if len(offsets) not in (1, n):
            raise ValueError(
                f"offsets must be one for all or one for each of {n} normals, got {len(offsets)}"
            )
        self.offsets_ = np.broadcast_to(offsets, n).copy()

    def _random_normals(self, X: Rows, rng: np.random.RandomState) -> Array:
        n = check_number(self.normals, "normals", low=1, whole=True)
        sample = stratified_rows(X.shape[0], MAX_SPREAD_ROWS, np.random.default_rng(0))
        spread = X.take(sample).dense().std(axis=0)
        return rng.standard_normal((n, X.shape[1])) / np.where(spread > 0, spread, 1.0)

    def _parts(self) -> list[Part]:
        reals = np.concatenate([self.offsets_, padded_transpose(self.normals_)])
        n = len(self.normals_)
        return [Part(BasisKind.HALFSPACE, n, reals=reals, size=n)]

    def _names(self, names: Iterable[str]) -> list[str]:
        return [f"halfspace{k}" for k in range(len(self.normals_))]
