"""One-versus-rest classification: a discriminant for each class (section 10.3.2)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._base import all_or_nothing
from .._kernels.contract import Array
from .._validation.arrays import check_sample_weight
from .._validation.labels import (
    check_indicator,
    check_weighted_classes,
    encode_labels,
    is_indicator,
)
from .._validation.parameters import check_choice
from .base import CombinedClassifier
from .decisions import check_reject_label, labels_or_reject, not_exactly_one

# A shared fit samples rows by group; with more groups (combinations of overlapping classes) than
# this, the problems are fitted separately.
MAX_ROW_GROUPS = 64


class OneVsRestClassifier(CombinedClassifier):
    """One-versus-rest classification, (10.6)-(10.8).

    Each class has a discriminant, fitted to its rows against all others.

    Parameters
    ----------
    estimator : estimator, optional
        A two-class classifier, `LogisticRegression()` by default.
    decision : {"max", "single"}, default="max"
        "max" chooses the largest discriminant (10.8). "single" chooses the only one that is
        positive (10.7), and rejects if none or several are: the ambiguous regions of figure 4.2.
    reject_label : optional
        The prediction for rows that "single" rejects. Without it, the decision of "max" is
        predicted.
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
    estimators_ : list of K fitted estimators
        A single one for two classes. Each is fitted with 1 for the rows of its class and 0 for the
        others.
    multilabel_ : bool
        Whether y was an indicator matrix. Then a row may belong to several classes, or to none.
    coef_, intercept_ : ndarrays of shape (K, d) and (K,)
        The discriminants, if all estimators are linear; one row for two classes.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import OneVsRestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier(decision="single", reject_label=-1).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> int(model.reject_mask(X).sum())  # versicolor lies between the others
    39
    """

    multilabel_: bool

    def __init__(
        self,
        estimator: Any = None,
        *,
        decision: str = "max",
        reject_label: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.estimator = estimator
        self.decision = decision
        self.reject_label = reject_label
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the discriminants of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)
        y : array-like of shape (N,) or {array-like, sparse matrix} of shape (N, K)
            Class labels; or an indicator matrix, with 1 for each class that the row belongs to and
            0 for the others.
        sample_weight : array-like of shape (N,), optional
            For estimators whose `fit` takes them.

        Returns
        -------
        self
        """
        self._check_common(sample_weight)
        check_choice(self.decision, "decision", ("max", "single"))
        rows, multilabel = self._check_X(X), is_indicator(y)
        if multilabel:
            targets = check_indicator(y, _num_samples(X))
            classes, (r, signs) = np.arange(targets.shape[1]), _row_groups(targets)
        else:
            classes, r = encode_labels(y, _num_samples(X))
            check_reject_label(self.reject_label, classes)
            signs = 2 * np.eye(len(classes), dtype=np.int8)[:, 1 if len(classes) == 2 else 0 :] - 1
        s = check_sample_weight(sample_weight, len(r))
        s = s if multilabel else check_weighted_classes(s, classes, r)
        shared = self._shared_fit(rows, r, s) if len(signs) <= MAX_ROW_GROUPS else None
        if shared is not None:
            self.estimators_ = shared.against_rest(signs, self.verbose)
        else:
            weights = None if sample_weight is None else np.broadcast_to(s, len(r))
            tasks = ((None, (sign[r] > 0).astype(np.int64)) for sign in signs.T)
            self.estimators_ = self._fit_each(X, weights, tasks)
        self.classes_, self.multilabel_ = classes, multilabel
        return self

    @property
    def coef_(self) -> Array:
        """The weights of the discriminants, (K, d), if all estimators are linear."""
        return self._linear_weights("coef_")[:, 1:]

    @property
    def intercept_(self) -> Array:
        """The intercepts of the discriminants, (K,), if all estimators are linear."""
        return self._linear_weights("intercept_")[:, 0]

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,) or (N, K)
            For two classes one score, positive for the second class.
        """
        Z = self._map_scores(X, np.asarray)
        return Z if self.multilabel_ or Z.shape[1] > 1 else Z[:, 0]

    def reject_mask(self, X: Any) -> Array:
        """Which rows have no clear decision.

        With "single", those with none or several positive discriminants; with "max", and for
        overlapping classes, none.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,), bool
        """
        return self._map_scores(X, self._rejects)

    def _rejects(self, Z: Array) -> Array:
        if self.decision == "max" or self.multilabel_:
            return np.zeros(len(Z), dtype=bool)
        return not_exactly_one(Z if Z.shape[1] > 1 else np.hstack([-Z, Z]))

    def predict(self, X: Any) -> Array:
        """The class of each row by the decision rule, or `reject_label`.

        For overlapping classes, an indicator matrix with 1 for each class of a positive score.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,), or (N, K) if `multilabel_`
        """
        check_is_fitted(self, "estimators_")
        if self.multilabel_:
            return self._map_scores(X, lambda Z: (Z > 0).astype(int))
        parts = [(_largest(Z), self._rejects(Z)) for Z in self._scores(X)]
        codes, rejected = (np.concatenate(part) for part in zip(*parts, strict=True))
        return labels_or_reject(self.classes_, codes, rejected, self.reject_label)

    def predict_without_rejection(self, X: Any) -> Array:
        """The class of the largest score, for each row: the decision "max".

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        return self.classes_[self._map_scores(X, _largest)]

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities of the classes, divided by their sum unless classes overlap.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, K)
        """
        Y = self._probabilities(X)
        if self.multilabel_:
            return Y
        if Y.shape[1] == 1:
            return np.hstack([1 - Y, Y])
        total = Y.sum(axis=1, keepdims=True)
        return np.where(total > 0, Y / np.where(total > 0, total, 1), 1 / Y.shape[1])


def _row_groups(targets: Array) -> tuple[Array, Array]:
    """Rows with equal targets (N, K) form a group: the group of each row, and the sign of each
    class for each group, (groups, K)."""
    bits, r = np.unique(np.packbits(targets, axis=1), axis=0, return_inverse=True)
    signs = 2 * np.unpackbits(bits, axis=1, count=targets.shape[1]).astype(np.int8) - 1
    return r.reshape(-1).astype(np.int32), signs


def _largest(Z: Array) -> Array:
    """The code of the largest score; of a single score, its sign."""
    return (Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)
