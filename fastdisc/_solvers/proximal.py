"""Proximal Newton for the L1 and elastic-net penalties, on working sets of columns.

The smooth part of the objective is modelled by a quadratic: its gradient over all rows, and the Hessian of a sample, corrected by
what each step teaches (BFGS). Coordinate descent on that model, which never touches the data, gives the next weights.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._config import one_blas_thread
from . import norm, result, start_norm
from .newton import hessian_cost, schedule

WHOLE = 1200  # weights up to which all columns are worked on at once
PASSES, ROUNDS = 20, 30  # of coordinate descent between two linear systems, each of which costs about as much; and how often
FRESH = 3  # steps that a solution near the last one takes with the Hessian there
SETTLED = 0.3  # a working set is left when its share of the conditions is that much nearer to being met


@one_blas_thread()  # threads of BLAS that wait for work would take the time of the sweeps' threads
def solve(objective, W, *, l1, tol, max_iter, trace, model=None):
    """Minimise the objective plus sum_kj l1_j |w_kj| over all weights but the intercepts.

    1. the gradient over all rows and columns, and how far the weights are from the conditions of an optimum
    2. stop when that distance has fallen to tol times the gradient's norm at W = 0
    3. the working set: columns with weights, and those that break the conditions most
    4. descend on it

    `model` is the quadratic model that an earlier solution on all columns left, if any.
    """
    penalty = np.zeros(W.shape)
    penalty[:, 1:] = l1
    penalty[objective.held(W.shape)] = 0
    whole = W.size <= WHOLE
    model = Model() if model is None else model
    model.adapt(objective, W.shape)
    start = model.start
    n_iter = 0
    while True:
        sums = objective(W)  # 1
        gap = violation(sums.g, W, penalty)
        size = norm(gap)
        stop = trace.add("proximal", with_penalty(sums, W, penalty), W)
        if size <= tol * start or stop or n_iter >= max_iter:  # 2
            return result(W, size, start, tol, n_iter, trace)
        if whole:
            before = W
            W = descend(objective, W, penalty, model, goal=tol * start, max_iter=max_iter - n_iter, sums=sums, trace=trace)
            steps = model.steps
        else:
            columns = working_set(gap, W)  # 3
            places = np.concatenate([[0], columns + 1])
            part, inner = objective.columns(columns), Model()
            goal = max(tol * start, SETTLED * size) / 2
            before, W = W, W.copy()
            some = np.ascontiguousarray(W[:, places])
            W[:, places] = descend(part, some, penalty[:, places], inner, goal=goal, max_iter=max_iter - n_iter, trace=trace)  # 4
            steps = inner.steps
        n_iter += max(1, steps)
        if np.array_equal(before, W):
            return result(W, size, start, tol, n_iter, trace)


def with_penalty(sums, W, penalty):
    """The sums, the L1 penalty added to the loss."""
    return sums._replace(loss=sums.loss + float((penalty * np.abs(W)).sum()))


def violation(g, W, penalty):
    """How far the weights are from an optimum: the least element of the subdifferential, (K, d+1)."""
    return np.where(W != 0, g + penalty * np.sign(W), np.sign(g) * np.maximum(np.abs(g) - penalty, 0))


def working_set(gap, W, least=100):
    """Columns with weights, and as many again, or more, that break the conditions most."""
    active = (W[:, 1:] != 0).any(axis=0)
    badness = np.where(active, 0, np.abs(gap[:, 1:]).max(axis=0))
    count = max(1, min(max(least, active.sum()), (badness > 0).sum()))  # one, where the intercept alone breaks them
    active[np.argpartition(-badness, count - 1)[:count]] = True
    return np.flatnonzero(active)


class Model:
    """The Hessian of the quadratic model, the rows that it comes from, and the steps that a better one would have saved (`debt`);
    the gradient's norm at W = 0."""

    def __init__(self):
        self.H, self.l2, self.rows, self.steps, self.debt, self.start = None, 0.0, 0, 0, 0, None

    def adapt(self, objective, shape):
        """Another L2 penalty than the one that the Hessian has in it."""
        self.start = start_norm(objective, np.zeros(shape)) if self.start is None else self.start
        if self.H is not None:
            change = np.zeros(shape)
            change[:, 1:] = objective.l2 - self.l2
            self.H[np.diag_indices(len(self.H))] += change.ravel()
        self.l2 = objective.l2

    def draw(self, objective, W, rows):
        """Take the Hessian at W from a sample of about that many rows."""
        part = objective.sample(rows, seed=rows) if rows < objective.rows else objective
        self.H, self.l2, self.rows, self.debt = np.ascontiguousarray(part(W, 2).H), objective.l2, rows, 0
        if objective.singular and len(W) > 1:  # the intercepts' common shift changes nothing: see metric.full
            D = W.shape[1]
            self.H[::D, ::D] += np.diag(self.H)[::D].mean() / len(W)
        floor = 1e-20 * np.diag(self.H).max()  # sparse columns are not rescaled: small ones are real
        self.H[np.diag_indices(len(self.H))] += np.where(np.diag(self.H) > floor, 1e-10 * np.diag(self.H), floor)
        return part

    def learn(self, s, y):
        """Correct the model by a step and the change of the gradient along it (BFGS)."""
        s, y = s.ravel(), y.ravel()
        Hs, sy = self.H @ s, float(s @ y)
        if sy > 1e-12 * float(s @ Hs) > 0:
            self.H += np.outer(y, y / sy) - np.outer(Hs, Hs / float(s @ Hs))

    def minimise(self, kernels, W, g, penalty):
        """The weights at which the model is least.

        Coordinate descent finds out which weights are 0, and creeps where columns are all but collinear. So after some passes
        the others are solved for at once, until nothing is left to do (a9a, 50 values of C: 0.15 s of linear algebra, not 0.39).
        """
        w, l1, q = W.ravel().copy(), penalty.ravel(), self.H @ W.ravel() - g.ravel()
        tol, passes = 1e-14 * max(1e-300, float(np.abs(g).max()) ** 2), PASSES + len(w) // 12
        for _ in range(ROUNDS):
            if kernels.coordinate_descent(self.H, q, l1, w, tol, passes) < passes:
                return w.reshape(W.shape)
            if not jump(self.H, q, l1, w):
                break
        kernels.coordinate_descent(self.H, q, l1, w, tol, 1000)
        return w.reshape(W.shape)


def jump(H, q, l1, w):
    """Move w, in place, towards the model's minimum among weights of its signs, as far as the model falls; False if it has none.

    On the way some change their signs: each of those makes the slope along it, -(1 - t) s'As until then, rise by 2 l1 |s|.
    """
    some = np.flatnonzero((w != 0) | (l1 == 0) & (np.diag(H) > 0))
    A, old, l1 = H[np.ix_(some, some)], w[some], l1[some]
    slope = A @ old - q[some] + l1 * np.sign(old)
    _, step, failed = linalg.lapack.dposv(A, -slope)
    bend = -float(slope @ step)  # s'As
    if failed or not 0 < bend < np.inf:
        return False
    turns = np.flatnonzero((l1 > 0) & (old * step < -(old**2)))
    turns = turns[np.argsort(-old[turns] / step[turns])]
    kinks = np.concatenate([[0], -old[turns] / step[turns], [np.inf]])
    least = 1 - np.concatenate([[0], np.cumsum(2 * l1[turns] * np.abs(step[turns]))]) / bend  # of each piece's parabola
    piece = int((least <= kinks[1:]).argmax())
    w[some] = old + max(kinks[piece], least[piece]) * step
    if least[piece] <= kinks[piece]:
        w[some[turns[kinks[1:-1] == kinks[piece]]]] = 0
    return True


def settle(W, l1, l2):
    """The same outputs at the least penalty: each column of W less a number c that makes sum_k l1 |w_k| + l2 w_k^2 / 2 least.

    Softmax does not see c, and coordinate descent, one class at a time, creeps along it. The least is at 0, at a kink w_k, or
    between two kinks where the slope is 0.
    """
    w, K = W[:, 1:], len(W)
    kinks = np.sort(w, axis=0)
    above = K - 2 * np.arange(K + 1)[:, None]  # kinks above c less those below
    between = kinks.mean(axis=0) - np.where(l2 > 0, -l1 * above / np.where(l2 > 0, K * l2, 1), 0) if np.any(l2) else kinks[:0]
    c = np.concatenate([np.zeros((1, w.shape[1])), kinks, between])  # (candidates, d)
    left = w[None] - c[:, None]
    costs = (l1 * np.abs(left) + l2 / 2 * left**2).sum(axis=1)
    best = np.where(costs.min(axis=0) < costs[0] * (1 - 1e-12), costs.argmin(axis=0), 0)
    W = W.copy()
    W[:, 1:] -= np.take_along_axis(c, best[None], axis=0)
    return W


def descend(objective, W, penalty, model, *, goal, max_iter, trace, sums=None):
    """Proximal Newton steps until the violation's norm is below `goal`.

    1. the model's minimum gives the direction
    2. a step along it that lowers the objective
    3. the model learns from the step
    4. where steps beyond the first few, on this path so far, have cost what a better Hessian does, that is taken
    """
    model.steps, kernels, price = 0, data(objective).kernels, hessian_price(objective, W.shape)
    sums = objective(W) if sums is None else sums
    if model.H is None:
        rows = schedule(objective.rows, W.size, W.shape[1])[-1]
        part = model.draw(objective, W, rows)
        if rows < objective.rows and not W[:, 1:].any():
            # The sample's own solution is a better start than 0, and costs little.
            W = descend(part, W, penalty, model, goal=0.02 * norm(violation(sums.g, W, penalty)), max_iter=30, trace=trace)
            model.draw(objective, W, rows)
            sums, model.steps = objective(W), 0
    while True:
        size = norm(violation(sums.g, W, penalty))
        if size <= goal or model.steps >= max_iter:
            return W
        rows = min(4 * model.rows, objective.rows)  # 4
        if model.debt > price * rows / objective.rows:
            model.draw(objective, W, rows)
        V = model.minimise(kernels, W, sums.g, penalty)  # 1
        p = (settle(V, penalty[:, 1:].max(axis=0), objective.l2) if objective.singular and len(W) > 1 else V) - W
        found = search(objective, W, p, sums, penalty)  # 2
        if found is None:
            if model.rows < objective.rows:
                model.draw(objective, W, min(4 * model.rows, objective.rows))
                continue
            if objective.sharpen():
                sums = objective(W)
                continue
            return W
        t, trial = found
        model.learn(t * p, trial.g - sums.g)  # 3
        W, sums, model.steps = W + t * p, trial, model.steps + 1
        model.debt += model.steps > FRESH
        trace.say("proximal", f"      step {model.steps}, {np.count_nonzero(W[:, 1:])} weights, violation {size:.3g}")


def search(objective, W, p, sums, penalty):
    """A step t <= 1 along p that lowers the penalised loss by a share of what the model promises; None if none does."""
    now = sums.loss + float((penalty * np.abs(W)).sum())
    promise = float(np.vdot(sums.g, p)) + float((penalty * (np.abs(W + p) - np.abs(W))).sum())
    t, noise = 1.0, 64 * np.finfo(float).eps * abs(now)
    while t > 1e-8 and promise < 0:
        trial = objective(W + t * p)
        value = trial.loss + float((penalty * np.abs(W + t * p)).sum())
        if value <= now + 1e-4 * t * promise + noise:
            return t, trial
        t /= 2
    return None


def hessian_price(objective, shape):
    """Gradients that a Hessian of all rows costs; of sparse rows it has a few products only."""
    return hessian_cost(shape[0] * min(shape[1], 3 * getattr(data(objective), "width", shape[1])))


def data(objective):
    """The sweep over the data as they are."""
    while hasattr(objective, "sweep"):
        objective = objective.sweep
    return objective
