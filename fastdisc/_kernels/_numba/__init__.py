"""The Numba backend: the kernels, compiled when they are first called.

Layouts are added by `layouts.ARGUMENTS` and implementations of its verbs, losses by
`losses.register_loss`. `custom.py` compiles a user's basis functions for all backends.
"""

from . import layout_dense as layout_dense  # registers its layout, as do the others
from .layout_csr import matmul
from .layout_mapped import expand
from .metrics import query_metric
from .moments import class_moments, quadratic_scores
from .online import coordinate_descent, online_epoch, online_pairs
from .ranking import (
    pair_curvature_product,
    pair_loss,
    query_curvature_product,
    query_hessian,
    query_loss,
    query_sweep,
)
from .sweep import hessian_product, outputs, sweep, sweep_chunk, weighted_row_sum
from .sweep_many import sweep_many
from .threads import threading_layer

__all__ = [
    "cache_path",
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
    "threading_layer",
    "weighted_row_sum",
]


def cache_path() -> str | None:
    """The folder of the disk cache; None if there is none."""
    return sweep_chunk.stats.cache_path
