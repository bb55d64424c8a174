"""What a solver returns, and the trace of its iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import Evaluation, Objective, gradient_norm

History = dict[str, list[float]]
Callback = Callable[[int, dict[str, float]], object]


class Result(NamedTuple):
    """Where a solver stopped, and the certificate: the norm of the gradient over all rows, relative
    to that at zero weights.

    The certificate is that at `evaluated_at`; W may be one step further, taken without
    re-evaluating the gradient.
    """

    W: Array
    converged: bool
    n_iter: int
    gradient_norm: float
    history: History
    stopped: bool = False  # by a callback or by early stopping
    evaluated_at: Array | None = None  # None if it is W

    @property
    def start(self) -> Array:
        """Where the next solution of a path starts: the sums there are known, and only the penalty
        changes."""
        return self.W if self.evaluated_at is None else self.evaluated_at


def start_norm(objective: Objective) -> float:
    """The gradient norm at zero weights, the unit of tolerances: a warm start does not make them
    tighter."""
    return gradient_norm(objective.value_and_gradient(np.zeros(objective.shape)).gradient)


def make_result(
    W: Array,
    norm: float,
    start: float,
    tol: float,
    n_iter: int,
    trace: Trace,
    evaluated_at: Array | None = None,
) -> Result:
    """A Result whose certificate is the gradient norm relative to `start`."""
    converged, relative = bool(norm <= tol * start), norm / start if start else 0.0
    return Result(W, converged, n_iter, relative, trace.history, trace.stopped, evaluated_at)


class Trace:
    """The history of a solver: loss, misclassified weight and ||w|| per iteration.

    `verbose` prints it. A true result of the callback stops the solver; so does, with `patience`, a
    misclassified weight that is 0 or has not decreased for that many iterations (section 10.7.1).
    """

    def __init__(
        self, verbose: int = 0, callback: Callback | None = None, patience: int | None = None
    ):
        self.verbose, self.callback, self.patience = verbose, callback, patience
        self.history: History = {"loss": [], "errors": [], "norm": []}
        self.fewest_errors, self.waited, self.stopped = np.inf, 0, False

    def add(self, solver: str, found: Evaluation, W: Array, every: int = 1) -> bool:
        """Record an iteration over all rows; True to stop."""
        values = {
            "loss": float(found.value),
            "errors": float(found.errors),
            "norm": float(np.linalg.norm(W[:, 1:])),
        }
        for key, value in values.items():
            self.history[key].append(value)
        step = len(self.history["loss"]) - 1
        if self.verbose and step % (every if self.verbose == 1 else 1) == 0:
            text = "  ".join(f"{key} {value:.6g}" for key, value in values.items())
            self.print(solver, f"{step:>5}  {text}")
        stop = bool(self.callback and self.callback(step, values))
        if self.patience is not None:
            self.waited = 0 if found.errors < self.fewest_errors else self.waited + 1
            self.fewest_errors = min(self.fewest_errors, found.errors)
            stop = stop or found.errors == 0 or self.waited >= self.patience
        self.stopped = bool(stop)
        return self.stopped

    def print(self, solver: str, text: str) -> None:
        """Print a line of progress if verbose."""
        if self.verbose:
            print(f"[{solver}] {text}", flush=True)
