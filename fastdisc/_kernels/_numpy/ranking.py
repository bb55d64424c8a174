"""Ranking: every pair of a query in one matrix."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from ..contract import Array, Grid, KernelRows, PairRule, Queries, QueryGrid
from ..enums import PairLoss
from .rows import dense_rows

Values = tuple[Array, Array, Array]  # of a: loss, derivative by a, curvature


def hinge(a: Array, rule: PairRule) -> Values:
    """[a]_+   (10.46)"""
    return np.maximum(a, 0), 1.0 * (a > 0), 0 * a


def squared_hinge(a: Array, rule: PairRule) -> Values:
    """[a]_+^2"""
    return np.maximum(a, 0) ** 2, 2 * np.maximum(a, 0), 2.0 * (a > 0)


def huber(a: Array, rule: PairRule) -> Values:
    """The hinge with its corner smoothed over `width`."""
    up = np.maximum(a, 0)
    near = np.minimum(up, rule.width)
    curvature = ((a > 0) & (a <= rule.width)) / rule.width
    return near / rule.width * (up - near / 2), near / rule.width, curvature


def logistic(a: Array, rule: PairRule) -> Values:
    """log(1 + exp(a))"""
    u = np.exp(-np.abs(a))
    return np.maximum(a, 0) + np.log1p(u), np.where(a > 0, 1, u) / (1 + u), u / (1 + u) ** 2


PAIR_LOSSES: dict[int, Callable[[Array, PairRule], Values]] = {
    PairLoss.HINGE: hinge,
    PairLoss.SQUARED_HINGE: squared_hinge,
    PairLoss.HUBER: huber,
    PairLoss.LOGISTIC: logistic,
}


def pair_values(a: Array, rule: PairRule) -> Values:
    """a = margin + z_v - z_u -> loss, derivative by a, curvature   (10.46)"""
    if rule.loss not in PAIR_LOSSES:
        raise ValueError(f"the numpy backend has no pair loss {int(rule.loss)}")
    return PAIR_LOSSES[rule.loss](a, rule)


def _active(a: Array, weight: Array, rule: PairRule) -> float:
    """The weight of the pairs with a positive loss; for LOGISTIC, of those in the wrong order."""
    wrong = a >= rule.margin if rule.loss == PairLoss.LOGISTIC else a > 0
    return float(weight[wrong].sum())


def _pair_weights(queries: Queries, lo: int, hi: int) -> Array:
    """P[u, v], 0 where u is not preferred to v."""
    rows = np.arange(lo, hi)
    s = np.broadcast_to(queries.s, len(queries.above))[lo:hi]
    P = np.where(rows[None, :] >= queries.below[lo:hi, None], s[:, None] * s[None, :], 0)
    if len(queries.gain) and len(queries.discount):
        gain, discount = queries.gain[lo:hi], queries.discount[lo:hi]
        P = P * (gain[:, None] - gain[None, :]) * np.abs(discount[:, None] - discount[None, :])
    return P


def _by_query(
    z: Array, queries: Queries, rule: PairRule
) -> Iterator[tuple[slice, Array, Array, Values]]:
    """For each query its rows, P, a, and the values of a."""
    for lo, hi in itertools.pairwise(queries.starts):
        zq = z[lo:hi]
        a = zq[None, :] - zq[:, None] + rule.margin
        yield slice(lo, hi), _pair_weights(queries, lo, hi), a, pair_values(a, rule)


def query_loss(
    z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> tuple[float, float, Array]:
    """Loss over the pairs of queries and its derivative by the scores: (10.46), (10.48)."""
    loss, active, e = 0.0, 0.0, np.zeros(len(z))
    for rows, P, a, (losses, slopes, _) in _by_query(z, queries, rule):
        loss += (P * losses).sum()
        active += _active(a, P, rule)
        e[rows] = (P * slopes).sum(axis=0) - (P * slopes).sum(axis=1)
    return loss, active, e


def query_curvature_product(
    z: Array, u: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> Array:
    """The second derivative by the scores times u: of (10.46), as used by (10.48)."""
    out = np.zeros(len(z))
    for rows, P, _, (_, _, curvature) in _by_query(z, queries, rule):
        L = P * curvature * (u[rows][None, :] - u[rows][:, None])
        out[rows] = L.sum(axis=0) - L.sum(axis=1)
    return out


def query_hessian(
    X: KernelRows, z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
) -> Array:
    """The Hessian of the loss over the pairs of queries: of (10.46), as used by (10.48)."""
    x = dense_rows(X)
    H = np.zeros((X.shape[1], X.shape[1]))
    for rows, P, _, (_, _, curvature) in _by_query(z, queries, rule):
        A = P * curvature
        A = A + A.T
        H += x[rows].T @ (A.sum(axis=1)[:, None] * x[rows] - A @ x[rows])
    return H


def pair_loss(
    z: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
) -> tuple[float, float, Array]:
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    u, v = pairs.T
    s, a = np.broadcast_to(s, len(pairs)), z[v] - z[u] + rule.margin
    losses, slopes, _ = pair_values(a, rule)
    e = np.bincount(v, s * slopes, len(z)) - np.bincount(u, s * slopes, len(z))
    return (s * losses).sum(), _active(a, s, rule), e


def pair_curvature_product(
    z: Array, u: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
) -> Array:
    """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""
    first, second = pairs.T
    curvature = pair_values(z[second] - z[first] + rule.margin, rule)[2]
    products = s * curvature * (u[second] - u[first])
    return np.bincount(second, products, len(z)) - np.bincount(first, products, len(z))


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
    x = dense_rows(X)
    z, e = x @ w + o if len(o) else x @ w, np.empty(len(x))
    loss, active, e[places] = query_loss(z[places], queries, rule, grid, n_threads)
    return loss, active, x.T @ e, z
