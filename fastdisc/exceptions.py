"""Warnings of this package."""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["CollinearWarning", "SeparationWarning"]


class SeparationWarning(ConvergenceWarning):
    """The classes are linearly separable and there is no penalty.

    The likelihood then has no maximum: the weights would grow without bound.
    """


class CollinearWarning(UserWarning):
    """A covariance matrix is singular.

    Columns are constant or linearly dependent, or there are fewer rows than columns.
    """
