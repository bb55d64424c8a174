"""The kernels just in time: the twin of `_cython`, and later what compiles a user's basis functions into the sweep.

All jitted code that calls jitted code is in this file, because Numba's disk cache watches only the file of the function called.
Inner loops take four rows at once and let LLVM vectorise the sums over columns. Each driver exists twice, parallel and plain:
one thread needs no thread pool, and a forked child must not touch its parent's.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import FunctionType

import numba
import numpy as np
from numba import njit, prange, types
from numba.extending import intrinsic, overload

from . import CSR, Link

LOGISTIC, SOFTMAX = int(Link.LOGISTIC), int(Link.SOFTMAX)
F32 = np.float32

# Sums may be reordered (that is what vectorises them) and multiply-adds fused; NaN and infinity keep their meaning.
SUMS = {"reassoc", "contract", "nsz"}


def jit(parallel=False, sums=True):
    """The one place for JIT options. Without a writable place for the disk cache, functions are compiled anew each time."""
    options = {"nogil": True, "error_model": "numpy", "parallel": parallel, "fastmath": SUMS if sums else {"contract"}}

    def decorate(function):
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return decorate


@intrinsic
def bits(typingctx, x):
    """The bit pattern of a float as an integer, and back."""
    pairs = {types.float64: types.int64, types.int64: types.float64, types.float32: types.int32, types.int32: types.float32}
    result = pairs[x]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(x), codegen


# exp and log as in _cython/links.pxi, compiled without reordering, which would undo the rounding of n. A call that is not
# inlined stops the vectorisation of the loop around it.
EXACT = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True}


def exp_(x):
    """exp(x) for x <= 0"""


@overload(exp_, jit_options=EXACT)
def _exp(x):
    return exp_double if x == types.float64 else exp_single


def exp_double(x):
    t = x * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    q = (
        (2.510038549551032e-08 * r + 2.7620088445409746e-07) * (r * r) + (2.7557268459997064e-06 * r + 2.4801521295954376e-05)
    ) * ((r * r) * (r * r)) + (
        (1.9841269863053618e-04 * r + 1.3888888917213717e-03) * (r * r) + (8.333333333330062e-03 * r + 4.166666666662413e-02)
    )
    q = q * (r * r) + (0.16666666666666669 * r + 0.5)
    return 0.0 if x < -708.0 else bits(bits(q * (r * r) + r + 1.0) + (bits(t) << np.int64(52)))


def exp_single(x):
    t = x * F32(1.44269504) + F32(12582912.0)
    n = t - F32(12582912.0)
    r = (x - n * F32(0.693145752)) - n * F32(1.42860677e-6)
    q = (
        (F32(1.3926183587713494e-03) * r + F32(8.363179052722578e-03)) * (r * r)
        + (F32(4.1666554617204574e-02) * r + F32(1.6666576989698775e-01))
    ) * r + F32(0.5)
    p = bits(q * (r * r) + r + F32(1.0))
    return F32(0.0) if x < F32(-87.0) else bits(np.int32(p + np.int32(bits(t) << np.int32(23))))


def log1p_ratio(f):
    """log(1 + u) for 0 <= u <= 1, from f = u / (2 + u)"""


@overload(log1p_ratio, jit_options=EXACT)
def _log1p_ratio(f):
    return log1p_double if f == types.float64 else log1p_single


def log1p_double(f):
    g = f * f
    q = (
        ((0.1687070066109721 * g + 0.10322669270499082) * (g * g) + (0.135023424717571 * g + 0.15373274876358003)) * (g * g)
        + (0.18182261108419745 * g + 0.22222212557929713)
    ) * (g * g) + (0.2857142867666099 * g + 0.39999999999560126)
    return 2.0 * f + f * g * (q * g + 0.6666666666666697)


def log1p_single(f):
    g = f * f
    q = (F32(0.2685149802283715) * g + F32(0.2823661980531048)) * (g * g) + (F32(0.40007560644911205) * g + F32(0.6666664033669923))
    return F32(2.0) * f + f * g * q


# --- layouts ---------------------------------------------------------------------------------------------------------------
# `fetch` turns rows lo to lo + m into what `score` and `accumulate` read: the rows themselves, a converted block, or for CSR
# the three arrays, from which they pick the rows.


def fetch(X, lo, m, buffer):
    """Rows lo to lo + m."""


@overload(fetch)
def _fetch(X, lo, m, buffer):
    if isinstance(X, types.BaseTuple):
        return lambda X, lo, m, buffer: X
    if X.layout == "C" and X.dtype == buffer.dtype:
        return lambda X, lo, m, buffer: X[lo : lo + m]
    return convert


def convert(X, lo, m, buffer):
    for i in range(m):
        for j in range(X.shape[1]):
            buffer[i, j] = X[lo + i, j]
    return buffer


def score(x, lo, m, W, w0, Z):
    """Z[k, i] = w_k' x_i + w_k0   (10.6)"""


@overload(score, jit_options={"fastmath": SUMS})
def _score(x, lo, m, W, w0, Z):
    return score_csr if isinstance(x, types.BaseTuple) else score_dense


def score_dense(x, lo, m, W, w0, Z):
    K, d = W.shape
    zero = W.dtype.type(0)
    body = m - m % 4
    for i in range(0, body, 4):
        for k in range(0, K - 1, 2):
            a0, a1, a2, a3 = zero, zero, zero, zero
            b0, b1, b2, b3 = zero, zero, zero, zero
            for j in range(d):
                w, u = W[k, j], W[k + 1, j]
                a0 += x[i, j] * w
                b0 += x[i, j] * u
                a1 += x[i + 1, j] * w
                b1 += x[i + 1, j] * u
                a2 += x[i + 2, j] * w
                b2 += x[i + 2, j] * u
                a3 += x[i + 3, j] * w
                b3 += x[i + 3, j] * u
            Z[k, i], Z[k, i + 1], Z[k, i + 2], Z[k, i + 3] = a0 + w0[k], a1 + w0[k], a2 + w0[k], a3 + w0[k]
            Z[k + 1, i], Z[k + 1, i + 1], Z[k + 1, i + 2], Z[k + 1, i + 3] = b0 + w0[k + 1], b1 + w0[k + 1], b2 + w0[k + 1], b3 + w0[k + 1]
        if K % 2:
            k = K - 1
            a0, a1, a2, a3 = zero, zero, zero, zero
            for j in range(d):
                w = W[k, j]
                a0 += x[i, j] * w
                a1 += x[i + 1, j] * w
                a2 += x[i + 2, j] * w
                a3 += x[i + 3, j] * w
            Z[k, i], Z[k, i + 1], Z[k, i + 2], Z[k, i + 3] = a0 + w0[k], a1 + w0[k], a2 + w0[k], a3 + w0[k]
    for i in range(body, m):
        for k in range(K):
            a0 = zero
            for j in range(d):
                a0 += x[i, j] * W[k, j]
            Z[k, i] = a0 + w0[k]


def score_csr(x, lo, m, W, w0, Z):
    data, indices, indptr = x
    for i in range(m):
        for k in range(W.shape[0]):
            z = w0[k]
            for t in range(indptr[lo + i], indptr[lo + i + 1]):
                z += data[t] * W[k, indices[t]]
            Z[k, i] = z


def accumulate(x, lo, m, E, G):
    """G[k, j] += sum_i e_ki x_ij   (10.24), (10.33)"""


@overload(accumulate, jit_options={"fastmath": SUMS})
def _accumulate(x, lo, m, E, G):
    return accumulate_csr if isinstance(x, types.BaseTuple) else accumulate_dense


def accumulate_dense(x, lo, m, E, G):
    K, d = G.shape
    body = m - m % 4
    for i in range(0, body, 4):
        for k in range(0, K - 1, 2):
            e0, e1, e2, e3 = E[k, i], E[k, i + 1], E[k, i + 2], E[k, i + 3]
            f0, f1, f2, f3 = E[k + 1, i], E[k + 1, i + 1], E[k + 1, i + 2], E[k + 1, i + 3]
            for j in range(d):
                x0, x1, x2, x3 = x[i, j], x[i + 1, j], x[i + 2, j], x[i + 3, j]
                G[k, j] += (x0 * e0 + x1 * e1) + (x2 * e2 + x3 * e3)
                G[k + 1, j] += (x0 * f0 + x1 * f1) + (x2 * f2 + x3 * f3)
        if K % 2:
            k = K - 1
            e0, e1, e2, e3 = E[k, i], E[k, i + 1], E[k, i + 2], E[k, i + 3]
            for j in range(d):
                G[k, j] += (x[i, j] * e0 + x[i + 1, j] * e1) + (x[i + 2, j] * e2 + x[i + 3, j] * e3)
    for i in range(body, m):
        for k in range(K):
            for j in range(d):
                G[k, j] += x[i, j] * E[k, i]


def accumulate_csr(x, lo, m, E, G):
    data, indices, indptr = x
    for i in range(m):
        for t in range(indptr[lo + i], indptr[lo + i + 1]):
            for k in range(G.shape[0]):
                G[k, indices[t]] += data[t] * E[k, i]


def gram(X, lo, m, c, P, H):
    """H += sum_i c_i [1 x_i][1 x_i]', on and above the diagonal   (seed E)"""


@overload(gram, jit_options={"fastmath": SUMS})
def _gram(X, lo, m, c, P, H):
    return gram_csr if isinstance(X, types.BaseTuple) else gram_dense


def gram_dense(X, lo, m, c, P, H):
    # Eight rows at once, and columns in tiles of eight: loops of constant length are unrolled into whole vectors, where a loop
    # from the diagonal on would mostly run in its scalar remainder (1M x 28: 97 ms, this way XXX).
    D = H.shape[0]
    P[:] = 0
    for i in range(m):
        P[i, 0] = 1
        for j in range(1, X.shape[1] + 1):
            P[i, j] = X[lo + i, j - 1]
    c[m:] = 0
    for i in range(0, m, 8):
        for a in range(D):
            p0, p1, p2, p3 = c[i] * P[i, a], c[i + 1] * P[i + 1, a], c[i + 2] * P[i + 2, a], c[i + 3] * P[i + 3, a]
            p4, p5, p6, p7 = c[i + 4] * P[i + 4, a], c[i + 5] * P[i + 5, a], c[i + 6] * P[i + 6, a], c[i + 7] * P[i + 7, a]
            for tile in range(a // 8 * 8, D, 8):
                for b in range(tile, tile + 8):
                    H[a, b] += ((p0 * P[i, b] + p1 * P[i + 1, b]) + (p2 * P[i + 2, b] + p3 * P[i + 3, b])) + (
                        (p4 * P[i + 4, b] + p5 * P[i + 5, b]) + (p6 * P[i + 6, b] + p7 * P[i + 7, b])
                    )


def gram_csr(X, lo, m, c, P, H):
    data, indices, indptr = X
    for i in range(m):
        H[0, 0] += c[i]
        for t in range(indptr[lo + i], indptr[lo + i + 1]):
            v, a = c[i] * data[t], indices[t] + 1
            H[0, a] += v
            for u in range(t, indptr[lo + i + 1]):
                b = indices[u] + 1
                H[min(a, b), max(a, b)] += v * data[u] * (2 if u > t and a == b else 1)


# --- links -----------------------------------------------------------------------------------------------------------------


@jit()
def link_logistic(Z, r, s, m):
    """z -> e = s (y - r), with s times the cross-entropy (10.23)"""
    zero, one, two = Z.dtype.type(0), Z.dtype.type(1), Z.dtype.type(2)
    loss, wrong = 0.0, 0.0
    for i in range(m):
        sign = one - two * Z.dtype.type(r[i])
        z = sign * Z[0, i]  # the score of the other class; e = s sign sigmoid(z)
        u = exp_(-abs(z))
        v = one / ((one + u) * (two + u))
        loss += s[i] * (log1p_ratio(u * (one + u) * v) + max(z, zero))
        wrong += s[i] * ((z > zero) | ((z == zero) & (r[i] > 0)))  # a score of 0 chooses class 0
        Z[0, i] = s[i] * sign * v * (two + u) * (one if z > zero else u)
    return loss, wrong


@jit()
def softmax_rows(Z, m, top, total, best):
    """z_k -> exp(z_k - max), its sum over k, and the first k of the maximum   (10.29)"""
    for i in range(m):
        top[i], total[i], best[i] = Z[0, i], 0, 0
    for k in range(1, Z.shape[0]):
        for i in range(m):
            more = Z[k, i] > top[i]
            best[i] = k if more else best[i]
            top[i] = Z[k, i] if more else top[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] = exp_(Z[k, i] - top[i])
            total[i] += Z[k, i]


@jit()
def link_softmax(Z, r, s, m, work, Y):
    """z_k -> e_k = s (y_k - r_k), with s times the cross-entropy (10.31); keeps y_k for the curvature (10.32)"""
    top, total, best, own = work[0], work[1], work[2], work[3]
    loss, wrong = 0.0, 0.0
    for i in range(m):
        own[i] = Z[r[i], i]
    softmax_rows(Z, m, top, total, best)
    for i in range(m):
        loss += s[i] * (np.log(total[i]) + (top[i] - own[i]))
        wrong += s[i] if best[i] != r[i] else Z.dtype.type(0)
        total[i] = Z.dtype.type(1) / total[i]
    for k in range(Y.shape[0]):
        for i in range(m):
            Y[k, i] = Z[k, i] * total[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] *= s[i] * total[i]
    for i in range(m):
        Z[r[i], i] -= s[i]
    return loss, wrong


@jit()
def curvature(link, j, k, E, Y, s, m, c):
    """c = s y_j (delta_jk - y_k)   (10.32); for one sigmoid |e| (1 - |e| / s), which is s y (1 - y)"""
    for i in range(m):
        if link == LOGISTIC:
            c[i] = abs(E[0, i]) * (1 - abs(E[0, i]) / s[i]) if s[i] > 0 else 0
        else:
            c[i] = s[i] * Y[j, i] * ((1.0 if j == k else 0.0) - Y[k, i])


# --- sweeps ----------------------------------------------------------------------------------------------------------------


@jit()
def sweep_chunk(X, link, r, s, W, w0, order, block, lo, hi, sums, G, H):
    """Sums of rows lo to hi: sums = loss, errors, intercept gradient; G (K, d); H, a block for each pair of classes."""
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((4, block), W.dtype)
    Y = np.empty((K if order == 2 and link == SOFTMAX else 0, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    P = np.empty((block if order == 2 else 0, H.shape[-1]))
    c = np.empty(block)
    weight = np.empty(block, W.dtype)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        if len(s) > 1:
            for i in range(m):
                weight[i] = s[lo + i]
        if link == LOGISTIC:
            loss, wrong = link_logistic(Z, r[lo : lo + m], weight, m)
        else:
            loss, wrong = link_softmax(Z, r[lo : lo + m], weight, m, work, Y)
        sums[0] += loss
        sums[1] += wrong
        if order > 0:
            for k in range(K):
                e = W.dtype.type(0)
                for i in range(m):
                    e += Z[k, i]
                sums[2 + k] += e
            accumulate(x, lo, m, Z, g)
            G += g
            g[:] = 0
        if order == 2:
            pair = 0
            for j in range(K):
                for k in range(j, K):
                    curvature(link, j, k, Z, Y, weight, m, c)
                    gram(X, lo, m, c, P, H[pair])
                    pair += 1
        lo += m


def sweep_driver(X, link, r, s, W, w0, order, block, chunk, sums, G, H):
    for c in prange(len(sums)):
        sweep_chunk(X, link, r, s, W, w0, order, block, c * chunk, min(len(r), c * chunk + chunk), sums[c], G[c], H[c])


@jit()
def outputs_chunk(X, link, W, w0, block, lo, hi, out):
    """Scores, or outputs, of rows lo to hi; the sum of the scores, which shows whether all are finite."""
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((3, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    one, check = W.dtype.type(1), 0.0
    while lo < hi:
        m = min(block, hi - lo)
        score(fetch(X, lo, m, buffer), lo, m, W, w0, Z)
        for k in range(K):
            for i in range(m):
                check += Z[k, i]
        if link == LOGISTIC:
            for i in range(m):
                u = exp_(-abs(Z[0, i]))
                Z[0, i] = (one if Z[0, i] > 0 else u) / (one + u)
        elif link == SOFTMAX:
            softmax_rows(Z, m, work[0], work[1], work[2])
            for k in range(K):
                for i in range(m):
                    Z[k, i] /= work[1, i]
        for i in range(m):
            for k in range(K):
                out[lo + i, k] = Z[k, i]
        lo += m
    return check


def outputs_driver(X, link, W, w0, block, chunk, out, check):
    for c in prange(len(check)):
        check[c] = outputs_chunk(X, link, W, w0, block, c * chunk, min(len(out), c * chunk + chunk), out)


# --- online ----------------------------------------------------------------------------------------------------------------


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
def perceptron_rows(X, r, s, W, eta):
    K = W.shape[0]
    z = np.empty(K)
    step = 1 if len(s) > 1 else 0
    mistakes = 0
    for t in range(len(r)):
        a, own = eta * s[t * step], r[t]
        for k in range(K):
            z[k] = dot_row(X, t, W[k, 1:]) + W[k, 0]
        if K == 1:
            if (z[0] <= 0) if own > 0 else (z[0] >= 0):
                mistakes += a != 0
                a = a if own > 0 else -a
                W[0, 0] += a
                add_row(X, t, a, W[0, 1:])
        else:
            rival = 1 if own == 0 else 0
            for k in range(K):
                if k != own and z[k] > z[rival]:
                    rival = k
            if z[rival] >= z[own]:
                mistakes += a != 0
                W[own, 0] += a
                W[rival, 0] -= a
                add_row(X, t, a, W[own, 1:])
                add_row(X, t, -a, W[rival, 1:])
    return mistakes


@jit()
def rank_pairs_rows(X, pairs, s, w, eta, margin):
    step = 1 if len(s) > 1 else 0
    updates = 0
    for t in range(len(pairs)):
        u, v = pairs[t, 0], pairs[t, 1]
        if (dot_row(X, v, w) - dot_row(X, u, w)) + margin > 0:
            a = eta * s[t * step]
            updates += a != 0
            add_row(X, u, a, w)
            add_row(X, v, -a, w)
    return updates


# --- ranking: see _cython/rank.pxi -------------------------------------------------------------------------------------------


@jit()
def tree_add(tree, grade, s):
    grade += 1
    while grade < len(tree):
        tree[grade] += s
        grade += grade & -grade


@jit()
def tree_below(tree, grade):
    """The weight of all grades below this one."""
    total = 0.0
    while grade > 0:
        total += tree[grade]
        grade -= grade & -grade
    return total


@jit(sums=False)
def link_rank(z, r, s, step, margin, tree, e):
    """z -> e = dE/dz of (10.46) with a margin: pairs r_u > r_v count while z_v - z_u + margin > 0"""
    n, grades = len(z), len(tree) - 1
    order = np.argsort(z)
    count = 0.0
    # 1. upwards: the weight of better rows u that do not clear v by the margin (grades counted from the top)
    tree[:] = 0
    p = 0
    for t in range(n):
        i = order[t]
        while p < n and (z[i] - z[order[p]]) + margin > 0:
            tree_add(tree, grades - 1 - r[order[p]], s[order[p] * step])
            p += 1
        e[i] = s[i * step] * tree_below(tree, grades - 1 - r[i])
        count += e[i]
    # 2. downwards: the weight of worse rows v that come too close to u
    tree[:] = 0
    p = n - 1
    for t in range(n - 1, -1, -1):
        i = order[t]
        while p >= 0 and (z[order[p]] - z[i]) + margin > 0:
            tree_add(tree, r[order[p]], s[order[p] * step])
            p -= 1
        e[i] -= s[i * step] * tree_below(tree, r[i])
    loss = margin * count
    for i in range(n):
        loss += e[i] * z[i]
    return loss, count


@jit()
def rank_chunk(X, r, s, starts, first, last, w, grades, margin, block, sums, G):
    """Sums of groups first to last: sums = loss, active pairs; G."""
    step = 1 if len(s) > 1 else 0
    tree = np.empty(grades + 1)
    buffer = np.empty((block, len(w)))
    w0 = np.zeros(1)
    W = w.reshape(1, -1)
    for group in range(first, last):
        lo, n = starts[group], starts[group + 1] - starts[group]
        z, e = np.empty((1, n)), np.empty((1, n))
        for i in range(0, n, block):
            m = min(block, n - i)
            score(fetch(X, lo + i, m, buffer), lo + i, m, W, w0, z[:, i : i + m])
        loss, count = link_rank(z[0], r[lo : lo + n], s[lo * step :], step, margin, tree, e[0])
        sums[0] += loss
        sums[1] += count
        for i in range(0, n, block):
            m = min(block, n - i)
            accumulate(fetch(X, lo + i, m, buffer), lo + i, m, e[:, i : i + m], G)


def rank_driver(X, r, s, starts, bounds, w, grades, margin, block, sums, G):
    for c in prange(len(sums)):
        rank_chunk(X, r, s, starts, bounds[c], bounds[c + 1], w, grades, margin, block, sums[c], G[c])


# --- the contract ----------------------------------------------------------------------------------------------------------



def _named(function, name):
    """The same function under another name: the disk cache tells functions apart by their names alone, not by their options."""
    copy = FunctionType(function.__code__, function.__globals__, name)
    copy.__qualname__ = name
    return copy


DRIVERS = {
    (driver, parallel): jit(parallel)(_named(driver, driver.__name__ + "_parallel" * parallel))
    for driver in (sweep_driver, outputs_driver, rank_driver)
    for parallel in (False, True)
}
_one_at_a_time = threading.Lock()


@contextmanager
def _threads(n):
    """n threads for this call. The workqueue layer aborts when two Python threads enter it: they take turns there."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(n)
        if threading_layer() in ("omp", "tbb"):
            yield
        else:
            with _one_at_a_time:
                yield
    finally:
        numba.set_num_threads(before)


def threading_layer():
    """Numba's threading layer; 'none yet' before the first parallel call."""
    try:
        return numba.threading_layer()
    except ValueError:
        return "none yet"


def _run(driver, n_threads, chunks, *args):
    n = min(n_threads, chunks, numba.config.NUMBA_NUM_THREADS)
    if n == 1:
        return DRIVERS[driver, False](*args)
    with _threads(n):
        return DRIVERS[driver, True](*args)


def _features(X):
    """X as the jitted functions take it: a tuple for CSR; bool as the bytes that it is."""
    if isinstance(X, CSR):
        return X.data, X.indices, X.indptr
    return X.view(np.uint8) if X.dtype == bool else X


def _weights(X, W, order):
    """W without, and with only, the intercepts, in the type of the products."""
    double = isinstance(X, CSR) or X.dtype == np.float64 or order == 2
    W = W.astype(np.float64 if double else np.float32)
    return np.ascontiguousarray(W[:, 1:]), np.ascontiguousarray(W[:, 0])


def sweep(X, link, r, s, W, order, grid, n_threads):
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    (n, d), K = X.shape, len(W)
    chunks = -(-n // grid.chunk)
    pairs = K * (K + 1) // 2 if order == 2 else 0
    D = (d + 8) // 8 * 8  # room for the constant and whole vectors
    sums, G, H = np.zeros((chunks, 2 + K)), np.zeros((chunks, K, d)), np.zeros((chunks, pairs, D, D))
    weights, w0 = _weights(X, W, order)
    _run(sweep_driver, n_threads, chunks, _features(X), int(link), r, s, weights, w0, order, grid.block, grid.chunk, sums, G, H)
    total = sums.sum(axis=0)
    return total[0], total[1], np.column_stack([total[2:], G.sum(axis=0)]), unfold(H.sum(axis=0)[:, : d + 1, : d + 1], K) if order == 2 else None


def unfold(triangles, K):
    """The full (K (d+1), K (d+1)) Hessian from its K (K+1) / 2 blocks, each an upper triangle."""
    D = triangles.shape[-1]
    H = np.empty((K, D, K, D))
    pairs = [(j, k) for j in range(K) for k in range(j, K)]
    for block, (j, k) in zip(triangles, pairs, strict=True):
        upper = np.triu(block)
        H[j, :, k, :] = H[k, :, j, :] = upper + np.triu(upper, 1).T
    return H.reshape(K * D, K * D)


def outputs(X, link, W, grid, n_threads):
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    chunks = -(-X.shape[0] // grid.chunk)
    out, check = np.empty((X.shape[0], len(W))), np.zeros(chunks)
    weights, w0 = _weights(X, W, 1)
    _run(outputs_driver, n_threads, chunks, _features(X), int(link), weights, w0, grid.block, grid.chunk, out, check)
    return out, bool(np.isfinite(check).all())


def perceptron(X, r, s, W, eta):
    """One pass of the perceptron rule (4.55), rows in order; W is changed; the number of mistakes."""
    return perceptron_rows(_features(X), r, s, W, float(eta))


def rank_pairs(X, pairs, s, w, eta, margin):
    """One pass of the ranking rule (10.49) over (preferred, other) pairs; w is changed; the number of updates."""
    return rank_pairs_rows(_features(X), pairs, s, w, float(eta), float(margin))


def rank_sweep(X, r, s, starts, w, margin, grid, n_threads):
    """Error, active pairs and subgradient over all ordered pairs within groups: (10.46)-(10.48)."""
    chunks = len(grid.bounds) - 1
    sums, G = np.zeros((chunks, 2)), np.zeros((chunks, 1, X.shape[1]))
    grades = int(r.max()) + 1
    _run(rank_driver, n_threads, chunks, _features(X), r, s, starts, grid.bounds, w, grades, float(margin), grid.block, sums, G)
    return *sums.sum(axis=0), G.sum(axis=0)[0]
