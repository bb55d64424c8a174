"""Fisher's discriminant: directions that separate the class means relative to the variance within
classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._data.moments import Moments
from .._data.outputs import outputs
from .._kernels import Activation
from .._kernels.contract import Array
from .._solvers import closed_form
from .._validation.arrays import check_rows
from .._validation.parameters import check_number
from ..exceptions import CollinearWarning
from .base import FromMoments, QuadraticScores, draw_rows


class FisherDiscriminant(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, QuadraticScores, FromMoments
):
    """Fisher's linear discriminant for two classes (4.30) and for K (4.51), as a transformer and a
    classifier.

    `transform` projects rows on at most K - 1 directions. To classify, a Gaussian is fitted to the
    projection of each class. For two classes and one direction this gives a threshold,
    `threshold_`, where the densities times the priors are equal.

    Parameters
    ----------
    n_components : int, optional
        Number of directions: at most, and by default, min(K - 1, d).
    priors : array of shape (K,), optional
        Prior probabilities for the classification; by default the shares of the classes in the
        sample.
    tol : float, default=1e-4
        Directions in which the standardised features have a smaller deviation within classes are
        ignored, with a CollinearWarning.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns that the model uses as features instead of the columns. They are
        computed within the sweep; the matrix of features is never stored.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The sorted class labels.
    scalings_ : array of shape (d, n_components)
        The directions, each of length 1. For two classes, the direction points from the first class
        to the second.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of S_W^-1 S_B: the criterion J of each direction alone.
    within_ : array of shape (d, d)
        S_W (4.40).
    between_ : array of shape (d, d)
        S_B (4.46).
    total_ : array of shape (d, d)
        S_T = S_W + S_B (4.45).
    means_ : array of shape (K, d)
        Class means.
    priors_ : array of shape (K,)
        Prior probabilities.
    threshold_ : float
        For two classes and one direction: where the decision changes between the projected class
        means; NaN if it does not change there.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import FisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FisherDiscriminant().fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> round(model.score(X, y), 2)
    0.97
    """

    scalings_: Array
    within_: Array
    between_: Array
    means_: Array
    _per_class = True
    _n_features_out: int
    _projected_covariances: list[Array]

    def __init__(
        self,
        n_components: int | None = None,
        *,
        priors: Any = None,
        tol: float = 1e-4,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.n_components = n_components
        self.priors = priors
        self.tol = tol
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def transform(self, X: Any) -> Array:
        """Project rows on the directions, w'x.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to project.

        Returns
        -------
        projections : array of shape (N, n_components)
            The projected rows.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        W = np.column_stack([np.zeros(self._n_features_out), self.scalings_.T])
        return outputs(X, Activation.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)

    def criterion(self, W: Any = None) -> float:
        """Fisher's criterion of one or more directions, on the training rows.

        For two classes and one direction w, J(w) = (m_2 - m_1)^2 / (s_1^2 + s_2^2) of the
        projection (4.25), (4.26); otherwise J(W) = Tr[(W S_W W')^-1 W S_B W'] (4.50), (4.51).

        Parameters
        ----------
        W : array of shape (d,) or (n, d), optional
            Directions; by default those of the fit, which maximise J.

        Returns
        -------
        J : float
            The criterion.
        """
        check_is_fitted(self)
        W = self.scalings_.T if W is None else np.atleast_2d(np.asarray(W, dtype=np.float64))
        if W.ndim != 2 or W.shape[1] != len(self.scalings_):
            raise ValueError(f"W must have {len(self.scalings_)} columns, got shape {W.shape}")
        within = W @ self.within_ @ W.T
        if len(self.classes_) == 2 and len(W) == 1:
            apart = W @ (self.means_[1] - self.means_[0])
            return float((apart**2)[0] / within[0, 0])
        return float(np.trace(np.linalg.solve(within, W @ self.between_ @ W.T)))

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled projections from the fitted Gaussians.

        Parameters
        ----------
        n : int, default=1
            Number of projected rows.
        random_state : int, RandomState or None, default=None
            Seed or generator.

        Returns
        -------
        projections : array of shape (n, n_components)
            Projected rows.
        y : array of shape (n,)
            Their class labels.
        """
        check_is_fitted(self)
        means, size = self.means_ @ self.scalings_, self._n_features_out
        roots = [closed_form.covariance_root(C) for C in self._projected_covariances]

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            return means[k] + rng.standard_normal((m, size)) @ roots[k].T

        return draw_rows(self, n, random_state, rows, n_columns=size)

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            check_number(self.n_components, "n_components", low=1, whole=True)
        check_number(self.tol, "tol", low=0)

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        within, between = moments.within, moments.between
        most = max(1, min(len(classes) - 1, len(within)))
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                "n_components cannot be larger than min(n_features, n_classes - 1): "
                f"{self.n_components} > {most}"
            )
        values, V = self._directions(moments, self.n_components or most)
        means = moments.mean @ V
        covariances = _projected_covariances(moments, V)
        factors = [linalg.cholesky(C, lower=True) for C in covariances]
        A = np.stack([linalg.solve_triangular(L, V.T, lower=True) for L in factors])
        log_roots = np.array([np.log(np.diag(L)).sum() for L in factors])
        threshold = np.nan
        if len(classes) == 2:
            threshold = _threshold(means[:, 0], [C[0, 0] for C in covariances], priors)
        return {
            "scalings_": V,
            "eigenvalues_": values,
            "within_": within,
            "between_": between,
            "total_": within + between,
            "means_": moments.mean,
            "priors_": priors,
            "threshold_": threshold,
            "_projected_covariances": covariances,
            "_quadratic": (moments.mean, A, closed_form.log_priors(priors) - log_roots),
            "_n_features_out": V.shape[1],
        }

    def _directions(self, moments: Moments, count: int) -> tuple[Array, Array]:
        """Eigenvectors of S_W^-1 S_B with the largest eigenvalues   (4.30), (4.51)"""
        whitening = closed_form.whiten(moments.within / moments.total, self.tol)
        if whitening.rank < len(whitening.scale):
            warnings.warn(
                f"within classes the {len(whitening.scale)} columns vary in {whitening.rank} "
                "directions only: the others are ignored.",
                CollinearWarning,
                stacklevel=6,
            )
        apart = np.sqrt(moments.n / moments.total)[:, None] * (moments.mean - moments.overall)
        if whitening.rank:
            _, size, Vt = linalg.svd(whitening.transform_rows(apart), full_matrices=False)
            V = whitening.back_transform(Vt[:count].T)
        else:  # no variation within classes: the directions are those between the means
            _, size, Vt = linalg.svd(apart, full_matrices=False)
            V = Vt[:count].T  # any direction if the means are equal, as for one row of a stream
        V = V / np.maximum(np.linalg.norm(V, axis=0), closed_form.TINY)
        if len(moments.n) == 2:
            V = V * np.where((moments.mean[1] - moments.mean[0]) @ V < 0, -1.0, 1.0)
        return size[:count] ** 2, V


def _projected_covariances(moments: Moments, V: Array) -> list[Array]:
    """The covariance of each class in the projection. A singular one, as of a class with one row,
    gets a small share of the variances within all classes."""
    variances = np.diag(V.T @ moments.within @ V) / moments.total
    floor = 1e-9 * np.diag(np.maximum(variances, closed_form.TINY**0.25))
    found = []
    for n, S in zip(moments.n, moments.products, strict=True):
        C = V.T @ S @ V / n if n else np.eye(V.shape[1])
        singular = linalg.eigvalsh(C)[0] <= 1e-12 * max(np.trace(C), floor.max())
        found.append(C + floor if n and singular else C)
    return found


def _threshold(means: Array, variances: list[float], priors: Array) -> float:
    """Where P(C_1) N(y; m_1, v_1) = P(C_2) N(y; m_2, v_2) between the means; NaN if nowhere."""
    (m, n), (v, u) = means, variances
    # a y^2 + b y + c = 0 for the difference of the log densities, with the origin at the midpoint
    # of the means to avoid cancellation
    middle = (m + n) / 2
    m, n = m - middle, n - middle
    a, b = 1 / v - 1 / u, -2 * (m / v - n / u)
    ratio = max(priors[0], closed_form.TINY) / max(priors[1], closed_form.TINY)
    c = m**2 / v - n**2 / u + np.log(v / u) - 2 * np.log(ratio)
    discriminant = b**2 - 4 * a * c
    if discriminant < 0 or b == 0 == a:
        return np.nan
    q = -(b + np.copysign(np.sqrt(discriminant), b)) / 2
    roots = ([q / a] if a else []) + ([c / q] if q else [])
    between = [y for y in roots if min(m, n) <= y <= max(m, n)]
    return float(between[0] + middle) if between else np.nan
