"""Steps along a direction that lower the objective."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import Evaluation, Objective

ARMIJO = 1e-4  # share of the predicted decrease that a step must achieve
ROUNDING = 64 * np.finfo(float).eps  # relative error of a loss
MIN_STEP = 1e-8


def next_step(
    start: Evaluation, slope: float, p: Array, t: float, trial: Evaluation
) -> float | None:
    """None if the step t along p is accepted, else a shorter one to try.

    Where the predicted decrease is below the rounding error of the loss, the slope at the far end
    decides: it must not rise as steeply as it fell.
    """
    if not np.isfinite(trial.value):
        return 0.1 * t
    if trial.value <= start.value + ARMIJO * t * slope:
        return None
    size, far_slope = abs(start.value), float(np.vdot(trial.gradient, p))
    tolerance = 1e-9 if abs(slope) < 1e-8 * size else ROUNDING
    if trial.value <= start.value + tolerance * size and far_slope <= -0.8 * slope:
        return None
    excess = trial.value - start.value - t * slope
    return t * (float(np.clip(-slope * t / (2 * excess), 0.1, 0.5)) if excess > 0 else 0.5)


def line_search(
    objective: Objective,
    W: Array,
    p: Array,
    start: Evaluation,
    slope: float,
    min_step: float = MIN_STEP,
) -> tuple[float, Evaluation] | None:
    """A step t <= 1 along p that is accepted, and the evaluation there; None if there is none."""
    t = 1.0
    while t > min_step:
        trial = objective.value_and_gradient(W + t * p)
        shorter = next_step(start, slope, p, t, trial)
        if shorter is None:
            return t, trial
        t = shorter
    return None
