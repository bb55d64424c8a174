"""Newton on samples: Hessians that serve several steps, the last step that nobody looks at, and paths."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from test_solvers import ROWS, broken, made

from fastdisc import LogisticRegression
from fastdisc._kernels import Link
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


def test_a_callback_that_stops_is_obeyed_where_it_stands():
    X, y, _ = made(K=2)
    seen = []
    model = LogisticRegression(solver="lbfgs", callback=lambda step, values: seen.append(values) or step == 2).fit(X, y)
    assert seen[-1]["norm"] == pytest.approx(np.linalg.norm(model.coef_ * X.std(axis=0)), rel=0.1)
    assert seen[-1] == {name: values[-1] for name, values in model.history_.items()}


@pytest.mark.parametrize("sizes", [[1.0, 0.2], [1.0, 0.25]])
def test_steps_that_are_sure(sizes):
    assert lbfgs.sure(sizes)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.3], [1.0, 0.2, 0.1]])
def test_steps_that_are_not(sizes):
    assert not lbfgs.sure(sizes)


def test_a_path_begins_where_sums_are_known():
    X, y, _ = made(K=2)
    problem = Problem(Sweep(X, y.astype(np.int32), np.ones(1), Link.LOGISTIC))
    model, trace = newton.Model(), Trace()
    first = newton.solve(problem.penalized(1.0), np.zeros((1, X.shape[1] + 1)), tol=1e-3, max_iter=50, trace=trace, model=model)
    assert first.seen is not first.W and model.proven
    calls = []
    sums = problem.raw._sums
    problem.raw._sums = lambda W, order: calls.append(order) or sums(W, order)
    second = newton.solve(problem.penalized(1.001), first.start, tol=1e-3, max_iter=50, trace=trace, model=model)
    assert second.converged and second.n_iter == 0 and not calls  # the sums at the start are those of the first solution
    exact = newton.solve(problem.penalized(1.001), np.zeros_like(first.W), tol=1e-10, max_iter=50, trace=trace).W
    assert np.abs(second.W - exact).max() < 0.1 * np.abs(second.seen - exact).max()


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
