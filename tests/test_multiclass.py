"""Combinations of two-class discriminants: against scikit-learn's, by their definitions, on the seeds' figures; bad input."""

import itertools
import pickle

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import linear_model, multiclass, naive_bayes, svm, tree
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_multilabel_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastdisc import LogisticRegression, OneVsRestClassifier, PairwiseClassifier, Perceptron, _decisions

PROFILE = settings(max_examples=40, deadline=None, derandomize=True)
IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
TIGHT = {"tol": 1e-10}


@parametrize_with_checks(
    [
        PairwiseClassifier(),
        OneVsRestClassifier(),
        PairwiseClassifier(linear_model.RidgeClassifier(), decision="all"),
        OneVsRestClassifier(naive_bayes.GaussianNB()),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator(estimator, check):
    check(estimator)


# --- as scikit-learn -----------------------------------------------------------------------------------------------------------

RIVALS = [
    linear_model.LogisticRegression(),
    linear_model.Perceptron(shuffle=False, max_iter=5, tol=None),  # the order of the rows matters
    svm.LinearSVC(),
    naive_bayes.GaussianNB(),  # has no decision_function
    tree.DecisionTreeClassifier(random_state=0),
    make_pipeline(StandardScaler(), linear_model.RidgeClassifier()),
]


@pytest.mark.parametrize("estimator", RIVALS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", ["array", "csr", "frame"])
def test_same_as_one_versus_one(estimator, form):
    if form == "csr" and isinstance(estimator, (naive_bayes.GaussianNB, type(RIVALS[-1]))):
        pytest.skip("takes no sparse matrix")
    X = {"array": IRIS, "csr": sparse.csr_array(IRIS), "frame": pd.DataFrame(IRIS, columns=list("abcd"))}[form]
    theirs = multiclass.OneVsOneClassifier(estimator).fit(X, NAMES)
    ours = PairwiseClassifier(estimator, n_jobs=2).fit(X, NAMES)
    assert ours.n_features_in_ == 4 and ours.n_classes_ == 3 and np.array_equal(ours.classes_, theirs.classes_)
    assert [type(model) for model in ours.estimators_] == [type(model) for model in theirs.estimators_]
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    if hasattr(estimator, "decision_function"):
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("estimator", RIVALS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("K", [2, 3])
def test_same_as_one_versus_rest(estimator, K):
    X, y = IRIS[SPECIES < K], NAMES[SPECIES < K]
    theirs, ours = multiclass.OneVsRestClassifier(estimator).fit(X, y), OneVsRestClassifier(estimator).fit(X, y)
    assert len(ours.estimators_) == len(theirs.estimators_) and not ours.multilabel_
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert hasattr(ours, "predict_proba") == hasattr(theirs, "predict_proba")
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
    if hasattr(estimator, "decision_function"):
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_multilabel(form):
    X, Y = make_multilabel_classification(200, 6, n_classes=4, random_state=0)
    estimator = linear_model.LogisticRegression(tol=1e-10, max_iter=1000)
    theirs = multiclass.OneVsRestClassifier(estimator).fit(X, Y)
    for ours in (OneVsRestClassifier(estimator), OneVsRestClassifier(LogisticRegression(**TIGHT))):
        ours.fit(X, form(Y))
        assert ours.multilabel_ and np.array_equal(ours.classes_, np.arange(4))
        assert np.array_equal(ours.predict(X), theirs.predict(X)) and not ours.reject_mask(X).any()
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_a_label_of_all_rows_or_of_none():
    Y = np.column_stack([np.ones(150, int), np.zeros(150, int), SPECIES > 0])
    model = OneVsRestClassifier().fit(IRIS, Y)
    assert np.array_equal(model.predict(IRIS)[:, :2], Y[:, :2])
    assert np.array_equal(model.predict_proba(IRIS)[:, :2], Y[:, :2])
    assert not hasattr(model, "coef_") and (model.predict(IRIS)[:, 2] == Y[:, 2]).all()


def test_row_weights_are_repetition():
    counts = np.random.default_rng(0).integers(1, 4, 150)
    rows = np.repeat(np.arange(150), counts)
    for model in (PairwiseClassifier, OneVsRestClassifier):
        weighted = model(LogisticRegression(**TIGHT)).fit(IRIS, SPECIES, sample_weight=counts)
        repeated = model(LogisticRegression(**TIGHT)).fit(IRIS[rows], SPECIES[rows])
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


# --- by definition -------------------------------------------------------------------------------------------------------------


@st.composite
def scores(draw):
    K, n = draw(st.integers(2, 6)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.round(rng.standard_normal((n, K * (K - 1) // 2)), draw(st.sampled_from([0, 3]))), K


@PROFILE
@given(case=scores())
def test_rules_are_their_definitions(case):
    G, K = case
    assert _decisions.pairs(K).tolist() == [list(pair) for pair in itertools.combinations(range(K), 2)]
    np.testing.assert_allclose(_decisions.sums(G, K), [oracles.pair_sums(g, K) for g in G], atol=1e-12)
    assert np.array_equal(_decisions.votes(G, K), [oracles.pair_votes(g, K) for g in G])
    assert np.array_equal(_decisions.least(G, K), [oracles.pair_least(g, K) for g in G])
    winners = [oracles.pair_winner(g, K) for g in G]
    assert np.array_equal(_decisions.undecided(G, K), [winner is None for winner in winners])
    won = [k for k, winner in enumerate(winners) if winner is not None]
    for rule in (_decisions.least, _decisions.majority):  # who wins all pairs wins by votes, too
        assert np.array_equal(rule(G, K)[won].argmax(axis=1), [winners[k] for k in won])


@PROFILE
@given(seed=st.integers(0, 2**32), K=st.integers(2, 7), kind=st.sampled_from(["quadratic", "likelihood"]))
def test_pairs_of_posteriors_give_them_back(seed, K, kind):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), 5) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    R = np.column_stack([P[:, i] / (P[:, i] + P[:, j]) for i, j in _decisions.pairs(K)])
    np.testing.assert_allclose(_decisions.coupled(R, K, kind), P, atol=1e-6)


@PROFILE
@given(seed=st.integers(0, 2**32), K=st.integers(2, 6))
def test_couplings_are_optimal(seed, K):
    """No other posteriors have a smaller error: against a constrained minimiser and the equations of a maximum."""
    R = np.random.default_rng(seed).random((1, K * (K - 1) // 2))
    p = _decisions.coupled(R, K, "quadratic")[0]
    np.testing.assert_allclose(p, oracles.coupled_quadratic(np.clip(R[0], 1e-7, 1 - 1e-7), K), atol=1e-9)
    q = _decisions.coupled(R, K, "likelihood")[0]
    made, wanted = oracles.coupled_moments(q, np.clip(R[0], 1e-7, 1 - 1e-7), K)
    np.testing.assert_allclose(made, wanted, atol=1e-6)


def test_certain_pairs_have_posteriors():
    P = _decisions.coupled(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), 3, "quadratic")
    assert np.isfinite(P).all() and P[0].argmax() == 0 and P[1].argmax() == 1
    np.testing.assert_allclose(P[2], 1 / 3, atol=1e-6)  # each beats another


@pytest.mark.parametrize("coupling", ["quadratic", "likelihood"])
def test_posteriors_of_pairs(coupling):
    X, y = load_wine(return_X_y=True)
    model = PairwiseClassifier(coupling=coupling).fit(StandardScaler().fit_transform(X), y)
    P = model.predict_proba(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (P >= 0).all() and (P.argmax(axis=1) == y).mean() > 0.98


def test_two_classes_are_one_discriminant():
    X, y = IRIS[50:], NAMES[50:]
    alone = LogisticRegression(**TIGHT).fit(X, y)
    for model in (PairwiseClassifier(LogisticRegression(**TIGHT)), OneVsRestClassifier(LogisticRegression(**TIGHT))):
        model.fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), rtol=1e-5)
        assert np.array_equal(model.predict(X), alone.predict(X)) and not model.reject_mask(X).any()


def test_sum_rule_is_coefficient_sums():
    X, y = load_digits(return_X_y=True)
    model = PairwiseClassifier(decision="sum").fit(X, y)
    G = model.pairwise_decision_function(X)
    S = model.decision_function(X)
    np.testing.assert_allclose(S, _decisions.sums(G, 10), rtol=1e-9, atol=1e-9)
    B = _decisions.incidence(10).T
    np.testing.assert_allclose(S, X @ (B @ model.coef_).T + B @ model.intercept_, rtol=1e-9, atol=1e-9)
    assert np.array_equal(model.predict(X), S.argmax(axis=1))


@pytest.mark.parametrize("decision", ["vote", "sum", "all"])
def test_long_and_short_stretches_decide_alike(decision, monkeypatch):
    from fastdisc import _combined

    X, y = load_digits(return_X_y=True)
    whole = PairwiseClassifier(decision=decision, reject_label=-1).fit(X, y)
    expected = whole.predict(X), whole.reject_mask(X), whole.predict_proba(X)
    monkeypatch.setattr(_combined, "CELLS", 5000)
    for found, other in zip((whole.predict(X), whole.reject_mask(X), whole.predict_proba(X)), expected, strict=True):
        np.testing.assert_array_equal(found, other)
    np.testing.assert_array_equal(whole.predict(sparse.csr_array(X)), expected[0])


# --- the seeds' figures --------------------------------------------------------------------------------------------------------


def figure_10_4(rng, n=40):
    """Three clusters along a line: the middle one can be separated from each of the others, and not from both."""
    centers = np.array([[0.0, 0.0], [-4.0, 0.3], [4.0, 0.3]])
    y = np.arange(3 * n) % 3
    return centers[y] + rng.uniform(-1, 1, (3 * n, 2)), y


def test_pairwise_but_not_one_versus_rest_separable(rng):
    X, y = figure_10_4(rng)
    pairs = PairwiseClassifier(Perceptron(tol=None), decision="all", reject_label=-1).fit(X, y)
    assert (pairs.predict(X) == y).all() and not pairs.reject_mask(X).any()
    rest = OneVsRestClassifier(LogisticRegression(C=1e3), decision="single", reject_label=-1).fit(X, y)
    Z = rest.decision_function(X)
    assert ((Z[:, 1] > 0) == (y == 1)).all() and ((Z[:, 2] > 0) == (y == 2)).all()
    assert ((Z[:, 0] > 0) != (y == 0)).any()  # no line has class 0 alone on one side
    assert (rest.predict(X)[rest.reject_mask(X)] == -1).all() and rest.reject_mask(X)[y == 0].any()


def test_ambiguous_regions_of_figure_4_2():
    """Three classes at the corners of a triangle: in the middle nobody is positive, or each pair has another winner."""
    corners = np.array([[0.0, 2.0], [-1.7, -1.0], [1.7, -1.0]])
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = corners[y] + 0.3 * rng.standard_normal((300, 2))
    rest = OneVsRestClassifier(LogisticRegression(C=10), decision="single").fit(X, y)
    middle, far = np.array([[0.0, 0.0]]), 40 * corners
    assert rest.reject_mask(middle)[0] and (rest.decision_function(middle) <= 0).all()
    assert not rest.reject_mask(corners).any() and np.array_equal(rest.predict(far), [0, 1, 2])
    assert rest.reject_mask(-far).all() and ((rest.decision_function(-far) > 0).sum(axis=1) == 2).all()  # two claim it
    assert not OneVsRestClassifier().fit(X, y).reject_mask(middle).any()  # the largest always decides
    # Pairs whose planes do not meet in one point enclose a region in which each class has one vote.
    pairs = PairwiseClassifier().fit(X, y)
    for model, shift in zip(pairs.estimators_, (0.5, -0.5, 0.5), strict=True):
        model.intercept_ = model.intercept_ + shift * np.linalg.norm(model.coef_)
    votes = _decisions.votes(pairs.pairwise_decision_function(middle), 3)
    assert np.array_equal(votes, [[1, 1, 1]]) and pairs.reject_mask(middle)[0]
    assert pairs.set_params(decision="all").reject_mask(middle)[0]
    assert not pairs.reject_mask(corners).any() and np.array_equal(pairs.predict(corners), [0, 1, 2])
    assert pairs.set_params(reject_label="?").predict(middle)[0] == "?"


LABELS = [([0, 1, 2], -1, "i"), ([0, 1, 2], "?", "O"), ([0, 1, 2], 0.5, "f"), ("abc", "reject", "U"), ("abc", -1, "O")]


@pytest.mark.parametrize(("classes", "label", "kind"), LABELS)
def test_reject_labels(classes, label, kind):
    classes = list(classes)
    y = np.array(classes)[SPECIES]
    model = OneVsRestClassifier(decision="single", reject_label=label).fit(IRIS, y)
    found, mask = model.predict(IRIS), model.reject_mask(IRIS)
    assert found.dtype.kind == kind and mask.any() and not mask.all()
    assert all(name == label for name in found[mask]) and all(name in classes for name in found[~mask])
    nearest = clone(model).set_params(reject_label=None).fit(IRIS, y).predict(IRIS)
    assert np.array_equal(nearest[~mask], found[~mask].astype(nearest.dtype))


# --- as an estimator -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [PairwiseClassifier(), OneVsRestClassifier()], ids=str)
def test_pipelines_search_pickle_frames(model):
    frame = pd.DataFrame(IRIS, columns=list("abcd"))
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(model).set_params(estimator=LogisticRegression())), {})
    step = type(model).__name__.lower()
    search.param_grid = {f"{step}__estimator__C": [0.1, 1.0], f"{step}__decision": [model.decision]}
    search.fit(frame, NAMES)
    assert search.best_score_ > 0.9
    fitted = clone(model).fit(frame, NAMES)
    assert np.array_equal(fitted.feature_names_in_, list("abcd"))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(frame), fitted.predict(frame))
    assert all(isinstance(each, LogisticRegression) and each.converged_ for each in fitted.estimators_)


def test_text_through_a_pipeline():
    from sklearn.feature_extraction.text import CountVectorizer

    texts = ["red apple", "green pear", "blue plum", "red apples here", "a green pear", "one blue plum"] * 3
    model = PairwiseClassifier(make_pipeline(CountVectorizer(), LogisticRegression()))
    assert (model.fit(texts, [0, 1, 2] * 6).predict(texts) == [0, 1, 2] * 6).all()


def test_backend_and_threads_reach_the_estimators():
    for model in (PairwiseClassifier, OneVsRestClassifier):
        found = model(Perceptron(), backend="numpy", n_threads=1).fit(IRIS, SPECIES).estimators_
        assert {(each.backend, each.n_threads) for each in found} == {("numpy", 1)}
        assert len(model(naive_bayes.GaussianNB(), n_threads=1).fit(IRIS, SPECIES).estimators_) == 3


def spoiled(value):
    bad = IRIS.copy()
    bad[7, 1] = value
    return bad


BAD = {
    "NaN in X": ({"X": spoiled(np.nan)}, "NaN"),
    "infinity in X": ({"X": spoiled(np.inf)}, "infinity"),
    "no rows": ({"X": IRIS[:0], "y": SPECIES[:0]}, "0 sample|only one class|zero-size"),
    "short y": ({"y": SPECIES[:100]}, "X has 150 rows, y has 100"),
    "one class": ({"y": np.zeros(150, int)}, "only one class: .*0"),
    "continuous y": ({"y": IRIS[:, 0]}, "Unknown label type: continuous"),
    "short weights": ({"sample_weight": np.ones(9)}, r"\(9,\), expected \(150,\)"),
    "negative weight": ({"sample_weight": np.where(np.arange(150) == 9, -1.0, 1)}, "row 9 it is -1"),
    "weights that nobody takes": ({"estimator": Perceptron, "sample_weight": np.ones(150)}, "an estimator with fit"),
    "no estimator": ({"estimator": 3}, "estimator must be an estimator with fit, got 3"),
    "estimator without weights": (
        {"estimator": make_pipeline(LogisticRegression()), "sample_weight": np.ones(150)},
        "takes no sample_weight",
    ),
    "decision unknown": ({"decision": "dice"}, "decision must be one of .*got 'dice'"),
    "verbose negative": ({"verbose": -1}, "verbose must be"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
    "threads zero": ({"n_threads": 0}, "n_threads must be"),
    "a parameter of the estimator": ({"estimator": LogisticRegression(C=-1)}, "C must be a number > 0"),
}


@pytest.mark.parametrize("model", [PairwiseClassifier, OneVsRestClassifier])
@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(model, what):
    given, message = BAD[what]
    given = dict(given)
    data = {"X": IRIS, "y": SPECIES} | {key: given.pop(key) for key in ("X", "y", "sample_weight") if key in given}
    fitted = model().fit(IRIS, SPECIES)
    before = vars(fitted.set_params(**given)).copy()
    with pytest.raises(ValueError, match=message):
        fitted.fit(**data)
    assert vars(fitted) == before, "a failed fit changed the model"


def test_bad_coupling_indicator_and_prediction():
    with pytest.raises(ValueError, match="coupling must be one of 'quadratic', 'likelihood'"):
        PairwiseClassifier(coupling="tight").fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="row 0, column 1 of y it is 2"):
        OneVsRestClassifier().fit(IRIS, np.tile([0, 2], (150, 1)))
    for model in (PairwiseClassifier(), OneVsRestClassifier()):
        model.fit(IRIS, SPECIES)
        with pytest.raises(ValueError, match="NaN, first in row 7, column 1"):
            model.predict(spoiled(np.nan))
        with pytest.raises(ValueError, match="4 features"):
            model.reject_mask(IRIS[:, :2])
