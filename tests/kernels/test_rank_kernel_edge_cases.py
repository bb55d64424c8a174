"""Ranking kernels: very large scores, gains without discounts, weights of another size."""

import numpy as np
import pytest
from helpers import oracles
from helpers.problems import make_queries

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import PairLoss, PairRule, query_grid


@pytest.mark.parametrize("far", [1e10, 1e17, -1e17])
@pytest.mark.parametrize("loss", [PairLoss.HINGE, PairLoss.SQUARED_HINGE])
def test_very_large_score_does_not_cancel_digits_of_the_others(loss, far):
    queries, y = make_queries(np.random.default_rng(1), 400, 0, 5)
    z, rule = np.random.default_rng(2).standard_normal(400), PairRule(loss, 1.0)
    first = int(queries.starts[-2])  # of the rows of the large query
    middle = first + (400 - first) // 2
    z[middle] = far
    group = np.repeat(np.arange(len(queries.starts) - 1), np.diff(queries.starts))
    _, active, e, _ = oracles.rank(z, group, y, queries.s, loss.name, 1.0, 1.0)
    args = queries, rule, query_grid(queries.starts), 1
    _, found, sums = _kernels.load("cython").query_loss(z, *args)
    others = np.arange(400) != middle
    assert found == pytest.approx(active)
    assert np.abs(sums - e)[others].max() <= 1e-10 * np.abs(e[others]).max()


def test_gains_without_discounts_do_not_change_the_loss(backend):
    queries, _ = make_queries(np.random.default_rng(1), 20, 2, 3)
    z, rule = np.random.default_rng(2).standard_normal(20), PairRule(PairLoss.LOGISTIC)
    losses = [
        backend.query_loss(z, given, rule, query_grid(queries.starts), 1)[0]
        for given in (queries, queries._replace(gain=np.ones(20)))
    ]
    assert losses[0] == losses[1]


def test_online_pairs_with_weights_of_another_size_raise(backend):
    X, pairs, rule = DenseRows(np.ones((4, 5))), np.array([[0, 1]]), PairRule(PairLoss.HINGE, 1.0)
    with pytest.raises(ValueError, match="w has 3 weights, X has 5 columns"):
        backend.online_pairs(X, pairs, np.ones(1), np.zeros(3), 0.1, rule)
