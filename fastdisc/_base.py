"""What estimators share: linear scores and outputs of a fitted model, and the parameters that every one checks alike."""

from __future__ import annotations

from functools import wraps
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from . import _validate, special
from ._kernels import Link
from ._sweep import outputs


def number(value, name, *, low, whole=False, open_low=False):
    """A parameter that must be a number above `low`; the error names the parameter."""
    kind = Integral if whole else Real
    good = isinstance(value, kind) and not isinstance(value, bool) and (value > low if open_low else value >= low)
    if not good:
        sort = "a whole number" if whole else "a number"
        raise ValueError(f"{name} must be {sort} {'>' if open_low else '>='} {low}, got {value!r}")
    return value


def choice(value, name, options):
    """A parameter that must be one of some words."""
    if not isinstance(value, (*map(type, options), np.bool_)) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def configured(estimator, backend, n_threads):
    """A clone with the backend and threads that are given, where it has such parameters."""
    estimator = clone(estimator)
    given = {name: value for name, value in (("backend", backend), ("n_threads", n_threads)) if value is not None}
    known = estimator.get_params(deep=False) if given else {}
    return estimator.set_params(**{name: value for name, value in given.items() if name in known})


def all_or_nothing(method):
    """A method that leaves the estimator as it was when it raises."""

    @wraps(method)
    def whole(self, *arguments, **named):
        before = vars(self).copy()
        try:
            return method(self, *arguments, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole


def fitted(estimator):
    """scikit-learn's error if the estimator is not fitted, without its check, which takes as long as scoring a row."""
    if not hasattr(estimator, "coef_"):
        check_is_fitted(estimator)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"only rows of class {estimator.classes_.tolist()[0]!r} have come so far: there is nothing to tell apart"
        )


class Posteriors:
    """Posterior probabilities of a linear classifier: sigmoid (10.21) for two classes, softmax (10.29) for K."""

    def predict_proba(self, X):
        """Posterior probabilities, (N, K): sigmoid (10.21) for two classes, softmax (10.29) for K.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        fitted(self)
        return self._outputs(X, Link.SOFTMAX if len(self.coef_) > 1 else Link.LOGISTIC)

    def predict_log_proba(self, X):
        """Logarithms of the posterior probabilities, finite however small those are.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self.decision_function(X)
        if Z.ndim == 1:
            return -np.column_stack([special.log1pexp(Z), special.log1pexp(-Z)])
        return special.log_softmax(Z)


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with `coef_` and `intercept_`: one score for two classes, K scores for K."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "basis", None) is None
        return tags

    def _next_rows(self, X, y, classes, sample_weight):
        """Some more rows of a stream, validated: whether they are the first, all classes, X, codes and weights."""
        self._check_parameters()
        if self.standardize:
            raise ValueError("partial_fit has no standardize: that needs all rows at once")
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        X = _validate.features(self, X, reset=first, y=y)
        classes = _validate.all_classes(classes, None if first else self.classes_)
        r = _validate.codes(y, classes, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        return first, classes, X, r, _validate.class_weight(self.class_weight, classes, r, s, all_present=False)

    def _outputs(self, X, link):
        fitted(self)
        X = _validate.features(self, X, reset=False)
        W = np.empty((self.coef_.shape[0], self.coef_.shape[1] + 1))  # (K, d+1)
        W[:, 0], W[:, 1:] = self.intercept_, self.coef_
        return outputs(X, link, W, backend=self.backend, n_threads=self.n_threads)

    def decision_function(self, X):
        """Scores w'x + w0: (N,) for two classes, positive for the second; (N, K) for K.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._outputs(X, Link.IDENTITY)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X):
        """The class with the highest score, for each row.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._outputs(X, Link.IDENTITY)
        return self.classes_[(Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)]
