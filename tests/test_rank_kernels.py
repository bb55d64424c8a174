"""Ranking kernels against all pairs, one by one: grades, real utilities, ties, weights; metrics against brute force."""

import numpy as np
import oracles
import pytest
from conftest import make_features, make_queries
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score

from fastdisc import _kernels
from fastdisc._kernels import Grid, Metric, PairLoss, PairRule, grid, group_grid

ALL = 10**9
LOSSES = list(PairLoss)
# rows, queries, grades: small queries go pair by pair, large ones through the tree, with one level and with several
SHAPES = [(60, 9, 3), (230, 1, 2), (260, 1, 40), (600, 2, None)]


def assert_close(actual, expected, tol=1e-10):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max(initial=0) <= tol * max(1e-30, np.abs(expected).max(initial=0))


def groups_of(queries):
    return np.repeat(np.arange(len(queries.starts) - 1), np.diff(queries.starts))


@pytest.mark.parametrize("shape", [(30, 4, 3), (40, 1, None), (1, 1, 2)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_reference_is_the_definition(reference, rng, shape, loss):
    queries, y = make_queries(rng, *shape, positions=loss == PairLoss.LOGISTIC)
    n, group, g = shape[0], groups_of(queries), group_grid(queries.starts)
    z, u, X = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 3))
    more = {"gain": queries.gain, "discount": queries.discount} if loss == PairLoss.LOGISTIC else {}
    for margin in (0.0, 1.0):
        rule = PairRule(loss, margin, 0.3)
        *sums, L = oracles.rank(z, group, y, queries.s, loss.name, margin, 0.3, **more)
        for a, b in zip(reference.rank_link(z, queries, rule, g, 1), sums, strict=True):
            assert_close(a, b)
        if loss != PairLoss.HINGE:
            assert_close(reference.rank_bend(z, u, queries, rule, g, 1), L @ u)
            assert_close(reference.rank_hessian(X, z, queries, rule, g, 1), X.T @ L @ X)
        if n > 1:
            value = lambda a, rule=rule: reference.rank_link(a, queries, rule, g, 1)[0]  # noqa: E731
            np.testing.assert_allclose(oracles.numerical_gradient(value, z), sums[2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("equal", [False, True])
def test_links_bends_and_hessians(fast, reference, rng, shape, loss, equal):
    queries, _ = make_queries(rng, *shape, equal=equal, positions=loss == PairLoss.LOGISTIC and not equal)
    n, g = shape[0], group_grid(queries.starts)
    z, u, X = 2 * rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 6))
    for margin in (0.0, 1.0):
        rule = PairRule(loss, margin, 0.3)
        for a, b in zip(fast.rank_link(z, queries, rule, g, 2), reference.rank_link(z, queries, rule, g, 2), strict=True):
            assert_close(a, b)
        if loss != PairLoss.HINGE:
            assert_close(fast.rank_bend(z, u, queries, rule, g, 2), reference.rank_bend(z, u, queries, rule, g, 2))
            H = fast.rank_hessian(X, z, queries, rule, g, 2)
            assert_close(H, reference.rank_hessian(X, z, queries, rule, g, 2))
            assert np.array_equal(H, H.T)


@pytest.mark.parametrize("loss", [PairLoss.HINGE, PairLoss.SQUARED_HINGE])
def test_equal_scores_bit_for_bit(fast, reference, rng, loss):
    queries, _ = make_queries(rng, 700, 2, 5, equal=True)
    z, g = rng.integers(-6, 6, 700) / 4, group_grid(queries.starts)
    for margin in (0.0, 1.0):
        for a, b in zip(
            fast.rank_link(z, queries, PairRule(loss, margin), g, 2),
            reference.rank_link(z, queries, PairRule(loss, margin), g, 2),
            strict=True,
        ):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("size", [100.0, 2000.0, 1e300])
def test_scores_beyond_the_range_of_exp(fast, size):
    queries, _ = make_queries(np.random.default_rng(0), 6, 0, 6, equal=True)
    z = size * np.array([0.0, 1.0, -1.0, 0.5, 0.0, 1.0])
    loss, _, e = fast.rank_link(z, queries, PairRule(PairLoss.LOGISTIC), group_grid(queries.starts), 1)
    hinge, _, slope = fast.rank_link(z, queries, PairRule(PairLoss.HINGE), group_grid(queries.starts), 1)
    assert np.isfinite(loss) and np.isfinite(e).all()
    assert loss == pytest.approx(hinge, rel=0.1 if size == 100 else 1e-2)
    assert np.abs(e - slope).max() <= 0.5  # ties apart


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n", [50, 400])
def test_scores_that_are_not_finite_show(backend, rng, value, n):
    queries, _ = make_queries(rng, n, 0, 5)
    z = rng.standard_normal(n)
    z[n // 2] = value
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(
            backend.rank_link(z, queries, PairRule(PairLoss.SQUARED_HINGE, 1.0), group_grid(queries.starts), 1)[0]
        )


@pytest.mark.parametrize("seed", range(5))
def test_most_scores_may_be_nan(fast, seed):
    rng = np.random.default_rng(seed)
    queries, _ = make_queries(rng, 1000, 0, 50)
    z = np.where(rng.random(1000) < 0.9, np.nan, rng.standard_normal(1000))
    rule, g = PairRule(PairLoss.SQUARED_HINGE, 1.0), group_grid(queries.starts)
    assert np.isnan(fast.rank_link(z, queries, rule, g, 1)[0])
    assert np.isnan(fast.rank_bend(z, rng.standard_normal(1000), queries, rule, g, 1)).any()


@pytest.mark.parametrize("d", [6, 64])
def test_hessians_of_small_queries_between_larger_ones(fast, reference, rng, d):
    sizes = [31, 97, 5, 110, 12, 1, 128, 60, 127]
    n = sum(sizes)
    queries, _ = make_queries(rng, n, 0, 3, sizes=sizes)
    X, z, rule = rng.standard_normal((n, d)), rng.standard_normal(n), PairRule(PairLoss.SQUARED_HINGE, 1.0)
    for g in (group_grid(queries.starts), group_grid(queries.starts)._replace(bounds=np.array([0, len(sizes)]))):
        H = [kernels.rank_hessian(X, z, queries, rule, g, 1) for kernels in (fast, reference)]
        assert_close(*H)


@pytest.mark.parametrize("loss", LOSSES)
def test_given_pairs(backend, rng, loss):
    pairs, z, u = (
        np.array([(i, (i + k) % 40) for i in range(40) for k in (1, 5)]),
        rng.standard_normal(40),
        rng.standard_normal(40),
    )
    for s in (rng.random(80), np.full(1, 0.5)):
        rule, weights = PairRule(loss, 1.0, 0.3), np.broadcast_to(s, 80)
        values = [oracles.pair_loss(loss.name, 1.0 + z[v] - z[a], 0.3) for a, v in pairs]
        total, active, e = backend.pair_link(z, pairs, s, rule, Grid(1, 30), 2)
        assert_close(total, sum(w * value[0] for w, value in zip(weights, values, strict=True)))
        expected, bent = np.zeros(40), np.zeros(40)
        for (a, v), w, (_, slope, bend) in zip(pairs, weights, values, strict=True):
            expected[v] += w * slope
            expected[a] -= w * slope
            bent[v] += w * bend * (u[v] - u[a])
            bent[a] -= w * bend * (u[v] - u[a])
        assert_close(e, expected)
        counted = [z[v] >= z[a] if loss == PairLoss.LOGISTIC else 1.0 + z[v] - z[a] > 0 for a, v in pairs]
        assert_close(active, weights[counted].sum())
        assert_close(backend.pair_bend(z, u, pairs, s, rule, Grid(1, 30), 2), bent)


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "C"), ("uint8", "F"), ("float32", "csr64")])
@pytest.mark.parametrize("loss", [PairLoss.LOGISTIC, PairLoss.SQUARED_HINGE])
def test_gradients_by_the_definition(backend, rng, dtype, layout, loss):
    """Rows in any order within queries, of which one goes through the tree; with offsets and without."""
    sizes = [40, 1, 150, 7, 12, 123]
    queries, y = make_queries(rng, 333, 0, 4, sizes=sizes)
    group, X, w = groups_of(queries), make_features(rng, 333, 7, dtype, layout), 0.1 * rng.standard_normal(7)
    places = np.concatenate([lo + rng.permutation(m) for lo, m in zip(queries.starts[:-1], sizes, strict=True)])
    dense, rule = np.asarray(oracles.dense(X)), PairRule(loss, 0.0 if loss == PairLoss.LOGISTIC else 1.0)
    for o in (rng.standard_normal(333), np.empty(0)):
        z = dense @ w + (o if len(o) else 0.0)
        loss_, active, e, _ = oracles.rank(z[places], group, y, queries.s, loss.name, rule.margin, 1.0)
        found = backend.rank_sweep(X, places, queries, rule, w, o, group_grid(queries.starts, 7, 20), 2)
        for a, b in zip(found, (loss_, active, dense[places].T @ e, z), strict=True):
            assert_close(a, b)


@pytest.mark.parametrize("s", [np.full(1, 0.5), np.repeat([0.3, 2.0], [700, 1300])], ids=["equal", "by query"])
def test_losses_of_many_equal_pairs(fast, reference, rng, s):
    """Logarithms are taken of products of many pairs, all of them far apart in one query and near in the other."""
    queries, _ = make_queries(rng, 2000, 0, 2, sizes=[700, 1300])
    queries = queries._replace(s=s)
    z, rule, g = (
        rng.standard_normal(2000) * np.repeat([200.0, 1e-3], [700, 1300]),
        PairRule(PairLoss.LOGISTIC),
        group_grid(queries.starts),
    )
    for scale in (1.0, 0.1, 1e-9):
        for a, b in zip(
            fast.rank_link(scale * z, queries, rule, g, 1), reference.rank_link(scale * z, queries, rule, g, 1), strict=True
        ):
            assert_close(a, b, 2e-11)  # plain sums of 900,000 equal numbers


@pytest.mark.parametrize("loss", list(PairLoss))
def test_differences_that_are_none_are_no_loss_that_is_small(backend, loss):
    z, pairs = np.array([0.0, np.nan, 1.0]), np.array([(0, 1), (1, 2), (0, 2)])
    assert np.isnan(backend.pair_link(z, pairs, np.ones(1), PairRule(loss, 1.0, 0.3), Grid(1, 2), 1)[0])


def test_losses_of_separated_pairs_keep_their_digits(fast):
    queries, _ = make_queries(np.random.default_rng(0), 40, 0, 2, sizes=[40], equal=True)
    better = queries.above == 0
    z = np.where(better, 15.0, -15.0)
    pairs = better.sum() * (~better).sum()
    loss = fast.rank_link(z, queries, PairRule(PairLoss.LOGISTIC), group_grid(queries.starts), 1)[0]
    assert loss == pytest.approx(0.25 * pairs * np.log1p(np.exp(-30.0)), rel=1e-13)


@pytest.mark.parametrize(("dtype", "layout"), [("float64", "C"), ("float32", "C"), ("uint8", "F"), ("float32", "csr64")])
def test_rows_times_errors(fast, reference, rng, dtype, layout):
    X, e = make_features(rng, 333, 7, dtype, layout), rng.standard_normal(333)
    assert_close(fast.combine(X, e, grid(X.shape, 8), 2), reference.combine(X, e, grid(X.shape, 8), 2))


@pytest.mark.parametrize(("dtype", "layout"), [("int8", "C"), ("uint8", "F"), ("float64", "C"), ("float64", "csr32")])
def test_updates_bit_for_bit(backend, rng, dtype, layout):
    X = make_features(rng, 80, 5, dtype, layout)
    if layout == "csr32":
        X = X._replace(data=np.rint(X.data * 4) / 4)
    elif dtype == "float64":
        X = np.rint(X * 4) / 4
    pairs, s = rng.integers(0, 80, (200, 2)), rng.integers(0, 3, 200).astype(float)
    w = np.zeros(5)
    expected, updates = oracles.rank_pairs(X, pairs, s, w, 0.25, "HINGE", 1.0)
    assert backend.rank_pairs(X, pairs, s, w, 0.25, PairRule(PairLoss.HINGE, 1.0)) == updates > 0
    assert np.array_equal(w, expected)
    if dtype == "int8":
        for loss in (PairLoss.SQUARED_HINGE, PairLoss.LOGISTIC):
            w = np.zeros(5)
            expected, updates = oracles.rank_pairs(X, pairs, s, w, 0.001, loss.name, 1.0)
            assert backend.rank_pairs(X, pairs, s, w, 0.001, PairRule(loss, 1.0)) == updates > 0
            np.testing.assert_allclose(w, expected, rtol=1e-9)


ORACLES = {
    Metric.NDCG: lambda y, z, k: ndcg_score([y], [z], k=k) if max(y) > 0 and len(y) > 1 else 1.0 if max(y) > 0 else np.nan,
    Metric.AVERAGE_PRECISION: oracles.average_precision,
    Metric.RECIPROCAL_RANK: oracles.reciprocal_rank,
    Metric.EXPECTED_RECIPROCAL_RANK: oracles.expected_reciprocal_rank,
    Metric.KENDALL: lambda y, z, k: (
        kendalltau(y, z).statistic if len(set(y)) > 1 and len(set(z)) > 1 else 0.0 * len(set(y)) or 0.0
    ),
    Metric.PAIRS: lambda y, z, k: oracles.pairwise_accuracy(y, z),
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", list(ORACLES))
def test_metrics(backend, rng, metric, ties):
    queries, _ = make_queries(rng, 400, 12, 4)
    y, z, starts = rng.integers(0, 4, 400) * (rng.random(400) < 0.3), rng.standard_normal(400), queries.starts
    y = y.astype(float) if metric not in (Metric.AVERAGE_PRECISION, Metric.RECIPROCAL_RANK) else (y > 0).astype(float)
    y = y / 4 if metric == Metric.EXPECTED_RECIPROCAL_RANK else y
    z = np.round(z) if ties else z
    for k in (1, 3, 10, ALL):
        found = backend.group_metric(metric, y, z, starts, k, group_grid(starts), 2)
        for value, lo, hi in zip(found, starts[:-1], starts[1:], strict=True):
            expected = ORACLES[metric](y[lo:hi].tolist(), z[lo:hi].tolist(), min(k, hi - lo))
            if metric == Metric.KENDALL and len(set(y[lo:hi])) == 1:
                expected = np.nan
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13)


def test_worst_order_of_equal_scores(backend):
    y, z, starts = np.array([1.0, 0.0, 0.0]), np.zeros(3), np.array([0, 3])
    assert backend.group_metric(Metric.NDCG_WORST, y, z, starts, ALL, group_grid(starts), 1)[0] == pytest.approx(0.5)
    assert backend.group_metric(Metric.NDCG_WORST, y, z, starts, 2, group_grid(starts), 1)[0] == 0


@pytest.mark.parametrize("grades", [None, 3, 500])
def test_queries_so_large_that_all_threads_work_on_them(rng, grades):
    """Some rows by the definition, and the loss by its derivative along a direction."""
    kernels, n = _kernels.load("cython"), 24_000
    queries, y = make_queries(rng, n, 0, grades, equal=grades == 3)
    z, u, rule, g = (
        rng.standard_normal(n),
        rng.standard_normal(n),
        PairRule(PairLoss.SQUARED_HINGE, 1.0),
        group_grid(queries.starts),
    )
    found = [kernels.rank_link(z, queries, rule, g, threads) for threads in (1, 2, 5)]
    assert all(np.array_equal(found[0][i], other[i]) for other in found[1:] for i in range(3))
    bent = kernels.rank_bend(z, u, queries, rule, g, 2)
    s = np.broadcast_to(queries.s, n)
    for i in [0, 1, *rng.integers(1, n, 20), n - 1]:
        e, b = 0.0, 0.0
        for sign, pairs in ((1, y > y[i]), (-1, y < y[i])):
            pairs &= np.arange(n) >= (1 if i else 0)  # the first query has one row
            a = 1.0 + sign * (z[i] - z)
            near = pairs & (a > 0)
            e += sign * (2 * s[i] * s * a)[near].sum()
            b += (2 * s[i] * s * (u[i] - u))[near].sum()
        assert_close(found[0][2][i], e if i else 0.0, 1e-9)
        assert_close(bent[i], b if i else 0.0, 1e-7)
    loss = lambda t: kernels.rank_link(z + t * u, queries, rule, g, 2)[0]  # noqa: E731
    np.testing.assert_allclose((loss(1e-5) - loss(-1e-5)) / 2e-5, found[0][2] @ u, rtol=1e-5)


def test_large_queries_of_logistic_pairs(rng):
    """One after the other on one thread, or side by side: the same bits, and the sums of each alone."""
    kernels, sizes, rule = _kernels.load("cython"), [20_500, 20_100, 3], PairRule(PairLoss.LOGISTIC)
    queries, _ = make_queries(rng, sum(sizes), 0, 2, sizes=sizes, equal=True)
    z = rng.standard_normal(sum(sizes))
    found = [kernels.rank_link(z, queries, rule, group_grid(queries.starts), threads) for threads in (1, 2)]
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    first, cut = 20_500, queries.below[0]  # the better rows of the first query
    slope = 1 / (1 + np.exp(z[0] - z[cut:first]))
    assert_close(found[0][2][0], -0.25 * slope.sum(), 1e-11)
