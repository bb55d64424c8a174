"""Kernel benchmarks: small problems run; saved runs are tabulated and compared."""

import json
import sys

import compare
import kernels
import measure
import numpy as np
import pytest
import table

from fastdisc import _kernels
from fastdisc._kernels import MarginLoss, MomentKind, OnlineRule, PairLoss, PairRule
from fastdisc.basis import Quadratic

SMALL = {
    "sweep": kernels.sweep(500, 5, "float32", 2, K=3),
    "mapped": kernels.mapped(500, 3, Quadratic()),
    "class_moments": kernels.class_moments(500, 5, "float64", MomentKind.SCATTER, K=3),
    "quadratic_scores": kernels.quadratic_scores(500, 5, K=3),
    "online_epoch": kernels.online_epoch(500, 5, 2, 1.0, OnlineRule(MarginLoss.PERCEPTRON)),
    "query_loss": kernels.query_loss(PairRule(PairLoss.LOGISTIC), 500, 20, 5),
    "query_sweep": kernels.query_sweep(PairRule(PairLoss.LOGISTIC), 500, 20, 5),
    "weighted_row_sum": kernels.weighted_row_sum(500, 20, 5),
    "online_pairs": kernels.online_pairs(5, 1000, 100),
    "matmul": kernels.matmul(100, 60, 5, 3),
    "query_metric": kernels.query_metric(500, 20),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("backend", ["cython", "numpy"])
def test_small_problems_run(name, backend):
    problem = SMALL[name]()
    problem.calls[backend](_kernels.load(backend))
    assert set(problem.calls) == set(kernels.BACKENDS)
    assert problem.X.size and problem.n_threads >= 1 and problem.scale >= 1


def test_saved_names_are_those_of_the_problems():
    assert "logistic gradient 1M x 50 float64" in kernels.PROBLEMS
    assert "NDCG@10 of 1M rows, 10k queries" in kernels.PROBLEMS


def save(path, **over_read):
    """A saved run of one kernel, with a ratio for each backend."""
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


def test_compare_fails_if_a_kernel_is_slower_than_the_threshold(tmp_path, capsys):
    base = save(tmp_path / "a.json", cython=1.5, numba=2.0, numpy=7.0)
    same = save(tmp_path / "b.json", cython=1.6, numba=1.8, numpy=9.0)
    slow = save(tmp_path / "c.json", cython=1.5, numba=3.0, numpy=7.0)
    assert compare.main([base, same]) == 0
    assert compare.main([base, slow]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.endswith("slower")] == ["numba"]
    assert compare.main([base, slow, "--threshold", "0.6"]) == 0


def test_compare_lists_new_and_removed_kernels():
    one, other = {("a", "cython"): {"over_read": 1.0}}, {("b", "cython"): {"over_read": 1.0}}
    lines, slower = compare.compare_kernels(one, other, 0.25)
    assert [line.split()[-1] for line in lines[1:]] == ["removed", "new"] and not slower


def test_compare_takes_the_best_of_several_runs():
    runs = [{("a", "cython"): {"over_read": ratio}} for ratio in (2.0, 1.2, 1.7)]
    assert compare.best_kernels(runs)["a", "cython"]["over_read"] == 1.2


def test_table_is_written_into_the_readme(tmp_path, monkeypatch):
    run = save(tmp_path / "a.json", cython=1.5, numba=3.0, numpy=7.0)
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- kernels -->\nold\n<!-- /kernels -->\nafter\n")
    monkeypatch.setattr(sys, "argv", ["table.py", run, "--readme", str(readme)])
    table.main()
    text = readme.read_text()
    assert "| sweep | 70 ms | 15.0 ms | 5.0x | 1.50 | 30.0 ms | 2.00 |" in text
    assert "old" not in text and text.startswith("before") and text.endswith("after\n")


def test_reader_reads_whole_chunks():
    measure.reader(np.ones(200_000), 1)()
