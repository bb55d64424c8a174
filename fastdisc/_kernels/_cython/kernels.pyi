"""The functions of kernels.pxi: those of the contract."""

from ..contract import Kernels

CONSTANTS: dict[str, float]
ENUMS: dict[str, dict[str, int]]

def openmp_threads() -> int: ...

class_moments = Kernels.class_moments
coordinate_descent = Kernels.coordinate_descent
expand = Kernels.expand
hessian_product = Kernels.hessian_product
matmul = Kernels.matmul
online_epoch = Kernels.online_epoch
online_pairs = Kernels.online_pairs
outputs = Kernels.outputs
pair_curvature_product = Kernels.pair_curvature_product
pair_loss = Kernels.pair_loss
quadratic_scores = Kernels.quadratic_scores
query_curvature_product = Kernels.query_curvature_product
query_hessian = Kernels.query_hessian
query_loss = Kernels.query_loss
query_metric = Kernels.query_metric
query_sweep = Kernels.query_sweep
sweep = Kernels.sweep
sweep_many = Kernels.sweep_many
weighted_row_sum = Kernels.weighted_row_sum
