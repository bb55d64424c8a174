"""From discriminants of two classes to one decision among K: the rules of sections 10.3 and 10.4, and posteriors from pairs.

Scores of pairs are G (n, P), a column for each pair i < j in the order of `pairs`, positive for i, as g_ij of (10.9).
"""

from __future__ import annotations

import numpy as np

from . import special

TINY = 1e-7  # from 0 and 1: pairs that are certain would leave the equations of a coupling without a solution
SLICE = 1 << 11  # rows whose pairs are coupled at a time: K x K numbers each


def pairs(K):
    """Every pair of class codes i < j, (P, 2), those of class 0 first."""
    return np.column_stack(np.triu_indices(K, 1))


def incidence(K):
    """(P, K): +1 where a pair's score speaks for a class, -1 where it speaks against it, else 0."""
    P = pairs(K)
    B = np.zeros((len(P), K))
    B[np.arange(len(P)), P[:, 0]], B[np.arange(len(P)), P[:, 1]] = 1, -1
    return B


def sums(G, K):
    """g_i = sum_j g_ij (10.10), (n, K)."""
    return G @ incidence(K)


def least(G, K):
    """min_j g_ij, (n, K): positive for the class that wins all of its pairs (10.9), of which there is at most one."""
    low = np.full((K, len(G)), np.inf)
    for (i, j), g in zip(pairs(K), np.ascontiguousarray(G.T), strict=True):
        np.minimum(low[i], g, out=low[i])
        np.minimum(low[j], -g, out=low[j])
    return low.T


def votes(G, K):
    """How many of its pairs each class wins, (n, K)."""
    B = incidence(K)
    first = (G >= 0).astype(np.float64)
    return first @ (B > 0) + (1 - first) @ (B < 0)


def majority(G, K):
    """Votes, and less than half of one more by the sums, (n, K): the largest has the most votes, and of those the largest sum."""
    S = sums(G, K)
    return votes(G, K) + S / (3 * (np.abs(S) + 1))


def tied(G, K):
    """Rows on which two classes have the most votes, (n,): the ambiguous regions of figure 4.2, on the right."""
    V = np.sort(votes(G, K), axis=1)
    return V[:, -1] == V[:, -2]


def undecided(G, K):
    """Rows on which no class wins all of its pairs, (n,)."""
    return ~(least(G, K) > 0).any(axis=1)


def not_single(Z):
    """Rows on which none or several of K scores are positive (10.7), (n,): the regions of figure 4.2, on the left."""
    return (Z > 0).sum(axis=1) != 1


def _square(R, K):
    """r_ij = P(i | i or j) for all i, j, (K, K, n), with 0 on the diagonal; kept off 0 and 1."""
    full = np.zeros((K, K, len(R)))
    for (i, j), r in zip(pairs(K), R.T, strict=True):
        full[i, j] = np.clip(r, TINY, 1 - TINY)
        full[j, i] = 1 - full[i, j]
    return full


def coupled(R, K, kind):
    """Posteriors (n, K) of K classes from those of pairs, R (n, P); a slice of rows at a time."""
    couple, P = COUPLINGS[kind], np.empty((len(R), K))
    for begin in range(0, len(R), SLICE):
        P[begin : begin + SLICE] = couple(_square(R[begin : begin + SLICE], K), K).T
    return P


def quadratic(r, K):
    """p that minimises sum_ij (r_ji p_i - r_ij p_j)^2, with sum 1 (Wu, Lin and Weng 2004, second method).

    With Q_ii = sum_j r_ji^2 and Q_ij = -r_ji r_ij, all entries of Q p are the same number b. Q is singular where the pairs agree
    with each other exactly, but Q + 1 1' never is, and (Q + 1 1') p = (b + 1) 1: p is the solution for 1, divided by its sum. The
    elimination runs for all rows of a slice side by side, which takes half the time of LAPACK on one row after the other.
    """
    A = 1 - r * r.transpose(1, 0, 2)  # (K, K, n)
    A[np.arange(K), np.arange(K)] = 1 + (r**2).sum(axis=0)
    p = np.ones((K, r.shape[2]))
    for k in range(K - 1):
        factor = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k + 1 :] -= factor[:, None] * A[k, k + 1 :]
        p[k + 1 :] -= factor * p[k]
    for k in range(K - 1, -1, -1):
        p[k] = (p[k] - np.einsum("jn,jn->n", A[k, k + 1 :], p[k + 1 :])) / A[k, k]
    p = np.maximum(p, 0)
    return p / p.sum(axis=0)


def likelihood(r, K, rounds=100, tol=1e-10):
    """p whose pairs p_i / (p_i + p_j) are nearest to r_ij in likelihood (Hastie and Tibshirani 1998).

    Newton's method on log p, in which the likelihood is concave, from the quadratic coupling. A step that changes log odds by up
    to u is taken to the share log(1 + u) / u: the curvature cannot change faster than that, so every step gains.
    """
    R, off = r.transpose(2, 0, 1), ~np.eye(K, dtype=bool)  # (n, K, K)
    t = np.log(np.maximum(quadratic(r, K), TINY)).T  # (n, K)
    for _ in range(rounds):
        Y = off * special.sigmoid(t[:, :, None] - t[:, None, :])
        g = (R - Y).sum(axis=2)
        if np.abs(g).max() <= tol:
            break
        C = Y * Y.transpose(0, 2, 1)
        H = np.eye(K) * C.sum(axis=2)[:, :, None] - C + 1 / K  # a constant added to log p changes nothing: lifted
        step = np.linalg.solve(H, g[:, :, None])[:, :, 0]
        u = np.maximum(np.ptp(step, axis=1, keepdims=True), 1e-300)
        t += step * np.log1p(u) / u
    return special.softmax(t).T


COUPLINGS = {"quadratic": quadratic, "likelihood": likelihood}


def check_label(reject_label, classes):
    """ValueError for what cannot stand for a rejected row."""
    if reject_label is not None and (not np.isscalar(reject_label) or reject_label in classes.tolist()):
        raise ValueError(f"reject_label must be a label that is none of the classes {classes.tolist()}, got {reject_label!r}")


def answers(classes, codes, rejected, reject_label):
    """Labels of the codes, and `reject_label` where a row is rejected; without one the label stays."""
    if reject_label is None:
        return classes[codes]
    names = np.array([reject_label])
    same = names.dtype.kind in "US" if classes.dtype.kind in "US" else names.dtype.kind in "iufb" and classes.dtype.kind in "iufb"
    kind = np.result_type(classes, names) if same and classes.dtype.kind != "b" else object
    if classes.dtype.kind in "iu" and names.dtype.kind in "iu" and np.dtype(kind).kind == "f":
        kind = object  # uint64 beside -1: floats would be other labels
    found = classes.astype(kind)[codes]
    found[rejected] = reject_label
    return found
