"""The pairs of large queries, without visiting them one by one.

The rows of a query are divided into ranges of whole grades, recursively. Pairs between ranges are
summed in one pass over the rows in the order of their scores, by prefix sums; pairs within a range
by the next level, or one by one if it is short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..contract import Array, PairRule, Queries
from ..enums import PairLoss
from .options import jit

HINGE, SQUARED_HINGE, HUBER = (
    int(loss) for loss in (PairLoss.HINGE, PairLoss.SQUARED_HINGE, PairLoss.HUBER)
)
RANGES = 16  # of a list
MAX_LEAF_ROWS = 48  # of a list whose pairs are visited one by one


class Tree(NamedTuple):
    """The arrays of a query. Places are row numbers within it."""

    above: Array
    below: Array
    z: Array
    x: Array
    s: Array
    step: int  # 0 if all rows have the same weight, else 1


class Term(NamedTuple):
    """What is summed over active pairs: scale p (x_v - x_u + shift). A pair is active if
    z_v - z_u + margin > 0."""

    shift: float
    margin: float
    scale: float


@jit(reorder=False)
def sum_leaf(tree: Tree, a: int, b: int, term: Term, out: Array) -> tuple[float, float]:
    """The pairs of places a to b, one by one: their weight, and the sum of the term."""
    _, below, z, x, s, step = tree
    shift, margin, scale = term
    weight, upward = 0.0, 0.0
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
        weight += s[u * step] * size
    return weight, upward


@jit(reorder=False)
def sum_between(
    tree: Tree, items: Array, ranges: Array, a: int, b: int, term: Term, prefix: Array, out: Array
) -> tuple[float, float]:
    """The pairs between ranges of the list a to b, in one pass along it."""
    _, _, z, x, s, step = tree
    shift, margin, scale = term
    A0, A1, B0, B1 = prefix[0], prefix[1], prefix[2], prefix[3]
    prefix[:] = 0
    weight, upward, p = 0.0, 0.0, a
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
            for j in range(k + 1, RANGES):
                A0[j] += own
                A1[j] += own * x[i]
            p += 1
        i = items[t]
        k, own = ranges[i], s[i * step]
        value = scale * own * ((x[i] + shift) * A0[k] - A1[k])
        out[i] += value
        upward += value
        weight += own * A0[k]
        for j in range(k):
            B0[j] -= own
            B1[j] -= own * x[i]
    return weight, upward


@jit(reorder=False)
def divide(above: Array, below: Array, a: int, b: int, ranges: Array, ends: Array) -> int:
    """Divide places a to b into ranges of whole grades and about equal length: their number; the
    range of each place and the end of each range are written."""
    last, count = a, 0
    for k in range(1, RANGES + 1):
        cut = b
        if k < RANGES:
            j = a + k * (b - a) // RANGES
            cut = above[j] if above[j] > last else below[j]
        if cut > last:
            ranges[last:cut] = count
            ends[count] = cut
            count += 1
            last = cut
    return count


@jit(reorder=False)
def sum_pairs(tree: Tree, order: Array, term: Term, out: Array) -> tuple[float, float]:
    """The term summed over active pairs into out: the weight of the pairs, and the sum itself"""
    n = len(order)
    items, other, ranges = order.copy(), np.empty_like(order), np.empty(n, np.int64)
    ends, places = np.empty(RANGES, np.int64), np.empty(RANGES, np.int64)
    stack, prefix = np.empty((32 * RANGES, 2), np.int64), np.empty((4, RANGES))
    weight, upward, top = 0.0, 0.0, 1
    stack[0, 0], stack[0, 1] = 0, n
    while top:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        if tree.below[a] >= b:
            continue
        if b - a <= MAX_LEAF_ROWS:
            more, up = sum_leaf(tree, a, b, term, out)
            weight, upward = weight + more, upward + up
            continue
        number = divide(tree.above, tree.below, a, b, ranges, ends)
        more, up = sum_between(tree, items, ranges, a, b, term, prefix, out)
        weight, upward = weight + more, upward + up
        for k in range(number):
            places[k] = ends[k - 1] if k else a
            stack[top, 0], stack[top, 1] = places[k], ends[k]
            top += 1
        for t in range(a, b):
            k = ranges[items[t]]
            other[places[k]] = items[t]
            places[k] += 1
        items[a:b] = other[a:b]
    return weight, upward


@jit(reorder=False)
def build(queries: Queries, lo: int, hi: int, z: Array, x: Array) -> tuple[Tree, Array]:
    """A query's own arrays, and its places sorted by score"""
    step = 1 if len(queries.s) > 1 else 0
    above, below = queries.above[lo:hi] - lo, queries.below[lo:hi] - lo
    tree = Tree(above, below, z[lo:hi], x, queries.s[lo * step :], step)
    return tree, np.argsort(z[lo:hi], kind="mergesort")


@jit(reorder=False)
def loss_by_tree(
    queries: Queries, lo: int, hi: int, z: Array, e: Array, rule: PairRule
) -> tuple[float, float]:
    """As `loss_by_pairs`: squared losses from sums of 1 and z, HUBER as the difference of two"""
    loss, margin, width = rule
    centred = z[lo:hi] - np.median(z[lo:hi])
    x = np.zeros(hi - lo) if loss == HINGE else centred
    tree, order = build(queries, lo, hi, z, x)
    out = e[lo:hi]
    out[:] = 0
    half = 1.0 if loss == HINGE else 0.5
    total = 0.0
    if loss == HUBER:
        far = Term(margin - width, margin - width, -1 / width)
        _, upward = sum_pairs(tree, order, far, out)
        total += half * (margin - width) * upward
    shift, scale = 1.0, 1.0
    if loss != HINGE:
        shift, scale = margin, 2.0 if loss == SQUARED_HINGE else 1 / width
    active, upward = sum_pairs(tree, order, Term(shift, margin, scale), out)
    total += half * margin * upward
    for i in range(len(out)):
        total += half * out[i] * centred[i]
    return total, active


@jit(reorder=False)
def product_by_tree(
    queries: Queries, lo: int, hi: int, z: Array, x: Array, out: Array, rule: PairRule
) -> None:
    """As `product_by_pairs`"""
    loss, margin, width = rule
    tree, order = build(queries, lo, hi, z, x[lo:hi])
    out[lo:hi] = 0
    if loss == HUBER:
        sum_pairs(tree, order, Term(0.0, margin - width, -1 / width), out[lo:hi])
    near = Term(0.0, margin, 1 / width if loss == HUBER else 2.0)
    sum_pairs(tree, order, near, out[lo:hi])
