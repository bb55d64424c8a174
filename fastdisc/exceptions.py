"""Warnings of this package."""

from sklearn.exceptions import ConvergenceWarning


class SeparationWarning(ConvergenceWarning):
    """Without a penalty the likelihood of separable data has no maximum: the weights would grow without end (seed E)."""
