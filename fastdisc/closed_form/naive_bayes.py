"""Naive Bayes: classes whose features are independent, with densities of the exponential family.

The scores of Bernoulli, multinomial and Poisson classes are linear in the features, those of
Gaussian classes are quadratic. The formulas are in EQUATIONS.md, under Naive Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import special
from .._base import fitted
from .._data.moments import Moments
from .._data.rows import Rows
from .._kernels import Activation, MomentKind
from .._kernels.contract import Array
from .._solvers.closed_form import clip_positive, log_priors
from .._validation.parameters import check_number
from .base import FromMoments, QuadraticScores, draw_rows
from .naive_bayes_base import CountNaiveBayes, LinearNaiveBayes


class BernoulliNB(LinearNaiveBayes):
    """Naive Bayes for binary features: a generalised linear model, with `coef_` and `intercept_`.

    The parameters that scikit-learn has too mean what they mean there.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Additive smoothing: the number of rows of each value that is added to each class.
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    binarize : float or None, default=0.0
        Features above this threshold are 1, the others 0; None if they are binary already.
    fit_prior : bool, default=True
        Whether the priors are the shares of the classes in the sample; otherwise they are uniform.
    class_prior : array of shape (K,), optional
        Prior probabilities.
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
    feature_log_prob_ : array of shape (K, d)
        log p(x_j = 1 | C_k).
    class_count_ : array of shape (K,)
        The weight of the rows of each class.
    class_log_prior_ : array of shape (K,)
        Logarithms of the prior probabilities.
    feature_count_ : array of shape (K, d)
        The weight of the rows of each class in which the feature is 1.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import BernoulliNB
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> model = BernoulliNB().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    feature_log_prob_: Array

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled rows of zeros and ones from the model.

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
        p = np.exp(self.feature_log_prob_)

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            return rng.random_sample((m, p.shape[1])) < p[k]

        return draw_rows(self, n, random_state, rows)

    @property
    def _kind(self) -> MomentKind:  # type: ignore[override]
        return MomentKind.SUMS if self.binarize is None else MomentKind.COUNTS

    def _collected_parameters(self) -> tuple[Any, ...]:
        return *super()._collected_parameters(), self.binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.binarize is not None:
            check_number(self.binarize, "binarize", low=-np.inf)

    def _collect(
        self, X: Rows, r: Array, s: Array, K: int, parts: int = 1, **options: Any
    ) -> Moments:
        threshold = 0.0 if self.binarize is None else float(self.binarize)
        return super()._collect(X, r, s, K, parts, threshold=threshold, **options)

    def _densities(
        self, n: Array, counts: Array, alpha: Array
    ) -> tuple[dict[str, Array], Array, Array]:
        p, q = clip_positive(counts + alpha), clip_positive(n[:, None] - counts + alpha)
        total = clip_positive(n[:, None] + 2 * alpha)
        log_p, log_q = np.log(p) - np.log(total), np.log(q) - np.log(total)
        return {"feature_log_prob_": log_p}, log_p - log_q, log_q.sum(axis=1)

    def _linear_outputs(self, X: Rows, activation: Activation, W: Array) -> Array:
        if self.binarize is None:
            return super()._linear_outputs(X, activation, W)
        compute = super()._linear_outputs
        return np.concatenate([compute(part, activation, W) for part in X.above(self.binarize)])


class MultinomialNB(CountNaiveBayes):
    """Naive Bayes for counts, such as those of words: the features of each class have a multinomial
    distribution.

    The parameters that scikit-learn has too mean what they mean there.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Additive smoothing: added to the counts of each class.
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    fit_prior : bool, default=True
        Whether the priors are the shares of the classes in the sample; otherwise they are uniform.
    class_prior : array of shape (K,), optional
        Prior probabilities.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    feature_log_prob_ : array of shape (K, d)
        Logarithms of the share of each feature in a class.
    feature_count_ : array of shape (K, d)
        The weighted sum of each feature in a class.
    classes_, coef_, intercept_, class_count_, class_log_prior_
        As in BernoulliNB.
    n_features_in_, feature_names_in_
        As in BernoulliNB.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import MultinomialNB
    >>> X = np.array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 2]])
    >>> MultinomialNB().fit(X, [0, 0, 1, 1]).predict([[2, 0, 0]])
    array([0])
    """

    feature_log_prob_: Array

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(
        self, n: int = 1, random_state: Any = None, length: int | None = None
    ) -> tuple[Array, Array]:
        """Draw labelled rows of counts from the model.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Seed or generator.
        length : int, optional
            The sum of each row; by default that of an average row of its class.

        Returns
        -------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their class labels.
        """
        fitted(self)
        if length is None:
            sums = self.feature_count_.sum(axis=1) / np.maximum(self.class_count_, 1e-300)
            lengths = np.rint(sums).astype(int)
        else:
            check_number(length, "length", low=0, whole=True)
            lengths = np.full(len(self.class_count_), length)
        p = special.softmax(self.feature_log_prob_)

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            return rng.multinomial(lengths[k], p[k], size=m)

        return draw_rows(self, n, random_state, rows)

    def _densities(
        self, n: Array, counts: Array, alpha: Array
    ) -> tuple[dict[str, Array], Array, Array]:
        smooth = clip_positive(counts + alpha)
        log_p = np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True))
        return {"feature_log_prob_": log_p}, log_p, np.zeros(len(n))


class PoissonNB(CountNaiveBayes):
    """Naive Bayes for counts, with a Poisson distribution of each feature of a class.

    Unlike MultinomialNB, it also uses the sum of a row.

    Parameters
    ----------
    alpha : float or array of shape (d,), default=1.0
        Additive smoothing: the number of average rows of all classes that is added to each class.
        Rates become (count + alpha mean) / (n + alpha).
    force_alpha : bool, default=True
        If False, alpha is at least 1e-10.
    fit_prior : bool, default=True
        Whether the priors are the shares of the classes in the sample; otherwise they are uniform.
    class_prior : array of shape (K,), optional
        Prior probabilities.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    rate_ : array of shape (K, d)
        The smoothed mean of each feature in each class.
    feature_count_ : array of shape (K, d)
        The weighted sum of each feature in a class.
    classes_, coef_, intercept_, class_count_, class_log_prior_
        As in BernoulliNB.
    n_features_in_, feature_names_in_
        As in BernoulliNB.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import PoissonNB
    >>> X = np.array([[3, 0], [2, 1], [9, 4], [8, 3]])
    >>> PoissonNB().fit(X, [0, 0, 1, 1]).predict([[2, 0], [7, 4]])
    array([0, 1])
    """

    rate_: Array

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.backend = backend
        self.n_threads = n_threads

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled rows of counts from the model.

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

        def rows(k: int, m: int, rng: np.random.RandomState) -> Array:
            return rng.poisson(self.rate_[k], size=(m, self.n_features_in_))

        return draw_rows(self, n, random_state, rows)

    def _densities(
        self, n: Array, counts: Array, alpha: Array
    ) -> tuple[dict[str, Array], Array, Array]:
        mean = counts.sum(axis=0) / n.sum()
        rate = (counts + alpha * mean) / clip_positive(n[:, None] + alpha)
        # A feature that is 0 in all rows carries no information, and log 0 is not finite.
        log_rate = np.where(mean > 0, np.log(clip_positive(rate)), 0.0)
        return {"rate_": rate}, log_rate, -rate.sum(axis=1)


class GaussianNB(QuadraticScores, FromMoments):
    """Naive Bayes for real features, with a normal distribution of each feature of a class.

    The parameters that scikit-learn has too mean what they mean there. Sparse rows are accepted;
    they are converted to dense rows one block at a time.

    Parameters
    ----------
    priors : array of shape (K,), optional
        Prior probabilities; by default the shares of the classes in the sample.
    var_smoothing : float, default=1e-9
        This share of the largest variance of a column is added to all variances.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The sorted class labels.
    theta_ : array of shape (K, d)
        Class means.
    var_ : array of shape (K, d)
        Variances of the features in each class.
    epsilon_ : float
        What was added to the variances.
    class_count_ : array of shape (K,)
        The weight of the rows of each class.
    class_prior_ : array of shape (K,)
        Prior probabilities.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> round(GaussianNB().fit(X, y).score(X, y), 2)
    0.96
    """

    theta_: Array
    var_: Array
    _kind = MomentKind.SQUARES

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.backend = backend
        self.n_threads = n_threads

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log P(C_k) + log p(x | C_k).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to score.

        Returns
        -------
        log_probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        return self._joint_scores(X) - self.n_features_in_ / 2 * np.log(2 * np.pi)

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
            u = rng.standard_normal((m, self.n_features_in_))
            return self.theta_[k] + u * np.sqrt(self.var_[k])

        return draw_rows(self, n, random_state, rows)

    def _check_parameters(self) -> None:
        check_number(self.var_smoothing, "var_smoothing", low=0)

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        n, mean, squares = moments.n, moments.mean, moments.products
        apart = mean - moments.overall
        largest = ((squares.sum(axis=0) + n @ apart**2) / moments.total).max()
        epsilon = self.var_smoothing * largest
        var = squares / np.where(n > 0, n, 1.0)[:, None] + epsilon
        # The variance of a constant column without smoothing is small, but not 0.
        var = np.where(var > 0, var, 1e-12 * largest or 1.0)
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
