"""A classifier that may abstain: the reject option by the largest posterior, and the curve of errors against rejections."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, _num_samples, check_is_fitted, has_fit_parameter, validate_data

from . import _config, _decisions, _validate
from ._base import all_or_nothing, configured, number
from .logistic import LogisticRegression

SLACK = 1e-12  # shares of the weight are sums, and rounded


class ErrorRejectCurve(NamedTuple):
    """What each threshold rejects, and how often what is left is wrong. From no rejection to the most that some row survives."""

    thresholds: np.ndarray  # (n,) rows whose largest posterior is below are rejected
    rejection: np.ndarray  # (n,) share of the weight that is rejected
    error: np.ndarray  # (n,) share of what is accepted that is wrong

    @property
    def area(self):
        """The area under the error as a function of the rejected share, by trapezoids: lower is better."""
        return float(np.trapezoid(self.error, self.rejection))

    def at_error(self, error):
        """The lowest threshold with at most this share of errors; None where there is none."""
        good = np.flatnonzero(self.error <= error + SLACK)
        return float(self.thresholds[good[0]]) if len(good) else None

    def at_rejection(self, rejection):
        """The highest threshold that rejects at most this share."""
        return float(self.thresholds[np.flatnonzero(self.rejection <= rejection + SLACK)[-1]])


def curve(P, r, s):
    """From posteriors P (N, K), class codes r and row weights s."""
    top, wrong = P.max(axis=1), P.argmax(axis=1) != r
    order = np.argsort(top, kind="stable")
    top, s, wrong = top[order], s[order], (s * wrong)[order]
    first = np.flatnonzero(np.append(True, top[1:] > top[:-1]))  # rows as sure as each other go together
    below = np.append(0.0, np.cumsum(s))[first]
    errors = np.append(np.cumsum(wrong[::-1])[::-1], 0.0)[first]
    left = np.append(np.cumsum(s[::-1])[::-1], 0.0)[first]
    keep = left > 0
    thresholds = np.where(np.arange(len(first)) == 0, 0.0, top[first])
    return ErrorRejectCurve(thresholds[keep], below[keep] / s.sum(), errors[keep] / left[keep])


def _has_scores(self):
    return hasattr(getattr(self, "estimator_", None) or self._estimator(), "decision_function")


class RejectOption(ClassifierMixin, BaseEstimator):
    """Abstain where the largest posterior is below a threshold.

    With a loss of 1 for a wrong answer and of `cost` for none, the expected loss is least if a row is rejected where the largest
    posterior is below 1 - cost (Chow 1970). Or the threshold is chosen for a wanted rate of errors among the accepted rows, or
    of rejections, on rows that the model has not seen.

    Parameters
    ----------
    estimator : estimator with predict_proba, optional
        `LogisticRegression()` by default.
    threshold : float from 0 to 1, optional
        Reject where the largest posterior is below.
    cost : float from 0 to 1, optional
        What a rejection costs, in units of an error.
    error : float from 0 to 1, optional
        At most this share of the accepted rows is to be wrong, with as few rejections as that takes.
    rejection : float from 0 to 1, optional
        At most this share of the rows is to be rejected, with as few errors as that gives.
    reject_label : optional
        What `predict` says of rejected rows. Without one it says the likeliest class all the same; `reject_mask` tells.
    cv : int, splitter or iterable, default=5
        Folds whose posteriors, of models that have not seen them, serve to choose the threshold for `error` or `rejection`. The
        model itself is fitted to all rows.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        Set on the clones of the estimator, where it has such parameters.

    Of threshold, cost, error and rejection one may be given; with none the threshold is 0.5.

    Attributes
    ----------
    estimator_ : the fitted estimator
    classes_ : array of shape (K,)
    threshold_ : float
    curve_ : ErrorRejectCurve
        Where the threshold was chosen by folds, or by `tune`.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)
        Where the columns of X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from fastdisc import RejectOption
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RejectOption(rejection=0.1, reject_label=-1).fit(X[:, :3], y)
    >>> round(float((model.predict(X[:, :3]) == -1).mean()), 2)
    0.1
    """

    def __init__(
        self,
        estimator=None,
        *,
        threshold=None,
        cost=None,
        error=None,
        rejection=None,
        reject_label=None,
        cv=5,
        backend=None,
        n_threads=None,
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator())
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags

    def _estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_parameters(self):
        _config.check(self.backend, self.n_threads)
        _one_of(threshold=self.threshold, cost=self.cost, error=self.error, rejection=self.rejection)
        estimator = self._estimator()
        if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
            raise ValueError(f"estimator must have predict_proba, got {estimator!r}")

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Fit the estimator, and settle the threshold.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        y : array of shape (N,)
        sample_weight : array of shape (N,), optional
            For estimators whose `fit` takes them; they also weigh the rates.
        """
        self._check_parameters()
        if _num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        validate_data(self, X, reset=True, skip_check_array=True)
        classes, r = _validate.labels(y, _num_samples(X))
        _decisions.check_label(self.reject_label, classes)
        s = _validate.weighted_classes(_validate.sample_weight(sample_weight, len(r)), classes, r)
        s = None if sample_weight is None else np.broadcast_to(s, len(r))
        if s is not None and not has_fit_parameter(self._estimator(), "sample_weight"):
            raise ValueError(f"the fit of {type(self._estimator()).__name__} takes no sample_weight")
        self.estimator_ = self._fitted(X, classes[r], s)
        self.classes_ = self.estimator_.classes_
        vars(self).pop("curve_", None)
        if self.error is None and self.rejection is None:
            self.threshold_ = 1 - self.cost if self.cost is not None else 0.5 if self.threshold is None else float(self.threshold)
        else:
            self._settle(self._held_out(X, classes, r, s), self.error, self.rejection)
        return self

    def _fitted(self, X, y, s):
        model = configured(self._estimator(), self.backend, self.n_threads)
        return model.fit(X, y) if s is None else model.fit(X, y, sample_weight=s)

    def _held_out(self, X, classes, r, s):
        """The curve on posteriors of rows by models that have not seen them."""
        X = indexable(X)[0]
        P, seen = np.zeros((len(r), len(classes))), np.zeros(len(r), dtype=bool)
        for train, test in check_cv(self.cv, classes[r], classifier=True).split(X, r):
            model = self._fitted(_safe_indexing(X, train), classes[r[train]], None if s is None else s[train])
            P[np.ix_(test, np.searchsorted(classes, model.classes_))] = model.predict_proba(_safe_indexing(X, test))
            seen[test] = True
        if not seen.any():
            raise ValueError("cv has no fold")
        return curve(P[seen], r[seen], np.ones(seen.sum()) if s is None else s[seen])

    def _settle(self, found, error, rejection):
        threshold = found.at_rejection(rejection) if error is None else found.at_error(error)
        if threshold is None:
            raise ValueError(
                f"no threshold brings the share of errors down to {error:g}: the least is {found.error.min():.4g}, "
                f"with {found.rejection[found.error.argmin()]:.4g} of the rows rejected"
            )
        self.threshold_, self.curve_ = threshold, found

    def tune(self, X, y, *, cost=None, error=None, rejection=None, sample_weight=None):
        """Choose the threshold again, of the fitted model, on validation data: for a wanted error or rejection, or a cost.

        With a cost the threshold is the one with the least loss on these rows, errors plus cost times rejections, which is Chow's
        1 - cost only if the posteriors are right.

        Parameters
        ----------
        X, y, sample_weight
            Rows that the model has not seen.
        cost, error, rejection : float from 0 to 1
            One of them.
        """
        given = _one_of(cost=cost, error=error, rejection=rejection)
        if given is None:
            raise ValueError("tune needs one of cost, error and rejection")
        found = self.error_reject_curve(X, y, sample_weight)
        if given == "cost":
            loss = found.error * (1 - found.rejection) + cost * found.rejection
            self.threshold_, self.curve_ = float(found.thresholds[loss.argmin()]), found
        else:
            self._settle(found, error, rejection)
        return self

    def error_reject_curve(self, X, y, sample_weight=None):
        """Errors among the accepted rows against the share of rejected ones, for every threshold that makes a difference.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        y : array of shape (N,)
        sample_weight : array of shape (N,), optional

        Returns
        -------
        ErrorRejectCurve
        """
        P = self.predict_proba(X)
        r = _validate.codes(y, self.classes_, len(P))
        return curve(P, r, np.broadcast_to(_validate.sample_weight(sample_weight, len(P)), len(P)))

    def reject_mask(self, X):
        """Which rows are rejected, (N,).

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        return self.predict_proba(X).max(axis=1) < self.threshold_

    def predict(self, X):
        """The likeliest class of each row, or `reject_label`.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        P = self.predict_proba(X)
        return _decisions.answers(self.classes_, P.argmax(axis=1), P.max(axis=1) < self.threshold_, self.reject_label)

    def predict_proba(self, X):
        """The estimator's posteriors, (N, K).

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimator_")
        _check_feature_names(self, X, reset=False)
        return self.estimator_.predict_proba(X)

    @available_if(_has_scores)
    def decision_function(self, X):
        """The estimator's scores.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (N, d)
        """
        check_is_fitted(self, "estimator_")
        _check_feature_names(self, X, reset=False)
        return self.estimator_.decision_function(X)


def _one_of(**values):
    """The name of the one that is given, each a number from 0 to 1; None where none is."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"only one of {', '.join(values)} may be given, got {' and '.join(given)}")
    for name in given:
        value = values[name]
        if isinstance(value, Real) and value > 1:
            raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
        number(value, name, low=0)
    return given[0] if given else None
