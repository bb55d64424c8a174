"""Definitions as scalar loops, as plain as possible. Nothing here comes from fastdisc."""

import itertools
import math

import numpy as np


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def dense(X):
    """A list of rows of floats, from an array or from CSR or dense rows."""
    if hasattr(X, "indptr"):
        data, indices, indptr = X.data, X.indices, X.indptr
        rows = [[0.0] * X.shape[1] for _ in range(len(indptr) - 1)]
        for t, row in enumerate(rows):
            for p in range(indptr[t], indptr[t + 1]):
                row[indices[p]] += float(data[p])
        return rows
    return [[float(x) for x in row] for row in getattr(X, "values", X)]


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


def sigmoid_error(X, r, s, W):
    """(10.39)-(10.40) with sigmoid (10.37): half the squared error, misclassified weight, gradient,
    Gauss and Newton's matrix."""
    loss, errors, g, H = 0.0, 0.0, np.zeros(len(W[0])), np.zeros((len(W[0]), len(W[0])))
    for row, target, weight in zip(dense(X), r, s, strict=True):
        (z,) = scores(row, W)
        y, x = sigmoid(z), np.array([1.0, *row])
        loss += weight * (target - y) ** 2 / 2
        errors += weight * ((y > 0.5) != bool(target))
        g -= weight * (target - y) * y * (1 - y) * x
        H += weight * (y * (1 - y)) ** 2 * np.outer(x, x)
    return loss, errors, g[None], H


def linear_error(X, r, s, W):
    """The squared error of the score itself, targets +1 and -1."""
    loss, errors, g, H = 0.0, 0.0, np.zeros(len(W[0])), np.zeros((len(W[0]), len(W[0])))
    for row, target, weight in zip(dense(X), r, s, strict=True):
        (z,) = scores(row, W)
        sign, x = 1 if target else -1, np.array([1.0, *row])
        loss += weight * (sign - z) ** 2 / 2
        errors += weight * ((z > 0) != bool(target))
        g -= weight * (sign - z) * x
        H += weight * np.outer(x, x)
    return loss, errors, g[None], H


def margin_loss(name, m):
    """A loss of the margin m = y z, and its derivative."""
    if name == "PERCEPTRON":
        return (-m, -1.0) if m <= 0 else (0.0, 0.0)
    if name == "HINGE":
        return (1 - m, -1.0) if m <= 1 else (0.0, 0.0)
    if name == "SQUARED_HINGE":
        return ((1 - m) ** 2, -2 * (1 - m)) if m < 1 else (0.0, 0.0)
    if name == "LOG":
        return math.log(1 + math.exp(-m)), -sigmoid(-m)
    if name == "MODIFIED_HUBER":
        return (-4 * m, -4.0) if m < -1 else ((1 - m) ** 2, -2 * (1 - m)) if m < 1 else (0.0, 0.0)
    return (1 - m) ** 2 / 2, m - 1


def slopes(name, z, target):
    """The loss of a row, and its derivative by each score."""
    if name == "PERCEPTRON_MULTICLASS":
        rival = max((k for k in range(len(z)) if k != target), key=lambda k: (z[k], -k))
        if z[target] > z[rival]:
            return 0.0, [0.0] * len(z)
        return z[rival] - z[target], [float(k == rival) - float(k == target) for k in range(len(z))]
    signs = [1 if target == (k if len(z) > 1 else 1) else -1 for k in range(len(z))]
    pairs = [margin_loss(name, sign * a) for sign, a in zip(signs, z, strict=True)]
    return sum(loss for loss, _ in pairs), [
        sign * slope for sign, (_, slope) in zip(signs, pairs, strict=True)
    ]


def shrunk(w, account, owed):
    """A weight after its part of an L1 penalty, towards 0 and not beyond, and the penalty applied
    so far."""
    new = max(0.0, w - (owed + account)) if w > 0 else min(0.0, w + (owed - account))
    return new, account + new - w


def online(X, r, s, shape, loss, rate, alpha, l1, intercept, order, epochs, begin):
    """Epochs of gradient steps, row by row: weights, their sums from row `begin` on, rows, loss and
    updates of the last epoch."""
    (K, D), rows, t, owed = shape, dense(X), 0, 0.0
    W, U, Q = ([[0.0] * D for _ in range(K)] for _ in range(3))
    for _ in range(epochs):
        total, updates = 0.0, 0
        for i in (i for i in order if s[i] > 0):
            t += 1
            kind, eta, power = rate
            eta = (
                eta / (power + t - 1)
                if kind == "OPTIMAL"
                else eta / t**power
                if kind == "INVSCALING"
                else eta
            )
            value, e = slopes(loss, scores(rows[i], W), r[i])
            total, updates = (
                total + s[i] * value,
                updates + (any(e) if loss == "PERCEPTRON_MULTICLASS" else sum(a != 0 for a in e)),
            )
            shrink = max(0.0, 1 - eta * alpha * (1 - l1))
            owed = shrink * owed + eta * alpha * l1
            for k in range(K):
                W[k][0] -= eta * s[i] * e[k] * intercept
                for j, x in enumerate(rows[i], 1):
                    W[k][j] = shrink * W[k][j] - eta * s[i] * e[k] * x
                    if l1:
                        W[k][j], Q[k][j] = shrunk(W[k][j], shrink * Q[k][j], owed)
                if t >= begin:
                    U[k] = [a + b for a, b in zip(U[k], W[k], strict=True)]
    return np.array(W), np.array(U), t, total, updates


def pair_loss(name, a, width):
    """Loss of a pair at a = margin + z_v - z_u, its derivative and its curvature."""
    if name == "HINGE":
        return (a, 1.0, 0.0) if a > 0 else (0.0, 0.0, 0.0)
    if name == "SQUARED_HINGE":
        return (a * a, 2 * a, 2.0) if a > 0 else (0.0, 0.0, 0.0)
    if name == "HUBER":
        if a <= 0:
            return 0.0, 0.0, 0.0
        return (
            (a * a / (2 * width), a / width, 1 / width) if a <= width else (a - width / 2, 1.0, 0.0)
        )
    return math.log(1 + math.exp(a)), sigmoid(a), sigmoid(a) * sigmoid(-a)


def rank_pairs(X, pairs, s, w, eta, name, margin, width=1.0):
    """One pass of (10.49) on a copy: new weights and the number of updates."""
    rows, w, updates = dense(X), list(map(float, w)), 0
    for (u, v), weight in zip(pairs, s, strict=True):
        zu, zv = (sum(a * b for a, b in zip(w, rows[i], strict=True)) for i in (u, v))
        slope = pair_loss(name, zv - zu + margin, width)[1]
        updates += weight * slope > 0
        w = [
            a + eta * weight * slope * (b - c) for a, b, c in zip(w, rows[u], rows[v], strict=True)
        ]
    return np.array(w), updates


def rank(z, group, y, s, name, margin, width=1.0, gain=None, discount=None):
    """(10.46) and (10.48) pair by pair: loss, weight of active pairs, derivative by the scores,
    second derivative."""
    loss, active, e, L = 0.0, 0.0, np.zeros(len(z)), np.zeros((len(z), len(z)))
    for u in range(len(z)):
        for v in range(len(z)):
            if group[u] == group[v] and y[u] > y[v]:
                p = s[u] * s[v]
                if gain is not None:
                    p *= (gain[u] - gain[v]) * abs(discount[u] - discount[v])
                a = margin + z[v] - z[u]
                value, slope, bend = pair_loss(name, a, width)
                loss += p * value
                active += p * (z[v] >= z[u] if name == "LOGISTIC" else a > 0)
                e[v] += p * slope
                e[u] -= p * slope
                for i, j, sign in ((u, u, 1), (v, v, 1), (u, v, -1), (v, u, -1)):
                    L[i, j] += sign * p * bend
    return loss, active, e, L


def worst_first(y, z):
    """y from the highest score down; of equal scores the worse first."""
    return [b for _, b in sorted(zip([-a for a in z], y, strict=True))]


def average_precision(y, z, k):
    ranked = worst_first(y, z)[:k]
    hits = [sum(ranked[: i + 1]) / (i + 1) for i in range(len(ranked)) if ranked[i]]
    return sum(hits) / min(k, sum(y)) if any(y) else math.nan


def reciprocal_rank(y, z, k):
    ranked = worst_first(y, z)[:k]
    return (1 / (1 + ranked.index(1)) if 1 in ranked else 0.0) if any(y) else math.nan


def expected_reciprocal_rank(y, z, k):
    total, reach = 0.0, 1.0
    for i, p in enumerate(worst_first(y, z)[:k]):
        total += reach * p / (i + 1)
        reach *= 1 - p
    return total if any(y) else math.nan


def pairwise_accuracy(y, z):
    found = [
        1.0 if z[u] > z[v] else 0.5 if z[u] == z[v] else 0.0
        for u in range(len(y))
        for v in range(len(y))
        if y[u] > y[v]
    ]
    return sum(found) / len(found) if found else math.nan


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
    """Figures 10.6 and 10.8: weights, losses and misclassified rows before each step and after the
    last."""
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
    """Weights, sums and scatter, term by term; kind 0 sums, 1 counts, 2 squares, 3 scatter, 4
    scatter with squares as further columns."""
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
    """c_k - |A_k (x - mean_k)|^2 / 2 for each row and class; A_k a matrix, or a diagonal."""
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


def both_ways(g, K, flip):
    """{(i, j): value} for all i != j from those of the pairs i < j, in their order; flip turns g_ij
    into g_ji."""
    found = {}
    for value, (i, j) in zip(g, itertools.combinations(range(K), 2), strict=True):
        found[i, j], found[j, i] = float(value), flip(float(value))
    return found


def pair_sums(g, K):
    """sum_j g_ij for each i."""
    g = both_ways(g, K, lambda v: -v)
    return [sum(g[i, j] for j in range(K) if j != i) for i in range(K)]


def pair_least(g, K):
    """min_j g_ij for each i."""
    g = both_ways(g, K, lambda v: -v)
    return [min(g[i, j] for j in range(K) if j != i) for i in range(K)]


def pair_votes(g, K):
    """Pairs that each class wins; the first of two wins a tie."""
    won = [0] * K
    for value, (i, j) in zip(g, itertools.combinations(range(K), 2), strict=True):
        won[i if value >= 0 else j] += 1
    return won


def pair_winner(g, K):
    """The class with g_ij > 0 for every other j, or None."""
    g = both_ways(g, K, lambda v: -v)
    return next((i for i in range(K) if all(g[i, j] > 0 for j in range(K) if j != i)), None)


def coupled_quadratic(r, K):
    """p with sum 1 that minimises the sum over i != j of (r_ji p_i - r_ij p_j)^2, by least squares
    of K - 1 unknowns."""
    r = both_ways(r, K, lambda v: 1 - v)
    rows, right = [], []
    for i, j in itertools.combinations(range(K), 2):
        row = [0.0] * K
        row[i], row[j] = r[j, i], -r[i, j]
        rows.append([a - row[-1] for a in row[:-1]])
        right.append(-row[-1])
    first = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    return np.append(first, 1 - first.sum())


def coupled_moments(p, r, K):
    """sum_j p_i / (p_i + p_j) and sum_j r_ij of each i: equal at the maximum of the likelihood."""
    r = both_ways(r, K, lambda v: 1 - v)
    made = [sum(p[i] / (p[i] + p[j]) for j in range(K) if j != i) for i in range(K)]
    return made, [sum(r[i, j] for j in range(K) if j != i) for i in range(K)]


def monomials(x, degree, different=False):
    """Products of up to `degree` numbers of x, the shortest first; `different` ones, or any."""
    pick = itertools.combinations if different else itertools.combinations_with_replacement
    return [
        math.prod(term) for k in range(1, degree + 1) for term in pick([float(v) for v in x], k)
    ]
