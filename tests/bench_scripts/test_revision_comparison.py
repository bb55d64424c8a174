"""compare.py and whole_fits.py: fits of two source trees in processes that take turns."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import compare
import numpy as np
import pytest
import whole_fits

import fastdisc

SLOW, FAST = compare.Fits(0.4, 3, 1.0), compare.Fits(0.2, 3, 1.0)
TREE = Path(fastdisc.__file__).parent.parent


@pytest.fixture
def trees(tmp_path):
    """Two copies of the package with its built kernels."""
    found = []
    for name in ("base", "head"):
        package = tmp_path / name / "fastdisc"
        package.parent.mkdir()
        shutil.copytree(
            TREE / "fastdisc", package, ignore=shutil.ignore_patterns("__pycache__", "*.cpp")
        )
        found.append(package.parent)
    return found


def test_fits_of_two_trees_take_turns(trees):
    base, head = compare.measure_fit("10k x 20 dense", trees, 2)
    assert base.seconds > 0 and head.seconds > 0
    assert base[1:] == head[1:], "the same package did other work"


def test_tree_that_is_not_imported_raises(tmp_path):
    with pytest.raises(RuntimeError, match="was to be measured, but Python imports"):
        compare.measure_fit("10k x 20 dense", [tmp_path], 1)


def test_tree_without_kernels_ends_the_program(tmp_path):
    with pytest.raises(SystemExit, match="has no built kernels"):
        compare.main(["--trees", str(tmp_path), str(tmp_path)])


def test_slower_fit_fails(monkeypatch, capsys, trees):
    arguments = ["--trees", *map(str, trees), "--only", "fits", "--fit-select", "10k"]
    monkeypatch.setattr(compare, "measure_fit", lambda *_: [FAST, SLOW])
    assert compare.main(arguments) == 1
    assert "+100.0%       3 -> 3  slower" in capsys.readouterr().out
    monkeypatch.setattr(compare, "measure_fit", lambda *_: [SLOW, FAST])
    assert compare.main(arguments) == 0


def test_fit_without_its_data_is_skipped(monkeypatch):
    monkeypatch.delenv("FASTDISC_DATA", raising=False)
    lines, slower = compare.compare_fits([], 1, "newsgroups", 0.25)
    assert lines[1].endswith("skipped: FASTDISC_DATA is not set") and not slower


def test_kernels_of_trees_take_turns(monkeypatch, tmp_path):
    calls = []

    def run(command, cwd, **options):
        calls.append(cwd.name)
        ratio = {"base": 1.0, "head": 2.0}[cwd.name] + 0.1 * len(calls)
        info = {"problem": "a", "backend": "cython", "over_read": ratio}
        file = next(part.split("=")[1] for part in command if "--benchmark-json" in part)
        Path(file).write_text(json.dumps({"benchmarks": [{"extra_info": info}]}))

    monkeypatch.setattr(subprocess, "run", run)
    found = compare.measure_kernels([tmp_path / "base", tmp_path / "head"], 2, "")
    assert calls == ["base", "head", "base", "head"]
    ratios = [kernels["a", "cython"]["over_read"] for kernels in found]
    np.testing.assert_allclose(ratios, [1.1, 2.2])


def test_revisions_are_built_and_removed(monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command[3:] if command[0] == "git" else command[1:])
        return subprocess.CompletedProcess(command, 0, stdout="/repository\n")

    monkeypatch.setattr(subprocess, "run", run)
    with compare.built_revisions(["main", "HEAD"]) as trees:
        assert [tree.name for tree in trees] == ["0", "1"]
    assert [command[-1] for command in commands if "add" in command] == ["main", "HEAD"]
    assert sum("build_ext" in command for command in commands) == 2
    assert sum("remove" in command for command in commands) == 2


def test_whole_fits_use_public_names_only():
    source = Path(whole_fits.__file__).read_text()
    assert not re.search(r"fastdisc\._[a-z]|fastdisc\.\w+\._|import _", source)


def test_whole_fits_report_time_and_iterations(monkeypatch, capsys):
    def problem():
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 3))
        return X, (X[:, 0] + rng.standard_normal(300) > 0).astype(int)

    monkeypatch.setitem(whole_fits.PROBLEMS, "small", lambda: whole_fits.logistic(problem))
    whole_fits.main(["small", "--rounds", "2"])
    assert "small: 0." in capsys.readouterr().out
    whole_fits.main(["--list"])
    assert "1M x 28, K=10" in capsys.readouterr().out.splitlines()
