"""Closed forms: dense linear algebra on moments. No data, no iteration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from .._kernels.contract import Array

TINY = np.finfo(np.float64).tiny
# The score of a class without rows: finite, and below anything that the features can add.
MIN_SCORE = -1e300


def log_priors(priors: Array) -> Array:
    """log P(C_k); MIN_SCORE for a class without rows, which is then never chosen."""
    return np.where(priors > 0, np.log(np.maximum(priors, TINY)), MIN_SCORE)


def clip_positive(counts: Array) -> Array:
    """Counts that can be divided by and have logarithms."""
    return np.maximum(counts, TINY)


def shrink(C: Array, shrinkage: float) -> Array:
    """(1 - shrinkage) C + shrinkage mean(variances) I"""
    mu = np.trace(C) / len(C)
    C = (1 - shrinkage) * C
    C[np.diag_indices(len(C))] += shrinkage * mu
    return C


def ledoit_wolf(n: float, S: Array) -> Array:
    """The covariance of standardised features with Ledoit-Wolf shrinkage, scaled back to the
    features.

    S is (2 d, 2 d): the sums of products of [u u^2] about the mean; n is the weight of the rows.
    """
    d = len(S) // 2
    C, fourth = S[:d, :d] / n, S[d:, d:] / n
    scale = _positive_scale(C)
    C, fourth = C / np.outer(scale, scale), fourth / np.outer(scale**2, scale**2)
    if d == 1:
        return C * np.outer(scale, scale)
    trace, squares = np.trace(C), float(np.vdot(C, C))
    mu = trace / d
    delta = (squares - 2 * mu * trace + d * mu**2) / d
    beta = min((fourth.sum() - squares) / (d * n), delta)
    return shrink(C, beta / delta if beta > 0 else 0.0) * np.outer(scale, scale)


def _positive_scale(C: Array) -> Array:
    """Standard deviations, (d,); 1 for constant columns."""
    scale = np.sqrt(np.diag(C))
    return np.where(scale > 0, scale, 1.0)


class Whitening(NamedTuple):
    """T (d, rank) with T' C T = I: a Cholesky factor of the correlation matrix, or a matrix if C is
    singular."""

    scale: Array  # (d,)
    factor: Array
    rank: int
    triangular: bool

    def transform_rows(self, A: Array) -> Array:
        """A T"""
        A = A / self.scale
        if self.triangular:
            return linalg.solve_triangular(self.factor, A.T, lower=True).T
        return A @ self.factor

    def back_transform(self, V: Array) -> Array:
        """T V"""
        if self.triangular:
            T_V = linalg.solve_triangular(self.factor, V, lower=True, trans=1)
        else:
            T_V = self.factor @ V
        return T_V / self.scale[:, None]


def whiten(C: Array, tol: float) -> Whitening:
    """The whitening of a covariance matrix, restricted to directions in which the standardised
    features have a deviation of more than tol."""
    scale = _positive_scale(C)
    R = C / np.outer(scale, scale)
    floor = max(tol**2, len(C) * np.finfo(np.float64).eps)
    L, info = lapack.dpotrf(R, lower=1, clean=1)
    if info == 0:
        rcond, _ = lapack.dpocon(L, linalg.norm(R, 1), uplo="L")
        # The smallest eigenvalue is at least 1 / |R^-1| in the 1-norm, which LAPACK estimates
        # within a factor of about 3; a margin of 10 makes the test safe. The eigenvalues of 784
        # columns take 20 times as long.
        if rcond * linalg.norm(R, 1) > 10 * floor:
            return Whitening(scale, L, len(C), True)
    values, V = linalg.eigh(R)
    keep = values > floor
    factor = V[:, keep][:, ::-1] / np.sqrt(values[keep][::-1])
    return Whitening(scale, factor, int(keep.sum()), False)


def solve_symmetric(C: Array, B: Array) -> Array:
    """C^-1 B; with the pseudo-inverse if C is singular."""
    scale = np.sqrt(np.diag(C))
    if (scale > 0).all():
        R = C / np.outer(scale, scale)
        L, info = lapack.dpotrf(R, lower=1)
        if info == 0 and lapack.dpocon(L, linalg.norm(R, 1), uplo="L")[0] > 1e-13:
            return linalg.cho_solve((L, True), B / scale[:, None]) / scale[:, None]
    return linalg.lstsq(C, B)[0]


def covariance_root(C: Array) -> Array:
    """(d, d) with root @ root.T = C, for any covariance matrix."""
    values, V = linalg.eigh(C)
    return V * np.sqrt(np.maximum(values, 0))


def principal_axes(C: Array) -> tuple[Array, Array]:
    """Eigenvalues in falling order, not below 0, and their vectors in columns."""
    values, V = linalg.eigh(C)
    return np.maximum(values[::-1], 0), V[:, ::-1]


def triangular_factor(A: Array) -> Array:
    """A triangular matrix with the same A'A, which halves the work of scoring rows."""
    return linalg.qr(A, mode="r")[0]
