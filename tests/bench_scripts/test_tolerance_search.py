"""The search for tolerances: objectives, gaps, the choice of runs; results as files and tables."""

import json
import sys

import measure
import numpy as np
import pytest
import rivals
import table
import time_to_accuracy
import tolerance_search
from scipy.special import log_softmax
from tolerance_search import Evaluator, Run, fastest, objective, search_tolerances


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(measure, "PAUSE", 0.0)


def make_run(library, seconds, gap):
    return Run(library, "x", 1e-4, seconds, np.ones(1), gap, 0.9)


def test_null_has_zero_weights_and_the_others_reach_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    null = rivals.load("null").solvers(X, y, 2.0)["null"](1e-6)
    assert objective(X, y, 2.0, *null) == pytest.approx(2 * 300 * np.log(2))
    fits = [
        fit
        for name in ("ours", "scikit_learn")
        for fit in rivals.load(name).solvers(X, y, 1.0).values()
    ]
    values = [objective(X, y, 1.0, *fit(1e-10)) for fit in fits]
    assert len(values) == 4 and max(values) / min(values) - 1 < 1e-12


def test_objective_and_accuracy_of_many_classes():
    rng = np.random.default_rng(0)
    X, W, b = rng.standard_normal((50, 4)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    y = rng.integers(0, 3, 50)
    loss = -log_softmax(X @ W.T + b, axis=1)[np.arange(50), y].sum()
    assert objective(X, y, 3.0, W, b) == pytest.approx(3 * loss + (W**2).sum() / 2)
    assert objective(X, y, 3.0, W, b, l1=True) == pytest.approx(3 * loss + np.abs(W).sum())
    test = X, (X @ W.T + b).argmax(axis=1)
    assert Evaluator(X, y, test=test).accuracy((W, b)) == 1


def test_fastest_run_is_one_within_the_gap_if_there_is_one():
    runs = [make_run("a", 1.0, 1e-2), make_run("b", 3.0, 0.0), make_run("c", 2.0, 1e-9)]
    assert fastest(runs, 1e-8).library == "c"
    assert fastest(runs[:1], 1e-8).library == "a"
    others = [make_run("null", 0.0, 0.0), make_run("fastdisc", 0.5, 1e-9), *runs]
    row = tolerance_search.row("p", others, 1e-8)
    assert (row["rival"], row["theirs"], row["ours"]) == ("c x", 2.0, 0.5)
    assert "rival" not in tolerance_search.row("p", [make_run("fastdisc", 0.5, 1e-9)], 1e-8)


class ToleranceEvaluator(Evaluator):
    """The solution of a fit is its own tolerance, which is also its gap."""

    def __init__(self):
        super().__init__(None, None)
        self.best = 1.0

    def objectives(self, solution):
        return [1 + solution]

    def accuracy(self, solution):
        return 0.5


def test_tolerances_become_tighter_until_the_gap_is_within_the_goal(monkeypatch):
    seconds, calls = {"fast": 0.1, "slow": 30.0}, []

    def timed(fit, tol):
        if fit == "broken":
            raise ValueError("not\nsupported")
        calls.append((fit, tol))
        return seconds[fit], tol

    monkeypatch.setattr(tolerance_search, "timed", timed)
    fits = {("a", "fast"): "fast", ("b", "slow"): "slow", ("c", "broken"): "broken"}
    runs, missing = search_tolerances(fits, ToleranceEvaluator(), 1e-4)
    assert [(run.label, run.tol) for run in runs] == [("fast", 1e-4), ("slow", 1e-2)]
    assert [tol for fit, tol in calls if fit == "slow"] == [1e-2]  # neither tighter nor repeated
    assert [tol for fit, tol in calls if fit == "fast"] == [1e-2, 1e-3] + 9 * [1e-4]
    assert missing == {"c broken": "not"}


def test_path_that_takes_too_long_raises(monkeypatch):
    monkeypatch.setattr(rivals, "MAX_PATH_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="1 values of C"):
        rivals.with_time_limit(lambda tol: iter(range(10)))(1e-2)


def small_result(name, goal):
    rows = [
        {
            "problem": name,
            "rival": "b lbfgs",
            "theirs": 3.0,
            "ours": 0.5,
            "gap": goal,
            "rival_gap": 0.0,
            "accuracy": 0.75,
        },
        {"problem": f"{name}: memory", "ours": 2e6, "unit": "B"},
        {
            "problem": f"{name}: alone",
            "ours": 0.5,
            "gap": goal,
            "accuracy": 0.5,
            "on": "training",
        },
    ]
    return tolerance_search.result(rows, [make_run("b", 3.0, 0.0)], {"c": "not here"})


def without_data(name, goal):
    raise FileNotFoundError("no data")


@pytest.fixture
def small_problems(monkeypatch):
    found = {"first": small_result, "second": small_result, "third": without_data}
    monkeypatch.setattr(time_to_accuracy, "PROBLEMS", found)


def test_results_are_added_to_the_file(small_problems, tmp_path, capsys):
    file = str(tmp_path / "fits.json")
    time_to_accuracy.main(["--problem", "second", "--json", file])
    arguments = ["--problem", "first", "--problem", "third", "--json", file, "--gap", "1e-6"]
    time_to_accuracy.main(arguments)
    shown = capsys.readouterr().out
    assert "c: not measured (not here)" in shown and "third: skipped, no data" in shown
    with open(file) as saved:
        assert list(json.load(saved)) == ["first", "second"]


def test_slow_problems_run_only_if_asked_for(small_problems, monkeypatch, capsys):
    monkeypatch.setattr(time_to_accuracy, "SLOW", {"second"})
    time_to_accuracy.main([])
    assert "second" not in capsys.readouterr().out
    time_to_accuracy.main(["--slow"])
    assert "second" in capsys.readouterr().out


def test_table_of_fits_is_written_into_the_readme(tmp_path, monkeypatch):
    file, readme = tmp_path / "fits.json", tmp_path / "README.md"
    found = {"first": small_result("first", 1e-6), "second": small_result("second", 1e-8)}
    file.write_text(json.dumps(found))
    readme.write_text("before\n<!-- fits -->\n<!-- /fits -->\nafter\n")
    monkeypatch.setattr(sys, "argv", ["table.py", str(file), "--readme", str(readme)])
    table.main()
    lines = readme.read_text().splitlines()
    assert "| first | b lbfgs | 3.0 s | 500 ms | 6.0x | 1e-06 | 0e+00 | 0.7500 |" in lines
    assert "| second: memory |  |  | 2 MB |  |  |  |  |" in lines
    assert "| second: alone |  |  | 500 ms |  | 1e-08 |  | 0.5000 (training) |" in lines
