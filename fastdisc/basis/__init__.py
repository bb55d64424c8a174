"""Basis functions: features that are functions of the columns (10.3), for nonlinear discriminants.

Each basis is a transformer, and each can be passed to a linear model as `basis=`. Features are then
computed inside the sweep, a block of rows at a time, and the matrix of features is never stored.
"""

from .base import Concat, concat
from .column_functions import Gaussian, Log, Sine, Threshold
from .custom import Custom
from .polynomial import Polynomial, Quadratic
from .row_functions import HalfSpace, RadialGaussian

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
