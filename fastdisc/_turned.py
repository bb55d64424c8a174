"""Sums over sparse rows that are so wide, and so many classes, that a gradient is as large as the data.

Blocks of rows, each chunk with a gradient of its own, then spend their time on gradients: setting them to zero, adding them up,
and fetching them from memory for every stored value. Scores of all rows are small beside that. So all rows are scored, the link
makes errors of the scores, and each column adds up its own share of the gradient, which is again a score: that of the transposed
data. (11,000 texts, 42,000 words, 20 classes: a product with the Hessian in 27 ms, not 71.)
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ._kernels import CSR, Link, _numpy

CELLS = 8_000_000  # of the scores of all rows
FEW = 64  # stored values a column, below which a chunk's gradient weighs more than its rows


def suits(X, link, K):
    """Whether these data are better added up by columns."""
    return isinstance(X, CSR) and link == Link.SOFTMAX and X.shape[0] * K <= CELLS and len(X.data) < FEW * X.shape[1]


class Turned:
    """Rows and columns of the same data; `scores` is a function of X and W."""

    def __init__(self, X, s, offset, scores):
        n, d = X.shape
        turned = csr_array((X.data, X.indices, X.indptr), shape=(n, d)).T.tocsr()
        self.X, self.scores, self.offset = X, scores, offset
        self.columns = CSR(turned.data, turned.indices.astype(np.int32), turned.indptr.astype(X.indptr.dtype), n)
        self.s = s[:, None]
        self.at = None  # weights, and the probabilities there

    def _scores(self, W):
        Z = self.scores(self.X, W)
        return Z + self.offset if len(self.offset) else Z

    def _accumulate(self, E):
        """G_k = sum_t e_k [1 x]   (10.33)"""
        turned = np.zeros((E.shape[1], len(E) + 1))  # (K, N+1): the columns' weights are the rows' errors
        turned[:, 1:] = E.T
        G = np.empty((E.shape[1], self.X.shape[1] + 1))  # (K, d+1)
        G[:, 0], G[:, 1:] = E.sum(axis=0), self.scores(self.columns, turned).T
        return G

    def sums(self, W, r):
        """Loss, errors, gradient."""
        s = self.s[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):  # weights that have run away: the sums tell
            loss, chosen, E, _ = _numpy.link_softmax(self._scores(W), r)
            return float((s * loss).sum()), float((s * (chosen != r)).sum()), self._accumulate(self.s * E), None

    def product(self, W, V):
        """The Hessian at W times V."""
        if self.at is None or not np.array_equal(W, self.at[0]):
            self.at = W.copy(), _numpy.softmax(self._scores(W))
        Y, U = self.at[1], self.scores(self.X, V)
        return self._accumulate(self.s * Y * (U - (Y * U).sum(axis=1, keepdims=True)))
