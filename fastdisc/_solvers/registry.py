"""The solvers by name, and the rule behind solver="auto"."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .._objectives.protocol import Objective
from . import gd, lbfgs, newton, newton_cg, proximal, sgd
from .result import Result

# A Hessian is worth its factorisation up to this many weights. For sparse data, whose Hessian
# products are cheap, up to fewer. (3,000 rows of 10 values, 600 columns: 8 ms by products, 71 with
# Hessians; 50,000 rows of 120 values: 184 and 53 ms.)
MAX_NEWTON_WEIGHTS, MAX_NEWTON_WEIGHTS_SPARSE = 2000, 500
# On small dense data products are faster than Hessians from this many weights on, with fewer than
# so many rows per weight. (1,797 x 64, 10 classes: 40 ms instead of 110; 500 x 1,500: 20 instead of
# 1,000; but 30,000 x 30, 4 classes: 32 instead of 19.)
MIN_PRODUCT_WEIGHTS, MAX_PRODUCT_ROWS_PER_WEIGHT = 100, 32


class Solver(NamedTuple):
    """A solver and its default number of iterations."""

    solve: Callable[..., Result]
    max_iter: int


SOLVERS: dict[str, Solver] = {
    "newton": Solver(newton.solve, 200),
    "newton-cg": Solver(newton_cg.solve, 200),
    "lbfgs": Solver(lbfgs.solve, 2000),
    "proximal": Solver(proximal.solve, 1000),
    "gd": Solver(gd.solve, 10_000),
    "sgd": Solver(sgd.solve, 20),
}


def choose_solver(objective: Objective, l1: float, prefer_products: bool = False) -> str:
    """The solver that suits an objective; measured in bench/time_to_accuracy.py.

    An L1 penalty has a solver of its own. Beyond the limits above, dense data have a preconditioner
    from one Gram matrix; sparse and very wide data only a diagonal one, with which Hessian products
    converge faster than a quasi-Newton memory. `prefer_products` allows products on small dense
    data.
    """
    (K, D), costs = objective.shape, objective.costs
    weights = K * D
    if l1:
        return "proximal"
    few_rows = 0 < objective.n_rows < MAX_PRODUCT_ROWS_PER_WEIGHT * weights
    small = prefer_products and costs.is_small_dense and few_rows
    if small and weights > MIN_PRODUCT_WEIGHTS:
        return "newton-cg"
    if weights <= (MAX_NEWTON_WEIGHTS_SPARSE if costs.is_sparse else MAX_NEWTON_WEIGHTS):
        return "newton"
    return "newton-cg" if costs.is_sparse or D > lbfgs.MAX_GRAM_COLUMNS else "lbfgs"
