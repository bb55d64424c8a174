"""The reject option: classifiers that abstain, and the curve of errors against rejections."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from .. import runtime
from .._base import all_or_nothing, configured
from .._kernels.contract import Array
from .._validation.arrays import check_sample_weight
from .._validation.labels import check_weighted_classes, encode_known, encode_labels
from .._validation.parameters import check_number
from ..linear.logistic import LogisticRegression
from .decisions import check_reject_label, labels_or_reject

ROUNDING = 1e-12  # allowed in shares of the total weight, which are sums


class ErrorRejectCurve(NamedTuple):
    """The rejected share and the error rate as functions of the threshold.

    It starts without rejection, and ends at the highest threshold at which a row is accepted.

    Attributes
    ----------
    thresholds : ndarray of shape (n,)
        Rows whose largest posterior is below the threshold are rejected.
    rejection : ndarray of shape (n,)
        The share of the weight that is rejected.
    error : ndarray of shape (n,)
        The share of the accepted weight that is misclassified.
    """

    thresholds: Array
    rejection: Array
    error: Array

    @classmethod
    def from_posteriors(cls, P: Array, r: Array, s: Array) -> ErrorRejectCurve:
        """The curve of posteriors P (N, K), class codes r (N,) and row weights s (N,)."""
        top, wrong = P.max(axis=1), P.argmax(axis=1) != r
        order = np.argsort(top, kind="stable")
        top, s, wrong = top[order], s[order], (s * wrong)[order]
        first = np.flatnonzero(np.append(True, top[1:] > top[:-1]))  # of rows with equal posteriors
        below = np.append(0.0, np.cumsum(s))[first]
        errors = np.append(np.cumsum(wrong[::-1])[::-1], 0.0)[first]
        accepted = np.append(np.cumsum(s[::-1])[::-1], 0.0)[first]
        thresholds = np.where(np.arange(len(first)) == 0, 0.0, top[first])
        keep = accepted > 0
        return cls(thresholds[keep], below[keep] / s.sum(), errors[keep] / accepted[keep])

    @property
    def area(self) -> float:
        """The area under the error rate as a function of the rejected share, by the trapezoidal
        rule; lower is better."""
        return float(np.trapezoid(self.error, self.rejection))

    def at_error(self, error: float) -> float | None:
        """The lowest threshold at which the error rate is at most `error`, or None."""
        good = np.flatnonzero(self.error <= error + ROUNDING)
        return float(self.thresholds[good[0]]) if len(good) else None

    def at_rejection(self, rejection: float) -> float:
        """The highest threshold at which at most the share `rejection` is rejected."""
        good = np.flatnonzero(self.rejection <= rejection + ROUNDING)
        return float(self.thresholds[good[-1]])


class RejectOption(ClassifierMixin, BaseEstimator):
    """Abstain if the largest posterior is below a threshold.

    If a wrong prediction costs 1 and a rejection costs `cost`, the expected loss is minimal if a
    row is rejected when its largest posterior is below 1 - cost (Chow 1970). Alternatively, the
    threshold is chosen for a given error rate among the accepted rows, or for a given share of
    rejections, on rows that the model was not fitted to.

    Parameters
    ----------
    estimator : estimator with predict_proba, optional
        `LogisticRegression()` by default.
    threshold : float from 0 to 1, optional
        Reject if the largest posterior is below. At most one of `threshold`, `cost`, `error` and
        `rejection` may be given; the default is a threshold of 0.5.
    cost : float from 0 to 1, optional
        The cost of a rejection, relative to that of an error.
    error : float from 0 to 1, optional
        The maximum error rate among the accepted rows; as few rows as possible are rejected.
    rejection : float from 0 to 1, optional
        The maximum share of rejected rows; the error rate is as low as this allows.
    reject_label : optional
        The prediction for rejected rows. Without it, the class with the largest posterior is
        predicted, and only `reject_mask` shows the rejections.
    cv : int, splitter or iterable, default=5
        Folds whose held-out posteriors determine the threshold for `error` or `rejection`. The
        model itself is fitted to all rows.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        Set on clones of the estimator, if it has such a parameter.
    n_threads : int or None, default=None
        Set on clones of the estimator, if it has such a parameter.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : ndarray of shape (K,)
    threshold_ : float
    curve_ : ErrorRejectCurve
        If the threshold was chosen by folds, or by `tune`.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from fastdisc import RejectOption
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RejectOption(rejection=0.1, reject_label=-1).fit(X[:, :3], y)
    >>> round(float((model.predict(X[:, :3]) == -1).mean()), 2)
    0.1
    """

    estimator_: Any
    classes_: Array
    threshold_: float
    curve_: ErrorRejectCurve

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: float | None = None,
        cost: float | None = None,
        error: float | None = None,
        rejection: float | None = None,
        reject_label: Any = None,
        cv: Any = 5,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.estimator = estimator
        self.threshold = threshold
        self.cost = cost
        self.error = error
        self.rejection = rejection
        self.reject_label = reject_label
        self.cv = cv
        self.backend = backend
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def _estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_parameters(self, sample_weight: Any) -> None:
        runtime.check(self.backend, self.n_threads)
        _only_one(
            threshold=self.threshold, cost=self.cost, error=self.error, rejection=self.rejection
        )
        estimator = self._estimator()
        if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
            raise ValueError(f"estimator must have predict_proba, got {estimator!r}")
        if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"the fit of {type(estimator).__name__} takes no sample_weight")

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator, and choose the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)
        y : array-like of shape (N,)
        sample_weight : array-like of shape (N,), optional
            For estimators whose `fit` takes them; error rates and shares are weighted, too.

        Returns
        -------
        self
        """
        self._check_parameters(sample_weight)
        if _num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        validate_data(self, X, reset=True, skip_check_array=True)
        classes, r = encode_labels(y, _num_samples(X))
        check_reject_label(self.reject_label, classes)
        s = check_weighted_classes(check_sample_weight(sample_weight, len(r)), classes, r)
        weights = None if sample_weight is None else np.broadcast_to(s, len(r))
        self.estimator_ = self._fit_clone(X, classes[r], weights)
        self.classes_ = self.estimator_.classes_
        self.__dict__.pop("curve_", None)
        if self.error is not None or self.rejection is not None:
            curve = self._held_out_curve(X, classes, r, weights)
            self._choose_threshold(curve, self.error, self.rejection)
        elif self.cost is not None:
            self.threshold_ = 1 - self.cost
        else:
            self.threshold_ = 0.5 if self.threshold is None else float(self.threshold)
        return self

    def _fit_clone(self, X: Any, y: Array, s: Array | None) -> Any:
        model = configured(self._estimator(), self.backend, self.n_threads)
        return model.fit(X, y) if s is None else model.fit(X, y, sample_weight=s)

    def _held_out_curve(
        self, X: Any, classes: Array, r: Array, s: Array | None
    ) -> ErrorRejectCurve:
        """The curve of posteriors of held-out rows."""
        X = indexable(X)[0]
        P, held_out = np.zeros((len(r), len(classes))), np.zeros(len(r), dtype=bool)
        for train, test in check_cv(self.cv, classes[r], classifier=True).split(X, r):
            weights = None if s is None else s[train]
            model = self._fit_clone(_safe_indexing(X, train), classes[r[train]], weights)
            columns = np.searchsorted(classes, model.classes_)
            P[np.ix_(test, columns)] = model.predict_proba(_safe_indexing(X, test))
            held_out[test] = True
        if not held_out.any():
            raise ValueError("cv has no fold")
        weights = np.ones(held_out.sum()) if s is None else s[held_out]
        return ErrorRejectCurve.from_posteriors(P[held_out], r[held_out], weights)

    def _choose_threshold(
        self, curve: ErrorRejectCurve, error: float | None, rejection: float | None
    ) -> None:
        if error is None:
            assert rejection is not None
            threshold: float | None = curve.at_rejection(rejection)
        else:
            threshold = curve.at_error(error)
        if threshold is None:
            raise ValueError(
                f"no threshold brings the share of errors down to {error:g}: the least is "
                f"{curve.error.min():.4g}, with {curve.rejection[curve.error.argmin()]:.4g} of the "
                "rows rejected"
            )
        self.threshold_, self.curve_ = threshold, curve

    def tune(
        self,
        X: Any,
        y: Any,
        *,
        cost: float | None = None,
        error: float | None = None,
        rejection: float | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Choose the threshold of the fitted model on validation data.

        With `cost`, it is the threshold of the least loss on these rows: errors plus cost times
        rejections. That is Chow's 1 - cost only if the posteriors are correct.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)
            Rows that the model was not fitted to.
        y : array-like of shape (N,)
        cost, error, rejection : float from 0 to 1
            Exactly one of them, with the meaning that they have as parameters of the class.
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        self
        """
        given = _only_one(cost=cost, error=error, rejection=rejection)
        if given is None:
            raise ValueError("tune needs one of cost, error and rejection")
        curve = self.error_reject_curve(X, y, sample_weight)
        if cost is not None:
            loss = curve.error * (1 - curve.rejection) + cost * curve.rejection
            self.threshold_, self.curve_ = float(curve.thresholds[loss.argmin()]), curve
        else:
            self._choose_threshold(curve, error, rejection)
        return self

    def error_reject_curve(self, X: Any, y: Any, sample_weight: Any = None) -> ErrorRejectCurve:
        """The error rate and the rejected share, for every threshold at which they change.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)
        y : array-like of shape (N,)
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        ErrorRejectCurve
        """
        P = self.predict_proba(X)
        r = encode_known(y, self.classes_, len(P))
        s = np.broadcast_to(check_sample_weight(sample_weight, len(P)), len(P))
        return ErrorRejectCurve.from_posteriors(P, r, s)

    def reject_mask(self, X: Any) -> Array:
        """Which rows are rejected.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,), bool
        """
        return self.predict_proba(X).max(axis=1) < self.threshold_

    def predict(self, X: Any) -> Array:
        """The class of the largest posterior, for each row, or `reject_label`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        P = self.predict_proba(X)
        codes, rejected = P.argmax(axis=1), P.max(axis=1) < self.threshold_
        return labels_or_reject(self.classes_, codes, rejected, self.reject_label)

    def predict_without_rejection(self, X: Any) -> Array:
        """The class of the largest posterior, for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities by the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, K)
        """
        check_is_fitted(self, "estimator_")
        _check_feature_names(self, X, reset=False)
        return self.estimator_.predict_proba(X)

    def _has_scores(self) -> bool:
        model = getattr(self, "estimator_", None) or self._estimator()
        return hasattr(model, "decision_function")

    @available_if(lambda self: self._has_scores())
    def decision_function(self, X: Any) -> Array:
        """Scores by the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray
            Of the shape that the estimator returns.
        """
        check_is_fitted(self, "estimator_")
        _check_feature_names(self, X, reset=False)
        return self.estimator_.decision_function(X)


def _only_one(**values: Any) -> str | None:
    """The name of the one value that is not None, which must be a number from 0 to 1."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"only one of {', '.join(values)} may be given, got {' and '.join(given)}")
    for name in given:
        value = values[name]
        if isinstance(value, Real) and float(value) > 1:
            raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
        check_number(value, name, low=0)
    return given[0] if given else None
