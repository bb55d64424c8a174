"""How good a ranking is: grouped by query, on all cores.

Every metric takes the grades or utilities of the rows, the scores that order them, and `group`: the query of each row in any
order, or the sizes of queries whose rows stand together (as many values as there are rows are names, always). Arrays of shape
(queries, rows), as scikit-learn's `ndcg_score` takes them, are a query a row. A query whose rows tell nothing (none is relevant,
or all are equal) counts as `empty`, or not at all.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from . import _config, _validate_rank
from ._kernels import Metric, group_grid

SHORT = 1000  # rows of a query: of longer ones `top_k` looks for the best without sorting

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


def _arrays(y_true, y_score, group):
    """Utilities, scores and queries; of (Q, n) arrays, a query a row."""
    shape = np.shape(y_true)
    if len(shape) == 2 and shape[1] > 1:
        if group is not None or np.shape(y_score) != shape:
            raise ValueError(f"y_true of shape {shape} needs y_score of that shape, and no group; got {np.shape(y_score)}")
        y_true, y_score, group = np.ravel(y_true), np.ravel(y_score), np.repeat(np.arange(shape[0]), shape[1])
    n = len(np.asarray(y_true))
    y = _validate_rank.utilities(y_true, n, "y_true")
    z = _validate_rank.utilities(y_score, n, "y_score")
    return y, z, group


def _per_query(metric, y, z, group, k=None, backend=None, n_threads=None):
    """The values of one of the kernels' metrics, (Q,): NaN where a query tells nothing, or has no rows."""
    codes, count = _validate_rank.queries(group, len(y))
    k = _validate_rank.depth(k)
    out = np.full(count, np.nan)
    if not len(y):
        return out
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, y, z = codes[order], y[order], z[order]
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1], [True]])).astype(np.int64)
    with _config.threads(n_threads, 40 * len(y)) as n:
        out[codes[starts[:-1]]] = _config.kernels(backend).group_metric(
            int(metric), np.ascontiguousarray(y), np.ascontiguousarray(z), starts, k, group_grid(starts), n
        )
    return out


def _mean(values, empty, query_weight):
    """The mean over queries, those that tell nothing counted as the user chose."""
    weight = _validate_rank.weights(query_weight, len(values), "query_weight", "query")
    weight = np.broadcast_to(weight, len(values))
    if empty == "skip":
        known = ~np.isnan(values)
        values, weight = values[known], weight[known]
    elif isinstance(empty, Real) and not isinstance(empty, bool):
        values = np.where(np.isnan(values), empty, values)
    else:
        raise ValueError(f"empty must be a number or 'skip', got {empty!r}")
    return float(weight @ values / weight.sum()) if len(values) and weight.any() else float("nan")


def ndcg_score(
    y_true,
    y_score,
    *,
    group=None,
    k=None,
    gains="linear",
    ties="average",
    empty=0.0,
    query_weight=None,
    backend=None,
    n_threads=None,
):
    """Normalised discounted cumulative gain: sum of gain / log2(1 + rank) over that of the best order, averaged over queries.

    Parameters
    ----------
    y_true : array of shape (N,), or (Q, n)
        Grades, none negative.
    y_score : of the shape of y_true
    group : array of shape (N,) or (Q,), optional
        The query of each row, or sizes of queries; None: one query.
    k : int or None, default=None
        Only the first k ranks count.
    gains : {"linear", "exponential"}, default="linear"
        A row of grade y brings y, as in scikit-learn, or 2^y - 1.
    ties : {"average", "worst"}, default="average"
        Rows of equal scores get the mean over their orders, as in scikit-learn; or the worse ones come first.
    empty : float or "skip", default=0.0
        What queries without a relevant row count as; "skip" leaves them out.
    query_weight : array of shape (Q,), optional
    backend, n_threads
        As everywhere.

    Examples
    --------
    >>> from fastdisc.metrics import ndcg_score
    >>> round(ndcg_score([3, 2, 0, 1, 0], [0.1, 0.9, 0.5, 0.8, 0.2], group=[1, 1, 1, 2, 2], k=2), 4)
    0.7346
    """
    y, z, group = _arrays(y_true, y_score, group)
    if ties not in ("average", "worst"):
        raise ValueError(f"ties must be one of 'average', 'worst', got {ties!r}")
    metric = Metric.NDCG if ties == "average" else Metric.NDCG_WORST
    gain = _validate_rank.gains(y, gains, "y_true") if len(y) else y
    return _mean(_per_query(metric, gain, z, group, k, backend, n_threads), empty, query_weight)


def _relevant(y, relevant):
    """1 for rows of a grade higher than that."""
    if not isinstance(relevant, Real) or np.isnan(relevant):
        raise ValueError(f"relevant must be a number, got {relevant!r}")
    return (y > relevant).astype(float)


def mean_average_precision(
    y_true, y_score, *, group=None, k=None, relevant=0.0, empty=0.0, query_weight=None, backend=None, n_threads=None
):
    """Mean over queries of the average precision at the ranks of relevant rows; of equal scores the irrelevant rows come first.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; with k, a query's precisions are averaged over min(k, relevant rows).
    relevant : float, default=0.0
        Rows of a higher grade are relevant.

    Examples
    --------
    >>> from fastdisc.metrics import mean_average_precision
    >>> round(mean_average_precision([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]), 4)
    0.8333
    """
    y, z, group = _arrays(y_true, y_score, group)
    values = _per_query(Metric.AVERAGE_PRECISION, _relevant(y, relevant), z, group, k, backend, n_threads)
    return _mean(values, empty, query_weight)


def mean_reciprocal_rank(
    y_true, y_score, *, group=None, k=None, relevant=0.0, empty=0.0, query_weight=None, backend=None, n_threads=None
):
    """Mean over queries of 1 / rank of the first relevant row; of equal scores the irrelevant rows come first.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; a first relevant row beyond rank k counts 0.
    relevant : float, default=0.0
        Rows of a higher grade are relevant.

    Examples
    --------
    >>> from fastdisc.metrics import mean_reciprocal_rank
    >>> mean_reciprocal_rank([0, 1, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    values = _per_query(Metric.RECIPROCAL_RANK, _relevant(y, relevant), z, group, k, backend, n_threads)
    return _mean(values, empty, query_weight)


def expected_reciprocal_rank(
    y_true, y_score, *, group=None, k=None, highest=None, empty=0.0, query_weight=None, backend=None, n_threads=None
):
    """Mean over queries of the expected 1 / rank at which a reader stops, at each row with probability (2^y - 1) / 2^highest.

    Parameters
    ----------
    y_true, y_score, group, k, empty, query_weight, backend, n_threads
        As in `ndcg_score`; of equal scores the worse rows come first.
    highest : float or None, default=None
        The highest grade there is; None for that of y_true.

    Examples
    --------
    >>> from fastdisc.metrics import expected_reciprocal_rank
    >>> expected_reciprocal_rank([1, 0, 0], [3.0, 2.0, 1.0])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    gain = _validate_rank.gains(y, "exponential", "y_true") if len(y) else y
    top = y.max(initial=0.0) if highest is None else highest
    if not isinstance(top, Real) or not top >= y.max(initial=0.0):
        raise ValueError(f"highest must be at least the highest grade of y_true, {y.max(initial=0.0):g}, got {highest!r}")
    values = _per_query(Metric.EXPECTED_RECIPROCAL_RANK, gain * np.exp2(-float(top)), z, group, k, backend, n_threads)
    return _mean(values, empty, query_weight)


def kendall_tau(y_true, y_score, *, group=None, empty=0.0, query_weight=None, backend=None, n_threads=None):
    """Kendall's tau-b, which allows for ties, averaged over queries: 1 for the same order, -1 for the opposite one.

    Parameters
    ----------
    y_true, y_score, group, empty, query_weight, backend, n_threads
        As in `ndcg_score`, with utilities of any sign. Where all scores of a query are equal, its tau is 0.

    Examples
    --------
    >>> from fastdisc.metrics import kendall_tau
    >>> round(kendall_tau([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0]), 4)
    0.6667
    """
    y, z, group = _arrays(y_true, y_score, group)
    return _mean(_per_query(Metric.KENDALL, y, z, group, None, backend, n_threads), empty, query_weight)


def pairwise_accuracy(y_true, y_score, *, group=None, empty=0.0, query_weight=None, backend=None, n_threads=None):
    """The share of pairs of different utility that are in the right order, equal scores counting half, averaged over queries.

    Parameters
    ----------
    y_true, y_score, group, empty, query_weight, backend, n_threads
        As in `ndcg_score`, with utilities of any sign.

    Examples
    --------
    >>> from fastdisc.metrics import pairwise_accuracy
    >>> pairwise_accuracy([0, 1, 0, 1], [1.0, 2.0, 5.0, 4.0], group=["a", "a", "b", "b"])
    0.5
    """
    y, z, group = _arrays(y_true, y_score, group)
    return _mean(_per_query(Metric.PAIRS, y, z, group, None, backend, n_threads), empty, query_weight)


def make_group_scorer(metric=ndcg_score, **options):
    """A scorer for `cross_val_score`, `GridSearchCV` and the like, which asks for the metadata `group`.

    It needs scikit-learn's metadata routing, and fails where no `group` comes: a fold is not one query.

    Parameters
    ----------
    metric : callable, default=ndcg_score
        One of this module.
    **options
        Its keywords, such as `k`.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from fastdisc import PairwiseRanker
    >>> from fastdisc.metrics import make_group_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, query = rng.standard_normal((60, 3)), np.repeat(np.arange(12), 5)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     data = {"group": query, "groups": query}  # for the ranker and the scorer; for GroupKFold
    ...     scores = cross_val_score(PairwiseRanker(), X, y, cv=GroupKFold(3), scoring=make_group_scorer(k=3), params=data)
    >>> scores.shape
    (3,)
    """
    import sklearn
    from sklearn.metrics import make_scorer

    with sklearn.config_context(enable_metadata_routing=True):  # needed to ask, and to be given what was asked for
        return make_scorer(_grouped, metric=metric, **options).set_score_request(group=True)


def _grouped(y_true, y_score, *, metric, group=None, **options):
    """A metric that must not take all rows for one query because nobody passed their queries on."""
    if group is None:
        raise ValueError(
            "the scorer was given no group: set sklearn.set_config(enable_metadata_routing=True) and pass `group`, as in the "
            "example of make_group_scorer; or, for rows of one query, take sklearn.metrics.make_scorer"
        )
    return metric(y_true, y_score, group=group, **options)


def ranks(scores, group=None):
    """The rank of each row in its query, (N,): 1 for the highest score; equal ones in their order.

    Parameters
    ----------
    scores : array of shape (N,)
    group : array of shape (N,) or (Q,), optional

    Examples
    --------
    >>> from fastdisc.metrics import ranks
    >>> ranks([0.5, 2.0, 1.0, 7.0], group=[0, 0, 0, 1])
    array([3, 1, 2, 1])
    """
    z = _validate_rank.utilities(scores, len(scores), "scores")
    codes, _ = _validate_rank.queries(group, len(z))
    order = np.lexsort((-z, codes))  # stable
    sizes = np.bincount(codes)
    out = np.empty(len(z), np.int64)
    out[order] = 1 + np.arange(len(z)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out


def top_k(scores, k, group=None):
    """Numbers of the rows with the k highest scores, best first: (k,), or (Q, k) of queries, filled up with -1.

    Parameters
    ----------
    scores : array of shape (N,)
    k : int
    group : array of shape (N,) or (Q,), optional

    Examples
    --------
    >>> from fastdisc.metrics import top_k
    >>> top_k([0.5, 2.0, 1.0, 7.0], 2)
    array([3, 1])
    """
    z = _validate_rank.utilities(scores, len(scores), "scores")
    k = _validate_rank.depth(k)
    if group is None:
        return _best(z, min(k, len(z)))
    codes, count = _validate_rank.queries(group, len(z))
    order = np.argsort(codes, kind="stable") if (codes[1:] < codes[:-1]).any() else np.arange(len(z))
    ends = np.cumsum(np.bincount(codes, minlength=count))
    k = min(k, int(np.diff(ends, prepend=0).max(initial=0)))
    out = np.full((count, k), -1)
    if len(z) < SHORT * count:  # many short queries: sorting them all takes less time than looking at one after the other
        order = np.lexsort((-z, codes))
        rank = np.arange(len(z)) - np.repeat(ends - np.diff(ends, prepend=0), np.diff(ends, prepend=0))
        order, rank = order[rank < k], rank[rank < k]
        out[codes[order], rank] = order
        return out
    for query, (lo, hi) in enumerate(zip([0, *ends[:-1]][: len(ends)], ends, strict=True)):
        rows = order[lo:hi]
        out[query, : min(k, len(rows))] = rows[_best(z[rows], min(k, len(rows)))]
    return out


def _best(z, k):
    """Places of the k highest, best first; equal ones in their order."""
    if k >= len(z):
        return np.argsort(-z, kind="stable")
    bound = -np.partition(-z, k - 1)[k - 1] if k else np.inf
    above, at = np.flatnonzero(z > bound), np.flatnonzero(z == bound)
    found = np.concatenate([above, at[: k - len(above)]])
    return found[np.lexsort((found, -z[found]))]
