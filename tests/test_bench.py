"""The benchmark tools: tables, comparison of runs, gaps, races on tiny problems. No time is asserted."""

import gzip
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    ours = ("basis", "closed_form", "combine", "online", "ranking")
    for name in (*ours, "table", "compare", "problems", "rivals", "time_to_accuracy", "measure", "race", "fits", "sizes"):
        sys.modules.pop(name, None)


@pytest.fixture
def tiny(monkeypatch):
    """A made problem, and only rivals that are always installed."""
    import problems
    import race
    import rivals

    monkeypatch.setattr(rivals, "NAMES", ("null", "ours", "scikit_learn", "absent"))
    monkeypatch.setattr(race, "PAUSE", 0.0)
    return partial(problems.made, 400, 4, others=200)


def saved(path, **over_read):
    runs = [
        {
            "extra_info": {
                "problem": "sweep",
                "backend": backend,
                "milliseconds": 10.0 * ratio,
                "over_numpy": 5.0,
                "over_read": ratio,
            }
        }
        for backend, ratio in over_read.items()
    ]
    path.write_text(json.dumps({"benchmarks": runs}))
    return str(path)


def test_compare_tells_slower_from_as_fast(tmp_path, capsys):
    import compare

    base = saved(tmp_path / "a.json", cython=1.5, numba=2.0, numpy=7.0)
    same = saved(tmp_path / "b.json", cython=1.6, numba=1.8, numpy=9.0)
    slow = saved(tmp_path / "c.json", cython=1.5, numba=3.0, numpy=7.0)
    assert compare.main([base, same]) == 0
    assert compare.main([base, slow]) == 1
    assert "numba" in [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.endswith("slower")]
    assert compare.main([base, slow, "--threshold", "0.6"]) == 0


def test_compare_takes_the_best_of_several_runs():
    import compare

    runs = [{("a", "cython"): {"over_read": ratio}} for ratio in (2.0, 1.2, 1.7)]
    assert compare.best(runs)["a", "cython"]["over_read"] == 1.2


def test_table_is_written_into_the_readme(tmp_path, monkeypatch, capsys):
    import table

    run = saved(tmp_path / "a.json", cython=1.5, numba=3.0, numpy=7.0)
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- kernels -->\nold\n<!-- /kernels -->\nafter\n")
    monkeypatch.setattr(sys, "argv", ["table.py", run, "--readme", str(readme)])
    table.main()
    text = readme.read_text()
    assert "| sweep | 70 ms | 15.0 ms | 5.0x | 1.50 | 30.0 ms | 2.00 |" in text and "old" not in text
    assert text.startswith("before") and text.endswith("after\n")


def test_the_null_rival_does_nothing_and_ours_reaches_the_optimum():
    import race
    import rivals

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    null = rivals.load("null").solvers(X, y, 2.0)["null"](1e-6)
    assert race.objective(X, y, 2.0, *null) == pytest.approx(2 * 300 * np.log(2))
    calls = [call for name in ("ours", "scikit_learn") for call in rivals.load(name).solvers(X, y, 1.0).values()]
    values = [race.objective(X, y, 1.0, *call(1e-10)) for call in calls]
    assert len(values) == 4 and max(values) / min(values) - 1 < 1e-12


def test_objective_and_accuracy_of_many_classes():
    import race
    from scipy.special import log_softmax

    rng = np.random.default_rng(0)
    X, W, b, y = rng.standard_normal((50, 4)), rng.standard_normal((3, 4)), rng.standard_normal(3), rng.integers(0, 3, 50)
    loss = -log_softmax(X @ W.T + b, axis=1)[np.arange(50), y].sum()
    assert race.objective(X, y, 3.0, W, b) == pytest.approx(3 * loss + (W**2).sum() / 2)
    assert race.objective(X, y, 3.0, W, b, l1=True) == pytest.approx(3 * loss + np.abs(W).sum())
    assert race.Judge(X, y, test=(X, (X @ W.T + b).argmax(axis=1))).accuracy((W, b)) == 1


def made_run(library, seconds, gap):
    import race

    return race.Run(library, "x", 1e-4, seconds, np.ones(1), gap, 0.9)


def test_fastest_prefers_time_within_the_gap():
    import race

    runs = [made_run("a", 1.0, 1e-2), made_run("b", 3.0, 0.0), made_run("c", 2.0, 1e-9)]
    assert race.fastest(runs, 1e-8).library == "c"
    assert race.fastest(runs[:1], 1e-8).library == "a"
    row = race.row("p", [made_run("null", 0.0, 0.0), made_run("fastdisc", 0.5, 1e-9), *runs], 1e-8)
    assert (row["rival"], row["theirs"], row["ours"]) == ("c x", 2.0, 0.5)
    assert "rival" not in race.row("p", [made_run("fastdisc", 0.5, 1e-9)], 1e-8)


def test_a_race_tightens_until_the_goal_and_spares_the_slow(monkeypatch):
    import race

    seconds = {"quick": 0.1, "slow": 30.0}
    calls = []

    def timed(call, tol):
        calls.append((call, tol))
        return seconds[call], tol

    class Judge(race.Judge):
        def objectives(self, solution):
            return [1 + solution]

        def accuracy(self, solution):
            return 0.5

    def broken(*_):
        raise ValueError("no\nmore")

    monkeypatch.setattr(race, "timed", lambda call, tol: broken() if call == "broken" else timed(call, tol))
    judge = Judge(None, None)
    judge.floor = 1.0
    runs, missing = race.race({("a", "quick"): "quick", ("b", "slow"): "slow", ("c", "broken"): "broken"}, judge, 1e-4)
    assert [(run.label, run.tol) for run in runs] == [("quick", 1e-4), ("slow", 1e-2)]
    assert [tol for call, tol in calls if call == "slow"] == [1e-2]  # neither tighter nor again
    assert [tol for call, tol in calls if call == "quick"] == [1e-2, 1e-3] + 9 * [1e-4]
    assert missing == {"c broken": "no"}


def test_a_fit_beside_the_rivals(tiny):
    import fits

    found = fits.fit(tiny, "tiny", goal=1e-8)
    (row,) = found["rows"]
    assert row["problem"] == "tiny" and row["rival"].startswith("scikit-learn ")
    assert row["gap"] <= 1e-8 and row["rival_gap"] <= 1e-8 and 0.5 < row["accuracy"] < 1
    assert len(found["runs"]) == 5 and list(found["missing"]) == ["absent"]
    json.dumps(found)


def test_paths_beside_each_other(tiny):
    import fits

    found = fits.l1_path(tiny, "path", goal=1e-6, count=5)
    gaps = {run["label"]: run["gap"] for run in found["runs"]}
    assert gaps["fit_path"] <= 1e-6 and gaps["saga"] <= 1e-6 and gaps["liblinear"] < 1e-3
    assert {len(run["values"]) for run in found["runs"]} == {5}


def test_a_path_that_does_not_end_is_given_up(monkeypatch):
    import rivals

    monkeypatch.setattr(rivals, "PATIENCE", 0.0)
    with pytest.raises(TimeoutError, match="1 values of C"):
        rivals.listed(lambda tol: iter(range(10)))(1e-2)


def test_a_search_is_judged_at_its_own_C(tiny, monkeypatch):
    import fits
    import rivals

    monkeypatch.setattr(rivals, "NAMES", ("ours",))
    (run,) = fits.search(tiny, "search", goal=1e-8)["runs"]
    assert run["gap"] <= 1e-8 and run["values"][0] == pytest.approx(1)


@pytest.mark.parametrize("problem", ["covtype_standardised", "covtype_newton", "covtype_raw"])
def test_ours_gets_down_to_the_objective_of_a_rival(tiny, problem):
    import fits

    rows = getattr(fits, problem)("covtype", goal=1e-8, data=partial(tiny, 3))["rows"]
    assert all(row["on"] == "training" and row["accuracy"] > 0.4 for row in rows)
    assert all(row["gap"] <= max(row["rival_gap"], 1e-8) for row in rows)


linux = pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="memory is measured through /proc")


@linux
def test_memory_is_what_a_call_needs():
    import measure

    np.ones(20_000_000)
    assert 60e6 < measure.memory(lambda: np.ones(8_000_000)) < 80e6


@linux
def test_time_and_memory_in_a_process_of_their_own(tiny):
    import fits
    import sizes

    time, memory = fits.fashion("bytes", goal=1e-8, data=partial(tiny, 3))["rows"]
    assert time["gap"] <= time["rival_gap"] and memory["unit"] == "B" and min(memory["ours"], memory["theirs"]) >= 0
    time, memory = sizes.growth("growth", goal=1e-8, sizes=(3000,), d=4)["rows"]
    assert time["problem"] == "growth, 0.003M x 4" and time["gap"] < 1e-8 and memory["ours"] >= 0


def test_predictions_of_the_same_weights():
    import sizes

    rows = sizes.predictions("predict", goal=1e-8, n=3000, d=4)["rows"]
    assert [row["problem"] for row in rows] == ["predict, 0.003M x 4", "predict, one row"]


@linux
def test_closed_form_models_beside_scikit_learn(tiny):
    import closed_form

    data = partial(tiny, 3)
    for name, (_, ours, rivals) in closed_form.FITS.items():
        if "QDA" not in name:
            rows = closed_form.fit(data, ours, rivals, name, goal=1e-8, rounds=1)["rows"]
            assert [row["problem"] for row in rows] == [name] * len(rivals) and min(row["theirs"] for row in rows) > 0
    (row,) = closed_form.folds("folds", goal=1e-8, data=data, cv=3, rounds=1)["rows"]
    assert row["rival"] == "scikit-learn cross_val_score"
    rows = closed_form.predictions("predict", goal=1e-8, data=data, rounds=1)["rows"]
    assert [row["problem"].split()[1] for row in rows] == ["LDA", "QDA", "GaussianNB"]
    rows = closed_form.footprints("memory", goal=1e-8, data=data)["rows"]
    assert all(row["unit"] == "B" and row["ours"] >= 0 for row in rows)


def test_results_are_merged_and_shown(tmp_path, monkeypatch, capsys):
    import table
    import time_to_accuracy as tta

    def result(name, goal):
        rows = [
            {"problem": name, "rival": "b lbfgs", "theirs": 3.0, "ours": 0.5, "gap": goal, "rival_gap": 0.0, "accuracy": 0.75},
            {"problem": f"{name}: memory", "ours": 2e6, "unit": "B"},
            {"problem": f"{name}: alone", "ours": 0.5, "gap": goal, "accuracy": 0.5, "on": "training"},
        ]
        return {"rows": rows, "runs": [made_run("b", 3.0, 0.0).record()], "missing": {"c": "not here"}}

    def absent(name, goal):
        raise FileNotFoundError("no data")

    monkeypatch.setattr(tta, "PROBLEMS", {"first": result, "second": result, "third": absent})
    file, readme = tmp_path / "fits.json", tmp_path / "README.md"
    tta.main(["--problem", "second", "--json", str(file)])
    tta.main(["--problem", "first", "--problem", "third", "--json", str(file), "--gap", "1e-6"])
    shown = capsys.readouterr().out
    assert "c: not measured (not here)" in shown and "third: left out, no data" in shown
    assert list(json.loads(file.read_text())) == ["first", "second"]
    monkeypatch.setattr(tta, "SLOW", {"second"})
    tta.main([])
    assert "second" not in capsys.readouterr().out
    tta.main(["--slow"])
    assert "second" in capsys.readouterr().out
    readme.write_text("before\n<!-- fits -->\n<!-- /fits -->\nafter\n")
    monkeypatch.setattr(sys, "argv", ["table.py", str(file), "--readme", str(readme)])
    table.main()
    lines = readme.read_text().splitlines()
    assert "| first | b lbfgs | 3.0 s | 500 ms | 6.0x | 1e-06 | 0e+00 | 0.7500 |" in lines
    assert "| second: memory |  |  | 2 MB |  |  |  |  |" in lines
    assert "| second: alone |  |  | 500 ms |  | 1e-08 |  | 0.5000 (training) |" in lines


def test_missing_data_are_named(monkeypatch):
    import problems

    monkeypatch.delenv("FASTDISC_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="FASTDISC_DATA"):
        problems.data_folder()
    monkeypatch.setenv("FASTDISC_DATA", str(BENCH))
    with pytest.raises(FileNotFoundError, match="has no covtype"):
        problems.covtype()


def test_loaders_of_text_tables_and_images(tmp_path, monkeypatch):
    import problems

    texts = "Category\tText\nd\tstring\nclass\t\n\n" + "b\tone two\na\ttwo one\tone\n"
    header = bytes(16)
    for name, content in {
        "20newsgroups/20newsgroups-train.tab.gz": texts.encode(),
        "20newsgroups/20newsgroups-test.tab.gz": texts.encode(),
        "covtype/covtype.csv.gz": b"p,q,class\n1,2,7\n3,4,1\n",
        "fashion_mnist/t10k-labels-idx1-ubyte.gz": header[:8] + bytes([3, 9]),
        "fashion_mnist/t10k-images-idx3-ubyte.gz": header + bytes(range(8)),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(content))
    monkeypatch.setenv("FASTDISC_DATA", str(tmp_path))
    X, y = problems.newsgroups("test")
    assert X.shape == (2, 2) and X.indices.dtype == np.int32 and y.tolist() == [1, 0]
    X, y = problems.covtype()
    assert X.tolist() == [[1, 2], [3, 4]] and y.tolist() == [6, 0]
    X, y = problems.fashion_mnist("test")
    assert X.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and y.tolist() == [3, 9]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_online_rows(tiny):
    import online
    from table import fits

    for problem in (online.perceptron(tiny, 2), online.log_loss(tiny, 2), partial(online.sigmoid_regression, tiny)):
        found = problem("a problem", goal=1e-8)
        (row,) = found["rows"]
        assert row["ours"] > 0 and row["theirs"] > 0 and row["gap"] < 0.5 and "a problem" in fits({"a problem": found})
    (row,) = online.threads("an epoch", goal=1e-8, n=5000, d=4, before=3, rounds=1)["rows"]
    assert "% mistakes" in row["problem"]


@pytest.mark.parametrize("kind", ["PAIRS", "REST"])
def test_combinations_beside_each_other(tiny, kind):
    import combine

    found = getattr(combine, kind)("tiny", goal=1e-8, data=partial(tiny, 3), n_jobs=2)
    (row,) = found["rows"]
    assert row["gap"] <= 1e-8 and row["rival_gap"] < 1e-5 and row["rival"].endswith("n_jobs=2") and row["accuracy"] > 0.4
    assert [len(run["values"]) for run in found["runs"]] == [3, 3]
    json.dumps(found)


def test_bases_race_and_agree(monkeypatch):
    import basis
    import race

    monkeypatch.setattr(race, "PAUSE", 0.0)
    monkeypatch.setattr(basis, "in_child", lambda call, *arguments: call(*arguments))
    data = partial(basis.bent, 2000, 10, others=500)
    for make in (basis.quadratic_problem, partial(basis.radial_problem, 10)):
        found = basis.fit(data, make, "matrix", "bent", goal=1e-6)
        time, memory = found["rows"]
        assert time["gap"] <= 1e-6 and time["rival_gap"] <= 1e-6 and time["accuracy"] > 0.6
        assert memory["unit"] == "B" and not found["missing"]


def test_a_function_beside_the_built_in_basis(monkeypatch):
    import basis
    import race

    monkeypatch.setattr(race, "PAUSE", 0.0)
    assert [row["rival"] for row in basis.functions("Custom", goal=0.0, n=2000, rounds=1)["rows"]] == [
        "the built-in basis",
        "the built-in basis",
        "ours on NumPy's matrix",
    ]


def test_ranking_rows(monkeypatch):
    import race
    import ranking

    monkeypatch.setattr(race, "PAUSE", 0.0)
    small = partial(ranking.made, 300, 4, 20, (0.6, 0.3, 0.1))
    for loss, count in (("logistic", 2), ("squared_hinge", 1)):
        rows = ranking.fit(small, loss, "tiny", goal=1e-6, rounds=1)["rows"]
        assert len(rows) == count and all(row["gap"] <= 1e-6 and row["rival_gap"] <= 1e-6 for row in rows)
    for problem, sizes in ((ranking.gradient, {"n": 500, "d": 3}), (ranking.ndcg, {"n": 500, "queries": 20, "some": 10})):
        (row,) = problem("tiny", goal=1e-6, **sizes)["rows"]
        assert row["theirs"] > 0 and row["ours"] > 0
    (row,) = ranking.updates("tiny", goal=1e-6, n=50, d=3, count=100, slow=50)["rows"]
    assert row["rival"] == "a loop over NumPy rows"
