"""Naive Bayes: classes whose features are independent, with densities of the exponential family (seed E).

Bernoulli, multinomial and Poisson classes have scores that are linear in the features; Gaussian ones, quadratic.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.sparse import csr_array

from . import _validate, special
from ._base import LinearClassifier, Posteriors, choice, fitted, number
from ._generative import FromMoments, Scores, draw
from ._kernels import CSR, Link, Moment
from ._solvers.closed_form import log_priors, no_less
from ._sweep import outputs

CELLS = 1 << 22  # that are compared with a threshold at a time


class LinearBayes(Posteriors, FromMoments, LinearClassifier):
    """Naive Bayes with scores that are linear in the features: `_densities` says which."""

    _kind = Moment.SUMS

    def predict_joint_log_proba(self, X):
        """log P(C_k) + log p(x | C_k), (N, K), up to what all classes have in common.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        fitted(self)
        return self._raw(_validate.features(self, X, reset=False), Link.IDENTITY, self._joint_weights)

    def predict_log_proba(self, X):
        """Logarithms of the posterior probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        return special.log_softmax(self.predict_joint_log_proba(X))

    @property
    def class_prior_(self):
        """The priors, (K,)."""
        return self.priors_

    def _outputs(self, X, link):
        fitted(self)
        X = _validate.features(self, X, reset=False)
        return self._raw(X, link, np.column_stack([self.intercept_, self.coef_]))

    def _raw(self, X, link, W):
        return outputs(X, link, W, backend=self.backend, n_threads=self.n_threads)

    def _check_parameters(self):
        alpha = np.asarray(self.alpha) if not isinstance(self.alpha, Real) else self.alpha
        if isinstance(alpha, np.ndarray) and not (alpha.ndim == 1 and (alpha >= 0).all()):
            raise ValueError(f"alpha must be a number >= 0, or one for each column, got {self.alpha!r}")
        if isinstance(alpha, Real):
            number(alpha, "alpha", low=0)
        for name in ("force_alpha", "fit_prior"):
            choice(getattr(self, name), name, (True, False))

    def _shares(self, moments):
        K = len(moments.n)
        return super()._shares(moments) if self.fit_prior else np.full(K, 1 / K)

    @property
    def priors(self):
        """`class_prior`, by the name that the closed-form models share."""
        return self.class_prior

    def _smoothing(self, d):
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and len(alpha) != d:
            raise ValueError(f"alpha has {len(alpha)} numbers, X has {d} columns")
        return alpha if self.force_alpha else np.maximum(alpha, 1e-10)

    def _solve(self, moments, classes, priors):
        n, counts = moments.n, moments.M
        found, W, w0 = self._densities(n, counts, self._smoothing(counts.shape[1]))
        logs = log_priors(priors)
        coef, intercept = W, w0 + logs
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return found | {
            "class_count_": n,
            "feature_count_": counts,
            "class_log_prior_": logs,
            "priors_": priors,
            "coef_": coef,
            "intercept_": intercept,
            "_joint_weights": np.column_stack([w0 + logs, W]),
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class Nonnegative(LinearBayes):
    """Classes of counts, or of anything like them that is not negative."""

    @property
    def decision_function(self):
        """scikit-learn's models of counts have none, and its checks take the name for a promise to accept any X."""
        raise AttributeError(f"{type(self).__name__} has no decision_function: take predict_joint_log_proba")

    def _gather(self, X, r, s, K, parts=1):
        values = X.data if isinstance(X, CSR) else X
        if values.dtype.kind not in "ub" and values.size and values.min() < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__} (input X)")
        return super()._gather(X, r, s, K, parts)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class BernoulliNB(LinearBayes):
    """Naive Bayes on binary features: a generalised linear model, with `coef_` and `intercept_` (seed E).

    scikit-learn's parameters mean what they mean there.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Rows of each value that are added to the counts of each class.
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    binarize : float or None, default=0.0
        Features above it are 1, the others 0; None if they are so already.
    fit_prior : bool, default=True
        Priors from the classes' shares; else uniform.
    class_prior : array of shape (K,), optional
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    feature_log_prob_ : array of shape (K, d)
        log p(x_j = 1 | C_k)
    class_count_, class_log_prior_ : arrays of shape (K,)
    feature_count_ : array of shape (K, d)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import BernoulliNB
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> model = BernoulliNB().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None, backend=None, n_threads=None
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n=1, random_state=None):
        """Draw labelled rows of 0 and 1 from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """
        p = np.exp(self.feature_log_prob_) if hasattr(self, "coef_") else None
        return draw(self, n, random_state, lambda k, m, rng: rng.random_sample((m, p.shape[1])) < p[k])

    @property
    def _kind(self):
        return Moment.SUMS if self.binarize is None else Moment.COUNTS

    def _check_parameters(self):
        super()._check_parameters()
        if self.binarize is not None:
            number(self.binarize, "binarize", low=-np.inf)

    def _gather(self, X, r, s, K, parts=1):
        return super()._gather(X, r, s, K, parts, threshold=0.0 if self.binarize is None else float(self.binarize))

    def _densities(self, n, counts, alpha):
        p, q = no_less(counts + alpha), no_less(n[:, None] - counts + alpha)
        total = no_less(n[:, None] + 2 * alpha)
        log_p, log_q = np.log(p) - np.log(total), np.log(q) - np.log(total)
        return {"feature_log_prob_": log_p}, log_p - log_q, log_q.sum(axis=1)

    def _raw(self, X, link, W):
        if self.binarize is None or (X.dtype == bool and 0 <= self.binarize < 1):
            return super()._raw(X, link, W)
        step = max(16, CELLS // X.shape[1])
        slices = [slice(lo, min(lo + step, X.shape[0])) for lo in range(0, X.shape[0], step)]
        return np.concatenate([super(BernoulliNB, self)._raw(self._above(X, rows), link, W) for rows in slices])

    def _above(self, X, rows):
        """Which of some rows' features are above the threshold."""
        if isinstance(X, CSR):
            _validate.check_finite(X)
            A = csr_array((X.data, X.indices, X.indptr), shape=X.shape)[rows]
            if self.binarize < 0:
                return A.toarray() > self.binarize
            A.sum_duplicates()
            return CSR((A.data > self.binarize).astype(np.float64), A.indices, A.indptr, X.n_columns)
        part = X[rows]
        if part.dtype.kind == "f" and not np.isfinite(part.sum()):
            _validate.check_finite(X)
        return part > self.binarize


class MultinomialNB(Nonnegative):
    """Naive Bayes on counts of words, say: each class draws its features from one multinomial distribution.

    scikit-learn's parameters mean what they mean there.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Added to the counts of each class.
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    fit_prior : bool, default=True
    class_prior : array of shape (K,), optional
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_, coef_, intercept_, feature_log_prob_, class_count_, class_log_prior_, feature_count_
        As in BernoulliNB; feature_log_prob_ is the log of each feature's share in a class.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import MultinomialNB
    >>> X = np.array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 2]])
    >>> MultinomialNB().fit(X, [0, 0, 1, 1]).predict([[2, 0, 0]])
    array([0])
    """

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, backend=None, n_threads=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n=1, random_state=None, length=None):
        """Draw labelled rows of counts from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        length : int, optional
            The sum of each row; else that of the average row of the class.
        """
        fitted(self)
        sums = self.feature_count_.sum(axis=1) / np.maximum(self.class_count_, 1e-300)
        lengths = np.rint(sums).astype(int) if length is None else np.full(len(sums), number(length, "length", low=0, whole=True))
        p = special.softmax(self.feature_log_prob_)
        return draw(self, n, random_state, lambda k, m, rng: rng.multinomial(lengths[k], p[k], size=m))

    def _densities(self, n, counts, alpha):
        smooth = no_less(counts + alpha)
        log_p = np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True))
        return {"feature_log_prob_": log_p}, log_p, np.zeros(len(n))


class PoissonNB(Nonnegative):
    """Naive Bayes on counts, each feature of a class with a Poisson distribution of its own.

    Unlike MultinomialNB it also learns from how much there is in a row.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Average rows of all classes that are added to each class: rates become (count + alpha mean) / (n + alpha).
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    fit_prior : bool, default=True
    class_prior : array of shape (K,), optional
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    rate_ : array of shape (K, d)
        The mean of each feature in each class, smoothed.
    classes_, coef_, intercept_, class_count_, class_log_prior_, feature_count_
        As in BernoulliNB.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import PoissonNB
    >>> X = np.array([[3, 0], [2, 1], [9, 4], [8, 3]])
    >>> PoissonNB().fit(X, [0, 0, 1, 1]).predict([[2, 0], [7, 4]])
    array([0, 1])
    """

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, backend=None, n_threads=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n=1, random_state=None):
        """Draw labelled rows of counts from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """
        fitted(self)
        return draw(self, n, random_state, lambda k, m, rng: rng.poisson(self.rate_[k], size=(m, self.n_features_in_)))

    def _densities(self, n, counts, alpha):
        mean = counts.sum(axis=0) / n.sum()
        rate = (counts + alpha * mean) / no_less(n[:, None] + alpha)
        # A feature that is 0 in all rows tells nothing, and its logarithm would be infinite.
        log_rate = np.where(mean > 0, np.log(no_less(rate)), 0.0)
        return {"rate_": rate}, log_rate, -rate.sum(axis=1)


class GaussianNB(Scores, FromMoments):
    """Naive Bayes on numbers: each feature of a class has a normal distribution of its own.

    scikit-learn's parameters mean what they mean there. It takes sparse rows too, which are made dense a block at a time.

    Parameters
    ----------
    priors : array of shape (K,), optional
        Instead of the classes' shares of the sample.
    var_smoothing : float, default=1e-9
        This share of the largest variance of a column is added to all variances.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Attributes
    ----------
    classes_ : array of shape (K,)
    theta_, var_ : arrays of shape (K, d)
        Means and variances.
    epsilon_ : float
        What was added to the variances.
    class_count_, class_prior_ : arrays of shape (K,)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> round(GaussianNB().fit(X, y).score(X, y), 2)
    0.96
    """

    _kind = Moment.SQUARES

    def __init__(self, *, priors=None, var_smoothing=1e-9, backend=None, n_threads=None):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.backend = backend
        self.n_threads = n_threads

    def predict_joint_log_proba(self, X):
        """log P(C_k) + log p(x | C_k), (N, K).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        return self._joint(X) - self.n_features_in_ / 2 * np.log(2 * np.pi)

    def sample(self, n=1, random_state=None):
        """Draw labelled rows from the model: X (n, d) and y (n,).

        Parameters
        ----------
        n : int, default=1
        random_state : int, RandomState or None, default=None
        """

        def rows(k, m, rng):
            return self.theta_[k] + rng.standard_normal((m, self.n_features_in_)) * np.sqrt(self.var_[k])

        return draw(self, n, random_state, rows)

    def _check_parameters(self):
        number(self.var_smoothing, "var_smoothing", low=0)

    def _solve(self, moments, classes, priors):
        n, mean = moments.n, moments.mean
        apart = mean - moments.overall
        largest = ((moments.S.sum(axis=0) + n @ apart**2) / moments.total).max()
        epsilon = self.var_smoothing * largest
        var = moments.S / np.where(n > 0, n, 1.0)[:, None] + epsilon
        var = np.where(
            var > 0, var, 1e-12 * largest or 1.0
        )  # a constant column with nothing added: nearly certain, not infinitely
        c = log_priors(priors) - np.log(var).sum(axis=1) / 2
        return {
            "theta_": mean,
            "var_": var,
            "epsilon_": epsilon,
            "class_count_": n,
            "priors_": priors,
            "class_prior_": priors,
            "_quadratic": (mean, 1 / np.sqrt(var), c),
        }
