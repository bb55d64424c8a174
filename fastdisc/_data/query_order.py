"""Rows sorted by query and, within a query, from the highest grade to the lowest, as rankers take
them; and what follows from that order alone."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array


def query_order(group: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """The row numbers in sorted order, and `starts`, `above` and `below` of `Queries`."""
    rows = np.lexsort((-y, group))
    return rows, *query_bounds(group[rows], y[rows])


def query_bounds(group: Array, y: Array) -> tuple[Array, Array, Array]:
    """Where queries start, and where each row's grade begins and ends, of sorted rows."""
    is_new_query = group[1:] != group[:-1]
    is_new_grade = is_new_query | (y[1:] != y[:-1])
    starts = _run_edges(is_new_query)
    cuts = _run_edges(is_new_grade)
    sizes = np.diff(cuts)
    return starts, np.repeat(cuts[:-1], sizes), np.repeat(cuts[1:], sizes)


def _run_edges(is_new: Array) -> Array:
    """The first row of each run, and the number of rows, (runs + 1,) int64; `is_new` says for each
    row after the first whether a run begins there."""
    return np.flatnonzero(np.concatenate([[True], is_new, [True]])).astype(np.int64)


def pair_totals(group: Array, y: Array, s: Array, count: int) -> Array:
    """The weight of all ordered pairs of each of `count` queries."""
    rows, starts, above, below = query_order(group, y)
    weights = np.broadcast_to(s, len(y))[rows]
    _, worse = partner_weights(weights, starts, above, below)
    totals = np.zeros(count)
    totals[group[rows[starts[:-1]]]] = np.add.reduceat(weights * worse, starts[:-1])
    return totals


def partner_weights(s: Array, starts: Array, above: Array, below: Array) -> tuple[Array, Array]:
    """For each of the sorted rows, the weight of the rows of its query with a higher grade, and of
    those with a lower grade.

    They are differences of one cumulative sum over all queries. Weights are divided by the largest
    of each query, so that queries of small weights do not lose digits.
    """
    sizes = np.diff(starts)
    unit = np.repeat(np.maximum.reduceat(s, starts[:-1]), sizes)
    scaled = np.divide(s, unit, out=np.zeros(len(s)), where=unit > 0)
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    better = sums[above] - np.repeat(sums[starts[:-1]], sizes)
    worse = np.repeat(sums[starts[1:]], sizes) - sums[below]
    return unit * better, unit * worse


def ideal_gains(gain: Array, s: Array, codes: Array, starts: Array, k: int) -> Array:
    """Gains divided by the discounted gain of the first k rows of the query's best order, (N,).
    Rows of weight 0 do not count."""
    gain = np.where(s > 0, gain, 0.0)
    order = np.lexsort((-gain, codes))
    sizes = np.diff(starts)
    rank = ranges(sizes)
    discounted = np.where(rank < k, gain[order] / np.log2(rank + 2.0), 0.0)
    best = np.add.reduceat(discounted, starts[:-1])
    unit = np.repeat(np.divide(1.0, best, out=np.zeros(len(best)), where=best > 0), sizes)
    out = np.empty_like(gain)
    out[order] = gain[order] * unit
    return out


def ranges(sizes: Array) -> Array:
    """0, 1, ... within each of several consecutive runs."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def thin_cells(cells: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """About m rows, at most the same number of each cell: their places, and the number of rows of
    the cell that each represents.

    Rows of a cell are consecutive. Of a cell that is thinned, one row is drawn from each of several
    runs of equal length.
    """
    bounds = _run_edges(cells[1:] != cells[:-1])
    counts = np.diff(bounds)
    levels = np.sort(counts)
    # The number of rows that are left if no cell keeps more than each level.
    left = np.cumsum(levels) + levels * np.arange(len(levels) - 1, -1, -1)
    cap = int(levels[np.searchsorted(left, m, side="right") - 1]) if left[0] <= m else 1
    taken = np.minimum(counts, max(1, cap, m // len(counts)))
    width = np.repeat(counts / taken, taken)
    offset = ((ranges(taken) + rng.random(len(width))) * width).astype(np.int64)
    places = np.repeat(bounds[:-1], taken) + offset
    return np.minimum(places, np.repeat(bounds[1:], taken) - 1), width
