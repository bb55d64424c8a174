"""What the closed-form models share: they remember moments, so they learn on, forget, merge and change priors exactly."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _config, _validate, special
from ._base import all_or_nothing, number
from ._kernels import Moment
from ._moments import collect, quadratic


class FromMoments(ClassifierMixin, BaseEstimator):
    """A classifier that is a function of the classes' moments.

    A subclass says which moments (`_kind`, `_own` matrices for each class), and has `_solve(moments, classes, priors)`, which
    returns the fitted attributes, and `_check_parameters`.
    """

    _kind = Moment.SCATTER
    _own = False
    priors = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "basis", None) is None
        return tags

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn from the moments of the classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
            A weight of 2 is a row that is there twice.
        """
        self._check()
        X = _validate.features(self, X, reset=True, y=y)
        classes, r = _validate.labels(y, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        self._check_rows(X.shape[0], len(classes))
        self._learn(self._gather(X, r, s, len(classes)), classes, closed=False)
        return self

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from some more rows. A stream in parts gives what `fit` gives on all of it.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        classes : array of shape (K,), optional
            In the first call: all labels that may come. Without it, new labels are taken in as they come.
        sample_weight : array of shape (N,), optional
        """
        self._check()
        first = not hasattr(self, "_moments")
        known = _validate.all_classes(classes, None if first else self.classes_)
        X = _validate.features(self, X, reset=first, y=y)
        closed = classes is not None if first else self._closed
        if closed:
            found, r = known, _validate.codes(y, known, X.shape[0])
        else:
            found, r = _validate.labels(y, X.shape[0], least=1)
        s = _validate.sample_weight(sample_weight, X.shape[0])
        moments = self._gather(X, r, s, len(found))
        if not first:
            self._check_collected(self, "partial_fit")
            moments, found = _united(self._moments, self.classes_, moments, found)
        self._learn(moments, found, closed=closed)
        return self

    @all_or_nothing
    def forget(self, X, y, sample_weight=None):
        """Unlearn rows that were learnt from: the model becomes what it would be without them.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        sample_weight : array of shape (N,), optional
            The weights with which the rows were learnt.
        """
        check_is_fitted(self)
        self._check_collected(self, "forget")
        X = _validate.features(self, X, reset=False)
        r = _validate.codes(y, self.classes_, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        try:
            moments = self._moments.subtract(self._gather(X, r, s, len(self.classes_)))
        except ValueError as problem:
            raise ValueError(f"forget: these rows cannot all have been learnt from; {problem}") from problem
        if not moments.total:
            raise ValueError("forget: no row would be left")
        self._learn(moments, self.classes_, closed=self._closed)
        return self

    def merge(self, other):
        """A model that has learnt from the rows of both, each model from its own.

        Parameters
        ----------
        other : estimator of the same class
            With the same columns; its classes may be others.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if type(other) is not type(self):
            raise ValueError(f"merge: cannot merge {self!r} with {other!r}")
        self._check_collected(other, "merge")
        columns, others = (getattr(model, "feature_names_in_", None) for model in (self, other))
        named = columns is not None and others is not None and not np.array_equal(columns, others)
        if other.n_features_in_ != self.n_features_in_ or named:
            raise ValueError(f"merge: {self.n_features_in_} columns here, {other.n_features_in_} there, or of other names")
        if not _validate.same_basis(self, other):
            raise ValueError("merge: the models have bases that are not the same: their features cannot be added up")
        model = copy.copy(self)
        moments, classes = _united(self._moments, self.classes_, other._moments, other.classes_)
        model._learn(moments, classes, closed=self._closed and other._closed)
        return model

    def with_priors(self, priors):
        """A copy that assumes other prior probabilities of the classes (10.20).

        When it learns on, forgets or merges, it goes back to those that its parameters say.

        Parameters
        ----------
        priors : array of shape (K,)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        model = copy.copy(self)
        priors = _validate.priors(priors, self.classes_, self._shares(self._moments))
        vars(model).update(self._solve(self._moments, self.classes_, priors))
        return model

    def _collected(self):
        """What decides which moments are collected."""
        return int(self._kind), bool(self._own), getattr(self, "binarize", None)

    def _check_collected(self, other, verb):
        """ValueError unless the moments of the other are such as this model collects."""
        if other._collected_as != self._collected() or self._collected_as != self._collected():
            raise ValueError(
                f"{verb}: the moments at hand were collected under other parameters (shrinkage, priors, solver, "
                "covariance_estimator or binarize): they cannot be added up; fit again"
            )

    # --- what a fit is made of ---------------------------------------------------------------------------------------------

    def _check(self):
        self._check_parameters()
        _config.check(self.backend, self.n_threads)

    def _check_parameters(self):
        pass

    def _check_rows(self, n, K):
        pass

    def _gather(self, X, r, s, K, parts=1, **more):
        """The moments that the model is a function of; see `collect`."""
        options = {"own": self._own, "backend": self.backend, "n_threads": self.n_threads}
        return collect(X, r, s, K, self._kind, parts=parts, **options, **more)

    def _gather_folds(self, X, r, s, K, folds, count):
        """The moments of each fold, from one sweep."""
        return self._gather(X, folds * np.int32(K) + r, s, K, parts=count).split(count)

    def _shares(self, moments):
        return moments.n / moments.total

    def _given_priors(self, moments, classes):
        """The priors to assume: 0 for classes that have not come yet."""
        if self.priors is None:
            return self._shares(moments)
        priors = _validate.priors(self.priors, classes, np.ones(len(classes))) * (moments.n > 0)
        return priors / priors.sum()

    def _learn(self, moments, classes, closed):
        solution = self._solve(moments, classes, self._given_priors(moments, classes))
        vars(self).update(solution, classes_=classes, _moments=moments, _closed=closed, _collected_as=self._collected())


def _united(moments, classes, more, found):
    """The moments of both among the classes of either."""
    if (classes.dtype.kind in "OUS") != (found.dtype.kind in "OUS"):
        raise ValueError(f"labels are names in one part and numbers in the other: {classes.tolist()}, {found.tolist()}")
    union = classes if np.array_equal(classes, found) else np.union1d(classes, found)
    if len(union) != len(classes) or len(union) != len(found):
        moments = moments.spread(np.searchsorted(union, classes), len(union))
        more = more.spread(np.searchsorted(union, found), len(union))
    return moments.merge(more), union


class Scores:
    """Predictions of a model that is not linear, from its scores log P(C_k) + log p(x | C_k), up to a constant   (10.34)"""

    def _joint(self, X):
        """(N, K)"""
        check_is_fitted(self)
        X = _validate.features(self, X, reset=False)
        return quadratic(X, *self._quadratic, backend=self.backend, n_threads=self.n_threads)

    def decision_function(self, X):
        """Scores: (N,) for two classes, the log odds of the second; (N, K) for K.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._joint(X)
        return Z[:, 1] - Z[:, 0] if Z.shape[1] == 2 else Z

    def predict(self, X):
        """The class with the highest score, for each row.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._joint(X)
        return self.classes_[Z.argmax(axis=1)]

    def predict_proba(self, X):
        """Posterior probabilities, (N, K).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        return special.softmax(self._joint(X))

    def predict_log_proba(self, X):
        """Logarithms of the posterior probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        return special.log_softmax(self._joint(X))


def draw(model, n, random_state, rows, columns=None):
    """n labelled rows: classes by their priors, and rows(k, m, rng) for the m of class k; X, y in random order."""
    check_is_fitted(model)
    if hasattr(model, "basis_") and columns is None:
        raise ValueError("sample: with a basis the model knows how features are distributed, not rows")
    number(n, "n", low=1, whole=True)
    rng = check_random_state(random_state)
    codes = rng.choice(len(model.classes_), size=n, p=model.priors_)
    X = np.empty((n, columns or model.n_features_in_))
    for k in np.unique(codes):
        mine = np.flatnonzero(codes == k)
        X[mine] = rows(k, len(mine), rng)
    return X, model.classes_[codes]
