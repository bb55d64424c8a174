"""Approximations of the inverse Hessian: functions from a gradient (K, d+1) to a direction.

inverse_hessian   the Hessian itself, of all rows or of a sample
kronecker         B x M: class covariances B (K, K) and one weighted Gram matrix M (d+1, d+1)
diagonal          B x diag(M)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from scipy import linalg

from .._kernels.contract import Array
from .._objectives.penalty import Penalty
from .._objectives.protocol import Capability, Objective
from ..runtime import one_blas_thread

Preconditioner = Callable[[Array], Array]

# Up to the first number of unknowns BLAS uses one thread by itself, and forbidding more would take
# longer than the work; from the second on its threads gain more in a Cholesky factorisation than
# they cost the next sweep.
MIN_LIMITED_UNKNOWNS, MAX_LIMITED_UNKNOWNS = 64, 1500
MAX_GRAM_COLUMNS = 2500  # up to which a Gram matrix is worth its factorisation
SAMPLE_ROWS_PER_COLUMN, MIN_SAMPLE_ROWS = 8, 2000  # of the sample from which it is estimated


def limited_blas(unknowns: int) -> AbstractContextManager[object]:
    """One BLAS thread for matrices of medium size, all of them for large ones."""
    limited = MIN_LIMITED_UNKNOWNS < unknowns < MAX_LIMITED_UNKNOWNS
    return one_blas_thread() if limited else nullcontext()


def inverse_hessian(H: Array, shape: tuple[int, int], shift_invariant: bool) -> Preconditioner:
    """g -> H^-1 g.

    1. columns of X may differ in size by many orders: scale H to a diagonal of about 1
    2. if one vector may be added to the weights of every class, H is nearly singular along such
       vectors. The gradient has no component there while the weights of the classes sum to 0:
       raising H along them makes it definite and leaves the solution unchanged
    3. Cholesky; constant or collinear columns without a penalty leave H singular, and get the
       least-norm solution
    """
    K, D = shape
    diagonal = H.diagonal().reshape(K, D).max(axis=0)
    nonzero = (
        diagonal > 1e-28 * diagonal.max()
    )  # below is what rounding leaves of a constant column
    scale = np.tile(1 / np.sqrt(np.where(nonzero, diagonal, 1)), K)  # 1
    H = H * scale[:, None] * scale
    if shift_invariant:
        H.reshape(K, D, K, D)[:, range(D), :, range(D)] += 1 / K  # 2
    with limited_blas(len(H)):
        factor, failed = linalg.lapack.dpotrf(H, lower=True)  # 3
        if not failed and factor.diagonal().min() > 1e-7:  # else the factor has lost its digits
            return lambda g: (
                scale * linalg.lapack.dpotrs(factor, g.ravel() * scale, lower=True)[0]
            ).reshape(K, D)
        values, vectors = linalg.eigh(H, check_finite=False)
    keep = values > 1e-13 * values[-1]
    V, values = vectors[:, keep], values[keep]
    return lambda g: (scale * (V @ ((V.T @ (g.ravel() * scale)) / values))).reshape(K, D)


def kronecker(penalty: Penalty, factors: tuple[Array, Array]) -> Preconditioner:
    """(B x M + penalty)^-1: one Cholesky factor for each eigenvalue of B."""
    B, M = factors
    diagonal = penalty.diagonal + 1e-10 * np.diag(B).max() * np.diag(M).mean()

    def factorize(values: Array) -> Callable[[Array], Array]:
        matrices = (value * M + np.diag(diagonal) for value in values)
        found = [linalg.cho_factor(A, lower=True, check_finite=False)[0] for A in matrices]

        def solve(A: Array) -> Array:
            pairs = zip(found, A, strict=True)
            return np.array([linalg.lapack.dpotrs(L, a, lower=True)[0] for L, a in pairs])

        return solve

    with limited_blas(MAX_LIMITED_UNKNOWNS):
        return _by_eigenvectors(B, penalty, factorize)


def diagonal(objective: Objective) -> Preconditioner:
    """As `kronecker`, with the diagonal of M and with B at zero weights."""
    B, squares = objective.curvature_diagonal()
    penalty = objective.penalty.diagonal
    smallest = 1e-3 * np.diag(B).max()

    def factorize(values: Array) -> Callable[[Array], Array]:
        H = np.outer(np.maximum(values, smallest), squares) + penalty
        H[H <= 0] = 1
        return lambda A: np.divide(A, H, out=A)

    return _by_eigenvectors(B, objective.penalty, factorize)


def estimate(objective: Objective, W: Array) -> Preconditioner:
    """The best of these that is affordable, from a sample at the start of a solver."""
    if Capability.CURVATURE_FACTORS not in objective.capabilities or W.shape[1] > MAX_GRAM_COLUMNS:
        return diagonal(objective)
    m = max(SAMPLE_ROWS_PER_COLUMN * W.shape[1], MIN_SAMPLE_ROWS)
    return kronecker(objective.penalty, objective.sample(m, seed=0).curvature_factors(W))


def _by_eigenvectors(
    B: Array, penalty: Penalty, factorize: Callable[[Array], Callable[[Array], Array]]
) -> Preconditioner:
    """g -> (B x M + penalty)^-1 g in the basis of eigenvectors of B, where classes do not mix:
    factorize(eigenvalues) solves there. Classes whose weights are all fixed are left out of B."""
    fixed = penalty.fixed
    free: Array = np.logical_not(fixed.all(axis=1))
    values, Q = linalg.eigh(B[np.ix_(free, free)])
    inverse, V = factorize(np.maximum(values, 0.0)), np.zeros((len(free), len(Q)))
    V[free] = Q

    def solve(g: Array) -> Array:
        P = V @ inverse(V.T @ g)
        if fixed.any():
            P[fixed] = 0
        return P

    return solve
