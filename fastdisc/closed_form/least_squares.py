"""Least squares for classification: targets of 0 and 1 in closed form, with a given penalty or with
one that is chosen by cross-validation."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Self

import numpy as np
from scipy import linalg

from .._base import LinearClassifier, all_or_nothing, fitted
from .._data.moments import Moments, merge_all
from .._data.outputs import outputs
from .._data.rows import Rows
from .._kernels import Activation
from .._kernels.contract import Array
from .._solvers import closed_form
from .._validation.arrays import check_rows, check_sample_weight
from .._validation.labels import check_priors, encode_labels
from .._validation.parameters import check_choice, check_number
from .._validation.splits import fold_codes
from .base import FromMoments

MAX_PROJECTED_CELLS, MIN_PROJECTED_ROWS = 1 << 20, 16  # of rows that are projected at a time


class LeastSquaresClassifier(FromMoments, LinearClassifier):
    """Least squares with 1-of-K targets (4.15)-(4.17), or with the targets that give Fisher's
    direction (4.31)-(4.38).

    The class with the largest of the K outputs is predicted. With a penalty, the model is that of
    scikit-learn's RidgeClassifier. Intercepts are not penalised.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the ridge penalty; 0 for the pseudo-inverse solution.
    targets : {"one_hot", "fisher"}, default="one_hot"
        "fisher", for two classes: N / N_1 for the first and -N / N_2 for the second.
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
        Weights of the features. For two classes, those of the second output minus those of the
        first.
    intercept_ : array of shape (1,) or (K,)
        Intercepts.
    priors_ : array of shape (K,)
        The shares of the classes in the sample.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LeastSquaresClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeastSquaresClassifier().fit(X, y)
    >>> model.predict_targets(X[:1]).sum().round(12)
    np.float64(1.0)
    """

    _per_class = True
    _weights: Array  # (K, d+1), or (1, d+1) for the targets "fisher"

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        targets: str = "one_hot",
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.alpha = alpha
        self.targets = targets
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def predict_targets(self, X: Any) -> Array:
        """The outputs, which are estimates of the targets (4.18)-(4.19).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to score.

        Returns
        -------
        outputs : array of shape (N, K)
            One output per class; they add up to 1 in each row. With targets="fisher", of shape (N,
            1).
        """
        fitted(self)
        X = check_rows(self, X, reset=False)
        return self._linear_outputs(X, self._weights)

    def with_priors(self, priors: Any) -> Self:
        """A copy for other prior probabilities of the classes: the rows of each class are weighted
        to match them.

        Parameters
        ----------
        priors : array of shape (K,)
            Prior probabilities, in the order of `classes_`.

        Returns
        -------
        model : LeastSquaresClassifier
            A new model.
        """
        fitted(self)
        model, moments = copy.copy(self), self._moments
        priors = check_priors(priors, self.classes_, self._class_shares(moments))
        factors = priors * moments.total / moments.n
        S = moments.products * factors[:, None, None]
        weighted = moments._replace(n=priors * moments.total, S=S)
        model.__dict__.update(self._solve(weighted, self.classes_, priors))
        return model

    def _linear_outputs(self, X: Rows, W: Array) -> Array:
        return outputs(X, Activation.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", low=0)
        check_choice(self.targets, "targets", ("one_hot", "fisher"))

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        is_fisher = self.targets == "fisher"
        if is_fisher and len(classes) != 2:
            raise ValueError(f"targets='fisher' is for two classes, y has {len(classes)}")
        weights = (fisher_weights if is_fisher else one_hot_weights)(moments, self.alpha)
        return _attributes(weights, is_fisher) | {"priors_": priors}


def one_hot_weights(
    moments: Moments, alpha: float, factors: tuple[Array, Array] | None = None
) -> Array:
    """(S_T + alpha I) w_k = n_k (m_k - m), as weights (K, d+1)   (4.16)

    `factors` are the eigenvalues and eigenvectors of S_T, if they are known.
    """
    n, overall = moments.n, moments.overall
    B = (n[:, None] * (moments.mean - overall)).T  # (d, K)
    if factors is None:
        W = _solve_total(moments, alpha, B)
    else:
        values, V = factors
        W = ((V.T @ B) * _inverses(values, alpha)[:, None]).T @ V.T
    return np.column_stack([n / moments.total - W @ overall, W])


def fisher_weights(moments: Moments, alpha: float) -> Array:
    """The weights (1, d+1) for the targets N / N_1 and -N / N_2   (4.37)"""
    n, mean, overall = moments.n, moments.mean, moments.overall
    if n.all():
        W = _solve_total(moments, alpha, moments.total * (mean[:1] - mean[1:]).T)
        output = np.zeros(1)
    else:  # one class alone: no direction, and that class is always predicted
        W = np.zeros((1, mean.shape[1]))
        output = np.array([closed_form.MIN_SCORE if n[1] else -closed_form.MIN_SCORE])
    return np.column_stack([output - W @ overall, W])


def _solve_total(moments: Moments, alpha: float, B: Array) -> Array:
    """(S_T + alpha I)^-1 B, transposed."""
    S = moments.within + moments.between
    S[np.diag_indices(len(S))] += alpha
    return closed_form.solve_symmetric(S, B).T


def _attributes(weights: Array, is_fisher: bool) -> dict[str, Any]:
    """The fitted attributes of some weights."""
    one = weights[1:] - weights[:1] if len(weights) == 2 else weights
    one = -weights if is_fisher else one
    return {"coef_": one[:, 1:].copy(), "intercept_": one[:, 0].copy(), "_weights": weights}


def _inverses(values: Array, alpha: float) -> Array:
    """1 / (eigenvalues + alpha), and 0 for directions without variation."""
    lifted = values + alpha
    is_positive = lifted > 1e-14 * max(values.max(), alpha, closed_form.TINY)
    return np.where(is_positive, 1 / np.maximum(lifted, closed_form.TINY), 0.0)


class LeastSquaresClassifierCV(LeastSquaresClassifier):
    """LeastSquaresClassifier with the alpha that has the best cross-validated score, which is
    computed exactly without further fits.

    One factorisation is used for all values of alpha. Leaving out one row divides its error by
    1 - its leverage; the moments of folds are subtracted from those of all rows.

    Parameters
    ----------
    alphas : array, default=(0.1, 1.0, 10.0)
        Values to try.
    cv : int, splitter or None, default=None
        None to leave out one row at a time; otherwise folds as in scikit-learn.
    scoring : {"accuracy", "squared_error"}, default="accuracy"
        The share of rows that are classified correctly, or minus the mean squared error of the
        outputs.
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
    alpha_ : float
        The best value; the largest of equally good ones.
    scores_ : array of shape (n_alphas,)
        The cross-validated score of each alpha.
    classes_, coef_, intercept_, priors_, n_features_in_, feature_names_in_
        As in LeastSquaresClassifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LeastSquaresClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeastSquaresClassifierCV(alphas=[0.01, 1.0, 100.0]).fit(X, y)
    >>> model.scores_.shape
    (3,)
    """

    is_function_of_moments = False  # held-out rows choose alpha

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        cv: Any = None,
        scoring: str = "accuracy",
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model from the moments of the classes, with the alpha of the best score.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Training rows.
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
            Row weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self.check_parameters()
        alphas = self._alpha_values()
        X = check_rows(self, X, reset=True, y=y)
        classes, r = encode_labels(y, X.shape[0])
        s = check_sample_weight(sample_weight, X.shape[0])
        if self.cv is None:
            moments = self._collect(X, r, s, len(classes))
            scores = self._leave_one_out(X, r, s, moments, alphas)
        else:
            moments, scores = self._cross_validate(X, r, s, len(classes), alphas)
        best = max(range(len(alphas)), key=lambda i: (scores[i], alphas[i]))
        self.alpha_, self.scores_ = float(alphas[best]), scores
        self.learn_moments(moments, classes)
        return self

    @property
    def partial_fit(self) -> NoReturn:  # type: ignore[override]
        """Not available: the score of an alpha on held-out rows is not a function of moments."""
        raise AttributeError(
            "LeastSquaresClassifierCV has no partial_fit: use LeastSquaresClassifier with alpha_"
        )

    def _alpha_values(self) -> Array:
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        valid = alphas.ndim == 1 and len(alphas) > 0
        if not (valid and (np.isfinite(alphas) & (alphas >= 0)).all()):
            raise ValueError(f"alphas must be numbers >= 0, got {self.alphas!r}")
        return alphas

    def _check_parameters(self) -> None:
        self._alpha_values()
        check_choice(self.scoring, "scoring", ("accuracy", "squared_error"))

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        weights = one_hot_weights(moments, self.alpha_)
        return _attributes(weights, is_fisher=False) | {"priors_": priors}

    def _total_score(self, Y: Array, r: Array, s: Array) -> float:
        """The weighted sum of the scores of rows with outputs Y."""
        s = np.broadcast_to(s, len(r))
        if self.scoring == "accuracy":
            return float(s @ (Y.argmax(axis=1) == r))
        E = Y.copy()
        E[np.arange(len(r)), r] -= 1
        return -float(s @ (E**2).mean(axis=1))

    def _leave_one_out(self, X: Rows, r: Array, s: Array, moments: Moments, alphas: Array) -> Array:
        """The score of each alpha. Without row t its error is e_t / (1 - h_t), with the leverage
        h_t = s_t (1 / n + u_t'(S_T + alpha I)^-1 u_t), u_t = x_t - m."""
        overall, total = moments.overall, moments.total
        values, V = linalg.eigh(moments.within + moments.between)
        values = np.maximum(values, 0)
        shares = moments.n / total
        B = V.T @ (moments.n[:, None] * (moments.mean - overall)).T
        W = np.column_stack([-V.T @ overall, V.T])
        targets = np.eye(len(moments.n))
        totals = np.zeros(len(alphas))
        step = max(MIN_PROJECTED_ROWS, MAX_PROJECTED_CELLS // X.shape[1])
        for lo in range(0, X.shape[0], step):
            rows = slice(lo, min(lo + step, X.shape[0]))
            weight = s[rows] if len(s) > 1 else s
            T, P = targets[r[rows]], self._linear_outputs(X.take(rows), W)  # P = (x - m)'V
            for i, alpha in enumerate(alphas):
                inverse = _inverses(values, alpha)
                leverage = weight * (1 / total + P**2 @ inverse)
                Y = shares + P @ (inverse[:, None] * B)
                E = (Y - T) / np.maximum(1 - leverage, 1e-12)[:, None]
                totals[i] += self._total_score(T + E, r[rows], weight)
        return totals / total

    def _cross_validate(
        self, X: Rows, r: Array, s: Array, K: int, alphas: Array
    ) -> tuple[Moments, Array]:
        """The moments of all rows, and the score of each alpha over the folds, each of which is
        scored by the moments of the others."""
        folds, n_parts, n_folds = fold_codes(self.cv, r, K)
        parts = self.fold_moments(X, r, s, K, folds, n_parts)
        moments = merge_all(parts)
        totals = np.zeros(len(alphas))
        for f in range(n_folds):
            rest = moments.subtract(parts[f])
            values, V = linalg.eigh(rest.within + rest.between)
            factors = np.maximum(values, 0), V
            rows = np.flatnonzero(folds == f)
            held, weight = X.take(rows), s[rows] if len(s) > 1 else s
            for i, alpha in enumerate(alphas):
                Y = self._linear_outputs(held, one_hot_weights(rest, alpha, factors))
                totals[i] += self._total_score(Y, r[rows], weight)
        return moments, totals / sum(part.total for part in parts[:n_folds])
