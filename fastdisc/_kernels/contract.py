"""The contract of the kernels: what they read, what they return, and the structures they share.

Symbols and numbered equations are in EQUATIONS.md. The backends `_numpy`, `_cython` and `_numba`
provide the functions of `Kernels` with the same names, arguments and results; nothing is optional.
A test holds them to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from .enums import LearningRate

DTYPES = tuple(np.dtype(t) for t in ("float64", "float32", "uint8", "int8", "int16", "bool"))
BACKENDS = ("cython", "numba", "numpy")
NO_OFFSET = np.empty((0, 1))
MAX_SLOPE = 1e12  # of a loss that an online rule steps by, so that the first steps cannot overflow
# The scale factor of an online kernel is multiplied into the weights below this value: averages
# lose as many digits as the factor has zeros.
MIN_SCALE = 1e-4

Array = np.ndarray


class KernelRows(Protocol):
    """The rows that a kernel reads. `layout` selects the backend's code for them; the other
    attributes are those of the layout's class in `fastdisc._data`."""

    layout: str
    lazy: bool  # whether `to_float64` computes features rather than converts them

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def take(self, rows: slice) -> Any: ...

    def to_float64(self) -> Any:
        """An array or SciPy matrix, for the reference backend."""
        ...


class Batch(NamedTuple):
    """Rows with their targets, weights and offsets."""

    X: KernelRows  # (N, d)
    r: Array  # (N,) int32
    s: Array  # (N,), or (1,) if all rows have the same weight
    o: Array = NO_OFFSET  # (N, K), or NO_OFFSET


class Grid(NamedTuple):
    """Rows of a block, which stays in cache, and of a chunk, which has partial sums of its own.

    Sweeps take blocks of a multiple of 16 rows. `float32` allows products in float32, which are
    twice as fast, for features that are not float64.
    """

    block: int
    chunk: int
    float32: bool = True


class QueryGrid(NamedTuple):
    """Rows of a block, and the bounds of chunks of whole queries: chunk c has the queries
    bounds[c] to bounds[c + 1]."""

    block: int
    bounds: Array


class PairRule(NamedTuple):
    """The loss of an ordered pair."""

    loss: int
    margin: float = 0.0
    width: float = 1.0  # of the smoothed corner of HUBER


class OnlineRule(NamedTuple):
    """The update of an online kernel."""

    loss: int
    rate: int = LearningRate.CONSTANT
    eta: float = 1.0
    power: float = 0.0
    alpha: float = 0.0  # strength of the penalty
    l1: float = 0.0  # share of the L1 norm in the penalty
    intercept: bool = True  # whether the intercepts are learned
    begin: float = 1.0  # the row from which weights are averaged


class OnlineState(NamedTuple):
    """The arrays that an online kernel updates in place."""

    W: Array  # (K, d+1) weights
    U: Array  # (K, d+1) sums of the weights after each row, or (0, d+1)
    Q: Array  # (K, d+1) L1 penalty applied so far, or (0, d+1)
    clock: Array  # (2,): rows seen, L1 penalty accumulated


class RowOrder(NamedTuple):
    """The order of the rows of an epoch: runs of `run` rows (the last may be shorter)."""

    order: Array  # (runs,) int64, the numbers of the runs
    run: int


class Queries(NamedTuple):
    """Rows sorted by query, and within a query from the highest grade to the lowest.

    Row i is preferred to the rows from below[i] to the end of its query; the rows before above[i]
    are preferred to it. A pair has the weight s_u s_v, times
    (gain_u - gain_v) |discount_u - discount_v| if gain and discount are given.
    """

    starts: Array  # (Q+1,) int64: query q has the rows starts[q] to starts[q + 1]
    above: Array  # (N,) int64: the first row of the same grade
    below: Array  # (N,) int64: the end of the rows of the same grade
    s: Array  # (N,) or (1,)
    gain: Array  # (N,) or (0,)
    discount: Array  # (N,) or (0,)


class Kernels(Protocol):
    """The functions of a backend.

    X is a `KernelRows` with N >= 1 rows: dense (any of DTYPES, any strides), CSR, or mapped (d is
    then the number of features). r is int32: class codes. s is float64. W is (K, d+1) float64 in C
    order, with the intercepts in column 0; K = 1 for losses of a single score. In `sweep`,
    `sweep_many` and `hessian_product`, products of dense features other than float64 are taken in
    float32 if grid.float32 allows it and no Hessian is asked for; so are sums within a block. All
    else is float64. No argument is written to unless stated. NaN and infinity in X propagate to the
    sums. An unknown loss, activation or layout raises ValueError.
    """

    @staticmethod
    def sweep(batch: Batch, loss: int, W: Array, order: int, grid: Grid, n_threads: int) -> Any:
        """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33).

        Returns (loss, errors, G, H): the weighted sum of losses; the weight of misclassified rows;
        for order >= 1 the gradient (K, d+1); for order 2 the Hessian (K (d+1), K (d+1)), else None.
        For SIGMOID_SQUARED it is the Gauss-Newton matrix. With order 0, G is undefined.
        """

    @staticmethod
    def sweep_many(
        batch: Batch, loss: int, signs: Array, W: Array, order: int, grid: Grid, n_threads: int
    ) -> Any:
        """Sums of many two-class problems over shared rows: (10.7)-(10.9), (10.23)-(10.24).

        batch.r is the row group of each row. signs, (groups, K) int8, says for each of K problems
        whether the rows of a group are positive (1), negative (-1) or excluded (0). Offsets are
        not supported. Returns (losses (K,), errors (K,), G (K, d+1), H), with H (K, d+1, d+1) for
        order 2, else None.
        """

    @staticmethod
    def hessian_product(
        batch: Batch, loss: int, W: Array, V: Array, grid: Grid, n_threads: int
    ) -> Any:
        """The Hessian at W times V, without forming the Hessian: (10.32), as used by (10.33).

        V is like W. batch.r is not read. Returns (K, d+1).
        """

    @staticmethod
    def matmul(X: KernelRows, B: Array, out: Array, grid: Grid, n_threads: int) -> None:
        """Sparse rows times a matrix: (10.6); for transposed rows, (10.33).

        X is CSR; B is (d, K) and out (N, K), both float64 or both float32 in C order. out is
        written. Products and sums have that type.
        """

    @staticmethod
    def coordinate_descent(
        H: Array, q: Array, l1: Array, w: Array, tol: float, max_iter: int
    ) -> int:
        """Coordinate descent on a quadratic model of (10.23) or (10.31) with an L1 penalty.

        Minimises w'Hw / 2 - q'w + sum_j l1_j |w_j| in place; H is (n, n) float64 in C order, the
        others are (n,). Weights with a zero diagonal entry are not changed. Stops when no weight
        moves by more than tol (the square of the step times the diagonal entry). Returns the
        number of passes.
        """

    @staticmethod
    def outputs(
        X: KernelRows, activation: int, W: Array, grid: Grid, n_threads: int
    ) -> tuple[Array, bool]:
        """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite.

        Returns ((N, K) float64, bool). SIGMOID returns two columns: the probabilities of class 0
        and of class 1.
        """

    @staticmethod
    def online_epoch(
        batch: Batch, state: OnlineState, rule: OnlineRule, order: RowOrder, n_threads: int
    ) -> tuple[float, int]:
        """One epoch of an online rule, as (4.55), with an update for each row.

        The state is updated in place. K = 1: class 1 is +1, class 0 is -1. K > 1: each class is +1
        against the others; with PERCEPTRON_MULTICLASS, if the row's class does not score higher
        than each other class, it gains what the best of those (the first of equals) loses. U
        accumulates the weights after each row from rule.begin on; Q and clock[1] track the L1
        penalty. clock[0] counts the rows; rows of weight 0 are skipped and not counted. Products
        are float64. Returns the loss, NaN if a score was not finite, and the number of updates.
        """

    @staticmethod
    def weighted_row_sum(X: KernelRows, e: Array, grid: Grid, n_threads: int) -> Array:
        """The sum of rows times errors: (10.24).

        e is (N,) float64. Returns (d,); products are float64.
        """

    @staticmethod
    def online_pairs(
        X: KernelRows, pairs: Array, s: Array, w: Array, eta: float, rule: PairRule
    ) -> int:
        """One epoch of the ranking update (10.49) over given (preferred, other) pairs.

        pairs is (P, 2) int64, s is (P,) or (1,), w is (d,) and is updated in place; another length
        is a ValueError. A step is eta s times the derivative of the loss by the scores. Returns
        the number of updates.
        """

    @staticmethod
    def query_loss(
        z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
    ) -> tuple[float, float, Array]:
        """Loss over the pairs of queries and its derivative by the scores: (10.46), (10.48).

        z is (N,) in the order of `queries`. Returns (loss, weight of the active pairs, e (N,)).
        Active are pairs with a > 0; for LOGISTIC those with z_v >= z_u. Gains and discounts are
        for LOGISTIC. If a score is not finite, neither is the loss.
        """

    @staticmethod
    def query_curvature_product(
        z: Array, u: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
    ) -> Array:
        """The second derivative by the scores times u: of (10.46), as used by (10.48).

        Returns (N,). Not for HINGE.
        """

    @staticmethod
    def query_sweep(
        X: KernelRows,
        places: Array,
        queries: Queries,
        rule: PairRule,
        w: Array,
        o: Array,
        grid: QueryGrid,
        n_threads: int,
    ) -> tuple[float, float, Array, Array]:
        """Loss over the pairs of queries, its gradient, and the scores: (10.46)-(10.48).

        The rows of X are grouped by query, in any order within a query: row i of the queries is
        row places[i] of X, (N,) int64. w is (d,); o is (N,) by rows of X, added to the scores, or
        (0,). Returns (loss, weight of the active pairs, g (d,), z (N,) by rows of X); products are
        float64.
        """

    @staticmethod
    def query_hessian(
        X: KernelRows, z: Array, queries: Queries, rule: PairRule, grid: QueryGrid, n_threads: int
    ) -> Array:
        """The Hessian of the loss over the pairs of queries: of (10.46), as used by (10.48).

        X is dense float64 in C order, its rows in the order of the queries. Returns (d, d). Not
        for HINGE.
        """

    @staticmethod
    def pair_loss(
        z: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
    ) -> tuple[float, float, Array]:
        """Loss over given pairs, and its derivative by the scores: (10.46), (10.48).

        z is (N,); pairs and s are as in `online_pairs`; the grid is that of `pair_grid`. Returns
        what `query_loss` does.
        """

    @staticmethod
    def pair_curvature_product(
        z: Array, u: Array, pairs: Array, s: Array, rule: PairRule, grid: Grid, n_threads: int
    ) -> Array:
        """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""

    @staticmethod
    def query_metric(
        metric: int, y: Array, z: Array, starts: Array, k: int, grid: QueryGrid, n_threads: int
    ) -> Array:
        """A metric of the order of the scores within each query, as (10.46) judges pairs.

        y and z are (N,) float64, sorted by query: y holds gains for NDCG, stopping probabilities
        for EXPECTED_RECIPROCAL_RANK, 1 for relevant rows for AVERAGE_PRECISION and
        RECIPROCAL_RANK, utilities for the others. The first k ranks count (all for PAIRS and
        KENDALL). Returns (Q,), NaN where the metric is undefined.
        """

    @staticmethod
    def class_moments(
        batch: Batch, shift: Array, group: Array, kind: int, grid: Grid, n_threads: int
    ) -> tuple[Array, Array, Array | None]:
        """Weights, sums and scatter of classes: (4.21), (4.28).

        shift is (K, d) float64 in C order: integers in the range of the type if X has 8-bit
        features, and zeros for CSR, except for COUNTS, which takes any. group is (K,) int32:
        classes with the same number share a scatter matrix. Offsets are not read. Returns (n (K,),
        M (K, d), S) with S None, (K, d) for SQUARES, (groups, d, d) for SCATTER, or
        (groups, 2 d, 2 d) for QUARTIC, which is for dense X only. Sums of 8-bit features with
        equal weights are exact.
        """

    @staticmethod
    def quadratic_scores(
        X: KernelRows, mean: Array, A: Array, c: Array, grid: Grid, n_threads: int
    ) -> tuple[Array, bool]:
        """Quadratic scores of classes, and whether all are finite: (10.2), (10.34).

        z_k = c_k - |A_k (x - mean_k)|^2 / 2. mean is (K, d); A is (K, p, d), or (K, d) for
        diagonal A_k; both float64 in C order. Returns ((N, K) float64, bool).
        """

    @staticmethod
    def expand(X: KernelRows, grid: Grid, n_threads: int) -> Array:
        """The features of mapped rows: (10.3), (10.35).

        Returns (N, d) float64. If a cell of a row is not finite, all its features are NaN.
        """
