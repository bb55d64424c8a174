"""Geometry of linear discriminants: distances, projections, hyperplanes and decision regions.

A model is any fitted estimator with `coef_` and `intercept_`, of this library or of scikit-learn; a
`Hyperplane` can be passed where a function needs a single plane. Points are rows.
"""

from .distances import (
    between,
    distance_to_origin,
    hyperplane,
    project,
    side,
    signed_distance,
)
from .planes import Hyperplane
from .regions import boundary_2d, region_contains_segment

__all__ = [
    "Hyperplane",
    "between",
    "boundary_2d",
    "distance_to_origin",
    "hyperplane",
    "project",
    "region_contains_segment",
    "side",
    "signed_distance",
]
