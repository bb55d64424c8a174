"""Metrics of an order: a query's rows sorted by score, then one pass over them."""

from __future__ import annotations

import numpy as np
from numba import prange

from ..contract import Array, QueryGrid
from ..enums import RankMetric
from .codes import checked
from .options import driver, jit
from .threads import run

NDCG, NDCG_WORST, PRECISION, RECIPROCAL, EXPECTED, KENDALL, PAIRS = map(int, RankMetric)


@jit(reorder=False)
def sort_by(first: Array, second: Array) -> Array:
    """The order of rows by `first`, and among equal ones by `second`."""
    order = np.argsort(second, kind="mergesort")
    return order[np.argsort(first[order], kind="mergesort")]


@jit(reorder=False)
def ndcg(y: Array, z: Array, gains: Array, k: int, average: bool, discount: Array) -> float:
    """Gains over log2(1 + rank), averaged over the orders of tied scores, relative to the best."""
    n = len(y)
    best, total, i = 0.0, 0.0, 0
    ideal = np.sort(y)
    for j in range(min(n, k)):
        best += ideal[n - 1 - j] * discount[j]
    if not best > 0:
        return np.nan
    while i < min(n, k):
        last, gain, share = i, 0.0, 0.0
        while last < n and (last == i or (average and z[last] == z[i])):
            gain += gains[last]
            share += discount[last] if last < k else 0.0
            last += 1
        total += gain * share / (last - i)
        i = last
    return total / best


@jit(reorder=False)
def precision(gains: Array, k: int, metric: int) -> float:
    """Average precision, reciprocal rank, or expected reciprocal rank."""
    relevant, hits, total, reach = 0, 0, 0.0, 1.0
    for gain in gains:
        relevant += gain > 0
    if not relevant:
        return np.nan
    for i in range(min(len(gains), k)):
        if metric == EXPECTED:
            total += reach * gains[i] / (i + 1)
            reach *= 1 - gains[i]
        elif gains[i] > 0:
            hits += 1
            total += hits / (i + 1)
            if metric == RECIPROCAL:
                return total
    return total / min(relevant, k) if metric == PRECISION else total


@jit(reorder=False)
def inversions(a: Array) -> tuple[int, Array]:
    """Pairs i < j with a_i > a_j, and a sorted, by bottom-up merges."""
    n, width, count = len(a), 1, 0
    b = np.empty_like(a)
    while width < n:
        for lo in range(0, n, 2 * width):
            mid, hi = min(lo + width, n), min(lo + 2 * width, n)
            i, j = lo, mid
            for t in range(lo, hi):
                if j >= hi or (i < mid and a[i] <= a[j]):
                    b[t] = a[i]
                    i += 1
                else:
                    b[t] = a[j]
                    j += 1
                    count += mid - i
        a, b = b, a
        width *= 2
    return count, a


@jit(reorder=False)
def tied_pairs(a: Array) -> float:
    """Pairs of equal numbers in a sorted array."""
    run_length, total = 0.0, 0.0
    for i in range(1, len(a)):
        run_length = run_length + 1 if a[i] == a[i - 1] else 0.0
        total += run_length
    return total


@jit(reorder=False)
def agreement(y: Array, z: Array, metric: int) -> float:
    """Kendall's tau-b, or the share of pairs in the right order: with rows sorted by y, then by z,
    each inversion of z is a wrong pair."""
    n = len(y)
    order = sort_by(y, z)
    y, z = y[order], z[order]
    every, run_length, both = n * (n - 1) / 2, 0.0, 0.0
    for i in range(1, n):
        run_length = run_length + 1 if y[i] == y[i - 1] and z[i] == z[i - 1] else 0.0
        both += run_length
    apart = every - tied_pairs(y)
    wrong, z = inversions(z)
    equal = tied_pairs(z)
    tied = equal - both
    if apart == 0:
        return np.nan
    if metric == PAIRS:
        return (apart - wrong - tied / 2) / apart
    difference = apart - tied - 2 * wrong
    return difference / (np.sqrt(apart) * np.sqrt(every - equal)) if every > equal else 0.0


@jit(reorder=False)
def measure(metric: int, y: Array, z: Array, k: int, discount: Array) -> float:
    """The metric of one query."""
    if metric == KENDALL or metric == PAIRS:
        return agreement(y, z, metric)
    order = sort_by(-z, y)
    if metric == NDCG or metric == NDCG_WORST:
        return ndcg(y, z[order], y[order], k, metric == NDCG, discount)
    if metric == PRECISION or metric == RECIPROCAL or metric == EXPECTED:
        return precision(y[order], k, metric)
    return np.nan  # not reached: `query_metric` refuses other codes


@driver
def metric_driver(
    metric: int,
    y: Array,
    z: Array,
    starts: Array,
    k: int,
    discount: Array,
    bounds: Array,
    out: Array,
) -> None:
    for c in prange(len(bounds) - 1):
        for g in range(bounds[c], bounds[c + 1]):
            lo, hi = starts[g], starts[g + 1]
            out[g] = measure(metric, y[lo:hi], z[lo:hi], k, discount)


def query_metric(
    metric: int, y: Array, z: Array, starts: Array, k: int, grid: QueryGrid, n_threads: int
) -> Array:
    """A metric of the order of the scores within each query, as (10.46) judges pairs."""
    code, chunks = checked("metric", metric, RankMetric), len(grid.bounds) - 1
    out, longest = np.empty(len(starts) - 1), int(np.diff(starts).max())
    discount = 1 / np.log2(np.arange(2.0, longest + 2))
    run(metric_driver, n_threads, chunks, code, y, z, starts, int(k), discount, grid.bounds, out)
    return out
