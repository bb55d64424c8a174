"""The reference of ranking: every pair of a query in one matrix."""

from __future__ import annotations

import itertools

import numpy as np

from . import Metric, PairLoss


def pair_values(a, rule):
    """a = margin + z_v - z_u -> loss, derivative by a, curvature   (10.46)"""
    up = np.maximum(a, 0)
    if rule.loss == PairLoss.HINGE:
        return up, 1.0 * (a > 0), 0 * a
    if rule.loss == PairLoss.SQUARED_HINGE:
        return up**2, 2 * up, 2.0 * (a > 0)
    if rule.loss == PairLoss.HUBER:
        near = np.minimum(up, rule.width)
        return near / rule.width * (up - near / 2), near / rule.width, ((a > 0) & (a <= rule.width)) / rule.width
    u = np.exp(-np.abs(a))
    return up + np.log1p(u), np.where(a > 0, 1, u) / (1 + u), u / (1 + u) ** 2


def _weights(queries, lo, hi):
    """P[u, v], 0 where u is not preferred to v."""
    rows = np.arange(lo, hi)
    s = np.broadcast_to(queries.s, len(queries.above))[lo:hi]
    P = np.where(rows[None, :] >= queries.below[lo:hi, None], s[:, None] * s[None, :], 0)
    if len(queries.gain) and len(queries.discount):
        gain, discount = queries.gain[lo:hi], queries.discount[lo:hi]
        P = P * (gain[:, None] - gain[None, :]) * np.abs(discount[:, None] - discount[None, :])
    return P


def _by_query(z, queries, rule):
    """For each query its rows, P, a, and the three values of a."""
    for lo, hi in itertools.pairwise(queries.starts):
        zq = z[lo:hi]
        a = zq[None, :] - zq[:, None] + rule.margin
        yield slice(lo, hi), _weights(queries, lo, hi), a, pair_values(a, rule)


def rank_link(z, queries, rule, grid, n_threads):
    """Loss over all ordered pairs within queries, and its derivative by the scores: (10.46), (10.48)."""
    loss, active, e = 0.0, 0.0, np.zeros(len(z))
    for rows, P, a, (losses, slopes, _) in _by_query(z, queries, rule):
        loss += (P * losses).sum()
        active += P[a > 0].sum() if rule.loss != PairLoss.LOGISTIC else P[a >= rule.margin].sum()
        e[rows] = (P * slopes).sum(axis=0) - (P * slopes).sum(axis=1)
    return loss, active, e


def rank_bend(z, u, queries, rule, grid, n_threads):
    """The second derivative by the scores times a direction's scores u: of (10.46), as used by (10.48)."""
    out = np.zeros(len(z))
    for rows, P, _, (_, _, bends) in _by_query(z, queries, rule):
        L = P * bends * (u[rows][None, :] - u[rows][:, None])
        out[rows] = L.sum(axis=0) - L.sum(axis=1)
    return out


def rank_hessian(X, z, queries, rule, grid, n_threads):
    """The Hessian of the loss over all ordered pairs within queries: of (10.46), as used by (10.48)."""
    H = np.zeros((X.shape[1], X.shape[1]))
    for rows, P, _, (_, _, bends) in _by_query(z, queries, rule):
        A = P * bends
        A = A + A.T
        H += X[rows].T @ (A.sum(axis=1)[:, None] * X[rows] - A @ X[rows])
    return H


def pair_link(z, pairs, s, rule, grid, n_threads):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    u, v = pairs.T
    s, a = np.broadcast_to(s, len(pairs)), z[v] - z[u] + rule.margin
    losses, slopes, _ = pair_values(a, rule)
    e = np.bincount(v, s * slopes, len(z)) - np.bincount(u, s * slopes, len(z))
    return (s * losses).sum(), s[a > 0].sum() if rule.loss != PairLoss.LOGISTIC else s[a >= rule.margin].sum(), e


def pair_bend(z, u, pairs, s, rule, grid, n_threads):
    """The second derivative by the scores times a direction's scores u, over given pairs: of (10.46), as used by (10.48)."""
    first, second = pairs.T
    bends = s * pair_values(z[second] - z[first] + rule.margin, rule)[2] * (u[second] - u[first])
    return np.bincount(second, bends, len(z)) - np.bincount(first, bends, len(z))


def _ndcg(y, z, k):
    """Gains over log2(1 + rank), averaged over the orders of equal scores, beside the same in the best order."""
    discount = np.where(np.arange(len(y)) < k, 1 / np.log2(np.arange(len(y)) + 2), 0)
    _, block, counts = np.unique(-z, return_inverse=True, return_counts=True)
    mean_gain = np.bincount(block, y) / counts
    ends = np.cumsum(counts)
    shares = np.array([discount[end - count : end].sum() for end, count in zip(ends, counts, strict=True)])
    best = np.sort(y)[::-1] @ discount
    return mean_gain @ shares / best if best > 0 else np.nan


def _worst_first(y, z):
    """y in the order of the scores; of equal scores the worse first."""
    return y[np.lexsort((y, -z))]


def _ndcg_worst(y, z, k):
    discount = np.where(np.arange(len(y)) < k, 1 / np.log2(np.arange(len(y)) + 2), 0)
    best = np.sort(y)[::-1] @ discount
    return _worst_first(y, z) @ discount / best if best > 0 else np.nan


def _average_precision(y, z, k):
    """The mean over relevant rows of the share of relevant rows down to each; those beyond k count 0."""
    hits = _worst_first(y, z)[:k] > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    relevant = np.count_nonzero(y > 0)
    return (precision * hits).sum() / min(relevant, k) if relevant else np.nan


def _reciprocal_rank(y, z, k):
    hits = np.flatnonzero(_worst_first(y, z)[:k] > 0)
    return (1 / (1 + hits[0]) if len(hits) else 0.0) if (y > 0).any() else np.nan


def _expected_reciprocal_rank(y, z, k):
    """A reader stops at a row with probability y: the expected 1 / rank where that is."""
    stop = _worst_first(y, z)[:k]
    reach = np.concatenate([[1.0], np.cumprod(1 - stop)[:-1]])
    return (reach * stop / np.arange(1, len(stop) + 1)).sum() if (y > 0).any() else np.nan


def _pairs(y, z, k):
    """The share of pairs in the right order; equal scores count half."""
    pair = y[:, None] > y[None, :]
    right = np.where(z[:, None] > z[None, :], 1.0, np.where(z[:, None] == z[None, :], 0.5, 0.0))
    return right[pair].mean() if pair.any() else np.nan


def _kendall(y, z, k):
    """Tau-b: agreeing less disagreeing pairs, over the geometric mean of those that y and z tell apart."""
    a, b = np.sign(y[:, None] - y[None, :]), np.sign(z[:, None] - z[None, :])
    size = np.sqrt(float((a**2).sum()) * float((b**2).sum()))
    return (a * b).sum() / size if size else (np.nan if not a.any() else 0.0)


METRICS = {
    Metric.NDCG: _ndcg,
    Metric.NDCG_WORST: _ndcg_worst,
    Metric.AVERAGE_PRECISION: _average_precision,
    Metric.RECIPROCAL_RANK: _reciprocal_rank,
    Metric.EXPECTED_RECIPROCAL_RANK: _expected_reciprocal_rank,
    Metric.KENDALL: _kendall,
    Metric.PAIRS: _pairs,
}


def group_metric(metric, y, z, starts, k, grid, n_threads):
    """How good the order of the scores is within each query, judged by pairs, as (10.46), or by the ranks of good rows."""
    return np.array([METRICS[metric](y[lo:hi], z[lo:hi], k) for lo, hi in itertools.pairwise(starts)])
