"""Metrics of the order that scores give to the rows of a query."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from ..contract import Array, QueryGrid
from ..enums import RankMetric


def _ndcg(y: Array, z: Array, k: int) -> float:
    """Gains over log2(1 + rank), averaged over the orders of tied scores, relative to the best."""
    discount = np.where(np.arange(len(y)) < k, 1 / np.log2(np.arange(len(y)) + 2), 0)
    _, block, counts = np.unique(-z, return_inverse=True, return_counts=True)
    mean_gain = np.bincount(block, y) / counts
    ends = np.cumsum(counts)
    begins = ends - counts
    shares = np.array([discount[a:b].sum() for a, b in zip(begins, ends, strict=True)])
    best = np.sort(y)[::-1] @ discount
    return mean_gain @ shares / best if best > 0 else np.nan


def _worst_first(y: Array, z: Array) -> Array:
    """y in the order of the scores; of equal scores the worse first."""
    return y[np.lexsort((y, -z))]


def _ndcg_worst(y: Array, z: Array, k: int) -> float:
    discount = np.where(np.arange(len(y)) < k, 1 / np.log2(np.arange(len(y)) + 2), 0)
    best = np.sort(y)[::-1] @ discount
    return _worst_first(y, z) @ discount / best if best > 0 else np.nan


def _average_precision(y: Array, z: Array, k: int) -> float:
    """The mean over relevant rows of the share of relevant rows down to each, 0 beyond rank k."""
    hits = _worst_first(y, z)[:k] > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    relevant = np.count_nonzero(y > 0)
    return (precision * hits).sum() / min(relevant, k) if relevant else np.nan


def _reciprocal_rank(y: Array, z: Array, k: int) -> float:
    hits = np.flatnonzero(_worst_first(y, z)[:k] > 0)
    return (1 / (1 + hits[0]) if len(hits) else 0.0) if (y > 0).any() else np.nan


def _expected_reciprocal_rank(y: Array, z: Array, k: int) -> float:
    """A reader stops at a row with probability y: the expected 1 / rank where that is."""
    stop = _worst_first(y, z)[:k]
    reach = np.concatenate([[1.0], np.cumprod(1 - stop)[:-1]])
    return (reach * stop / np.arange(1, len(stop) + 1)).sum() if (y > 0).any() else np.nan


def _pairs(y: Array, z: Array, k: int) -> float:
    """The share of pairs in the right order; equal scores count half."""
    pair = y[:, None] > y[None, :]
    right = np.where(z[:, None] > z[None, :], 1.0, np.where(z[:, None] == z[None, :], 0.5, 0.0))
    return right[pair].mean() if pair.any() else np.nan


def _kendall(y: Array, z: Array, k: int) -> float:
    """Tau-b: agreeing less disagreeing pairs, over the geometric mean of the pairs that differ in y
    and of those that differ in z."""
    a, b = np.sign(y[:, None] - y[None, :]), np.sign(z[:, None] - z[None, :])
    size = np.sqrt(float((a**2).sum()) * float((b**2).sum()))
    return (a * b).sum() / size if size else (np.nan if not a.any() else 0.0)


METRICS: dict[int, Callable[[Array, Array, int], float]] = {
    RankMetric.NDCG: _ndcg,
    RankMetric.NDCG_WORST: _ndcg_worst,
    RankMetric.AVERAGE_PRECISION: _average_precision,
    RankMetric.RECIPROCAL_RANK: _reciprocal_rank,
    RankMetric.EXPECTED_RECIPROCAL_RANK: _expected_reciprocal_rank,
    RankMetric.KENDALL: _kendall,
    RankMetric.PAIRS: _pairs,
}


def query_metric(
    metric: int, y: Array, z: Array, starts: Array, k: int, grid: QueryGrid, n_threads: int
) -> Array:
    """A metric of the order of the scores within each query, as (10.46) judges pairs."""
    if metric not in METRICS:
        raise ValueError(f"the numpy backend has no metric {int(metric)}")
    value = METRICS[metric]
    return np.array([value(y[lo:hi], z[lo:hi], k) for lo, hi in itertools.pairwise(starts)])
