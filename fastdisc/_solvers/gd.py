"""Batch gradient descent, as figures 10.6 and 10.8 have it."""

from __future__ import annotations

import numpy as np

from . import Result, norm, result, start_norm


def solve(sweep, W, *, eta="auto", tol, max_iter, trace) -> Result:
    """Minimise by W <- W - eta dE/dW  (10.16)-(10.17), (10.24), (10.33).

    1. sum the errors over all rows: the gradient
    2. stop when its norm has fallen to tol times that at W = 0
    3. take a step of eta against it

    eta="auto" is 1 / L, where L bounds the curvature: every step then lowers the loss.
    """
    if eta == "auto":
        eta = 1 / curvature_bound(sweep, W)
    start = start_norm(sweep, W)
    for n_iter in range(max_iter + 1):
        sums = sweep(W)  # 1
        size = norm(sums.g)
        if not np.isfinite(size):
            raise ValueError(f"gradient descent diverged with eta={eta:g}: take a smaller one, or eta='auto'")
        stop = trace.add("gd", sums, W, every=100)
        converged = size <= tol * start  # 2
        if converged or stop or n_iter == max_iter:
            break
        W = W - eta * sums.g  # 3
    return result(W, size, start, tol, n_iter, trace)


def curvature_bound(sweep, W, rounds=30):
    """A bound on the largest eigenvalue of the Hessian, anywhere.

    Power iteration on differences of gradients at W = 0, where the curvature y (1 - y) of a sigmoid is largest; K softmax
    outputs may bend K / 2 times as much as there (Bohning's bound). The step shrinks until the gradient is linear in it, which
    large columns need. The iteration comes from below: 10% more, where a factor 2 would still be safe.
    """
    nought = np.zeros_like(W)
    g0 = sweep(nought).g.copy()

    def product(V, step):
        V = V / norm(V)
        HV = (sweep(step * V).g - g0) / step
        while step > 1e-12:
            nearer = (sweep(step / 10 * V).g - g0) / (step / 10)
            if norm(nearer - HV) <= 0.01 * norm(nearer):
                break
            HV, step = nearer, step / 10
        return HV, step

    V, step, bound = np.random.default_rng(0).standard_normal(W.shape), 1.0, 0.0
    for _ in range(rounds):
        V, step = product(V, step)
        last, bound = bound, norm(V)
        if bound == 0 or abs(bound - last) <= 0.003 * bound:
            break
    return max(1.1 * bound * max(1, len(W) / 2), np.finfo(float).tiny)
