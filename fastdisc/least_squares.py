"""Least squares for classification: targets of 0 and 1 in closed form, and the same with the penalty chosen on rows held out."""

from __future__ import annotations

import copy

import numpy as np
from scipy import linalg

from . import _validate
from ._base import LinearClassifier, all_or_nothing, choice, fitted, number
from ._folds import merged
from ._generative import FromMoments
from ._kernels import CSR, Link
from ._rows import take_rows
from ._solvers import closed_form
from ._splits import fold_codes
from ._sweep import outputs

CELLS = 1 << 20  # rows are projected so many cells at a time


class LeastSquaresClassifier(FromMoments, LinearClassifier):
    """Least squares with 1-of-K targets (4.15)-(4.17), or with the targets that give Fisher's direction (4.31)-(4.38).

    The highest of the K outputs is chosen. With a penalty it is scikit-learn's RidgeClassifier; intercepts are not penalised.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the ridge penalty; 0 for the pseudo-inverse solution.
    targets : {"one_hot", "fisher"}, default="one_hot"
        "fisher", for two classes: N / N_1 for the first and -N / N_2 for the second.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
        For two classes, those of the second output less those of the first.
    intercept_ : array of shape (1,) or (K,)
    priors_ : array of shape (K,)
        The classes' shares of the sample.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LeastSquaresClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeastSquaresClassifier().fit(X, y)
    >>> model.predict_targets(X[:1]).sum().round(12)
    np.float64(1.0)
    """

    _own = True

    def __init__(self, alpha=0.0, *, targets="one_hot", basis=None, backend=None, n_threads=None):
        self.alpha = alpha
        self.targets = targets
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def predict_targets(self, X):
        """The outputs (N, K), which add up to 1 in each row (4.18)-(4.19); with Fisher's targets (N, 1).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        fitted(self)
        X = _validate.features(self, X, reset=False)
        return outputs(X, Link.IDENTITY, self._weights, backend=self.backend, n_threads=self.n_threads)

    def with_priors(self, priors):
        """A copy as if rows had been drawn with other prior probabilities of the classes: each class's rows weighted to match.

        Parameters
        ----------
        priors : array of shape (K,)
            In the order of `classes_`.
        """
        fitted(self)
        model, moments = copy.copy(self), self._moments
        priors = _validate.priors(priors, self.classes_, self._shares(moments))
        factors = priors * moments.total / moments.n
        weighted = moments._replace(n=priors * moments.total, S=moments.S * factors[:, None, None])
        vars(model).update(self._solve(weighted, self.classes_, priors))
        return model

    def _check_parameters(self):
        number(self.alpha, "alpha", low=0)
        choice(self.targets, "targets", ("one_hot", "fisher"))

    def _solve(self, moments, classes, priors):
        if self.targets == "fisher" and len(classes) != 2:
            raise ValueError(f"targets='fisher' is for two classes, y has {len(classes)}")
        return solution(moments, self.alpha, self.targets == "fisher") | {"priors_": priors}


def solution(moments, alpha, fisher=False, factors=None):
    """The attributes of a fit, from moments alone: (S_T + alpha I) w_k = n_k (m_k - m)   (4.16), (4.37)

    `factors` are the eigenvalues and vectors of S_T, where they are known.
    """
    n, mean, overall = moments.n, moments.mean, moments.overall
    B = (n[:, None] * (mean - overall)).T  # (d, K)
    rest = n / moments.total
    if fisher:
        B, rest = moments.total * (mean[:1] - mean[1:]).T, np.zeros(1)
    if factors is None:
        S = moments.within + moments.between
        S[np.diag_indices(len(S))] += alpha
        W = closed_form.solve_symmetric(S, B).T
    else:
        values, V = factors
        W = ((V.T @ B) * inverses(values, alpha)[:, None]).T @ V.T
    if fisher and not n.all():  # one class alone: no direction, and no doubt
        W = np.zeros_like(W)
        rest = np.array([closed_form.NEVER if n[1] else -closed_form.NEVER])
    w0 = rest - W @ overall
    weights = np.column_stack([w0, W])  # (K, d+1)
    one = -weights if fisher else weights[1:] - weights[:1] if len(n) == 2 else weights
    return {"coef_": one[:, 1:].copy(), "intercept_": one[:, 0].copy(), "_weights": weights}


def inverses(values, alpha):
    """1 / (eigenvalues + alpha), and 0 for directions without variation."""
    lift = values + alpha
    return np.where(lift > 1e-14 * max(values.max(), alpha, closed_form.TINY), 1 / np.maximum(lift, closed_form.TINY), 0.0)


class LeastSquaresClassifierCV(LeastSquaresClassifier):
    """LeastSquaresClassifier whose alpha scores best on rows held out, exactly, without fitting again.

    One factorisation serves all values of alpha. Leaving out one row divides its error by 1 - its leverage; folds come off the
    moments.

    Parameters
    ----------
    alphas : array, default=(0.1, 1.0, 10.0)
        Values to try.
    cv : int, splitter or None, default=None
        None to leave out one row at a time; else folds as in scikit-learn.
    scoring : {"accuracy", "squared_error"}, default="accuracy"
        The share of rows classified right, or minus the mean squared error of the outputs.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    alpha_ : float
        The best; the largest of equals.
    scores_ : array of shape (n_alphas,)
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

    def __init__(self, alphas=(0.1, 1.0, 10.0), *, cv=None, scoring="accuracy", basis=None, backend=None, n_threads=None):
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn from the moments of the classes, with the alpha that scores best.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        sample_weight : array of shape (N,), optional
        """
        self._check()
        alphas = self._values()
        X = _validate.features(self, X, reset=True, y=y)
        classes, r = _validate.labels(y, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        if self.cv is None:
            moments = self._gather(X, r, s, len(classes))
            scores = self._leave_one_out(X, r, s, moments, alphas)
        else:
            moments, scores = self._folds(X, r, s, len(classes), alphas)
        best = max(range(len(alphas)), key=lambda i: (scores[i], alphas[i]))
        self.alpha_, self.scores_ = float(alphas[best]), scores
        self._learn(moments, classes, closed=False)
        return self

    @property
    def partial_fit(self):
        """There is none: what an alpha scores on rows held out is not a matter of moments."""
        raise AttributeError("LeastSquaresClassifierCV has no partial_fit: take LeastSquaresClassifier with its alpha_")

    def _values(self):
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if alphas.ndim != 1 or not len(alphas) or not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ValueError(f"alphas must be numbers >= 0, got {self.alphas!r}")
        return alphas

    def _check_parameters(self):
        self._values()
        choice(self.scoring, "scoring", ("accuracy", "squared_error"))

    def _solve(self, moments, classes, priors):
        return solution(moments, self.alpha_) | {"priors_": priors}

    def _tally(self, Y, r, s):
        """The sum of scores of rows with outputs Y."""
        s = np.broadcast_to(s, len(r))
        if self.scoring == "accuracy":
            return float(s @ (Y.argmax(axis=1) == r))
        E = Y.copy()
        E[np.arange(len(r)), r] -= 1
        return -float(s @ (E**2).mean(axis=1))

    def _leave_one_out(self, X, r, s, moments, alphas):
        """Scores of each alpha: without row t its error is e_t / (1 - h_t), h_t = s_t (1 / n + u_t'(S_T + alpha I)^-1 u_t)"""
        values, V = linalg.eigh(moments.within + moments.between)
        values = np.maximum(values, 0)
        rest, B = moments.n / moments.total, V.T @ (moments.n[:, None] * (moments.mean - moments.overall)).T
        totals = np.zeros(len(alphas))
        step = max(16, CELLS // X.shape[1])
        R = np.eye(len(moments.n))
        for lo in range(0, X.shape[0], step):
            rows = np.arange(lo, min(lo + step, X.shape[0]))
            weight = s[rows] if len(s) > 1 else s
            T, P = R[r[rows]], self._projected(X, rows, moments.overall, V)
            for i, alpha in enumerate(alphas):
                inverse = inverses(values, alpha)
                leverage = weight * (1 / moments.total + P**2 @ inverse)
                Y = rest + P @ (inverse[:, None] * B)
                keep = np.maximum(1 - leverage, 1e-12)[:, None]
                totals[i] += self._tally(T + (Y - T) / keep, r[rows], weight)
        return totals / moments.total

    def _projected(self, X, rows, mean, V):
        """(x - m)'V of some rows."""
        W = np.column_stack([-V.T @ mean, V.T])
        part = take_rows(X, rows) if isinstance(X, CSR) else X[rows[0] : rows[-1] + 1]
        return outputs(part, Link.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)

    def _folds(self, X, r, s, K, alphas):
        """The moments of all rows, and the scores of each alpha over folds, each against the moments of the others."""
        folds, count, tested = fold_codes(self.cv, r, K)
        parts = self._gather_folds(X, r, s, K, folds, count)
        moments = merged(parts)
        totals = np.zeros(len(alphas))
        for f in range(tested):
            rest = moments.subtract(parts[f])
            values, V = linalg.eigh(rest.within + rest.between)
            rows = np.flatnonzero(folds == f)
            held, weight = take_rows(X, rows), s[rows] if len(s) > 1 else s
            for i, alpha in enumerate(alphas):
                W = solution(rest, alpha, factors=(np.maximum(values, 0), V))["_weights"]
                Y = outputs(held, Link.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)
                totals[i] += self._tally(Y, r[rows], weight)
        return moments, totals / sum(part.total for part in parts[:tested])
