"""Mini-batch stochastic gradient descent with averaged weights (Polyak and Ruppert)."""

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

BATCH_ROWS = 128
DECAY_STEPS = 50  # step sizes fall as 1 / sqrt(1 + t / DECAY_STEPS)


@requires(Capability.BATCHES)
def solve(
    objective: Objective,
    W: Array,
    *,
    tol: float,
    max_iter: int,
    trace: Trace,
    seed: int = 0,
    eta: float | str = "auto",
) -> Result:
    """Minimise by steps on batches of rows; the weights are averaged, later steps more.

    1. shuffle the rows
    2. step against the mean gradient of each batch, with step sizes that fall as 1 / sqrt(t)
    3. after an epoch, the gradient over all rows at the average: stop when its norm has fallen to
       tol times that at zero weights
    """
    rng = np.random.default_rng(seed)
    start, norm, n_iter = start_norm(objective), np.inf, 0
    steps = Steps(objective, W, eta)
    for _epoch in range(max_iter):
        order = rng.permutation(objective.n_rows)  # 1
        for rows in np.array_split(order, max(1, len(order) // BATCH_ROWS)):
            steps.take(objective, np.sort(rows))  # 2
        found, n_iter = objective.value_and_gradient(steps.average), n_iter + 1  # 3
        norm = gradient_norm(found.gradient)
        if trace.add("sgd", found, steps.average) or norm <= tol * start:
            break
    return make_result(steps.average, norm, start, tol, n_iter, trace)


class Steps:
    """Weights, their average, and the step size of a run that may go on over further rows."""

    def __init__(self, objective: Objective, W: Array, eta: float | str):
        self.W, self.average, self.count = W, W, 0
        self.eta = _safe_step(objective) if isinstance(eta, str) else eta

    def take(self, objective: Objective, rows: Array, l1: Array | float = 0.0) -> None:
        """One step on some rows; an L1 penalty shrinks the weights after it."""
        self.count += 1
        W, part = self.W, objective.batch(rows)
        if part.total_weight:
            step = self.eta / np.sqrt(1 + self.count / DECAY_STEPS)
            W = W - step * part.value_and_gradient(W).gradient / part.total_weight
            if np.any(l1):
                shrink = step * l1 / objective.total_weight
                W[:, 1:] = np.sign(W[:, 1:]) * np.maximum(np.abs(W[:, 1:]) - shrink, 0)
        self.W = W
        # A weight of 2 / (t + 1) discounts the first steps, as if the later half counted.
        self.average = self.average + (W - self.average) * 2 / (self.count + 1)


def _safe_step(objective: Objective) -> float:
    """1 / L of the loss of one row: its curvature by the scores times the row's square."""
    check_capabilities(objective, f"{__name__} with eta='auto'", Capability.CURVATURE_DIAGONAL)
    _, diagonal = objective.curvature_diagonal()
    squares = float(diagonal[1:].sum()) / objective.total_weight + 1
    return 1 / objective.loss_curvature_bound / squares


class Stream:
    """What `partial_fit` keeps between calls: the steps, and the weight of the rows it has seen."""

    def __init__(self, W: Array, n_classes: int):
        self.start, self.class_weights = W, np.zeros(n_classes)
        self.steps: Steps | None = None
        self.seen, self.calls = 0.0, 0

    @property
    def average(self) -> Array:
        """The averaged weights."""
        return self.start if self.steps is None else self.steps.average

    @property
    def class_fractions(self) -> Array:
        """The share of each class in the weight of all rows."""
        return self.class_weights / self.class_weights.sum()

    def share(self, weight: float) -> float:
        """The share of rows of that weight, which come next, in all rows so far."""
        return weight / (self.seen + weight)

    def take(self, objective: Objective, l1: Array | float, eta: float | str) -> None:
        """One pass over further rows, in their order."""
        self.seen, self.calls = self.seen + objective.total_weight, self.calls + 1
        if self.steps is None:
            self.steps = Steps(objective, self.start, eta)
        order = np.arange(objective.n_rows)
        for rows in np.array_split(order, max(1, len(order) // BATCH_ROWS)):
            self.steps.take(objective, rows, l1)

    def add_classes(self, weights: Array) -> None:
        """Count the weight of the classes of further rows; later classes may be missing."""
        self.class_weights[: len(weights)] += weights
