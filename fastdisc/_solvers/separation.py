"""Is the maximum of an unpenalised likelihood at infinity? (seed E)"""

from __future__ import annotations

from . import metric

LARGEST = 2000  # weights for which the Hessian of all rows is worth the answer


def separated(objective, W, errors):
    """Whether the classes are separable, or some of their rows are along a direction that no row contradicts.

    At an ordinary optimum Newton's next step changes no score by much. Along a direction without end each step changes the scores
    of its rows by about 1, however small the gradient has become.

    Returns the answer and the Hessian at W, None where it was not needed.
    """
    if errors == 0:
        return True, None
    if W.size > LARGEST:
        return False, None
    sums = objective(W, 2)
    step = metric.full(sums.H, W.shape, objective.singular)(sums.g)
    return objective.sweep.largest_score(step) > 0.3, sums.H
