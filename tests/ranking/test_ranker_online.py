"""PairwiseRanker trained pair by pair: the published update, streams, step sizes, convergence."""

import numpy as np
import pytest
from helpers.ranking_data import make_ranking, make_small_ranking
from sklearn.exceptions import ConvergenceWarning

from fastdisc import PairwiseRanker

X, Y, QUERY = make_small_ranking()


def test_updates_are_the_published_ones(rng):
    X, y, query = make_ranking(rng, 40, queries=3)
    model = PairwiseRanker("hinge", solver="online", eta=0.1, max_iter=1, random_state=3)
    with pytest.warns(ConvergenceWarning, match="1 epochs"):
        model.fit(X, y, group=query)
    seed = np.random.RandomState(3).randint(2**31)
    generator = np.random.default_rng(seed)
    w = generator.uniform(-0.01, 0.01, 5)
    rows = np.lexsort((-y, query))
    pairs = [
        (u, v) for i, u in enumerate(rows) for v in rows[i:] if query[u] == query[v] and y[u] > y[v]
    ]
    for i in generator.permutation(len(pairs)):
        u, v = pairs[i]
        if X[v] @ w > X[u] @ w:
            w = w - 0.1 * (X[v] - X[u])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9)


def test_stream_scores_like_a_fit_of_all_rows(rng):
    X, y, query = make_ranking(rng, 3000, queries=150)
    stream = PairwiseRanker("logistic", random_state=0, eta=0.01)
    for part in np.array_split(np.arange(150), 10):
        rows = np.isin(query, part)
        stream.partial_fit(X[rows], y[rows], query[rows])
    assert stream.n_iter_ == 10
    whole = PairwiseRanker().fit(X, y, group=query)
    assert stream.score(X, y, query) > whole.score(X, y, query) - 0.02


def test_epochs_of_few_pairs_warn_that_they_did_not_converge(rng):
    X, y, query = make_ranking(rng, 3000, queries=150)
    few = PairwiseRanker("margin", pairs_per_epoch=50, random_state=0, solver="online", max_iter=3)
    with pytest.warns(ConvergenceWarning):
        few.fit(X, y, group=query)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_steps_of_the_squared_hinge_do_not_diverge(weight):
    s = np.full(60, weight)
    best = PairwiseRanker("squared_hinge", C=1e6).fit(X, Y, QUERY)
    model = PairwiseRanker("squared_hinge", solver="online", random_state=0).fit(X, Y, QUERY, s)
    assert np.abs(model.coef_ - best.coef_).max() < 0.2
    stream = PairwiseRanker("squared_hinge", random_state=0)
    for _ in range(15):
        stream.partial_fit(X, Y, QUERY, s)
    assert np.abs(stream.coef_).max() < 2


def test_epoch_of_one_pair_does_not_converge():
    hard = PairwiseRanker("margin", solver="online", random_state=0, pairs_per_epoch=1, max_iter=30)
    with pytest.warns(ConvergenceWarning):
        hard.fit(X, Y, QUERY)
    assert not hard.converged_


def test_partial_fit_without_pairs_does_not_converge():
    alone = PairwiseRanker("margin", random_state=0).partial_fit(X, np.zeros(60), QUERY)
    assert not alone.converged_


def test_converged_rounds_of_ndcg_keep_the_order():
    model = PairwiseRanker("ndcg").fit(X, Y, QUERY)
    if model.converged_:
        again = PairwiseRanker("ndcg", warm_start=True).fit(X, Y, QUERY)
        assert np.array_equal(again.rank(X, QUERY), model.rank(X, QUERY))
    assert model.n_iter_ > len(model.history_["ndcg"])


def test_epochs_without_improvement_end_with_a_warning():
    model = PairwiseRanker("hinge", random_state=0, max_iter=1000)
    with pytest.warns(ConvergenceWarning, match="perhaps no weights put all pairs in order"):
        model.fit(X, Y, QUERY)
    assert not model.converged_
