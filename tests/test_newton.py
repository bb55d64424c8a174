"""Newton on samples: Hessians that serve several steps, the last step that nobody looks at, and paths."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from test_solvers import ROWS, broken, made

from fastdisc import LogisticRegression
from fastdisc._kernels import Link, grid, load
from fastdisc._problem import Problem
from fastdisc._solvers import Trace, lbfgs, newton
from fastdisc._sweep import Sweep


def gradient(model, X, y, C=1.0):
    """Of the penalised loss of two classes, in units of the columns' spread, by NumPy."""
    e = 1 / (1 + np.exp(-(X @ model.coef_[0] + model.intercept_[0]))) - y
    return np.concatenate([[e.sum()], (X.T @ e + model.coef_[0] / C) / X.std(axis=0)])


def test_the_last_step_is_taken_without_a_look(monkeypatch):
    monkeypatch.setattr(newton, "CALL", 0)
    monkeypatch.setattr(newton, "schedule", newton.schedule.__wrapped__)
    X, y, _ = made(K=2)
    model = LogisticRegression(solver="newton", tol=1e-3).fit(X, y)
    start = np.linalg.norm(gradient(SimpleNamespace(coef_=np.zeros((1, X.shape[1])), intercept_=np.zeros(1)), X, y))
    assert model.converged_ and 1e-7 < model.gradient_norm_ <= 1e-3  # that before the last step
    assert np.linalg.norm(gradient(model, X, y)) <= 0.25 * model.gradient_norm_ * start


def test_who_stops_stands_where_the_rows_were_summed(monkeypatch):
    monkeypatch.setattr(newton, "CALL", 0)
    monkeypatch.setattr(newton, "schedule", newton.schedule.__wrapped__)
    X, y, _ = made(K=2)
    plain = LogisticRegression(solver="newton", tol=1e-3).fit(X, y)
    stopped = LogisticRegression(solver="newton", tol=1e-3, callback=lambda step, values: step == plain.n_iter_[0]).fit(X, y)
    assert stopped.gradient_norm_ == plain.gradient_norm_ and stopped.history_ == plain.history_
    assert np.linalg.norm(gradient(plain, X, y)) < 0.5 * np.linalg.norm(gradient(stopped, X, y))


def test_without_a_penalty_all_that_is_told_is_of_one_place(monkeypatch):
    monkeypatch.setattr(newton, "CALL", 0)
    monkeypatch.setattr(newton, "schedule", newton.schedule.__wrapped__)
    X, y, _ = made(K=2)
    model = LogisticRegression(C=np.inf, tol=1e-3).fit(X, y)
    z = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert model.summary().log_likelihood == pytest.approx(-np.logaddexp(0, -z).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "steps", "expected"),
    [
        ([1.0, 0.2], [1.0, 0.5], True),
        ([0.1, 1.0, 0.2], [1.0, 0.1], True),
        ([1.0, 0.3], [1.0, 0.5], False),  # too much is left of the gradient
        ([1.0, 0.2], [1.0, 0.6], False),  # and of the step
        ([1.0, 0.2], [0.1], False),  # nothing to compare with
        ([0.2], [1.0, 0.1], False),
    ],
)
def test_steps_that_need_no_look(sizes, steps, expected):
    *before, p = (np.array([[step, 0.0]]) for step in steps)
    assert lbfgs.sure(sizes, [(step, step) for step in before], p) is expected


def test_the_last_step_is_not_taken_where_steps_do_not_shrink():
    rng = np.random.default_rng(0)  # rows of the first class are so few that the gradient hardly knows of them
    X, W = rng.standard_normal((60_000, 10)), rng.standard_normal((4, 10)) / np.sqrt(10)
    y = (X @ W.T + rng.gumbel(size=(60_000, 4))).argmax(axis=1)
    y[y == 0], y[:9] = 1, 0
    model = LogisticRegression(C=1e-4, tol=1e-4, solver="newton").fit(X, y)
    assert model.converged_ and broken(model, X, y, 1e-4) <= 1.05e-4


def test_a_path_begins_where_sums_are_known():
    X, y, _ = made(K=2)
    problem = Problem(Sweep(X, y.astype(np.int32), np.ones(1), Link.LOGISTIC))
    model, trace = newton.Model(), Trace()
    first = newton.solve(problem.penalized(1.0), np.zeros((1, X.shape[1] + 1)), tol=1e-3, max_iter=50, trace=trace, model=model)
    assert first.seen is not first.W
    calls = []
    sums = problem.raw._sums
    problem.raw._sums = lambda W, order: calls.append(order) or sums(W, order)
    second = newton.solve(problem.penalized(1.001), first.start, tol=1e-3, max_iter=50, trace=trace, model=model)
    assert second.converged and second.n_iter == 0 and not calls  # the sums at the start are those of the first solution


@pytest.mark.parametrize(
    ("rows", "unknowns", "columns"), [(10**6, 29, 29), (10**6, 290, 29), (200_000, 201, 201), (10**7, 11, 11)]
)
def test_samples_grow_from_a_few_rows_a_weight(rows, unknowns, columns):
    sizes = newton.schedule(rows, unknowns, columns)
    assert sizes[0] >= newton.ENOUGH * unknowns and sizes[-1] < rows / 2
    assert all(a < b <= 1.01 * newton.STEP * a for a, b in pairwise(sizes))


@pytest.mark.parametrize(("K", "d"), [(2, 60), (10, 12)])
def test_hessians_serve_several_steps(K, d, monkeypatch):
    monkeypatch.setattr(newton, "CALL", 0)
    monkeypatch.setattr(newton, "schedule", newton.schedule.__wrapped__)
    X, y, _ = made(d=d, K=K)
    orders, sums = [], Sweep._sums
    monkeypatch.setattr(Sweep, "_sums", lambda self, W, order: orders.append((self.rows, order)) or sums(self, W, order))
    model = LogisticRegression(solver="newton").fit(X, y)
    samples = [order for rows, order in orders if rows < ROWS]
    assert model.converged_ and samples.count(2) <= 0.6 * len(samples)
    assert broken(model, X, y, 1.0) <= 2e-6


def test_rooms_are_used_again_without_what_was_left_in_them(rng):
    kernels, reference = load("cython"), load("numpy")
    for n, d, K in [(3000, 40, 4), (500, 3, 2), (3000, 40, 4), (1200, 11, 3)]:
        X, W = rng.standard_normal((n, d)), 0.1 * rng.standard_normal((K, d + 1))
        arguments = X, Link.SOFTMAX, rng.integers(0, K, n).astype(np.int32), np.ones(1), np.empty((0, K)), W, 2
        cells = grid((n, d), 8, K, 2)
        for actual, expected in zip(kernels.sweep(*arguments, cells, 2), reference.sweep(*arguments, cells, 1), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * n)
