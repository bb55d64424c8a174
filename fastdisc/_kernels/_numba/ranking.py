"""Ranking: losses of pairs from scores. Large queries are in rank_tree.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from ..contract import Array, Grid, KernelRows, PairRule, Queries, QueryGrid
from ..enums import Activation, PairLoss
from ..grid import row_grid
from .codes import pair_rule
from .layouts import arguments
from .options import driver, jit
from .rank_tree import loss_by_tree, product_by_tree
from .sweep import outputs, weighted_row_sum
from .threads import run
from .vector_math import exp_nonpositive, log1p_ratio

HINGE, SQUARED_HINGE, HUBER, LOGISTIC = map(int, PairLoss)
MAX_PAIRWISE_ROWS = 96  # of a query whose pairs are visited one by one
MAX_EXPONENT = 690  # of a difference of scores whose exponential is a positive float64


@jit(reorder=False)
def gap(zv: float, zu: float, margin: float) -> float:
    """a = margin + z_v - z_u, in this order: it decides which pairs are active"""
    return (zv - zu) + margin


@jit(reorder=False)
def pair_values(a: float, loss: int, width: float) -> tuple[float, float, float]:
    """a -> loss, derivative by a, curvature   (10.46)"""
    up = max(a, 0.0)
    if loss == LOGISTIC:
        u = exp_nonpositive(-abs(a))
        v = 1.0 + u
        return up + log1p_ratio(u / (2.0 + u)), (1.0 if a > 0 else u) / v, u / (v * v)
    if loss == HUBER:
        near = min(up, width)
        curvature = 1 / width if (a > 0) & (a <= width) else 0.0
        return near / width * (up - near / 2), near / width, curvature
    if loss == SQUARED_HINGE:
        return up * up, 2 * up, 2.0 if a > 0 else 0.0
    if loss == HINGE:
        return up, 1.0 if a > 0 else 0.0, 0.0
    return np.nan, np.nan, np.nan  # not reached: `pair_rule` refuses other codes


@jit()
def pair_weight(queries: Queries, u: int, v: int) -> float:
    """The weight of a pair."""
    _, _, _, s, gain, discount = queries
    step = 1 if len(s) > 1 else 0
    p = s[u * step] * s[v * step]
    by_position = len(gain) and len(discount)
    return p * abs(gain[u] - gain[v]) * abs(discount[u] - discount[v]) if by_position else p


@jit()
def loss_by_pairs(
    queries: Queries, lo: int, hi: int, z: Array, e: Array, rule: PairRule
) -> tuple[float, float]:
    """e = dE/dz of one query, pair by pair; loss, weight of the active pairs   (10.46), (10.48)"""
    below, (loss, margin, width) = queries.below, rule
    total, active = 0.0, 0.0
    e[lo:hi] = 0
    top = z[lo:hi].max()
    # One exponential per row instead of one per pair, if none of them is 0.
    by_rows = loss == LOGISTIC and margin == 0 and top - z[lo:hi].min() < MAX_EXPONENT
    E = np.empty(hi - lo if by_rows else 0)
    for i in range(len(E)):
        E[i] = exp_nonpositive(z[lo + i] - top)
    for u in range(lo, hi):
        own = 0.0
        if by_rows:
            for v in range(below[u], hi):
                p, a = pair_weight(queries, u, v), z[v] - z[u]
                first, second = E[u - lo], E[v - lo]
                slope, low = p * (second / (first + second)), min(first, second)
                ratio = low / (2 * max(first, second) + low)
                total += p * (log1p_ratio(ratio) + max(a, 0.0))
                active += p if a >= 0 else 0.0
                e[v] += slope
                own += slope
        else:
            for v in range(below[u], hi):
                p, a = pair_weight(queries, u, v), gap(z[v], z[u], margin)
                value, slope, _ = pair_values(a, loss, width)
                total += p * value
                active += p if (z[v] >= z[u] if loss == LOGISTIC else a > 0) else 0.0
                e[v] += p * slope
                own += p * slope
        e[u] -= own
    return total, active


@jit()
def product_by_pairs(
    queries: Queries, lo: int, hi: int, z: Array, x: Array, out: Array, rule: PairRule
) -> None:
    """The curvature of one query times x, pair by pair"""
    below, (loss, margin, width) = queries.below, rule
    out[lo:hi] = 0
    for u in range(lo, hi):
        own = 0.0
        for v in range(below[u], hi):
            curvature = pair_values(gap(z[v], z[u], margin), loss, width)[2]
            product = pair_weight(queries, u, v) * curvature * (x[v] - x[u])
            out[v] += product
            own += product
        out[u] -= own


@driver
def loss_driver(
    z: Array, queries: Queries, rule: PairRule, bounds: Array, part: Array, e: Array
) -> None:
    for c in prange(len(part)):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = queries.starts[g], queries.starts[g + 1]
            if not np.isfinite(z[lo:hi]).all():
                loss, active = np.nan, np.nan
                e[lo:hi] = np.nan
            elif rule.loss == LOGISTIC or hi - lo <= MAX_PAIRWISE_ROWS:
                loss, active = loss_by_pairs(queries, lo, hi, z, e, rule)
            else:
                loss, active = loss_by_tree(queries, lo, hi, z, e, rule)
            part[c, 0] += loss
            part[c, 1] += active


@driver
def product_driver(
    z: Array, u: Array, queries: Queries, rule: PairRule, bounds: Array, out: Array
) -> None:
    for c in prange(len(bounds) - 1):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = queries.starts[g], queries.starts[g + 1]
            if not np.isfinite(z[lo:hi]).all():
                out[lo:hi] = np.nan
            elif rule.loss == LOGISTIC or hi - lo <= MAX_PAIRWISE_ROWS:
                product_by_pairs(queries, lo, hi, z, u, out, rule)
            else:
                product_by_tree(queries, lo, hi, z, u, out, rule)


@jit()
def hessian_of_query(
    X: Array, queries: Queries, lo: int, hi: int, z: Array, rule: PairRule, H: Array
) -> None:
    """H += X' L X, on and above the diagonal; L is the Laplacian of the query's pairs, weighted by
    their curvatures"""
    above, below, (loss, margin, width), d = queries.above, queries.below, rule, X.shape[1]
    y = np.empty(d)
    for u in range(lo, hi):
        degree = 0.0
        y[:] = 0
        for v in range(lo, above[u]):
            c = pair_weight(queries, v, u) * pair_values(gap(z[u], z[v], margin), loss, width)[2]
            degree += c
            for j in range(d if c else 0):
                y[j] -= c * X[v, j]
        for v in range(below[u], hi):
            c = pair_weight(queries, u, v) * pair_values(gap(z[v], z[u], margin), loss, width)[2]
            degree += c
            for j in range(d if c else 0):
                y[j] -= c * X[v, j]
        for j in range(d):
            y[j] += degree * X[u, j]
        for a in range(d):
            for b in range(a, d):
                H[a, b] += y[a] * X[u, b]


@driver
def hessian_driver(
    X: Array, z: Array, queries: Queries, rule: PairRule, bounds: Array, part: Array
) -> None:
    for c in prange(len(part)):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = queries.starts[g], queries.starts[g + 1]
            if queries.below[lo] < hi:
                hessian_of_query(X, queries, lo, hi, z, rule, part[c])


class Pairs(NamedTuple):
    """Given pairs of rows (preferred, other)."""

    pairs: Array  # (P, 2)
    s: Array  # (P,) or (1,)


@jit(reorder=False)
def given_chunk(
    z: Array, x: Array, given: Pairs, lo: int, hi: int, rule: PairRule, sums: Array, e: Array
) -> None:
    """Loss and active weight of pairs lo to hi; e = dE/dz, or, if x is given, the curvatures
    times x"""
    (pairs, s), (loss, margin, width) = given, rule
    step = 1 if len(s) > 1 else 0
    for t in range(lo, hi):
        u, v, p = pairs[t, 0], pairs[t, 1], s[t * step]
        a = gap(z[v], z[u], margin)
        value, slope, curvature = pair_values(a, loss, width)
        change = p * (curvature * (x[v] - x[u]) if len(x) else slope)
        e[v] += change
        e[u] -= change
        sums[0] += p * value
        sums[1] += p if (z[v] >= z[u] if loss == LOGISTIC else a > 0) else 0.0


@driver
def given_driver(
    z: Array, x: Array, given: Pairs, rule: PairRule, chunk: int, sums: Array, part: Array
) -> None:
    for c in prange(len(part)):
        hi = min(len(given.pairs), c * chunk + chunk)
        given_chunk(z, x, given, c * chunk, hi, rule, sums[c], part[c])


def query_loss(
    z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> tuple[float, float, Array]:
    """Loss over the pairs of queries and its derivative by the scores: (10.46), (10.48)."""
    chunks = len(grid.bounds) - 1
    part, e = np.zeros((chunks, 2)), np.empty(len(z))
    run(loss_driver, n_threads, chunks, z, queries, pair_rule(rule), grid.bounds, part, e)
    loss, active = part.sum(axis=0)
    return loss, active, e


def query_curvature_product(
    z: Array, u: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> Array:
    """The second derivative by the scores times u: of (10.46), as used by (10.48)."""
    out, chunks = np.empty(len(z)), len(grid.bounds) - 1
    run(product_driver, n_threads, chunks, z, u, queries, pair_rule(rule), grid.bounds, out)
    return out


def query_sweep(
    X: KernelRows,
    places: Array,
    queries: Queries,
    rule: PairRule,
    w: Array,
    o: Array,
    grid: QueryGrid,
    n_threads: int,
) -> tuple[float, float, Array, Array]:
    """Loss over the pairs of queries, its gradient, and the scores: (10.46)-(10.48)."""
    rows, W = row_grid(X.shape, 8, stored=X.stored), np.concatenate([[0.0], w])[None, :]
    z = outputs(X, Activation.IDENTITY, W, rows, n_threads)[0][:, 0]
    z, e = z + o if len(o) else z.copy(), np.empty(len(z))
    loss, active, e[places] = query_loss(z[places], queries, rule, grid, n_threads)
    return loss, active, weighted_row_sum(X, e, rows, n_threads), z


def query_hessian(
    X: KernelRows, z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> Array:
    """The Hessian of the loss over the pairs of queries: of (10.46), as used by (10.48)."""
    chunks, d = len(grid.bounds) - 1, X.shape[1]
    part, x = np.zeros((chunks, d, d)), arguments(X)
    run(hessian_driver, n_threads, chunks, x, z, queries, pair_rule(rule), grid.bounds, part)
    upper = np.triu(part.sum(axis=0))
    return upper + np.triu(upper, 1).T


def _sum_given(
    z: Array, x: Array, given: Pairs, rule: PairRule, grid: Grid, n_threads: int
) -> tuple[float, float, Array]:
    chunks = -(-len(given.pairs) // grid.chunk)
    sums, part = np.zeros((chunks, 2)), np.zeros((chunks, len(z)))
    chunk = int(grid.chunk)
    run(given_driver, n_threads, chunks, z, x, given, pair_rule(rule), chunk, sums, part)
    loss, active = sums.sum(axis=0)
    return loss, active, part.sum(axis=0)


def pair_loss(
    z: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
) -> tuple[float, float, Array]:
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    return _sum_given(z, np.empty(0), Pairs(pairs, s), rule, grid, n_threads)


def pair_curvature_product(
    z: Array, u: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
) -> Array:
    """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""
    return _sum_given(z, u, Pairs(pairs, s), rule, grid, n_threads)[2]
