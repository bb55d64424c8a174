"""The kernels' contract, the grid that every backend cuts the rows by, and the choice of a backend.

Symbols and numbered equations are in EQUATIONS.md. `_numpy`, `_cython` and `_numba` have the functions of `Kernels`, with the
same names, arguments and results, and nothing optional in them. A test holds them to it.
"""

from __future__ import annotations

import importlib
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol, cast

import numpy as np

from .maps import Mapped as Mapped

DTYPES = tuple(np.dtype(name) for name in ("float64", "float32", "uint8", "int8", "int16", "bool"))
BACKENDS = ("cython", "numba", "numpy")
NO_OFFSET = np.empty((0, 1))
STEEPEST = 1e12  # slope of a loss that an online rule steps by: from far off, as the first steps may go, it comes back
SMALLEST = 1e-4  # factor that an online kernel keeps apart from the weights: averages lose as many digits as it has zeros


class Link(IntEnum):
    """What stands between scores and outputs; each but IDENTITY has a loss."""

    IDENTITY = 0
    LOGISTIC = 1
    SOFTMAX = 2
    SIGMOID = 3  # squared error of a sigmoid
    LINEAR = 4  # squared error of the score itself, for targets +1 and -1


class Loss(IntEnum):
    """What an online rule learns from: each class by itself, +1 against -1, but WINNER, where two classes compare."""

    PERCEPTRON = 0
    WINNER = 1
    HINGE = 2
    SQUARED_HINGE = 3
    LOG = 4
    MODIFIED_HUBER = 5
    SQUARED = 6


class PairLoss(IntEnum):
    """What a ranker loses by a pair, as a function of a = margin + z_v - z_u, u being preferred to v."""

    HINGE = 0  # [a]_+
    SQUARED_HINGE = 1  # [a]_+^2
    HUBER = 2  # [a]_+, its corner rounded: ([a]_+^2 - [a - width]_+^2) / (2 width)
    LOGISTIC = 3  # log(1 + exp(a))


class PairRule(NamedTuple):
    """The loss of a pair."""

    loss: int
    margin: float = 0.0
    width: float = 1.0  # of HUBER's corner


class Metric(IntEnum):
    """What `group_metric` tells of the order that scores give to a query's rows."""

    NDCG = 0
    NDCG_WORST = 1  # of rows with equal scores the worse come first, as below; NDCG averages over all their orders
    AVERAGE_PRECISION = 2
    RECIPROCAL_RANK = 3
    EXPECTED_RECIPROCAL_RANK = 4
    KENDALL = 5
    PAIRS = 6


class Rate(IntEnum):
    """How long the steps of an online rule are at its t-th row."""

    CONSTANT = 0  # eta
    OPTIMAL = 1  # eta / (power + t - 1)
    INVSCALING = 2  # eta / t^power


class Rule(NamedTuple):
    """What an online kernel does with a row."""

    loss: int
    rate: int = Rate.CONSTANT
    eta: float = 1.0
    power: float = 0.0
    alpha: float = 0.0  # strength of the penalty, of which l1 is the share of the L1 norm
    l1: float = 0.0
    intercept: bool = True  # whether it is learned
    begin: float = 1.0  # the row from which weights are averaged


class Walk(NamedTuple):
    """The order in which an online kernel visits the rows: runs of `run` rows (the last may be shorter), each in its order."""

    order: np.ndarray  # int64, the numbers of the runs
    run: int


class Moment(IntEnum):
    """What `class_moments` sums of u = x less its class's shift."""

    SUMS = 0  # u
    COUNTS = 1  # [x > shift]
    SQUARES = 2  # u, u^2
    SCATTER = 3  # u, u u'
    QUARTIC = 4  # u, v v' with v = [u u^2]


class CSR(NamedTuple):
    """Compressed rows: float64 or float32 data, int32 or int64 indices and indptr."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_columns

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


class Grid(NamedTuple):
    """Rows of a block, which stays in cache while it is worked on, and of a chunk, which has its own partial sums.

    Sweeps take blocks of whole vectors, a multiple of 16 rows. `single` allows products in float32, which are twice as fast, for
    features that are not float64.
    """

    block: int
    chunk: int
    single: bool = True


class Queries(NamedTuple):
    """Rows in the order that rankers' kernels take them: query by query, and within one from the best grade down.

    Row i is preferred to the rows from below[i] to the end of its query, and those before above[i] are preferred to it. A pair
    weighs s_u s_v, and where gain and discount are given (gain_u - gain_v) |discount_u - discount_v| times that.
    """

    starts: np.ndarray  # int64, (Q+1,): query q has the rows from starts[q] to starts[q + 1]
    above: np.ndarray  # int64, (N,): where the rows of its grade begin
    below: np.ndarray  # int64, (N,): and where they end
    s: np.ndarray  # (N,) or (1,)
    gain: np.ndarray  # (N,) or (0,)
    discount: np.ndarray  # (N,) or (0,)


class GroupGrid(NamedTuple):
    """Rows of a block, and the bounds of chunks of whole groups: chunk c has the groups from bounds[c] to bounds[c + 1]."""

    block: int
    bounds: np.ndarray


class Kernels(Protocol):
    """What a backend provides.

    X is (N, d), N >= 1: an array of one of DTYPES with any strides, CSR, or Mapped, whose d columns are features of a basis. r is
    (N,) int32: class codes, or grades coded 0, 1, ... without gaps. s is (N,) float64, or (1,) where one weight serves all rows.
    o is (N, K) float64, added to the scores, or NO_OFFSET. W is (K, d+1) float64, C order, the intercepts in column 0; K = 1 for
    all links but IDENTITY and SOFTMAX. In `sweep` and `product`, products of dense arrays other than float64 are float32 where
    grid.single allows it and no Hessian is asked for, and so are their sums
    within a block; all else is float64. Blocks are a multiple of 16 rows. No argument is written to but where said. NaN and
    infinity in X reach the sums.
    """

    @staticmethod
    def sweep(X, link: int, r, s, o, W, order: int, grid: Grid, n_threads: int):
        """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33).

        Returns (loss, errors, G, H): the weighted sum of losses; the weight of misclassified rows; for order >= 1 the gradient
        (K, d+1); for order 2 the Hessian (K (d+1), K (d+1)), else None; of SIGMOID that of Gauss and Newton, without the second
        derivative of the outputs. With order 0 what stands in G means nothing.
        """

    @staticmethod
    def sweeps(X, link: int, r, s, sides, W, order: int, grid: Grid, n_threads: int):
        """Losses, errors, gradients and Hessians of many two-class problems over the same rows: (10.7)-(10.9), (10.23)-(10.24).

        Here r is the kind of each row, and sides, (kinds, K) int8, says for each of K problems whether rows of a kind are
        positive (1), negative (-1), or left out (0). link is one of one score. Returns (losses (K,), errors (K,), G (K, d+1), H),
        H (K, d+1, d+1) for order 2, else None. W, order and products are as in `sweep`.
        """

    @staticmethod
    def product(X, link: int, s, o, W, V, grid: Grid, n_threads: int):
        """The Hessian times a matrix like W, without the Hessian: (10.32), as used by (10.33).

        Returns (K, d+1). Products are as in a sweep for the gradient.
        """

    @staticmethod
    def times(X, B, Z, grid: Grid, n_threads: int):
        """Rows times a matrix, into Z: (10.6); of the transposed rows, (10.33).

        X is CSR, B (d, K) and Z (N, K), both float64 or both float32, C order; Z is changed. Products and sums are of that type.
        """

    @staticmethod
    def coordinate_descent(H, q, l1, w, tol: float, max_iter: int):
        """Minimise a quadratic model of (10.23) or (10.31) plus an L1 penalty, weight by weight; w is changed; the passes.

        Minimises w'Hw / 2 - q'w + sum_j l1_j |w_j|; H is (n, n) float64 in C order, the others (n,). Weights whose diagonal entry
        is 0 stay as they are. Stops when no weight moves by more than tol, as the square of the step times the diagonal entry.
        """

    @staticmethod
    def outputs(X, link: int, W, grid: Grid, n_threads: int):
        """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite.

        Returns ((N, K) float64, bool); LOGISTIC gives two columns, the probabilities of class 0 and of class 1.
        """

    @staticmethod
    def online(X, r, s, W, U, Q, clock, rule: Rule, walk: Walk, n_threads: int):
        """One pass of an online rule, as (4.55), with a step for each row; W is changed; the loss and the number of updates.

        K = 1: class 1 is +1, class 0 is -1. K > 1: each class is +1 against the others; with WINNER the row's own class, if it
        does not score more than each other one, gains what the best of those (the first of equals) loses. U, of W's shape, gets
        the weights added after each row from rule.begin on; Q, of W's shape, and clock[1] keep account of the L1 penalty;
        either has no rows where it is not wanted. clock[0] counts the rows. Rows of weight 0 count for nothing. Products are
        float64. The loss is NaN where a score was not finite.
        """

    @staticmethod
    def combine(X, e, grid: Grid, n_threads: int):
        """Rows times errors, summed: (10.24).

        e is (N,) float64. Returns (d,); products are float64.
        """

    @staticmethod
    def rank_pairs(X, pairs, s, w, eta: float, rule: PairRule):
        """One pass of the ranking rule (10.49) over (preferred, other) pairs; w is changed; the number of updates.

        pairs is (P, 2) int64, s is (P,) or (1,), w is (d,), or it is refused. A step is eta s times the loss's derivative by
        the scores.
        """

    @staticmethod
    def rank_link(z, queries: Queries, rule: PairRule, grid: GroupGrid, n_threads: int):
        """Loss over all ordered pairs within queries, and its derivative by the scores: (10.46), (10.48).

        z is (N,) in the order of the queries. Returns (loss, weight of the pairs that count, e (N,)): those with a > 0, for
        LOGISTIC those with z_v >= z_u. Gains and discounts are for LOGISTIC. Where scores are not finite, neither is the loss.
        """

    @staticmethod
    def rank_bend(z, u, queries: Queries, rule: PairRule, grid: GroupGrid, n_threads: int):
        """The second derivative by the scores times a direction's scores u: of (10.46), as used by (10.48).

        Returns (N,). Not for HINGE.
        """

    @staticmethod
    def rank_sweep(X, places, queries: Queries, rule: PairRule, w, o, grid: GroupGrid, n_threads: int):
        """Loss over all ordered pairs within queries, its gradient by the weights, and the scores: (10.46)-(10.48).

        The rows of X stand query by query, within one in any order: row i of the queries is row places[i] of X, (N,) int64. w is
        (d,), o is (N,) float64 by rows of X, added to the scores, or (0,). Returns (loss, weight of the pairs that count, g (d,),
        z (N,) by rows of X), as `outputs`, `rank_link` and `combine` would one after the other; products are float64.
        """

    @staticmethod
    def rank_hessian(X, z, queries: Queries, rule: PairRule, grid: GroupGrid, n_threads: int):
        """The Hessian of the loss over all ordered pairs within queries: of (10.46), as used by (10.48).

        X is (N, d) float64 in C order, its rows in the order of the queries. Returns (d, d). Not for HINGE.
        """

    @staticmethod
    def pair_link(z, pairs, s, rule: PairRule, grid: Grid, n_threads: int):
        """Loss over given pairs, and its derivative by the scores: (10.46), (10.48).

        z is (N,), pairs and s as in `rank_pairs`; the grid is that of `pair_grid`. Returns what `rank_link` does.
        """

    @staticmethod
    def pair_bend(z, u, pairs, s, rule: PairRule, grid: Grid, n_threads: int):
        """The second derivative by the scores times a direction's scores u, over given pairs: of (10.46), as used by (10.48)."""

    @staticmethod
    def group_metric(metric: int, y, z, starts, k: int, grid: GroupGrid, n_threads: int):
        """How good the order of the scores is within each query, judged by pairs, as (10.46), or by the ranks of good rows.

        y and z are (N,) float64, query by query: gains for NDCG, probabilities to stop at a row for EXPECTED_RECIPROCAL_RANK,
        1 for relevant rows for AVERAGE_PRECISION and RECIPROCAL_RANK, utilities for the others. The first k rows count, all of
        them for PAIRS and KENDALL. Returns (Q,), NaN where a query tells nothing.
        """

    @staticmethod
    def class_moments(X, r, s, shift, group, kind: int, grid: Grid, n_threads: int):
        """Weights, sums and scatter of classes: (4.21), (4.28).

        shift is (K, d) float64 in C order: whole numbers from 0 to 255 (uint8) or -128 to 127 (int8) where X is of bytes, and
        zeros where it is CSR, but for COUNTS, which takes any. group is (K,) int32: classes of the same number from 0 on share a
        scatter matrix. Returns (n (K,), M (K, d), S) with S None, (K, d) for SQUARES, (groups, d, d) for SCATTER, and (groups,
        2 d, 2 d) for QUARTIC, which is for dense X only. Bytes of equal weight have exact sums.
        """

    @staticmethod
    def quadratic(X, mean, A, c, grid: Grid, n_threads: int):
        """Quadratic scores of classes, and whether all are finite: (10.2), (10.34).

        z_k = c_k - |A_k (x - mean_k)|^2 / 2. mean is (K, d) and A (K, p, d), or (K, d) where each A_k is a diagonal; both float64
        in C order. Returns ((N, K) float64, bool).
        """

    @staticmethod
    def expand(X, grid: Grid, n_threads: int):
        """Features of rows, X Mapped: (10.3), (10.35).

        Returns (N, d) float64: the matrix that the other kernels do without. Where a cell of a row is not finite, no feature is.
        """


# With this many chunks 16 threads still find work for the last tenth of a sweep.
CHUNKS = 64
# A chunk's sums are set to zero, filled, and read once more to be added up: a chunk must have rows enough to be worth that, and
# all of them together must not take too much memory.
ROWS, ROWS_HESSIAN, MEMORY = 128, 512, 64 * 2**20
L1, L2 = 32 * 1024, 256 * 1024
QUEUES, PARTS = 16 * 2**20, 24 * 2**20  # bytes of one thread's queues, and of all partial sums of moments


@lru_cache(1024)
def grid(
    shape: tuple[int, int], itemsize: int, K: int = 1, order: int = 1, stored: int | None = None, pairs: int | None = None
) -> Grid:
    """The blocks and chunks for data of this shape: a matter of shapes alone, never of threads.

    `stored` is the number of stored values of sparse data; `pairs`, that of a Hessian's blocks, one for each pair of classes
    unless said otherwise.
    """
    n, d = shape
    width = d if stored is None else stored // n
    # One weight row: a block in L1 is read twice at no cost. More of them: longer blocks, which spread the work on G.
    # A Hessian needs a scaled copy of the block beside it, and many rows for sums that stay in registers.
    rows = (L1 // max(1, order) if K == 1 or order == 2 else L2) // max(1, width * itemsize)
    block = min(256, max(48 if order == 2 else 32, rows // 16 * 16))
    pairs = K * (K + 1) // 2 if pairs is None else pairs
    size = K * (d + 1) + (pairs * (d + 1) ** 2 if order == 2 else 0)
    worth = n // (max(ROWS_HESSIAN, 4 * d) if order == 2 else ROWS) if stored is None else stored * K // (16 * size)
    chunks = max(1, min(CHUNKS, max(4, worth), max(2, MEMORY // (8 * size)), -(-n // block)))
    chunk = -(-n // chunks)
    return Grid(block, -(-chunk // block) * block)


def moments_grid(shape: tuple[int, int], itemsize: int, sums: int, columns: int, groups: int) -> Grid:
    """Blocks and chunks of `class_moments`: `sums` numbers beside the scatter, which has `groups` matrices of so many `columns`.

    A block is also a group's queue of rows. Wide matrices lie outside L2, and long queues spare trips there and back.
    """
    n, _ = shape
    block = (256 if columns <= 64 else 512) if itemsize == 1 else 64 if columns <= 64 else 128
    while block > 16 and groups * block * columns * 8 > QUEUES:
        block //= 2
    size = sums + groups * columns**2
    chunks = max(1, min(CHUNKS, max(4, n // max(ROWS_HESSIAN, block)), max(2, PARTS // (8 * size)), -(-n // block)))
    chunk = -(-n // chunks)
    return Grid(block, -(-chunk // block) * block)


def group_grid(starts: np.ndarray, size: int = 1, rows: int = 1) -> GroupGrid:
    """Chunks of whole groups, each with about the same number of rows, no fewer than `rows`, and sums of so many numbers."""
    chunks = min(CHUNKS, max(2, MEMORY // (8 * size)), max(2, int(starts[-1]) // rows))
    bounds = np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], chunks + 1).astype(np.int64)))
    return GroupGrid(64, bounds)


def pair_grid(rows: int, pairs: int) -> Grid:
    """Chunks of given pairs, each with a number of its own for every row: no more of those than there are pairs."""
    chunks = max(1, min(CHUNKS // 4, pairs // max(1, rows), pairs // ROWS_HESSIAN, MEMORY // (8 * max(1, rows))))
    return Grid(1, -(-pairs // chunks))


def load(name: str) -> Kernels:
    """The module of a backend; ImportError says why it is missing."""
    if name not in BACKENDS:
        raise ValueError(f"backend must be 'auto' or one of {', '.join(map(repr, BACKENDS))}, got {name!r}")
    return cast(Kernels, importlib.import_module(f"{__name__}._{name}"))
