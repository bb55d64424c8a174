"""The reference backend: one readable line per equation, in float64."""

from .metrics import query_metric
from .online import coordinate_descent, online_epoch, online_pairs
from .ranking import (
    pair_curvature_product,
    pair_loss,
    query_curvature_product,
    query_hessian,
    query_loss,
    query_sweep,
)
from .rows import (
    class_moments,
    expand,
    hessian_product,
    matmul,
    outputs,
    quadratic_scores,
    sweep,
    sweep_many,
    weighted_row_sum,
)

__all__ = [
    "class_moments",
    "coordinate_descent",
    "expand",
    "hessian_product",
    "matmul",
    "online_epoch",
    "online_pairs",
    "outputs",
    "pair_curvature_product",
    "pair_loss",
    "quadratic_scores",
    "query_curvature_product",
    "query_hessian",
    "query_loss",
    "query_metric",
    "query_sweep",
    "sweep",
    "sweep_many",
    "weighted_row_sum",
]
