"""Metrics of rankings: scikit-learn's, queries in any order or without relevant rows, bad input."""

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score
from sklearn.metrics import ndcg_score as sklearn_ndcg_score

from fastdisc import metrics

ALL = (
    metrics.ndcg_score,
    metrics.mean_average_precision,
    metrics.mean_reciprocal_rank,
    metrics.expected_reciprocal_rank,
    metrics.kendall_tau,
    metrics.pairwise_accuracy,
)


@pytest.fixture
def data(rng):
    y, query = rng.integers(0, 4, 500), rng.integers(0, 30, 500)
    return y, np.round(rng.standard_normal(500) + y / 2, 1), query


@pytest.mark.parametrize("k", [None, 1, 5, 100])
def test_ndcg_agrees_with_scikit_learn(rng, k):
    Y, Z = rng.integers(0, 4, (20, 15)), np.round(rng.standard_normal((20, 15)), 1)
    Y[3] = 0
    assert metrics.ndcg_score(Y, Z, k=k) == pytest.approx(sklearn_ndcg_score(Y, Z, k=k))
    group = np.repeat(np.arange(20), 15)
    assert metrics.ndcg_score(Y.ravel(), Z.ravel(), group=group, k=k) == pytest.approx(
        sklearn_ndcg_score(Y, Z, k=k)
    )
    assert metrics.ndcg_score(Y, Z, k=k, gains="exponential") == pytest.approx(
        sklearn_ndcg_score(2**Y - 1, Z, k=k)
    )
    assert metrics.ndcg_score(Y, Z, k=k, ties="worst") <= metrics.ndcg_score(Y, Z, k=k)


def test_other_metrics_agree_with_scikit_learn_and_scipy(rng):
    y, z = rng.integers(0, 2, 80), rng.permutation(80).astype(float)
    assert metrics.mean_average_precision(y, z) == pytest.approx(average_precision_score(y, z))
    y, z = rng.integers(0, 9, 80), rng.integers(0, 9, 80)
    assert metrics.kendall_tau(y, z) == pytest.approx(kendalltau(y, z).statistic)
    assert metrics.pairwise_accuracy(y, -z) == pytest.approx(1 - metrics.pairwise_accuracy(y, z))


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("backend", ["cython", "numba", "numpy"])
def test_metrics_do_not_depend_on_order_and_names_of_queries(data, metric, backend):
    y, z, query = data
    order = np.argsort(query, kind="stable")
    expected = np.mean(
        [
            metric(
                y[query == q],
                z[query == q],
                **({"highest": 3} if "expected" in metric.__name__ else {}),
            )
            for q in range(30)
        ]
    )
    options = {"backend": backend}
    assert metric(y, z, group=query, **options) == pytest.approx(expected)
    assert metric(y[order], z[order], group=np.bincount(query), **options) == pytest.approx(
        expected
    )
    names = np.array([f"q{q}" for q in range(30)])
    assert metric(y, z, group=names[query], n_threads=2, **options) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ALL)
def test_queries_without_a_value_count_as_given_by_empty(metric):
    y, z, sizes = [1, 0, 0, 0, 0], [2.0, 1.0, 3.0, 2.0, 1.0], [2, 3]
    options = {"group": sizes} | ({"highest": 1} if "expected" in metric.__name__ else {})
    full = metric(y[:2], z[:2])
    assert metric(y, z, **options) == pytest.approx(full / 2)
    assert metric(y, z, **options, empty=1.0) == pytest.approx((full + 1) / 2)
    assert metric(y, z, **options, empty="skip") == pytest.approx(full)
    assert metric(y, z, **options, query_weight=[3.0, 1.0]) == pytest.approx(0.75 * full)
    assert np.isnan(metric([0, 0], [1.0, 2.0], empty="skip"))
    assert metric([0, 1, 0], [1.0, 2.0, 3.0], group=[3, 0], empty="skip") == metric(
        [0, 1, 0], [1.0, 2.0, 3.0]
    )


def test_metrics_have_known_values():
    y, z = [0, 1, 0, 2], [4.0, 3.0, 2.0, 1.0]
    assert metrics.mean_reciprocal_rank(y, z) == 0.5
    assert metrics.mean_reciprocal_rank(y, z, relevant=1) == 0.25
    assert metrics.mean_reciprocal_rank(y, z, k=1) == 0
    assert metrics.expected_reciprocal_rank(y, z) == pytest.approx(0.25 / 2 + 0.75 * 0.75 / 4)
    assert metrics.pairwise_accuracy(y, z) == pytest.approx(1 / 5)
    assert metrics.mean_average_precision(y, z, k=2) == 0.25


@pytest.mark.parametrize(
    ("metric", "given", "message"),
    [
        (
            metrics.ndcg_score,
            {"y_true": [1, -1]},
            "y_true must not be negative for discounted gains; in row 1 it is -1",
        ),
        (metrics.ndcg_score, {"y_true": [1, np.nan]}, "y_true contains NaN, first in row 1"),
        (
            metrics.ndcg_score,
            {"y_score": [np.inf, 1.0]},
            "y_score contains infinity, first in row 0",
        ),
        (metrics.ndcg_score, {"y_score": [1.0]}, "y_score has 1 values, expected 2"),
        (metrics.ndcg_score, {"group": [1, 2, 3]}, "add up to 2"),
        (metrics.ndcg_score, {"k": 0}, "k must be None or a whole number >= 1"),
        (metrics.ndcg_score, {"gains": "square"}, "gains must be"),
        (metrics.ndcg_score, {"ties": "best"}, "ties must be"),
        (metrics.ndcg_score, {"empty": "zero"}, "empty must be a number or 'skip'"),
        (metrics.ndcg_score, {"y_true": [[1, 2], [0, 1]]}, "needs y_score of that shape"),
        (metrics.expected_reciprocal_rank, {"highest": 0}, "highest must be at least"),
        (
            metrics.kendall_tau,
            {"query_weight": [1.0, 1.0]},
            r"query_weight.shape == \(2,\), expected \(1,\)",
        ),
        (metrics.pairwise_accuracy, {"backend": "fortran"}, "backend must be"),
    ],
)
def test_bad_input_raises(metric, given, message):
    with pytest.raises(ValueError, match=message):
        metric(**({"y_true": [1, 0], "y_score": [0.5, 0.2]} | given))


@pytest.mark.parametrize("min_rows", [0, 10**9])
def test_top_k_by_sorting_and_by_partition(rng, monkeypatch, min_rows):
    monkeypatch.setattr(metrics, "MIN_PARTITION_ROWS", min_rows)
    query, z = rng.integers(0, 40, 300), rng.integers(0, 9, 300).astype(float)
    names = np.unique(query)
    found = metrics.top_k(z, 4, query)
    for name, best in zip(names, found, strict=True):
        rows = np.flatnonzero(query == name)
        expected = rows[np.argsort(-z[rows], kind="stable")[:4]]
        assert best[: len(expected)].tolist() == expected.tolist()
        assert (best[len(expected) :] == -1).all()
    sizes = metrics.top_k(np.array([1.0, 2.0, 3.0]), 9, [0, 1, 0, 2])  # two queries without rows
    assert sizes.tolist() == [[-1, -1], [0, -1], [-1, -1], [2, 1]]


def test_arguments_beyond_the_range_of_kernels_are_accepted():
    assert metrics.ndcg_score([1, 2], [1, 2], k=2**70) == 1
    assert metrics.expected_reciprocal_rank([1, 0], [1, 2], highest=3000) == 0
    assert np.isnan(metrics.ndcg_score([], [], empty="skip"))
    assert metrics.top_k([], 2, group=[]).shape == (0, 0)
