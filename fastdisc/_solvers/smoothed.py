"""The hinge with a margin: its corner is rounded, less and less, until the error that this makes is certified to be small."""

from __future__ import annotations

import numpy as np

from .._config import one_blas_thread
from . import Result, metric, norm, result, start_norm
from .lbfgs import search
from .newton_cg import conjugate_gradients, preconditioner

WIDEST = 2.0  # at zero weights all pairs are within the rounded corner, and bend
NARROWER = 0.25  # each width of the corner is this share of the last
PATIENCE = 5  # solutions that do not move
SHORT = 0.1  # share of a Newton step: shorter ones mean that other pairs bend wherever it goes
FORCING = 0.01  # residual that conjugate gradients leave; other values were not tried
LEAST, MOST = 1e-6, 1e6  # what the Hessian's diagonal is lifted by, in units of its mean: at first, and at last


def solve(objectives, exact, W, *, inner, tol, max_iter, trace, certified=True, spare=None):
    """Minimise exact(W) by way of objectives(width), which are smooth, below it, and nearer to it the smaller the width.

    1. minimise the smooth objective, as far as it is worth
    2. the gap: what rounding takes off the exact value, and how far the smooth one may be from its least, which the penalty
       bounds by the gradient: F - min F <= sum_j g_j^2 / (2 l2_j)
    3. stop when the gap has fallen to tol times the exact value; else improve what is the larger part of it

    The result's gradient_norm is that relative gap. Without an L2 penalty nothing bounds the second part (`certified` is False):
    then the inner solver's own tolerance, tol, is what holds. Where the corner is so narrow and the penalty so weak that the
    inner solver's Hessian does not tell where to go, `spare` goes on; when that does not move either, this ends.
    """
    width, inner_tol, n_iter, waited, best = WIDEST, 1e-2, 0, 0, (np.inf, W)
    while True:
        objective = objectives(width)
        found = inner(objective, W, tol=inner_tol, max_iter=max_iter - n_iter, trace=trace)  # 1
        steps = max(1, found.n_iter)
        if spare is not None and n_iter + steps < max_iter and not (found.converged or found.stopped):
            found = spare(objective, found.W, tol=inner_tol, max_iter=max_iter - n_iter - steps, trace=trace)
            steps += found.n_iter
        waited = 0 if found.converged or not np.array_equal(found.W, W) else waited + 1
        W, n_iter = found.W, n_iter + steps
        sums, value = objective(W), exact(W)
        rounding = max(0.0, value - sums.loss)
        rest = float((sums.g[:, 1:] ** 2 / (2 * objective.l2)).sum()) if certified else 0.0  # 2
        gap = (rounding + rest) / value if value > 0 else 0.0
        trace.say("smoothed", f"width {width:.1e}: loss {value:.6g}, gap {gap:.1e}")
        converged = gap <= tol and (certified or (inner_tol <= tol and found.converged))
        best = min(best, (gap, W), key=lambda pair: pair[0])
        if converged or waited >= PATIENCE or found.stopped or n_iter >= max_iter:  # 3
            gap, W = (gap, W) if converged else best
            return Result(W, converged, n_iter, gap, trace.history, found.stopped)
        if rounding > tol / 2 * value:
            width *= NARROWER
        if rest > tol / 2 * value or not certified:
            inner_tol = max(inner_tol / 10, 1e-14 if certified else tol)


def newton(objective, W, *, tol, max_iter, trace):
    """Newton with the Hessian of all rows at every step: few pairs bend, others at each step, and a sample would miss them."""

    def direction(sums, W, lift):
        H = sums.H.copy()
        H[np.diag_indices_from(H)] += lift * H.diagonal()[1:].mean()
        return -metric.full(H, W.shape, False)(sums.g)

    return damped(objective, W, 2, direction, "newton", tol, max_iter, trace)


def newton_cg(objective, W, *, tol, max_iter, trace):
    """The same with products alone: see `newton_cg.solve`."""
    base, first = preconditioner(objective, W), objective(W).g
    size = float(np.vdot(first, objective.product(W, first))) / max(float(np.vdot(first, first)), np.finfo(float).tiny)

    def direction(sums, W, lift):
        with one_blas_thread():
            return conjugate_gradients(lambda V: objective.product(W, V) + lift * size * V, -sums.g, base, FORCING)

    return damped(objective, W, 1, direction, "newton-cg", tol, max_iter, trace)


def damped(objective, W, order, direction, name, tol, max_iter, trace):
    """Steps along direction(sums, W, lift).

    Where the corner is narrow, fewer pairs bend than there are weights, and others wherever a step goes: then the Hessian is
    lifted, ten times more after a step that has to be cut short, ten times less after one that has not.
    """
    start = start_norm(objective, W)
    sums, n_iter, lift = objective(W, order), 0, 0.0
    stop = trace.add(name, sums, W)
    while norm(sums.g) > tol * start and not stop and n_iter < max_iter and lift <= MOST:
        p = direction(sums, W, lift)
        slope = float(np.vdot(sums.g, p))
        found = search(objective, W, p, sums, slope, smallest=SHORT) if slope < 0 else None
        lift = lift / 10 if found and found[0] == 1 else max(10 * lift, LEAST)
        if found:
            W, n_iter = W + found[0] * p, n_iter + 1
            sums = objective(W, 2) if order == 2 else found[1]
            stop = trace.add(name, sums, W)
    return result(W, norm(sums.g), start, tol, n_iter, trace)
