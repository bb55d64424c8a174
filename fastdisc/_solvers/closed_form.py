"""Closed forms: small dense linear algebra on moments. No data, no iteration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

TINY = np.finfo(np.float64).tiny
NEVER = -1e300  # the score of a class that has no rows: finite, and below whatever the features add


def log_priors(priors):
    """log P(C_k); of a class that has no rows, so low that it is never chosen."""
    return np.where(priors > 0, np.log(np.maximum(priors, TINY)), NEVER)


def no_less(counts):
    """Counts that may be divided by and have logarithms."""
    return np.maximum(counts, TINY)


def shrunk(C, shrinkage):
    """(1 - shrinkage) C + shrinkage mean(variances) I"""
    mu = np.trace(C) / len(C)
    C = (1 - shrinkage) * C
    C[np.diag_indices(len(C))] += shrinkage * mu
    return C


def ledoit_wolf(n, S):
    """The covariance of standardised features, shrunk as much as Ledoit and Wolf advise, in units of the features again.

    S is (2 d, 2 d): the sums of products of [u u^2] about the mean; n the weight.
    """
    d = len(S) // 2
    C, fourth = S[:d, :d] / n, S[d:, d:] / n
    scale = np.sqrt(np.diag(C))
    scale = np.where(scale > 0, scale, 1.0)
    C, fourth = C / np.outer(scale, scale), fourth / np.outer(scale**2, scale**2)
    if d == 1:
        return C * np.outer(scale, scale)
    trace, squares = np.trace(C), float(np.vdot(C, C))
    mu = trace / d
    delta = (squares - 2 * mu * trace + d * mu**2) / d
    beta = min((fourth.sum() - squares) / (d * n), delta)
    return shrunk(C, beta / delta if beta > 0 else 0.0) * np.outer(scale, scale)


class Whitening(NamedTuple):
    """T (d, rank) with T' C T = I, as a Cholesky factor of C in units of the columns, or as a matrix where C has no inverse."""

    scale: np.ndarray  # (d,)
    factor: np.ndarray
    rank: int
    triangular: bool

    def rows(self, A):
        """A T"""
        A = A / self.scale
        return linalg.solve_triangular(self.factor, A.T, lower=True).T if self.triangular else A @ self.factor

    def columns(self, V):
        """T V"""
        T_V = linalg.solve_triangular(self.factor, V, lower=True, trans=1) if self.triangular else self.factor @ V
        return T_V / self.scale[:, None]


def whiten(C, tol):
    """Directions in which standardised features vary by more than tol, each in units of that variation."""
    scale = np.sqrt(np.diag(C))
    scale = np.where(scale > 0, scale, 1.0)
    R = C / np.outer(scale, scale)
    floor = max(tol**2, len(C) * np.finfo(np.float64).eps)
    L, info = lapack.dpotrf(R, lower=1, clean=1)
    if info == 0:
        rcond, _ = lapack.dpocon(L, linalg.norm(R, 1), uplo="L")
        # The smallest eigenvalue is at least 1 / |R^-1| in the 1-norm, which LAPACK estimates within a factor of 3 or so. Ten
        # times as much as is needed is proof enough; the eigenvalues of 784 columns take 20 times as long.
        if rcond * linalg.norm(R, 1) > 10 * floor:
            return Whitening(scale, L, len(C), True)
    values, V = linalg.eigh(R)
    keep = values > floor
    return Whitening(scale, V[:, keep][:, ::-1] / np.sqrt(values[keep][::-1]), int(keep.sum()), False)


def solve_symmetric(C, B):
    """C^-1 B, by the pseudo-inverse where C has no inverse."""
    scale = np.sqrt(np.diag(C))
    if (scale > 0).all():
        R = C / np.outer(scale, scale)
        L, info = lapack.dpotrf(R, lower=1)
        if info == 0 and lapack.dpocon(L, linalg.norm(R, 1), uplo="L")[0] > 1e-13:
            return linalg.cho_solve((L, True), B / scale[:, None]) / scale[:, None]
    return linalg.lstsq(C, B)[0]


def root(C):
    """(d, d) with root @ root.T = C, for any covariance."""
    values, V = linalg.eigh(C)
    return V * np.sqrt(np.maximum(values, 0))


def eigen(C):
    """Eigenvalues, the largest first, and their vectors in columns."""
    values, V = linalg.eigh(C)
    return np.maximum(values[::-1], 0), V[:, ::-1]


def triangle(A):
    """A triangular matrix with the same A'A: half the work when rows are scored."""
    return linalg.qr(A, mode="r")[0]
