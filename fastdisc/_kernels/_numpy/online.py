"""Updates one after the other: online rules, ranking updates, coordinate descent."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from ..contract import (
    MAX_SLOPE,
    Array,
    Batch,
    KernelRows,
    OnlineRule,
    OnlineState,
    PairRule,
    RowOrder,
)
from ..enums import LearningRate, MarginLoss
from .losses import sigmoid
from .ranking import pair_values
from .rows import dense_rows, with_constant

# Of the margin m = r' z with r' = +1 or -1: the loss and its derivative. NaN counts as a mistake.
MARGIN_LOSSES: dict[int, Callable[[Array], tuple[Array, Array]]] = {
    MarginLoss.PERCEPTRON: lambda m: (np.maximum(0, -m), -1.0 * ~(m > 0)),  # (4.54)
    MarginLoss.HINGE: lambda m: (np.maximum(0, 1 - m), -1.0 * ~(m > 1)),
    MarginLoss.SQUARED_HINGE: lambda m: (np.maximum(0, 1 - m) ** 2, -2 * np.maximum(0, 1 - m)),
    MarginLoss.LOG: lambda m: (
        np.log1p(np.exp(-np.abs(m))) + np.maximum(0, -m),
        -sigmoid(-m),
    ),
    MarginLoss.MODIFIED_HUBER: lambda m: (
        np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2),
        np.where(m < -1, -4, -2 * np.maximum(0, 1 - m)),
    ),
    MarginLoss.SQUARED: lambda m: ((1 - m) ** 2 / 2, m - 1),
}


def perceptron_multiclass(z: Array, own: int) -> tuple[float, Array]:
    """The row's class against the best of the others: loss and derivative by z."""
    rival = np.where(np.arange(len(z)) == own, -np.inf, z).argmax()
    e = np.zeros(len(z))
    if z[own] > z[rival]:
        return 0.0, e
    e[own], e[rival] = -1, 1
    return z[rival] - z[own], e


def _derivative(loss: int, z: Array, own: int) -> tuple[float, Array, int]:
    """z -> loss, its derivative by z, and the number of updates"""
    if loss == MarginLoss.PERCEPTRON_MULTICLASS:
        total, e = perceptron_multiclass(z, own)
        return total, e, int(e.any())
    y = np.where(np.arange(len(z)) == (own if len(z) > 1 else 1 - own), 1.0, -1.0)
    losses, slopes = MARGIN_LOSSES[loss](y * z)
    e = np.clip(y * slopes, -MAX_SLOPE, MAX_SLOPE)
    return losses.sum(), e, int(np.count_nonzero(slopes))


def _step_size(rule: OnlineRule, t: float) -> float:
    """The step size at the t-th row."""
    if rule.rate == LearningRate.OPTIMAL:
        return rule.eta / (rule.power + t - 1)
    return rule.eta / t**rule.power if rule.rate == LearningRate.INVSCALING else rule.eta


def _apply_l1(W: Array, Q: Array, owed: float) -> None:
    """Move weights towards 0, not beyond, by the part of the L1 penalty not yet applied."""
    new = np.where(W > 0, np.maximum(0, W - (owed + Q)), np.minimum(0, W + (owed - Q)))
    Q += new - W
    W[:] = new


def online_epoch(
    batch: Batch, state: OnlineState, rule: OnlineRule, order: RowOrder, n_threads: int
) -> tuple[float, int]:
    """One epoch of an online rule, as (4.55), with an update for each row."""
    if rule.loss != MarginLoss.PERCEPTRON_MULTICLASS and rule.loss not in MARGIN_LOSSES:
        raise ValueError(f"the numpy backend has no margin loss {int(rule.loss)}")
    if rule.rate not in LearningRate._value2member_map_:
        raise ValueError(f"the numpy backend has no learning rate {int(rule.rate)}")
    (W, U, Q, clock), r = state, batch.r
    X, s, total, updates = with_constant(batch.X), np.broadcast_to(batch.s, len(r)), 0.0, 0
    learned = np.append(float(rule.intercept), np.ones(X.shape[1] - 1))
    runs = (range(i * order.run, min(len(r), (i + 1) * order.run)) for i in order.order)
    for t in itertools.chain.from_iterable(runs):
        z = W @ X[t]
        total += (z - z).sum()  # NaN if a score is not finite
        if s[t] == 0:
            continue
        clock[0] += 1
        eta = _step_size(rule, clock[0])
        loss, e, count = _derivative(rule.loss, z, r[t])
        total, updates = total + s[t] * loss, updates + count
        shrink = max(0.0, 1 - eta * rule.alpha * (1 - rule.l1))
        W[:, 1:] *= shrink
        W -= np.outer(eta * s[t] * e, learned * X[t])
        if len(Q):
            Q *= shrink
            clock[1] = shrink * clock[1] + eta * rule.alpha * rule.l1
            _apply_l1(W[:, 1:], Q[:, 1:], clock[1])
        if len(U) and clock[0] >= rule.begin:
            U += W
    return float(total), int(updates)


def online_pairs(
    X: KernelRows, pairs: Array, s: Array, w: Array, eta: float, rule: PairRule
) -> int:
    """One epoch of the ranking update (10.49) over given (preferred, other) pairs."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    rows, updates = dense_rows(X), 0
    for (u, v), step in zip(pairs, eta * np.broadcast_to(s, len(pairs)), strict=True):
        _, slope, _ = pair_values((w @ rows[v] - w @ rows[u]) + rule.margin, rule)
        updates += step * slope != 0
        w += step * slope * (rows[u] - rows[v])
    return int(updates)


def coordinate_descent(H: Array, q: Array, l1: Array, w: Array, tol: float, max_iter: int) -> int:
    """Coordinate descent on a quadratic model of (10.23) or (10.31) with an L1 penalty."""
    diagonal = np.diag(H)
    passes, largest = 0, np.inf
    while largest > tol and passes < max_iter:
        passes, largest = passes + 1, 0.0
        for j in np.flatnonzero(diagonal > 0):
            old = w[j]
            z = q[j] - H[j] @ w + diagonal[j] * old
            w[j] = np.sign(z) * max(abs(z) - l1[j], 0) / diagonal[j]
            largest = max(largest, diagonal[j] * (w[j] - old) ** 2)
    return passes
