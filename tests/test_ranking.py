"""PairwiseRanker: the optimum of explicit differences, pairs, clicks, streams, bad input, scikit-learn's conventions."""

import pickle

import numpy as np
import oracles
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import PairwiseRanker
from fastdisc.basis import Quadratic
from fastdisc.metrics import make_group_scorer, mean_average_precision, ndcg_score

LOSSES = ("logistic", "squared_hinge", "margin", "ndcg")


@parametrize_with_checks([PairwiseRanker(), PairwiseRanker("squared_hinge"), PairwiseRanker("margin")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def problem(rng, n=300, d=5, queries=20, grades=3):
    """Rows of unsorted queries: X, y, query."""
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + 2
    z = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = z if grades is None else np.searchsorted(np.quantile(z, np.linspace(0, 1, grades + 1)[1:-1]), z)
    return X, y, rng.integers(0, queries, n)


def differences(X, y, query, s=None):
    """All ordered pairs: rows of X[u] - X[v], and their weights."""
    u, v = np.nonzero((query[:, None] == query) & (y[:, None] > y))
    s = np.ones(len(y)) if s is None else s
    return X[u] - X[v], s[u] * s[v]


def both_signs(D, p):
    """Every other difference turned around, so that there are two classes."""
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    return sign[:, None] * D, sign, p


def logistic_rival(D, p, C):
    A, sign, p = both_signs(D, p)
    return Rival(fit_intercept=False, C=C, tol=1e-10, max_iter=5000, solver="newton-cg").fit(A, sign, p).coef_[0]


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("grades", [2, 4, None])
def test_the_optimum_is_that_of_logistic_regression_on_differences(rng, solver, grades):
    X, y, query = problem(rng, grades=grades)
    s = rng.random(300) + 0.2
    model = PairwiseRanker(solver=solver, C=0.1, tol=1e-9).fit(X, y, group=query, sample_weight=s)
    D, p = differences(X, y, query, s)
    assert model.n_pairs_ == len(D) and model.converged_ and model.solver_ == solver
    np.testing.assert_allclose(model.coef_, logistic_rival(D, p, 0.1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("queries", [20, 1])  # pair by pair, and by the tree
def test_the_optimum_is_that_of_a_linear_svm_on_differences(rng, solver, queries):
    X, y, query = problem(rng, grades=None, queries=queries)
    model = PairwiseRanker("squared_hinge", solver=solver, C=0.1, tol=1e-9).fit(X, y, group=query)
    A, sign, _ = both_signs(*differences(X, y, query))
    rival = LinearSVC(fit_intercept=False, C=0.1, dual=False, tol=1e-9, max_iter=10_000).fit(A, sign)
    np.testing.assert_allclose(model.coef_, rival.coef_[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("queries", [20, 1])
def test_the_margin_is_certified(rng, queries):
    """No other weights have an objective lower than the certificate allows."""
    X, y, query = problem(rng, queries=queries)
    D, _ = differences(X, y, query)
    value = lambda w: np.maximum(0, 1 - D @ w).sum() + w @ w / 2  # noqa: E731
    models = [PairwiseRanker("margin", tol=tol).fit(X, y, group=query) for tol in (1e-2, 1e-5)]
    for model, tol in zip(models, (1e-2, 1e-5), strict=True):
        assert model.converged_ and model.gradient_norm_ <= tol
    loose, tight = (value(model.coef_) for model in models)
    assert tight <= loose <= tight * (1 + 1e-2) / (1 - 1e-5)
    A, sign, _ = both_signs(*differences(X, y, query))
    rival = LinearSVC(loss="hinge", fit_intercept=False, C=1.0, tol=1e-7, max_iter=1_000_000).fit(A, sign)
    assert tight <= value(rival.coef_[0]) * (1 + 1e-5)


def test_lasso(rng):
    X, y, query = problem(rng, d=8)
    D, p = differences(X, y, query)
    A, sign, p = both_signs(D, p)
    C = 0.002
    model = PairwiseRanker(C=C, l1_ratio=1.0, tol=1e-9).fit(X, y, group=query)
    with sklearn.config_context(enable_metadata_routing=False):
        rival = Rival(l1_ratio=1.0, solver="saga", C=C, fit_intercept=False, tol=1e-10, max_iter=50_000).fit(A, sign)
    assert 0 < np.count_nonzero(model.coef_) < 8 and model.solver_ == "proximal"
    np.testing.assert_allclose(model.coef_, rival.coef_[0], rtol=1e-3, atol=1e-5)
    model = PairwiseRanker("margin", C=C, l1_ratio=0.5).fit(X, y, group=query)
    assert np.count_nonzero(model.coef_) < 8


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_given_pairs_are_the_same_pairs(rng, loss):
    X, y, query = problem(rng, 120)
    u, v = np.nonzero((query[:, None] == query) & (y[:, None] > y))
    by_grades = PairwiseRanker(loss, tol=1e-9).fit(X, y, group=query)
    for solver in ("newton", "newton-cg", "lbfgs"):
        by_pairs = PairwiseRanker(loss, tol=1e-9, solver=solver).fit_pairs(X, np.column_stack([u, v]))
        np.testing.assert_allclose(by_pairs.coef_, by_grades.coef_, rtol=1e-5, atol=1e-8)
    s = rng.random(len(u))
    twice = np.concatenate([np.column_stack([u, v])] * 2)
    a, b = (PairwiseRanker(loss, tol=1e-9).fit_pairs(X, *given) for given in ((twice, np.tile(s, 2)), (twice[: len(u)], 2 * s)))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-5, atol=1e-8)


def test_clicks_prefer_to_what_was_skipped(rng):
    X = rng.standard_normal((50, 3))
    model = PairwiseRanker().fit_clicks(X, [[3, 7, 9, -1], [4, 3, 8, 2]], [[0, 0, 1, 0], [0, 1, 0, 1]])
    expected = PairwiseRanker().fit_pairs(X, [(9, 3), (9, 7), (3, 4), (2, 4), (2, 8)])
    assert model.n_pairs_ == 5
    np.testing.assert_allclose(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="the log tells nothing"):
        PairwiseRanker().fit_clicks(X, [[1, 2]], [[1, 0]])


def test_queries_may_weigh_the_same(rng):
    X, y, query = problem(rng)
    model = PairwiseRanker(weighting="queries", C=10.0, tol=1e-9).fit(X, y, group=query)
    sizes = {q: len(differences(X[query == q], y[query == q], query[query == q])[0]) for q in range(20)}
    by_weight = PairwiseRanker(C=10.0, tol=1e-9).fit(X, y, group=query, query_weight=[1 / sizes[q] for q in range(20)])
    np.testing.assert_allclose(model.coef_, by_weight.coef_, rtol=1e-6)
    parts = [differences(X[query == q], y[query == q], query[query == q]) for q in range(20)]
    D, p = np.concatenate([D for D, _ in parts]), np.concatenate([p / len(p) for _, p in parts])
    np.testing.assert_allclose(model.coef_, logistic_rival(D, p, 10.0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_order_and_names_of_queries_do_not_matter(rng, loss):
    X, y, query = problem(rng)
    order = np.argsort(query, kind="stable")
    model = PairwiseRanker(loss, tol=1e-8 if loss != "margin" else 1e-4).fit(X, y, group=query)
    names = np.array([f"query {q:02}" for q in range(20)])
    for group, rows in ((names[query], slice(None)), (query[order], order), (np.bincount(query), order)):
        other = clone(model).fit(X[rows], y[rows], group=group)
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-4, atol=1e-6 if loss != "margin" else 1e-2)


@pytest.mark.parametrize("form", [sparse.csr_array, np.asfortranarray, lambda X: X.astype(np.float32), pd.DataFrame])
def test_layouts(rng, form):
    X, y, query = problem(rng)
    expected = PairwiseRanker(tol=1e-8).fit(X, y, group=query)
    model = PairwiseRanker(tol=1e-8).fit(form(X), y, group=query)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
    assert np.array_equal(model.rank(form(X), query), expected.rank(X, query))


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_backends_and_threads_agree(rng, backend):
    X, y, query = problem(rng)
    expected = PairwiseRanker().fit(X, y, group=query).coef_
    np.testing.assert_allclose(PairwiseRanker(backend=backend).fit(X, y, group=query).coef_, expected, rtol=1e-6)
    for loss in ("squared_hinge", "ndcg"):
        models = [PairwiseRanker(loss, n_threads=n).fit(np.tile(X, (9, 1)), np.tile(y, 9), np.tile(query, 9)) for n in (1, 2, 5)]
        assert all(np.array_equal(model.coef_, models[0].coef_) for model in models[1:])


def test_ndcg_ends_where_its_own_order_weighs_the_pairs(rng):
    X = rng.standard_normal((60, 3))
    y, query = np.clip(np.round(1 + X @ [1.0, 0.5, -0.5] + 0.3 * rng.standard_normal(60)), 0, 3), np.repeat([0, 1, 2], 20)
    model = PairwiseRanker("ndcg", C=0.5, truncation=5, tol=1e-10).fit(X, y, group=query)
    assert model.converged_
    discount, gain, z, g = np.empty(60), 2**y - 1, X @ model.coef_, model.coef_.copy()
    values = np.where(np.arange(20) < 5, 1 / np.log2(np.arange(20) + 2), 0)
    for rows in np.arange(60).reshape(3, 20):
        discount[rows[np.argsort(-z[rows])]] = values
        gain[rows] /= np.sort(gain[rows])[::-1] @ values
    _, _, e, _ = oracles.rank(z, query, y, np.ones(60), "LOGISTIC", 0.0, 1.0, gain=gain, discount=discount)
    np.testing.assert_allclose(g + 0.5 * X.T @ e, 0, atol=1e-7)


def test_ndcg_beats_plain_pairs_at_the_top(rng):
    """Few rows at the top count: weights by the change in NDCG bring them up."""
    X = rng.standard_normal((4000, 6))
    query = np.repeat(np.arange(100), 40)
    z = X @ [2.0, 1, 0, 0, 0, 0] + np.where(X[:, 2] > 0.5, 3 * X[:, 3], 0) + rng.standard_normal(4000)
    y = np.searchsorted([1.0, 3.0, 5.0, 6.5], z)
    plain, top = (PairwiseRanker(loss).fit(X, y, group=query) for loss in ("logistic", "ndcg"))
    ndcg = lambda model: ndcg_score(y, model.predict(X), group=query, k=10, gains="exponential")  # noqa: E731
    assert ndcg(top) > ndcg(plain)
    assert max(top.history_["ndcg"]) == pytest.approx(ndcg(top))


# Figure 10.11: five points of the plane, ranked from 1, the best. No coordinates are published: these have the same picture.
POINTS = np.array([[0.1, 0.2], [0.35, 0.9], [0.6, 0.4], [0.8, 0.75], [0.95, 0.1]])


@pytest.mark.parametrize("ranks", [[5, 3, 4, 1, 2], [3, 1, 4, 2, 5]])
@pytest.mark.parametrize("loss", ["hinge", "margin", "squared_hinge", "logistic"])
def test_figure_10_11(ranks, loss):
    model = PairwiseRanker(loss, C=1e4, random_state=0, max_iter=2000).fit(POINTS, -np.array(ranks))
    assert model.rank(POINTS).tolist() == ranks
    assert model.score(POINTS, -np.array(ranks)) == 1.0


def test_exercise_10_a_basis_learns_what_a_line_cannot():
    """The point in the middle is the best: no projection puts it first, the square of its distance does."""
    middle = POINTS.mean(axis=0)
    points = np.vstack([POINTS - middle, [[0.0, 0.0]]])
    y = -(points**2).sum(axis=1)
    line = PairwiseRanker(C=1e4, loss="squared_hinge").fit(points, y)
    assert line.score(points, y) < 1
    curve = PairwiseRanker("squared_hinge", C=1e6, basis=Quadratic()).fit(points, y)
    assert curve.score(points, y) == 1.0
    features = make_pipeline(PolynomialFeatures(2, include_bias=False), PairwiseRanker("squared_hinge", C=1e6)).fit(points, y)
    np.testing.assert_allclose(np.sort(curve.coef_), np.sort(features[-1].coef_), rtol=1e-5)


def test_online_is_the_published_update(rng):
    X, y, query = problem(rng, 40, queries=3)
    model = PairwiseRanker("hinge", solver="online", eta=0.1, max_iter=1, random_state=3)
    with pytest.warns(ConvergenceWarning, match="1 epochs"):
        model.fit(X, y, group=query)
    seed = np.random.RandomState(3).randint(2**31)
    generator = np.random.default_rng(seed)
    w = generator.uniform(-0.01, 0.01, 5)
    rows = np.lexsort((-y, query))
    pairs = [(u, v) for i, u in enumerate(rows) for v in rows[i:] if query[u] == query[v] and y[u] > y[v]]
    for place in generator.permutation(len(pairs)):
        u, v = pairs[place]
        if X[v] @ w > X[u] @ w:
            w = w - 0.1 * (X[v] - X[u])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9)


def test_a_stream_learns_as_much(rng):
    X, y, query = problem(rng, 3000, queries=150)
    stream = PairwiseRanker("logistic", random_state=0, eta=0.01)
    for part in np.array_split(np.arange(150), 10):
        rows = np.isin(query, part)
        stream.partial_fit(X[rows], y[rows], query[rows])
    assert stream.n_iter_ == 10
    assert stream.score(X, y, query) > PairwiseRanker().fit(X, y, group=query).score(X, y, query) - 0.02
    few = PairwiseRanker("margin", pairs_per_epoch=50, random_state=0, solver="online", max_iter=3)
    with pytest.warns(ConvergenceWarning):
        few.fit(X, y, group=query)


def test_ranks_top_and_reranking(rng):
    X, y, query = problem(rng)
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
    assert np.array_equal(model.rerank(base, X, query, weight=0.0), model.rerank(base, 0 * X, query))


def test_an_offset_is_what_a_correction_is_learned_to(rng):
    X, y, query = problem(rng)
    whole = PairwiseRanker(C=1e3, tol=1e-9).fit(X, y, group=query)
    base = X @ np.array([1.0, 0, 0, 0, 0])
    more = PairwiseRanker(C=1e3, tol=1e-9).fit(X, y, group=query, offset=base)
    np.testing.assert_allclose(more.coef_ + [1, 0, 0, 0, 0], whole.coef_, rtol=1e-2)
    assert np.mean(more.rerank(base, X, query) == whole.rank(X, query)) > 0.95


def test_cross_validation_with_groups(rng):
    X, y, query = problem(rng)
    with sklearn.config_context(enable_metadata_routing=True):
        data = {"group": query, "groups": query}
        model = make_pipeline(StandardScaler(), PairwiseRanker())
        for scorer in (make_group_scorer(k=5), make_group_scorer(mean_average_precision), None):
            estimator = PairwiseRanker() if scorer is None else model  # a pipeline's own score routes nothing
            scores = cross_val_score(estimator, X, y, cv=GroupKFold(4), scoring=scorer, params=data)
            assert scores.shape == (4,) and (scores > 0.6).all()
        search = GridSearchCV(PairwiseRanker(), {"C": [1e-6, 1.0]}, scoring=make_group_scorer(k=5), cv=GroupKFold(4))
        search.fit(X, y, group=query, groups=query)
        fold = next(GroupKFold(4).split(X, y, query))[1]
        by_hand = PairwiseRanker().fit(*(np.delete(a, fold, axis=0) for a in (X, y, query)))
        expected = ndcg_score(y[fold], by_hand.predict(X[fold]), group=query[fold], k=5)
        found = cross_val_score(PairwiseRanker(), X, y, cv=GroupKFold(4), scoring=make_group_scorer(k=5), params=data)
        assert found[0] == pytest.approx(expected)


def test_standardised_weights_and_warm_starts(rng):
    X, y, query = problem(rng)
    scale = X.std(axis=0)
    model = PairwiseRanker(standardize=True, tol=1e-9).fit(X, y, group=query)
    by_hand = PairwiseRanker(tol=1e-9).fit(X / scale, y, group=query)
    np.testing.assert_allclose(model.coef_ * scale, by_hand.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.scale_, scale)
    warm = PairwiseRanker(warm_start=True).fit(X, y, group=query)
    assert warm.fit(X, y, group=query).n_iter_ == 1
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))


def test_large_queries_have_the_hessian_of_a_sample(rng, monkeypatch):
    from fastdisc import _rank_sweep

    X, y, query = problem(rng, 3000, grades=None, queries=2)
    expected = PairwiseRanker("squared_hinge", tol=1e-7).fit(X, y, group=query).coef_
    monkeypatch.setattr(_rank_sweep, "PAIRS", 100_000)
    monkeypatch.setattr(_rank_sweep, "CELLS", 1000)
    np.testing.assert_allclose(PairwiseRanker("squared_hinge", tol=1e-7).fit(X, y, group=query).coef_, expected, rtol=1e-4)
    model = PairwiseRanker(tol=1e-7).fit(X, y > 0, group=query)
    np.testing.assert_allclose(
        model.coef_, PairwiseRanker(tol=1e-7, solver="newton-cg").fit(X, y > 0, group=query).coef_, rtol=1e-3
    )


X_BAD = np.random.default_rng(0).standard_normal((30, 3))
Y_BAD, Q_BAD = np.arange(30) % 3, np.arange(30) // 10
BAD = {
    "sizes that do not add up": ({"group": [10, 12]}, "add up to 30; got 2 values, which add up to 22"),
    "negative sizes": ({"group": [40, -10]}, "sizes >= 0"),
    "names for some rows": ({"group": np.array(["a"] * 20)}, "name a query for each of the 30 rows"),
    "groups of two dimensions": ({"group": np.zeros((30, 2))}, "one dimension"),
    "NaN in group": ({"group": np.where(np.arange(30) == 4, np.nan, 1.0)}, "NaN, first in row 4"),
    "NaN in X": ({"X": np.where(np.arange(90).reshape(30, 3) == 22, np.nan, X_BAD)}, "NaN, first in row 7, column 1"),
    "infinity in X": ({"X": np.where(np.arange(90).reshape(30, 3) == 22, np.inf, X_BAD)}, "infinity, first in row 7, column 1"),
    "NaN in y": ({"y": np.where(np.arange(30) == 4, np.nan, 1.0)}, "y contains NaN, first in row 4"),
    "words in y": ({"y": ["good"] * 30}, "grades or utilities"),
    "short y": ({"y": Y_BAD[:20]}, "X has 30 rows, y has 20"),
    "no y": ({"y": None}, "y is None"),
    "nothing to learn": ({"y": Q_BAD}, "there is no order to learn"),
    "nothing to learn beside weights of 0": ({"sample_weight": (Y_BAD == 1).astype(float)}, "there is no order to learn"),
    "negative grades": ({"loss": "ndcg", "y": Y_BAD - 1}, "must not be negative for discounted gains; in row 0 it is -1"),
    "grades too high": ({"loss": "ndcg", "y": Y_BAD * 1000.0}, "gains='linear'"),
    "negative weight": ({"sample_weight": np.where(np.arange(30) == 9, -1.0, 1)}, "row 9 it is -1"),
    "short query_weight": ({"query_weight": [1.0, 2.0]}, r"query_weight.shape == \(2,\), expected \(3,\)"),
    "negative query_weight": ({"query_weight": [1.0, -2.0, 1]}, "that of query 1 is -2"),
    "query_weight zero": ({"query_weight": [0.0, 0, 0]}, "query_weight is zero for every query"),
    "short offset": ({"offset": np.zeros(20)}, "offset"),
    "loss unknown": ({"loss": "magic"}, "loss must be one of 'hinge'.*got 'magic'"),
    "solver unknown": ({"solver": "magic"}, "solver must be one of"),
    "hinge has no batch solver": ({"loss": "hinge", "solver": "newton"}, "least at zero weights"),
    "L1 and a solver without": ({"l1_ratio": 1.0, "solver": "lbfgs"}, "has no L1 penalty"),
    "L1 online": ({"l1_ratio": 1.0, "solver": "online"}, "l1_ratio must be 0"),
    "ndcg online": ({"loss": "ndcg", "solver": "online"}, "no 'ndcg'"),
    "C zero": ({"C": 0}, "C must be a number > 0"),
    "l1_ratio too large": ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1"),
    "truncation zero": ({"truncation": 0}, "truncation must be None or a whole number >= 1"),
    "gains unknown": ({"gains": "cubic"}, "gains must be one of"),
    "weighting unknown": ({"weighting": "rows"}, "weighting must be one of 'pairs', 'queries'"),
    "tol negative": ({"tol": -1.0}, "tol must be"),
    "max_iter a fraction": ({"max_iter": 2.5}, "max_iter must be"),
    "eta zero": ({"eta": 0.0}, "eta must be"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
    "steps too long": ({"solver": "online", "loss": "squared_hinge", "eta": 1e9}, "ran away"),
}
DATA = ("X", "y", "group", "sample_weight", "query_weight", "offset")


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_bad_input_is_named(what):
    given, message = BAD[what]
    given = dict(given)
    data = {"X": X_BAD, "y": Y_BAD, "group": Q_BAD} | {key: given.pop(key) for key in DATA if key in given}
    model = PairwiseRanker().fit(X_BAD, Y_BAD, Q_BAD)
    before = model.coef_.copy()
    model.set_params(**given)
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert np.array_equal(model.coef_, before), "a failed fit changed the model"


@pytest.mark.parametrize(
    ("pairs", "weight", "message"),
    [
        ([(0, 30)], None, r"X has 30 rows, and pair 0 is \[0, 30\]"),
        ([(1, 2), (-1, 2)], None, r"pair 1 is \[-1, 2\]"),
        ([(1, 1)], None, "prefers row 1 to itself"),
        ([(1.5, 2)], None, "whole numbers"),
        ([1, 2], None, "of shape"),
        (np.empty((0, 2), int), None, "P >= 1"),
        ([(1, 2)], [1.0, 2.0], r"weight.shape == \(2,\), expected \(1,\)"),
        ([(1, 2)], [np.nan], "weight must be finite"),
    ],
)
def test_bad_pairs_are_named(pairs, weight, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit_pairs(X_BAD, pairs, weight)


def test_bad_use_is_named(rng):
    model = PairwiseRanker().fit(X_BAD, Y_BAD, Q_BAD)
    with pytest.raises(ValueError, match="NaN, first in row 7, column 1"):
        model.predict(BAD["NaN in X"][0]["X"])
    with pytest.raises(ValueError, match="3 features"):
        model.rank(X_BAD[:, :2])
    with pytest.raises(ValueError, match="k must be"):
        model.top_k(X_BAD, 0)
    with pytest.raises(ValueError, match="weight must be"):
        model.rerank(np.zeros(30), X_BAD, weight=-1)
    with pytest.raises(ValueError, match="base_scores contains NaN"):
        model.rerank(np.full(30, np.nan), X_BAD)
    with pytest.raises(ValueError, match="no queries"):
        PairwiseRanker("ndcg").fit_pairs(X_BAD, [(0, 1)])
    for options in ({"standardize": True}, {"loss": "ndcg"}, {"weighting": "queries"}):
        with pytest.raises(ValueError, match="need all rows at once"):
            PairwiseRanker(**options).partial_fit(X_BAD, Y_BAD)
    with pytest.raises(ValueError, match="shown has 1 lists, clicked has 2"):
        model.fit_clicks(X_BAD, [[1, 2]], [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="list 0"):
        model.fit_clicks(X_BAD, [[1, 2]], [[0, 2]])
