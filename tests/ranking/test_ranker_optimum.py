"""PairwiseRanker: the optimum of each loss, against scikit-learn on differences of rows."""

import numpy as np
import pytest
import sklearn
from helpers import oracles
from helpers.ranking_data import (
    differences,
    make_ranking,
    make_small_ranking,
    ordered_pairs,
    two_class_differences,
)
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.svm import LinearSVC

from fastdisc import PairwiseRanker
from fastdisc._objectives import query_sums, score_sums
from fastdisc.metrics import ndcg_score

X, Y, QUERY = make_small_ranking()


def logistic_weights(D, p, C):
    """The weights of scikit-learn's logistic regression on differences of weights p."""
    model = Rival(fit_intercept=False, C=C, tol=1e-10, max_iter=5000, solver="newton-cg")
    return model.fit(*two_class_differences(D), p).coef_[0]


def svm_weights(D, C, **options):
    """The weights of scikit-learn's linear support vector machine on differences."""
    return LinearSVC(fit_intercept=False, C=C, **options).fit(*two_class_differences(D)).coef_[0]


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("grades", [2, 4, None])
def test_logistic_optimum_is_that_of_logistic_regression_on_differences(rng, solver, grades):
    X, y, query = make_ranking(rng, grades=grades)
    s = rng.random(300) + 0.2
    model = PairwiseRanker(solver=solver, C=0.1, tol=1e-9).fit(X, y, group=query, sample_weight=s)
    D, p = differences(X, y, query, s)
    assert model.n_pairs_ == len(D) and model.converged_ and model.solver_ == solver
    np.testing.assert_allclose(model.coef_, logistic_weights(D, p, 0.1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("queries", [20, 1])  # summed pair by pair, and by the tree
def test_squared_hinge_optimum_is_that_of_a_linear_svm_on_differences(rng, solver, queries):
    X, y, query = make_ranking(rng, grades=None, queries=queries)
    model = PairwiseRanker("squared_hinge", solver=solver, C=0.1, tol=1e-9).fit(X, y, group=query)
    D, _ = differences(X, y, query)
    expected = svm_weights(D, 0.1, dual=False, tol=1e-9, max_iter=10_000)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("queries", [20, 1])
def test_gap_of_the_margin_loss_is_certified(rng, queries):
    """The objective is within the certified gap of the optimum."""
    X, y, query = make_ranking(rng, queries=queries)
    D, _ = differences(X, y, query)

    def value(w):
        return np.maximum(0, 1 - D @ w).sum() + w @ w / 2

    models = [PairwiseRanker("margin", tol=tol).fit(X, y, group=query) for tol in (1e-2, 1e-5)]
    for model, tol in zip(models, (1e-2, 1e-5), strict=True):
        assert model.converged_ and model.gradient_norm_ <= tol
    loose, tight = (value(model.coef_) for model in models)
    assert tight <= loose <= tight * (1 + 1e-2) / (1 - 1e-5)
    weights = svm_weights(D, 1.0, loss="hinge", tol=1e-7, max_iter=1_000_000)
    assert tight <= value(weights) * (1 + 1e-5)


@pytest.mark.parametrize("C", [1e6, np.inf])
def test_margin_loss_converges_with_a_weak_penalty(C):
    D, _ = differences(X, Y, QUERY)
    model = PairwiseRanker("margin", C=C, solver="newton").fit(X, Y, QUERY)
    assert model.converged_ and model.n_iter_ < 200
    other = PairwiseRanker("margin", C=1e3).fit(X, Y, QUERY)
    loss, other_loss = (np.maximum(0, 1 - D @ m.coef_).sum() for m in (model, other))
    assert loss <= 1.001 * other_loss


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_margin_loss_meets_a_tight_tolerance(solver):
    """Few pairs are within the narrow smoothed corner, so that Hessians have little curvature."""
    rng = np.random.default_rng(1)
    F = rng.standard_normal((600, 8)) * np.exp(rng.standard_normal(8))
    query = np.repeat(np.arange(30), 20)
    y = np.digitize(F @ rng.standard_normal(8) + 0.7 * rng.standard_normal(600), [-1, 1])
    D, _ = differences(F, y, query)
    for C in (1.0, 1e5):

        def value(w, C=C):
            return C * np.maximum(0, 1 - D @ w).sum() + w @ w / 2

        model = PairwiseRanker("margin", C=C, solver=solver, tol=1e-7).fit(F, y, group=query)
        assert model.converged_ and model.gradient_norm_ <= 1e-7
        least = value(model.coef_)
        for size in (1e-2, 1e-4):
            assert all(
                value(model.coef_ + size * rng.standard_normal(8)) >= least * (1 - 1e-7)
                for _ in range(50)
            )


def test_l1_optimum_is_that_of_logistic_regression_on_differences(rng):
    X, y, query = make_ranking(rng, d=8)
    D, _ = differences(X, y, query)
    C = 0.002
    model = PairwiseRanker(C=C, l1_ratio=1.0, tol=1e-9).fit(X, y, group=query)
    with sklearn.config_context(enable_metadata_routing=False):
        rival = Rival(
            l1_ratio=1.0, solver="saga", C=C, fit_intercept=False, tol=1e-10, max_iter=50_000
        ).fit(*two_class_differences(D))
    assert 0 < np.count_nonzero(model.coef_) < 8 and model.solver_ == "proximal"
    np.testing.assert_allclose(model.coef_, rival.coef_[0], rtol=1e-3, atol=1e-5)
    model = PairwiseRanker("margin", C=C, l1_ratio=0.5).fit(X, y, group=query)
    assert np.count_nonzero(model.coef_) < 8


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_given_pairs_and_grades_have_the_same_optimum(rng, loss):
    X, y, query = make_ranking(rng, 120)
    pairs = ordered_pairs(y, query)
    by_grades = PairwiseRanker(loss, tol=1e-9).fit(X, y, group=query)
    for solver in ("newton", "newton-cg", "lbfgs"):
        by_pairs = PairwiseRanker(loss, tol=1e-9, solver=solver).fit_pairs(X, pairs)
        np.testing.assert_allclose(by_pairs.coef_, by_grades.coef_, rtol=1e-5, atol=1e-8)
    s = rng.random(len(pairs))
    a, b = (
        PairwiseRanker(loss, tol=1e-9).fit_pairs(X, *given)
        for given in ((np.tile(pairs, (2, 1)), np.tile(s, 2)), (pairs, 2 * s))
    )
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-5, atol=1e-8)


def test_weighting_by_queries_gives_each_query_the_same_weight(rng):
    X, y, query = make_ranking(rng)
    model = PairwiseRanker(weighting="queries", C=10.0, tol=1e-9).fit(X, y, group=query)
    parts = [differences(X[query == q], y[query == q], query[query == q]) for q in range(20)]
    q = [1 / len(p) for _, p in parts]
    by_weight = PairwiseRanker(C=10.0, tol=1e-9).fit(X, y, group=query, query_weight=q)
    np.testing.assert_allclose(model.coef_, by_weight.coef_, rtol=1e-6)
    D, p = np.concatenate([D for D, _ in parts]), np.concatenate([p / len(p) for _, p in parts])
    np.testing.assert_allclose(model.coef_, logistic_weights(D, p, 10.0), rtol=1e-4, atol=1e-6)


def test_weighting_by_queries_ignores_the_size_of_row_weights():
    s = np.where(QUERY == 5, 1e-12, 1e3)
    even = PairwiseRanker(weighting="queries", tol=1e-9).fit(X, Y, QUERY)
    model = PairwiseRanker(weighting="queries", tol=1e-9).fit(X, Y, QUERY, sample_weight=s)
    np.testing.assert_allclose(model.coef_, even.coef_, rtol=1e-6)


def test_hessian_of_a_sample_leads_to_the_same_optimum(rng, monkeypatch):
    X, y, query = make_ranking(rng, 3000, grades=None, queries=2)
    expected = PairwiseRanker("squared_hinge", tol=1e-7).fit(X, y, group=query).coef_
    for module in (query_sums, score_sums):
        monkeypatch.setattr(module, "MAX_HESSIAN_FLOPS", 100_000)
    monkeypatch.setattr(query_sums, "MAX_GATHERED_CELLS", 1000)
    model = PairwiseRanker("squared_hinge", tol=1e-7).fit(X, y, group=query)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-4)
    model, other = (
        PairwiseRanker(tol=1e-7, solver=solver).fit(X, y > 0, group=query)
        for solver in ("auto", "newton-cg")
    )
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)


def test_ndcg_optimum_has_zero_gradient_with_weights_of_its_own_order(rng):
    X = rng.standard_normal((60, 3))
    z = 1 + X @ [1.0, 0.5, -0.5] + 0.3 * rng.standard_normal(60)
    y, query = np.clip(np.round(z), 0, 3), np.repeat([0, 1, 2], 20)
    model = PairwiseRanker("ndcg", C=0.5, truncation=5, tol=1e-10).fit(X, y, group=query)
    assert model.converged_
    discount, gain, z, g = np.empty(60), 2**y - 1, X @ model.coef_, model.coef_.copy()
    values = np.where(np.arange(20) < 5, 1 / np.log2(np.arange(20) + 2), 0)
    for rows in np.arange(60).reshape(3, 20):
        discount[rows[np.argsort(-z[rows])]] = values
        gain[rows] /= np.sort(gain[rows])[::-1] @ values
    _, _, e, _ = oracles.rank(
        z, query, y, np.ones(60), "LOGISTIC", 0.0, 1.0, gain=gain, discount=discount
    )
    np.testing.assert_allclose(g + 0.5 * X.T @ e, 0, atol=1e-7)


def test_ndcg_loss_ranks_the_top_better_than_equal_weights(rng):
    """The loss weights pairs by the change in NDCG, to which the first ranks contribute most."""
    X = rng.standard_normal((4000, 6))
    query = np.repeat(np.arange(100), 40)
    z = (
        X @ [2.0, 1, 0, 0, 0, 0]
        + np.where(X[:, 2] > 0.5, 3 * X[:, 3], 0)
        + rng.standard_normal(4000)
    )
    y = np.searchsorted([1.0, 3.0, 5.0, 6.5], z)
    plain, top = (PairwiseRanker(loss).fit(X, y, group=query) for loss in ("logistic", "ndcg"))
    plain_ndcg, top_ndcg = (
        ndcg_score(y, model.predict(X), group=query, k=10, gains="exponential")
        for model in (plain, top)
    )
    assert top_ndcg > plain_ndcg
    assert max(top.history_["ndcg"]) == pytest.approx(top_ndcg)
