"""The reference: one readable line per equation, in float64, with whatever temporaries that takes."""

from __future__ import annotations

import itertools
from functools import wraps

import numpy as np
from scipy.sparse import csr_array

from . import CSR, STEEPEST, Link, Loss, Mapped, Moment, Rate
from ._numpy_rank import group_metric, pair_bend, pair_link, pair_values, rank_bend, rank_hessian, rank_link  # noqa: F401
from .maps import features

CELLS = 1 << 20  # of features that are made at a time


def _float64(X):
    """X as something that multiplies in float64."""
    if isinstance(X, CSR):
        return csr_array((X.data, X.indices, X.indptr), shape=X.shape).astype(np.float64)
    if isinstance(X, Mapped):
        return features(X)
    return np.asarray(X, dtype=np.float64)


def _in_parts(join, *of_rows):
    """A kernel on mapped rows, some at a time, so that the features of all never stand in memory; the results joined.

    `of_rows` are the places of the arguments that have a number for each row, or one for all.
    """

    def decorate(kernel):
        @wraps(kernel)
        def run(X, *rest):
            if not isinstance(X, Mapped) or X.shape[0] * X.shape[1] <= CELLS:
                return kernel(X, *rest)
            step, found = max(1, CELLS // X.shape[1]), []
            for lo in range(0, len(X), step):
                rows = slice(lo, lo + step)
                own = [a[rows] if i in of_rows and len(a) > 1 else a for i, a in enumerate(rest, 1)]
                found.append(kernel(X.take_rows(rows), *own))
            return join(found)

        return run

    return decorate


def _summed(found):
    return tuple(None if column[0] is None else sum(column) for column in zip(*found, strict=True))


def _score(X, W):
    """z_k = w_k' x + w_k0   (10.6)"""
    return X @ W[:, 1:].T + W[:, 0]


def _accumulate(X, E):
    """G = sum_t e^t [1 x^t]   (10.24), (10.33)"""
    return np.column_stack([E.sum(axis=0), (X.T @ E).T])


def _gram(X, c):
    """sum_t c^t [1 x^t][1 x^t]'   (seed E)"""
    if not isinstance(X, np.ndarray):
        X = X.toarray()
    X1 = np.column_stack([np.ones(len(X)), X])
    return X1.T @ (c[:, None] * X1)


def sigmoid(Z):
    """y = 1 / (1 + exp(-z))   (10.15)"""
    u = np.exp(-np.abs(Z))
    return np.where(Z > 0, 1, u) / (1 + u)


def softmax(Z):
    """y_k = exp(z_k) / sum_j exp(z_j)   (10.29)"""
    U = np.exp(Z - Z.max(axis=1, keepdims=True))
    return U / U.sum(axis=1, keepdims=True)


def link_logistic(Z, r):
    """z -> loss (10.23), prediction, error (10.24), curvature"""
    z, y = Z[:, 0], sigmoid(Z)
    loss = np.log1p(np.exp(-np.abs(z))) + np.where((z > 0) == (r == 1), 0, np.abs(z))
    return loss, z > 0, y - r[:, None], lambda i, j: y[:, 0] * sigmoid(-z)


def link_softmax(Z, r):
    """z -> loss (10.31), prediction, error (10.33), curvature (10.32)"""
    Y = softmax(Z)
    R = np.eye(Z.shape[1])[r]
    top = Z.max(axis=1)
    loss = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + (top - Z[np.arange(len(r)), r])
    return loss, Z.argmax(axis=1), Y - R, lambda i, j: Y[:, i] * ((i == j) - Y[:, j])


def link_sigmoid(Z, r):
    """z -> half the squared error (10.39), prediction, error (10.40), curvature"""
    z, y = Z[:, 0], sigmoid(Z)[:, 0]
    p, miss = y * sigmoid(-z), np.where(r == 1, -sigmoid(-z), y)  # y (1 - y), y - r
    return miss**2 / 2, z > 0, (miss * p)[:, None], lambda i, j: p**2


def link_linear(Z, r):
    """z -> half the squared error, prediction, error, curvature   (4.1.7)"""
    z = Z[:, 0]
    miss = z - (2 * r - 1)
    return miss**2 / 2, z > 0, miss[:, None], lambda i, j: np.ones(len(z))


LINKS = {Link.LOGISTIC: link_logistic, Link.SOFTMAX: link_softmax, Link.SIGMOID: link_sigmoid, Link.LINEAR: link_linear}


def _with_offset(Z, o):
    """z_k + o_k"""
    return Z + o if len(o) else Z


@_in_parts(_summed, 2, 3, 4)
def sweep(X, link, r, s, o, W, order, grid, n_threads):
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    X = _float64(X)
    loss, chosen, E, curvature = LINKS[link](_with_offset(_score(X, W), o), r)
    G = _accumulate(X, s[:, None] * E)
    K = range(len(W))
    H = np.block([[_gram(X, s * curvature(i, j)) for j in K] for i in K]) if order == 2 else None
    return (s * loss).sum(), (s * (chosen != r)).sum(), G, H


def sweeps(X, link, r, s, sides, W, order, grid, n_threads):
    """Losses, errors, gradients and Hessians of many two-class problems over the same rows: (10.7)-(10.9), (10.23)-(10.24)."""
    none = np.empty((0, 1))
    found = [
        sweep(X, link, side[r] > 0, s * (side[r] != 0), none, w[None], order, grid, 1) for side, w in zip(sides.T, W, strict=True)
    ]
    losses, errors, G, H = zip(*found, strict=True)
    return np.array(losses), np.array(errors), np.vstack(G), np.stack(H) if order == 2 else None


@_in_parts(sum, 2, 3)
def product(X, link, s, o, W, V, grid, n_threads):
    """The Hessian times a matrix like W, without the Hessian: (10.32), as used by (10.33)."""
    X = _float64(X)
    Z, U = _with_offset(_score(X, W), o), _score(X, V)
    if link == Link.LOGISTIC:
        return _accumulate(X, s[:, None] * sigmoid(Z) * sigmoid(-Z) * U)
    if link in (Link.SIGMOID, Link.LINEAR):
        return _accumulate(X, s[:, None] * (U if link == Link.LINEAR else (sigmoid(Z) * sigmoid(-Z)) ** 2 * U))
    Y = softmax(Z)
    return _accumulate(X, s[:, None] * Y * (U - (Y * U).sum(axis=1, keepdims=True)))


def times(X, B, Z, grid, n_threads):
    """Rows times a matrix, into Z: (10.6); of the transposed rows, (10.33)."""
    Z[:] = _float64(X) @ B


def coordinate_descent(H, q, l1, w, tol, max_iter):
    """Minimise a quadratic model of (10.23) or (10.31) plus an L1 penalty, weight by weight; w is changed; the passes."""
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


@_in_parts(lambda found: (np.vstack([Y for Y, _ in found]), all(finite for _, finite in found)))
def outputs(X, link, W, grid, n_threads):
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    Z = _score(_float64(X), W)
    two_classes = lambda Z: np.hstack([sigmoid(-Z), sigmoid(Z)])  # noqa: E731
    activation = {Link.IDENTITY: np.asarray, Link.LOGISTIC: two_classes, Link.SOFTMAX: softmax}[link]
    return activation(Z), bool(np.isfinite(Z).all())


def _with_constant(X):
    """[1 x^t], dense, a row at a time."""
    X = X.toarray() if not isinstance(X, np.ndarray) else X
    return np.column_stack([np.ones(len(X)), X])


# Of the margin m = y z with y = +1 or -1: the loss, and its derivative. What is not a number is a mistake.
MARGINS = {
    Loss.PERCEPTRON: lambda m: (np.maximum(0, -m), -1.0 * ~(m > 0)),  # (4.54)
    Loss.HINGE: lambda m: (np.maximum(0, 1 - m), -1.0 * ~(m > 1)),
    Loss.SQUARED_HINGE: lambda m: (np.maximum(0, 1 - m) ** 2, -2 * np.maximum(0, 1 - m)),
    Loss.LOG: lambda m: (np.log1p(np.exp(-np.abs(m))) + np.maximum(0, -m), -sigmoid(-m)),
    Loss.MODIFIED_HUBER: lambda m: (
        np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2),
        np.where(m < -1, -4, -2 * np.maximum(0, 1 - m)),
    ),
    Loss.SQUARED: lambda m: ((1 - m) ** 2 / 2, m - 1),
}


def winner(z, own):
    """One's own class against the best of the others."""
    rival = np.where(np.arange(len(z)) == own, -np.inf, z).argmax()
    e = np.zeros(len(z))
    if z[own] > z[rival]:
        return 0.0, e
    e[own], e[rival] = -1, 1
    return z[rival] - z[own], e


def _learn(loss, z, own):
    """z -> loss, its derivative by z, and the number of updates"""
    if loss == Loss.WINNER:
        total, e = winner(z, own)
        return total, e, int(e.any())
    y = np.where(np.arange(len(z)) == (own if len(z) > 1 else 1 - own), 1.0, -1.0)
    losses, slopes = MARGINS[loss](y * z)
    return losses.sum(), np.clip(y * slopes, -STEEPEST, STEEPEST), np.count_nonzero(slopes)


def _rate(rule, t):
    """The step at the t-th row."""
    if rule.rate == Rate.OPTIMAL:
        return rule.eta / (rule.power + t - 1)
    return rule.eta / t**rule.power if rule.rate == Rate.INVSCALING else rule.eta


def _clip(W, Q, owed):
    """Bring weights up to date with the L1 penalty: towards 0, and not beyond, by what is owed and was not taken yet."""
    new = np.where(W > 0, np.maximum(0, W - (owed + Q)), np.minimum(0, W + (owed - Q)))
    Q += new - W
    W[:] = new


def online(X, r, s, W, U, Q, clock, rule, walk, n_threads):
    """One pass of an online rule, as (4.55), with a step for each row; W is changed; the loss and the number of updates."""
    X, s, total, updates = _with_constant(_float64(X)), np.broadcast_to(s, len(r)), 0.0, 0
    learned = np.append(float(rule.intercept), np.ones(X.shape[1] - 1))
    for t in itertools.chain.from_iterable(range(run * walk.run, min(len(r), (run + 1) * walk.run)) for run in walk.order):
        z = W @ X[t]
        total += (z - z).sum()  # NaN if one is not finite
        if s[t] == 0:
            continue
        clock[0] += 1
        eta = _rate(rule, clock[0])
        loss, e, count = _learn(rule.loss, z, r[t])
        total, updates = total + s[t] * loss, updates + count
        shrink = max(0.0, 1 - eta * rule.alpha * (1 - rule.l1))
        W[:, 1:] *= shrink
        W -= np.outer(eta * s[t] * e, learned * X[t])
        if len(Q):
            Q *= shrink
            clock[1] = shrink * clock[1] + eta * rule.alpha * rule.l1
            _clip(W[:, 1:], Q[:, 1:], clock[1])
        if len(U) and clock[0] >= rule.begin:
            U += W
    return float(total), int(updates)


@_in_parts(sum, 1)
def combine(X, e, grid, n_threads):
    """Rows times errors, summed: (10.24)."""
    return _float64(X).T @ e


def rank_sweep(X, places, queries, rule, w, o, grid, n_threads):
    """Loss over all ordered pairs within queries, its gradient by the weights, and the scores: (10.46)-(10.48)."""
    z = outputs(X, Link.IDENTITY, np.concatenate([[0.0], w])[None, :], grid, n_threads)[0][:, 0]
    z, e = z + o if len(o) else z, np.empty(len(z))
    loss, active, e[places] = rank_link(z[places], queries, rule, grid, n_threads)
    return loss, active, combine(X, e, grid, n_threads), z


def rank_pairs(X, pairs, s, w, eta, rule):
    """One pass of the ranking rule (10.49) over (preferred, other) pairs; w is changed; the number of updates."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    X = _with_constant(_float64(X))[:, 1:]
    updates = 0
    for (u, v), step in zip(pairs, eta * np.broadcast_to(s, len(pairs)), strict=True):
        _, slope, _ = pair_values((w @ X[v] - w @ X[u]) + rule.margin, rule)
        updates += step * slope != 0
        w += step * slope * (X[u] - X[v])
    return int(updates)


def class_moments(X, r, s, shift, group, kind, grid, n_threads):
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    X = _with_constant(_float64(X))[:, 1:]
    s, R = np.broadcast_to(s, len(r)), np.eye(len(shift))[r]  # (N,), (N, K)
    U = np.where(shift[r] < X, 1.0, 0.0) + 0 * X if kind == Moment.COUNTS else X - shift[r]
    n, M = R.T @ s, R.T @ (s[:, None] * U)
    if kind in (Moment.SUMS, Moment.COUNTS):
        return n, M, None
    if kind == Moment.SQUARES:
        return n, M, R.T @ (s[:, None] * U**2)
    U = np.hstack([U, U**2]) if kind == Moment.QUARTIC else U
    members = [np.flatnonzero(group[r] == g) for g in range(group.max() + 1)]
    return n, M, np.stack([U[rows].T @ (s[rows, None] * U[rows]) for rows in members])


def quadratic(X, mean, A, c, grid, n_threads):
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    X = _with_constant(_float64(X))[:, 1:]
    Z = [
        c_k - (((X - m) * A_k if A_k.ndim == 1 else (X - m) @ A_k.T) ** 2).sum(axis=1) / 2
        for m, A_k, c_k in zip(mean, A, c, strict=True)
    ]
    return np.stack(Z, axis=1), bool(np.isfinite(Z).all())


def expand(X, grid, n_threads):
    """Features of rows, X Mapped: (10.3), (10.35)."""
    return _float64(X)
