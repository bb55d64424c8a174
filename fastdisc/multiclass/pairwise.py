"""Pairwise classification: a discriminant for each pair of classes (section 10.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._base import all_or_nothing
from .._kernels.contract import Array
from .._validation.arrays import check_sample_weight
from .._validation.labels import check_weighted_classes, encode_labels
from .._validation.parameters import check_choice
from .base import CombinedClassifier, Task, stacked_weights
from .decisions import (
    COUPLINGS,
    PAIR_RULES,
    check_reject_label,
    class_pairs,
    couple,
    incidence,
    labels_or_reject,
)


class PairwiseClassifier(CombinedClassifier):
    """Pairwise (one-versus-one) classification, (10.9)-(10.10).

    The discriminant of a pair is fitted to the rows of its two classes only. So classes need only
    be separable in pairs, and the decision regions of linear discriminants need not be convex.
    Beyond scikit-learn's OneVsOneClassifier it has posteriors, a choice of decision rules, and
    rejection.

    Parameters
    ----------
    estimator : estimator, optional
        A two-class classifier, `LogisticRegression()` by default.
    decision : {"vote", "sum", "all"}, default="vote"
        "vote" chooses the class that wins most of its pairs, and among classes with equal votes the
        one with the largest sum of scores. "sum" chooses the largest sum_j g_ij (10.10). "all"
        chooses the class that wins all of its pairs (10.9), and rejects if there is none.
    reject_label : optional
        The prediction for rows on which no class wins all of its pairs ("all"), or two have the
        most votes ("vote"). Without it, the nearest decision is predicted: the class whose weakest
        score is the largest ("all"), or the one with the larger sum ("vote").
    coupling : {"quadratic", "likelihood"}, default="quadratic"
        How `predict_proba` combines the posteriors of the pairs: the second method of Wu, Lin and
        Weng (2004), or that of Hastie and Tibshirani (1998).
    n_jobs : int or None, default=None
        The number of joblib threads that fit estimators in parallel, if they are fitted separately.
    verbose : int, default=0
        1 shows progress.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the backend of the estimator, else for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The maximum number of threads; the result does not depend on it. None as for `backend`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    pairs_ : ndarray of shape (P, 2)
        Class codes i < j of each pair, P = K (K - 1) / 2.
    estimators_ : list of P fitted estimators
        In the order of `pairs_`, each fitted with 0 for the rows of i and 1 for those of j.
    coef_, intercept_ : ndarrays of shape (P, d) and (P,)
        The discriminants g_ij, positive for i, if all estimators are linear.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import PairwiseClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PairwiseClassifier(decision="all", reject_label=-1).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.98, 0.02, 0.  ]])
    """

    pairs_: Array

    def __init__(
        self,
        estimator: Any = None,
        *,
        decision: str = "vote",
        reject_label: Any = None,
        coupling: str = "quadratic",
        n_jobs: int | None = None,
        verbose: int = 0,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.estimator = estimator
        self.decision = decision
        self.reject_label = reject_label
        self.coupling = coupling
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend
        self.n_threads = n_threads

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the discriminants of all pairs.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)
        y : array-like of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array-like of shape (N,), optional
            For estimators whose `fit` takes them.

        Returns
        -------
        self
        """
        self._check_common(sample_weight)
        check_choice(self.decision, "decision", tuple(PAIR_RULES))
        check_choice(self.coupling, "coupling", tuple(COUPLINGS))
        rows = self._check_X(X)
        classes, r = encode_labels(y, _num_samples(X))
        check_reject_label(self.reject_label, classes)
        s = check_weighted_classes(check_sample_weight(sample_weight, len(r)), classes, r)
        pairs, shared = class_pairs(len(classes)), self._shared_fit(rows, r, s)
        if shared is not None:
            self.estimators_ = shared.pairs(pairs, self.verbose)
        else:
            weights = None if sample_weight is None else np.broadcast_to(s, len(r))
            self.estimators_ = self._fit_each(X, weights, _tasks(r, pairs))
        self.classes_, self.pairs_ = classes, pairs
        return self

    @property
    def coef_(self) -> Array:
        """The weights of the discriminants, (P, d), if all estimators are linear."""
        return -self._linear_weights("coef_")[:, 1:]

    @property
    def intercept_(self) -> Array:
        """The intercepts of the discriminants, (P,), if all estimators are linear."""
        return -self._linear_weights("intercept_")[:, 0]

    def pairwise_decision_function(self, X: Any) -> Array:
        """Scores g_ij of each pair, positive for i.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, P)
        """
        return self._map_scores(X, np.negative)

    def _class_scores(self, X: Any) -> Array:
        """Scores of the classes by the decision rule, (N, K)."""
        check_is_fitted(self, "estimators_")
        K, W = len(self.classes_), stacked_weights(self.estimators_)
        if self.decision == "sum" and W is not None:  # linear: K scores are enough, instead of P
            return self._map_scores(X, np.asarray, -incidence(K).T @ W)
        scores = PAIR_RULES[self.decision].scores
        return self._map_scores(X, lambda Z: scores(-Z, K))

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, of which the largest decides.

        For "sum" these are sums (10.10); for "all" the weakest score of a class, positive if it
        wins all of its pairs; for "vote" the number of votes, plus a term below one half that grows
        with the sum, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,) or (N, K)
            For two classes one score, positive for the second class.
        """
        check_is_fitted(self, "estimators_")
        if len(self.classes_) == 2:
            return self._map_scores(X, np.ravel)
        return self._class_scores(X)

    def reject_mask(self, X: Any) -> Array:
        """Which rows have no clear decision.

        With "all", those on which no class wins all of its pairs; with "vote", those on which two
        classes have the most votes; with "sum", none.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,), bool
        """
        check_is_fitted(self, "estimators_")
        K, rejects = len(self.classes_), PAIR_RULES[self.decision].rejects
        return self._map_scores(X, lambda Z: rejects(-Z, K))

    def predict(self, X: Any) -> Array:
        """The class of each row by the decision rule, or `reject_label`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        check_is_fitted(self, "estimators_")
        K, (scores, rejects) = len(self.classes_), PAIR_RULES[self.decision]
        if self.reject_label is None or self.decision == "sum":
            codes = self._class_scores(X).argmax(axis=1)
            return labels_or_reject(self.classes_, codes, [], self.reject_label)
        parts = [(scores(-Z, K).argmax(axis=1), rejects(-Z, K)) for Z in self._scores(X)]
        codes, rejected = (np.concatenate(part) for part in zip(*parts, strict=True))
        return labels_or_reject(self.classes_, codes, rejected, self.reject_label)

    def predict_without_rejection(self, X: Any) -> Array:
        """The nearest decision for each row: what `predict` returns without a `reject_label`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        return self.classes_[self._class_scores(X).argmax(axis=1)]

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities, from those of the pairs by `coupling`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, K)
        """
        R = self._probabilities(X)
        return couple(1 - R, len(self.classes_), self.coupling)


def _tasks(r: Array, pairs: Array) -> Iterator[Task]:
    """Rows and targets of each pair. The rows of a pair keep their order."""
    if len(pairs) == 1:
        yield None, (r == 1).astype(np.int64)
        return
    order = np.argsort(r, kind="stable")
    rows_of_class = np.split(order, np.cumsum(np.bincount(r))[:-1])
    for i, j in pairs:
        rows = np.sort(np.concatenate([rows_of_class[i], rows_of_class[j]]))
        yield rows, (r[rows] == j).astype(np.int64)
