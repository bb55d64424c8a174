"""Approximations of the inverse Hessian: functions from a gradient (K, d+1) to a direction. The nearer, the fewer sweeps.

full        the Hessian itself, of all rows or of a sample
kronecker   B x M: class covariances B (K, K) and one weighted Gram matrix M (d+1, d+1) of a sample
diagonal    B x diag(M)
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from scipy import linalg

from .._config import one_blas_thread

SMALL = 64  # unknowns up to which BLAS does not think of using a second thread; to forbid it would take longer than the work
LARGE = 1500  # unknowns from which BLAS threads gain more in a Cholesky factor than they take from the next sweep


def blas(unknowns):
    """One BLAS thread for matrices of middling size, all of them for large ones."""
    return one_blas_thread() if SMALL < unknowns < LARGE else nullcontext()


def full(H, shape, singular):
    """g -> H^-1 g.

    1. columns of X may differ in size by many orders: scale them so that H has a diagonal of about 1
    2. where the same vector may be added to every class's weights (`singular`), H is all but singular along those vectors. The
       gradient has no share in them while the classes' weights add up to 0: lifting H there makes it definite and leaves the
       solution as it is
    3. Cholesky; constant or collinear columns without a penalty leave H singular, and get the least-norm solution
    """
    K, D = shape
    diagonal = np.diag(H).reshape(K, D).max(axis=0)
    scale = np.tile(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), K)  # 1
    H = H * scale[:, None] * scale
    if K > 1 and singular:
        H.reshape(K, D, K, D)[:, range(D), :, range(D)] += 1 / K  # 2
    with blas(len(H)):
        factor, failed = linalg.lapack.dpotrf(H, lower=True)  # 3
        if not failed and np.diag(factor).min() > 1e-7:  # else the factor has lost its digits
            return lambda g: (scale * linalg.lapack.dpotrs(factor, g.ravel() * scale, lower=True)[0]).reshape(K, D)
        values, vectors = linalg.eigh(H, check_finite=False)
    keep = values > 1e-13 * values[-1]
    V, values = vectors[:, keep], values[keep]
    return lambda g: (scale * (V @ ((V.T @ (g.ravel() * scale)) / values))).reshape(K, D)


def kronecker(objective, W, part):
    """(B x M + penalty)^-1, from `part`, a sample of the objective: a Cholesky factor for each eigenvalue of B."""
    B, M = part.sweep.factors(W)
    values, Q = linalg.eigh(B)
    penalty = np.zeros(len(M))
    penalty[1:] = objective.l2
    penalty += 1e-10 * values[-1] * np.diag(M).mean()  # for intercepts, and where there is no penalty
    with blas(LARGE):
        factors = [linalg.cho_factor(max(value, 0) * M + np.diag(penalty), lower=True, check_finite=False) for value in values]
    held = objective.held(W.shape)

    def solve(g):
        P = Q.T @ g
        with blas(len(M)):
            P = Q @ np.array([linalg.cho_solve(factor, row, check_finite=False) for factor, row in zip(factors, P, strict=True)])
        P[held] = 0
        return P

    return solve


def diagonal(objective, shape, fractions):
    """As `kronecker`, with M's diagonal alone: the columns' sums of squares; B from the classes' shares at W = 0."""
    squares = np.concatenate([[objective.sweep.total()], objective.sweep.squares()])
    penalty = np.zeros(len(squares))
    penalty[1:] = objective.l2
    B = np.array([[0.25]]) if shape[0] == 1 else np.diag(fractions) - np.outer(fractions, fractions)
    values, Q = linalg.eigh(B)
    H = np.maximum(values, 1e-3 * values[-1])[:, None] * squares + penalty
    H[H <= 0] = 1
    held = objective.held(shape)

    def solve(g):
        P = Q @ ((Q.T @ g) / H)
        P[held] = 0
        return P

    return solve
