"""A two-class classifier that always predicts the same class."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _num_samples

from .._kernels.contract import Array


class Constant(ClassifierMixin, BaseEstimator):
    """The discriminant of a two-class problem in which all rows belong to one class.

    It predicts that class, 0 or 1, with probability 1.
    """

    def fit(self, X: Any, y: Array, sample_weight: Any = None) -> Self:
        self.classes_, self.y_ = np.array([0, 1]), int(y[0])
        return self

    def decision_function(self, X: Any) -> Array:
        return np.full(_num_samples(X), 2.0 * self.y_ - 1)

    def predict(self, X: Any) -> Array:
        return np.full(_num_samples(X), self.y_)

    def predict_proba(self, X: Any) -> Array:
        return np.tile([1.0 - self.y_, self.y_], (_num_samples(X), 1))
