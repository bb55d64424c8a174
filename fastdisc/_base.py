"""What estimators share: scores and outputs of a linear classifier, and fits that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from . import special
from ._data.outputs import outputs
from ._data.rows import Rows
from ._kernels.contract import Array
from ._kernels.enums import Activation
from ._validation.arrays import check_rows, check_sample_weight
from ._validation.labels import check_class_weight, check_classes, encode_known

Method = TypeVar("Method", bound=Callable[..., Any])


def configured(estimator: Any, backend: str | None, n_threads: int | None) -> Any:
    """A clone with the given backend and number of threads, if it has such parameters."""
    estimator = clone(estimator)
    options = {"backend": backend, "n_threads": n_threads}
    given = {name: value for name, value in options.items() if value is not None}
    known = estimator.get_params(deep=False) if given else {}
    return estimator.set_params(**{name: given[name] for name in given if name in known})


def all_or_nothing(method: Method) -> Method:
    """A method that leaves the estimator unchanged if it raises."""

    @wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapper  # type: ignore[return-value]


def fitted(estimator: Any) -> None:
    """Check that a linear classifier is fitted, to at least two classes.

    scikit-learn's own check, which takes as long as scoring a row, runs only if it will raise.
    """
    if not hasattr(estimator, "coef_"):
        check_is_fitted(estimator)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"only rows of class {estimator.classes_.tolist()[0]!r} have been seen so far: "
            "predictions need rows of at least 2 classes"
        )


def has_basis(model: Any) -> bool:
    """Whether a fitted model is linear in basis functions of the columns, not in the columns."""
    return getattr(model, "basis_", None) is not None


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with `coef_` and `intercept_`: one score for two classes, K scores for K."""

    backend: str | None
    n_threads: int | None
    classes_: Array
    coef_: Array
    intercept_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "basis", None) is None
        return tags

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter that is not valid."""
        raise NotImplementedError

    def _next_rows(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[bool, Array, Rows, Array, Array]:
        """The validated arguments of `partial_fit`: whether this is the first call, all classes,
        the rows, their class codes and their weights."""
        self._check_parameters()
        if self.standardize:
            raise ValueError("partial_fit does not support standardize, which needs all rows")
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        rows = check_rows(self, X, reset=first, y=y)
        known = check_classes(classes, None if first else self.classes_)
        r = encode_known(y, known, rows.shape[0])
        s = check_sample_weight(sample_weight, rows.shape[0])
        s = check_class_weight(self.class_weight, known, r, s, all_present=False)
        return first, known, rows, r, s

    def _outputs(self, X: Any, activation: Activation) -> Array:
        fitted(self)
        rows = check_rows(self, X, reset=False)
        W = np.empty((self.coef_.shape[0], self.coef_.shape[1] + 1))  # (K, d+1)
        W[:, 0], W[:, 1:] = self.intercept_, self.coef_
        return outputs(rows, activation, W, backend=self.backend, n_threads=self.n_threads)

    def decision_function(self, X: Any) -> Array:
        """Scores w'x + w0 of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,) or (N, K)
            For two classes one score, positive for the second class; else one score per class.
        """
        Z = self._outputs(X, Activation.IDENTITY)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X: Any) -> Array:
        """The class with the highest score, for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        Z = self._outputs(X, Activation.IDENTITY)
        codes = (Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)
        return self.classes_[codes]


class Posteriors(LinearClassifier):
    """A linear classifier with posterior probabilities, by sigmoid or softmax."""

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities: sigmoid (10.21) for two classes, softmax (10.29) for K.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, K)
        """
        fitted(self)
        return self._outputs(X, Activation.SOFTMAX if len(self.coef_) > 1 else Activation.SIGMOID)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities, finite even if a probability underflows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (N, d)

        Returns
        -------
        ndarray of shape (N, K)
        """
        Z = self.decision_function(X)
        if Z.ndim == 1:
            return -np.column_stack([special.log1pexp(Z), special.log1pexp(-Z)])
        return special.log_softmax(Z)
