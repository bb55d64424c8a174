"""Solvers: functions of an objective (a penalised sweep). Each takes it and a start W (K, d+1), and returns a Result."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    """Where a solver stopped, and the certificate: the norm of the gradient over all rows, relative to that at W = 0.

    The certificate is that of `seen`, where the rows were summed last; W may be a step further on.
    """

    W: np.ndarray
    converged: bool
    n_iter: int
    gradient_norm: float
    history: dict[str, list[float]]
    stopped: bool = False  # because somebody asked for it: a callback, or early stopping
    seen: np.ndarray | None = None  # None where it is W

    @property
    def start(self):
        """Where the next solution on a path begins: of one score the sums there are known, and only the penalty changes."""
        return self.W if self.seen is None else self.seen


def choose(shape, sparse, l1, few=0):
    """The solver that suits a problem of K (d+1) weights; measured in bench/time_to_accuracy.py.

    L1 has a solver of its own. A Hessian is worth its factor up to some 2000 weights; of sparse data, where products with it cost
    little, up to 500 (3,000 rows of 10 values, 600 columns: 8 ms by products, 71 with Hessians; 50,000 of 120: 184, and 53).
    Beyond, dense data have a metric from one Gram matrix; sparse ones only a diagonal, with which products with the Hessian go
    further than a quasi-Newton memory. Where dense rows are few (`few` of them, 0 for many: see _kept.py), products beat
    Hessians from 100 weights on, with fewer than 32 rows for each (1,797 x 64, 10 classes: 40 ms, not 110; 500 x 1,500: 20, not
    1,000; but 30,000 x 30, 4 classes: 32, not 19).
    """
    weights = shape[0] * shape[1]
    if l1:
        return "proximal"
    if weights > 100 and 0 < few < 32 * weights:
        return "newton-cg"
    if weights <= (500 if sparse else 2000):
        return "newton"
    return "newton-cg" if sparse or shape[1] > 2500 else "lbfgs"


def norm(g):
    """||g||, without overflow or underflow of the squares."""
    square = float(np.vdot(g, g))
    if 1e-200 < square < 1e200:
        return math.sqrt(square)
    top = float(np.abs(g).max())
    return top * float(np.linalg.norm(g / top)) if top else 0.0


def start_norm(objective, W):
    """The norm of the gradient at W = 0, in whose units tolerances are: a warm start does not make them tighter."""
    return norm(objective(np.zeros_like(W)).g)


def result(W, size, start, tol, n_iter, trace, seen=None):
    """A Result whose certificate is the gradient's size over its start."""
    return Result(W, bool(size <= tol * start), n_iter, size / start if start else 0.0, trace.history, trace.stopped, seen)


class Trace:
    """History of a solver: loss, misclassified weight and ||w||, shown as it grows if `verbose`.

    Asks to stop when the callback does, or, with `patience`, when the misclassified weight is 0 or has not fallen for that many
    iterations (section 10.7.1).
    """

    def __init__(self, verbose=0, callback=None, patience=None):
        self.verbose, self.callback, self.patience = verbose, callback, patience
        self.history = {"loss": [], "errors": [], "norm": []}
        self.best, self.waited, self.stopped = np.inf, 0, False

    def add(self, solver, sums, W, every=1):
        """Note one iteration over all rows; True to stop."""
        values = {"loss": float(sums.loss), "errors": float(sums.errors), "norm": float(np.linalg.norm(W[:, 1:]))}
        for key, value in values.items():
            self.history[key].append(value)
        step = len(self.history["loss"]) - 1
        if self.verbose and step % (every if self.verbose == 1 else 1) == 0:
            self.say(solver, f"{step:>5}  " + "  ".join(f"{key} {value:.6g}" for key, value in values.items()))
        stop = bool(self.callback and self.callback(step, values))
        if self.patience is not None:
            self.waited = 0 if sums.errors < self.best else self.waited + 1
            self.best = min(self.best, sums.errors)
            stop = stop or sums.errors == 0 or self.waited >= self.patience
        self.stopped = bool(stop)
        return self.stopped

    def say(self, solver, text):
        """A line of progress."""
        if self.verbose:
            print(f"[{solver}] {text}", flush=True)
