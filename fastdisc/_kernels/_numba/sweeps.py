"""Many two-class problems over the same rows."""

import numpy as np
from numba import prange

from .jitted import LOGISTIC, SIGMOID, accumulate, curvature, fetch, gram, link_logistic, score, take_rows
from .options import drivers, jit
from .squares import link_linear, link_sigmoid


@jit()
def sweeps_chunk(X, link, r, s, o, target, part, W, w0, order, block, lo, hi, sums, G, H):
    """Sums of rows lo to hi: sums = losses, errors, intercept gradients, (3, K); G (K, d); H, a block for each problem."""
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    Y = np.empty((1 if order == 2 and link != LOGISTIC else 0, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    P = np.zeros((H.shape[-1], block if order == 2 else 0))
    Q = np.empty_like(P)
    c = np.empty(block)
    weight, own, side = np.empty(block, W.dtype), np.empty(block, W.dtype), np.empty(block, np.int32)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        take_rows(s, o, lo, m, weight, Z)
        for k in range(K):
            E = Z[k : k + 1]
            for i in range(m):
                side[i] = target[k, r[lo + i]]
                own[i] = weight[i] * part[k, r[lo + i]]
            if link == LOGISTIC:
                loss, wrong = link_logistic(E, side, own, m)
            elif link == SIGMOID:
                loss, wrong = link_sigmoid(E, side, own, m, Y)
            else:
                loss, wrong = link_linear(E, side, own, m, Y)
            sums[0, k] += loss
            sums[1, k] += wrong
            e = W.dtype.type(0)
            for i in range(m):
                e += E[0, i]
            sums[2, k] += e
            if order == 2:
                curvature(link, 0, 0, E, Y, own, m, c)
                gram(x, lo, m, c, P, Q, H[k])
        if order > 0:
            accumulate(x, lo, m, Z, g)
            G += g
            g[:] = 0
        lo += m


def sweeps_driver(X, link, r, s, o, target, part, W, w0, order, block, chunk, sums, G, H):
    for c in prange(len(sums)):
        hi = min(len(r), c * chunk + chunk)
        sweeps_chunk(X, link, r, s, o, target, part, W, w0, order, block, c * chunk, hi, sums[c], G[c], H[c])


DRIVERS = drivers(sweeps_driver)
