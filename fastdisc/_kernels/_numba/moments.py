"""Moments of classes and quadratic scores; see _cython/moments.pxi.

Queues stand on their side, a column of the rows along memory: each entry of a scatter matrix is then a sum along memory.
"""

import numpy as np
from numba import prange, types
from numba.extending import overload

from .. import Moment
from .gram import weighted_gram
from .online import pick
from .options import SUMS as REORDER
from .options import drivers, jit

SUMS, COUNTS, SQUARES, SCATTER = int(Moment.SUMS), int(Moment.COUNTS), int(Moment.SQUARES), int(Moment.SCATTER)


@jit()
def flush(P, Q, s, m, H):
    """S_g += sum_i s_i u_i u_i' over the rows in a group's queue   (4.28)"""
    weighted_gram(P, Q, s, m, H)


def take(X, i, k, s, shift, kind, M, S):
    """Row i into the sums of its class; False for a layout whose rows go to no queue."""


@overload(take, jit_options={"fastmath": REORDER})
def _take(X, i, k, s, shift, kind, M, S):
    return take_csr if isinstance(X, types.BaseTuple) else take_dense


def take_dense(X, i, k, s, shift, kind, M, S):
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        u = x - shift[k, j]
        if kind == COUNTS:
            u = (1.0 if u > 0 else 0.0) + 0.0 * x  # NaN where x is not finite; x - x would be folded
        M[k, j] += s * u
        if kind == SQUARES:
            S[0, k, j] += s * u * u
    return True


def take_csr(X, i, k, s, shift, kind, M, S):
    data, indices, indptr = X
    for t in range(indptr[i], indptr[i + 1]):
        j, v = indices[t], np.float64(data[t])
        if kind == COUNTS:  # a cell that is not stored is 0, which has been counted where 0 > shift
            M[k, j] += s * ((1.0 if v > shift[k, j] else 0.0) - (1.0 if 0 > shift[k, j] else 0.0) + 0.0 * v)
        else:
            M[k, j] += s * v
        if kind == SQUARES:
            S[0, k, j] += s * v * v
    return False


def put(X, i, k, shift, kind, P, place, H, s):
    """Row i to the end of its group's queue, or straight into the scatter matrix."""


@overload(put, jit_options={"fastmath": REORDER})
def _put(X, i, k, shift, kind, P, place, H, s):
    return put_csr if isinstance(X, types.BaseTuple) else put_dense


def put_dense(X, i, k, shift, kind, P, place, H, s):
    d = X.shape[1]
    for j in range(d):
        u = np.float64(X[i, j]) - shift[k, j]
        P[j, place] = u
        if kind > SCATTER:
            P[d + j, place] = u * u
    return 1


def put_csr(X, i, k, shift, kind, P, place, H, s):
    data, indices, indptr = X
    for t in range(indptr[i], indptr[i + 1]):
        v, a = s * data[t], indices[t]
        for u in range(t, indptr[i + 1]):
            b = indices[u]
            H[min(a, b), max(a, b)] += v * data[u] * (2 if u > t and a == b else 1)
    return 0


@jit()
def moments_chunk(X, r, s, shift, group, kind, block, lo, hi, n, M, S):
    """Sums of rows lo to hi: n (K), M (K, d), S, squares in S[0] or a matrix for each group."""
    groups, D = (len(S), S.shape[-1]) if kind >= SCATTER else (0, 0)
    P, Q = np.zeros((groups, D, block)), np.empty((D, block))
    weight, filled, room = np.empty((groups, block)), np.zeros(groups, np.int64), np.empty((1, M.shape[1]))
    for i in range(lo, hi):
        x, t = pick(X, i, room)
        k = r[i]
        step = s[i] if len(s) > 1 else s[0]
        n[k] += step
        take(x, t, k, step, shift, kind, M, S)
        if kind >= SCATTER:
            g = group[k]
            weight[g, filled[g]] = step
            filled[g] += put(x, t, k, shift, kind, P[g], filled[g], S[g], step)
            if filled[g] == block:
                flush(P[g], Q, weight[g], block, S[g])
                filled[g] = 0
    for g in range(groups):
        flush(P[g], Q, weight[g], filled[g], S[g])


def moments_driver(X, r, s, shift, group, kind, block, chunk, n, M, S):
    for c in prange(len(n)):
        moments_chunk(X, r, s, shift, group, kind, block, c * chunk, min(len(r), c * chunk + chunk), n[c], M[c], S[c])


def dense_row(X, i, x):
    """Row i, whatever the layout."""


@overload(dense_row)
def _dense_row(X, i, x):
    return row_csr if isinstance(X, types.BaseTuple) else row_dense


def row_dense(X, i, x):
    for j in range(X.shape[1]):
        x[j] = X[i, j]


def row_csr(X, i, x):
    data, indices, indptr = X
    x[:] = 0
    for t in range(indptr[i], indptr[i + 1]):
        x[indices[t]] += data[t]


@jit()
def quadratic_chunk(X, mean, A, c, diagonal, lo, hi, out):
    """z_k = c_k - |A_k (x - mean_k)|^2 / 2; NaN if a score is not finite, else 0."""
    K, d = mean.shape
    x, u, room, check = np.empty(d), np.empty(d), np.empty((1, d)), 0.0
    for i in range(lo, hi):
        dense_row(*pick(X, i, room), x)
        for k in range(K):
            total = 0.0
            if diagonal:
                for j in range(d):
                    a = A[k, 0, j] * (x[j] - mean[k, j])
                    total += a * a
            else:
                for j in range(d):
                    u[j] = x[j] - mean[k, j]
                for p in range(A.shape[1]):
                    a = 0.0
                    for j in range(d):
                        a += A[k, p, j] * u[j]
                    total += a * a
            out[i, k] = c[k] - total / 2
            check += 0.0 * total
    return check


def quadratic_driver(X, mean, A, c, diagonal, chunk, out, check):
    for t in prange(len(check)):
        check[t] = quadratic_chunk(X, mean, A, c, diagonal, t * chunk, min(len(out), t * chunk + chunk), out)


DRIVERS = drivers(moments_driver, quadratic_driver)
