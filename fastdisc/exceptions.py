"""Warnings of this package."""

from sklearn.exceptions import ConvergenceWarning


class SeparationWarning(ConvergenceWarning):
    """Without a penalty the likelihood of separable data has no maximum: the weights would grow without end (seed E)."""


class CollinearWarning(UserWarning):
    """A covariance has no inverse: columns are constant, depend on each other, or are more than the rows can tell apart."""
