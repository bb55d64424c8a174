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
    diagonal = H.diagonal().reshape(K, D).max(axis=0)
    real = diagonal > 1e-28 * diagonal.max()  # below that is what rounding leaves of a constant column
    scale = np.tile(1 / np.sqrt(np.where(real, diagonal, 1)), K)  # 1
    H = H * scale[:, None] * scale
    if K > 1 and singular:
        H.reshape(K, D, K, D)[:, range(D), :, range(D)] += 1 / K  # 2
    with blas(len(H)):
        factor, failed = linalg.lapack.dpotrf(H, lower=True)  # 3
        if not failed and factor.diagonal().min() > 1e-7:  # else the factor has lost its digits
            return lambda g: (scale * linalg.lapack.dpotrs(factor, g.ravel() * scale, lower=True)[0]).reshape(K, D)
        values, vectors = linalg.eigh(H, check_finite=False)
    keep = values > 1e-13 * values[-1]
    V, values = vectors[:, keep], values[keep]
    return lambda g: (scale * (V @ ((V.T @ (g.ravel() * scale)) / values))).reshape(K, D)


def kronecker(objective, W, part):
    """(B x M + penalty)^-1, from `part`, a sample of the objective: a Cholesky factor for each eigenvalue of B."""
    B, M = part.sweep.factors(W)
    penalty = np.zeros(len(M))
    penalty[1:] = objective.l2
    penalty += 1e-10 * np.diag(B).max() * np.diag(M).mean()  # for intercepts, and where there is no penalty

    def factor(values):
        factors = [linalg.cho_factor(value * M + np.diag(penalty), lower=True, check_finite=False)[0] for value in values]
        return lambda A: np.array([linalg.lapack.dpotrs(F, a, lower=True)[0] for F, a in zip(factors, A, strict=True)])

    with blas(LARGE):
        return by_classes(B, objective.held(W.shape), factor)


def diagonal(objective, shape, fractions):
    """As `kronecker`, with M's diagonal alone: the columns' sums of squares; B from the classes' shares at W = 0."""
    squares = np.concatenate([[objective.sweep.total()], objective.sweep.squares()])
    penalty = np.zeros(len(squares))
    penalty[1:] = objective.l2
    B = np.array([[0.25]]) if shape[0] == 1 else np.diag(fractions) - np.outer(fractions, fractions)
    least = 1e-3 * np.diag(B).max()

    def factor(values):
        H = np.outer(np.maximum(values, least), squares) + penalty
        H[H <= 0] = 1
        return lambda A: np.divide(A, H, out=A)

    return by_classes(B, objective.held(shape), factor)


def by_classes(B, held, factor):
    """g -> (B x M + penalty)^-1 g where classes do not mix, among the eigenvectors of B: factor(eigenvalues) solves there.

    Classes whose weights are held have no part in B: without them it is not singular.
    """
    free = ~held.all(axis=1)
    values, Q = linalg.eigh(B[np.ix_(free, free)])
    inverse, V = factor(np.maximum(values, 0.0)), np.zeros((len(free), len(Q)))
    V[free] = Q

    def solve(g):
        P = V @ inverse(V.T @ g)
        if held.any():
            P[held] = 0
        return P

    return solve
