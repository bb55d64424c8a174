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


def norm(g):
    """||g||, without overflow or underflow of the squares."""
    top = float(np.abs(g).max())
    return top * float(np.linalg.norm(g / top)) if top else 0.0


def start_norm(sweep, W):
    """The norm of the gradient at W = 0, in whose units tolerances are: a warm start does not make them tighter."""
    return norm(sweep(np.zeros_like(W)).g)


class Trace:
    """History of a solver: loss, misclassified weight and ||w||, shown as it grows if `verbose`; a callback may stop it."""

    def __init__(self, name, verbose=0, callback=None, every=1):
        self.name, self.callback = name, callback
        self.every = 0 if verbose == 0 else every if verbose == 1 else 1
        self.history = {"loss": [], "errors": [], "norm": []}

    def add(self, sums, W):
        """Note one iteration; True if the callback asks to stop."""
        values = {"loss": float(sums.loss), "errors": float(sums.errors), "norm": float(np.linalg.norm(W[:, 1:]))}
        for key, value in values.items():
            self.history[key].append(value)
        step = len(self.history["loss"]) - 1
        if self.every and step % self.every == 0:
            print(f"[{self.name}] {step:>5}  " + "  ".join(f"{key} {value:.6g}" for key, value in values.items()), flush=True)
        return bool(self.callback and self.callback(step, values))
