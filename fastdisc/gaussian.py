"""Gaussian classes: with one covariance for all, a linear discriminant; with one each, a quadratic one."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone

from . import _validate
from ._base import LinearClassifier, Posteriors, choice, fitted, number
from ._generative import FromMoments, Scores, draw
from ._kernels import CSR, Link, Moment
from ._solvers import closed_form
from ._sweep import outputs
from .exceptions import CollinearWarning


class Covariances(FromMoments):
    """What the two share: covariances from moments, plain, shrunk, or of somebody else's making."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self._moments_only("partial_fit")
        return super().partial_fit(X, y, classes, sample_weight)

    def forget(self, X, y, sample_weight=None):
        self._moments_only("forget")
        return super().forget(X, y, sample_weight)

    def merge(self, other):
        self._moments_only("merge")
        return super().merge(other)

    partial_fit.__doc__, forget.__doc__, merge.__doc__ = (
        getattr(FromMoments, name).__doc__ for name in ("partial_fit", "forget", "merge")
    )

    def _moments_only(self, verb):
        if self.covariance_estimator is not None:
            raise ValueError(f"{verb} has no covariance_estimator: that needs all rows at once")

    @property
    def _kind(self):
        return Moment.QUARTIC if self.shrinkage == "auto" else Moment.SCATTER

    def _gather(self, X, r, s, K, parts=1):
        moments = super()._gather(X, r, s, K, parts)
        if self.covariance_estimator is None:
            return moments
        if parts > 1:
            self._moments_only("cross_val_from_moments")
        if isinstance(X, CSR):
            raise ValueError("covariance_estimator needs dense X")
        covariances = [clone(self.covariance_estimator).fit(X[r == k].astype(np.float64)) for k in range(K)]
        if not all(hasattr(found, "covariance_") for found in covariances):
            raise ValueError(f"{type(self.covariance_estimator).__name__} does not have a covariance_ attribute")
        return moments._replace(S=np.stack([n * found.covariance_ for n, found in zip(moments.n, covariances, strict=True)]))

    def _shrunk(self, n, S):
        """The covariance of sums of products S over rows of weight n."""
        if self.shrinkage == "auto":
            return closed_form.ledoit_wolf(n, S)
        return S / n if self.shrinkage is None else closed_form.shrunk(S / n, self.shrinkage)

    def _check_shared(self, solvers):
        choice(self.solver, "solver", solvers)
        if self.shrinkage not in ("auto", None) and not 0 <= number(self.shrinkage, "shrinkage", low=0) <= 1:
            raise ValueError(f"shrinkage must be a number from 0 to 1, 'auto' or None, got {self.shrinkage!r}")
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError("shrinkage not supported with 'svd' solver: take solver='eigen'")
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError("covariance_estimator is not supported with solver='svd'; take solver='eigen'")
        if self.shrinkage is not None and self.covariance_estimator is not None:
            raise ValueError("covariance_estimator and shrinkage: only one of the two can be set")
        choice(self.store_covariance, "store_covariance", (True, False))
        number(self.tol, "tol", low=0)


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Posteriors, Covariances, LinearClassifier):
    """Gaussian classes with one covariance: weights and posteriors in closed form (10.11)-(10.15), from one pass over the data.

    scikit-learn's parameters mean what they mean there. Where the covariance has no inverse (constant or dependent columns, too
    few rows), directions without variation within classes are left out, with a CollinearWarning.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        As in scikit-learn. All three work on the same moments: "svd" leaves out directions without variation, and its weights
        are for means near 0, so that scores keep their digits however far the data are from there; "lsqr" and "eigen" allow
        shrinkage, "lsqr" has no `transform`.
    shrinkage : "auto", float or None, default=None
        From 0 to 1; "auto" is that of Ledoit and Wolf, from the same pass.
    priors : array of shape (K,), optional
        Instead of the classes' shares of the sample.
    n_components : int, optional
        For `transform`: at most min(K - 1, d).
    store_covariance : bool, default=False
        With "svd": keep `covariance_`.
    tol : float, default=1e-4
        For "svd": directions in which the standardised features vary by less are left out.
    covariance_estimator : estimator, optional
        With `fit` and `covariance_`, for "lsqr" and "eigen"; it is given the rows of each class.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    means_ : array of shape (K, d)
    priors_ : array of shape (K,)
    xbar_ : array of shape (d,)
    scalings_ : array of shape (d, rank)
        Not with "lsqr".
    covariance_ : array of shape (d, d)
    explained_variance_ratio_ : array
    n_features_in_, feature_names_in_

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

    def __init__(
        self,
        solver="svd",
        shrinkage=None,
        priors=None,
        n_components=None,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
        basis=None,
        backend=None,
        n_threads=None,
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

    def transform(self, X):
        """The discriminant coordinates of rows, (N, n_components).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        if self.solver == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        fitted(self)
        X = _validate.features(self, X, reset=False)
        T = self.scalings_[:, : self._n_features_out].T
        origin = -T @ self.xbar_ if self.solver == "svd" else np.zeros(len(T))
        return outputs(X, Link.IDENTITY, np.column_stack([origin, T]), backend=self.backend, n_threads=self.n_threads)

    def sample(self, n=1, random_state=None):
        """Draw labelled rows from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """
        fitted(self)
        root = closed_form.root(self._covariance(self._moments, self.priors_))
        return draw(self, n, random_state, lambda k, m, rng: self.means_[k] + rng.standard_normal((m, len(root))) @ root.T)

    # --- solvers -----------------------------------------------------------------------------------------------------------

    @property
    def _own(self):
        weighted = self.priors is not None and (self.solver != "svd" or self.store_covariance)
        return self.shrinkage == "auto" or self.covariance_estimator is not None or weighted

    def _check_parameters(self):
        self._check_shared(("svd", "lsqr", "eigen"))
        if self.n_components is not None:
            number(self.n_components, "n_components", low=1, whole=True)

    def _check_rows(self, n, K):
        if n <= K:
            raise ValueError(f"The number of samples must be more than the number of classes: {n} rows, {K} classes")

    def _covariance(self, moments, weights):
        """The covariance within classes, (d, d): pooled, or each class's by its weight."""
        if not moments.own:
            return self._shrunk(moments.total, moments.within)
        some = moments.n > 0
        return sum(w * self._shrunk(n, S) for w, n, S in zip(weights[some], moments.n[some], moments.S[some], strict=True))

    def _solve(self, moments, classes, priors):
        most = min(len(classes) - 1, moments.M.shape[1])
        if self.n_components is not None and self.n_components > most:
            raise ValueError(f"n_components cannot be larger than min(n_features, n_classes - 1): {self.n_components} > {most}")
        components = most if self.n_components is None else self.n_components
        weights = self._shares(moments) if self.priors is None else priors
        found = {"means_": moments.mean, "priors_": priors, "xbar_": priors @ moments.mean, "_n_features_out": components}
        solve = {"svd": self._by_svd, "lsqr": self._by_lsqr, "eigen": self._by_eigen}[self.solver]
        found |= solve(moments, weights, found, components)
        coef, intercept = found.pop("coef"), found.pop("intercept") + closed_form.log_priors(priors)
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return found | {"coef_": coef, "intercept_": intercept}

    def _by_svd(self, moments, weights, found, components):
        """1. whiten the rows within classes, 2. rotate to the main directions of the means, 3. distances there."""
        total, K = moments.total, len(moments.n)
        whitening = closed_form.whiten(moments.within / total, self.tol)
        if whitening.rank < len(whitening.scale):
            self._warn_of(whitening.rank, moments)
        apart = found["means_"] - found["xbar_"]
        weighted = np.sqrt(total * found["priors_"] / max(1, K - 1))[:, None] * apart
        _, size, Vt = linalg.svd(whitening.rows(weighted), full_matrices=False)
        rank = int((size > self.tol * size[:1]).sum())
        scalings = whitening.columns(Vt[:rank].T)
        Z = apart @ scalings
        coef = Z @ scalings.T
        ratio = size**2 / max((size**2).sum(), closed_form.TINY)
        more = {"covariance_": self._covariance(moments, weights)} if self.store_covariance else {}
        return more | {
            "scalings_": scalings,
            "explained_variance_ratio_": ratio[:components],
            "coef": coef,
            "intercept": -(Z**2).sum(axis=1) / 2 - coef @ found["xbar_"],
        }

    def _by_lsqr(self, moments, weights, found, components):
        C, means = self._covariance(moments, weights), found["means_"]
        coef = closed_form.solve_symmetric(C, means.T).T
        return {"covariance_": C, "coef": coef, "intercept": -(means * coef).sum(axis=1) / 2}

    def _by_eigen(self, moments, weights, found, components):
        C, means = self._covariance(moments, weights), found["means_"]
        everything = moments.about(np.broadcast_to(moments.overall, means.shape)).S.sum(axis=0)
        if self.covariance_estimator is not None:
            everything = moments.within + moments.between
        between = self._shrunk(moments.total, everything) - C
        try:
            values, V = linalg.eigh(between, C)
        except linalg.LinAlgError:
            whitening = closed_form.whiten(C, self.tol)
            self._warn_of(whitening.rank, moments)
            T = whitening.columns(np.eye(whitening.rank))
            values, V = linalg.eigh(T.T @ between @ T)
            V = T @ V
        order = np.argsort(values)[::-1]
        V = V[:, order]
        coef = means @ V @ V.T
        return {
            "covariance_": C,
            "scalings_": V,
            "explained_variance_ratio_": (values[order] / (values.sum() or 1.0))[:components],
            "coef": coef,
            "intercept": -(means * coef).sum(axis=1) / 2,
        }

    def _warn_of(self, rank, moments):
        d = moments.M.shape[1]
        constant = int((np.diag(moments.within) <= 0).sum())
        warnings.warn(
            f"within classes the {d} columns vary in {rank} directions only ({constant} are constant there): the others are "
            "left out. Take solver='eigen' with shrinkage to use them.",
            CollinearWarning,
            stacklevel=7,
        )


class QuadraticDiscriminantAnalysis(Scores, Covariances):
    """Gaussian classes, each with its own covariance: a quadratic discriminant (10.34), from one pass over the data.

    scikit-learn's parameters mean what they mean there. Where a class's covariance has directions with a variance of `tol` or
    less (too few rows, constant or dependent columns), `tol` is taken for it, with a CollinearWarning; scikit-learn refuses.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        "eigen" allows shrinkage, "svd" takes `reg_param`.
    shrinkage : "auto", float or None, default=None
        From 0 to 1; "auto" is that of Ledoit and Wolf, from the same pass.
    priors : array of shape (K,), optional
        Instead of the classes' shares of the sample.
    reg_param : float, default=0.0
        Covariances become (1 - reg_param) S + reg_param I.
    store_covariance : bool, default=False
    tol : float, default=1e-4
        The least variance.
    covariance_estimator : estimator, optional
        With `fit` and `covariance_`, for "eigen"; it is given the rows of each class.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_ : array of shape (K,)
    means_ : array of shape (K, d)
    priors_ : array of shape (K,)
    covariance_ : list of K arrays of shape (d, d)
        With `store_covariance`.
    rotations_ : list of K arrays of shape (d, d)
        Main directions, in columns.
    scalings_ : list of K arrays of shape (d,)
        Variances along them.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> round(QuadraticDiscriminantAnalysis().fit(X, y).score(X, y), 2)
    0.98
    """

    _own = True

    def __init__(
        self,
        *,
        solver="svd",
        shrinkage=None,
        priors=None,
        reg_param=0.0,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
        backend=None,
        n_threads=None,
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

    def sample(self, n=1, random_state=None):
        """Draw labelled rows from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """

        def rows(k, m, rng):
            return (
                self.means_[k]
                + (rng.standard_normal((m, self.n_features_in_)) * np.sqrt(self.scalings_[k])) @ self.rotations_[k].T
            )

        return draw(self, n, random_state, rows)

    def _check_parameters(self):
        self._check_shared(("svd", "eigen"))
        if number(self.reg_param, "reg_param", low=0) > 1:
            raise ValueError(f"reg_param must be a number from 0 to 1, got {self.reg_param!r}")

    def _solve(self, moments, classes, priors):
        scalings, rotations, covariances, flat = [], [], [], []
        for n, S, label in zip(moments.n, moments.S, classes, strict=True):
            C = self._shrunk(n, S) if n else np.eye(moments.M.shape[1])
            values, V = closed_form.eigen(C)
            if self.solver == "svd":
                values = (1 - self.reg_param) * values + self.reg_param
            if n and values[-1] <= self.tol:
                flat.append(label)
                values = np.maximum(values, max(self.tol, closed_form.TINY))
            scalings.append(values)
            rotations.append(V)
            covariances.append((values * V) @ V.T)
        if flat:
            self._warn_of(flat)
        A = np.stack([closed_form.triangle((V / np.sqrt(values)).T) for V, values in zip(rotations, scalings, strict=True)])
        c = closed_form.log_priors(priors) - np.array([np.log(values).sum() for values in scalings]) / 2
        found = {"means_": moments.mean, "priors_": priors, "scalings_": scalings, "rotations_": rotations}
        found |= {"covariance_": covariances} if self.store_covariance else {}
        return found | {"_quadratic": (moments.mean, A, c)}

    def _warn_of(self, labels):
        names = ", ".join(str(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
        advice = "shrinkage" if self.solver == "eigen" else "reg_param"
        warnings.warn(
            f"the covariance of class {names} is not full rank: its least variances are taken as tol={self.tol:g}. "
            f"Raise {advice}.",
            CollinearWarning,
            stacklevel=6,
        )
