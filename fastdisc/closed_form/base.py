"""The base of closed-form models. They store moments, so that they learn from more rows, forget
rows, merge and change priors exactly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import runtime, special
from .._base import all_or_nothing
from .._data.moments import Moments, collect, quadratic_scores
from .._data.rows import Rows
from .._kernels import MomentKind
from .._kernels.contract import Array
from .._validation.arrays import check_rows, check_sample_weight, same_basis
from .._validation.labels import check_classes, check_priors, encode_known, encode_labels
from .._validation.parameters import check_number


class FromMoments(ClassifierMixin, BaseEstimator):
    """A classifier that is a function of the moments of the classes.

    A subclass says which moments it needs (`_kind`, and `_per_class` for a matrix of each class)
    and has `_solve(moments, classes, priors)`, which returns the fitted attributes."""

    backend: str | None
    n_threads: int | None
    classes_: Array
    n_features_in_: int
    _moments: Moments
    _moment_parameters: tuple[Any, ...]
    _fixed_classes: bool  # whether all labels were given in the first call of partial_fit

    # Whether moments of the training rows are all that a fit needs, so that folds can be
    # subtracted.
    is_function_of_moments = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "basis", None) is None
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model from the moments of the classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Training rows.
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
            Row weights. A row of weight 2 counts as two equal rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self.check_parameters()
        X = check_rows(self, X, reset=True, y=y)
        classes, r = encode_labels(y, X.shape[0])
        s = check_sample_weight(sample_weight, X.shape[0])
        self._check_row_count(X.shape[0], len(classes))
        self.learn_moments(self._collect(X, r, s, len(classes)), classes)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. After all parts of a stream, the model is what `fit` returns for
        all rows at once.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Further training rows.
        y : array of shape (N,)
            Class labels.
        classes : array of shape (K,), optional
            In the first call: all labels that may occur. Without it, new labels are added when they
            first occur.
        sample_weight : array of shape (N,), optional
            Row weights.

        Returns
        -------
        self : object
            The updated estimator.
        """
        self.check_parameters()
        first = not hasattr(self, "_moments")
        known = check_classes(classes, None if first else self.classes_)
        X = check_rows(self, X, reset=first, y=y)
        fixed = classes is not None if first else self._fixed_classes
        if fixed:
            found, r = known, encode_known(y, known, X.shape[0])
        else:
            found, r = encode_labels(y, X.shape[0], min_classes=1)
        s = check_sample_weight(sample_weight, X.shape[0])
        moments = self._collect(X, r, s, len(found))
        if not first:
            self._check_compatible(self, "partial_fit")
            moments, found = _union(self._moments, self.classes_, moments, found)
        self.learn_moments(moments, found, fixed_classes=fixed)
        return self

    @all_or_nothing
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt from: the model becomes what it would be without them.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows that an earlier `fit` or `partial_fit` was given.
        y : array of shape (N,)
            Their class labels.
        sample_weight : array of shape (N,), optional
            The weights with which the rows were learnt.

        Returns
        -------
        self : object
            The updated estimator.
        """
        check_is_fitted(self)
        self._check_compatible(self, "forget")
        X = check_rows(self, X, reset=False)
        r = encode_known(y, self.classes_, X.shape[0])
        s = check_sample_weight(sample_weight, X.shape[0])
        try:
            moments = self._moments.subtract(self._collect(X, r, s, len(self.classes_)))
        except ValueError as error:
            raise ValueError(
                f"forget: these rows cannot all have been learnt from; {error}"
            ) from error
        if not moments.total:
            raise ValueError("forget: no row would be left")
        self.learn_moments(moments, self.classes_, fixed_classes=self._fixed_classes)
        return self

    def merge(self, other: FromMoments) -> Self:
        """A model of the rows of both models, each of which was fitted to its own rows.

        Parameters
        ----------
        other : estimator of the same class
            Fitted to the same columns; its classes may be different.

        Returns
        -------
        merged : estimator of the same class
            A new model.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if type(other) is not type(self):
            raise ValueError(f"merge: cannot merge {self!r} with {other!r}")
        self._check_compatible(other, "merge")
        if other.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"merge: this model has {self.n_features_in_} columns, the other has "
                f"{other.n_features_in_}"
            )
        own, others = (getattr(model, "feature_names_in_", None) for model in (self, other))
        if own is not None and others is not None and not np.array_equal(own, others):
            raise ValueError("merge: the columns of the other model have other names")
        if not same_basis(self, other):
            raise ValueError(
                "merge: the models have bases that are not the same: their features cannot be "
                "added up"
            )
        model = copy.copy(self)
        moments, classes = _union(self._moments, self.classes_, other._moments, other.classes_)
        fixed = self._fixed_classes and other._fixed_classes
        model.learn_moments(moments, classes, fixed_classes=fixed)
        return model

    def with_priors(self, priors: Any) -> Self:
        """A copy that assumes other prior probabilities of the classes (10.20).

        If the copy learns from more rows, forgets rows or is merged, its parameters determine the
        priors again.

        Parameters
        ----------
        priors : array of shape (K,)
            Prior probabilities, in the order of `classes_`.

        Returns
        -------
        model : estimator of the same class
            A new model.
        """
        check_is_fitted(self)
        model = copy.copy(self)
        priors = check_priors(priors, self.classes_, self._class_shares(self._moments))
        model.__dict__.update(self._solve(self._moments, self.classes_, priors))
        return model

    # --- used by cross_val_from_moments and by fits -------------------------------------------

    def check_parameters(self) -> None:
        """ValueError for a parameter that is not valid. For internal use."""
        self._check_parameters()
        runtime.check(self.backend, self.n_threads)

    def fold_moments(
        self, X: Rows, r: Array, s: Array, K: int, folds: Array, count: int
    ) -> list[Moments]:
        """The moments of each of `count` folds, from one sweep. For internal use."""
        return self._collect(X, folds * np.int32(K) + r, s, K, parts=count).split(count)

    def learn_moments(
        self, moments: Moments, classes: Array, *, fixed_classes: bool = False
    ) -> None:
        """Set the fitted attributes from moments of validated rows. For internal use."""
        solution = self._solve(moments, classes, self._assumed_priors(moments, classes))
        self.__dict__.update(
            solution,
            classes_=classes,
            _moments=moments,
            _fixed_classes=fixed_classes,
            _moment_parameters=self._collected_parameters(),
        )

    # --- what subclasses define ---------------------------------------------------------------

    @property
    def _kind(self) -> MomentKind:
        """The moments that the model is a function of."""
        return MomentKind.SCATTER

    @property
    def _per_class(self) -> bool:
        """Whether each class has its own matrix of products."""
        return False

    def _given_priors(self) -> Any:
        """The parameter that sets the priors, if there is one."""
        return getattr(self, "priors", None)

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        """The fitted attributes."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """ValueError for a parameter that is not valid."""

    def _check_row_count(self, n: int, K: int) -> None:
        """ValueError if there are too few rows."""

    def _collect(
        self, X: Rows, r: Array, s: Array, K: int, parts: int = 1, **options: Any
    ) -> Moments:
        """The moments that the model is a function of; see `collect`."""
        return collect(
            X,
            r,
            s,
            K,
            self._kind,
            parts=parts,
            per_class=self._per_class,
            backend=self.backend,
            n_threads=self.n_threads,
            **options,
        )

    def _collected_parameters(self) -> tuple[Any, ...]:
        """What determines which moments are collected."""
        return int(self._kind), bool(self._per_class)

    def _class_shares(self, moments: Moments) -> Array:
        """The priors if none are given."""
        return moments.n / moments.total

    def _check_compatible(self, other: FromMoments, method: str) -> None:
        """ValueError unless the stored moments of both models are those that this one collects."""
        expected = self._collected_parameters()
        if other._moment_parameters != expected or self._moment_parameters != expected:
            raise ValueError(
                f"{method}: the stored moments were collected with other parameters (shrinkage, "
                "priors, solver, covariance_estimator or binarize) and cannot be combined: call "
                "fit again"
            )

    def _assumed_priors(self, moments: Moments, classes: Array) -> Array:
        """The priors of a fit: 0 for classes that have no rows yet."""
        given = self._given_priors()
        if given is None:
            return self._class_shares(moments)
        priors = check_priors(given, classes, np.ones(len(classes))) * (moments.n > 0)
        return priors / priors.sum()


def _union(moments: Moments, classes: Array, more: Moments, found: Array) -> tuple[Moments, Array]:
    """The merged moments, among the classes of either."""
    if (classes.dtype.kind in "OUS") != (found.dtype.kind in "OUS"):
        raise ValueError(
            "labels are names in one part and numbers in the other: "
            f"{classes.tolist()}, {found.tolist()}"
        )
    union = classes if np.array_equal(classes, found) else np.union1d(classes, found)
    if len(union) != len(classes) or len(union) != len(found):
        moments = moments.embed(np.searchsorted(union, classes), len(union))
        more = more.embed(np.searchsorted(union, found), len(union))
    return moments.merge(more), union


class QuadraticScores:
    """Predictions of a model with quadratic scores log P(C_k) + log p(x | C_k), up to a constant
    (10.34)."""

    backend: str | None
    n_threads: int | None
    classes_: Array
    _quadratic: tuple[Array, Array, Array]  # mean, A and c of `quadratic_scores`

    def _joint_scores(self, X: Any) -> Array:
        """(N, K)"""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return quadratic_scores(X, *self._quadratic, backend=self.backend, n_threads=self.n_threads)

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to score.

        Returns
        -------
        scores : array of shape (N,) or (N, K)
            For two classes, the log odds of the second class; otherwise one score per class.
        """
        Z = self._joint_scores(X)
        return Z[:, 1] - Z[:, 0] if Z.shape[1] == 2 else Z

    def predict(self, X: Any) -> Array:
        """The class with the highest score, for each row.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        labels : array of shape (N,)
            Class labels.
        """
        Z = self._joint_scores(X)
        return self.classes_[Z.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities of the classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        return special.softmax(self._joint_scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        log_probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        return special.log_softmax(self._joint_scores(X))


def draw_rows(
    model: Any,
    n: int,
    random_state: Any,
    rows_of_class: Callable[[int, int, np.random.RandomState], Array],
    n_columns: int | None = None,
) -> tuple[Array, Array]:
    """n labelled rows in random order: the classes are drawn by their priors, and
    `rows_of_class(k, m, rng)` draws m rows of class k."""
    check_is_fitted(model)
    if hasattr(model, "basis_") and n_columns is None:
        raise ValueError(
            "sample: a model with a basis has a distribution of features, not rows of columns"
        )
    check_number(n, "n", low=1, whole=True)
    rng = check_random_state(random_state)
    codes = rng.choice(len(model.classes_), size=n, p=model.priors_)
    X = np.empty((n, n_columns or model.n_features_in_))
    for k in np.unique(codes):
        members = np.flatnonzero(codes == k)
        X[members] = rows_of_class(k, len(members), rng)
    return X, model.classes_[codes]
