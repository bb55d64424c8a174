"""Decisions from pairs: couplings at their optimum, labels of rejected rows, regions of equal discriminants."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Model

from fastdisc import OneVsRestClassifier, PairwiseClassifier, RejectOption, geometry
from fastdisc._decisions import answers, coupled, pairs
from fastdisc.reject import ErrorRejectCurve


@pytest.mark.parametrize("K", [3, 10, 50])
@pytest.mark.parametrize("kind", ["quadratic", "likelihood"])
def test_pairs_that_agree_with_each_other_give_back_their_posteriors(rng, K, kind):
    P = rng.dirichlet(np.full(K, 0.5), size=40) + 1e-4
    P /= P.sum(axis=1, keepdims=True)
    i, j = pairs(K).T
    np.testing.assert_allclose(coupled(P[:, i] / (P[:, i] + P[:, j]), K, kind), P, atol=1e-5)


def test_certain_pairs_are_coupled_to_the_end():
    (p,) = coupled(np.array([[1 - 1e-6] * 3]), 3, "likelihood")
    made = p[:, None] / (p[:, None] + p)
    r = np.array([[0.5, 1 - 1e-6, 1 - 1e-6], [1e-6, 0.5, 1 - 1e-6], [1e-6, 1e-6, 0.5]])
    np.testing.assert_allclose(made.sum(axis=1), r.sum(axis=1), atol=1e-9)  # the likelihood's gradient is 0


@pytest.mark.parametrize("model", [PairwiseClassifier, OneVsRestClassifier, RejectOption])
@pytest.mark.parametrize("label", [[1, 2], 1])
def test_labels_that_cannot_mean_rejection(model, label):
    with pytest.raises(ValueError, match="reject_label must be a label that is none of the classes"):
        model(reject_label=label).fit(np.eye(6), [0, 1, 2, 0, 1, 2])


def test_large_labels_stay_what_they_are_beside_a_negative_one():
    classes = np.array([0, 2**63 + 1], np.uint64)
    assert answers(classes, np.array([1, 0]), np.array([False, True]), -1).tolist() == [2**63 + 1, -1]


def test_shares_that_are_sums_are_met_in_spite_of_rounding():
    weight = np.full(10, 0.1)
    rejection = np.append(0.0, np.cumsum(weight))[:-1] / weight.sum()
    curve = ErrorRejectCurve(np.linspace(0, 0.9, 10), rejection, np.linspace(0.3, 0.0, 10))
    assert curve.at_rejection(0.3) == pytest.approx(0.3)
    assert curve.at_rejection(0.7) == pytest.approx(0.7)


def test_a_search_without_folds():
    with pytest.raises(ValueError, match="cv has no fold"):
        RejectOption(error=0.1, cv=[]).fit(np.eye(6), [0, 1, 2, 0, 1, 2])


def test_of_equal_discriminants_the_first_has_the_region():
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = Model().fit(X, np.arange(60) % 3)
    model.coef_, model.intercept_ = np.array([[1.0, 0], [1.0, 0], [-1.0, 0]]), np.zeros(3)
    regions = geometry.boundary_2d(model, (-1, 1, -1, 1))
    assert [len(regions[k]) for k in range(3)] == [1, 0, 1]
    model.coef_ *= 1e-200
    assert len(geometry.boundary_2d(model, (-1, 1, -1, 1))[2][0]) == 4
