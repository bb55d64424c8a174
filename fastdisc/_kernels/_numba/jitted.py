"""The sweeps' jitted code, in one file: Numba's disk cache watches only the file of the function that is called."""

import numpy as np
from numba import prange, types
from numba.extending import overload

from .. import Link
from .gram import weighted_gram
from .options import SUMS, bits, drivers, jit
from .squares import bend_square, link_linear, link_sigmoid

LOGISTIC, SOFTMAX, SIGMOID, LINEAR = (int(link) for link in (Link.LOGISTIC, Link.SOFTMAX, Link.SIGMOID, Link.LINEAR))
F32 = np.float32

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
    q = (F32(0.2685149802283715) * g + F32(0.2823661980531048)) * (g * g) + (
        F32(0.40007560644911205) * g + F32(0.6666664033669923)
    )
    return F32(2.0) * f + f * g * q


# --- layouts ---------------------------------------------------------------------------------------------------------------
# `fetch` turns rows lo to lo + m into what `score`, `accumulate` and `gram` read: the rows themselves, a converted block, or for
# CSR the three arrays, from which they pick the rows. For mapped rows, a pair, it is in basis.py.


def fetch(X, lo, m, buffer):
    """Rows lo to lo + m."""


@overload(fetch)
def _fetch(X, lo, m, buffer):
    if isinstance(X, types.BaseTuple):
        return (lambda X, lo, m, buffer: X) if len(X) == 3 else None
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
            Z[k + 1, i], Z[k + 1, i + 1], Z[k + 1, i + 2], Z[k + 1, i + 3] = (
                b0 + w0[k + 1],
                b1 + w0[k + 1],
                b2 + w0[k + 1],
                b3 + w0[k + 1],
            )
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


def gram(x, lo, m, c, P, Q, H):
    """H += sum_i c_i [1 x_i][1 x_i]', on and above the diagonal   (seed E)"""


@overload(gram, jit_options={"fastmath": SUMS})
def _gram(x, lo, m, c, P, Q, H):
    return gram_csr if isinstance(x, types.BaseTuple) else gram_dense


def gram_dense(x, lo, m, c, P, Q, H):
    for i in range(m):
        P[0, i] = 1
        for j in range(x.shape[1]):
            P[j + 1, i] = x[i, j]
    weighted_gram(P, Q, c, m, H)


def gram_csr(x, lo, m, c, P, Q, H):
    data, indices, indptr = x
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
        elif link >= SIGMOID:
            c[i] = s[i] * Y[0, i]
        else:
            c[i] = s[i] * Y[j, i] * ((1.0 if j == k else 0.0) - Y[k, i])


@jit()
def bend(link, Z, U, s, m, work):
    """u_k -> sum_j c_kj u_j: the scores of a direction times the curvature (10.32); Z is used up"""
    one = Z.dtype.type(1)
    if link == LOGISTIC:
        for i in range(m):
            u = exp_(-abs(Z[0, i]))
            U[0, i] *= s[i] * u / ((one + u) * (one + u))
        return
    if link >= SIGMOID:
        bend_square(link, Z, U, s, m)
        return
    top, total, best, mean = work[0], work[1], work[2], work[3]
    softmax_rows(Z, m, top, total, best)
    for i in range(m):
        mean[i], total[i] = 0, one / total[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] *= total[i]
            mean[i] += Z[k, i] * U[k, i]
    for k in range(Z.shape[0]):
        for i in range(m):
            U[k, i] = s[i] * Z[k, i] * (U[k, i] - mean[i])


# --- sweeps ----------------------------------------------------------------------------------------------------------------


@jit()
def take_rows(s, o, lo, m, weight, Z):
    """The weights of rows lo to lo + m, where they have their own, and their offsets added to the scores."""
    if len(s) > 1:
        for i in range(m):
            weight[i] = s[lo + i]
    if len(o) > 0:
        for k in range(len(Z)):
            for i in range(m):
                Z[k, i] += o[lo + i, k]


@jit()
def sweep_chunk(X, link, r, s, o, W, w0, order, block, lo, hi, sums, G, H):
    """Sums of rows lo to hi: sums = loss, errors, intercept gradient; G (K, d); H, a block for each pair of classes."""
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((4, block), W.dtype)
    Y = np.empty((K if order == 2 and link != LOGISTIC else 0, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    P = np.zeros((H.shape[-1], block if order == 2 else 0))
    Q = np.empty_like(P)
    c = np.empty(block)
    weight = np.empty(block, W.dtype)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        take_rows(s, o, lo, m, weight, Z)
        if link == LOGISTIC:
            loss, wrong = link_logistic(Z, r[lo : lo + m], weight, m)
        elif link == SIGMOID:
            loss, wrong = link_sigmoid(Z, r[lo : lo + m], weight, m, Y)
        elif link == LINEAR:
            loss, wrong = link_linear(Z, r[lo : lo + m], weight, m, Y)
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
                    gram(x, lo, m, c, P, Q, H[pair])
                    pair += 1
        lo += m


def sweep_driver(X, link, r, s, o, W, w0, order, block, chunk, sums, G, H):
    for c in prange(len(sums)):
        sweep_chunk(X, link, r, s, o, W, w0, order, block, c * chunk, min(len(r), c * chunk + chunk), sums[c], G[c], H[c])


@jit()
def product_chunk(X, link, s, o, W, w0, V, v0, block, lo, hi, sums, G):
    """Sums of rows lo to hi: sums, the intercepts' share; G (K, d), that of the other weights."""
    K, d = W.shape
    Z, U = np.empty((K, block), W.dtype), np.empty((K, block), W.dtype)
    work = np.empty((4, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    weight = np.empty(block, W.dtype)
    weight[:] = s[0]
    g = np.zeros((K, d), W.dtype)
    while lo < hi:
        m = min(block, hi - lo)
        x = fetch(X, lo, m, buffer)
        score(x, lo, m, W, w0, Z)
        score(x, lo, m, V, v0, U)
        take_rows(s, o, lo, m, weight, Z)
        bend(link, Z, U, weight, m, work)
        for k in range(K):
            e = W.dtype.type(0)
            for i in range(m):
                e += U[k, i]
            sums[k] += e
        accumulate(x, lo, m, U, g)
        G += g
        g[:] = 0
        lo += m


def product_driver(X, n, link, s, o, W, w0, V, v0, block, chunk, sums, G):
    for c in prange(len(sums)):
        product_chunk(X, link, s, o, W, w0, V, v0, block, c * chunk, min(n, c * chunk + chunk), sums[c], G[c])


@jit()
def outputs_chunk(X, link, W, w0, block, lo, hi, out):
    """Scores, or outputs, of rows lo to hi; NaN if a score is not finite, else 0."""
    K, d = W.shape
    Z = np.empty((K, block), W.dtype)
    work = np.empty((3, block), W.dtype)
    buffer = np.empty((block, d), W.dtype)
    one, zero, check = W.dtype.type(1), W.dtype.type(0), 0.0
    while lo < hi:
        m = min(block, hi - lo)
        score(fetch(X, lo, m, buffer), lo, m, W, w0, Z)
        for k in range(K):
            for i in range(m):
                check += Z[k, i] * zero
        if link == LOGISTIC:
            for i in range(m):
                u = exp_(-abs(Z[0, i]))
                side = 1 if Z[0, i] > 0 else 0
                out[lo + i, side], out[lo + i, 1 - side] = one / (one + u), u / (one + u)
            lo += m
            continue
        if link == SOFTMAX:
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


DRIVERS = drivers(sweep_driver, product_driver, outputs_driver)
