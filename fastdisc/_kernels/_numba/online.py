"""Updates one after the other, on one thread: online rules, ranking updates, coordinate descent.

The weights of an online rule are state.W times a scale factor, so that an L2 penalty costs one
multiplication per row. State.U holds minus the sum of the weights so far relative to the
accumulated scale, so that averaging costs no more than the update itself. The L1 penalty is applied
to a weight when a row next reads it. `finish` makes all of them what the contract says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..contract import (
    MAX_SLOPE,
    MIN_SCALE,
    Array,
    Batch,
    KernelRows,
    OnlineRule,
    OnlineState,
    PairRule,
    RowOrder,
)
from ..enums import LearningRate, MarginLoss
from .codes import online_rule, pair_rule
from .layouts import add_row, arguments, dot_row, pick, row_column, row_size
from .options import jit
from .ranking import pair_values

PERCEPTRON, PERCEPTRON_MULTICLASS, HINGE, SQUARED_HINGE, LOG, MODIFIED_HUBER, SQUARED = map(
    int, MarginLoss
)
OPTIMAL, INVSCALING = int(LearningRate.OPTIMAL), int(LearningRate.INVSCALING)
# The numbers that change from row to row, in one array: the scale factor; its sum, and the number
# of rows, over the rows that are averaged; rows seen; rows accounted for in the average; L1 penalty
# accumulated, relative to the scale; loss.
SCALE, SCALE_SUM, AVERAGED, CLOCK, ACCOUNTED, L1_SUM, TOTAL = range(7)


@jit()
def margin_loss(loss: int, m: float) -> tuple[float, float]:
    """A loss of the margin m = r' z, and its derivative. NaN counts as a mistake."""
    h = 1.0 - m
    if loss == PERCEPTRON:
        return (0.0, 0.0) if m > 0 else (-m, -1.0)
    if loss == HINGE:
        return (0.0, 0.0) if m > 1 else (h, -1.0)
    if loss == LOG:
        u = math.exp(-abs(m))
        return math.log1p(u) + max(0.0, -m), -(u if m > 0 else 1.0) / (1.0 + u)
    if loss == SQUARED:
        return h * h / 2, -h
    if loss == SQUARED_HINGE or loss == MODIFIED_HUBER:
        if m > 1:
            return 0.0, 0.0
        if loss == MODIFIED_HUBER and m < -1:
            return -4.0 * m, -4.0
        return h * h, -2.0 * h
    return np.nan, np.nan  # not reached: `online_rule` refuses other codes


@jit()
def best_competitor(z: Array, own: int) -> int:
    """The first of the highest scores besides a row's own class."""
    rival = 1 if own == 0 else 0
    for k in range(len(z)):
        if k != own and z[k] > z[rival]:
            rival = k
    return rival


@jit()
def derivative(loss: int, z: Array, own: int, weight: float, a: Array, f: Array) -> int:
    """z -> loss, and its derivative by z in a; the number of updates"""
    K, updates = len(z), 0
    if loss == PERCEPTRON_MULTICLASS:
        a[:] = 0
        rival = best_competitor(z, own)
        if not z[own] > z[rival]:
            a[own], a[rival] = -1.0, 1.0
            f[TOTAL] += weight * (z[rival] - z[own])
            updates = 1
        return updates
    for k in range(K):
        y = 1.0 if own == (k if K > 1 else 1) else -1.0
        value, m = margin_loss(loss, y * z[k])
        f[TOTAL] += weight * value
        steep = not (abs(m) <= MAX_SLOPE or m != m)
        a[k] = y * math.copysign(MAX_SLOPE, m) if steep else y * m
        updates += a[k] != 0
    return updates


@jit()
def account(f: Array, clock: float, begin: float, average: bool) -> None:
    """The weights have been as they are up to row number `clock`."""
    rows = clock - max(f[ACCOUNTED], begin - 1)
    if average and rows > 0:
        f[SCALE_SUM] += rows * f[SCALE]
        f[AVERAGED] += rows
    f[ACCOUNTED] = clock


@jit()
def apply_scale(state: OnlineState, f: Array) -> None:
    """Multiply the scale factor into the weights; U is then minus the sum of the weights so far."""
    W, U, Q, _ = state
    for k in range(len(W)):
        for j in range(1, W.shape[1]):
            if len(U) > 0:
                U[k, j] -= f[SCALE_SUM] * W[k, j]
            if len(Q) > 0:
                Q[k, j] *= f[SCALE]
            W[k, j] *= f[SCALE]
    f[L1_SUM] *= f[SCALE]
    f[SCALE_SUM], f[SCALE] = 0.0, 1.0


@jit()
def apply_l1(state: OnlineState, f: Array, j: int) -> None:
    """Move column j of the weights towards 0, not beyond, by the L1 penalty not yet applied."""
    W, U, Q, _ = state
    for k in range(len(W)):
        old = W[k, j]
        if old > 0:
            new = max(0.0, old - (f[L1_SUM] + Q[k, j]))
        else:
            new = min(0.0, old + (f[L1_SUM] - Q[k, j]))
        Q[k, j] += new - old
        W[k, j] = new
        if len(U) > 0:
            U[k, j] += f[SCALE_SUM] * (new - old)


@jit()
def apply_l1_to_row(x: Any, t: int, state: OnlineState, f: Array) -> None:
    """The same for the weights that row t reads."""
    for i in range(row_size(x, t)):
        apply_l1(state, f, row_column(x, t, i) + 1)


@jit()
def step_size(rule: OnlineRule, t: float) -> float:
    """The step size at the t-th row."""
    if rule.rate == OPTIMAL:
        return rule.eta / (rule.power + t - 1)
    if rule.rate == INVSCALING:
        return rule.eta / t**rule.power
    return rule.eta


@jit()
def add_update(
    x: Any, t: int, a: Array, step: float, state: OnlineState, f: Array, intercept: bool
) -> None:
    """w_k += step a_k [1 x_t], and the sums of the weights accordingly   (4.55)"""
    W, U, _, _ = state
    for k in range(len(W)):
        if a[k] != 0:
            a[k] *= step
            if intercept:
                W[k, 0] += a[k]
            add_row(x, t, a[k] / f[SCALE], W[k, 1:])
            if len(U) > 0:
                if intercept:
                    U[k, 0] += f[AVERAGED] * a[k]
                add_row(x, t, f[SCALE_SUM] * (a[k] / f[SCALE]), U[k, 1:])


@jit()
def learn(
    x: Any,
    t: int,
    target: tuple[int, float],
    z: Array,
    a: Array,
    state: OnlineState,
    f: Array,
    rule: OnlineRule,
) -> int:
    """The update of row t, whose scores are z (4.55); target: class and weight. The number of
    updates"""
    own, weight = target
    f[CLOCK] += 1
    updates = derivative(rule.loss, z, own, weight, a, f)
    if updates == 0 and rule.alpha == 0:
        return 0
    account(f, f[CLOCK] - 1, rule.begin, len(state.U) > 0)
    eta = step_size(rule, f[CLOCK])
    f[SCALE] *= max(0.0, 1 - eta * rule.alpha * (1 - rule.l1))
    if f[SCALE] < MIN_SCALE:
        apply_scale(state, f)
    add_update(x, t, a, -eta * weight, state, f, rule.intercept)
    if len(state.Q) > 0:
        f[L1_SUM] += eta * rule.alpha * rule.l1 / f[SCALE]
        apply_l1_to_row(x, t, state, f)
    return updates


@jit()
def finish(state: OnlineState, f: Array, begin: float) -> None:
    """Apply what is left of scale and penalty; U becomes the sums of the weights."""
    W, U, Q, _ = state
    account(f, f[CLOCK], begin, len(U) > 0)
    if len(Q) > 0:
        for j in range(1, W.shape[1]):
            apply_l1(state, f, j)
    apply_scale(state, f)
    for k in range(len(U)):
        U[k, 0] = f[AVERAGED] * W[k, 0] - U[k, 0]
        for j in range(1, U.shape[1]):
            U[k, j] = -U[k, j]


@jit()
def online_rows(
    X: Any, r: Array, s: Array, state: OnlineState, f: Array, rule: OnlineRule, rows: RowOrder
) -> int:
    """All rows, in the order of the runs: the number of updates."""
    W, U, Q, _ = state
    K, step, updates = len(W), 1 if len(s) > 1 else 0, 0
    z, a, buffer = np.empty(K), np.zeros(K), np.empty((1, W.shape[1] - 1))
    for k in range(len(U)):
        for j in range(U.shape[1]):
            U[k, j] = -U[k, j]
    for i in range(len(rows.order)):
        first = rows.order[i] * rows.run
        for t in range(first, min(len(r), first + rows.run)):
            x, place = pick(X, t, buffer)
            if len(Q) > 0:
                apply_l1_to_row(x, place, state, f)
            for k in range(K):
                z[k] = f[SCALE] * dot_row(x, place, W[k, 1:]) + W[k, 0]
                f[TOTAL] += z[k] * 0.0  # NaN if it is not finite
            if s[t * step] != 0:
                updates += learn(x, place, (r[t], s[t * step]), z, a, state, f, rule)
    finish(state, f, rule.begin)
    return updates


def online_epoch(
    batch: Batch, state: OnlineState, rule: OnlineRule, order: RowOrder, n_threads: int
) -> tuple[float, int]:
    """One epoch of an online rule, as (4.55), with an update for each row."""
    rule, rows = online_rule(rule), RowOrder(order.order, int(order.run))
    clock = state.clock
    f = np.array([1.0, 0, 0, clock[0], clock[0], clock[1], 0])
    updates = online_rows(arguments(batch.X), batch.r, batch.s, state, f, rule, rows)
    clock[:] = f[CLOCK], f[L1_SUM]
    return float(f[TOTAL]), int(updates)


@jit()
def online_pairs_rows(X: Any, pairs: Array, s: Array, w: Array, eta: float, rule: PairRule) -> int:
    """The update (10.49) of each pair: the number of updates."""
    loss, margin, width = rule
    step, updates = 1 if len(s) > 1 else 0, 0
    one, other = np.empty((1, len(w))), np.empty((1, len(w)))
    for t in range(len(pairs)):
        (xu, u), (xv, v) = pick(X, pairs[t, 0], one), pick(X, pairs[t, 1], other)
        a = (dot_row(xv, v, w) - dot_row(xu, u, w)) + margin
        change = eta * s[t * step] * pair_values(a, loss, width)[1]
        if change != 0:
            updates += 1
            add_row(xu, u, change, w)
            add_row(xv, v, -change, w)
    return updates


def online_pairs(
    X: KernelRows, pairs: Array, s: Array, w: Array, eta: float, rule: PairRule
) -> int:
    """One epoch of the ranking update (10.49) over given (preferred, other) pairs."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    return online_pairs_rows(arguments(X), pairs, s, w, float(eta), pair_rule(rule))


@jit(reorder=False)
def descend(H: Array, q: Array, l1: Array, w: Array, tol: float, max_iter: int) -> int:
    """Coordinate descent: the number of passes."""
    n = len(w)
    slope = H @ w - q  # updated with w
    passes, full = 0, True
    while passes < max_iter:
        passes += 1
        largest = 0.0
        for j in range(n):
            old = w[j]
            if H[j, j] <= 0 or not (full or old != 0):
                continue
            z = H[j, j] * old - slope[j]
            new = (z - l1[j] if z > l1[j] else z + l1[j] if z < -l1[j] else 0.0) / H[j, j]
            if new != old:
                w[j] = new
                largest = max(largest, H[j, j] * (new - old) ** 2)
                for i in range(n):
                    slope[i] += (new - old) * H[j, i]
        if largest <= tol:
            if full:
                break
            full = True  # the nonzero weights have converged: check the others
        else:
            full = False
    return passes


def coordinate_descent(H: Array, q: Array, l1: Array, w: Array, tol: float, max_iter: int) -> int:
    """Coordinate descent on a quadratic model of (10.23) or (10.31) with an L1 penalty."""
    return descend(H, q, l1, w, float(tol), int(max_iter))
