"""What a ranker does at the edges: other data at a warm start, weights of 0, scores far out, claims of convergence."""

import numpy as np
import oracles
import pytest
from conftest import make_queries
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fastdisc import PairwiseRanker, _kernels, metrics
from fastdisc._kernels import PairLoss, PairRule, group_grid
from fastdisc.basis import Quadratic

RNG = np.random.default_rng(0)
X, Y, QUERY = RNG.standard_normal((60, 3)), RNG.integers(0, 3, 60), np.repeat(np.arange(6), 10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_needs_as_many_weights(backend):
    for options in ({"loss": "margin", "solver": "online"}, {"loss": "logistic"}):
        model = PairwiseRanker(warm_start=True, random_state=0, **options).fit(X, Y, QUERY)
        with pytest.raises(ValueError, match="the last fit had 3 weights, this one has 5"):
            model.fit(np.hstack([X, X[:, :2]]), Y, QUERY)
    with pytest.raises(ValueError, match="w has 3 weights, X has 5 columns"):
        backend.rank_pairs(np.ones((4, 5)), np.array([[0, 1]]), np.ones(1), np.zeros(3), 0.1, PairRule(PairLoss.HINGE, 1.0))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_what_is_not_finite_is_named_online(layout):
    bad = X.astype(np.float32)
    bad[4, 1] = np.nan
    bad = sparse.csr_array(bad) if layout == "csr" else bad
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="NaN, first in row 4, column 1"):
            getattr(PairwiseRanker("margin", solver="online", random_state=0), method)(bad, Y, QUERY)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_steps_of_the_squared_hinge_do_not_run_away(weight):
    s = np.full(60, weight)
    best = PairwiseRanker("squared_hinge", C=1e6).fit(X, Y, QUERY)
    model = PairwiseRanker("squared_hinge", solver="online", random_state=0).fit(X, Y, QUERY, s)
    assert np.abs(model.coef_ - best.coef_).max() < 0.2
    stream = PairwiseRanker("squared_hinge", random_state=0)
    for _ in range(15):
        stream.partial_fit(X, Y, QUERY, s)
    assert np.abs(stream.coef_).max() < 2


@pytest.mark.parametrize("far", [1e10, 1e17, -1e17])
@pytest.mark.parametrize("loss", [PairLoss.HINGE, PairLoss.SQUARED_HINGE])
def test_a_score_far_out_does_not_drown_the_others(loss, far):
    queries, y = make_queries(np.random.default_rng(1), 400, 0, 5)
    z, g, rule = np.random.default_rng(2).standard_normal(400), group_grid(queries.starts), PairRule(loss, 1.0)
    order = int(queries.starts[-2])  # the large query's rows
    middle = order + (400 - order) // 2
    z[middle] = far
    group = np.repeat(np.arange(len(queries.starts) - 1), np.diff(queries.starts))
    _, active, e, _ = oracles.rank(z, group, y, queries.s, loss.name, 1.0, 1.0)
    _, found, sums = _kernels.load("cython").rank_link(z, queries, rule, g, 1)
    others = np.arange(400) != middle
    assert found == pytest.approx(active)
    assert np.abs(sums - e)[others].max() <= 1e-10 * np.abs(e[others]).max()


def test_gains_without_discounts_weigh_nothing(backend):
    queries, _ = make_queries(np.random.default_rng(1), 20, 2, 3)
    z, g, rule = np.random.default_rng(2).standard_normal(20), group_grid(queries.starts), PairRule(PairLoss.LOGISTIC)
    half = queries._replace(gain=np.ones(20))
    assert backend.rank_link(z, half, rule, g, 1)[0] == backend.rank_link(z, queries, rule, g, 1)[0]


def test_claims_of_convergence(rng):
    hard = PairwiseRanker("margin", solver="online", random_state=0, pairs_per_epoch=1, max_iter=30)
    with pytest.warns(ConvergenceWarning):
        hard.fit(X, Y, QUERY)
    assert not hard.converged_
    alone = PairwiseRanker("margin", random_state=0).partial_fit(X, np.zeros(60), QUERY)
    assert not alone.converged_
    model = PairwiseRanker("ndcg").fit(X, Y, QUERY)
    if model.converged_:
        again = PairwiseRanker("ndcg", warm_start=True).fit(X, Y, QUERY)
        assert np.array_equal(again.rank(X, QUERY), model.rank(X, QUERY))
    assert model.n_iter_ > len(model.history_["ndcg"])


def test_patience_ends_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="no weights may put all pairs right"):
        assert not PairwiseRanker("hinge", random_state=0, max_iter=1000).fit(X, Y, QUERY).converged_


@pytest.mark.parametrize("loss", ["logistic", "ndcg"])
def test_rows_of_weight_0_and_the_order_of_rows_do_not_matter(rng, loss):
    model = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(X, Y, QUERY)
    order = rng.permutation(60)
    other = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(X[order], Y[order], QUERY[order])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5)
    more = np.vstack([X, 100 * rng.standard_normal((12, 3))]), np.r_[Y, np.full(12, 5)], np.r_[QUERY, np.arange(12) % 6]
    other = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(*more, sample_weight=np.r_[np.ones(60), np.zeros(12)])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5)
    np.testing.assert_allclose(other.scale_, model.scale_)


def test_rows_without_pairs_have_no_scale(rng):
    far = np.vstack([X, 100 * rng.standard_normal((12, 3))])
    u, v = np.nonzero((QUERY[:, None] == QUERY) & (Y[:, None] > Y))
    pairs = np.column_stack([u, v])
    a, b = (PairwiseRanker(standardize=True).fit_pairs(rows, pairs) for rows in (X, far))
    np.testing.assert_allclose(a.scale_, b.scale_)


def test_queries_of_small_weights_are_not_lost():
    s = np.where(QUERY == 5, 1e-12, 1e3)
    even = PairwiseRanker(weighting="queries", tol=1e-9).fit(X, Y, QUERY)
    model = PairwiseRanker(weighting="queries", tol=1e-9).fit(X, Y, QUERY, sample_weight=s)
    np.testing.assert_allclose(model.coef_, even.coef_, rtol=1e-6)


def test_what_has_no_effect_is_refused():
    with pytest.raises(ValueError, match="l1_ratio must be 0"):
        PairwiseRanker("hinge", l1_ratio=0.5).fit(X, Y, QUERY)
    with pytest.raises(ValueError, match="l1_ratio must be 0"):
        PairwiseRanker("margin", l1_ratio=0.5).partial_fit(X, Y, QUERY)


def test_a_scale_does_not_outlive_its_fit():
    model = PairwiseRanker(standardize=True).fit(X, Y, QUERY)
    assert not hasattr(model.set_params(standardize=False).fit(X, Y, QUERY), "scale_")


@pytest.mark.parametrize("C", [1e6, np.inf])
def test_a_narrow_corner_and_a_weak_penalty(C):
    u, v = np.nonzero((QUERY[:, None] == QUERY) & (Y[:, None] > Y))
    value = lambda w: np.maximum(0, 1 - (X[u] - X[v]) @ w).sum()  # noqa: E731
    model = PairwiseRanker("margin", C=C, solver="newton").fit(X, Y, QUERY)
    assert model.converged_ and model.n_iter_ < 200
    assert value(model.coef_) <= value(PairwiseRanker("margin", C=1e3).fit(X, Y, QUERY).coef_) * 1.001


@pytest.mark.parametrize(
    ("shown", "clicked", "message"),
    [
        ([[1, 2], [999, 3]], [[0, 1], [0, 0]], "X has 60 rows, and list 1 shows row 999"),
        ([[1, 2], [-2, 3]], [[0, 1], [0, 1]], "list 1 shows row -2"),
        ([[1, 2], [3, 4, 3]], [[0, 1], [0, 1, 1]], "list 1 shows row 3 twice"),
        ([[1.5, 2]], [[0, 1]], "whole numbers of rows, got float64 in list 0"),
    ],
)
def test_bad_clicks_are_named(shown, clicked, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit_clicks(X, shown, clicked)


def test_empty_lists_of_clicks_tell_nothing():
    assert PairwiseRanker().fit_clicks(X, [[], [3, 4]], [[], [0, 1]]).n_pairs_ == 1


def test_a_scorer_does_not_take_a_fold_for_a_query():
    model = PairwiseRanker().fit(X, Y, QUERY)
    with pytest.raises(ValueError, match="the scorer was given no group"):
        metrics.make_group_scorer()(model, X, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.ndcg_score([1, 2, 3], [1, 2]), "y_score has 2 values, expected 3"),
        (lambda: metrics.expected_reciprocal_rank([1, 2], [1, 2], highest=np.nan), "highest must be"),
        (lambda: metrics.mean_average_precision([1, 2], [1, 2], relevant=np.nan), "relevant must be a number"),
        (lambda: metrics.ndcg_score([1j, 2], [1, 2]), "numbers of which the higher is the better, got complex128"),
        (lambda: PairwiseRanker().fit(X, Y.astype(str), QUERY), "y must be grades"),
        (lambda: PairwiseRanker().fit(X, Y, [30.0, 30.0]), "whole numbers that add up to 60"),
        (lambda: PairwiseRanker(eta=np.ones(2)).fit(X, Y), "eta must be"),
        (lambda: PairwiseRanker().fit(X, Y).set_params(basis=Quadratic()).partial_fit(X, Y), "basis"),
        (lambda: PairwiseRanker("ndcg").fit(X[:0], Y[:0]), "0 sample"),
    ],
)
def test_errors_name_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_too_large_for_a_kernel_are_no_problem():
    assert metrics.ndcg_score([1, 2], [1, 2], k=2**70) == 1
    assert metrics.expected_reciprocal_rank([1, 0], [1, 2], highest=3000) == 0
    assert np.isnan(metrics.ndcg_score([], [], empty="skip"))
    assert metrics.top_k([], 2, group=[]).shape == (0, 0)


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_the_margin_converges_where_the_penalty_is_weak(solver):
    """With the corner narrow and few pairs in it, Hessians alone do not tell where to go."""
    rng = np.random.default_rng(1)
    F = rng.standard_normal((600, 8)) * np.exp(rng.standard_normal(8))
    query = np.repeat(np.arange(30), 20)
    y = np.digitize(F @ rng.standard_normal(8) + 0.7 * rng.standard_normal(600), [-1, 1])
    u, v = np.nonzero((query[:, None] == query) & (y[:, None] > y))
    D = F[u] - F[v]
    for C in (1.0, 1e5):
        value = lambda w, C=C: C * np.maximum(0, 1 - D @ w).sum() + w @ w / 2  # noqa: E731
        model = PairwiseRanker("margin", C=C, solver=solver, tol=1e-7).fit(F, y, group=query)
        assert model.converged_ and model.gradient_norm_ <= 1e-7
        least = value(model.coef_)
        for size in (1e-2, 1e-4):
            assert all(value(model.coef_ + size * rng.standard_normal(8)) >= least * (1 - 1e-7) for _ in range(50))


def test_a_forgotten_group_is_noticed(monkeypatch):
    monkeypatch.setattr("fastdisc.ranking.FORGOTTEN", 1000)
    with pytest.warns(UserWarning, match="without group all 60 rows are one query"):
        PairwiseRanker().fit(X, Y)
    PairwiseRanker().fit(X, Y, group=QUERY)
    PairwiseRanker("squared_hinge").fit(X, Y)
