"""Stochastic gradient descent with averaged weights, and its form for rows that arrive later."""

import numpy as np
import pytest
from helpers.data_sets import SETS, STANDARDIZED
from helpers.fits import FORMS, fit, scikit_learn
from helpers.objectives import numpy_problem

from fastdisc._solvers import sgd
from fastdisc._solvers.result import Trace

CASES = [
    ("digits", "float64"),
    *((name, form) for name in SETS if name != "digits" for form in ("float32", "csr")),
]


def solve(objective, **options):
    limits = {"tol": 0, "max_iter": 3, "trace": Trace()} | options
    return sgd.solve(objective, np.zeros(objective.shape), **limits)


@pytest.mark.parametrize(("name", "form"), CASES)
def test_sgd_comes_near_the_optimum_of_scikit_learn(name, form):
    X, y = STANDARDIZED[name]
    V, result, _ = fit(FORMS[form](X), y, "sgd", C=0.02, max_iter=100)
    expected = scikit_learn(X, y, C=0.02)

    def accuracy(V):
        Z = X @ V[:, 1:].T + V[:, 0]
        codes = (Z[:, 0] > 0) if len(V) == 1 else Z.argmax(axis=1)
        return (codes == y).mean()

    assert abs(accuracy(V) - accuracy(expected)) < 0.05
    distance = np.linalg.norm(V[:, 1:] - expected[:, 1:])
    assert distance < 0.3 * np.linalg.norm(expected[:, 1:])
    assert result.n_iter == len(result.history["loss"]) == 100


def test_seed_decides_the_order(rng):
    objective = numpy_problem(rng, 400, 3, 2)
    first, same, other = (solve(objective, seed=seed).W for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_sgd_stops_at_tolerance(rng):
    objective = numpy_problem(rng, 2000, 3, 2)
    result = solve(objective, tol=0.1, max_iter=100)
    assert result.converged and result.gradient_norm <= 0.1 and result.n_iter < 100
    start = np.linalg.norm(objective.value_and_gradient(np.zeros((1, 4))).gradient)
    norm = np.linalg.norm(objective.value_and_gradient(result.W).gradient)
    assert result.gradient_norm == pytest.approx(norm / start)


def test_sgd_stops_when_the_callback_says_so(rng):
    trace = Trace(callback=lambda step, values: step == 1)
    result = solve(numpy_problem(rng, 400, 3, 2), trace=trace, max_iter=50)
    assert result.stopped and result.n_iter == 2


def test_batches_without_weight_change_nothing(rng):
    objective = numpy_problem(rng, 100, 3, 2)
    steps = sgd.Steps(objective.like(s=np.r_[np.zeros(50), np.ones(50)]), np.zeros((1, 4)), 0.1)
    steps.take(objective.like(s=np.r_[np.zeros(50), np.ones(50)]), np.arange(50))
    np.testing.assert_array_equal(steps.W, np.zeros((1, 4)))


def test_average_weighs_later_steps_more(rng):
    objective = numpy_problem(rng, 100, 3, 2)
    steps, W = sgd.Steps(objective, np.zeros((1, 4)), 0.1), [np.zeros((1, 4))]
    for rows in np.array_split(np.arange(100), 5):
        steps.take(objective, rows)
        W.append(steps.W)
    weights = np.arange(1, 6) / np.arange(1, 6).sum()  # t-th step: proportional to t
    expected = np.tensordot(weights, np.array(W[1:]), axes=1)
    np.testing.assert_allclose(steps.average, expected)


def test_l1_penalty_of_steps_clears_weights(rng):
    objective = numpy_problem(rng, 100, 3, 2)
    steps = sgd.Steps(objective, np.ones((1, 4)), 0.1)
    steps.take(objective, np.arange(100), l1=np.array([1e6, 0.0, 1e6]))
    assert (steps.W[0, [1, 3]] == 0).all() and (steps.W[0, [0, 2]] != 0).all()


def test_stream_counts_what_it_has_seen(rng):
    objective = numpy_problem(rng, 300, 3, 2)
    stream = sgd.Stream(np.zeros((1, 4)), 2)
    np.testing.assert_array_equal(stream.average, np.zeros((1, 4)))
    assert stream.share(5.0) == 1.0
    for rows in np.array_split(np.arange(300), 3):
        part = objective.batch(rows)
        stream.add_classes(np.bincount(part.r, part.s))
        stream.take(part, 0.0, "auto")
    total = objective.total_weight
    assert stream.calls == 3 and stream.seen == pytest.approx(total)
    assert stream.share(total) == pytest.approx(0.5)
    expected = np.bincount(objective.r, objective.s) / total
    np.testing.assert_allclose(stream.class_fractions, expected)
