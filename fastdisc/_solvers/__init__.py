"""Solvers: functions of a sweep. Each takes the sweep and a start W (K, d+1), and returns a Result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    """Where a solver stopped, and the certificate: the norm of the gradient over all rows, relative to that at W = 0."""

    W: np.ndarray
    converged: bool
    n_iter: int
    gradient_norm: float
    history: dict[str, list[float]]


def start_norm(sweep, W):
    """The norm of the gradient at W = 0, in whose units tolerances are: a warm start does not make them tighter."""
    return float(np.linalg.norm(sweep(np.zeros_like(W)).g))


class Trace:
    """History of a solver: loss, misclassified weight and ||w||, shown as it grows if `verbose`; a callback may stop it."""

    def __init__(self, name, verbose=0, callback=None):
        self.name, self.verbose, self.callback = name, verbose, callback
        self.history = {"loss": [], "errors": [], "norm": []}

    def add(self, sums, W):
        """Note one iteration; True if the callback asks to stop."""
        values = {"loss": float(sums.loss), "errors": float(sums.errors), "norm": float(np.linalg.norm(W[:, 1:]))}
        for key, value in values.items():
            self.history[key].append(value)
        step = len(self.history["loss"]) - 1
        if self.verbose and step % max(1, 10 ** (2 - self.verbose)) == 0:
            print(f"[{self.name}] {step:>5}  " + "  ".join(f"{key} {value:.6g}" for key, value in values.items()), flush=True)
        return bool(self.callback and self.callback(step, values))
