"""Newton-Raphson: iteratively reweighted least squares (seed E)."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from scipy import linalg

from .._config import one_blas_thread
from . import Result, Trace, start_norm

LARGE = 1500  # unknowns from which BLAS threads gain more in the Cholesky factor than they take from the next sweep


def solve(sweep, W, *, tol, max_iter, verbose=0, callback=None) -> Result:
    """Minimise a convex error by W <- W - t H^-1 g, with t = 1 unless that overshoots.

    1. sum loss, gradient and Hessian over all rows
    2. stop when the gradient's norm has fallen to tol times that at W = 0
    3. solve H p = -g; a singular H gets its least-norm solution
    4. halve the step until the loss falls by a share of what its slope promises
    """
    trace = Trace("newton", verbose, callback)
    sums = sweep(W, 2)  # 1
    norm = float(np.linalg.norm(sums.g))
    start = start_norm(sweep, W) if W.any() else norm
    stop, n_iter = trace.add(sums, W), 0
    while not (converged := norm <= tol * start) and not stop and n_iter < max_iter:  # 2
        with one_blas_thread() if len(sums.H) < LARGE else nullcontext():
            p = direction(sums.H, sums.g)  # 3
        slope = float(np.vdot(sums.g, p))
        t, noise = 1.0, 8 * np.finfo(float).eps * abs(sums.loss)
        while True:  # 4
            trial = sweep(W + t * p, 2)
            if trial.loss <= sums.loss + 1e-4 * t * slope + noise or t < 1e-10:
                break
            t /= 2
        if t < 1e-10:
            break
        W, sums, n_iter = W + t * p, trial, n_iter + 1
        norm = float(np.linalg.norm(sums.g))
        stop = trace.add(sums, W)
    return Result(W, converged, n_iter, norm / start if start else 0.0, trace.history)


def direction(H, g):
    """p with H p = -g, shaped like g (K, d+1).

    Adding the same vector to every class's weights changes no softmax output, so without a penalty H is singular along those
    vectors. The gradient has no share in them: lifting H there makes it definite and leaves the solution as it is.
    """
    K, D = g.shape
    if K > 1:
        lift = np.trace(H) / len(H)
        H.reshape(K, D, K, D)[:, range(D), :, range(D)] += lift
    try:
        factor = linalg.cho_factor(H, check_finite=False)
        # A factor this close to singular has lost its digits: constant or collinear columns without a penalty.
        diagonal = np.abs(np.diag(factor[0]))
        if diagonal.min() ** 2 > 1e-14 * diagonal.max() ** 2:
            return -linalg.cho_solve(factor, g.ravel(), check_finite=False).reshape(g.shape)
    except linalg.LinAlgError:
        pass
    scale = 1 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))  # columns of unequal size: equilibrate before the cut
    values, vectors = linalg.eigh(H * scale[:, None] * scale, check_finite=False)
    keep = values > 1e-13 * values[-1]
    V = vectors[:, keep] * scale[:, None]
    return -(V @ ((V.T @ g.ravel()) / values[keep])).reshape(g.shape)
