"""Ranking: the link works on the scores of a whole group; see _cython/rank.pxi.

The layouts come from jitted.py, which Numba's disk cache does not watch on behalf of this file: `make` drops the cache when one
of the two changes, and an installed package always has both from one build.
"""

import numpy as np
from numba import prange

from .jitted import accumulate, fetch, score
from .options import drivers, jit


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
        loss += e[i] * (z[i] - z[order[0]])
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
        if np.isfinite(z).all():
            loss, count = link_rank(z[0], r[lo : lo + n], s[lo * step :], step, margin, tree, e[0])
        else:
            loss, count, e[:] = np.nan, np.nan, np.nan
        sums[0] += loss
        sums[1] += count
        for i in range(0, n, block):
            m = min(block, n - i)
            accumulate(fetch(X, lo + i, m, buffer), lo + i, m, e[:, i : i + m], G)


def rank_driver(X, r, s, starts, bounds, w, grades, margin, block, sums, G):
    for c in prange(len(sums)):
        rank_chunk(X, r, s, starts, bounds[c], bounds[c + 1], w, grades, margin, block, sums[c], G[c])


DRIVERS = drivers(rank_driver)
