"""Objectives of rankers: queries and their pairs are the same objective, samples estimate it."""

import numpy as np
import pytest
from helpers import oracles

from fastdisc._data.dense import DenseRows
from fastdisc._kernels import PairLoss, PairRule
from fastdisc._objectives.pair_sums import PairSums
from fastdisc._objectives.query_sums import QuerySums

RULES = [
    PairRule(PairLoss.LOGISTIC),
    PairRule(PairLoss.SQUARED_HINGE, 1.0),
    PairRule(PairLoss.HUBER, 1.0, 0.5),
]


def make_both(rng, rule, n=200, d=4):
    """The pairs of queries, and the same pairs given one by one."""
    X, group = DenseRows(rng.standard_normal((n, d))), rng.integers(0, 6, n)
    y = rng.integers(0, 4, n).astype(float)
    u, v = np.nonzero((group[:, None] == group) & (y[:, None] > y))
    s, offset = rng.random(n) + 0.5, 0.1 * rng.standard_normal(n)
    by_query = QuerySums(X, group, y, s, rule, offset=offset)
    pairs = np.column_stack([u, v])
    return by_query, PairSums(X, pairs, s[u] * s[v], rule, offset=offset)


@pytest.mark.parametrize("rule", RULES)
def test_queries_and_their_pairs_have_the_same_sums(rng, rule):
    W = np.concatenate([[0.0], rng.standard_normal(4)])[None, :]
    both = make_both(rng, rule)
    for a, b in zip(*(data.hessian(W) for data in both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    one, other = both
    np.testing.assert_allclose(one.total_weight, other.total_weight)
    np.testing.assert_allclose(one.pair_weights_of_rows(), other.pair_weights_of_rows())
    for a, b in zip(one.curvature_diagonal(), other.curvature_diagonal(), strict=True):
        np.testing.assert_allclose(a, b)
    assert one.n_pairs == other.n_pairs


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("which", [0, 1], ids=["queries", "pairs"])
def test_sums_are_those_of_all_pairs_one_by_one(rng, rule, which):
    data = make_both(rng, rule, n=40)[which]
    queries = make_both(np.random.default_rng(20240607), rule, n=40)[0]
    W = np.concatenate([[0.0], rng.standard_normal(4)])[None, :]
    z = queries.X.values @ W[0, 1:] + queries.offset
    args = z, queries.group, queries.y, queries.s, rule.loss.name, rule.margin, rule.width
    loss, active, e, L = oracles.rank(*args)
    X = queries.X.values
    found = data.hessian(W)
    assert found.value == pytest.approx(loss) and found.errors == pytest.approx(active)
    np.testing.assert_allclose(found.gradient[0, 1:], e @ X, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.hessian[1:, 1:], X.T @ L @ X, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("grouped", [True, False])
def test_rows_may_be_in_any_order(rng, grouped):
    """Grouped rows take one pass that scores, compares and sums; others take three."""
    n, rule = 300, RULES[0]
    X, y = rng.standard_normal((n, 3)), rng.integers(0, 4, n).astype(float)
    group = np.sort(rng.integers(0, 9, n))
    order = rng.permutation(n)
    data = QuerySums(DenseRows(X), group, y, np.ones(1), rule)
    mixed = QuerySums(DenseRows(X[order]), group[order], y[order], np.ones(1), rule)
    assert data.is_grouped and not mixed.is_grouped
    W = np.array([[0.0, 0.5, -1.0, 0.2]])
    one, other = data.hessian(W), mixed.hessian(W)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "queries", "grades"),
    [(3000, 300, 3), (3000, 4, 2), (3000, 1, None), (3000, 6, 40)],
    ids=["small", "long", "one", "many grades"],
)
def test_samples_estimate_the_sums_of_all_pairs(rng, n, queries, grades):
    X, group = rng.standard_normal((n, 3)), rng.integers(0, queries, n)
    y = rng.standard_normal(n) if grades is None else np.floor(grades * rng.random(n) ** 3)
    data = QuerySums(DenseRows(X), group, y, rng.random(n), PairRule(PairLoss.LOGISTIC))
    W = np.array([[0.0, 0.5, -1.0, 0.2]])
    parts = [data.sample(600, seed) for seed in range(40)]
    assert all(400 <= part.n_rows <= 1000 for part in parts)
    values = [part.value_and_gradient(W).value for part in parts]
    np.testing.assert_allclose(np.mean(values), data.value_and_gradient(W).value, rtol=0.05)
    weights = [part.total_weight for part in parts]
    np.testing.assert_allclose(np.mean(weights), data.total_weight, rtol=0.05)
    assert data.sample(n, 0) is data


def test_pairs_are_drawn_by_their_places(rng):
    data, _ = make_both(rng, RULES[0])
    pairs, weight = data.draw_pairs(np.arange(data.n_pairs))
    assert len({tuple(pair) for pair in pairs.tolist()}) == data.n_pairs
    u, v = pairs.T
    assert (data.y[u] > data.y[v]).all() and (data.group[u] == data.group[v]).all()
    np.testing.assert_allclose(weight, data.s[u] * data.s[v])


@pytest.mark.parametrize("rule", RULES)
def test_order_of_calls_changes_no_bit(rng, rule):
    """Scores and sums at the last weights are cached."""
    W, V = np.concatenate([np.zeros((2, 1)), rng.standard_normal((2, 4))], axis=1)[:, None]
    for data in make_both(rng, rule):
        fresh = [data.replace() for _ in range(3)]
        expected = fresh[0].value_and_gradient(W), fresh[1].product(W, V), fresh[2].value(W)
        data.value(W)
        data.product(W, V)
        found = data.value_and_gradient(W), data.product(W, V), data.value(W)
        assert found[0].value == expected[0].value and found[2] == expected[2]
        np.testing.assert_array_equal(found[0].gradient, expected[0].gradient)
        np.testing.assert_array_equal(found[1], expected[1])


def test_reordered_pairs_have_the_discounts_of_the_scores(rng):
    n, W = 50, np.array([[0.0, 1.0, 0.0]])
    X = rng.standard_normal((n, 2))
    X[3:6, 0] = 0.25  # a tie
    group, y = np.zeros(n, int), rng.integers(0, 4, n).astype(float)
    data = QuerySums(DenseRows(X), group, y, np.ones(1), RULES[0], gain=y, discount=np.ones(n))
    found = data.reordered(W, k=30).discount
    rank = np.argsort(np.argsort(-X[:, 0], kind="stable"), kind="stable")
    expected = np.where(rank < 30, 1 / np.log2(rank + 2.0), 0.0)
    expected[3:6] = expected[3:6].mean()
    np.testing.assert_allclose(found, expected)
