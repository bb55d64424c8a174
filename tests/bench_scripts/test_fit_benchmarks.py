"""Benchmarks of whole fits at equal gaps, on small problems. No time is asserted."""

import json
import os
from functools import partial

import basis
import closed_form
import combine
import fits
import measure
import numpy as np
import online
import problems
import pytest
import ranking
import rivals
import sizes
import table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_proc = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="memory is measured through /proc"
)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(measure, "PAUSE", 0.0)


@pytest.fixture
def small(monkeypatch):
    """A random problem, and only libraries that are always installed."""
    monkeypatch.setattr(rivals, "NAMES", ("null", "ours", "scikit_learn", "absent"))
    return partial(problems.correlated, 400, 4, n_test=200)


def test_fit_of_all_libraries(small):
    found = fits.fit(small, "small", goal=1e-8)
    (row,) = found["rows"]
    assert row["problem"] == "small" and row["rival"].startswith("scikit-learn ")
    assert row["gap"] <= 1e-8 and row["rival_gap"] <= 1e-8 and 0.5 < row["accuracy"] < 1
    assert len(found["runs"]) == 5 and list(found["missing"]) == ["absent"]
    json.dumps(found)


def test_l1_paths_of_all_libraries(small):
    found = fits.l1_path(small, "path", goal=1e-6, count=5)
    gaps = {run["label"]: run["gap"] for run in found["runs"]}
    assert gaps["fit_path"] <= 1e-6 and gaps["saga"] <= 1e-6 and gaps["liblinear"] < 1e-3
    assert {len(run["values"]) for run in found["runs"]} == {5}


def test_search_is_evaluated_at_the_chosen_C(small, monkeypatch):
    monkeypatch.setattr(rivals, "NAMES", ("ours",))
    (run,) = fits.search(small, "search", goal=1e-8)["runs"]
    assert run["gap"] <= 1e-8 and run["values"][0] == pytest.approx(1)


@pytest.mark.parametrize("problem", ["covtype_standardised", "covtype_newton", "covtype_raw"])
def test_our_fit_reaches_the_objective_of_the_rival(small, problem):
    rows = getattr(fits, problem)("covtype", goal=1e-8, data=partial(small, 3))["rows"]
    assert all(row["on"] == "training" and row["accuracy"] > 0.4 for row in rows)
    assert all(row["gap"] <= max(row["rival_gap"], 1e-8) for row in rows)


@needs_proc
def test_memory_is_what_a_call_needs():
    np.ones(20_000_000)
    assert 60e6 < measure.memory(lambda: np.ones(8_000_000)) < 80e6


@needs_proc
def test_time_and_memory_are_measured_in_a_child(small):
    time, memory = fits.fashion("bytes", goal=1e-8, data=partial(small, 3))["rows"]
    assert time["gap"] <= time["rival_gap"]
    assert memory["unit"] == "B" and min(memory["ours"], memory["theirs"]) >= 0
    time, memory = sizes.growth("growth", goal=1e-8, sizes=(3000,), d=4)["rows"]
    assert time["problem"] == "growth, 0.003M x 4" and time["gap"] < 1e-8 and memory["ours"] >= 0


def test_predictions_with_the_same_weights():
    rows = sizes.predictions("predict", goal=1e-8, n=3000, d=4)["rows"]
    assert [row["problem"] for row in rows] == ["predict, 0.003M x 4", "predict, one row"]


@needs_proc
def test_closed_form_models_agree_with_scikit_learn(small):
    data = partial(small, 3)
    for name, (_, ours, others) in closed_form.FITS.items():
        if "QDA" not in name:
            rows = closed_form.fit(data, ours, others, name, goal=1e-8, rounds=1)["rows"]
            assert [row["problem"] for row in rows] == [name] * len(others)
            assert min(row["theirs"] for row in rows) > 0
    (row,) = closed_form.folds("folds", goal=1e-8, data=data, cv=3, rounds=1)["rows"]
    assert row["rival"] == "scikit-learn cross_val_score"
    rows = closed_form.predictions("predict", goal=1e-8, data=data, rounds=1)["rows"]
    assert [row["problem"].split()[1] for row in rows] == ["LDA", "QDA", "GaussianNB"]
    rows = closed_form.footprints("memory", goal=1e-8, data=data)["rows"]
    assert all(row["unit"] == "B" and row["ours"] >= 0 for row in rows)


def test_online_models_run_for_equal_numbers_of_epochs(small):
    sigmoid_regression = partial(online.sigmoid_regression, small)
    for problem in (online.perceptron(small, 2), online.log_loss(small, 2), sigmoid_regression):
        found = problem("a problem", goal=1e-8)
        (row,) = found["rows"]
        assert row["ours"] > 0 and row["theirs"] > 0 and row["gap"] < 0.5
        assert "a problem" in table.fits({"a problem": found})
    (row,) = online.threads("an epoch", goal=1e-8, n=5000, d=4, before=3, rounds=1)["rows"]
    assert "% mistakes" in row["problem"]


@pytest.mark.parametrize("kind", ["PAIRS", "REST"])
def test_combinations_reach_the_gap_of_every_problem(small, kind):
    found = getattr(combine, kind)("small", goal=1e-8, data=partial(small, 3), n_jobs=2)
    (row,) = found["rows"]
    assert row["gap"] <= 1e-8 and row["rival_gap"] < 1e-5 and row["accuracy"] > 0.4
    assert row["rival"].endswith("n_jobs=2")
    assert [len(run["values"]) for run in found["runs"]] == [3, 3]
    json.dumps(found)


def test_models_with_a_basis_reach_the_gap(monkeypatch):
    monkeypatch.setattr(basis, "in_child", lambda call, *arguments: call(*arguments))
    data = partial(basis.quadratic_odds, 2000, 10, n_test=500)
    for make in (basis.quadratic_problem, partial(basis.radial_problem, 10)):
        found = basis.fit(data, make, "matrix", "quadratic", goal=1e-6)
        time, memory = found["rows"]
        assert time["gap"] <= 1e-6 and time["rival_gap"] <= 1e-6 and time["accuracy"] > 0.6
        assert memory["unit"] == "B" and not found["missing"]


def test_functions_of_users_agree_with_built_in_bases():
    rows = basis.functions("Custom", goal=0.0, n=2000, rounds=1)["rows"]
    names = ["the built-in basis", "the built-in basis", "ours on NumPy's matrix"]
    assert [row["rival"] for row in rows] == names


def test_rankers_reach_the_gap():
    data = partial(problems.rankings, 300, 4, 20, (0.6, 0.3, 0.1))
    for loss, count in (("logistic", 2), ("squared_hinge", 1)):
        rows = ranking.fit(data, loss, "small", goal=1e-6, rounds=1)["rows"]
        assert len(rows) == count
        assert all(row["gap"] <= 1e-6 and row["rival_gap"] <= 1e-6 for row in rows)


def test_gradients_metrics_and_updates_of_rankers():
    for problem, options in (
        (ranking.gradient, {"n": 500, "d": 3}),
        (ranking.ndcg, {"n": 500, "n_queries": 20, "n_slow": 10}),
    ):
        (row,) = problem("small", goal=1e-6, **options)["rows"]
        assert row["theirs"] > 0 and row["ours"] > 0
    options = {"n": 50, "d": 3, "n_pairs": 100, "n_slow": 50}
    (row,) = ranking.updates("small", goal=1e-6, **options)["rows"]
    assert row["rival"] == "a loop over NumPy rows"
