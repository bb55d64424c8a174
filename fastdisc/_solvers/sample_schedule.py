"""Costs of gradients and Hessians, and the sizes of the growing samples of Newton's method.

A sample of m rows has its optimum, and its Hessian, within about sqrt(D / m) of those of all rows,
D being the number of weights. The thresholds that concern samples are here, each with the
measurement that decided it; those of the descent on all rows are in `newton.py`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

MIN_ROWS_PER_WEIGHT = 15  # in the smallest sample
# The same for losses that are not convex: a sample decides which of their minima is found.
MIN_ROWS_PER_WEIGHT_NONCONVEX = 40
MAX_GROWTH = 15  # from one sample to the next
GRADIENTS_PER_HESSIAN = 3  # that the largest sample takes beside one Hessian
DRAW_COST = 7  # gradients that drawing a row costs: a random access to memory, on one thread
CALL_CELLS = 250_000  # cells that a sweep reads in the time of a call and a step: 0.1 ms
MAX_SAMPLE_CELLS = 4_000_000  # of the largest sample, unless that is all rows: 32 MB
MAX_PREDICTED_DECREASE = 0.002  # share of the loss: such a step moves scores by less than 0.1
COLUMNS_PER_GRADIENT = 12  # a Hessian costs D / 12 gradients


def hessian_cost(unknowns: float) -> float:
    """The cost of a row in a sweep with the Hessian, in rows of a sweep for the gradient."""
    return 1 + unknowns / COLUMNS_PER_GRADIENT


def hessian_price(rows: int, unknowns: int, columns: int) -> float:
    """The cost of a sweep with the Hessian, in sweeps for the gradient."""
    with_hessian = CALL_CELLS + hessian_cost(unknowns) * rows * columns
    return with_hessian / (CALL_CELLS + rows * columns)


def sufficient_decrease(rows: int, unknowns: int, all_rows: bool) -> float:
    """The share of the loss below which a predicted decrease ends the descent on a sample: the next
    sample changes more."""
    if all_rows:
        return 0.05 * unknowns / rows
    return min(MAX_PREDICTED_DECREASE, 2 * unknowns / rows)


@cache
def sample_sizes(
    rows: int, unknowns: int, columns: int, rows_per_weight: int = MIN_ROWS_PER_WEIGHT
) -> list[int]:
    """Sizes of the samples: from a few rows per weight to where a larger one would cost more than
    the sweeps it saves."""
    if rows * columns <= CALL_CELLS:
        return [rows]
    smallest = rows_per_weight * unknowns
    sizes = np.geomspace(smallest, rows, 25) if smallest < rows else np.array([rows])
    cost = hessian_cost(unknowns) + GRADIENTS_PER_HESSIAN + DRAW_COST * (sizes < rows)
    sweeps = np.log(1e-9) / np.log(np.minimum(2 * unknowns / sizes, 0.5))
    last = sizes[np.argmin(cost * sizes + (rows + CALL_CELLS / columns) * sweeps)]
    first = max(smallest, 500)
    last = rows if last > rows / 2 else int(min(last, max(first, MAX_SAMPLE_CELLS / columns)))
    steps = np.ceil(np.log(last / first) / np.log(MAX_GROWTH)) if last > 2 * first else 0
    sizes = np.geomspace(last if steps == 0 else first, last, int(steps) + 1)
    return sizes.round().astype(int).tolist()
