"""Newton-Raphson: iteratively reweighted least squares (seed E)."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from scipy import linalg

from .._config import one_blas_thread
from . import Result, Trace, norm, start_norm

LARGEST = 20_000  # unknowns: 3 GB of Hessian
LARGE = 1500  # unknowns from which BLAS threads gain more in the Cholesky factor than they take from the next sweep


def solve(sweep, W, *, tol, max_iter, verbose=0, callback=None) -> Result:
    """Minimise a convex error by W <- W - t H^-1 g, with t = 1 unless that overshoots.

    1. sum loss, gradient and Hessian over all rows
    2. stop when the gradient's norm has fallen to tol times that at W = 0
    3. solve H p = -g; a singular H gets its least-norm solution
    4. halve the step until the loss falls by a share of what its slope promises
    """
    if W.size > LARGEST:
        raise ValueError(f"Newton's method would need a matrix of {W.size:,} x {W.size:,} numbers: take solver='gd'")
    trace = Trace("newton", verbose, callback)
    if len(W) > 1:
        W = W - W.mean(axis=0)  # changes no softmax output, and the penalty only falls; see `direction`
    sums = sweep(W, 2)  # 1
    size = norm(sums.g)
    start = start_norm(sweep, W) if W.any() else size
    stop, n_iter = trace.add(sums, W), 0
    while not (converged := size <= tol * start) and not stop and n_iter < max_iter:  # 2
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
        size = norm(sums.g)
        stop = trace.add(sums, W)
    return Result(W, converged, n_iter, size / start if start else 0.0, trace.history)


def direction(H, g):
    """p with H p = -g, shaped like g (K, d+1).

    1. columns of X may differ in size by many orders: scale them so that H has a diagonal of about 1
    2. adding the same vector to every class's weights changes no softmax output, so H is all but singular along those vectors.
       The gradient has no share in them while the classes' weights add up to 0, as `solve` sees to: lifting H there makes it
       definite and leaves the solution as it is
    3. Cholesky; constant or collinear columns without a penalty leave H singular, and get the least-norm solution
    """
    K, D = g.shape
    diagonal = np.diag(H).reshape(K, D).max(axis=0)
    scale = np.tile(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), K)  # 1
    H = H * scale[:, None] * scale
    b = g.ravel() * scale
    if K > 1:
        H.reshape(K, D, K, D)[:, range(D), :, range(D)] += 1 / K  # 2
    try:  # 3
        factor = linalg.cho_factor(H, check_finite=False)
        if np.diag(factor[0]).min() > 1e-7:  # else the factor has lost its digits
            return -(scale * linalg.cho_solve(factor, b, check_finite=False)).reshape(K, D)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(H, check_finite=False)
    keep = values > 1e-13 * values[-1]
    V = vectors[:, keep]
    return -(scale * (V @ ((V.T @ b) / values[keep]))).reshape(K, D)
