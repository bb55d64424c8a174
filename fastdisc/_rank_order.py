"""Rows in the order that rankers take them, query by query and from the best down, and what follows from the order alone."""

from __future__ import annotations

import numpy as np


def in_order(group, y):
    """Rows query by query, from the best down: their numbers, and the starts, above and below of `Queries`."""
    rows = np.lexsort((-y, group))
    return rows, *edges(group[rows], y[rows])


def edges(group, y):
    """Where queries start, and where each row's grade begins and ends, of rows in order."""
    query = group[1:] != group[:-1]
    starts = np.flatnonzero(np.concatenate([[True], query, [True]])).astype(np.int64)
    cuts = np.flatnonzero(np.concatenate([[True], query | (y[1:] != y[:-1]), [True]])).astype(np.int64)
    return starts, np.repeat(cuts[:-1], np.diff(cuts)), np.repeat(cuts[1:], np.diff(cuts))


def pair_totals(group, y, s, count):
    """The weight of all ordered pairs of each of `count` queries."""
    rows, starts, above, below = in_order(group, y)
    each = np.broadcast_to(s, len(y))[rows]
    totals = np.zeros(count)
    totals[group[rows[starts[:-1]]]] = np.add.reduceat(each * partners(each, starts, above, below)[1], starts[:-1])
    return totals


def partners(s, starts, above, below):
    """The weight of the rows that are better than each of its query, and of those that are worse, of rows in order.

    Differences of one running sum over all queries, in units of the largest weight of each: they must not lose the digits of
    queries of small weights.
    """
    sizes = np.diff(starts)
    unit = np.repeat(np.maximum.reduceat(s, starts[:-1]), sizes)
    sums = np.concatenate([[0.0], np.cumsum(np.divide(s, unit, out=np.zeros(len(s)), where=unit > 0))])
    better, worse = sums[above] - np.repeat(sums[starts[:-1]], sizes), np.repeat(sums[starts[1:]], sizes) - sums[below]
    return unit * better, unit * worse


def ideal(gain, s, codes, starts, k):
    """Gains in units of what the best order of each query has in its first k rows; rows of weight 0 do not count."""
    gain = np.where(s > 0, gain, 0.0)
    order = np.lexsort((-gain, codes))
    rank = runs(np.diff(starts))
    worth = np.where(rank < k, gain[order] / np.log2(rank + 2.0), 0.0)
    best = np.add.reduceat(worth, starts[:-1])
    unit = np.repeat(np.divide(1.0, best, out=np.zeros(len(best)), where=best > 0), np.diff(starts))
    out = np.empty_like(gain)
    out[order] = gain[order] * unit
    return out


def runs(sizes):
    """0, 1, ... of each of some runs, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def thin(cells, m, rng):
    """About m rows, no more than so many of each cell: their places, and by how much each stands for others of its cell.

    Rows of a cell stand together; of those that are cut down, one row is drawn from each of some equally long runs.
    """
    edges = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1], [True]]))
    counts = np.diff(edges)
    levels = np.sort(counts)
    room = np.cumsum(levels) + levels * np.arange(len(levels) - 1, -1, -1)  # rows left when cells are cut to each level
    cap = int(levels[np.searchsorted(room, m, side="right") - 1]) if room[0] <= m else 1
    takes = np.minimum(counts, max(1, cap, m // len(counts)))
    width = np.repeat(counts / takes, takes)
    keep = np.repeat(edges[:-1], takes) + ((runs(takes) + rng.random(len(width))) * width).astype(np.int64)
    return np.minimum(keep, np.repeat(edges[1:], takes) - 1), width
