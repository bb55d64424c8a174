"""What one-versus-rest and pairwise classifiers share: fitting many two-class estimators, and
scoring rows by all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import (
    _check_feature_names,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from .. import runtime, special
from .._base import LinearClassifier, configured, has_basis
from .._data.outputs import outputs
from .._data.rows import Rows
from .._kernels.contract import Array
from .._kernels.enums import Activation
from .._validation.arrays import check_rows
from .._validation.parameters import check_number
from ..linear.logistic import LogisticRegression
from .constant import Constant
from .shared_fit import SharedFit

MAX_SCORE_CELLS = 1 << 20  # scores that are held at a time
# Rows of a two-class problem (None for all), and their targets, 0 or 1.
Task = tuple[Array | None, Array]


def fit_task(estimator: Any, X: Any, task: Task, s: Array | None) -> Any:
    """A clone of the estimator, fitted to the rows of a task with weights s."""
    rows, target = task
    if rows is not None:
        readable = isinstance(X, np.ndarray) or sparse.issparse(X)
        X = X[rows] if readable else _safe_indexing(X, rows)
        s = None if s is None else s[rows]
    if target.min() == target.max():
        return Constant().fit(X, target)
    model = clone(estimator)
    return model.fit(X, target) if s is None else model.fit(X, target, sample_weight=s)


def stacked_weights(estimators: list[Any]) -> Array | None:
    """The weights of two-class discriminants, (P, d+1); None unless all of them are linear."""
    linear = (LinearClassifier.decision_function, LinearClassifierMixin.decision_function)
    for model in estimators:
        if getattr(type(model), "decision_function", None) not in linear:
            return None
        if sparse.issparse(model.coef_) or model.coef_.shape[0] != 1 or has_basis(model):
            return None
    rows = [np.append(np.reshape(m.intercept_, -1)[:1], m.coef_[0]) for m in estimators]
    return np.vstack(rows)


def binary_scores(model: Any, X: Any) -> Array:
    """A score of each row by a two-class estimator, (N,), positive for its second class."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)).reshape(-1)
    if hasattr(model, "predict_proba"):
        return 2 * model.predict_proba(X)[:, 1] - 1
    return 2.0 * model.predict(X) - 1


class CombinedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier made of two-class `estimators_`."""

    estimator: Any
    n_jobs: int | None
    verbose: int
    backend: str | None
    n_threads: int | None
    classes_: Array
    estimators_: list[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator()).input_tags
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(inner, name))
        return tags

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    def _estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _options(self) -> dict[str, Any]:
        """Backend and threads: those of this classifier, else those of its estimator."""
        inner = self._estimator()
        options = {"backend": self.backend, "n_threads": self.n_threads}
        return {
            name: getattr(inner, name, None) if value is None else value
            for name, value in options.items()
        }

    def _check_common(self, sample_weight: Any) -> None:
        estimator = self._estimator()
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            raise ValueError(f"estimator must be an estimator with fit, got {estimator!r}")
        if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"the fit of {type(estimator).__name__} takes no sample_weight")
        check_number(self.verbose, "verbose", low=0, whole=True)
        runtime.check(self.backend, self.n_threads)

    def _check_X(self, X: Any) -> Rows | None:
        """The rows, if a shared fit may use them; else None, and X is left to `estimator`."""
        if SharedFit.supports(self._estimator()):
            return check_rows(self, X, reset=True)
        if _num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        validate_data(self, X, reset=True, skip_check_array=True)
        if getattr(self, "n_features_in_", 1) == 0:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is "
                "required."
            )
        return None

    def _shared_fit(self, rows: Rows | None, r: Array, s: Array) -> SharedFit | None:
        """All problems over shared rows; None if the estimator or the data need separate fits."""
        if rows is None:
            return None
        shared = SharedFit(self._estimator(), rows, r, s, self._options())
        return shared if shared.worthwhile else None

    def _fit_each(self, X: Any, s: Array | None, tasks: Iterable[Task]) -> list[Any]:
        """A fitted clone of the estimator for each task, on `n_jobs` threads."""
        X = indexable(X)[0]
        run = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=self.verbose)
        estimator = configured(self._estimator(), self.backend, self.n_threads)
        return run(delayed(fit_task)(estimator, X, task, s) for task in tasks)

    def _linear_weights(self, name: str) -> Array:
        W = stacked_weights(self.estimators_) if hasattr(self, "estimators_") else None
        if W is None:
            raise AttributeError(
                f"{type(self).__name__} has {name} only after a fit of linear estimators"
            )
        return W

    def _scores(self, X: Any, W: Array | None = None) -> Iterator[Array]:
        """Scores (n, P) of one slice of the rows after the other, with one column for each of
        `estimators_`, or of the weights W."""
        check_is_fitted(self, "estimators_")
        W = stacked_weights(self.estimators_) if W is None else W
        if W is None:
            _check_feature_names(self, X, reset=False)
            yield np.column_stack([binary_scores(model, X) for model in self.estimators_])
            return
        rows = check_rows(self, X, reset=False)
        step = max(1, MAX_SCORE_CELLS // len(W))
        for begin in range(0, rows.shape[0], step):
            part = rows.take(slice(begin, min(begin + step, rows.shape[0])))
            try:
                yield outputs(part, Activation.IDENTITY, W, **self._options())
            except ValueError:
                rows.check_finite()  # names the row by its number in X, not in the slice
                raise

    def _map_scores(
        self, X: Any, function: Callable[[Array], Array], W: Array | None = None
    ) -> Array:
        """A function of the scores, for all rows."""
        return np.concatenate([function(Z) for Z in self._scores(X, W)])

    def _has_probabilities(self) -> bool:
        models = getattr(self, "estimators_", None) or [self._estimator()]
        return all(hasattr(model, "predict_proba") for model in models)

    def _probabilities(self, X: Any) -> Array:
        """Posteriors of the second class by each of `estimators_`, (N, P)."""
        check_is_fitted(self, "estimators_")
        sigmoid_of_score = (LogisticRegression, SklearnLogisticRegression)
        if all(type(model) in sigmoid_of_score for model in self.estimators_):
            return self._map_scores(X, special.sigmoid)
        _check_feature_names(self, X, reset=False)
        return np.column_stack([model.predict_proba(X)[:, 1] for model in self.estimators_])
