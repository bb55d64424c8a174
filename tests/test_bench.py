"""The benchmark tools: tables, comparison of runs, gaps. Nothing here is timed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in ("table", "compare", "problems", "rivals", "time_to_accuracy", "measure"):
        sys.modules.pop(name, None)


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


def test_the_null_rival_costs_nothing_and_ours_reaches_the_optimum():
    import rivals
    import time_to_accuracy as tta

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    ((label, seconds, coef, intercept),) = rivals.load("null").fit(X, y, 1.0, 1e-6)
    assert label == "null" and seconds < 0.1
    assert tta.objective(X, y, 2.0, coef, intercept) == pytest.approx(2 * 300 * np.log(2))
    values = [
        tta.objective(X, y, 1.0, *run[2:]) for name in ("ours", "scikit_learn") for run in rivals.load(name).fit(X, y, 1.0, 1e-10)
    ]
    assert max(values) / min(values) - 1 < 1e-12


def test_fastest_prefers_time_within_the_gap():
    import time_to_accuracy as tta

    found = {("a", "x", 1e-2): (1.0, 101.0), ("a", "x", 1e-8): (3.0, 100.0), ("b", "y", 1e-2): (0.5, 102.0)}
    best = tta.fastest(found, 1e-8)
    assert best["a", "x"] == (3.0, 0.0)
    assert best["b", "y"] == (0.5, pytest.approx(0.02))


def test_missing_data_are_named(monkeypatch):
    import problems

    monkeypatch.delenv("FASTDISC_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="FASTDISC_DATA"):
        problems.data_folder()
