"""Ranking metrics, grouped by query and computed on all cores.

A metric takes the grades or utilities of the rows, the scores that order them, and `group`: either
the query of each row, in any order, or the sizes of queries whose rows are contiguous. (As many
values as there are rows are always read as the query of each row.) Arrays of shape (Q, n), as
scikit-learn's `ndcg_score` takes them, have one query per row. A query for which a metric is
undefined, because no row is relevant or all rows are equal, counts as `empty`, or is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from . import runtime
from ._kernels.contract import Array
from ._kernels.enums import RankMetric
from ._kernels.grid import query_grid
from ._validation.queries import (
    check_gains,
    check_queries,
    check_rank_limit,
    check_utilities,
    check_weights,
)

__all__ = [
    "expected_reciprocal_rank",
    "kendall_tau",
    "make_group_scorer",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "ndcg_score",
    "pairwise_accuracy",
    "ranks",
    "top_k",
]

WORK_PER_ROW = 40  # multiply-adds that a metric takes for a row, about
# From this many rows per query on, `top_k` finds the best of each query without sorting it.
MIN_PARTITION_ROWS = 1000


def _arrays(y_true: Any, y_score: Any, group: Any) -> tuple[Array, Array, Any]:
    """Utilities, scores and group; arrays of shape (Q, n) are flattened."""
    shape = np.shape(y_true)
    if len(shape) == 2 and shape[1] > 1:
        if group is not None or np.shape(y_score) != shape:
            raise ValueError(
                f"y_true of shape {shape} needs y_score of that shape, and no group; got "
                f"{np.shape(y_score)}"
            )
        y_true, y_score = np.ravel(y_true), np.ravel(y_score)
        group = np.repeat(np.arange(shape[0]), shape[1])
    n = len(np.asarray(y_true))
    return check_utilities(y_true, n, "y_true"), check_utilities(y_score, n, "y_score"), group


def _per_query(
    metric: RankMetric,
    y: Array,
    z: Array,
    group: Any,
    k: int | None,
    backend: str | None,
    n_threads: int | None,
) -> Array:
    """A metric of each query, (Q,): NaN where it is undefined or the query has no rows."""
    codes, count = check_queries(group, len(y))
    limit = check_rank_limit(k)
    out = np.full(count, np.nan)
    if not len(y):
        return out
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, y, z = codes[order], y[order], z[order]
    first = np.concatenate([[True], codes[1:] != codes[:-1], [True]])
    starts = np.flatnonzero(first).astype(np.int64)
    y, z = np.ascontiguousarray(y), np.ascontiguousarray(z)
    with runtime.threads(n_threads, WORK_PER_ROW * len(y)) as n:
        kernels = runtime.kernels(backend)
        values = kernels.query_metric(int(metric), y, z, starts, limit, query_grid(starts), n)
    out[codes[starts[:-1]]] = values
    return out


def _mean(values: Array, empty: Any, query_weight: Any) -> float:
    """The weighted mean over queries; undefined values count as `empty`, or are skipped."""
    weight = check_weights(query_weight, len(values), "query_weight", "query")
    weight = np.broadcast_to(weight, len(values))
    if isinstance(empty, str) and empty == "skip":
        known = ~np.isnan(values)
        values, weight = values[known], weight[known]
    elif isinstance(empty, Real) and not isinstance(empty, bool):
        values = np.where(np.isnan(values), float(empty), values)
    else:
        raise ValueError(f"empty must be a number or 'skip', got {empty!r}")
    return float(weight @ values / weight.sum()) if weight.any() else float("nan")


def ndcg_score(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    k: int | None = None,
    gains: str = "linear",
    ties: str = "average",
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """Normalised discounted cumulative gain, averaged over queries.

    The sum of gain / log2(1 + rank), divided by that of the best order.

    Parameters
    ----------
    y_true : array-like of shape (N,) or (Q, n)
        Grades, none negative.
    y_score : array-like of the shape of y_true
    group : array-like of shape (N,) or (Q,), optional
        The query of each row, or the sizes of the queries; None for a single query.
    k : int or None, default=None
        Only the first k ranks count; None for all.
    gains : {"linear", "exponential"}, default="linear"
        The gain of grade y is y, as in scikit-learn, or 2^y - 1.
    ties : {"average", "worst"}, default="average"
        The mean over all orders of rows with equal scores, as in scikit-learn, or the worst order.
    empty : float or "skip", default=0.0
        The value of queries without a relevant row; "skip" leaves them out.
    query_weight : array-like of shape (Q,), optional
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import ndcg_score
    >>> y_true, y_score = [3, 2, 0, 1, 0], [0.1, 0.9, 0.5, 0.8, 0.2]
    >>> round(ndcg_score(y_true, y_score, group=[1, 1, 1, 2, 2], k=2), 4)
    0.7346
    """
    y, z, group = _arrays(y_true, y_score, group)
    if ties not in ("average", "worst"):
        raise ValueError(f"ties must be one of 'average', 'worst', got {ties!r}")
    metric = RankMetric.NDCG if ties == "average" else RankMetric.NDCG_WORST
    gain = check_gains(y, gains, "y_true") if len(y) else y
    values = _per_query(metric, gain, z, group, k, backend, n_threads)
    return _mean(values, empty, query_weight)


def _relevance(y: Array, relevant: Any) -> Array:
    """1 for rows of a higher grade than `relevant`, else 0."""
    if not isinstance(relevant, Real) or np.isnan(float(relevant)):
        raise ValueError(f"relevant must be a number, got {relevant!r}")
    return (y > float(relevant)).astype(float)


def mean_average_precision(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    k: int | None = None,
    relevant: float = 0.0,
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """Mean over queries of the average precision at the ranks of relevant rows.

    Among rows with equal scores, irrelevant ones are ranked first.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; with k, the precisions of a query are averaged over
        min(k, number of relevant rows).
    relevant : float, default=0.0
        Rows of a higher grade are relevant.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import mean_average_precision
    >>> round(mean_average_precision([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]), 4)
    0.8333
    """
    y, z, group = _arrays(y_true, y_score, group)
    metric, y = RankMetric.AVERAGE_PRECISION, _relevance(y, relevant)
    return _mean(_per_query(metric, y, z, group, k, backend, n_threads), empty, query_weight)


def mean_reciprocal_rank(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    k: int | None = None,
    relevant: float = 0.0,
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """Mean over queries of 1 / rank of the first relevant row.

    Among rows with equal scores, irrelevant ones are ranked first.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; a query whose first relevant row is beyond rank k counts 0.
    relevant : float, default=0.0
        Rows of a higher grade are relevant.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import mean_reciprocal_rank
    >>> mean_reciprocal_rank([0, 1, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    metric, y = RankMetric.RECIPROCAL_RANK, _relevance(y, relevant)
    return _mean(_per_query(metric, y, z, group, k, backend, n_threads), empty, query_weight)


def expected_reciprocal_rank(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    k: int | None = None,
    highest: float | None = None,
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """Mean over queries of the expected 1 / rank at which a reader stops.

    He stops at a row of grade y with probability (2^y - 1) / 2^highest.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; among rows with equal scores, lower grades are ranked first.
    highest : float or None, default=None
        The highest possible grade; None for the highest of y_true.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import expected_reciprocal_rank
    >>> expected_reciprocal_rank([1, 0, 0], [3.0, 2.0, 1.0])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    gain = check_gains(y, "exponential", "y_true") if len(y) else y
    lowest = float(y.max(initial=0.0))
    top = lowest if highest is None else highest
    if not isinstance(top, Real) or not float(top) >= lowest:
        raise ValueError(
            f"highest must be at least the highest grade of y_true, {lowest:g}, got {highest!r}"
        )
    metric, p = RankMetric.EXPECTED_RECIPROCAL_RANK, gain * np.exp2(-float(top))
    return _mean(_per_query(metric, p, z, group, k, backend, n_threads), empty, query_weight)


def kendall_tau(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """Kendall's tau-b, averaged over queries: 1 for the same order, -1 for the opposite.

    Parameters
    ----------
    y_true, y_score, group, empty, query_weight, backend, n_threads
        As in `ndcg_score`, with utilities of any sign. If all scores of a query are equal, its tau
        is 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import kendall_tau
    >>> round(kendall_tau([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0]), 4)
    0.6667
    """
    y, z, group = _arrays(y_true, y_score, group)
    values = _per_query(RankMetric.KENDALL, y, z, group, None, backend, n_threads)
    return _mean(values, empty, query_weight)


def pairwise_accuracy(
    y_true: Any,
    y_score: Any,
    *,
    group: Any = None,
    empty: float | str = 0.0,
    query_weight: Any = None,
    backend: str | None = None,
    n_threads: int | None = None,
) -> float:
    """The share of pairs of different utility in the right order, averaged over queries.

    A pair of equal scores counts one half.

    Parameters
    ----------
    y_true, y_score, group, empty, query_weight, backend, n_threads
        As in `ndcg_score`, with utilities of any sign.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdisc.metrics import pairwise_accuracy
    >>> pairwise_accuracy([0, 1, 0, 1], [1.0, 2.0, 5.0, 4.0], group=["a", "a", "b", "b"])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    values = _per_query(RankMetric.PAIRS, y, z, group, None, backend, n_threads)
    return _mean(values, empty, query_weight)


def make_group_scorer(metric: Callable[..., float] = ndcg_score, **options: Any) -> Any:
    """Make a scorer for `cross_val_score`, `GridSearchCV` etc. that requests the metadata `group`.

    It needs scikit-learn's metadata routing, and raises if no `group` is passed: a fold is not a
    single query.

    Parameters
    ----------
    metric : callable, default=ndcg_score
        One of this module.
    **options
        Keyword arguments of the metric, such as `k`.

    Returns
    -------
    scorer

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from fastdisc import PairwiseRanker
    >>> from fastdisc.metrics import make_group_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, query = rng.standard_normal((60, 3)), np.repeat(np.arange(12), 5)
    >>> y, scorer = (X[:, 0] > 0).astype(int), make_group_scorer(k=3)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     data = {"group": query, "groups": query}  # for ranker and scorer; for GroupKFold
    ...     folds = GroupKFold(3)
    ...     scores = cross_val_score(PairwiseRanker(), X, y, cv=folds, scoring=scorer, params=data)
    >>> scores.shape
    (3,)
    """
    import sklearn
    from sklearn.metrics import make_scorer

    # Routing must be enabled for a scorer to request metadata.
    with sklearn.config_context(enable_metadata_routing=True):
        return make_scorer(_grouped, metric=metric, **options).set_score_request(group=True)


def _grouped(
    y_true: Any, y_score: Any, *, metric: Callable[..., float], group: Any = None, **options: Any
) -> float:
    """A metric that does not treat all rows as one query if no `group` is passed."""
    if group is None:
        raise ValueError(
            "the scorer was given no group: set sklearn.set_config(enable_metadata_routing=True) "
            "and pass `group`, as in the example of make_group_scorer; or, for rows of one query, "
            "use sklearn.metrics.make_scorer"
        )
    return metric(y_true, y_score, group=group, **options)


def ranks(scores: Any, group: Any = None) -> Array:
    """The rank of each row within its query: 1 for the highest score.

    Parameters
    ----------
    scores : array-like of shape (N,)
    group : array-like of shape (N,) or (Q,), optional
        The query of each row, or the sizes of the queries; None for a single query.

    Returns
    -------
    ndarray of shape (N,)
        Rows with equal scores are ranked in their order.

    Examples
    --------
    >>> from fastdisc.metrics import ranks
    >>> ranks([0.5, 2.0, 1.0, 7.0], group=[0, 0, 0, 1])
    array([3, 1, 2, 1])
    """
    z = check_utilities(scores, len(scores), "scores")
    codes, _ = check_queries(group, len(z))
    order = np.lexsort((-z, codes))  # stable
    sizes = np.bincount(codes)
    out = np.empty(len(z), np.int64)
    out[order] = 1 + np.arange(len(z)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out


def top_k(scores: Any, k: int, group: Any = None) -> Array:
    """The numbers of the rows with the k highest scores, best first.

    Parameters
    ----------
    scores : array-like of shape (N,)
    k : int
    group : array-like of shape (N,) or (Q,), optional
        The query of each row, or the sizes of the queries; None for a single query.

    Returns
    -------
    ndarray of shape (k,), or (Q, k) with group
        Queries of fewer than k rows are filled up with -1. k is reduced to the number of rows, or
        of rows of the largest query.

    Examples
    --------
    >>> from fastdisc.metrics import top_k
    >>> top_k([0.5, 2.0, 1.0, 7.0], 2)
    array([3, 1])
    """
    z = check_utilities(scores, len(scores), "scores")
    k = check_rank_limit(k)
    if group is None:
        return _best(z, min(k, len(z)))
    codes, count = check_queries(group, len(z))
    sizes = np.bincount(codes, minlength=count)
    starts = np.cumsum(sizes) - sizes
    k = min(k, int(sizes.max(initial=0)))
    out = np.full((count, k), -1)
    # Sorting all rows takes less time than a loop over many short queries.
    if len(z) < MIN_PARTITION_ROWS * count:
        order = np.lexsort((-z, codes))
        rank = np.arange(len(z)) - np.repeat(starts, sizes)
        order, rank = order[rank < k], rank[rank < k]
        out[codes[order], rank] = order
        return out
    in_order = not (codes[1:] < codes[:-1]).any()
    order = np.arange(len(z)) if in_order else np.argsort(codes, kind="stable")
    for query, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = order[start : start + size]
        out[query, : min(k, size)] = rows[_best(z[rows], min(k, size))]
    return out


def _best(z: Array, k: int) -> Array:
    """Places of the k highest scores, best first; equal ones in their order."""
    if k >= len(z):
        return np.argsort(-z, kind="stable")
    bound = -np.partition(-z, k - 1)[k - 1] if k else np.inf
    above, at = np.flatnonzero(z > bound), np.flatnonzero(z == bound)
    found = np.concatenate([above, at[: k - len(above)]])
    return found[np.lexsort((found, -z[found]))]
