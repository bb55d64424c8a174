"""From two-class discriminants to one decision: rules, couplings, rejection, labels."""

import itertools

import numpy as np
import pytest
from helpers import oracles
from helpers.data_sets import SETS, STANDARDIZED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression

from fastdisc import (
    LogisticRegression,
    OneVsRestClassifier,
    PairwiseClassifier,
    Perceptron,
    RejectOption,
    geometry,
)
from fastdisc.multiclass import base, decisions

PROFILE = settings(max_examples=40, deadline=None, derandomize=True)
COUPLINGS = ("quadratic", "likelihood")
MIN_POSTERIOR = decisions.MIN_POSTERIOR


# --- rules for pairs ------------------------------------------------------------------------------


@st.composite
def pair_scores(draw):
    """Scores of the pairs of K classes; rounded to integers, some are equal and some are 0."""
    K, n = draw(st.integers(2, 6)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    G = rng.standard_normal((n, K * (K - 1) // 2))
    return np.round(G, draw(st.sampled_from([0, 3]))), K


@PROFILE
@given(case=pair_scores())
def test_pair_rules_equal_their_definitions(case):
    G, K = case
    pairs = [list(pair) for pair in itertools.combinations(range(K), 2)]
    assert decisions.class_pairs(K).tolist() == pairs
    expected = [oracles.pair_sums(g, K) for g in G]
    np.testing.assert_allclose(decisions.score_sums(G, K), expected, atol=1e-12)
    assert np.array_equal(decisions.votes(G, K), [oracles.pair_votes(g, K) for g in G])
    assert np.array_equal(decisions.weakest_scores(G, K), [oracles.pair_least(g, K) for g in G])
    winners = [oracles.pair_winner(g, K) for g in G]
    assert np.array_equal(decisions.without_winner(G, K), [winner is None for winner in winners])
    won = [k for k, winner in enumerate(winners) if winner is not None]
    for scores in (decisions.weakest_scores, decisions.vote_scores):
        assert np.array_equal(scores(G, K)[won].argmax(axis=1), [winners[k] for k in won])


def test_sum_rule_is_a_sum_of_coefficients():
    X, y = SETS["digits"]
    model = PairwiseClassifier(decision="sum").fit(X, y)
    S = model.decision_function(X)
    expected = decisions.score_sums(model.pairwise_decision_function(X), 10)
    np.testing.assert_allclose(S, expected, rtol=1e-9, atol=1e-9)
    B = decisions.incidence(10).T
    W, w0 = B @ model.coef_, B @ model.intercept_
    np.testing.assert_allclose(S, X @ W.T + w0, rtol=1e-9, atol=1e-9)
    assert np.array_equal(model.predict(X), S.argmax(axis=1))


@pytest.mark.parametrize("decision", ["vote", "sum", "all"])
def test_slices_of_rows_do_not_change_decisions(decision, monkeypatch):
    X, y = SETS["digits"]
    model = PairwiseClassifier(decision=decision, reject_label=-1).fit(X, y)
    expected = model.predict(X), model.reject_mask(X), model.predict_proba(X)
    monkeypatch.setattr(base, "MAX_SCORE_CELLS", 5000)
    found = model.predict(X), model.reject_mask(X), model.predict_proba(X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), expected[0])


# --- couplings ------------------------------------------------------------------------------------


def pairs_of_posteriors(P):
    i, j = decisions.class_pairs(P.shape[1]).T
    return P[:, i] / (P[:, i] + P[:, j])


@PROFILE
@given(seed=st.integers(0, 2**32), K=st.integers(2, 7), method=st.sampled_from(COUPLINGS))
def test_consistent_pairs_give_their_posteriors(seed, K, method):
    P = np.random.default_rng(seed).dirichlet(np.ones(K), 5) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(decisions.couple(pairs_of_posteriors(P), K, method), P, atol=1e-6)


@pytest.mark.parametrize("K", [3, 10, 50])
@pytest.mark.parametrize("method", COUPLINGS)
def test_consistent_pairs_of_many_classes_give_their_posteriors(rng, K, method):
    P = rng.dirichlet(np.full(K, 0.5), size=40) + 1e-4
    P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(decisions.couple(pairs_of_posteriors(P), K, method), P, atol=1e-5)


@PROFILE
@given(seed=st.integers(0, 2**32), K=st.integers(2, 6))
def test_quadratic_coupling_minimises_the_squared_error(seed, K):
    R = np.random.default_rng(seed).random((1, K * (K - 1) // 2))
    p = decisions.couple(R, K, "quadratic")[0]
    r = np.clip(R[0], MIN_POSTERIOR, 1 - MIN_POSTERIOR)
    np.testing.assert_allclose(p, oracles.coupled_quadratic(r, K), atol=1e-9)


@PROFILE
@given(seed=st.integers(0, 2**32), K=st.integers(2, 6))
def test_likelihood_coupling_solves_the_equations_of_the_maximum(seed, K):
    R = np.random.default_rng(seed).random((1, K * (K - 1) // 2))
    p = decisions.couple(R, K, "likelihood")[0]
    r = np.clip(R[0], MIN_POSTERIOR, 1 - MIN_POSTERIOR)
    found, wanted = oracles.coupled_moments(p, r, K)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_pairs_of_certain_posteriors_are_coupled():
    R = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    P = decisions.couple(R, 3, "quadratic")
    assert np.isfinite(P).all() and P[0].argmax() == 0 and P[1].argmax() == 1
    np.testing.assert_allclose(P[2], 1 / 3, atol=1e-6)  # each class wins one pair


def test_likelihood_coupling_of_almost_certain_pairs_converges():
    (p,) = decisions.couple(np.array([[1 - 1e-6] * 3]), 3, "likelihood")
    Y = p[:, None] / (p[:, None] + p)
    r = np.array([[0.5, 1 - 1e-6, 1 - 1e-6], [1e-6, 0.5, 1 - 1e-6], [1e-6, 1e-6, 0.5]])
    np.testing.assert_allclose(Y.sum(axis=1), r.sum(axis=1), atol=1e-9)  # the gradient is 0


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_pairwise_posteriors_add_up_to_one(coupling):
    X, y = STANDARDIZED["wine"]
    P = PairwiseClassifier(coupling=coupling).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (P >= 0).all() and (P.argmax(axis=1) == y).mean() > 0.98


# --- the published figures ------------------------------------------------------------------------


def draw_figure_10_4(rng, n=40):
    """Three clusters in a row: each pair is separable, but not the middle one from both others."""
    centers = np.array([[0.0, 0.0], [-4.0, 0.3], [4.0, 0.3]])
    y = np.arange(3 * n) % 3
    return centers[y] + rng.uniform(-1, 1, (3 * n, 2)), y


def test_classes_of_figure_10_4_are_separable_in_pairs(rng):
    X, y = draw_figure_10_4(rng)
    pairs = PairwiseClassifier(Perceptron(tol=None), decision="all", reject_label=-1).fit(X, y)
    assert (pairs.predict(X) == y).all() and not pairs.reject_mask(X).any()


def test_classes_of_figure_10_4_are_not_separable_from_the_rest(rng):
    X, y = draw_figure_10_4(rng)
    rest = OneVsRestClassifier(LogisticRegression(C=1e3), decision="single", reject_label=-1)
    Z = rest.fit(X, y).decision_function(X)
    assert ((Z[:, 1] > 0) == (y == 1)).all() and ((Z[:, 2] > 0) == (y == 2)).all()
    assert ((Z[:, 0] > 0) != (y == 0)).any()  # no line has class 0 alone on one side
    assert (rest.predict(X)[rest.reject_mask(X)] == -1).all()
    assert rest.reject_mask(X)[y == 0].any()


CORNERS = np.array([[0.0, 2.0], [-1.7, -1.0], [1.7, -1.0]])  # of a triangle, a class at each
MIDDLE = np.array([[0.0, 0.0]])


def draw_figure_4_2():
    y = np.arange(300) % 3
    return CORNERS[y] + 0.3 * np.random.default_rng(0).standard_normal((300, 2)), y


def test_one_versus_rest_rejects_ambiguous_regions_of_figure_4_2():
    X, y = draw_figure_4_2()
    rest = OneVsRestClassifier(LogisticRegression(C=10), decision="single").fit(X, y)
    far = 40 * CORNERS
    assert rest.reject_mask(MIDDLE)[0] and (rest.decision_function(MIDDLE) <= 0).all()
    assert not rest.reject_mask(CORNERS).any() and np.array_equal(rest.predict(far), [0, 1, 2])
    assert ((rest.decision_function(-far) > 0).sum(axis=1) == 2).all()
    assert rest.reject_mask(-far).all()
    assert not OneVsRestClassifier().fit(X, y).reject_mask(MIDDLE).any()


def test_pairs_reject_the_ambiguous_region_of_figure_4_2():
    """Planes that do not meet in one point enclose a region where each class has a vote."""
    pairs = PairwiseClassifier().fit(*draw_figure_4_2())
    for model, shift in zip(pairs.estimators_, (0.5, -0.5, 0.5), strict=True):
        model.intercept_ = model.intercept_ + shift * np.linalg.norm(model.coef_)
    votes = decisions.votes(pairs.pairwise_decision_function(MIDDLE), 3)
    assert np.array_equal(votes, [[1, 1, 1]]) and pairs.reject_mask(MIDDLE)[0]
    assert pairs.set_params(decision="all").reject_mask(MIDDLE)[0]
    assert not pairs.reject_mask(CORNERS).any()
    assert np.array_equal(pairs.predict(CORNERS), [0, 1, 2])
    assert pairs.set_params(reject_label="?").predict(MIDDLE)[0] == "?"


# --- labels ---------------------------------------------------------------------------------------

LABELS = [
    ([0, 1, 2], -1, "i"),
    ([0, 1, 2], "?", "O"),
    ([0, 1, 2], 0.5, "f"),
    ("abc", "reject", "U"),
    ("abc", -1, "O"),
]


@pytest.mark.parametrize(("classes", "label", "kind"), LABELS)
def test_predictions_have_a_type_for_classes_and_reject_label(classes, label, kind):
    classes, (X, y) = list(classes), SETS["iris"]
    model = OneVsRestClassifier(decision="single", reject_label=label).fit(X, np.array(classes)[y])
    found, mask = model.predict(X), model.reject_mask(X)
    assert found.dtype.kind == kind and mask.any() and not mask.all()
    assert all(name == label for name in found[mask])
    assert all(name in classes for name in found[~mask])
    nearest = clone(model).set_params(reject_label=None).fit(X, np.array(classes)[y]).predict(X)
    assert np.array_equal(nearest[~mask], found[~mask].astype(nearest.dtype))


def test_large_unsigned_labels_do_not_become_floats():
    classes, codes = np.array([0, 2**63 + 1], np.uint64), np.array([1, 0])
    found = decisions.labels_or_reject(classes, codes, np.array([False, True]), -1)
    assert found.tolist() == [2**63 + 1, -1]


@pytest.mark.parametrize("model", [PairwiseClassifier, OneVsRestClassifier, RejectOption])
@pytest.mark.parametrize("label", [[1, 2], 1])
def test_reject_label_must_be_a_scalar_and_no_class(model, label):
    message = "reject_label must be a label that is none of the classes"
    with pytest.raises(ValueError, match=message):
        model(reject_label=label).fit(np.eye(6), [0, 1, 2, 0, 1, 2])


def test_first_of_equal_discriminants_has_the_region():
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = SklearnLogisticRegression().fit(X, np.arange(60) % 3)
    model.coef_, model.intercept_ = np.array([[1.0, 0], [1.0, 0], [-1.0, 0]]), np.zeros(3)
    regions = geometry.boundary_2d(model, (-1, 1, -1, 1))
    assert [len(regions[k]) for k in range(3)] == [1, 0, 1]
    model.coef_ *= 1e-200
    assert len(geometry.boundary_2d(model, (-1, 1, -1, 1))[2][0]) == 4
