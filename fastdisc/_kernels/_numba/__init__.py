"""The kernels just in time: the twin of `_cython`, and what compiles a user's basis functions into the sweep (custom.py)."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

import numba
import numpy as np

from .. import CSR, NO_OFFSET, Link, Mapped, Moment
from .. import grid as row_grid
from . import basis, jitted, metrics, moments, rank
from . import online as steps
from . import sweeps as many
from . import times as sparse
from . import walk as walks

DRIVERS = jitted.DRIVERS | many.DRIVERS | rank.DRIVERS | metrics.DRIVERS | moments.DRIVERS | basis.DRIVERS | sparse.DRIVERS
PROCESS = os.getpid()
_one_at_a_time = threading.Lock()


@contextmanager
def _threads(n):
    """n threads for this call. The workqueue layer aborts when two Python threads enter it: they take turns there."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(n)
        if threading_layer() in ("omp", "tbb"):
            yield
        else:
            with _one_at_a_time:
                yield
    finally:
        numba.set_num_threads(before)


def threading_layer():
    """Numba's threading layer; 'none yet' before the first parallel call."""
    try:
        return numba.threading_layer()
    except ValueError:
        return "none yet"


def _run(driver, n_threads, chunks, *args):
    """Run a parallel driver, on one thread too: the plain twin is compiled apart, and may round the last bit differently.

    It serves in a forked child, where Numba would end the process at the sight of its parent's thread pool.
    """
    if os.getpid() != PROCESS:
        return DRIVERS[driver, False](*args)
    with _threads(min(n_threads, chunks, numba.config.NUMBA_NUM_THREADS)):
        return DRIVERS[driver, True](*args)


def _features(X):
    """X as the jitted functions take it: a tuple for CSR; bool as the bytes that it is."""
    if isinstance(X, CSR):
        return X.data, X.indices, X.indptr
    if isinstance(X, Mapped):
        return _features(X.raw), basis.program_of(X)
    return X.view(np.uint8) if X.dtype == bool else X


def _weights(X, W, single):
    """W without, and with only, the intercepts, in the type of the products."""
    double = isinstance(X, CSR) or X.dtype == np.float64 or not single
    W = W.astype(np.float64 if double else np.float32)
    return np.ascontiguousarray(W[:, 1:]), np.ascontiguousarray(W[:, 0])


def sweep(X, link, r, s, o, W, order, grid, n_threads):
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    (n, d), K = X.shape, len(W)
    chunks = -(-n // grid.chunk)
    pairs = K * (K + 1) // 2 if order == 2 else 0
    D = (d + 8) // 8 * 8  # room for the constant and whole vectors
    sums, G, H = np.zeros((chunks, 2 + K)), np.zeros((chunks, K, d)), np.zeros((chunks, pairs, D, D))
    weights, w0 = _weights(X, W, order < 2 and grid.single)
    _run(
        jitted.sweep_driver,
        n_threads,
        chunks,
        _features(X),
        int(link),
        r,
        s,
        o,
        weights,
        w0,
        order,
        grid.block,
        grid.chunk,
        sums,
        G,
        H,
    )
    total = sums.sum(axis=0)
    return (
        total[0],
        total[1],
        np.column_stack([total[2:], G.sum(axis=0)]),
        unfold(H.sum(axis=0)[:, : d + 1, : d + 1], K) if order == 2 else None,
    )


def sweeps(X, link, r, s, sides, W, order, grid, n_threads):
    """Losses, errors, gradients and Hessians of many two-class problems over the same rows: (10.7)-(10.9), (10.23)-(10.24)."""
    (n, d), K = X.shape, len(W)
    chunks = -(-n // grid.chunk)
    D = (d + 8) // 8 * 8  # room for the constant and whole vectors
    sums, G, H = np.zeros((chunks, 3, K)), np.zeros((chunks, K, d)), np.zeros((chunks, K if order == 2 else 0, D, D))
    target, part = np.ascontiguousarray(sides.T > 0, dtype=np.int32), np.ascontiguousarray(sides.T != 0, dtype=np.float64)
    args = _features(X), int(link), r, s, NO_OFFSET, target, part, *_weights(X, W, order < 2 and grid.single)
    _run(many.sweeps_driver, n_threads, chunks, *args, order, grid.block, grid.chunk, sums, G, H)
    losses, errors, g0 = sums.sum(axis=0)
    H = mirror(H.sum(axis=0)[:, : d + 1, : d + 1]) if order == 2 else None
    return losses, errors, np.column_stack([g0, G.sum(axis=0)]), H


def product(X, link, s, o, W, V, grid, n_threads):
    """The Hessian times a matrix like W, without the Hessian: (10.32), as used by (10.33)."""
    (n, d), K = X.shape, len(W)
    chunks = -(-n // grid.chunk)
    sums, G = np.zeros((chunks, K)), np.zeros((chunks, K, d))
    args = (
        _features(X),
        n,
        int(link),
        s,
        o,
        *_weights(X, W, grid.single),
        *_weights(X, V, grid.single),
        grid.block,
        grid.chunk,
        sums,
        G,
    )
    _run(jitted.product_driver, n_threads, chunks, *args)
    return np.column_stack([sums.sum(axis=0), G.sum(axis=0)])


def times(X, B, Z, grid, n_threads):
    """Rows times a matrix, into Z: (10.6); of the transposed rows, (10.33)."""
    chunks = -(-X.shape[0] // grid.chunk)
    _run(sparse.times_driver, n_threads, chunks, _features(X), B, grid.chunk, chunks, Z)


def coordinate_descent(H, q, l1, w, tol, max_iter):
    """Minimise a quadratic model of (10.23) or (10.31) plus an L1 penalty, weight by weight; w is changed; the passes."""
    return steps.coordinates(H, q, l1, w, float(tol), int(max_iter))


def mirror(triangles):
    """Symmetric matrices from their upper triangles."""
    D = triangles.shape[-1]
    return np.where(np.arange(D)[:, None] <= np.arange(D), triangles, triangles.swapaxes(1, 2))


def unfold(triangles, K):
    """The full (K (d+1), K (d+1)) Hessian from its K (K+1) / 2 blocks, each an upper triangle."""
    D = triangles.shape[-1]
    H = np.empty((K, D, K, D))
    pairs = [(j, k) for j in range(K) for k in range(j, K)]
    for square, (j, k) in zip(mirror(triangles), pairs, strict=True):
        H[j, :, k, :] = H[k, :, j, :] = square
    return H.reshape(K * D, K * D)


def outputs(X, link, W, grid, n_threads):
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    chunks = -(-X.shape[0] // grid.chunk)
    out, check = np.empty((X.shape[0], 2 if link == Link.LOGISTIC else len(W))), np.zeros(chunks)
    weights, w0 = W[:, 1:].copy(), W[:, 0].copy()  # a score is wanted for its own sake: float64 whatever X is
    _run(jitted.outputs_driver, n_threads, chunks, _features(X), int(link), weights, w0, grid.block, grid.chunk, out, check)
    return out, not bool(np.isnan(check).any())


def online(X, r, s, W, U, Q, clock, rule, walk, n_threads):
    """One pass of an online rule, as (4.55), with a step for each row; W is changed; the loss and the number of updates."""
    state = np.array([1.0, 0, 0, clock[0], clock[0], clock[1], 0])
    plain = (int(rule.loss), int(rule.rate), *map(float, rule[2:6]), bool(rule.intercept), float(rule.begin))
    updates = walks.online_rows(_features(X), r, s, W, U, Q, state, plain, walk.order, int(walk.run))
    clock[:] = state[walks.TICK], state[walks.OWED]
    return float(state[walks.TOTAL]), int(updates)


def combine(X, e, grid, n_threads):
    """Rows times errors, summed: (10.24)."""
    part = np.zeros((-(-X.shape[0] // grid.chunk), 1, X.shape[1]))
    _run(rank.combine_driver, n_threads, len(part), _features(X), e[None, :], grid.block, grid.chunk, part)
    return part.sum(axis=0)[0]


def rank_pairs(X, pairs, s, w, eta, rule):
    """One pass of the ranking rule (10.49) over (preferred, other) pairs; w is changed; the number of updates."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    return steps.rank_pairs_rows(_features(X), pairs, s, w, float(eta), _plain(rule))


def _plain(rule):
    return int(rule.loss), float(rule.margin), float(rule.width)


def rank_link(z, queries, rule, grid, n_threads):
    """Loss over all ordered pairs within queries, and its derivative by the scores: (10.46), (10.48)."""
    chunks = len(grid.bounds) - 1
    part, e = np.zeros((chunks, 2)), np.empty(len(z))
    _run(rank.link_driver, n_threads, chunks, z, tuple(queries), _plain(rule), grid.bounds, part, e)
    return *part.sum(axis=0), e


def rank_bend(z, u, queries, rule, grid, n_threads):
    """The second derivative by the scores times a direction's scores u: of (10.46), as used by (10.48)."""
    out = np.empty(len(z))
    _run(rank.bend_driver, n_threads, len(grid.bounds) - 1, z, u, tuple(queries), _plain(rule), grid.bounds, out)
    return out


def rank_sweep(X, places, queries, rule, w, o, grid, n_threads):
    """Loss over all ordered pairs within queries, its gradient by the weights, and the scores: (10.46)-(10.48)."""
    rows = row_grid(X.shape, 8, stored=len(X.data) if isinstance(X, CSR) else None)
    z = outputs(X, Link.IDENTITY, np.concatenate([[0.0], w])[None, :], rows, n_threads)[0][:, 0]
    z, e = z + o if len(o) else z.copy(), np.empty(len(z))
    loss, active, e[places] = rank_link(z[places], queries, rule, grid, n_threads)
    return loss, active, combine(X, e, rows, n_threads), z


def rank_hessian(X, z, queries, rule, grid, n_threads):
    """The Hessian of the loss over all ordered pairs within queries: of (10.46), as used by (10.48)."""
    chunks, d = len(grid.bounds) - 1, X.shape[1]
    part = np.zeros((chunks, d, d))
    _run(rank.hessian_driver, n_threads, chunks, X, z, tuple(queries), _plain(rule), grid.bounds, part)
    upper = np.triu(part.sum(axis=0))
    return upper + np.triu(upper, 1).T


def _given(z, x, pairs, s, rule, grid, n_threads):
    chunks = -(-len(pairs) // grid.chunk)
    sums, part = np.zeros((chunks, 2)), np.zeros((chunks, len(z)))
    _run(rank.given_driver, n_threads, chunks, z, x, pairs, s, _plain(rule), grid.chunk, sums, part)
    return *sums.sum(axis=0), part.sum(axis=0)


def pair_link(z, pairs, s, rule, grid, n_threads):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    return _given(z, np.empty(0), pairs, s, rule, grid, n_threads)


def pair_bend(z, u, pairs, s, rule, grid, n_threads):
    """The second derivative by the scores times a direction's scores u, over given pairs: of (10.46), as used by (10.48)."""
    return _given(z, u, pairs, s, rule, grid, n_threads)[2]


def group_metric(metric, y, z, starts, k, grid, n_threads):
    """How good the order of the scores is within each query, judged by pairs, as (10.46), or by the ranks of good rows."""
    out, longest = np.empty(len(starts) - 1), int(np.diff(starts).max())
    discount = 1 / np.log2(np.arange(2.0, longest + 2))
    chunks = len(grid.bounds) - 1
    _run(metrics.metric_driver, n_threads, chunks, int(metric), y, z, starts, int(k), discount, grid.bounds, out)
    return out


def class_moments(X, r, s, shift, group, kind, grid, n_threads):
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    (rows, d), K = X.shape, len(shift)
    chunks = -(-rows // grid.chunk)
    width = 2 * d if kind == Moment.QUARTIC else d
    D = (width + 7) // 8 * 8  # whole vectors
    n, M = np.zeros((chunks, K)), np.zeros((chunks, K, d))
    S = np.zeros((chunks, 1, K, d) if kind < Moment.SCATTER else (chunks, int(group.max()) + 1, D, D))
    args = _features(X), r, s, shift, group, int(kind), grid.block, grid.chunk, n, M, S
    _run(moments.moments_driver, n_threads, chunks, *args)
    n, M, S = n.sum(axis=0), M.sum(axis=0), S.sum(axis=0)
    if isinstance(X, CSR) and kind == Moment.COUNTS:
        M += n[:, None] * (0 > shift)
    if kind < Moment.SCATTER:
        return n, M, S[0] if kind == Moment.SQUARES else None
    upper = S[:, :width, :width]
    return n, M, np.where(np.arange(width)[:, None] <= np.arange(width), upper, upper.swapaxes(1, 2))


def quadratic(X, mean, A, c, grid, n_threads):
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    chunks = -(-X.shape[0] // grid.chunk)
    out, check = np.empty((X.shape[0], len(mean))), np.zeros(chunks)
    factors = A.reshape(len(A), -1, A.shape[-1])
    _run(moments.quadratic_driver, n_threads, chunks, _features(X), mean, factors, c, A.ndim == 2, grid.chunk, out, check)
    return out, not bool(np.isnan(check).any())


def expand(X, grid, n_threads):
    """Features of rows, X Mapped: (10.3), (10.35)."""
    n, out = X.shape[0], np.empty(X.shape)
    _run(basis.expand_driver, n_threads, -(-n // grid.chunk), _features(X), n, grid.block, grid.chunk, out)
    return out
