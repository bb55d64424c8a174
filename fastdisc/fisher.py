"""Fisher's discriminant: directions along which class means lie far apart for the spread within classes."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _validate
from ._base import number
from ._generative import FromMoments, Scores, draw
from ._kernels import Link
from ._solvers import closed_form
from ._sweep import outputs
from .exceptions import CollinearWarning


class FisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Scores, FromMoments):
    """Fisher's linear discriminant for two classes (4.30) and for K (4.51), as a transformer and a classifier.

    `transform` projects rows on at most K - 1 directions. To classify, a Gaussian is fitted to each class's projection: for two
    classes and one direction that makes a threshold, `threshold_`, where the two densities times the priors are equal.

    Parameters
    ----------
    n_components : int, optional
        Directions: at most, and without it, min(K - 1, d).
    priors : array of shape (K,), optional
        For the classification; instead of the classes' shares of the sample.
    tol : float, default=1e-4
        Directions in which the standardised features vary by less within classes are left out, with a CollinearWarning.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_ : array of shape (K,)
    scalings_ : array of shape (d, n_components)
        The directions, each of length 1; for two classes it points from the first class to the second.
    eigenvalues_ : array of shape (n_components,)
        J of each direction alone, of S_W^-1 S_B.
    within_, between_, total_ : arrays of shape (d, d)
        S_W (4.40), S_B (4.46) and S_T = S_W + S_B (4.45).
    means_ : array of shape (K, d)
    priors_ : array of shape (K,)
    threshold_ : float
        Two classes and one direction: where the decision changes between the means of the projection; NaN if it does not.
    n_features_in_, feature_names_in_

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

    _own = True

    def __init__(self, n_components=None, *, priors=None, tol=1e-4, basis=None, backend=None, n_threads=None):
        self.n_components = n_components
        self.priors = priors
        self.tol = tol
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def transform(self, X):
        """The projections of rows, y = w'x, (N, n_components).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        check_is_fitted(self)
        X = _validate.features(self, X, reset=False)
        W = np.column_stack([np.zeros(self._n_features_out), self.scalings_.T])
        return outputs(X, Link.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)

    def criterion(self, W=None):
        """Fisher's criterion of one or more directions, on the data learnt from.

        For two classes and one direction w, J(w) = (m_2 - m_1)^2 / (s_1^2 + s_2^2) of the projection (4.25), (4.26); otherwise
        J(W) = Tr[(W S_W W')^-1 W S_B W'] (4.50), (4.51).

        Parameters
        ----------
        W : array of shape (d,) or (n, d), optional
            Without it, the directions that were found: no others have a larger J.
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

    def sample(self, n=1, random_state=None):
        """Draw labelled projections from the fitted Gaussians: (n, n_components) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """
        check_is_fitted(self)
        means, roots = self.means_ @ self.scalings_, [closed_form.root(C) for C in self._spreads]
        size = self._n_features_out
        return draw(self, n, random_state, lambda k, m, rng: means[k] + rng.standard_normal((m, size)) @ roots[k].T, columns=size)

    def _check_parameters(self):
        if self.n_components is not None:
            number(self.n_components, "n_components", low=1, whole=True)
        number(self.tol, "tol", low=0)

    def _solve(self, moments, classes, priors):
        within, between = moments.within, moments.between
        most = max(1, min(len(classes) - 1, len(within)))
        if self.n_components is not None and self.n_components > most:
            raise ValueError(f"n_components cannot be larger than min(n_features, n_classes - 1): {self.n_components} > {most}")
        values, V = self._directions(moments, self.n_components or most)
        means = moments.mean @ V
        spreads = [
            self._spread(V.T @ S @ V / n, within, V, moments.total) if n else np.eye(V.shape[1])
            for n, S in zip(moments.n, moments.S, strict=True)
        ]
        factors = [linalg.cholesky(C, lower=True) for C in spreads]
        A = np.stack([linalg.solve_triangular(L, V.T, lower=True) for L in factors])
        c = closed_form.log_priors(priors) - np.array([np.log(np.diag(L)).sum() for L in factors])
        two = len(classes) == 2
        return {
            "scalings_": V,
            "eigenvalues_": values,
            "within_": within,
            "between_": between,
            "total_": within + between,
            "means_": moments.mean,
            "priors_": priors,
            "threshold_": threshold(means[:, 0], [C[0, 0] for C in spreads], priors) if two else np.nan,
            "_spreads": spreads,
            "_quadratic": (moments.mean, A, c),
            "_n_features_out": V.shape[1],
        }

    def _directions(self, moments, count):
        """Eigenvectors of S_W^-1 S_B, of the largest eigenvalues first   (4.30), (4.51)"""
        whitening = closed_form.whiten(moments.within / moments.total, self.tol)
        if whitening.rank < len(whitening.scale):
            warnings.warn(
                f"within classes the {len(whitening.scale)} columns vary in {whitening.rank} directions only: the others are "
                "left out.",
                CollinearWarning,
                stacklevel=7,
            )
        apart = np.sqrt(moments.n / moments.total)[:, None] * (moments.mean - moments.overall)
        if whitening.rank:
            _, size, Vt = linalg.svd(whitening.rows(apart), full_matrices=False)
            V = whitening.columns(Vt[:count].T)
        else:  # nothing varies within classes: the directions are those between the means
            _, size, Vt = linalg.svd(apart, full_matrices=False)
            V = Vt[:count].T  # where the means are equal too, as for the first row of a stream, any direction does
        V = V / np.maximum(np.linalg.norm(V, axis=0), closed_form.TINY)
        if len(moments.n) == 2:
            V = V * np.where((moments.mean[1] - moments.mean[0]) @ V < 0, -1.0, 1.0)
        return size[:count] ** 2, V

    def _spread(self, C, within, V, total):
        """A class's covariance in the projection; where it has none (a class with one row), a little of that of all classes."""
        floor = 1e-9 * np.diag(np.maximum(np.diag(V.T @ within @ V) / total, closed_form.TINY**0.25))
        return C + floor if linalg.eigvalsh(C)[0] <= 1e-12 * max(np.trace(C), floor.max()) else C


def threshold(means, variances, priors):
    """Where P(C_1) N(y; m_1, v_1) = P(C_2) N(y; m_2, v_2) between the means; NaN if one class wins all the way."""
    (m, n), (v, u) = means, variances
    # a y^2 + b y + c = 0 for the difference of the log densities, about the middle so that no digits cancel
    middle = (m + n) / 2
    m, n = m - middle, n - middle
    a, b = 1 / v - 1 / u, -2 * (m / v - n / u)
    c = m**2 / v - n**2 / u + np.log(v / u) - 2 * np.log(max(priors[0], closed_form.TINY) / max(priors[1], closed_form.TINY))
    root = b**2 - 4 * a * c
    if root < 0 or b == 0 == a:
        return np.nan
    q = -(b + np.copysign(np.sqrt(root), b)) / 2
    found = [y for y in ([q / a] if a else []) + ([c / q] if q else []) if min(m, n) <= y <= max(m, n)]
    return float(found[0] + middle) if found else np.nan
