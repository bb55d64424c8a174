"""Sums over sparse rows that are so wide, and so many classes, that a gradient is as large as the data.

Blocks of rows, each chunk with a gradient of its own, then spend their time on gradients: setting them to zero, adding them up,
and fetching them from memory for every stored value. Scores of all rows are small beside that. So all rows are scored, the link
makes errors of the scores, and each column adds up its own share of the gradient, which is again a score: that of the transposed
data. The probabilities at the last weights are kept: a product with the Hessian there is two passes over the stored values.
(11,000 texts, 42,000 words, 20 classes: 71 ms by blocks of rows, 11 this way, 7 in float32.)

Weights lie by columns here, (d+1, K): those of a word are one piece of memory.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from . import _config
from ._kernels import CSR, Grid, Link, _numpy

CELLS = 8_000_000  # of the scores of all rows
FEW = 64  # stored values a column, below which a chunk's gradient weighs more than its rows
ENOUGH = 2000  # stored values for which float32 gains time
CHUNKS = 256  # so many that no run of long rows, or of frequent columns, keeps one thread while the others wait
TINY = 1e-30  # diagonals of a Hessian below it, or above its inverse, are not for float32
STRIP = 512  # columns that are turned at a time, in cache: 20 x 42,000 numbers in 2 ms, not 10


def suits(X, link, K):
    """Whether these data are better added up by columns; of two classes, products of few digits alone."""
    if not isinstance(X, CSR) or link not in (Link.LOGISTIC, Link.SOFTMAX):
        return False
    return X.shape[0] * K <= CELLS and len(X.data) < FEW * X.shape[1]


def turn(A, dtype=np.float64):
    """A' in C order."""
    out = np.empty(A.shape[::-1], dtype)
    strips, columns = (out, A) if A.shape[0] < A.shape[1] else (out.T, A.T)
    for lo in range(0, len(strips), STRIP):
        strips[lo : lo + STRIP] = columns[:, lo : lo + STRIP].T
    return out


class Turned:
    """Rows and columns of the same data."""

    def __init__(self, X, link, s, offset, kernels, n_threads):
        n, d = X.shape
        self.many = link == Link.SOFTMAX  # classes, else two
        if not self.many:  # products are a matter of reading the stored values: four bytes of each will do
            with np.errstate(over="ignore"):
                X = X._replace(data=X.data.astype(np.float32, copy=False))
        turned = csr_array((X.data, X.indices, X.indptr), shape=(n, d)).T.tocsr()
        self.rows, self.columns = X, CSR(turned.data, turned.indices, turned.indptr, n)
        self.s, self.offset, self.kernels, self.n_threads = s[:, None], offset, kernels, n_threads
        self.at = None  # weights, and the probabilities there

    def times(self, X, B, Z):
        """Z <- X B."""
        with _config.threads(self.n_threads, 4 * len(X.data) * B.shape[1]) as n:  # as `work` of a sweep has it
            self.kernels.times(X, B, Z, Grid(16, -(-X.shape[0] // CHUNKS)), n)
        return Z

    def scores(self, V):
        """V' [1 x] of all rows, (N, K), in V's type."""
        Z = self.times(self.rows, V[1:], np.empty((self.rows.shape[0], V.shape[1]), V.dtype))
        Z += V[0]
        return Z

    def accumulate(self, E, G):
        """G <- sum_t [1 x] e'   (10.33)"""
        G[0] = E.sum(axis=0)
        self.times(self.columns, E, G[1:])
        return G

    def _link(self, W):
        """Scores, the logarithm of the sum of exp(z), and probabilities (10.29), which are noted."""
        Z = self.scores(turn(W))
        if len(self.offset):
            Z += self.offset
        top = Z.max(axis=1, keepdims=True)
        Y = np.exp(Z - top)
        total = Y.sum(axis=1, keepdims=True)
        Y /= total
        self.at = W.copy(), Y
        return Z, np.log(total) + top, Y

    def probabilities(self, W):
        """Those of all rows at W, (N, K); of two classes, of the second."""
        if not self.many:
            Z = self.scores(turn(W))
            return _numpy.sigmoid(Z + self.offset if len(self.offset) else Z)
        return self.at[1] if self.at is not None and np.array_equal(W, self.at[0]) else self._link(W)[2]

    def sums(self, W, r):
        """Loss, errors, gradient: (10.31), (10.33)."""
        s, rows = self.s[:, 0], np.arange(len(r))
        with np.errstate(over="ignore", invalid="ignore"):  # weights that have run away: the sums tell
            Z, top, Y = self._link(W)
            E = self.s * Y
            E[rows, r] -= s
            loss, errors = float((s * (top[:, 0] - Z[rows, r])).sum()), float((s * (Z.argmax(axis=1) != r)).sum())
            return loss, errors, turn(self.accumulate(E, np.empty((W.shape[1], len(W))))), None

    def product(self, W, V):
        """The Hessian at W times V: (10.32), as used by (10.33)."""
        Y, U = self.probabilities(W), self.scores(turn(V))
        return turn(self.accumulate(self.s * Y * (U - (Y * U).sum(axis=1, keepdims=True)), np.empty(V.T.shape)))


class Bent:
    """The Hessian at W plus a penalty, less weights that are held, in float32: for conjugate gradients, who want few digits.

    It is that of rows that weigh up to 1, in the unit `unit`, and gradients come in at norm 1: numbers that float32 has.
    """

    LEAST = 1e-3  # the residual, relative, below which float32 is in the way
    blocks = False  # preconditioned by its diagonal

    def __init__(self, turned, W, unit, l2, held):
        self.turned, self.unit = turned, unit
        self.l2 = np.broadcast_to(l2 / unit, W.shape[1] - 1).astype(np.float32)[:, None]  # (d, 1)
        self.held = turn(held, bool) if held.any() else None
        self.Y = turned.probabilities(W).astype(np.float32)
        self.sY = turned.s.astype(np.float32) * self.Y
        self.HV, self.room = np.empty((2, *W.T.shape), np.float32)
        diagonal = self._diagonal()
        self.fine = bool(diagonal.min() > TINY and diagonal.max() < 1 / TINY)
        self.inverse = np.divide(1, diagonal, out=diagonal)

    def _diagonal(self):
        """sum_t s y (1 - y) [1 x^2], with the penalty; 1 where that is 0."""
        turned, C = self.turned, self.sY * (1 - self.Y)
        D = np.empty_like(self.HV)
        D[0] = C.sum(axis=0)
        turned.times(turned.columns._replace(data=np.square(turned.columns.data, dtype=np.float32)), C, D[1:])
        D[1:] += self.l2
        D[D <= 0] = 1
        return D

    def inward(self, g, size):
        """A gradient of this norm, (K, d+1), as `product` takes directions."""
        return turn(g / size, np.float32)

    def outward(self, V, size):
        """The solution for such a gradient, as weights."""
        return turn(V) * (size / self.unit)

    def precondition(self, R):
        """R over the diagonal; the place of the result is used again."""
        return np.multiply(R, self.inverse, out=self.room)

    def product(self, V):
        """The Hessian times V; the place of the result is used again."""
        U, HV = self.turned.scores(V), self.HV
        U -= np.einsum("ik,ik->i", self.Y, U)[:, None]  # for one score too: its curvature is y (1 - y)
        U *= self.sY
        self.turned.accumulate(U, HV)
        HV[1:] += np.multiply(self.l2, V[1:], out=self.room[1:])
        if self.held is not None:
            HV[self.held] = 0
        return HV
