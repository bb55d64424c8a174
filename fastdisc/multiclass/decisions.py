"""From two-class discriminants to one of K classes: the rules of sections 10.3 and 10.4, and the
coupling of pairwise posteriors.

Scores of pairs are G (n, P), one column for each pair i < j in the order of `class_pairs`, positive
for i, as g_ij of (10.9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import special
from .._kernels.contract import Array

# Pairwise posteriors are kept this far from 0 and 1, where the equations have no solution.
MIN_POSTERIOR = 1e-7
COUPLING_SLICE_ROWS = 1 << 11  # coupled at a time: each row takes K x K numbers


def class_pairs(K: int) -> Array:
    """All pairs of class codes i < j in lexicographic order, (P, 2)."""
    return np.column_stack(np.triu_indices(K, 1))


def incidence(K: int) -> Array:
    """(P, K): +1 for the first class of a pair, -1 for the second, else 0."""
    pairs = class_pairs(K)
    B = np.zeros((len(pairs), K))
    B[np.arange(len(pairs)), pairs[:, 0]], B[np.arange(len(pairs)), pairs[:, 1]] = 1, -1
    return B


def score_sums(G: Array, K: int) -> Array:
    """g_i = sum_j g_ij (10.10), (n, K)."""
    return G @ incidence(K)


def weakest_scores(G: Array, K: int) -> Array:
    """min_j g_ij, (n, K): positive for the class that wins all of its pairs (10.9), if any."""
    low = np.full((K, len(G)), np.inf)
    for (i, j), g in zip(class_pairs(K), np.ascontiguousarray(G.T), strict=True):
        np.minimum(low[i], g, out=low[i])
        np.minimum(low[j], -g, out=low[j])
    return low.T


def votes(G: Array, K: int) -> Array:
    """The number of pairs that each class wins, (n, K)."""
    B = incidence(K)
    first = (G >= 0).astype(np.float64)
    return first @ (B > 0) + (1 - first) @ (B < 0)


def vote_scores(G: Array, K: int) -> Array:
    """Votes, with ties broken by the sums of scores, (n, K): a sum counts less than half a vote."""
    S = score_sums(G, K)
    return votes(G, K) + S / (3 * (np.abs(S) + 1))


def votes_tied(G: Array, K: int) -> Array:
    """Rows on which two classes have the most votes, (n,): ambiguous in figure 4.2, right."""
    V = np.sort(votes(G, K), axis=1)
    return V[:, -1] == V[:, -2]


def without_winner(G: Array, K: int) -> Array:
    """Rows on which no class wins all of its pairs, (n,)."""
    return np.logical_not((weakest_scores(G, K) > 0).any(axis=1))


def never(G: Array, K: int) -> Array:
    """No row, (n,)."""
    return np.zeros(len(G), dtype=bool)


class DecisionRule(NamedTuple):
    """A decision from the scores of pairs: the class of the highest score, or rejection."""

    scores: Callable[[Array, int], Array]  # of the classes, (n, K)
    rejects: Callable[[Array, int], Array]  # rows without a clear decision, (n,)


PAIR_RULES = {
    "vote": DecisionRule(vote_scores, votes_tied),
    "sum": DecisionRule(score_sums, never),
    "all": DecisionRule(weakest_scores, without_winner),
}


def not_exactly_one(Z: Array) -> Array:
    """Rows on which none or several of K scores are positive (10.7), (n,): figure 4.2, left."""
    return (Z > 0).sum(axis=1) != 1


def couple(R: Array, K: int, method: str) -> Array:
    """Posteriors of K classes, (n, K), from those of the first classes of pairs, R (n, P)."""
    coupling, P = COUPLINGS[method], np.empty((len(R), K))
    for begin in range(0, len(R), COUPLING_SLICE_ROWS):
        rows = slice(begin, begin + COUPLING_SLICE_ROWS)
        P[rows] = coupling(_pairwise_matrix(R[rows], K), K).T
    return P


def _pairwise_matrix(R: Array, K: int) -> Array:
    """r_ij = P(i | i or j) for all i and j, (K, K, n), with 0 on the diagonal."""
    full = np.zeros((K, K, len(R)))
    for (i, j), r in zip(class_pairs(K), R.T, strict=True):
        full[i, j] = np.clip(r, MIN_POSTERIOR, 1 - MIN_POSTERIOR)
        full[j, i] = 1 - full[i, j]
    return full


def quadratic_coupling(r: Array, K: int) -> Array:
    """p (K, n) that minimises sum_ij (r_ji p_i - r_ij p_j)^2, with sum 1.

    This is the second method of Wu, Lin and Weng (2004). With Q_ii = sum_j r_ji^2 and Q_ij = -r_ji
    r_ij, all entries of Q p equal some number b. Q is singular if the pairs are exactly consistent,
    but Q + 1 1' never is, and (Q + 1 1') p = (b + 1) 1: p is the solution for 1, divided by its
    sum. The elimination is vectorised over the rows, which takes half the time of LAPACK row by
    row.
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


def likelihood_coupling(r: Array, K: int, max_iter: int = 100, tol: float = 1e-10) -> Array:
    """p (K, n) that maximises the likelihood of r_ij under p_i / (p_i + p_j).

    This is the model of Hastie and Tibshirani (1998). Newton's method on log p, in which the
    likelihood is concave, starts from the quadratic coupling. A step that changes log odds by up to
    u is shortened by the factor log(1 + u) / u: the curvature cannot change faster than that, so
    that every step increases the likelihood.
    """
    R, off_diagonal = r.transpose(2, 0, 1), ~np.eye(K, dtype=bool)  # (n, K, K)
    t = np.log(np.maximum(quadratic_coupling(r, K), MIN_POSTERIOR)).T  # (n, K)
    for _ in range(max_iter):
        Y = off_diagonal * special.sigmoid(t[:, :, None] - t[:, None, :])
        g = (R - Y).sum(axis=2)
        if np.abs(g).max() <= tol:
            break
        C = Y * Y.transpose(0, 2, 1)
        # A constant added to log p changes nothing; 1 / K makes the matrix nonsingular.
        H = np.eye(K) * C.sum(axis=2)[:, :, None] - C + 1 / K
        step = np.linalg.solve(H, g[:, :, None])[:, :, 0]
        u = np.maximum(np.ptp(step, axis=1, keepdims=True), 1e-300)
        t += step * np.log1p(u) / u
    return special.softmax(t).T


COUPLINGS: dict[str, Callable[[Array, int], Array]] = {
    "quadratic": quadratic_coupling,
    "likelihood": likelihood_coupling,
}


def check_reject_label(reject_label: Any, classes: Array) -> None:
    """ValueError for a `reject_label` that is not a scalar, or is one of the classes."""
    if reject_label is None:
        return
    if not np.isscalar(reject_label) or reject_label in classes.tolist():
        raise ValueError(
            "reject_label must be a label that is none of the classes "
            f"{classes.tolist()}, got {reject_label!r}"
        )


def labels_or_reject(classes: Array, codes: Array, rejected: Any, reject_label: Any) -> Array:
    """Labels of the codes, and `reject_label` for rejected rows, unless that is None."""
    if reject_label is None:
        return classes[codes]
    found = classes.astype(_common_dtype(classes, np.array([reject_label])))[codes]
    found[rejected] = reject_label
    return found


def _common_dtype(classes: Array, label: Array) -> Any:
    """A type that holds the classes and the reject label unchanged."""
    kinds = classes.dtype.kind, label.dtype.kind
    alike = all(kind in "US" for kind in kinds) or all(kind in "iufb" for kind in kinds)
    if not alike or classes.dtype.kind == "b":
        return object
    dtype = np.result_type(classes, label)
    if all(kind in "iu" for kind in kinds) and dtype.kind == "f":
        return object  # uint64 and -1: as floats they would be other labels
    return dtype
