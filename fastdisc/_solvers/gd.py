"""Batch gradient descent, as in figures 10.6 and 10.8."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import (
    Capability,
    Objective,
    check_capabilities,
    gradient_norm,
    requires,
)
from .result import Result, Trace, make_result, start_norm


@requires()
def solve(
    objective: Objective,
    W: Array,
    *,
    tol: float,
    max_iter: int,
    trace: Trace,
    eta: float | str = "auto",
) -> Result:
    """Minimise by W <- W - eta dE/dW  (10.16)-(10.17), (10.24), (10.33).

    1. the gradient over all rows
    2. stop when its norm has fallen to tol times that at zero weights
    3. take a step of eta against it

    eta="auto" is 1 / L, where L bounds the curvature: then every step lowers the loss.
    """
    step = _safe_step(objective) if isinstance(eta, str) else eta
    start = start_norm(objective)
    for n_iter in range(max_iter + 1):
        found = objective.value_and_gradient(W)  # 1
        norm = gradient_norm(found.gradient)
        if not np.isfinite(norm):
            raise ValueError(
                f"gradient descent diverged with eta={step:g}: take a smaller one, or eta='auto'"
            )
        stop = trace.add("gd", found, W, every=100)
        if norm <= tol * start or stop or n_iter == max_iter:  # 2
            break
        W = W - step * found.gradient  # 3
    return make_result(W, norm, start, tol, n_iter, trace)


def _safe_step(objective: Objective) -> float:
    """1 / L"""
    check_capabilities(objective, f"{__name__} with eta='auto'", Capability.CURVATURE_BOUND)
    return 1 / objective.curvature_bound()
