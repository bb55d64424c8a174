"""Mini-batch stochastic gradient descent with averaged weights (Polyak and Ruppert)."""

from __future__ import annotations

import numpy as np

from . import norm, result, start_norm

BATCH = 128


def solve(objective, W, *, tol, max_iter, trace, seed=0, eta="auto"):
    """Minimise by steps on batches of rows drawn anew each epoch; the weights are averaged, late steps more.

    1. shuffle the rows
    2. step against each batch's gradient, eta / sqrt(steps), in units that the columns' squares set
    3. after an epoch, the gradient over all rows at the average: stop when its norm has fallen to tol times that at W = 0
    """
    rng = np.random.default_rng(seed)
    start = start_norm(objective, W)
    average, size, n_iter = W, np.inf, 0
    state = State(objective, W.shape, eta)
    for _epoch in range(max_iter):
        order = rng.permutation(objective.rows)  # 1
        for rows in np.array_split(order, max(1, len(order) // BATCH)):
            W = state.step(objective, W, np.sort(rows))  # 2
            average = average + (W - average) * 2 / (state.steps + 1)
        sums, n_iter = objective(average), n_iter + 1  # 3
        size = norm(sums.g)
        if trace.add("sgd", sums, average) or size <= tol * start:
            break
    return result(average, size, start, tol, n_iter, trace)


class State:
    """Step sizes of a run."""

    def __init__(self, objective, shape, eta):
        self.steps = 0
        if eta == "auto":
            # 1 / L of one row's loss: the curvature of a sigmoid is at most 1/4, that of softmax 1/2, times the row's square
            squares = float(objective.sweep.squares().sum()) / objective.sweep.total() + 1
            eta = (4.0 if shape[0] == 1 else 2.0) / squares
        self.eta = eta

    def step(self, objective, W, rows, l1=0.0):
        """One step on some rows; the penalties enter with the rows' share of the whole, L1 by shrinking the weights."""
        self.steps += 1
        part = objective.sweep.part(rows)
        if part.total() == 0:
            return W
        g = part(W).g / part.total()
        g[:, 1:] += objective.l2 * W[:, 1:] / objective.sweep.total()
        g[objective.held(W.shape)] = 0
        eta = self.eta / np.sqrt(1 + self.steps / 50)
        W = W - eta * g
        if np.any(l1):
            W[:, 1:] = np.sign(W[:, 1:]) * np.maximum(np.abs(W[:, 1:]) - eta * l1 / objective.sweep.total(), 0)
        return W


class Stream:
    """What `partial_fit` keeps from call to call: weights, their average, step sizes, and what rows it has seen."""

    def __init__(self, W):
        self.W, self.average, self.state, self.seen, self.calls, self.mass = W, W, None, 0.0, 0, 0.0

    def take(self, problem, n_classes, l1, l2, eta):
        """One pass over a chunk of rows, in their order."""
        total = problem.raw.total()
        self.seen, self.calls = self.seen + total, self.calls + 1
        self.mass = self.mass + total * np.pad(problem.raw.fractions(), (0, n_classes - len(problem.raw.mass)))
        objective = problem.penalized(l2 * total / self.seen)
        if self.state is None:
            self.state = State(objective, self.W.shape, eta)
        for rows in np.array_split(np.arange(objective.rows), max(1, objective.rows // BATCH)):
            self.W = self.state.step(objective, self.W, rows, problem.l1(l1) * total / self.seen)
            # The average forgets the first steps: weight 2 / (n + 1), as if the later half counted.
            self.average = self.average + (self.W - self.average) * 2 / (self.state.steps + 1)
