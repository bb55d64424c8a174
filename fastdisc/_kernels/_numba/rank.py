"""Ranking on scores alone: a row's partners stand side by side; see _cython/rank.pxi, and rank_tree.py for large queries.

The layouts and exp come from jitted.py, which Numba's disk cache does not watch on behalf of this file: `make` drops the cache
when one of them changes, and an installed package always has both from one build.
"""

import numpy as np
from numba import prange

from .. import PairLoss
from .jitted import accumulate, exp_, fetch, log1p_ratio
from .options import drivers, jit
from .rank_tree import bend_tree, link_tree

HINGE, SQUARED, HUBER, LOGISTIC = (int(loss) for loss in PairLoss)
SMALL = 96  # rows of a query up to which its pairs are looked at one by one


@jit(sums=False)
def gap(zv, zu, margin):
    """a = margin + z_v - z_u, in this order: it decides which pairs count"""
    return (zv - zu) + margin


@jit(sums=False)
def pair_values(a, loss, width):
    """a -> loss, derivative by a, curvature   (10.46)"""
    up = max(a, 0.0)
    if loss == LOGISTIC:
        u = exp_(-abs(a))
        return up + log1p_ratio(u / (2.0 + u)), (1.0 if a > 0 else u) / (1.0 + u), u / ((1.0 + u) * (1.0 + u))
    if loss == HUBER:
        near = min(up, width)
        return near / width * (up - near / 2), near / width, 1 / width if (a > 0) & (a <= width) else 0.0
    if loss == SQUARED:
        return up * up, 2 * up, 2.0 if a > 0 else 0.0
    return up, 1.0 if a > 0 else 0.0, 0.0


@jit()
def weight(queries, u, v):
    """The weight of a pair."""
    _, _, _, s, gain, discount = queries
    step = 1 if len(s) > 1 else 0
    p = s[u * step] * s[v * step]
    return p * abs(gain[u] - gain[v]) * abs(discount[u] - discount[v]) if len(gain) and len(discount) else p


@jit()
def link_pairs(queries, lo, hi, z, e, rule):
    """e = dE/dz of one query, pair by pair; loss, weight of the pairs that count"""
    below, (loss, margin, width) = queries[2], rule
    total, active = 0.0, 0.0
    e[lo:hi] = 0
    top = z[lo:hi].max()
    quick = loss == LOGISTIC and margin == 0 and top - z[lo:hi].min() < 690
    E = np.empty(hi - lo if quick else 0)
    for i in range(len(E)):
        E[i] = exp_(z[lo + i] - top)
    for u in range(lo, hi):
        own = 0.0
        if quick:
            for v in range(below[u], hi):
                p, a, first, second = weight(queries, u, v), z[v] - z[u], E[u - lo], E[v - lo]
                slope, low = p * (second / (first + second)), min(first, second)
                total += p * (log1p_ratio(low / (2 * max(first, second) + low)) + max(a, 0.0))
                active += p if a >= 0 else 0.0
                e[v] += slope
                own += slope
        else:
            for v in range(below[u], hi):
                p, a = weight(queries, u, v), gap(z[v], z[u], margin)
                value, slope, _ = pair_values(a, loss, width)
                total += p * value
                active += p if (z[v] >= z[u] if loss == LOGISTIC else a > 0) else 0.0
                e[v] += p * slope
                own += p * slope
        e[u] -= own
    return total, active


@jit()
def bend_pairs(queries, lo, hi, z, x, out, rule):
    """The curvature times x of one query, pair by pair"""
    below, (loss, margin, width) = queries[2], rule
    out[lo:hi] = 0
    for u in range(lo, hi):
        own = 0.0
        for v in range(below[u], hi):
            bend = weight(queries, u, v) * pair_values(gap(z[v], z[u], margin), loss, width)[2] * (x[v] - x[u])
            out[v] += bend
            own += bend
        out[u] -= own


def link_driver(z, queries, rule, bounds, part, e):
    starts = queries[0]
    for c in prange(len(part)):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = starts[g], starts[g + 1]
            if not np.isfinite(z[lo:hi]).all():
                loss, active = np.nan, np.nan
                e[lo:hi] = np.nan
            elif rule[0] == LOGISTIC or hi - lo <= SMALL:
                loss, active = link_pairs(queries, lo, hi, z, e, rule)
            else:
                loss, active = link_tree(queries, lo, hi, z, e, rule)
            part[c, 0] += loss
            part[c, 1] += active


def bend_driver(z, u, queries, rule, bounds, out):
    starts = queries[0]
    for c in prange(len(bounds) - 1):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = starts[g], starts[g + 1]
            if not np.isfinite(z[lo:hi]).all():
                out[lo:hi] = np.nan
            elif rule[0] == LOGISTIC or hi - lo <= SMALL:
                bend_pairs(queries, lo, hi, z, u, out, rule)
            else:
                bend_tree(queries, lo, hi, z, u, out, rule)


@jit()
def hessian_query(X, queries, lo, hi, z, rule, H):
    """H += X' L X, on and above the diagonal, L being the Laplacian of the query's pairs, weighted by their curvatures"""
    above, below, (loss, margin, width), d = queries[1], queries[2], rule, X.shape[1]
    y = np.empty(d)
    for u in range(lo, hi):
        degree = 0.0
        y[:] = 0
        for v in range(lo, above[u]):
            c = weight(queries, v, u) * pair_values(gap(z[u], z[v], margin), loss, width)[2]
            degree += c
            for j in range(d if c else 0):
                y[j] -= c * X[v, j]
        for v in range(below[u], hi):
            c = weight(queries, u, v) * pair_values(gap(z[v], z[u], margin), loss, width)[2]
            degree += c
            for j in range(d if c else 0):
                y[j] -= c * X[v, j]
        for j in range(d):
            y[j] += degree * X[u, j]
        for a in range(d):
            for b in range(a, d):
                H[a, b] += y[a] * X[u, b]


def hessian_driver(X, z, queries, rule, bounds, part):
    starts = queries[0]
    for c in prange(len(part)):
        for g in range(bounds[c], bounds[c + 1]):
            if queries[2][starts[g]] < starts[g + 1]:
                hessian_query(X, queries, starts[g], starts[g + 1], z, rule, part[c])


@jit()
def combine_chunk(X, e, lo, hi, block, width, G):
    buffer = np.empty((block, width))
    for i in range(lo, hi, block):
        m = min(block, hi - i)
        accumulate(fetch(X, i, m, buffer), i, m, e[:, i : i + m], G)


def combine_driver(X, e, block, chunk, part):
    for c in prange(len(part)):
        combine_chunk(X, e, c * chunk, min(e.shape[1], c * chunk + chunk), block, part.shape[2], part[c])


@jit(sums=False)
def given_chunk(z, x, pairs, s, rule, sums, e):
    """Loss and active weight over given pairs; e = dE/dz, or with a direction's scores x the curvatures times those"""
    loss, margin, width = rule
    step = 1 if len(s) > 1 else 0
    for t in range(len(pairs)):
        u, v, p = pairs[t, 0], pairs[t, 1], s[t * step]
        a = gap(z[v], z[u], margin)
        value, slope, bend = pair_values(a, loss, width)
        change = p * (bend * (x[v] - x[u]) if len(x) else slope)
        e[v] += change
        e[u] -= change
        sums[0] += p * value
        sums[1] += p if (z[v] >= z[u] if loss == LOGISTIC else a > 0) else 0.0


def given_driver(z, x, pairs, s, rule, chunk, sums, part):
    for c in prange(len(part)):
        lo = c * chunk
        given_chunk(z, x, pairs[lo : lo + chunk], s[lo : lo + chunk] if len(s) > 1 else s, rule, sums[c], part[c])


DRIVERS = drivers(link_driver, bend_driver, hessian_driver, combine_driver, given_driver)
