"""Newton's method: growing samples, Hessians that serve several steps, the final step, paths, and
many problems over shared rows."""

import numpy as np
import pytest
from helpers.data_sets import SETS
from helpers.fits import (
    FORMS,
    HARD,
    MANY_ROWS,
    draw_classes,
    fit,
    gradient,
    make_problem,
    row_sums,
    use_samples,
    violation,
)
from scipy import sparse

from fastdisc import LogisticRegression
from fastdisc._objectives.row_sums import RowSums
from fastdisc._objectives.shared_rows import Segment, SharedRows
from fastdisc._solvers import newton
from fastdisc._solvers.descent import Descent
from fastdisc._solvers.result import Trace


@pytest.fixture
def samples(monkeypatch):
    use_samples(monkeypatch)


def penalized_gradient(V, X, y, C=1.0):
    """By the weights of two classes, in units of the columns' deviations."""
    g = gradient(X, y, V)
    g[:, 1:] = (g[:, 1:] + V[:, 1:] / C) / X.std(axis=0)
    return np.linalg.norm(g)


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("hard", HARD)
def test_hard_data_with_samples(hard, C, K, samples):
    X, y, _ = draw_classes(K=K)
    X, y = HARD[hard](X, y)
    unknowns = (X.shape[1] + 1) * (1 if K == 2 else K)
    assert newton.sample_sizes(MANY_ROWS, unknowns, X.shape[1] + 1)[-1] < MANY_ROWS / 2
    found = fit(X, y, "newton", C=C)
    assert found.result.converged and found.result.gradient_norm <= 1e-6
    assert violation(found.V, X, y, C) <= 2e-6


@pytest.mark.parametrize("hard", ["sorted_by_class", "rare_class", "rare_column", "outlying_rows"])
@pytest.mark.parametrize("form", ["float32", "csr"])
def test_hard_data_of_other_types(hard, form):
    X, y, _ = draw_classes()
    X, y = HARD[hard](np.where(np.abs(X) > 1, X, 0), y)
    X = FORMS[form](X)
    found = fit(X, y, "newton")
    assert found.result.converged
    assert violation(found.V, X, y, 1.0) <= 2e-6


def test_rows_are_drawn_by_norm_where_samples_miss_outlying_rows(samples, capsys):
    rng, rows = np.random.default_rng(0), [1000, 10_000, 20_000]
    X = np.zeros((MANY_ROWS, 5))
    X[:, :4] = np.where(rng.random((MANY_ROWS, 4)) < 0.1, rng.random((MANY_ROWS, 4)), 0)
    y = rng.integers(0, 2, MANY_ROWS)
    X[rows, 4], y[rows] = 1000.0, 1
    X = sparse.csr_array(X)
    found = fit(X, y, "newton", trace=Trace(verbose=1))
    assert "times as large as expected: rows are drawn by norm" in capsys.readouterr().out
    assert found.result.converged
    assert violation(found.V, X, y, 1.0) <= 2e-6


def count_sums(monkeypatch):
    """The list to which each sum over rows will add its number of rows and its order."""
    calls, sums = [], RowSums._sums

    def counted(self, W, order):
        calls.append((self.n_rows, order))
        return sums(self, W, order)

    monkeypatch.setattr(RowSums, "_sums", counted)
    return calls


@pytest.mark.parametrize(("K", "d"), [(2, 60), (10, 12)])
def test_hessians_of_samples_serve_several_steps(K, d, samples, monkeypatch):
    X, y, _ = draw_classes(d=d, K=K)
    calls = count_sums(monkeypatch)
    found = fit(X, y, "newton")
    orders = [order for rows, order in calls if rows < MANY_ROWS]
    assert found.result.converged and orders.count(2) <= 0.6 * len(orders)
    assert violation(found.V, X, y, 1.0) <= 2e-6


def test_all_rows_are_read_for_few_gradients_and_no_hessian(samples, monkeypatch):
    X, y, _ = draw_classes(100_000, 6, 2)
    calls = count_sums(monkeypatch)
    found = fit(X, y, "newton")
    orders = [order for rows, order in calls if rows == 100_000]
    assert found.result.converged and len(orders) <= 8 and 2 not in orders


def test_too_many_weights_are_refused():
    problem = make_problem(np.zeros((2, newton.MAX_WEIGHTS)), np.arange(2))
    with pytest.raises(ValueError, match=r"Hessian of 20,001 x 20,001: take solver='lbfgs'"):
        newton.solve(
            problem.penalized(1.0), np.zeros(problem.shape), tol=1, max_iter=1, trace=Trace()
        )


# --- the final step -------------------------------------------------------------------------------


def test_final_step_is_taken_without_evaluating_it(samples):
    X, y, _ = draw_classes(K=2)
    V, result, _ = fit(X, y, "newton", tol=1e-3)
    start = penalized_gradient(np.zeros_like(V), X, y)
    assert result.converged and 1e-7 < result.gradient_norm <= 1e-3  # before the last step
    assert result.start is result.evaluated_at is not result.W
    assert penalized_gradient(V, X, y) <= 0.25 * result.gradient_norm * start


def test_callback_stops_where_the_rows_were_summed(samples):
    X, y, _ = draw_classes(K=2)
    plain = fit(X, y, "newton", tol=1e-3)
    last = plain.result.n_iter
    trace = Trace(callback=lambda step, values: step == last)
    stopped = fit(X, y, "newton", tol=1e-3, trace=trace)
    assert stopped.result.stopped
    assert stopped.result.gradient_norm == plain.result.gradient_norm
    assert stopped.result.history == plain.result.history
    assert penalized_gradient(plain.V, X, y) < 0.5 * penalized_gradient(stopped.V, X, y)


def test_summary_without_a_penalty_is_that_of_the_weights(samples):
    X, y, _ = draw_classes(K=2)
    model = LogisticRegression(C=np.inf, tol=1e-3).fit(X, y)
    z = np.where(y == 1, 1, -1) * model.decision_function(X)
    expected = -np.logaddexp(0, -z).sum()
    assert model.summary().log_likelihood == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("norms", "steps", "expected"),
    [
        ([1.0, 0.2], [1.0, 0.5], True),
        ([0.1, 1.0, 0.2], [1.0, 0.1], True),
        ([1.0, 0.3], [1.0, 0.5], False),  # too much of the gradient is left
        ([1.0, 0.2], [1.0, 0.6], False),  # the next step is too long
        ([1.0, 0.2], [0.1], False),  # there is no earlier step
        ([0.2], [1.0, 0.1], False),  # there is no earlier gradient
    ],
)
def test_final_step_is_safe_where_gradients_and_steps_shrink(norms, steps, expected):
    *before, p = (np.array([[step, 0.0]]) for step in steps)
    descent = Descent(np.zeros((1, 2)), None, shift_invariant=False, memory=10)
    descent.norms, descent.pairs = norms, [(step, step) for step in before]
    descent.p, descent.t = p, 1.0
    assert descent.accept_unverified is expected


def test_final_step_is_not_taken_where_steps_do_not_shrink():
    """Rows of the first class are so few that they have almost no part in the gradient."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((60_000, 10)), rng.standard_normal((4, 10)) / np.sqrt(10)
    y = (X @ W.T + rng.gumbel(size=(60_000, 4))).argmax(axis=1)
    y[y == 0], y[:9] = 1, 0
    found = fit(X, y, "newton", C=1e-4, tol=1e-4)
    assert found.result.converged
    assert violation(found.V, X, y, 1e-4) <= 1.05e-4


def test_next_solution_of_a_path_starts_where_sums_are_known(monkeypatch):
    X, y, _ = draw_classes(K=2)
    problem, state = make_problem(X, y), newton.NewtonState()
    limits = {"tol": 1e-3, "max_iter": 50, "trace": Trace(), "state": state}
    first = newton.solve(problem.penalized(1.0), np.zeros(problem.shape), **limits)
    assert first.evaluated_at is not None
    calls = count_sums(monkeypatch)
    second = newton.solve(problem.penalized(1.001), first.start, **limits)
    assert second.converged and second.n_iter == 0 and not calls


# --- problems over shared rows --------------------------------------------------------------------


def solve_shared(objective, **options):
    start = [np.zeros(objective.shape)] * objective.n_problems
    limits = {"tol": 1e-9, "max_iter": 200, "trace": Trace()} | options
    return newton.solve_shared(objective, start, **limits)


@pytest.mark.parametrize("intercept", [True, False])
def test_one_against_the_rest_equals_separate_solutions(intercept):
    X, y = SETS["digits"]
    data = row_sums(X, y, loss=0)
    problem = make_problem(X, y, loss=0, intercept=intercept)
    assert data.shape == problem.shape == (1, 65)
    results = solve_shared(SharedRows.of(problem, 2 * np.eye(10) - 1, 100.0))
    for k, result in enumerate(results):
        alone = fit(X, y == k, "newton", C=0.01, tol=1e-9, problem={"intercept": intercept})
        V = problem.to_raw(result.W)
        assert result.converged
        np.testing.assert_allclose(V[:, 1:], alone.V[:, 1:], atol=1e-7)
        np.testing.assert_allclose(V[:, 0], alone.V[:, 0], atol=1e-6)


def test_pairs_of_classes_in_segments_equal_separate_solutions(rng):
    X = rng.standard_normal((30_000, 6)) + 3
    y = ((X - 3) @ rng.standard_normal((6, 3)) + rng.gumbel(size=(30_000, 3))).argmax(axis=1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    pairs, starts, segments = [(0, 1), (0, 2), (1, 2)], np.searchsorted(y, range(4)), []
    for k in range(3):
        rows = slice(starts[k], starts[k + 1])
        own = [p for p, pair in enumerate(pairs) if k in pair]
        data = row_sums(X[rows], np.zeros(rows.stop - rows.start), loss=0)
        signs = np.array([[1 if pairs[p][1] == k else -1 for p in own]], np.int8)
        segments.append(Segment(data, signs, np.array(own)))
    problem = make_problem(X, y, loss=0)
    results = solve_shared(SharedRows(segments, problem.units, problem.penalty(1.0)))
    for (i, j), result in zip(pairs, results, strict=True):
        rows = (y == i) | (y == j)
        alone = fit(X[rows], y[rows], "newton", tol=1e-9)
        V = problem.to_raw(result.W)
        np.testing.assert_allclose(V[:, 1:], alone.V[:, 1:], rtol=1e-6, atol=1e-8)


def test_path_of_penalties_over_shared_rows_uses_earlier_hessians():
    X, y = SETS["breast_cancer"]
    problem = make_problem(X, y)
    objective, state = SharedRows.of(problem, [[1, -1], [-1, 1]], 1.0), newton.NewtonState()
    W = [np.zeros(objective.shape)] * 2
    for C in (0.01, 0.1, 1.0):
        limits = {"tol": 1e-9, "max_iter": 200, "trace": Trace(), "state": state}
        next_one = objective.with_penalty(problem.penalty(1 / C))
        results = newton.solve_shared(next_one, W, **limits)
        W = [result.W for result in results]
        alone = fit(X, y, "newton", C=C, tol=1e-10)
        V = problem.to_raw(W[1])
        np.testing.assert_allclose(V[:, 1:], alone.V[:, 1:], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(W[0], -W[1], rtol=1e-5, atol=1e-7)


def test_one_problem_is_the_case_of_a_single_descent():
    """The same steps, to the last bit."""
    X, y, _ = draw_classes(5000, 6, 2)
    problem = make_problem(X, y)
    alone = newton.solve(
        problem.penalized(1.0), np.zeros(problem.shape), tol=1e-9, max_iter=50, trace=Trace()
    )
    (shared,) = solve_shared(SharedRows.of(problem, [[-1], [1]], 1.0), max_iter=50)
    assert shared.n_iter == alone.n_iter
    np.testing.assert_allclose(shared.W, alone.W, rtol=1e-9, atol=1e-12)
