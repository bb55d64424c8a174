"""Definitions written out with scalar loops, as slowly and plainly as possible. Nothing here comes from fastdisc."""

import itertools
import math

import numpy as np


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def dense(X):
    """A list of rows of floats, from an array, anything with toarray, or a (data, indices, indptr, columns) tuple."""
    if isinstance(X, tuple):
        data, indices, indptr, d = X
        rows = [[0.0] * d for _ in range(len(indptr) - 1)]
        for t, row in enumerate(rows):
            for p in range(indptr[t], indptr[t + 1]):
                row[indices[p]] += float(data[p])
        return rows
    return [[float(x) for x in row] for row in X]


def scores(row, W):
    return [sum(w * x for w, x in zip(wk[1:], row, strict=True)) + wk[0] for wk in W]


def logistic(X, r, s, W):
    """Figure 10.6's inner loop: loss, misclassified weight, gradient (1, d+1)."""
    loss, errors, g = 0.0, 0.0, [0.0] * len(W[0])
    for row, target, weight in zip(dense(X), r, s, strict=True):
        (z,) = scores(row, W)
        y = sigmoid(z)
        loss -= weight * (math.log(y) if target else math.log(1 - y))
        errors += weight * ((y > 0.5) != bool(target))
        for j, x in enumerate([1.0, *row]):
            g[j] += weight * (y - target) * x
    return loss, errors, np.array([g])


def softmax(X, r, s, W):
    """Figure 10.8's inner loop: loss, misclassified weight, gradient (K, d+1)."""
    loss, errors, G = 0.0, 0.0, [[0.0] * len(W[0]) for _ in W]
    for row, target, weight in zip(dense(X), r, s, strict=True):
        z = scores(row, W)
        total = sum(math.exp(a) for a in z)
        y = [math.exp(a) / total for a in z]
        loss -= weight * math.log(y[target])
        errors += weight * (max(range(len(z)), key=lambda k: z[k]) != target)
        for k in range(len(W)):
            for j, x in enumerate([1.0, *row]):
                G[k][j] += weight * (y[k] - (k == target)) * x
    return loss, errors, np.array(G)


def perceptron(X, r, s, W, eta):
    """One epoch of (4.55) on copies: new weights and the number of mistakes."""
    W, mistakes = [list(map(float, wk)) for wk in W], 0
    for row, target, weight in zip(dense(X), r, s, strict=True):
        z, x = scores(row, W), [1.0, *row]
        if len(W) == 1:
            sign = 1 if target else -1
            changes = [(0, sign)] if sign * z[0] <= 0 else []
        else:
            rival = max((k for k in range(len(W)) if k != target), key=lambda k: (z[k], -k))
            changes = [(target, 1), (rival, -1)] if z[rival] >= z[target] else []
        mistakes += bool(changes) and weight > 0
        for k, sign in changes:
            W[k] = [w + eta * weight * sign * a for w, a in zip(W[k], x, strict=True)]
    return np.array(W), mistakes


def rank_pairs(X, pairs, s, w, eta, margin):
    """One pass of (10.49) on a copy: new weights and the number of updates."""
    rows, w, updates = dense(X), list(map(float, w)), 0
    for (u, v), weight in zip(pairs, s, strict=True):
        zu, zv = (sum(a * b for a, b in zip(w, rows[i], strict=True)) for i in (u, v))
        if zv - zu + margin > 0:
            updates += weight > 0
            w = [a + eta * weight * (b - c) for a, b, c in zip(w, rows[u], rows[v], strict=True)]
    return np.array(w), updates


def rank(X, r, s, starts, w, margin):
    """(10.46)-(10.48) pair by pair: error, active weight, subgradient."""
    rows, error, active, g = dense(X), 0.0, 0.0, np.zeros(len(w))
    z = [sum(a * b for a, b in zip(w, row, strict=True)) for row in rows]
    for lo, hi in itertools.pairwise(starts):
        for u in range(lo, hi):
            for v in range(lo, hi):
                a = z[v] - z[u] + margin
                if r[u] > r[v] and a > 0:
                    error += s[u] * s[v] * a
                    active += s[u] * s[v]
                    g += s[u] * s[v] * (np.array(rows[v]) - np.array(rows[u]))
    return error, active, g


def numerical_gradient(f, W, step=1e-6):
    """Central differences of a scalar function."""
    G = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[place] += step
        down[place] -= step
        G[place] = (f(up) - f(down)) / (2 * step)
    return G


def gradient_descent(X, r, W, eta, steps):
    """Figures 10.6 and 10.8: weights, losses and misclassifications before each step and after the last."""
    losses, errors = [], []
    ones, total = [1.0] * len(r), logistic if len(W) == 1 else softmax
    for step in range(steps + 1):
        loss, wrong, G = total(X, r, ones, W)
        losses.append(loss)
        errors.append(wrong)
        if step < steps:
            W = W - eta * G
    return W, losses, errors


def class_moments(X, r, s, shift, group, kind):
    """Weights, sums and scatter, term by term; kind 0 sums, 1 counts, 2 squares, 3 scatter, 4 with squares as more columns."""
    rows, K, d = dense(X), len(shift), len(shift[0])
    n, M, Q = np.zeros(K), np.zeros((K, d)), np.zeros((K, d))
    width = 2 * d if kind == 4 else d
    S = np.zeros((max(group) + 1, width, width))
    for t, row in enumerate(rows):
        k, weight = r[t], s[t] if len(s) > 1 else s[0]
        u = [float(x > c) if kind == 1 else x - c for x, c in zip(row, shift[k], strict=True)]
        v = u + [a * a for a in u] if kind == 4 else u
        n[k] += weight
        for i in range(d):
            M[k, i] += weight * u[i]
            Q[k, i] += weight * u[i] ** 2
        for i in range(width if kind > 2 else 0):
            for j in range(width):
                S[group[k], i, j] += weight * v[i] * v[j]
    return n, M, (None, None, Q, S, S)[kind]


def quadratic(X, mean, A, c):
    """c_k - |A_k (x - mean_k)|^2 / 2 for each row and class; A_k a matrix, or the list of a diagonal."""
    Z = []
    for row in dense(X):
        Z.append([])
        for k in range(len(mean)):
            u = [x - m for x, m in zip(row, mean[k], strict=True)]
            if np.ndim(A[k]) == 1:
                v = [a * b for a, b in zip(A[k], u, strict=True)]
            else:
                v = [sum(a * b for a, b in zip(line, u, strict=True)) for line in A[k]]
            Z[-1].append(c[k] - sum(a * a for a in v) / 2)
    return np.array(Z)
