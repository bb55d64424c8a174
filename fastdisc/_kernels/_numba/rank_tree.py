"""Large queries without their pairs: see _cython/rank_tree.pxi."""

import numpy as np

from .. import PairLoss
from .options import jit

HINGE, SQUARED, HUBER = (int(loss) for loss in (PairLoss.HINGE, PairLoss.SQUARED_HINGE, PairLoss.HUBER))
WAYS = 16
LEAF = 48  # rows of a list up to which pairs are looked at one by one


@jit(sums=False)
def walk_leaf(tree, a, b, shift, margin, scale, out):
    """The pairs of places a to b, one by one: weight of the pairs, and the sum of p (x_v - x_u + shift) times scale."""
    _, below, z, x, s, step = tree
    count, upward = 0.0, 0.0
    for u in range(a, b):
        total, size = 0.0, 0.0
        for v in range(below[u], b):
            if (z[v] - z[u]) + margin > 0:
                value = s[v * step] * ((x[v] - x[u]) + shift)
                out[v] += scale * s[u * step] * value
                total += value
                size += s[v * step]
        out[u] -= scale * s[u * step] * total
        upward += scale * s[u * step] * total
        count += s[u * step] * size
    return count, upward


@jit(sums=False)
def walk_list(tree, items, ranges, a, b, shift, margin, scale, prefix, out):
    """The pairs between ranges of the list a to b, in one walk along it."""
    _, _, z, x, s, step = tree
    A0, A1, B0, B1 = prefix[0], prefix[1], prefix[2], prefix[3]
    prefix[:] = 0
    count, upward, p = 0.0, 0.0, a
    for t in range(a, b):
        i = items[t]
        for j in range(ranges[i]):
            B0[j] += s[i * step]
            B1[j] += s[i * step] * x[i]
    for t in range(a, b):
        while p < b and (z[items[t]] - z[items[p]]) + margin > 0:
            i = items[p]
            k, own = ranges[i], s[i * step]
            out[i] -= scale * own * (B1[k] + (shift - x[i]) * B0[k])
            for j in range(k + 1, WAYS):
                A0[j] += own
                A1[j] += own * x[i]
            p += 1
        i = items[t]
        k, own = ranges[i], s[i * step]
        value = scale * own * ((x[i] + shift) * A0[k] - A1[k])
        out[i] += value
        upward += value
        count += own * A0[k]
        for j in range(k):
            B0[j] -= own
            B1[j] -= own * x[i]
    return count, upward


@jit(sums=False)
def part_list(above, below, a, b, ranges, ends):
    """Cut places a to b into ranges of whole grades, about equally long: their number, and where each ends."""
    last, count = a, 0
    for k in range(1, WAYS + 1):
        cut = b
        if k < WAYS:
            j = a + k * (b - a) // WAYS
            cut = above[j] if above[j] > last else below[j]
        if cut > last:
            ranges[last:cut] = count
            ends[count] = cut
            count += 1
            last = cut
    return count


@jit(sums=False)
def sum_pairs(tree, order, shift, margin, scale, out):
    """out += scale times the sums over active pairs of p (x_v - x_u + shift); their weight, and the sum itself"""
    above, below = tree[0], tree[1]
    n = len(order)
    items, other, ranges = order.copy(), np.empty_like(order), np.empty(n, np.int64)
    ends, places, stack = np.empty(WAYS, np.int64), np.empty(WAYS, np.int64), np.empty((32 * WAYS, 2), np.int64)
    prefix = np.empty((4, WAYS))
    count, upward, top = 0.0, 0.0, 1
    stack[0, 0], stack[0, 1] = 0, n
    while top:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        if below[a] >= b:
            continue
        if b - a <= LEAF:
            more, up = walk_leaf(tree, a, b, shift, margin, scale, out)
            count, upward = count + more, upward + up
            continue
        number = part_list(above, below, a, b, ranges, ends)
        more, up = walk_list(tree, items, ranges, a, b, shift, margin, scale, prefix, out)
        count, upward = count + more, upward + up
        for k in range(number):
            places[k] = ends[k - 1] if k else a
            stack[top, 0], stack[top, 1] = places[k], ends[k]
            top += 1
        for t in range(a, b):
            k = ranges[items[t]]
            other[places[k]] = items[t]
            places[k] += 1
        items[a:b] = other[a:b]
    return count, upward


@jit(sums=False)
def plant(queries, lo, hi, z, x):
    """A query's own arrays, and its places sorted by score"""
    _, above, below, s, _, _ = queries
    step = 1 if len(s) > 1 else 0
    tree = (above[lo:hi] - lo, below[lo:hi] - lo, z[lo:hi], x, s[lo * step :], step)
    return tree, np.argsort(z[lo:hi], kind="mergesort")


@jit(sums=False)
def link_tree(queries, lo, hi, z, e, rule):
    """As link_pairs, without the pairs: squared losses from sums of 1 and z, and HUBER's as the difference of two of them"""
    loss, margin, width = rule
    centred = z[lo:hi] - np.median(z[lo:hi])
    x = np.zeros(hi - lo) if loss == HINGE else centred
    tree, order = plant(queries, lo, hi, z, x)
    out = e[lo:hi]
    out[:] = 0
    half = 1.0 if loss == HINGE else 0.5
    total = 0.0
    if loss == HUBER:
        _, upward = sum_pairs(tree, order, margin - width, margin - width, -1 / width, out)
        total += half * (margin - width) * upward
    shift, scale = (1.0, 1.0) if loss == HINGE else (margin, 2.0 if loss == SQUARED else 1 / width)
    active, upward = sum_pairs(tree, order, shift, margin, scale, out)
    total += half * margin * upward
    for i in range(len(out)):
        total += half * out[i] * centred[i]
    return total, active


@jit(sums=False)
def bend_tree(queries, lo, hi, z, x, out, rule):
    """As bend_pairs, without the pairs"""
    loss, margin, width = rule
    tree, order = plant(queries, lo, hi, z, x[lo:hi])
    out[lo:hi] = 0
    if loss == HUBER:
        sum_pairs(tree, order, 0.0, margin - width, -1 / width, out[lo:hi])
    sum_pairs(tree, order, 0.0, margin, 1 / width if loss == HUBER else 2.0, out[lo:hi])
