"""PairwiseRanker as an estimator: data, queries, clicks, ranks, offsets, warm starts."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers.ranking_data import make_ranking, make_small_ranking, ordered_pairs
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import PairwiseRanker
from fastdisc.basis import Quadratic
from fastdisc.metrics import make_group_scorer, mean_average_precision, ndcg_score

LOSSES = ("logistic", "squared_hinge", "margin", "ndcg")
X, Y, QUERY = make_small_ranking()


@parametrize_with_checks(
    [PairwiseRanker(), PairwiseRanker("squared_hinge"), PairwiseRanker("margin")]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_do_not_depend_on_order_and_names_of_queries(rng, loss):
    X, y, query = make_ranking(rng)
    order = np.argsort(query, kind="stable")
    model = PairwiseRanker(loss, tol=1e-8 if loss != "margin" else 1e-4).fit(X, y, group=query)
    names = np.array([f"query {q:02}" for q in range(20)])
    for group, rows in (
        (names[query], slice(None)),
        (query[order], order),
        (np.bincount(query), order),
    ):
        other = clone(model).fit(X[rows], y[rows], group=group)
        np.testing.assert_allclose(
            other.coef_, model.coef_, rtol=1e-4, atol=1e-6 if loss != "margin" else 1e-2
        )


@pytest.mark.parametrize("loss", ["logistic", "ndcg"])
def test_weights_do_not_depend_on_order_of_rows_and_rows_of_weight_0(rng, loss):
    model = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(X, Y, QUERY)
    order = rng.permutation(60)
    other = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(X[order], Y[order], QUERY[order])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5)
    more = (
        np.vstack([X, 100 * rng.standard_normal((12, 3))]),
        np.r_[Y, np.full(12, 5)],
        np.r_[QUERY, np.arange(12) % 6],
    )
    other = PairwiseRanker(loss, standardize=True, tol=1e-9).fit(
        *more, sample_weight=np.r_[np.ones(60), np.zeros(12)]
    )
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5)
    np.testing.assert_allclose(other.scale_, model.scale_)


@pytest.mark.parametrize(
    "form", [sparse.csr_array, np.asfortranarray, lambda X: X.astype(np.float32), pd.DataFrame]
)
def test_layouts_and_data_frames_agree(rng, form):
    X, y, query = make_ranking(rng)
    expected = PairwiseRanker(tol=1e-8).fit(X, y, group=query)
    model = PairwiseRanker(tol=1e-8).fit(form(X), y, group=query)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
    assert np.array_equal(model.rank(form(X), query), expected.rank(X, query))


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_backends_agree(rng, backend):
    X, y, query = make_ranking(rng)
    model, expected = (
        PairwiseRanker(backend=name).fit(X, y, group=query) for name in (backend, "cython")
    )
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "ndcg"])
def test_weights_do_not_depend_on_threads(rng, loss):
    X, y, query = make_ranking(rng)
    data = np.tile(X, (9, 1)), np.tile(y, 9), np.tile(query, 9)
    models = [PairwiseRanker(loss, n_threads=n).fit(*data) for n in (1, 2, 5)]
    assert all(np.array_equal(model.coef_, models[0].coef_) for model in models[1:])


def test_clicks_prefer_clicked_rows_to_skipped_rows_above(rng):
    X = rng.standard_normal((50, 3))
    model = PairwiseRanker().fit_clicks(
        X, [[3, 7, 9, -1], [4, 3, 8, 2]], [[0, 0, 1, 0], [0, 1, 0, 1]]
    )
    expected = PairwiseRanker().fit_pairs(X, [(9, 3), (9, 7), (3, 4), (2, 4), (2, 8)])
    assert model.n_pairs_ == 5
    np.testing.assert_allclose(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="no row was clicked below one that was not clicked"):
        PairwiseRanker().fit_clicks(X, [[1, 2]], [[1, 0]])


def test_empty_lists_of_clicks_are_ignored():
    assert PairwiseRanker().fit_clicks(X, [[], [3, 4]], [[], [0, 1]]).n_pairs_ == 1


# Figure 10.11: five points of the plane, ranked from 1, the best. Their coordinates are not
# published: these look the same.
POINTS = np.array([[0.1, 0.2], [0.35, 0.9], [0.6, 0.4], [0.8, 0.75], [0.95, 0.1]])


@pytest.mark.parametrize("ranks", [[5, 3, 4, 1, 2], [3, 1, 4, 2, 5]])
@pytest.mark.parametrize("loss", ["hinge", "margin", "squared_hinge", "logistic"])
def test_both_rankings_of_figure_10_11_are_learned(ranks, loss):
    model = PairwiseRanker(loss, C=1e4, random_state=0, max_iter=2000).fit(POINTS, -np.array(ranks))
    assert model.rank(POINTS).tolist() == ranks
    assert model.score(POINTS, -np.array(ranks)) == 1.0


def test_quadratic_basis_learns_a_ranking_by_distance():
    """Exercise 10: the point in the middle is the best, which no projection ranks first."""
    middle = POINTS.mean(axis=0)
    points = np.vstack([POINTS - middle, [[0.0, 0.0]]])
    y = -(points**2).sum(axis=1)
    linear = PairwiseRanker(C=1e4, loss="squared_hinge").fit(points, y)
    assert linear.score(points, y) < 1
    quadratic = PairwiseRanker("squared_hinge", C=1e6, basis=Quadratic()).fit(points, y)
    assert quadratic.score(points, y) == 1.0
    features = make_pipeline(
        PolynomialFeatures(2, include_bias=False), PairwiseRanker("squared_hinge", C=1e6)
    ).fit(points, y)
    np.testing.assert_allclose(np.sort(quadratic.coef_), np.sort(features[-1].coef_), rtol=1e-5)


def test_rank_top_k_and_rerank_sort_the_scores(rng):
    X, y, query = make_ranking(rng)
    model = PairwiseRanker().fit(X, y, group=query)
    z, ranks = model.predict(X), model.rank(X, query)
    best = model.top_k(X, 3, query)
    assert best.shape == (20, 3)
    for q in range(20):
        rows = np.flatnonzero(query == q)
        order = rows[np.argsort(-z[rows], kind="stable")]
        assert ranks[order].tolist() == list(range(1, len(rows) + 1))
        assert best[q].tolist() == order[:3].tolist()
    assert model.top_k(X, 5).tolist() == np.argsort(-z, kind="stable")[:5].tolist()
    assert np.array_equal(model.rerank(np.zeros(300), X, query), ranks)
    base = 10 * rng.standard_normal(300)
    assert np.array_equal(
        model.rerank(base, X, query, weight=0.0), model.rerank(base, 0 * X, query)
    )


def test_weights_with_an_offset_are_a_correction_of_it(rng):
    X, y, query = make_ranking(rng)
    whole = PairwiseRanker(C=1e3, tol=1e-9).fit(X, y, group=query)
    base = X @ np.array([1.0, 0, 0, 0, 0])
    more = PairwiseRanker(C=1e3, tol=1e-9).fit(X, y, group=query, offset=base)
    np.testing.assert_allclose(more.coef_ + [1, 0, 0, 0, 0], whole.coef_, rtol=1e-2)
    assert np.mean(more.rerank(base, X, query) == whole.rank(X, query)) > 0.95


def test_cross_validation_routes_groups(rng):
    X, y, query = make_ranking(rng)
    with sklearn.config_context(enable_metadata_routing=True):
        data = {"group": query, "groups": query}
        model = make_pipeline(StandardScaler(), PairwiseRanker())
        for scorer in (make_group_scorer(k=5), make_group_scorer(mean_average_precision), None):
            # The `score` method of a pipeline does not route metadata.
            estimator = PairwiseRanker() if scorer is None else model
            scores = cross_val_score(estimator, X, y, cv=GroupKFold(4), scoring=scorer, params=data)
            assert scores.shape == (4,) and (scores > 0.6).all()
        search = GridSearchCV(
            PairwiseRanker(), {"C": [1e-6, 1.0]}, scoring=make_group_scorer(k=5), cv=GroupKFold(4)
        )
        search.fit(X, y, group=query, groups=query)
        fold = next(GroupKFold(4).split(X, y, query))[1]
        by_hand = PairwiseRanker().fit(*(np.delete(a, fold, axis=0) for a in (X, y, query)))
        expected = ndcg_score(y[fold], by_hand.predict(X[fold]), group=query[fold], k=5)
        found = cross_val_score(
            PairwiseRanker(), X, y, cv=GroupKFold(4), scoring=make_group_scorer(k=5), params=data
        )
        assert found[0] == pytest.approx(expected)


def test_standardize_gives_weights_of_the_raw_features(rng):
    X, y, query = make_ranking(rng)
    scale = X.std(axis=0)
    model = PairwiseRanker(standardize=True, tol=1e-9).fit(X, y, group=query)
    by_hand = PairwiseRanker(tol=1e-9).fit(X / scale, y, group=query)
    np.testing.assert_allclose(model.coef_ * scale, by_hand.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.scale_, scale)


def test_warm_start_at_the_optimum_takes_one_iteration(rng):
    X, y, query = make_ranking(rng)
    model = PairwiseRanker(warm_start=True).fit(X, y, group=query)
    assert model.fit(X, y, group=query).n_iter_ == 1


def test_pickled_model_predicts_the_same(rng):
    X, y, query = make_ranking(rng)
    model = PairwiseRanker().fit(X, y, group=query)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))


def test_scale_is_that_of_rows_in_pairs(rng):
    far = np.vstack([X, 100 * rng.standard_normal((12, 3))])
    pairs = ordered_pairs(Y, QUERY)
    a, b = (PairwiseRanker(standardize=True).fit_pairs(rows, pairs) for rows in (X, far))
    np.testing.assert_allclose(a.scale_, b.scale_)


def test_scale_of_an_earlier_fit_is_removed():
    model = PairwiseRanker(standardize=True).fit(X, Y, QUERY)
    assert not hasattr(model.set_params(standardize=False).fit(X, Y, QUERY), "scale_")


def test_many_rows_without_group_warn(monkeypatch):
    monkeypatch.setattr("fastdisc.ranking.training.MAX_SINGLE_QUERY_PAIRS", 1000)
    with pytest.warns(UserWarning, match="without group all 60 rows are one query"):
        PairwiseRanker().fit(X, Y)
    PairwiseRanker().fit(X, Y, group=QUERY)
    PairwiseRanker("squared_hinge").fit(X, Y)
