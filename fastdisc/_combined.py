"""What combinations of two-class discriminants share: fitting many of them, and scoring rows by all of them at once."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression as Logistic
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _check_feature_names, _num_samples, check_is_fitted, has_fit_parameter, validate_data

from . import _config, _validate, special
from ._base import LinearClassifier, configured, number
from ._joint import Constant, Joint, covers
from ._kernels import Link
from ._planes import bent
from ._rows import window
from ._sweep import outputs
from .logistic import LogisticRegression

CELLS = 1 << 20  # scores that are held at a time


def fit_one(estimator, X, rows, target, s):
    """A clone fitted on some rows, all if None; y is 0 or 1."""
    if rows is not None:
        X = X[rows] if isinstance(X, np.ndarray) or sparse.issparse(X) else _safe_indexing(X, rows)
        s = None if s is None else s[rows]
    if target.min() == target.max():
        return Constant().fit(X, target)
    return clone(estimator).fit(X, target) if s is None else clone(estimator).fit(X, target, sample_weight=s)


def weights(estimators):
    """Discriminants (P, d+1) stacked, where every one is linear and says so; else None."""
    linear = (LinearClassifier.decision_function, LinearClassifierMixin.decision_function)
    if not all(getattr(type(model), "decision_function", None) in linear for model in estimators):
        return None
    if any(sparse.issparse(model.coef_) or model.coef_.shape[0] != 1 or bent(model) for model in estimators):
        return None
    return np.vstack([np.append(np.reshape(model.intercept_, -1)[:1], model.coef_[0]) for model in estimators])


def score(model, X):
    """One estimator's score of each row, positive for its second class."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)).reshape(-1)
    if hasattr(model, "predict_proba"):
        return 2 * model.predict_proba(X)[:, 1] - 1
    return 2.0 * model.predict(X) - 1


def _has_probabilities(self):
    models = getattr(self, "estimators_", None) or [self._estimator()]
    return all(hasattr(model, "predict_proba") for model in models)


class Combined(ClassifierMixin, BaseEstimator):
    """A classifier made of `estimators_` with two classes each."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator())
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        tags.input_tags.categorical, tags.input_tags.string = inner.input_tags.categorical, inner.input_tags.string
        return tags

    @property
    def n_classes_(self):
        """The number of classes."""
        return len(self.classes_)

    def _estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def _options(self):
        """Backend and threads: those of the combination, else those of its estimator."""
        inner = self._estimator()
        return {
            name: getattr(inner, name, None) if getattr(self, name) is None else getattr(self, name)
            for name in ("backend", "n_threads")
        }

    def _check_common(self, sample_weight):
        estimator = self._estimator()
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            raise ValueError(f"estimator must be an estimator with fit, got {estimator!r}")
        if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"the fit of {type(estimator).__name__} takes no sample_weight")
        number(self.verbose, "verbose", low=0, whole=True)
        _config.check(self.backend, self.n_threads)

    def _linear(self, name):
        W = weights(self.estimators_) if hasattr(self, "estimators_") else None
        if W is None:
            raise AttributeError(f"{type(self).__name__} has {name} once it is fitted, where all estimators are linear")
        return W

    def _joint(self, X, r, s):
        """The problems to be trained together, or None where the estimator, or the data, ask for fits of their own."""
        estimator = self._estimator()
        if not covers(estimator):
            return None
        joint = Joint(estimator, X, r, s, self._options())
        return joint if joint.suits else None

    def _rows(self, X):
        """X as the kernels read it where `_joint` may be the way; for any other estimator only its columns are noted."""
        if covers(self._estimator()):
            return _validate.features(self, X, reset=True)
        if _num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        validate_data(self, X, reset=True, skip_check_array=True)
        if getattr(self, "n_features_in_", 1) == 0:
            raise ValueError(f"Found array with 0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is required.")
        return X

    def _fit_each(self, X, s, tasks):
        """A fitted clone for each (rows, target), on threads."""
        X = indexable(X)[0]
        run = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=self.verbose)
        estimator = configured(self._estimator(), self.backend, self.n_threads)
        return run(delayed(fit_one)(estimator, X, rows, target, s) for rows, target in tasks)

    def _scores(self, X, W=None):
        """(begin, Z) for one stretch of rows after the other, Z (n, P) with a column for each of `estimators_`, or of W."""
        check_is_fitted(self, "estimators_")
        W = weights(self.estimators_) if W is None else W
        if W is None:
            _check_feature_names(self, X, reset=False)
            yield 0, np.column_stack([score(model, X) for model in self.estimators_])
            return
        X = _validate.features(self, X, reset=False)
        step = max(1, CELLS // len(W))
        for begin in range(0, X.shape[0], step):
            end = min(begin + step, X.shape[0])
            try:
                yield begin, outputs(window(X, begin, end), Link.IDENTITY, W, **self._options())
            except ValueError:
                _validate.check_finite(X)  # names the cell by its place in all of X
                raise

    def _by_parts(self, X, rule, W=None):
        """What a rule makes of the scores, for all rows."""
        return np.concatenate([rule(Z) for _, Z in self._scores(X, W)])

    def _probabilities(self, X):
        """Posteriors of the second class of each of `estimators_`, (N, P)."""
        check_is_fitted(self, "estimators_")
        if all(type(model) in (LogisticRegression, Logistic) for model in self.estimators_):
            return self._by_parts(X, special.sigmoid)
        _check_feature_names(self, X, reset=False)
        return np.column_stack([model.predict_proba(X)[:, 1] for model in self.estimators_])
