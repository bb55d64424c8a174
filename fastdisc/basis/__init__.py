"""Basis functions: features that are functions of the columns (10.3), for discriminants that bend.

Each is a transformer, and each can be given to a linear model as `basis=`: then rows are expanded a block at a time inside the
sweep, in cache, and the matrix of features never exists.
"""

from ._base import Concat, concat
from ._columns import Gaussian, Log, Sine, Threshold
from ._custom import Custom
from ._polynomial import Polynomial, Quadratic
from ._rows import HalfSpace, RadialGaussian

__all__ = [
    "Concat",
    "Custom",
    "Gaussian",
    "HalfSpace",
    "Log",
    "Polynomial",
    "Quadratic",
    "RadialGaussian",
    "Sine",
    "Threshold",
    "concat",
]
