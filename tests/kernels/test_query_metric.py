"""Metrics of the order of scores against brute force."""

import numpy as np
import pytest
from helpers import oracles
from helpers.problems import make_queries
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score

from fastdisc._kernels import RankMetric, query_grid

ALL = 10**9


def ndcg(y, z, k):
    if max(y) <= 0:
        return np.nan
    return ndcg_score([y], [z], k=k) if len(y) > 1 else 1.0


def kendall(y, z, k):
    if len(set(y)) == 1:
        return np.nan
    return kendalltau(y, z).statistic if len(set(z)) > 1 else 0.0


ORACLES = {
    RankMetric.NDCG: ndcg,
    RankMetric.AVERAGE_PRECISION: oracles.average_precision,
    RankMetric.RECIPROCAL_RANK: oracles.reciprocal_rank,
    RankMetric.EXPECTED_RECIPROCAL_RANK: oracles.expected_reciprocal_rank,
    RankMetric.KENDALL: kendall,
    RankMetric.PAIRS: lambda y, z, k: oracles.pairwise_accuracy(y, z),
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", list(ORACLES))
def test_metrics_are_the_definition(backend, rng, metric, ties):
    queries, _ = make_queries(rng, 400, 12, 4)
    y, z = rng.integers(0, 4, 400) * (rng.random(400) < 0.3), rng.standard_normal(400)
    if metric in (RankMetric.AVERAGE_PRECISION, RankMetric.RECIPROCAL_RANK):
        y = y > 0
    y = y.astype(float) / (4 if metric == RankMetric.EXPECTED_RECIPROCAL_RANK else 1)
    z, starts = np.round(z) if ties else z, queries.starts
    for k in (1, 3, 10, ALL):
        found = backend.query_metric(metric, y, z, starts, k, query_grid(starts), 2)
        for value, lo, hi in zip(found, starts[:-1], starts[1:], strict=True):
            expected = ORACLES[metric](y[lo:hi].tolist(), z[lo:hi].tolist(), min(k, hi - lo))
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13)


def test_ndcg_worst_ranks_tied_scores_in_their_worst_order(backend):
    y, z, starts = np.array([1.0, 0.0, 0.0]), np.zeros(3), np.array([0, 3])
    found = [
        backend.query_metric(RankMetric.NDCG_WORST, y, z, starts, k, query_grid(starts), 1)[0]
        for k in (ALL, 2)
    ]
    assert found[0] == pytest.approx(0.5)
    assert found[1] == 0
