"""A pass over the data: rows, targets and weights behind one call that returns sums. Solvers see nothing else of the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _config
from ._kernels import CSR, Link, grid
from ._validate import check_finite, raise_too_large


class Sums(NamedTuple):
    """What a sweep returns. Sums over parts of the rows add up to the sum over all."""

    loss: float
    errors: float
    g: np.ndarray  # (K, d+1)
    H: np.ndarray | None = None  # (K (d+1), K (d+1))

    def merge(self, other: Sums) -> Sums:
        """The sums over the rows of both."""
        H = None if self.H is None or other.H is None else self.H + other.H
        return Sums(self.loss + other.loss, self.errors + other.errors, self.g + other.g, H)


def _work(X, K, order):
    values = len(X.data) if isinstance(X, CSR) else X.shape[0] * X.shape[1]
    return 2 * values * K * (max(1, K * X.shape[1] // 4) if order == 2 else 1)


def _grid(X, K, order):
    stored = len(X.data) if isinstance(X, CSR) else None
    itemsize = 8 if stored is not None or X.dtype == np.float64 or order == 2 else 4
    return grid(X.shape, itemsize, K, order, stored)


class Sweep:
    """Loss, errors, gradient and Hessian of a linear model on fixed data, as functions of its weights W (K, d+1)."""

    def __init__(self, X, r, s, link, *, backend=None, n_threads=None):
        self.X, self.r, self.link = X, r, Link(link)
        self.unit = float(s.max())  # the largest row weight: rows weigh up to 1, which fits in float32 too
        self.s = s / self.unit
        self.kernels, self.n_threads = _config.kernels(backend), n_threads

    def __call__(self, W, order=1) -> Sums:
        with _config.threads(self.n_threads, _work(self.X, len(W), order)) as n:
            loss, errors, g, H = self.kernels.sweep(self.X, self.link, self.r, self.s, W, order, _grid(self.X, len(W), order), n)
        if not (np.isfinite(loss) and np.isfinite(g).all() and (H is None or np.isfinite(H).all())):
            check_finite(self.X)
            if np.abs(W).max() <= 1:  # else the weights may have run away, and the solver knows what to do
                raise_too_large(self.X)
        return Sums(self.unit * loss, self.unit * errors, self.unit * g, None if H is None else self.unit * H)


class Penalized:
    """A sweep plus l2 / 2 ||w||^2 over all weights but the intercepts; without an intercept those stay at 0."""

    def __init__(self, sweep, l2, intercept):
        self.sweep, self.l2, self.intercept = sweep, l2, intercept

    def __call__(self, W, order=1) -> Sums:
        loss, errors, g, H = self.sweep(W, order)
        loss = loss + self.l2 / 2 * np.vdot(W[:, 1:], W[:, 1:])
        g[:, 1:] += self.l2 * W[:, 1:]
        if not self.intercept:
            g[:, 0] = 0
        if order == 2:
            K, D = W.shape
            blocks = H.reshape(K, D, K, D)
            for k in range(K):
                blocks[k, range(1, D), k, range(1, D)] += self.l2
            if not self.intercept:
                blocks[:, 0], blocks[:, :, :, 0] = 0, 0
                blocks[range(K), 0, range(K), 0] = 1
        return Sums(loss, errors, g, H)


def outputs(X, link, W, *, backend=None, n_threads=None):
    """Scores or outputs of a linear model, (N, K)."""
    with _config.threads(n_threads, _work(X, len(W), 1)) as n:
        Y, finite = _config.kernels(backend).outputs(X, Link(link), W, _grid(X, len(W), 2), n)
    if not finite:
        check_finite(X)
        raise_too_large(X)
    return Y
