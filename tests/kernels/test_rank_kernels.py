"""Ranking kernels against all pairs, one by one: grades, real utilities, ties, weights."""

import numpy as np
import pytest
from helpers import oracles
from helpers.assertions import assert_close, same_bits
from helpers.problems import make_features, make_queries

from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
from fastdisc._kernels import Grid, PairLoss, PairRule, query_grid

# rows, queries, grades: small queries are summed pair by pair, large ones by the tree, with one
# level and with several
SHAPES = [(60, 9, 3), (230, 1, 2), (260, 1, 40), (600, 2, None)]


def groups_of(queries):
    return np.repeat(np.arange(len(queries.starts) - 1), np.diff(queries.starts))


@pytest.mark.parametrize("shape", [(30, 4, 3), (40, 1, None), (1, 1, 2)])
@pytest.mark.parametrize("loss", PairLoss)
def test_reference_is_the_definition(reference, rng, shape, loss):
    by_position = loss == PairLoss.LOGISTIC
    queries, y = make_queries(rng, *shape, positions=by_position)
    n, group, grid = shape[0], groups_of(queries), query_grid(queries.starts)
    z, u, X = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 3))
    more = {"gain": queries.gain, "discount": queries.discount} if by_position else {}
    for margin in (0.0, 1.0):
        args = queries, PairRule(loss, margin, 0.3), grid, 1
        *sums, L = oracles.rank(z, group, y, queries.s, loss.name, margin, 0.3, **more)
        for a, b in zip(reference.query_loss(z, *args), sums, strict=True):
            assert_close(a, b)
        if loss != PairLoss.HINGE:
            assert_close(reference.query_curvature_product(z, u, *args), L @ u)
            assert_close(reference.query_hessian(DenseRows(X), z, *args), X.T @ L @ X)
        if n > 1:
            numeric = oracles.numerical_gradient(
                lambda a, args=args: reference.query_loss(a, *args)[0], z
            )
            np.testing.assert_allclose(numeric, sums[2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", PairLoss)
@pytest.mark.parametrize("equal", [False, True])
def test_losses_and_curvatures_agree_with_reference(fast, reference, rng, shape, loss, equal):
    by_position = loss == PairLoss.LOGISTIC and not equal
    queries, _ = make_queries(rng, *shape, equal=equal, positions=by_position)
    n, grid = shape[0], query_grid(queries.starts)
    z, u, X = 2 * rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 6))
    for margin in (0.0, 1.0):
        args = queries, PairRule(loss, margin, 0.3), grid, 2
        for a, b in zip(fast.query_loss(z, *args), reference.query_loss(z, *args), strict=True):
            assert_close(a, b)
        if loss != PairLoss.HINGE:
            expected = reference.query_curvature_product(z, u, *args)
            assert_close(fast.query_curvature_product(z, u, *args), expected)
            H = fast.query_hessian(DenseRows(X), z, *args)
            assert_close(H, reference.query_hessian(DenseRows(X), z, *args))
            assert np.array_equal(H, H.T)


@pytest.mark.parametrize("loss", [PairLoss.HINGE, PairLoss.SQUARED_HINGE])
def test_tied_scores_agree_to_the_last_bit(fast, reference, rng, loss):
    queries, _ = make_queries(rng, 700, 2, 5, equal=True)
    z, grid = rng.integers(-6, 6, 700) / 4, query_grid(queries.starts)
    for margin in (0.0, 1.0):
        args = z, queries, PairRule(loss, margin), grid, 2
        same_bits([fast.query_loss(*args), reference.query_loss(*args)])


@pytest.mark.parametrize("size", [100.0, 2000.0, 1e300])
def test_scores_beyond_the_range_of_exp_do_not_overflow(fast, size):
    queries, _ = make_queries(np.random.default_rng(0), 6, 0, 6, equal=True)
    z, grid = size * np.array([0.0, 1.0, -1.0, 0.5, 0.0, 1.0]), query_grid(queries.starts)
    loss, _, e = fast.query_loss(z, queries, PairRule(PairLoss.LOGISTIC), grid, 1)
    hinge, _, slope = fast.query_loss(z, queries, PairRule(PairLoss.HINGE), grid, 1)
    assert np.isfinite(loss) and np.isfinite(e).all()
    assert loss == pytest.approx(hinge, rel=0.1 if size == 100 else 1e-2)
    assert np.abs(e - slope).max() <= 0.5  # ties apart


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n", [50, 400])
def test_nan_and_infinity_reach_the_loss(backend, rng, value, n):
    queries, _ = make_queries(rng, n, 0, 5)
    z, rule = rng.standard_normal(n), PairRule(PairLoss.SQUARED_HINGE, 1.0)
    z[n // 2] = value
    with np.errstate(invalid="ignore"):
        loss = backend.query_loss(z, queries, rule, query_grid(queries.starts), 1)[0]
    assert not np.isfinite(loss)


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_nan_if_most_scores_are(fast, seed):
    rng = np.random.default_rng(seed)
    queries, _ = make_queries(rng, 1000, 0, 50)
    z = np.where(rng.random(1000) < 0.9, np.nan, rng.standard_normal(1000))
    args = queries, PairRule(PairLoss.SQUARED_HINGE, 1.0), query_grid(queries.starts), 1
    assert np.isnan(fast.query_loss(z, *args)[0])
    assert np.isnan(fast.query_curvature_product(z, rng.standard_normal(1000), *args)).any()


@pytest.mark.parametrize("d", [6, 64])
def test_hessians_of_small_and_large_queries_agree(fast, reference, rng, d):
    sizes = [31, 97, 5, 110, 12, 1, 128, 60, 127]
    n = sum(sizes)
    queries, _ = make_queries(rng, n, 0, 3, sizes=sizes)
    X, z = DenseRows(rng.standard_normal((n, d))), rng.standard_normal(n)
    rule, grid = PairRule(PairLoss.SQUARED_HINGE, 1.0), query_grid(queries.starts)
    for some in (grid, grid._replace(bounds=np.array([0, len(sizes)]))):
        args = X, z, queries, rule, some, 1
        assert_close(fast.query_hessian(*args), reference.query_hessian(*args))


@pytest.mark.parametrize("loss", PairLoss)
def test_given_pairs_are_the_definition(backend, rng, loss):
    pairs = np.array([(i, (i + k) % 40) for i in range(40) for k in (1, 5)])
    z, u = rng.standard_normal(40), rng.standard_normal(40)
    for s in (rng.random(80), np.full(1, 0.5)):
        args, weights = (pairs, s, PairRule(loss, 1.0, 0.3), Grid(1, 30), 2), np.broadcast_to(s, 80)
        values = [oracles.pair_loss(loss.name, 1.0 + z[v] - z[a], 0.3) for a, v in pairs]
        total, active, e = backend.pair_loss(z, *args)
        assert_close(total, sum(w * value[0] for w, value in zip(weights, values, strict=True)))
        expected, product = np.zeros(40), np.zeros(40)
        for (a, v), w, (_, slope, curvature) in zip(pairs, weights, values, strict=True):
            expected[v] += w * slope
            expected[a] -= w * slope
            product[v] += w * curvature * (u[v] - u[a])
            product[a] -= w * curvature * (u[v] - u[a])
        assert_close(e, expected)
        a, v = pairs.T
        counted = z[v] >= z[a] if loss == PairLoss.LOGISTIC else 1.0 + z[v] - z[a] > 0
        assert_close(active, weights[counted].sum())
        assert_close(backend.pair_curvature_product(z, u, *args), product)


@pytest.mark.parametrize(
    ("dtype", "layout"), [("float64", "C"), ("uint8", "F"), ("float32", "csr64")]
)
@pytest.mark.parametrize("loss", [PairLoss.LOGISTIC, PairLoss.SQUARED_HINGE])
def test_gradients_are_the_definition(backend, rng, dtype, layout, loss):
    """Rows in any order within queries, of which one is summed by the tree; with offsets and
    without."""
    sizes = [40, 1, 150, 7, 12, 123]
    queries, y = make_queries(rng, 333, 0, 4, sizes=sizes)
    group, X = groups_of(queries), make_features(rng, 333, 7, dtype, layout)
    w, grid = 0.1 * rng.standard_normal(7), query_grid(queries.starts, 7, 20)
    starts = zip(queries.starts[:-1], sizes, strict=True)
    places = np.concatenate([lo + rng.permutation(m) for lo, m in starts])
    dense, margin = np.asarray(oracles.dense(X)), 0.0 if loss == PairLoss.LOGISTIC else 1.0
    for o in (rng.standard_normal(333), np.empty(0)):
        z = dense @ w + (o if len(o) else 0.0)
        *sums, e, _ = oracles.rank(z[places], group, y, queries.s, loss.name, margin, 1.0)
        found = backend.query_sweep(X, places, queries, PairRule(loss, margin), w, o, grid, 2)
        for a, b in zip(found, (*sums, dense[places].T @ e, z), strict=True):
            assert_close(a, b)


EQUAL_WEIGHTS = [np.full(1, 0.5), np.repeat([0.3, 2.0], [700, 1300])]


@pytest.mark.parametrize("s", EQUAL_WEIGHTS, ids=["equal", "by query"])
def test_losses_of_many_pairs_of_equal_weight_agree(fast, reference, rng, s):
    """Logarithms are taken of products of many pairs, far apart in one query, near in the other."""
    queries, _ = make_queries(rng, 2000, 0, 2, sizes=[700, 1300])
    z = rng.standard_normal(2000) * np.repeat([200.0, 1e-3], [700, 1300])
    args = queries._replace(s=s), PairRule(PairLoss.LOGISTIC), query_grid(queries.starts), 1
    for scale in (1.0, 0.1, 1e-9):
        found = fast.query_loss(scale * z, *args), reference.query_loss(scale * z, *args)
        for a, b in zip(*found, strict=True):
            assert_close(a, b, 2e-11)  # plain sums of 900,000 equal numbers


@pytest.mark.parametrize("loss", PairLoss)
def test_loss_of_given_pairs_is_nan_if_a_score_is(backend, loss):
    z, pairs = np.array([0.0, np.nan, 1.0]), np.array([(0, 1), (1, 2), (0, 2)])
    rule = PairRule(loss, 1.0, 0.3)
    assert np.isnan(backend.pair_loss(z, pairs, np.ones(1), rule, Grid(1, 2), 1)[0])


def test_losses_of_separated_pairs_keep_their_digits(fast):
    queries, _ = make_queries(np.random.default_rng(0), 40, 0, 2, sizes=[40], equal=True)
    better = queries.above == 0
    z, grid = np.where(better, 15.0, -15.0), query_grid(queries.starts)
    pairs = better.sum() * (~better).sum()
    loss = fast.query_loss(z, queries, PairRule(PairLoss.LOGISTIC), grid, 1)[0]
    assert loss == pytest.approx(0.25 * pairs * np.log1p(np.exp(-30.0)), rel=1e-13)


def with_exact_sums(X):
    """Rows whose sums of products are exact."""
    if X.is_sparse:
        return X.map_values(lambda values: np.rint(values * 4) / 4)
    return DenseRows(np.rint(X.values * 4) / 4) if X.dtype == np.float64 else X


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [("int8", "C"), ("uint8", "F"), ("float64", "C"), ("float64", "csr32")],
)
def test_online_updates_are_the_definition(backend, rng, dtype, layout):
    X = with_exact_sums(make_features(rng, 80, 5, dtype, layout))
    pairs, s = rng.integers(0, 80, (200, 2)), rng.integers(0, 3, 200).astype(float)
    w = np.zeros(5)
    expected, updates = oracles.rank_pairs(X, pairs, s, w, 0.25, "HINGE", 1.0)
    found = backend.online_pairs(X, pairs, s, w, 0.25, PairRule(PairLoss.HINGE, 1.0))
    assert found == updates > 0
    assert np.array_equal(w, expected)
    if dtype == "int8":
        for loss in (PairLoss.SQUARED_HINGE, PairLoss.LOGISTIC):
            w = np.zeros(5)
            expected, updates = oracles.rank_pairs(X, pairs, s, w, 0.001, loss.name, 1.0)
            assert backend.online_pairs(X, pairs, s, w, 0.001, PairRule(loss, 1.0)) == updates > 0
            np.testing.assert_allclose(w, expected, rtol=1e-9)


@pytest.mark.parametrize("grades", [None, 3, 500])
def test_queries_that_all_threads_share_are_the_definition(rng, grades):
    """Some rows by the definition, and the loss by its derivative along a direction."""
    kernels, n = _kernels.load("cython"), 24_000
    queries, y = make_queries(rng, n, 0, grades, equal=grades == 3)
    z, u = rng.standard_normal(n), rng.standard_normal(n)
    args = queries, PairRule(PairLoss.SQUARED_HINGE, 1.0), query_grid(queries.starts)
    found = [kernels.query_loss(z, *args, threads) for threads in (1, 2, 5)]
    same_bits(found)
    product = kernels.query_curvature_product(z, u, *args, 2)
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
        assert_close(product[i], b if i else 0.0, 1e-7)
    above, below = (kernels.query_loss(z + t * u, *args, 2)[0] for t in (1e-5, -1e-5))
    np.testing.assert_allclose((above - below) / 2e-5, found[0][2] @ u, rtol=1e-5)


def test_large_queries_of_logistic_pairs_do_not_depend_on_threads(rng):
    """One after the other on one thread, or in parallel; and the sums of a single row."""
    kernels, sizes, rule = _kernels.load("cython"), [20_500, 20_100, 3], PairRule(PairLoss.LOGISTIC)
    queries, _ = make_queries(rng, sum(sizes), 0, 2, sizes=sizes, equal=True)
    z, grid = rng.standard_normal(sum(sizes)), query_grid(queries.starts)
    found = [kernels.query_loss(z, queries, rule, grid, threads) for threads in (1, 2)]
    same_bits(found)
    first, cut = 20_500, queries.below[0]  # the better rows of the first query
    slope = 1 / (1 + np.exp(z[0] - z[cut:first]))
    assert_close(found[0][2][0], -0.25 * slope.sum(), 1e-11)
