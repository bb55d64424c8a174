"""PairwiseRanker: bad input raises, says what is wrong, and leaves the model unchanged."""

import numpy as np
import pytest
from helpers.ranking_data import make_small_ranking
from scipy import sparse

from fastdisc import PairwiseRanker, metrics
from fastdisc.basis import Quadratic

X_BAD = np.random.default_rng(0).standard_normal((30, 3))


Y_BAD, Q_BAD = np.arange(30) % 3, np.arange(30) // 10


BAD = {
    "sizes that do not add up": (
        {"group": [10, 12]},
        "add up to 30; got 2 values, which add up to 22",
    ),
    "negative sizes": ({"group": [40, -10]}, "sizes >= 0"),
    "too few names": (
        {"group": np.array(["a"] * 20)},
        "name a query for each of the 30 rows",
    ),
    "groups of two dimensions": ({"group": np.zeros((30, 2))}, "one dimension"),
    "NaN in group": ({"group": np.where(np.arange(30) == 4, np.nan, 1.0)}, "NaN, first in row 4"),
    "NaN in X": (
        {"X": np.where(np.arange(90).reshape(30, 3) == 22, np.nan, X_BAD)},
        "NaN, first in row 7, column 1",
    ),
    "infinity in X": (
        {"X": np.where(np.arange(90).reshape(30, 3) == 22, np.inf, X_BAD)},
        "infinity, first in row 7, column 1",
    ),
    "NaN in y": (
        {"y": np.where(np.arange(30) == 4, np.nan, 1.0)},
        "y contains NaN, first in row 4",
    ),
    "strings in y": ({"y": ["good"] * 30}, "grades or utilities"),
    "short y": ({"y": Y_BAD[:20]}, "X has 30 rows, y has 20"),
    "no y": ({"y": None}, "y is None"),
    "no pairs": ({"y": Q_BAD}, "there is no order to learn"),
    "no pairs of rows with weight": (
        {"sample_weight": (Y_BAD == 1).astype(float)},
        "there is no order to learn",
    ),
    "negative grades": (
        {"loss": "ndcg", "y": Y_BAD - 1},
        "must not be negative for discounted gains; in row 0 it is -1",
    ),
    "grades too high": ({"loss": "ndcg", "y": Y_BAD * 1000.0}, "gains='linear'"),
    "negative weight": ({"sample_weight": np.where(np.arange(30) == 9, -1.0, 1)}, "row 9 it is -1"),
    "short query_weight": (
        {"query_weight": [1.0, 2.0]},
        r"query_weight.shape == \(2,\), expected \(3,\)",
    ),
    "negative query_weight": ({"query_weight": [1.0, -2.0, 1]}, "that of query 1 is -2"),
    "query_weight zero": ({"query_weight": [0.0, 0, 0]}, "query_weight is zero for every query"),
    "short offset": ({"offset": np.zeros(20)}, "offset"),
    "loss unknown": ({"loss": "magic"}, "loss must be one of 'hinge'.*got 'magic'"),
    "solver unknown": ({"solver": "magic"}, "solver must be one of"),
    "hinge has no batch solver": (
        {"loss": "hinge", "solver": "newton"},
        "cannot minimise loss 'hinge'",
    ),
    "L1 and a solver without": (
        {"l1_ratio": 1.0, "solver": "lbfgs"},
        "does not support an L1 penalty",
    ),
    "L1 online": ({"l1_ratio": 1.0, "solver": "online"}, "l1_ratio must be 0"),
    "ndcg online": ({"loss": "ndcg", "solver": "online"}, "does not support .* loss 'ndcg'"),
    "C zero": ({"C": 0}, "C must be a number > 0"),
    "l1_ratio too large": ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1"),
    "truncation zero": ({"truncation": 0}, "truncation must be None or a whole number >= 1"),
    "gains unknown": ({"gains": "cubic"}, "gains must be one of"),
    "weighting unknown": ({"weighting": "rows"}, "weighting must be one of 'pairs', 'queries'"),
    "tol negative": ({"tol": -1.0}, "tol must be"),
    "max_iter a fraction": ({"max_iter": 2.5}, "max_iter must be"),
    "eta zero": ({"eta": 0.0}, "eta must be"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
    "steps too long": (
        {"solver": "online", "loss": "squared_hinge", "eta": 1e9},
        "the weights diverged with steps of",
    ),
}


DATA = ("X", "y", "group", "sample_weight", "query_weight", "offset")


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_bad_input_raises_and_leaves_the_model_unchanged(what):
    given, message = BAD[what]
    given = dict(given)
    data = {"X": X_BAD, "y": Y_BAD, "group": Q_BAD} | {
        key: given.pop(key) for key in DATA if key in given
    }
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
def test_bad_pairs_raise(pairs, weight, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit_pairs(X_BAD, pairs, weight)


def test_bad_calls_of_a_fitted_ranker_raise(rng):
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


X, Y, QUERY = make_small_ranking()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_start_with_other_columns_raises():
    for options in ({"loss": "margin", "solver": "online"}, {"loss": "logistic"}):
        model = PairwiseRanker(warm_start=True, random_state=0, **options).fit(X, Y, QUERY)
        with pytest.raises(ValueError, match="the last fit had 3 weights, this one has 5"):
            model.fit(np.hstack([X, X[:, :2]]), Y, QUERY)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_nan_raises_in_online_training(layout):
    bad = X.astype(np.float32)
    bad[4, 1] = np.nan
    bad = sparse.csr_array(bad) if layout == "csr" else bad
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="NaN, first in row 4, column 1"):
            getattr(PairwiseRanker("margin", solver="online", random_state=0), method)(
                bad, Y, QUERY
            )


def test_penalty_without_effect_raises():
    with pytest.raises(ValueError, match="l1_ratio must be 0"):
        PairwiseRanker("hinge", l1_ratio=0.5).fit(X, Y, QUERY)
    with pytest.raises(ValueError, match="l1_ratio must be 0"):
        PairwiseRanker("margin", l1_ratio=0.5).partial_fit(X, Y, QUERY)


@pytest.mark.parametrize(
    ("shown", "clicked", "message"),
    [
        ([[1, 2], [999, 3]], [[0, 1], [0, 0]], "X has 60 rows, and list 1 shows row 999"),
        ([[1, 2], [-2, 3]], [[0, 1], [0, 1]], "list 1 shows row -2"),
        ([[1, 2], [3, 4, 3]], [[0, 1], [0, 1, 1]], "list 1 shows row 3 twice"),
        ([[1.5, 2]], [[0, 1]], "whole numbers of rows, got float64 in list 0"),
    ],
)
def test_bad_clicks_raise(shown, clicked, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit_clicks(X, shown, clicked)


def test_scorer_without_group_raises():
    model = PairwiseRanker().fit(X, Y, QUERY)
    with pytest.raises(ValueError, match="the scorer was given no group"):
        metrics.make_group_scorer()(model, X, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.ndcg_score([1, 2, 3], [1, 2]), "y_score has 2 values, expected 3"),
        (
            lambda: metrics.expected_reciprocal_rank([1, 2], [1, 2], highest=np.nan),
            "highest must be",
        ),
        (
            lambda: metrics.mean_average_precision([1, 2], [1, 2], relevant=np.nan),
            "relevant must be a number",
        ),
        (
            lambda: metrics.ndcg_score([1j, 2], [1, 2]),
            "numbers of which the higher is the better, got complex128",
        ),
        (lambda: PairwiseRanker().fit(X, Y.astype(str), QUERY), "y must be grades"),
        (lambda: PairwiseRanker().fit(X, Y, [30.0, 30.0]), "whole numbers that add up to 60"),
        (lambda: PairwiseRanker(eta=np.ones(2)).fit(X, Y), "eta must be"),
        (
            lambda: PairwiseRanker().fit(X, Y).set_params(basis=Quadratic()).partial_fit(X, Y),
            "basis",
        ),
        (lambda: PairwiseRanker("ndcg").fit(X[:0], Y[:0]), "0 sample"),
    ],
)
def test_bad_arguments_of_metrics_and_fits_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
