"""Few dense rows: products with the Hessian on a copy of them in float32, at probabilities that are kept through a Newton step.

A thousand rows go through BLAS in less time than threads take to wake, and conjugate gradients want few digits; gradients, and so
the certificate, are those of the sweep. (Digits, 1,797 x 64, 10 classes: a product in 0.15 ms, not 0.4.)
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ._kernels import Link

ENOUGH = 2000  # cells for which float32 gains time
CELLS = 1_000_000  # of the copy: 4 MB, which stay in cache; four times as many where rows are fewer than weights
NARROW = 200  # columns up to which a block of the Hessian for each class is worth its inverse


def suits(X, link, K):
    """Whether these data are few enough. (2,000 x 1,000, 4 classes: 0.2 s, not 1.4; 20,000 x 200, 10 classes: 0.28, not 0.17.)"""
    if not isinstance(X, np.ndarray) or link not in (Link.LOGISTIC, Link.SOFTMAX):
        return False
    return ENOUGH <= X.size <= (4 * CELLS if X.shape[0] < K * X.shape[1] else CELLS)


class Kept:
    """Rows [1 x] of features that are standardised, in float32."""

    def __init__(self, X, s, offset, link):
        self.X = np.column_stack([np.ones(len(X)), X]).astype(np.float32)  # (N, d+1)
        self.s, self.offset, self.link = s.astype(np.float32), offset.T, link
        self.inverse, self.l2, self.products = None, None, 0  # of the last Hessian: blocks, penalty, products that were asked for

    def outputs(self, W):
        """y_k of all rows, (K, N): (10.15), (10.29)."""
        Z = W.astype(np.float32) @ self.X.T
        if self.offset.shape[1]:
            Z += self.offset
        if self.link == Link.LOGISTIC:
            return 1 / (1 + np.exp(-Z))
        Y = np.exp(Z - Z.max(axis=0))
        Y /= Y.sum(axis=0)
        return Y


class Bent:
    """The Hessian at W plus a penalty, less weights that are held, of rows that weigh up to 1; directions are (K, d+1).

    Preconditioned by its blocks, one for each class, where columns are few, else by its diagonal. Those of the last step serve
    once more unless it took so many products that better ones pay: a block costs as much as d / 4 products.
    """

    LEAST = 1e-3  # the residual, relative, below which float32 is in the way

    def __init__(self, kept, W, unit, l2, held):
        self.kept, self.unit, self.held = kept, unit, held if held.any() else None
        self.l2 = np.concatenate([[0], l2 / unit]).astype(np.float32)
        self.blocks = W.shape[1] <= NARROW
        self.Y = kept.outputs(W)
        self.sY = kept.s * self.Y
        if kept.inverse is None or kept.products > W.shape[1] // 8 or not np.array_equal(kept.l2, self.l2):
            kept.inverse = self._inverses(held)
        self.inverse, kept.l2, kept.products = kept.inverse, self.l2, 0

    def _inverses(self, held):
        """Of the blocks H_kk = sum_t s y_k (1 - y_k) [1 x][1 x]' + penalty, (K, d+1, d+1), or of their diagonals, (K, d+1)."""
        X, C = self.kept.X, self.sY * (1 - self.Y)
        D = C @ X**2 + self.l2
        D[D <= 0] = 1
        if not self.blocks:
            return np.where(held, 0, 1 / D)
        one = not np.ptp(C, axis=0).any() and (held[0] == held).all()  # at W = 0 one block serves all classes
        classes = range(1 if one else len(C))
        found = [_inverse(X.T @ (C[k][:, None] * X) + np.diag(self.l2), D[k], held[k]) for k in classes]
        return np.stack(found * (len(C) // len(found)))

    def inward(self, g, size):
        """A gradient of this norm, as `product` takes directions."""
        return (g / size).astype(np.float32)

    def outward(self, V, size):
        """The solution for such a gradient, as weights."""
        return V * (size / self.unit)

    def precondition(self, R):
        return np.matmul(self.inverse, R[:, :, None])[:, :, 0] if self.blocks else self.inverse * R

    def product(self, V):
        """The Hessian times V: (10.32), as used by (10.33)."""
        self.kept.products += 1
        U = V @ self.kept.X.T  # (K, N)
        U -= np.einsum("kt,kt->t", self.Y, U)  # for one score too: its curvature is y (1 - y)
        U *= self.sY
        HV = U @ self.kept.X
        HV += self.l2 * V
        if self.held is not None:
            HV[self.held] = 0
        return HV


def _inverse(H, diagonal, held):
    """Of H, given its diagonal, without what is held; of the diagonal alone if H with a diagonal of 1 is singular for float32."""
    scale = np.where(held, 0, 1 / np.sqrt(diagonal))
    H = H * scale[:, None] * scale
    H.flat[:: len(H) + 1] = 1 + 1e-5
    factor, failed = lapack.spotrf(H, lower=True)
    lower, failed = lapack.spotri(factor, lower=True) if not failed else (factor, failed)
    whole = np.tril(lower) + np.tril(lower, -1).T if not failed else np.eye(len(H), dtype=np.float32)
    return whole * scale[:, None] * scale
