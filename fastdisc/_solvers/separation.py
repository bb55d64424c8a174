"""Is the maximum of an unpenalised likelihood at infinity?"""

from __future__ import annotations

from .._kernels.contract import Array
from .._objectives.protocol import Capability, Objective, requires
from .preconditioners import inverse_hessian

MAX_WEIGHTS = 2000  # for which the Hessian of all rows is worth the answer
MIN_SCORE_CHANGE = 0.3  # of a Newton step that indicates separation


@requires(Capability.HESSIAN, Capability.MAX_ABS_SCORE)
def is_separated(objective: Objective, W: Array, errors: float) -> tuple[bool, Array | None]:
    """Whether the classes are separable, or some of their rows are along a direction that no row
    contradicts.

    At an ordinary optimum Newton's next step changes no score by much. Along a direction of
    separation each step changes the scores of its rows by about 1, however small the gradient.

    Returns the answer and the Hessian at W, None if it was not needed.
    """
    if errors == 0:
        return True, None
    if W.size > MAX_WEIGHTS:
        return False, None
    found = objective.hessian(W)
    assert found.hessian is not None
    inverse = inverse_hessian(found.hessian, W.shape, objective.penalty.shift_invariant)
    step = inverse(found.gradient)
    return objective.max_abs_score(step) > MIN_SCORE_CHANGE, found.hessian
