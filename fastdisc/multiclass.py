"""K classes from discriminants of two: one-versus-rest (section 10.3.2) and pairwise separation (section 10.4)."""

from __future__ import annotations

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from . import _decisions, _validate
from ._base import all_or_nothing, choice
from ._combined import Combined, _has_probabilities, weights

KINDS = 64  # combinations of classes up to which rows that overlap are sampled by kind, and trained together


class PairwiseClassifier(Combined):
    """Pairwise separation: a discriminant for each pair of classes, (10.9)-(10.10); scikit-learn's OneVsOneClassifier and more.

    The discriminant of a pair is learned from the rows of its two classes; the others are none of its business. So classes need
    only be separable in pairs, and the regions of several linear discriminants need not be convex.

    Parameters
    ----------
    estimator : estimator, optional
        A classifier of two classes, `LogisticRegression()` by default.
    decision : {"vote", "sum", "all"}, default="vote"
        "vote" chooses the class that wins most of its pairs, of those with as many votes the one with the largest sum. "sum"
        chooses the largest sum_j g_ij (10.10). "all" chooses the class that wins all of its pairs (10.9), and rejects where there
        is none.
    reject_label : optional
        What `predict` says where no class wins all of its pairs ("all"), or where two have the most votes ("vote"). Without
        one it says the nearest decision: the class whose weakest pair is the least against it, or that with the larger sum.
    coupling : {"quadratic", "likelihood"}, default="quadratic"
        How `predict_proba` makes posteriors of those of the pairs: Wu, Lin and Weng's second method, or Hastie and Tibshirani's.
    n_jobs : int or None, default=None
        Threads on which estimators are fitted side by side (joblib), where they are not trained together.
    verbose : int, default=0
        1 shows progress.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
    pairs_ : array of shape (P, 2)
        Class codes i < j of each pair, P = K (K - 1) / 2.
    estimators_ : list of P fitted estimators
        In the order of `pairs_`, each fitted with 0 for the rows of i and 1 for those of j.
    coef_, intercept_ : arrays of shape (P, d) and (P,)
        The discriminants g_ij, positive for i, where all estimators are linear.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)
        Where the columns of X had names.

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

    def __init__(
        self,
        estimator=None,
        *,
        decision="vote",
        reject_label=None,
        coupling="quadratic",
        n_jobs=None,
        verbose=0,
        backend=None,
        n_threads=None,
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
    def fit(self, X, y, sample_weight=None):
        """Learn the discriminants of all pairs.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
            For estimators whose `fit` takes them.
        """
        self._check_common(sample_weight)
        choice(self.decision, "decision", tuple(RULES))
        choice(self.coupling, "coupling", tuple(_decisions.COUPLINGS))
        A = self._rows(X)
        classes, r = _validate.labels(y, _num_samples(A))
        _decisions.check_label(self.reject_label, classes)
        s = _validate.weighted_classes(_validate.sample_weight(sample_weight, len(r)), classes, r)
        pairs, joint = _decisions.pairs(len(classes)), self._joint(A, r, s)
        if joint:
            self.estimators_ = joint.pairs(pairs, self.verbose)
        else:
            s = None if sample_weight is None else np.broadcast_to(s, len(r))
            self.estimators_ = self._fit_each(X, s, _tasks(r, pairs))
        self.classes_, self.pairs_ = classes, pairs
        return self

    @property
    def coef_(self):
        """The discriminants' weights, (P, d), where all estimators are linear."""
        return -self._linear("coef_")[:, 1:]

    @property
    def intercept_(self):
        """The discriminants' thresholds, (P,), where all estimators are linear."""
        return -self._linear("intercept_")[:, 0]

    def pairwise_decision_function(self, X):
        """Scores g_ij of each pair, positive for i, (N, P).

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        return self._by_parts(X, np.negative)

    def _decide(self, X, scores):
        """Scores of the classes by the rule, (N, K); those of "sum" are linear where the pairs are, and cost K scores, not P."""
        check_is_fitted(self, "estimators_")
        K, W = len(self.classes_), weights(self.estimators_)
        if scores is _decisions.sums and W is not None:
            return self._by_parts(X, np.asarray, -_decisions.incidence(K).T @ W)
        return self._by_parts(X, lambda Z: scores(-Z, K))

    def decision_function(self, X):
        """Scores of the classes, (N, K), of which the largest is chosen; (N,) for two classes, positive for the second.

        Sums (10.10) for "sum"; the weakest of a class's pairs for "all", positive where it wins them all; votes with less than
        half of one more by the sums for "vote", as scikit-learn has them.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimators_")
        if len(self.classes_) == 2:
            return self._by_parts(X, np.ravel)
        return self._decide(X, RULES[self.decision][0])

    def _choose(self, X):
        """The nearest decision for each row."""
        return self.classes_[self._decide(X, RULES[self.decision][0]).argmax(axis=1)]

    def reject_mask(self, X):
        """Which rows the decision leaves open, (N,): no class wins all of its pairs ("all"), or two have the most votes ("vote").

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimators_")
        K, unclear = len(self.classes_), RULES[self.decision][1]
        return self._by_parts(X, lambda Z: unclear(-Z, K))

    def predict(self, X):
        """The class of each row by the decision, or `reject_label`.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimators_")
        K, (scores, unclear) = len(self.classes_), RULES[self.decision]
        if self.reject_label is None or self.decision == "sum":
            return _decisions.answers(self.classes_, self._decide(X, scores).argmax(axis=1), [], self.reject_label)
        found = [(scores(-Z, K).argmax(axis=1), unclear(-Z, K)) for _, Z in self._scores(X)]
        codes, rejected = (np.concatenate(part) for part in zip(*found, strict=True))
        return _decisions.answers(self.classes_, codes, rejected, self.reject_label)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Posterior probabilities, (N, K), from those of the pairs by `coupling`.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        R = self._probabilities(X)
        return _decisions.coupled(1 - R, len(self.classes_), self.coupling)


# decision -> scores of the classes, rows that it leaves open
RULES = {
    "vote": (_decisions.majority, _decisions.tied),
    "sum": (_decisions.sums, lambda G, K: np.zeros(len(G), dtype=bool)),
    "all": (_decisions.least, _decisions.undecided),
}


def _tasks(r, pairs):
    """Rows and targets of each pair. Rows are grouped by class once, and those of a pair stay in their order."""
    if len(pairs) == 1:
        yield None, (r == 1).astype(np.int64)
        return
    order = np.argsort(r, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(r))[:-1])
    for i, j in pairs:
        rows = np.sort(np.concatenate([groups[i], groups[j]]))
        yield rows, (r[rows] == j).astype(np.int64)


class OneVsRestClassifier(Combined):
    """One-versus-rest: a discriminant for each class against all others, (10.6)-(10.8).

    Parameters
    ----------
    estimator : estimator, optional
        A classifier of two classes, `LogisticRegression()` by default.
    decision : {"max", "single"}, default="max"
        "max" chooses the largest discriminant (10.8). "single" chooses the only one that is positive (10.7), and rejects where
        none or several are: the ambiguous regions of figure 4.2.
    reject_label : optional
        What `predict` says where "single" rejects. Without one it says the nearest decision, that of "max".
    n_jobs : int or None, default=None
        Threads on which estimators are fitted side by side (joblib), where they are not trained together.
    verbose : int, default=0
        1 shows progress.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
    estimators_ : list of K fitted estimators
        One for two classes. Each is fitted with 1 for the rows of its class and 0 for the others.
    multilabel_ : bool
        Whether y was an indicator matrix: then a row may belong to several classes, or to none.
    coef_, intercept_ : arrays of shape (K, d) and (K,)
        The discriminants, where all estimators are linear; one row for two classes.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)
        Where the columns of X had names.

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

    def __init__(
        self, estimator=None, *, decision="max", reject_label=None, n_jobs=None, verbose=0, backend=None, n_threads=None
    ):
        self.estimator = estimator
        self.decision = decision
        self.reject_label = reject_label
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend
        self.n_threads = n_threads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn the discriminants of all classes.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        y : array of shape (N,) or {array, sparse matrix} of shape (N, K)
            Class labels, or 1 for each class that the row belongs to and 0 for the others.
        sample_weight : array of shape (N,), optional
            For estimators whose `fit` takes them.
        """
        self._check_common(sample_weight)
        choice(self.decision, "decision", ("max", "single"))
        A, multilabel = self._rows(X), _validate.is_indicator(y)
        if multilabel:
            targets = _validate.indicator(y, _num_samples(A))
            r, sides = _kinds(targets)
            classes = np.arange(targets.shape[1])
        else:
            classes, r = _validate.labels(y, _num_samples(A))
            _decisions.check_label(self.reject_label, classes)
            sides = 2 * np.eye(len(classes), dtype=np.int8)[:, 1 if len(classes) == 2 else 0 :] - 1
        s = _validate.sample_weight(sample_weight, len(r))
        s = s if multilabel else _validate.weighted_classes(s, classes, r)
        joint = self._joint(A, r, s) if len(sides) <= KINDS else None
        if joint:
            self.estimators_ = joint.against_rest(sides, self.verbose)
        else:
            tasks = ((None, (side[r] > 0).astype(np.int64)) for side in sides.T)
            self.estimators_ = self._fit_each(X, None if sample_weight is None else np.broadcast_to(s, len(r)), tasks)
        self.classes_, self.multilabel_ = classes, multilabel
        return self

    @property
    def coef_(self):
        """The discriminants' weights, (K, d), where all estimators are linear."""
        return self._linear("coef_")[:, 1:]

    @property
    def intercept_(self):
        """The discriminants' thresholds, (K,), where all estimators are linear."""
        return self._linear("intercept_")[:, 0]

    def decision_function(self, X):
        """Scores of the classes, (N, K); (N,) for two classes, positive for the second.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        Z = self._by_parts(X, np.asarray)
        return Z if self.multilabel_ or Z.shape[1] > 1 else Z[:, 0]

    def _choose(self, X):
        """The nearest decision for each row."""
        return self.classes_[self._by_parts(X, _largest)]

    def reject_mask(self, X):
        """Which rows the decision leaves open, (N,): with "single", those with none or several positive discriminants.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        return self._by_parts(X, self._unclear)

    def _unclear(self, Z):
        if self.decision == "max" or self.multilabel_:
            return np.zeros(len(Z), dtype=bool)
        return _decisions.not_single(Z if Z.shape[1] > 1 else np.hstack([-Z, Z]))

    def predict(self, X):
        """The class of each row by the decision, or `reject_label`; of classes that overlap, 1 for each with a positive score.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimators_")
        if self.multilabel_:
            return self._by_parts(X, lambda Z: (Z > 0).astype(int))
        found = [(_largest(Z), self._unclear(Z)) for _, Z in self._scores(X)]
        codes, rejected = (np.concatenate(part) for part in zip(*found, strict=True))
        return _decisions.answers(self.classes_, codes, rejected, self.reject_label)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Posterior probabilities, (N, K): the classes' own, divided by their sum unless classes overlap.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        Y = self._probabilities(X)
        if self.multilabel_:
            return Y
        if Y.shape[1] == 1:
            return np.hstack([1 - Y, Y])
        total = Y.sum(axis=1, keepdims=True)
        return np.where(total > 0, Y / np.where(total > 0, total, 1), 1 / Y.shape[1])


def _kinds(targets):
    """Rows that belong to the same classes are of one kind: the kind of each row, and the side of each class that it is on."""
    kinds, r = np.unique(np.packbits(targets, axis=1), axis=0, return_inverse=True)
    sides = np.unpackbits(kinds, axis=1, count=targets.shape[1]).astype(np.int8)
    return r.reshape(-1).astype(np.int32), 2 * sides - 1


def _largest(Z):
    """The code of the largest score; of one score, its sign."""
    return (Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)
