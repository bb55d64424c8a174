"""Sweeps of rankers: the verbs agree with each other, and samples have the sums that are to be expected of all pairs."""

import numpy as np
import oracles
import pytest

from fastdisc._kernels import PairLoss, PairRule
from fastdisc._rank_sweep import PairSweep, RankSweep

RULES = [PairRule(PairLoss.LOGISTIC), PairRule(PairLoss.SQUARED_HINGE, 1.0), PairRule(PairLoss.HUBER, 1.0, 0.5)]


def sweeps(rng, rule, n=200, d=4):
    X, y, group = rng.standard_normal((n, d)), rng.integers(0, 4, n).astype(float), rng.integers(0, 6, n)
    u, v = np.nonzero((group[:, None] == group) & (y[:, None] > y))
    s, offset = rng.random(n) + 0.5, 0.1 * rng.standard_normal(n)
    by_query = RankSweep(X, group, y, s, rule, offset=offset)
    return by_query, PairSweep(X, np.column_stack([u, v]), s[u] * s[v], rule, offset=offset)


@pytest.mark.parametrize("rule", RULES)
def test_queries_and_their_pairs_are_the_same(rng, rule):
    W, V = (np.concatenate([[0.0], rng.standard_normal(4)])[None, :] for _ in range(2))
    both = sweeps(rng, rule)
    (loss, active, g, H), other = both[0](W, 2), both[1](W, 2)
    for a, b in zip((loss, active, g, H), other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(both[0].total(), both[1].total())
    np.testing.assert_allclose(both[0].degrees(), both[1].degrees())
    np.testing.assert_allclose(both[0].squares(), both[1].squares())
    assert both[0].count() == both[1].count()
    for sweep in both:
        numerical = oracles.numerical_gradient(lambda W, sweep=sweep: sweep(W, 0).loss, W)
        np.testing.assert_allclose(numerical[:, 1:], g[:, 1:], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(sweep.product(W, V), (H @ V[0])[None, :], rtol=1e-9, atol=1e-9)
        few = sweep.columns(np.array([0, 2]))
        np.testing.assert_allclose(few(W[:, [0, 1, 3]]).g, sweep(W * [1, 1, 0, 1, 0]).g[:, [0, 1, 3]])


@pytest.mark.parametrize(
    ("n", "queries", "grades"),
    [(3000, 300, 3), (3000, 4, 2), (3000, 1, None), (3000, 6, 40)],
    ids=["small", "long", "one", "many"],
)
def test_samples_are_to_be_expected_of_all_pairs(rng, n, queries, grades):
    X, group = rng.standard_normal((n, 3)), rng.integers(0, queries, n)
    y = rng.standard_normal(n) if grades is None else np.floor(grades * rng.random(n) ** 3)
    sweep = RankSweep(X, group, y, rng.random(n), PairRule(PairLoss.LOGISTIC))
    W = np.array([[0.0, 0.5, -1.0, 0.2]])
    parts = [sweep.sample(600, seed) for seed in range(40)]
    assert all(400 <= part.rows <= 1000 for part in parts)
    np.testing.assert_allclose(np.mean([part(W).loss for part in parts]), sweep(W).loss, rtol=0.05)
    np.testing.assert_allclose(np.mean([part.total() for part in parts]), sweep.total(), rtol=0.05)
    assert sweep.sample(n, 0) is sweep


def test_pairs_by_their_places(rng):
    sweep, _ = sweeps(rng, RULES[0])
    pairs, weight = sweep.draw(np.arange(sweep.count()))
    assert len({tuple(pair) for pair in pairs.tolist()}) == sweep.count()
    u, v = pairs.T
    assert (sweep.y[u] > sweep.y[v]).all() and (sweep.group[u] == sweep.group[v]).all()
    np.testing.assert_allclose(weight, sweep.s[u] * sweep.s[v])
