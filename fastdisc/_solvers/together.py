"""Newton on growing samples for many problems over the same rows: each goes its own way, and all share the sweeps.

A problem says where it wants to be evaluated next, and is told what was found there. A round asks all problems that are not
done, sweeps once, and tells them.
"""

from __future__ import annotations

import numpy as np

from .._sweep import Sums
from . import Result, metric, norm
from .lbfgs import NOISE, judge, sure, two_loops
from .newton import enough, hessian_cost, price, schedule

PAIRS = 10  # steps that a problem remembers


class Model:
    """What solutions leave to the next ones on the same data: Hessians with their penalty, and the gradients' norms at 0."""

    def __init__(self):
        self.H, self.l2, self.starts = None, 0.0, None

    def keep(self, objective, H):
        self.H, self.l2 = H, objective.l2

    def metric(self, objective, k):
        """The metric of problem k's Hessian, with the penalty that is in force now."""
        H = self.H[k].copy()
        np.einsum("jj->j", H)[1:] += objective.l2 - self.l2
        return metric.full(H, (1, len(H)), singular=False)


class Descent:
    """One problem on its way down: where it stands, and the step that it wants to try."""

    def __init__(self, w, base=None):
        self.w, self.base, self.pairs, self.sums = w, base, [], None  # w (1, d+1)
        self.p, self.slope, self.t = np.zeros_like(w), 0.0, 0.0
        self.steps, self.since, self.still, self.stuck, self.lost = 0, 0, 0, False, False  # since: steps at the last new metric
        self.sizes = []  # of the gradient, at the last steps
        self.history = {"loss": [], "errors": [], "norm": []}

    @property
    def trial(self):
        """Where to evaluate next."""
        return self.w + self.t * self.p

    def tell(self, sums):
        """Given the sums at `trial`, take the step and choose the next, or choose a shorter one."""
        if self.sums is not None:
            shorter = judge(self.sums, self.slope, self.p, self.t, sums)
            if shorter is not None:
                self.t = shorter
                if shorter < 1e-8:
                    self.despair()
                return
            y = sums.g - self.sums.g
            if np.vdot(self.p, y) > 0:
                self.pairs = [*self.pairs[1 - PAIRS :], (self.t * self.p, y)]
            self.still = self.still + 1 if self.sums.loss - sums.loss <= NOISE * abs(self.sums.loss) else 0
            self.steps, self.stuck = self.steps + 1, False
        self.w, self.sums = self.trial, sums
        self.sizes = [*self.sizes[-3:], norm(sums.g)]
        for key, value in (("loss", sums.loss), ("errors", sums.errors), ("norm", norm(self.w[:, 1:]))):
            self.history[key].append(float(value))
        if self.still >= 4 and self.sizes[-1] > 0.5 * self.sizes[0]:
            self.lost = True
        self.turn(self.base if sums.H is None else metric.full(sums.H, (1, len(sums.H)), singular=False))

    def turn(self, base):
        """The next direction, in a metric that may be new; along it the whole step first."""
        if base is not self.base:
            self.base, self.pairs, self.sizes, self.since = base, [], self.sizes[-1:], self.steps
        self.p, self.t = -two_loops(self.sums.g, self.pairs, self.base), 1.0
        self.slope = float(np.vdot(self.sums.g, self.p))
        if not self.slope < 0:
            self.despair()

    def despair(self):
        """No step lowers the loss: forget the last steps; and if that was done before, this is as far as rounding lets us go."""
        self.lost, self.stuck = self.stuck or not self.pairs, True
        self.pairs = []
        if not self.lost:
            self.turn(self.base)

    def more(self, goal, max_iter):
        """Whether there is something left to do."""
        return self.sums is None or not (self.lost or self.sizes[-1] <= goal or self.steps >= max_iter)

    def result(self, goal, start):
        """Where it has come to: a step further on than it has seen, where the last one was that good."""
        size = self.sizes[-1]
        converged = bool(size <= goal)
        W = self.trial if converged and self.t == 1 and sure(self.sizes, self.pairs, self.p) and not self.lost else self.w
        return Result(W, converged, self.steps, size / start if start else 0.0, self.history, seen=self.w)

    def slow(self, goal, max_iter, cost):
        """Whether a new metric is worth so many sweeps: it has stopped, or will take longer at the present rate."""
        if self.steps == self.since or self.sizes[-1] <= goal or self.steps >= max_iter:
            return False
        if self.lost or not goal:
            return self.lost
        rate = min(0.95, (self.sizes[-1] / self.sizes[0]) ** (1 / (len(self.sizes) - 1)))
        return bool(np.log(self.sizes[-1] / goal) / -np.log(rate) > cost)


def tell(objective, ways, asked, order):
    """One sweep for the problems asked."""
    asked = np.asarray(asked)
    sums = objective(np.vstack([ways[k].trial for k in asked]), asked, order)
    for i, k in enumerate(asked):
        ways[k].tell(Sums(sums.losses[i], sums.errors[i], sums.G[i : i + 1], None if sums.H is None else sums.H[i]))


def solve(objective, W, *, tol, max_iter, trace, model=None):
    """Minimise each of K problems, W (K, d+1); a Result for each.

    A start other than 0 is taken to be near: it goes to step 2, with the Hessians of `model`, or of the largest sample.

    1. on each sample, down until its optima are nearer than those of the next sample are likely to be
    2. on all rows, gradients, with the last sample's Hessians, corrected by the last steps
    3. where the gradients fall too slowly, Hessians of a larger sample, in the end of all rows
    """
    model = Model() if model is None else model
    (K, D), rows = W.shape, objective.rows
    sizes = schedule(rows, D, D)
    begin = warm if W.any() else climb
    W = begin(objective, W, sizes, trace, model)
    goals, m = tol * model.starts, sizes[-1]
    ways = [Descent(w[None], model.metric(objective, k)) for k, w in enumerate(W)]
    while asked := [k for k, way in enumerate(ways) if way.more(goals[k], max_iter)]:
        tell(objective, ways, asked, 1)  # 2
        trace.say("together", f"{len(asked)} of {K} problems, gradients {max(ways[k].sizes[-1] for k in asked):.3g}")
        size = rows if 8 * m > rows else 4 * m
        cost = 3 + 2 * hessian_cost(D) * size / rows
        slow = [k for k in asked if ways[k].slow(goals[k], max_iter, cost)]
        if slow:  # 3
            m = size
            trace.say("together", f"Hessians of {m:,} rows for {len(slow)} problems")
            some = np.array(slow)
            part = objective if m == rows else objective.sample(m, seed=m)
            model.H = model.H.copy()
            model.H[some] = part(np.vstack([ways[k].w for k in some]), some, 2).H
            np.einsum("kjj->kj", model.H)[some, 1:] += model.l2 - objective.l2
            for k in slow:
                ways[k].lost = ways[k].stuck = False
                ways[k].turn(model.metric(objective, k))
    return [way.result(goal, start) for way, goal, start in zip(ways, goals, model.starts, strict=True)]


def warm(objective, W, sizes, trace, model):
    """What `climb` does, without a step."""
    if model.H is None:
        part, everyone = objective.sample(sizes[-1], seed=len(sizes) - 1), np.arange(len(W))
        model.keep(objective, part(W, everyone, 2).H)
        model.starts = np.array([norm(g) for g in part(np.zeros_like(W), everyone).G])
    return W


def climb(objective, W, sizes, trace, model):
    """Descend from 0 on one sample after the other, as `newton.settle` does: the weights; `model` gets the last Hessians."""
    everyone, D = np.arange(len(W)), W.shape[1]
    for level, m in enumerate(sizes):
        part, whole, cost = objective.sample(m, seed=level), m >= objective.rows, price(m, D, D)
        share = enough(m, D, whole)
        if level and m == sizes[-1]:
            model.starts = np.array([norm(g) for g in part(np.zeros_like(W), everyone).G])  # of small samples: noise
        ways = [Descent(w[None], model.metric(objective, k) if level else None) for k, w in enumerate(W)]
        asked, since = everyone, 0 if level else np.inf  # since: gradients after the last Hessian
        while len(asked):
            order = 2 if since + 2 > cost else 1
            tell(part, ways, asked, order)
            since = 0 if order == 2 else since + 1
            if model.starts is None:
                model.starts = np.array([way.sizes[0] for way in ways])
            asked = [k for k in asked if not _settled(ways[k], share, whole)]
        W = np.vstack([way.w if whole or way.lost or way.t < 1 or not _near(way, share) else way.trial for way in ways])
        known = all(way.sums.H is not None for way in ways)
        model.keep(objective, np.stack([way.sums.H for way in ways]) if known else part(W, everyone, 2).H)
        trace.say("together", f"{m:>9,} rows a problem: {max(way.steps for way in ways)} steps")
    return W


def _near(way, share):
    """Whether the next step promises no more than this share of the loss."""
    return -way.slope <= share * abs(way.sums.loss)


def _settled(way, share, whole):
    """Whether a sample's optimum is near enough, or the sample can be separated, and has nothing more to say."""
    return way.lost or way.steps == 50 or _near(way, share) or (not whole and way.sums.errors == 0)
