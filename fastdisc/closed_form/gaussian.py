"""Gaussian classes: a linear discriminant with a shared covariance, a quadratic one otherwise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._base import LinearClassifier, Posteriors, fitted
from .._data.moments import Moments
from .._data.outputs import outputs
from .._kernels import Activation
from .._kernels.contract import Array
from .._solvers import closed_form
from .._validation.arrays import check_rows
from .._validation.parameters import check_number
from ..exceptions import CollinearWarning
from .base import QuadraticScores, draw_rows
from .gaussian_base import GaussianFromMoments


class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Posteriors,
    GaussianFromMoments,
    LinearClassifier,
):
    """Gaussian classes with a shared covariance: weights and posteriors in closed form
    (10.11)-(10.15), from one pass over the data.

    The parameters that scikit-learn has too mean what they mean there. If the covariance is
    singular (constant or collinear columns, too few rows), directions without variation within
    classes are ignored, with a CollinearWarning.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        As in scikit-learn. All three use the same moments. "svd" ignores directions without
        variation, and computes weights relative to the mean of the data, so that scores keep their
        digits if the data are far from 0. "lsqr" and "eigen" allow shrinkage; "lsqr" has no
        `transform`.
    shrinkage : "auto", float or None, default=None
        From 0 to 1; "auto" for Ledoit-Wolf shrinkage, from the same pass.
    priors : array of shape (K,), optional
        Prior probabilities; by default the shares of the classes in the sample.
    n_components : int, optional
        Number of columns of `transform`: at most, and by default, min(K - 1, d).
    store_covariance : bool, default=False
        With "svd": whether to store `covariance_`.
    tol : float, default=1e-4
        With "svd": directions in which the standardised features have a smaller deviation are
        ignored.
    covariance_estimator : estimator, optional
        An estimator with `fit` and `covariance_`, for "lsqr" and "eigen". It is fitted to the rows
        of each class.
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
    coef_ : array of shape (1, d) or (K, d)
        Weights of the features; a single row for two classes.
    intercept_ : array of shape (1,) or (K,)
        Intercepts.
    means_ : array of shape (K, d)
        Class means.
    priors_ : array of shape (K,)
        Prior probabilities.
    xbar_ : array of shape (d,)
        The mean of the class means, weighted by the priors.
    scalings_ : array of shape (d, rank)
        Discriminant directions in columns. Not with "lsqr".
    covariance_ : array of shape (d, d)
        The covariance within classes. With "svd" only if `store_covariance`.
    explained_variance_ratio_ : array of shape (n_components,)
        Share of each direction in the variance between classes. Not with "lsqr".
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.98
    >>> model.transform(X).shape
    (150, 2)
    """

    xbar_: Array
    scalings_: Array
    _n_features_out: int

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def transform(self, X: Any) -> Array:
        """Project rows on the discriminant directions.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to project.

        Returns
        -------
        projections : array of shape (N, n_components)
            The discriminant coordinates.
        """
        if self.solver == "lsqr":
            raise NotImplementedError(
                "transform not implemented for 'lsqr' solver (use 'svd' or 'eigen')."
            )
        fitted(self)
        X = check_rows(self, X, reset=False)
        T = self.scalings_[:, : self._n_features_out].T
        origin = -T @ self.xbar_ if self.solver == "svd" else np.zeros(len(T))
        W = np.column_stack([origin, T])
        return outputs(X, Activation.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled rows from the model.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Seed or generator.

        Returns
        -------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their class labels.
        """
        fitted(self)
        root = closed_form.covariance_root(self._covariance(self._moments, self.priors_))

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            return self.means_[k] + rng.standard_normal((m, len(root))) @ root.T

        return draw_rows(self, n, random_state, rows)

    # --- solvers ------------------------------------------------------------------------------

    @property
    def _per_class(self) -> bool:
        uses_covariance = self.solver != "svd" or self.store_covariance
        weighted = self.priors is not None and uses_covariance
        return self.shrinkage == "auto" or self.covariance_estimator is not None or weighted

    def _check_parameters(self) -> None:
        self._check_shared(("svd", "lsqr", "eigen"))
        if self.n_components is not None:
            check_number(self.n_components, "n_components", low=1, whole=True)

    def _check_row_count(self, n: int, K: int) -> None:
        if n <= K:
            raise ValueError(
                "The number of samples must be more than the number of classes: "
                f"{n} rows, {K} classes"
            )

    def _covariance(self, moments: Moments, weights: Array) -> Array:
        """The covariance within classes, (d, d): pooled, or the weighted mean of those of the
        classes."""
        if not moments.per_class:
            return self._covariance_of(moments.total, moments.within)
        some = moments.n > 0
        parts = zip(weights[some], moments.n[some], moments.products[some], strict=True)
        zero = np.zeros_like(moments.within)
        return sum((w * self._covariance_of(n, S) for w, n, S in parts), zero)

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        most = min(len(classes) - 1, moments.M.shape[1])
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                "n_components cannot be larger than min(n_features, n_classes - 1): "
                f"{self.n_components} > {most}"
            )
        n_components = most if self.n_components is None else self.n_components
        weights = self._class_shares(moments) if self.priors is None else priors
        found = {
            "means_": moments.mean,
            "priors_": priors,
            "xbar_": priors @ moments.mean,
            "_n_features_out": n_components,
        }
        solvers = {"svd": self._by_svd, "lsqr": self._by_lsqr, "eigen": self._by_eigen}
        found |= solvers[self.solver](moments, weights, found, n_components)
        coef = found.pop("coef")
        intercept = found.pop("intercept") + closed_form.log_priors(priors)
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return found | {"coef_": coef, "intercept_": intercept}

    def _by_svd(
        self, moments: Moments, weights: Array, found: dict[str, Any], n_components: int
    ) -> dict[str, Any]:
        """1. Whiten the rows within classes. 2. Rotate to the principal directions of the means.
        3. Compute distances there."""
        total, K = moments.total, len(moments.n)
        whitening = closed_form.whiten(moments.within / total, self.tol)  # 1
        if whitening.rank < len(whitening.scale):
            self._warn_rank(whitening.rank, moments)
        apart = found["means_"] - found["xbar_"]
        weighted = np.sqrt(total * found["priors_"] / max(1, K - 1))[:, None] * apart
        _, size, Vt = linalg.svd(whitening.transform_rows(weighted), full_matrices=False)  # 2
        rank = int((size > self.tol * size[:1]).sum())
        scalings = whitening.back_transform(Vt[:rank].T)
        Z = apart @ scalings  # 3
        coef = Z @ scalings.T
        ratio = size**2 / max((size**2).sum(), closed_form.TINY)
        more = {"covariance_": self._covariance(moments, weights)} if self.store_covariance else {}
        return more | {
            "scalings_": scalings,
            "explained_variance_ratio_": ratio[:n_components],
            "coef": coef,
            "intercept": -(Z**2).sum(axis=1) / 2 - coef @ found["xbar_"],
        }

    def _by_lsqr(
        self, moments: Moments, weights: Array, found: dict[str, Any], n_components: int
    ) -> dict[str, Any]:
        C, means = self._covariance(moments, weights), found["means_"]
        coef = closed_form.solve_symmetric(C, means.T).T
        return {"covariance_": C, "coef": coef, "intercept": -(means * coef).sum(axis=1) / 2}

    def _by_eigen(
        self, moments: Moments, weights: Array, found: dict[str, Any], n_components: int
    ) -> dict[str, Any]:
        C, means = self._covariance(moments, weights), found["means_"]
        if self.covariance_estimator is not None:
            total = moments.within + moments.between
        else:
            total = moments.about(np.broadcast_to(moments.overall, means.shape)).products.sum(
                axis=0
            )
        between = self._covariance_of(moments.total, total) - C
        try:
            values, V = linalg.eigh(between, C)
        except linalg.LinAlgError:
            whitening = closed_form.whiten(C, self.tol)
            self._warn_rank(whitening.rank, moments)
            T = whitening.back_transform(np.eye(whitening.rank))
            values, V = linalg.eigh(T.T @ between @ T)
            V = T @ V
        order = np.argsort(values)[::-1]
        V = V[:, order]
        coef = means @ V @ V.T
        return {
            "covariance_": C,
            "scalings_": V,
            "explained_variance_ratio_": (values[order] / (values.sum() or 1.0))[:n_components],
            "coef": coef,
            "intercept": -(means * coef).sum(axis=1) / 2,
        }

    def _warn_rank(self, rank: int, moments: Moments) -> None:
        d = moments.M.shape[1]
        constant = int((np.diag(moments.within) <= 0).sum())
        warnings.warn(
            f"within classes the {d} columns vary in {rank} directions only ({constant} are "
            "constant there): the others are ignored. Use solver='eigen' with shrinkage to include "
            "them.",
            CollinearWarning,
            stacklevel=7,
        )


class QuadraticDiscriminantAnalysis(QuadraticScores, GaussianFromMoments):
    """Gaussian classes with a covariance each: a quadratic discriminant (10.34), from one pass over
    the data.

    The parameters that scikit-learn has too mean what they mean there. If the covariance of a class
    has directions with a variance of `tol` or less (too few rows, constant or collinear columns),
    `tol` is used for these, with a CollinearWarning; scikit-learn raises an error.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        "eigen" allows shrinkage, "svd" uses `reg_param`.
    shrinkage : "auto", float or None, default=None
        From 0 to 1; "auto" for Ledoit-Wolf shrinkage, from the same pass.
    priors : array of shape (K,), optional
        Prior probabilities; by default the shares of the classes in the sample.
    reg_param : float, default=0.0
        Covariances become (1 - reg_param) S + reg_param I.
    store_covariance : bool, default=False
        Whether to store `covariance_`.
    tol : float, default=1e-4
        The smallest variance.
    covariance_estimator : estimator, optional
        An estimator with `fit` and `covariance_`, for "eigen". It is fitted to the rows of each
        class.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The sorted class labels.
    means_ : array of shape (K, d)
        Class means.
    priors_ : array of shape (K,)
        Prior probabilities.
    covariance_ : list of K arrays of shape (d, d)
        The covariances of the classes, only with `store_covariance`.
    rotations_ : list of K arrays of shape (d, d)
        The principal directions of each class, in columns.
    scalings_ : list of K arrays of shape (d,)
        The variances along these directions.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> round(QuadraticDiscriminantAnalysis().fit(X, y).score(X, y), 2)
    0.98
    """

    rotations_: list[Array]
    scalings_: list[Array]
    _per_class = True

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled rows from the model.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Seed or generator.

        Returns
        -------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their class labels.
        """

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            u = rng.standard_normal((m, self.n_features_in_)) * np.sqrt(self.scalings_[k])
            return self.means_[k] + u @ self.rotations_[k].T

        return draw_rows(self, n, random_state, rows)

    def _check_parameters(self) -> None:
        self._check_shared(("svd", "eigen"))
        if check_number(self.reg_param, "reg_param", low=0) > 1:
            raise ValueError(f"reg_param must be a number from 0 to 1, got {self.reg_param!r}")

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        scalings, rotations, singular = [], [], []
        for n, S, label in zip(moments.n, moments.products, classes, strict=True):
            C = self._covariance_of(n, S) if n else np.eye(moments.M.shape[1])
            values, V = closed_form.principal_axes(C)
            if self.solver == "svd":
                values = (1 - self.reg_param) * values + self.reg_param
            if n and values[-1] <= self.tol:
                singular.append(label)
                values = np.maximum(values, max(self.tol, closed_form.TINY))
            scalings.append(values)
            rotations.append(V)
        if singular:
            self._warn_singular(singular)
        axes = list(zip(rotations, scalings, strict=True))
        A = np.stack([closed_form.triangular_factor((V / np.sqrt(v)).T) for V, v in axes])
        log_determinants = np.array([np.log(values).sum() for values in scalings])
        found = {
            "means_": moments.mean,
            "priors_": priors,
            "scalings_": scalings,
            "rotations_": rotations,
        }
        if self.store_covariance:
            found["covariance_"] = [(v * V) @ V.T for V, v in axes]
        c = closed_form.log_priors(priors) - log_determinants / 2
        return found | {"_quadratic": (moments.mean, A, c)}

    def _warn_singular(self, labels: list[Any]) -> None:
        names = ", ".join(str(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
        advice = "shrinkage" if self.solver == "eigen" else "reg_param"
        warnings.warn(
            f"the covariance of class {names} is not full rank: its smallest variances are set to "
            f"tol={self.tol:g}. Increase {advice}.",
            CollinearWarning,
            stacklevel=6,
        )
