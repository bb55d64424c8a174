"""NDCG by rounds: pairs are weighted by what exchanging them would change, the weights are learned, and the order is another."""

from __future__ import annotations

import numpy as np

from . import metrics
from ._rank_sweep import NONE
from ._validate_rank import depth

ROUNDS = 10


def climb(problem, W, solve, *, truncation, gains, trace):
    """The result of the round that has the best NDCG on the training rows; solve(sweep, W) is a round's.

    Zero weights make no order: there the first is that of the plain logistic loss. Converged is a solution whose order is the
    one by which its pairs are weighted.
    """
    raw, best, last, found, fixed, n_iter = problem.raw, None, None, [], False, 0
    keep = np.flatnonzero(np.broadcast_to(raw.s > 0, raw.rows))
    if not W.any() and not len(raw.offset):
        plain = solve(raw.changed(gain=NONE), W)
        W, n_iter = plain.W, plain.n_iter
    for _ in range(ROUNDS):
        sweep = raw.reorder(problem.outward(W), depth(truncation, "truncation"))
        fixed = last is not None and np.array_equal(sweep.discount, last)
        if fixed:
            break
        last, result = sweep.discount, solve(sweep, W)
        W, n_iter = result.W, n_iter + result.n_iter
        scores = raw.scores(problem.outward(W))[keep]
        found.append(metrics.ndcg_score(raw.y[keep], scores, group=raw.group[keep], k=truncation, gains=gains))
        trace.say("ndcg", f"round {len(found)}: NDCG {found[-1]:.6f}")
        if found[-1] >= max(found):
            best = result
    converged = fixed and best is result and result.converged
    return best._replace(converged=converged, n_iter=n_iter, history=best.history | {"ndcg": found})
