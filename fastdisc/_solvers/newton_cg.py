"""Truncated Newton: each Newton step is solved as far as it is worth by conjugate gradients, on products with the Hessian."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from .._config import one_blas_thread
from . import metric, norm, result, start_norm
from .lbfgs import WIDEST, search


@one_blas_thread()  # BLAS threads that wait for work spin, up to 30 ms, and take the time of the products' threads
def solve(objective, W, *, tol, max_iter, trace):
    """Minimise by W <- W + t p with H p = -g nearly solved.

    1. stop when the gradient's norm has fallen to tol times that at W = 0
    2. conjugate gradients on H p = -g, the more exactly the nearer the optimum is
    3. a step along p: 1 unless that overshoots
    """
    start = start_norm(objective, W)
    sums, n_iter = objective(W), 0
    size = norm(sums.g)
    stop = trace.add("newton-cg", sums, W)
    approximate = cache(partial(preconditioner, objective, W))
    while size > tol * start and not stop and n_iter < max_iter:  # 1
        p = direction(objective, W, sums.g, min(0.3, np.sqrt(size / start) if start else 0.3), approximate)  # 2
        slope = float(np.vdot(sums.g, p))
        found = search(objective, W, p, sums, slope) if slope < 0 else None  # 3
        if found is None:
            if not objective.sharpen():
                break
            sums = objective(W)
            size = norm(sums.g)
            continue
        t, sums = found
        W, n_iter, size = W + t * p, n_iter + 1, norm(sums.g)
        stop = trace.add("newton-cg", sums, W)
    return result(W, size, start, tol, n_iter, trace)


def preconditioner(objective, W):
    """An approximation of the inverse Hessian that serves all steps."""
    if objective.sparse or W.shape[1] > WIDEST:
        return metric.diagonal(objective, W.shape, objective.sweep.fractions())
    return metric.kronecker(objective, W, objective.sample(max(8 * W.shape[1], 2000), seed=0))


def direction(objective, W, g, forcing, approximate):
    """p with H p = -g, up to `forcing`; approximate() returns an approximate inverse of H, for data that have no better one."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond float32 leaves no slope, and is sharpened
        bent, size = objective.bent(W), norm(g)
        if bent is not None:
            p = conjugate_gradients(bent.product, bent.inward(-g, size), bent.precondition, max(forcing, bent.LEAST))
            return bent.outward(p, size)
    return conjugate_gradients(lambda V: objective.product(W, V), -g, approximate(), forcing)


def conjugate_gradients(product, b, precondition, forcing, max_iter=250):
    """x with product(x) = b, up to a residual of forcing times ||b|| in the preconditioner's norm."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z.copy(), float(np.vdot(r, z))
    goal, room = forcing**2 * rz, np.empty_like(b)
    for _ in range(max_iter):
        Hp = product(p)
        curvature = float(np.vdot(p, Hp))
        if not curvature > 0:  # a direction that changes no score: nothing is left to gain
            return x if x.any() else p
        a = rz / curvature
        x += np.multiply(p, a, out=room)  # in place: new arrays of this size come a page at a time, each set to zero first
        r -= np.multiply(Hp, a, out=room)
        z = precondition(r)
        last, rz = rz, float(np.vdot(r, z))
        if rz <= goal:
            break
        p *= rz / last
        p += z
    return x
