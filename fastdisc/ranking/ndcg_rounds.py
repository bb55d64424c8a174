"""NDCG by rounds: pairs are weighted by the change in NDCG if they were exchanged, the weights are
learned, and the order that they give defines the weights of the next round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import metrics
from .._kernels.contract import Array
from .._objectives.coordinates import Problem
from .._objectives.query_sums import QuerySums
from .._objectives.score_sums import EMPTY
from .._solvers.result import Result, Trace
from .._validation.queries import check_rank_limit

MAX_ROUNDS = 10


def solve_rounds(
    problem: Problem,
    W: Array,
    solve: Callable[[QuerySums, Array], Result],
    *,
    truncation: int | None,
    gains: str,
    trace: Trace,
) -> Result:
    """The result of the round with the best NDCG on the training rows; solve(data, W) solves one.

    Zero weights define no order: then the first order is that of the plain logistic loss. A
    solution is converged if its order is the one by which its pairs are weighted.
    """
    data: QuerySums = problem.data
    best, last, found, fixed, n_iter = None, None, [], False, 0
    keep = np.flatnonzero(np.broadcast_to(data.s > 0, data.n_rows))
    if not W.any() and not len(data.offset):
        plain = solve(data.replace(gain=EMPTY), W)
        W, n_iter = plain.W, plain.n_iter
    k = check_rank_limit(truncation, "truncation")
    for _ in range(MAX_ROUNDS):
        ordered = data.reordered(problem.to_raw(W), k)
        fixed = last is not None and np.array_equal(ordered.discount, last)
        if fixed:
            break
        last, result = ordered.discount, solve(ordered, W)
        W, n_iter = result.W, n_iter + result.n_iter
        scores, groups = data.scores(problem.to_raw(W))[keep], data.group[keep]
        y = data.y[keep]
        found.append(metrics.ndcg_score(y, scores, group=groups, k=truncation, gains=gains))
        trace.print("ndcg", f"round {len(found)}: NDCG {found[-1]:.6f}")
        if found[-1] >= max(found):
            best = result
    assert best is not None
    converged = fixed and best is result and result.converged
    history = best.history | {"ndcg": found}
    return best._replace(converged=converged, n_iter=n_iter, history=history)
