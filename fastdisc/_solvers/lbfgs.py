"""Quasi-Newton: a preconditioner, corrected by the last steps (limited-memory BFGS)."""

from __future__ import annotations

from .._kernels.contract import Array
from .._objectives.protocol import Capability, Objective, gradient_norm, requires
from . import preconditioners
from .descent import Descent, memory_size
from .preconditioners import MAX_GRAM_COLUMNS as MAX_GRAM_COLUMNS
from .result import Result, Trace, start_norm


@requires(Capability.SAMPLE, Capability.CURVATURE_DIAGONAL)
def solve(objective: Objective, W: Array, *, tol: float, max_iter: int, trace: Trace) -> Result:
    """Minimise by steps along -(preconditioner corrected by the last steps) g.

    1. the preconditioner, from a sample at the start
    2. descend until the gradient norm has fallen to tol times that at zero weights
    3. where no step lowers the loss any more, go on with products in float64; end if they are

    Two things were tried and were slower on 60,000 images of 784 pixels: to descend on the sample
    first (with fewer rows than weights its optimum is far off), and to renew the preconditioner.
    """
    base = preconditioners.estimate(objective, W)  # 1
    start = start_norm(objective) if W.any() else None
    descent = Descent(
        W,
        base,
        shift_invariant=objective.penalty.shift_invariant,
        memory=memory_size(W.size),
        record=lambda found, W: trace.add("lbfgs", found, W),
    )
    while True:
        descent.receive(objective.value_and_gradient(descent.trial_point))  # 2
        start = gradient_norm(descent.evaluation.gradient) if start is None else start
        if descent.finished(tol * start, max_iter):
            break
        if descent.stuck:  # 3
            precise = objective.use_float64()
            if precise is objective:
                break
            objective = precise
            descent.reevaluate()
    return descent.result(tol, start, trace)
