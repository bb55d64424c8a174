"""How good an order is: a query's rows sorted by score, then one walk over them; see _cython/metrics.pxi."""

import numpy as np
from numba import prange

from .. import Metric
from .options import drivers, jit

NDCG, NDCG_WORST, PRECISION, RECIPROCAL, EXPECTED, KENDALL, PAIRS = (int(metric) for metric in Metric)


@jit(sums=False)
def sort_by(first, second):
    """The order of rows by the first numbers, and among equal ones by the second."""
    order = np.argsort(second, kind="mergesort")
    return order[np.argsort(first[order], kind="mergesort")]


@jit(sums=False)
def ndcg(y, z, gains, k, average, discount):
    """Gains over log2(1 + rank), averaged over the orders of equal scores, beside the same in the best order."""
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


@jit(sums=False)
def precision(gains, k, metric):
    """Average precision, reciprocal rank, expected reciprocal rank."""
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


@jit(sums=False)
def inversions(a):
    """Pairs i < j with a_i > a_j; a sorted. Merges from runs of 1 up."""
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


@jit(sums=False)
def ties(a):
    """Pairs of equal numbers, which stand side by side."""
    run, total = 0.0, 0.0
    for i in range(1, len(a)):
        run = run + 1 if a[i] == a[i - 1] else 0.0
        total += run
    return total


@jit(sums=False)
def agreement(y, z, metric):
    """Kendall's tau-b, or the share of pairs in the right order: sorted by y, then by z, every inversion of z is a wrong pair."""
    n = len(y)
    order = sort_by(y, z)
    y, z = y[order], z[order]
    every, run, both = n * (n - 1) / 2, 0.0, 0.0
    for i in range(1, n):
        run = run + 1 if y[i] == y[i - 1] and z[i] == z[i - 1] else 0.0
        both += run
    apart = every - ties(y)
    wrong, z = inversions(z)
    equal = ties(z)
    tied = equal - both
    if apart == 0:
        return np.nan
    if metric == PAIRS:
        return (apart - wrong - tied / 2) / apart
    return (apart - tied - 2 * wrong) / (np.sqrt(apart) * np.sqrt(every - equal)) if every > equal else 0.0


@jit(sums=False)
def measure(metric, y, z, k, discount):
    """One query's share."""
    if metric >= KENDALL:
        return agreement(y, z, metric)
    order = sort_by(-z, y)
    if metric <= NDCG_WORST:
        return ndcg(y, z[order], y[order], k, metric == NDCG, discount)
    return precision(y[order], k, metric)


def metric_driver(metric, y, z, starts, k, discount, bounds, out):
    for c in prange(len(bounds) - 1):
        for g in range(bounds[c], bounds[c + 1]):
            out[g] = measure(metric, y[starts[g] : starts[g + 1]], z[starts[g] : starts[g + 1]], k, discount)


DRIVERS = drivers(metric_driver)
