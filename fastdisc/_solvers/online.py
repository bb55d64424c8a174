"""Online learning: epochs of row-by-row updates until they no longer improve the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from .._kernels import OnlineRule, OnlineState
from .._kernels.contract import Array
from .._objectives.epochs import averaged_weights

RATE_DIVISOR, MIN_RATE = 5.0, 1e-6  # of adaptive steps
History = dict[str, list[float]]


class Epochs(Protocol):
    """What the solver asks of the rows."""

    @property
    def total_weight(self) -> float: ...

    def run(self, state: OnlineState, rule: OnlineRule) -> tuple[float, int]:
        """Update the arrays of the state by every row once; the sum of losses and the number of
        updates."""
        ...


class OnlineResult(NamedTuple):
    """Where the solver stopped, and the loss and the updates of each epoch."""

    W: Array
    converged: bool
    n_iter: int
    history: History
    exhausted: bool  # max_iter was reached before any other criterion
    last_W: Array  # the weights after the last row, of which W may be an average


class Stopping(NamedTuple):
    """When the solver stops before max_iter."""

    tol: float | None  # None: do not watch the objective
    patience: int = 5  # epochs in which the objective must fall by tol
    without_updates: bool = False  # an epoch without updates is the only form of convergence
    adaptive: bool = False  # divide the step by RATE_DIVISOR instead, down to MIN_RATE


def penalized_mean(rule: OnlineRule, loss: float, total: float, W: Array) -> float:
    """The mean loss of a row and class, plus the penalty."""
    w = W[:, 1:]
    norms = (1 - rule.l1) / 2 * np.vdot(w, w) + rule.l1 * np.abs(w).sum()
    return loss / total / len(W) + rule.alpha * norms / len(W)


def solve(
    epochs: Epochs,
    state: OnlineState,
    rule: OnlineRule,
    *,
    max_iter: int,
    stopping: Stopping,
    validation_error: Callable[[Array], float] | None = None,
    training_errors: Callable[[Array], float] | None = None,
    verbose: int = 0,
) -> OnlineResult:
    """Run epochs. The arrays of the state are updated.

    1. update the weights by every row once
    2. with `without_updates`, stop after an epoch without updates: the perceptron has converged
    3. with `training_errors(W)`, keep the weights with the fewest errors
    4. stop when the objective, or `validation_error(W)`, has not fallen by tol for `patience`
       epochs; with `adaptive`, reduce the step instead
    """
    history: History = {"loss": [], "updates": []}
    total, fewest, converged = epochs.total_weight, np.inf, False
    plateau, best_W = Plateau(stopping), None
    for n_iter in range(1, max_iter + 1):
        loss, updates = epochs.run(state, rule)  # 1
        W = averaged_weights(state, rule.begin)
        _record(history, loss / total, updates)
        if verbose:
            print(f"[online] {n_iter:>5}  loss {loss / total:.6g}  updates {updates}", flush=True)
        converged = stopping.without_updates and updates == 0  # 2
        if converged:
            break
        if training_errors is not None and (errors := training_errors(W)) < fewest:  # 3
            best_W, fewest = W.copy(), errors
        if stopping.tol is None:
            continue
        if validation_error is None:  # 4
            value = penalized_mean(rule, loss, total, state.W)
        else:
            value = validation_error(W)
        if plateau.reached(value):
            if not (stopping.adaptive and rule.eta > MIN_RATE):
                converged = not stopping.without_updates
                break
            rule, plateau.waited = rule._replace(eta=rule.eta / RATE_DIVISOR), 0
    W = averaged_weights(state, rule.begin) if converged or best_W is None else best_W
    exhausted = not converged and n_iter == max_iter and plateau.waited < stopping.patience
    return OnlineResult(W.copy(), converged, n_iter, history, exhausted, state.W)


class Plateau:
    """Whether values have not fallen by tol for `patience` epochs."""

    def __init__(self, stopping: Stopping):
        self.stopping, self.best, self.waited = stopping, np.inf, 0

    def reached(self, value: float) -> bool:
        """Add the value of an epoch."""
        tol = self.stopping.tol or 0.0
        self.waited = self.waited + 1 if value > self.best - tol else 0
        self.best = min(self.best, value)
        return self.waited >= self.stopping.patience


def _record(history: History, loss: float, updates: int) -> None:
    history["loss"].append(loss)
    history["updates"].append(updates)
