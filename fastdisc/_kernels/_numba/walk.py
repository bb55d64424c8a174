"""The online kernel: rows one after the other, on one thread. What is lazy here, and why, is told in _cython/rules.pxi."""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from .. import SMALLEST, STEEPEST, Loss, Rate
from .online import add_row, dot_row, pick
from .options import jit

PERCEPTRON, WINNER, HINGE, LOG = int(Loss.PERCEPTRON), int(Loss.WINNER), int(Loss.HINGE), int(Loss.LOG)
MODIFIED_HUBER, SQUARED = int(Loss.MODIFIED_HUBER), int(Loss.SQUARED)
OPTIMAL, INVSCALING = int(Rate.OPTIMAL), int(Rate.INVSCALING)
# What changes from row to row beside the weights, in one array.
SCALE, MASS, COUNT, TICK, SEEN, OWED, TOTAL = range(7)


@jit()
def slope(loss, m):
    """A loss of the margin m = y z, and its derivative. What is not a number is a mistake."""
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
    if m > 1:
        return 0.0, 0.0
    if loss == MODIFIED_HUBER and m < -1:
        return -4.0 * m, -4.0
    return h * h, -2.0 * h


@jit()
def learn_scores(loss, z, own, weight, a, f):
    """z -> loss, and its derivative by z in a; the number of updates"""
    K, count = len(z), 0
    if loss == WINNER:
        a[:] = 0
        rival = 1 if own == 0 else 0
        for k in range(K):
            if k != own and z[k] > z[rival]:
                rival = k
        if not z[own] > z[rival]:
            a[own], a[rival] = -1.0, 1.0
            f[TOTAL] += weight * (z[rival] - z[own])
            count = 1
        return count
    for k in range(K):
        y = 1.0 if own == (k if K > 1 else 1) else -1.0
        value, m = slope(loss, y * z[k])
        f[TOTAL] += weight * value
        a[k] = y * m if abs(m) <= STEEPEST or m != m else y * math.copysign(STEEPEST, m)
        count += a[k] != 0
    return count


@jit()
def advance(f, tick, begin, averaged):
    """The rows up to the tick-th have passed with the weights as they are."""
    rows = tick - max(f[SEEN], begin - 1)
    if averaged and rows > 0:
        f[MASS] += rows * f[SCALE]
        f[COUNT] += rows
    f[SEEN] = tick


@jit()
def fold(W, U, Q, f):
    """The scale into the weights; U is then minus the sum of the weights so far."""
    for k in range(len(W)):
        for j in range(1, W.shape[1]):
            if len(U) > 0:
                U[k, j] -= f[MASS] * W[k, j]
            if len(Q) > 0:
                Q[k, j] *= f[SCALE]
            W[k, j] *= f[SCALE]
    f[OWED] *= f[SCALE]
    f[MASS], f[SCALE] = 0.0, 1.0


@jit()
def clip(W, U, Q, f, j):
    """Column j of the weights pays what it owes of the L1 penalty: towards 0, and not beyond."""
    for k in range(len(W)):
        old = W[k, j]
        new = max(0.0, old - (f[OWED] + Q[k, j])) if old > 0 else min(0.0, old + (f[OWED] - Q[k, j]))
        Q[k, j] += new - old
        W[k, j] = new
        if len(U) > 0:
            U[k, j] += f[MASS] * (new - old)


def pay(X, t, W, U, Q, f):
    """The weights that row t reads pay what they owe."""


@overload(pay)
def _pay(X, t, W, U, Q, f):
    return pay_csr if isinstance(X, types.BaseTuple) else pay_dense


def pay_dense(X, t, W, U, Q, f):
    for j in range(1, W.shape[1]):
        clip(W, U, Q, f, j)


def pay_csr(X, t, W, U, Q, f):
    _, indices, indptr = X
    for i in range(indptr[t], indptr[t + 1]):
        clip(W, U, Q, f, indices[i] + 1)


@jit()
def learn(X, t, own, weight, z, a, W, U, Q, f, rule):
    """The step of row t, whose scores are z   (4.55); the number of updates"""
    loss, rate, eta, power, alpha, l1, intercept, begin = rule
    f[TICK] += 1
    changes = learn_scores(loss, z, own, weight, a, f)
    if changes == 0 and alpha == 0:
        return 0
    advance(f, f[TICK] - 1, begin, len(U) > 0)
    if rate == OPTIMAL:
        eta = eta / (power + f[TICK] - 1)
    elif rate == INVSCALING:
        eta = eta / f[TICK] ** power
    f[SCALE] *= max(0.0, 1 - eta * alpha * (1 - l1))
    if f[SCALE] < SMALLEST:
        fold(W, U, Q, f)
    for k in range(len(W)):
        if a[k] != 0:
            a[k] *= -eta * weight
            if intercept:
                W[k, 0] += a[k]
            add_row(X, t, a[k] / f[SCALE], W[k, 1:])
            if len(U) > 0:
                if intercept:
                    U[k, 0] += f[COUNT] * a[k]
                add_row(X, t, f[MASS] * (a[k] / f[SCALE]), U[k, 1:])
    if len(Q) > 0:
        f[OWED] += eta * alpha * l1 / f[SCALE]
        pay(X, t, W, U, Q, f)
    return changes


@jit()
def online_rows(X, r, s, W, U, Q, f, rule, order, run):
    """All rows, in the order of the runs; on return U has the sums of the weights."""
    K, step, updates = len(W), 1 if len(s) > 1 else 0, 0
    z, a, room = np.empty(K), np.zeros(K), np.empty((1, W.shape[1] - 1))
    for k in range(len(U)):
        for j in range(U.shape[1]):
            U[k, j] = -U[k, j]
    for i in range(len(order)):
        for t in range(order[i] * run, min(len(r), (order[i] + 1) * run)):
            x, i_x = pick(X, t, room)
            if len(Q) > 0:
                pay(x, i_x, W, U, Q, f)  # the row reads weights that are up to date
            for k in range(K):
                z[k] = f[SCALE] * dot_row(x, i_x, W[k, 1:]) + W[k, 0]
                f[TOTAL] += z[k] * 0.0  # NaN if one is not finite
            if s[t * step] != 0:
                updates += learn(x, i_x, r[t], s[t * step], z, a, W, U, Q, f, rule)
    advance(f, f[TICK], rule[7], len(U) > 0)
    if len(Q) > 0:
        for j in range(1, W.shape[1]):
            clip(W, U, Q, f, j)
    fold(W, U, Q, f)
    for k in range(len(U)):
        U[k, 0] = f[COUNT] * W[k, 0] - U[k, 0]
        for j in range(1, U.shape[1]):
            U[k, j] = -U[k, j]
    return updates
