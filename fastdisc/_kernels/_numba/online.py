"""Pairs of rows and coordinates one after the other, and what is done with one row; for rows see walk.py."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .options import SUMS, jit
from .rank import pair_values


def pick(X, t, room):
    """A layout that `add_row` and `dot_row` read, and the row's number there: X and t, or room with the row expanded."""


@overload(pick)
def _pick(X, t, room):
    mapped = isinstance(X, types.BaseTuple) and len(X) == 2
    return None if mapped else lambda X, t, room: (X, t)


def add_row(X, t, a, w):
    """w += a x_t"""


@overload(add_row)
def _add_row(X, t, a, w):
    return add_row_csr if isinstance(X, types.BaseTuple) else add_row_dense


def add_row_dense(X, t, a, w):
    for j in range(X.shape[1]):
        w[j] += a * X[t, j]


def add_row_csr(X, t, a, w):
    data, indices, indptr = X
    for i in range(indptr[t], indptr[t + 1]):
        w[indices[i]] += a * data[i]


def dot_row(X, t, w):
    """w' x_t"""


@overload(dot_row, jit_options={"fastmath": SUMS})
def _dot_row(X, t, w):
    return dot_row_csr if isinstance(X, types.BaseTuple) else dot_row_dense


def dot_row_dense(X, t, w):
    z = 0.0
    for j in range(X.shape[1]):
        z += X[t, j] * w[j]
    return z


def dot_row_csr(X, t, w):
    data, indices, indptr = X
    z = 0.0
    for i in range(indptr[t], indptr[t + 1]):
        z += data[i] * w[indices[i]]
    return z


@jit()
def rank_pairs_rows(X, pairs, s, w, eta, rule):
    loss, margin, width = rule
    step = 1 if len(s) > 1 else 0
    updates = 0
    one, other = np.empty((1, len(w))), np.empty((1, len(w)))
    for t in range(len(pairs)):
        (xu, u), (xv, v) = pick(X, pairs[t, 0], one), pick(X, pairs[t, 1], other)
        a = eta * s[t * step] * pair_values((dot_row(xv, v, w) - dot_row(xu, u, w)) + margin, loss, width)[1]
        if a != 0:
            updates += 1
            add_row(xu, u, a, w)
            add_row(xv, v, -a, w)
    return updates


@jit(sums=False)
def coordinates(H, q, l1, w, tol, max_iter):
    n = len(w)
    slope = H @ w - q  # H w - q, kept up to date
    passes, full = 0, True
    while passes < max_iter:
        passes += 1
        largest = 0.0
        for j in range(n):
            old = w[j]
            if H[j, j] <= 0 or not (full or old != 0):
                continue
            z = H[j, j] * old - slope[j]
            new = (z - l1[j] if z > l1[j] else z + l1[j] if z < -l1[j] else 0.0) / H[j, j]
            if new != old:
                w[j] = new
                largest = max(largest, H[j, j] * (new - old) ** 2)
                for i in range(n):
                    slope[i] += (new - old) * H[j, i]
        if largest <= tol:
            if full:
                break
            full = True  # the weights that are not 0 are settled: ask all of them once more
        else:
            full = False
    return passes
