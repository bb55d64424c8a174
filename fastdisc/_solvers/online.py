"""Online learning: visits of all rows until nothing is left to learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    """Where it stopped, and what each visit brought."""

    W: np.ndarray
    converged: bool
    n_iter: int
    history: dict[str, list]
    exhausted: bool  # max_iter came before any other reason to stop
    last: np.ndarray  # the weights after the last row, which W may be an average of


def objective(rule, loss, total, W):
    """The mean loss of a row and class, plus the penalty."""
    w = W[:, 1:]
    return loss / total / len(W) + rule.alpha * ((1 - rule.l1) / 2 * np.vdot(w, w) + rule.l1 * np.abs(w).sum()) / len(W)


def solve(visits, state, rule, *, max_iter, tol, patience, clean=False, adaptive=False, errors=None, pocket=None, verbose=0):
    """Learn until a visit brings nothing new.

    1. visit every row once
    2. with `clean`, stop when no row was a mistake: the perceptron has converged
    3. with `pocket(W)`, the number of mistakes that W makes, keep the best weights seen
    4. stop when the objective, or `errors(W)` on rows that are not learned from, has not fallen by tol for `patience` visits;
       with `adaptive`, take steps of a fifth instead, down to 1e-6
    """
    history: dict[str, list] = {"loss": [], "updates": []}
    best, waited, kept, fewest, converged, total = np.inf, 0, None, np.inf, False, visits.total()
    for n_iter in range(1, max_iter + 1):
        loss, updates = visits(state, rule)  # 1
        W = state.weights(rule.begin)
        value = objective(rule, loss, total, state.W) if errors is None else errors(W)
        history["loss"].append(loss / total)
        history["updates"].append(updates)
        if verbose:
            print(f"[online] {n_iter:>5}  loss {loss / total:.6g}  updates {updates}", flush=True)
        converged = clean and updates == 0  # 2
        if converged:
            break
        if pocket is not None and (found := pocket(W)) < fewest:  # 3
            kept, fewest = W.copy(), found
        if tol is None:
            continue
        waited = waited + 1 if value > best - tol else 0  # 4
        best = min(best, value)
        if waited >= patience:
            if not (adaptive and rule.eta > 1e-6):
                converged = not clean
                break
            rule, waited = rule._replace(eta=rule.eta / 5), 0
    W = state.weights(rule.begin) if converged or kept is None else kept
    exhausted = not converged and n_iter == max_iter and not (tol is not None and waited >= patience)
    return Result(W.copy(), converged, n_iter, history, exhausted, state.W)
