"""The quadratic model of proximal Newton, and its minimum under an L1 penalty."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._kernels.contract import Array, Kernels
from .._objectives.penalty import Penalty
from .._objectives.protocol import Objective
from .result import start_norm

# Passes of coordinate descent between two linear systems, each of which costs about as much; and
# how often they alternate.
MIN_PASSES, MAX_ROUNDS, LAST_PASSES = 20, 30, 1000
WEIGHTS_PER_PASS = 12


class QuadraticModel:
    """A Hessian, the rows it comes from, and the steps that a better one would have saved (`debt`);
    the gradient norm at zero weights."""

    def __init__(self) -> None:
        self.H: Array | None = None
        self.penalty: Penalty | None = None
        self.rows, self.debt = 0, 0
        self.start: float | None = None

    def begin(self, objective: Objective) -> float:
        """Adopt the L2 penalty of an objective; the gradient norm at zero weights."""
        if self.start is None:
            self.start = start_norm(objective)
        if self.H is not None and self.penalty is not None:
            self.H = objective.penalty.replace_in(self.H, self.penalty)
        self.penalty = objective.penalty
        return self.start

    def draw(self, objective: Objective, W: Array, rows: int) -> Objective:
        """Take the Hessian at W from a sample of about that many rows; the sample."""
        part = objective.sample(rows, seed=rows) if rows < objective.n_rows else objective
        H = np.ascontiguousarray(part.hessian(W).hessian)
        self.penalty, self.rows, self.debt = objective.penalty, rows, 0
        if objective.penalty.shift_invariant:  # a common shift of the intercepts changes nothing
            D = W.shape[1]
            H[::D, ::D] += np.diag(H)[::D].mean() / len(W)
        diagonal = np.diag(H)
        floor = 1e-20 * diagonal.max()  # sparse columns are not rescaled: small entries are real
        H[np.diag_indices(len(H))] += np.where(diagonal > floor, 1e-10 * diagonal, floor)
        self.H = H
        return part

    def learn(self, s: Array, y: Array) -> None:
        """Correct the model by a step and the change of the gradient along it (BFGS)."""
        s, y = s.ravel(), y.ravel()
        Hs, sy = self.H @ s, float(s @ y)
        if sy > 1e-12 * float(s @ Hs) > 0:
            self.H += np.outer(y, y / sy) - np.outer(Hs, Hs / float(s @ Hs))

    def minimise(self, kernels: Kernels, W: Array, g: Array, penalty: Array) -> Array:
        """The weights at which the model with the L1 penalty is smallest.

        Coordinate descent finds which weights are 0, but is slow where columns are nearly
        collinear. So after some passes the others are solved for at once, until nothing changes
        (a9a, 50 values of C: 0.15 s of linear algebra instead of 0.39).
        """
        H = self.H
        assert H is not None
        w, l1, q = W.ravel().copy(), penalty.ravel(), H @ W.ravel() - g.ravel()
        tol = 1e-14 * max(1e-300, float(np.abs(g).max()) ** 2)
        passes = MIN_PASSES + len(w) // WEIGHTS_PER_PASS
        for _ in range(MAX_ROUNDS):
            if kernels.coordinate_descent(H, q, l1, w, tol, passes) < passes:
                return w.reshape(W.shape)
            if not solve_signs(H, q, l1, w):
                break
        kernels.coordinate_descent(H, q, l1, w, tol, LAST_PASSES)
        return w.reshape(W.shape)


def solve_signs(H: Array, q: Array, l1: Array, w: Array) -> bool:
    """Move w, in place, towards the model's minimum among weights of its signs, as far as the model
    falls; False if it has none.

    On the way some weights change their signs: each makes the slope along it, -(1 - t) s'As until
    then, rise by 2 l1 |s|.
    """
    some = np.flatnonzero((w != 0) | (l1 == 0) & (np.diag(H) > 0))
    A, old, l1 = H[np.ix_(some, some)], w[some], l1[some]
    slope = A @ old - q[some] + l1 * np.sign(old)
    _, step, failed = linalg.lapack.dposv(A, -slope)
    curvature = -float(slope @ step)  # s'As
    if failed or not 0 < curvature < np.inf:
        return False
    crossing = np.flatnonzero((l1 > 0) & (old * step < -(old**2)))
    crossing = crossing[np.argsort(-old[crossing] / step[crossing])]
    kinks = np.concatenate([[0], -old[crossing] / step[crossing], [np.inf]])
    rise = np.cumsum(2 * l1[crossing] * np.abs(step[crossing]))
    minima = 1 - np.concatenate([[0], rise]) / curvature  # of the parabola of each piece
    piece = int((minima <= kinks[1:]).argmax())
    w[some] = old + max(kinks[piece], minima[piece]) * step
    if minima[piece] <= kinks[piece]:
        w[some[crossing[kinks[1:-1] == kinks[piece]]]] = 0
    return True


def least_penalty_shift(W: Array, l1: Array, l2: Array) -> Array:
    """The same outputs at the smallest penalty: each column of W less a number c that minimises
    sum_k l1 |w_k| + l2 w_k^2 / 2.

    Softmax does not depend on c, and coordinate descent, one class at a time, is slow along it. The
    minimum is at 0, at a kink w_k, or between two kinks where the slope is 0.
    """
    w, K = W[:, 1:], len(W)
    kinks = np.sort(w, axis=0)
    between = kinks[:0]
    if np.any(l2):
        balance = K - 2 * np.arange(K + 1)[:, None]  # kinks above c minus those below
        shift = np.where(l2 > 0, -l1 * balance / np.where(l2 > 0, K * l2, 1), 0)
        between = kinks.mean(axis=0) - shift
    c = np.concatenate([np.zeros((1, w.shape[1])), kinks, between])  # (candidates, d)
    left = w[None] - c[:, None]
    costs = (l1 * np.abs(left) + l2 / 2 * left**2).sum(axis=1)
    better = costs.min(axis=0) < costs[0] * (1 - 1e-12)
    best = np.where(better, costs.argmin(axis=0), 0)
    W = W.copy()
    W[:, 1:] -= np.take_along_axis(c, best[None], axis=0)
    return W
