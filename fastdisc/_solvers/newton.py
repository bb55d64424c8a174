"""Newton-Raphson, or iteratively reweighted least squares (seed E), on growing samples and then on all rows.

A sample of m rows has its optimum at a distance of about sqrt(D / m) from that of all rows, D being the number of weights, and
its Hessian is that near to the full one too. So Newton on a small sample finds the neighbourhood for next to nothing; from there
full gradients with the Hessian of a sample shrink the error by that factor a sweep, or better, with the corrections of a
quasi-Newton memory. A full Hessian costs D / 12 gradients, and is only summed where the samples' turn out not to do.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from . import metric, norm
from .lbfgs import finish, search, two_loops

LARGEST = 20_000  # unknowns: 3 GB of Hessian
ENOUGH, MANY = 15, 40  # rows for each weight in the smallest sample; of errors that are not convex, whose minima a sample chooses
STEP = 15  # from a sample to the next, at most
GRADIENTS = 3  # that the largest sample takes beside one Hessian
DRAWN = 7  # gradients that it costs to draw a row: it comes from anywhere in memory, on one thread
CALL = 250_000  # cells that a sweep could have read in the time that it takes to call it, and to make the next step: 0.1 ms
SMALL = 0.002  # share of the loss: a step that promises no more moves scores by less than 0.1
DEAR = 20  # gradients that a Hessian costs, from where on few rows begin without one
CELLS = 4_000_000  # of the largest sample, unless that is all rows: 32 MB


class Model:
    """What one solution leaves to the next on the same data: a Hessian with its penalty, and the gradient's norm at 0."""

    def __init__(self):
        self.H, self.l2, self.start = None, 0.0, None
        self.often = False  # a Hessian at every step

    def keep(self, objective, H):
        self.H, self.l2 = H, objective.l2

    def metric(self, objective, shape):
        """The metric of that Hessian, with the penalty that is in force now."""
        K, D = shape
        H = self.H.copy()
        np.einsum("kjkj->kj", H.reshape(K, D, K, D))[:, 1:] += objective.l2 - self.l2
        return metric.full(H, shape, objective.singular)


def hessian_cost(unknowns):
    """What a row costs in a sweep for the Hessian, in rows of a sweep for the gradient."""
    return 1 + unknowns / 12


def price(rows, unknowns, columns):
    """What a sweep over so many rows costs with a Hessian, in sweeps without."""
    return (CALL + hessian_cost(unknowns) * rows * columns) / (CALL + rows * columns)


def enough(rows, unknowns, whole):
    """The share of the loss such that a step which promises no more may be the last on a sample: the next one changes more."""
    return 0.05 * unknowns / rows if whole else min(SMALL, 2 * unknowns / rows)


@cache
def schedule(rows, unknowns, columns, least=ENOUGH):
    """Sizes of the samples: from a few rows a weight to where a larger one would cost more than the sweeps it saves."""
    if rows * columns <= CALL:
        return [rows]
    sizes = np.geomspace(least * unknowns, rows, 25) if least * unknowns < rows else np.array([rows])
    cost = hessian_cost(unknowns) + GRADIENTS + DRAWN * (sizes < rows)
    sweeps = np.log(1e-9) / np.log(np.minimum(2 * unknowns / sizes, 0.5))
    last = sizes[np.argmin(cost * sizes + (rows + CALL / columns) * sweeps)]
    first = max(least * unknowns, 500)
    last = rows if last > rows / 2 else int(min(last, max(first, CELLS / columns)))
    steps = np.ceil(np.log(last / first) / np.log(STEP)) if last > 2 * first else 0
    return np.geomspace(last if steps == 0 else first, last, int(steps) + 1).round().astype(int).tolist()


def solve(objective, W, *, tol, max_iter, trace, model=None, convex=True):
    """Minimise an error by W <- W - t H^-1 g; one that is not `convex` on larger samples, with a Hessian at every step.

    A start other than 0 is taken to be near: it goes to step 3, with the largest sample's Hessian, or with that of `model`, which
    an earlier solution on the same data left.

    1. on each sample, down until its optimum is nearer than that of the next sample is likely to be
    2. if the full gradient is far from what the sample led to expect, some rows lie far out: draw those first, and start again
    3. on all rows, full gradients with the last sample's Hessian; a larger sample's, in the end that of all rows, where the
       gradient falls too slowly
    """
    if W.size > LARGEST:
        raise ValueError(f"Newton's method would need a matrix of {W.size:,} x {W.size:,} numbers: take solver='lbfgs'")
    if len(W) > 1 and objective.singular:
        W = W - W.mean(axis=0)  # changes no softmax output, and the penalty only falls; see metric.full
    sizes, begin, draw = schedule(objective.rows, W.size, W.shape[1], ENOUGH if convex else MANY), W, {}
    model = Model() if model is None else model
    model.often = not convex
    few = sizes == [objective.rows] and len(W) > 1 and hessian_cost(W.size) > DEAR and not objective.sparse
    begin_with = warm if W.any() else approach if few else climb
    W, base, sums, excess = begin_with(objective, W, sizes, trace, draw, model)
    if sizes[-1] < objective.rows and excess > 30:  # 2
        trace.say("newton", f"rows far out: {excess:.0f} times the gradient that was expected")
        draw = {"spread": True}
        W, base, sums, _ = climb(objective, begin, sizes, trace, draw, model)
    m = sizes[-1]

    def refresh(W, sweeps):  # 3
        nonlocal m
        size = min(4 * m, objective.rows)
        size = objective.rows if size > objective.rows / 2 else size
        if sweeps < 3 + (0.5 if few else 2) * hessian_cost(W.size) * size / objective.rows:
            return None
        m = size
        part = objective if m == objective.rows else objective.sample(m, seed=m, **draw)
        trace.say("newton", f"Hessian of {part.rows:,} rows")
        model.keep(objective, part(W, 2).H)
        return model.metric(objective, W.shape)

    options = {"tol": tol, "max_iter": max_iter, "trace": trace, "start": model.start}
    return finish(objective, W, base, sums=sums, refresh=refresh, name="newton", **options)


def approach(objective, W, sizes, trace, draw, model):
    """What `climb` returns, from few rows for many weights: a cheaper metric, until a Hessian of all rows is worth its price.

    On 1,800 x 64 with 10 classes, standardised, it takes 73 ms, where a Hessian at every step took 236.
    """
    base = metric.kronecker(objective, W, objective.sample(objective.rows, seed=0))
    sums = objective(W)
    model.start = norm(sums.g)
    return W, base, sums, 0.0


def warm(objective, W, sizes, trace, draw, model):
    """What `climb` returns, without a step."""
    if model.H is None:
        part = objective.sample(sizes[-1], seed=len(sizes) - 1, **draw)
        model.keep(objective, part(W, 2).H)
        model.start = norm(part(np.zeros_like(W)).g)
    return W, model.metric(objective, W.shape), objective(W), 0.0


def climb(objective, W, sizes, trace, draw, model):
    """Descend from 0 on one sample after the other: W, the last metric, sums over all rows, and their surprise.

    The surprise is the squared size of the full gradient, in the last metric, over what is to be expected of that sample.
    """
    H, model.start = None, None
    for level, m in enumerate(sizes):
        part = objective.sample(m, seed=level, **draw)
        whole = part.rows == objective.rows
        if level and m == sizes[-1]:
            model.start = norm(part(np.zeros_like(W)).g)  # a small sample's would be large by its noise
        W, H, loss, steps = settle(part, W, H, whole, model)
        trace.say("newton", f"{part.rows:>9,} rows: {steps} steps, loss {loss:.6g}")
    expected = W.size / m * abs(loss) + np.finfo(float).tiny
    model.keep(objective, H)
    sums, base = objective(W), metric.full(H, W.shape, objective.singular)
    return W, base, sums, float(np.vdot(sums.g, base(sums.g))) / expected


def settle(part, W, H, whole, model):
    """The optimum of a sample, as nearly as it is worth: W, a Hessian of about there, the last loss and the number of steps.

    Steps are taken with the Hessian of the sample before, if there is one. Each Hessian serves until the gradients since have
    cost as much as the next one, with what the steps tell beyond it.
    """
    cost, share = 0 if model.often else price(part.rows, W.size, W.shape[1]), enough(part.rows, W.size, whole)
    sums, steps = part(W, 2 if H is None else 1), 0
    model.start = norm(sums.g) if model.start is None else model.start
    H = sums.H if H is None else H
    base, pairs, since = metric.full(H, W.shape, part.singular), [], 0  # since: gradients after the last Hessian
    while True:
        p = -two_loops(sums.g, pairs, base)
        slope = float(np.vdot(sums.g, p))
        if steps == 50 or not slope < 0 or (sums.errors == 0 and not whole):
            break  # a sample that can be separated has nothing more to say: its weights would only grow
        if -slope <= share * abs(sums.loss):
            W = W if whole else W + p  # unseen: what is left then is less than the next sample will change
            break
        trial = part(W + p, 2 if since + 2 > cost else 1)
        if not trial.loss <= sums.loss + 1e-4 * slope:
            found = search(part, W, p / 4, sums, slope / 4)
            if found is None:
                break
            p = p / 4 * found[0]
            trial = part(W + p, 2)
        if np.vdot(p, trial.g - sums.g) > 0:  # as in lbfgs.descend
            pairs.append((p, trial.g - sums.g))
        W, sums, steps, since = W + p, trial, steps + 1, since + 1
        if sums.H is not None:
            H, base, pairs, since = sums.H, metric.full(sums.H, W.shape, part.singular), [], 0
    return W, H if whole or sums.H is not None else part(W, 2).H, sums.loss, steps
