"""Compare the speed of two versions of the package.

    python bench/compare.py --revisions BASE HEAD    two git revisions, which are built first
    python bench/compare.py --trees BASE HEAD        two source trees whose kernels are built
    python bench/compare.py BASE.json HEAD.json      two saved runs of bench/kernels.py

Revisions and trees are measured by their kernels (each by its own bench/kernels.py) and by whole
fits (both by this bench/whole_fits.py, which uses public names only). They take turns, and the best
time of each counts. Kernels are compared by their time relative to that of reading X, which a slow
machine slows alike; whole fits by their time. The fit of 20newsgroups needs FASTDISC_DATA.

Exits with 1 if anything is slower by more than the threshold.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from table import Row, rows

BENCH = Path(__file__).resolve().parent
PAUSE = 0.15  # seconds before a fit: threads of the other process may still spin
Kernels = dict[tuple[str, str], Row]  # by problem and backend


# --- kernels --------------------------------------------------------------------------------------


def compare_kernels(base: Kernels, head: Kernels, threshold: float) -> tuple[list[str], list[str]]:
    """Lines of a table, and the names of the kernels that are slower."""
    lines = [f"{'kernel':<60} {'backend':<8} {'base':>8} {'head':>8} {'change':>8}"]
    slower = []
    for key in base:
        name = f"{key[0]:<60} {key[1]:<8}"
        if key not in head:
            lines.append(f"{name} {'removed':>26}")
            continue
        a, b = base[key]["over_read"], head[key]["over_read"]
        is_slower = key[1] != "numpy" and b / a - 1 > threshold
        slower += [" ".join(key)] if is_slower else []
        mark = "  slower" if is_slower else ""
        lines.append(f"{name} {a:>8.2f} {b:>8.2f} {b / a - 1:>+8.1%}{mark}")
    new = [key for key in head if key not in base]
    return lines + [f"{name:<60} {backend:<8} {'new':>26}" for name, backend in new], slower


def best_kernels(runs: Sequence[Kernels]) -> Kernels:
    """The row with the best ratio of several runs."""
    result: Kernels = {}
    for run in runs:
        for key, info in run.items():
            if key not in result or info["over_read"] < result[key]["over_read"]:
                result[key] = info
    return result


def measure_kernels(trees: Sequence[Path], rounds: int, select: str) -> list[Kernels]:
    """Run each tree's kernel benchmarks in turn; the best of each."""
    found: list[list[Kernels]] = [[] for _ in trees]
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for i, tree in enumerate(trees):
                out = Path(folder) / f"{i}-{turn}.json"
                command = [sys.executable, "-m", "pytest", "bench/kernels.py", "-q"]
                command += ["-p", "no:xdist", "-p", "no:cacheprovider"]
                command += ["--benchmark-enable", f"--benchmark-json={out}"]
                command += ["-k", select] if select else []
                env = os.environ | {"PYTHONPATH": str(tree)}
                subprocess.run(command, cwd=tree, check=True, env=env, stdout=sys.stderr)
                found[i].append(rows(out))
    return [best_kernels(runs) for runs in found]


# --- whole fits -----------------------------------------------------------------------------------


class Fits(NamedTuple):
    """The fits of one tree: the best time, and what shows whether it did the same work."""

    seconds: float
    n_iter: int
    norm: float


class Server:
    """A process of whole_fits.py with the package of one tree, which fits when it is told to."""

    def __init__(self, tree: Path, name: str):
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree), str(BENCH)])}
        script = str(BENCH / "whole_fits.py")
        # -P: the folder of the script does not come before the tree.
        command = [sys.executable, "-P", script, name, "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)
        package = Path(self._read()["package"])
        if not package.is_relative_to(tree):
            self.close()
            raise RuntimeError(f"{tree} was to be measured, but Python imports {package}")

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"whole_fits.py ended with code {self.process.wait()}")
        return json.loads(line)

    def fit(self) -> Fits:
        assert self.process.stdin is not None
        self.process.stdin.write("fit\n")
        self.process.stdin.flush()
        return Fits(**self._read())

    def close(self) -> None:
        self.process.communicate()


def measure_fit(name: str, trees: Sequence[Path], rounds: int) -> list[Fits]:
    """The best fit of each tree, in turn."""
    servers: list[Server] = []
    try:
        for tree in trees:
            servers.append(Server(tree, name))
        runs: list[list[Fits]] = [[] for _ in trees]
        for _ in range(rounds):
            for server, own in zip(servers, runs, strict=True):
                sleep(PAUSE)
                own.append(server.fit())
        return [min(own) for own in runs]
    finally:
        for server in servers:
            server.close()


def fit_names(select: str) -> list[str]:
    command = [sys.executable, str(BENCH / "whole_fits.py"), "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if select.lower() in name.lower()]


def compare_fits(
    trees: Sequence[Path], rounds: int, select: str, threshold: float
) -> tuple[list[str], list[str]]:
    """Lines of a table, and the names of the fits that are slower."""
    lines = [f"{'whole fit':<42} {'base':>10} {'head':>10} {'change':>8} {'iterations':>12}"]
    slower = []
    for name in fit_names(select):
        if "newsgroups" in name and not os.environ.get("FASTDISC_DATA"):
            lines.append(f"{name:<42} skipped: FASTDISC_DATA is not set")
            continue
        base, head = measure_fit(name, trees, rounds)
        change = head.seconds / base.seconds - 1
        slower += [name] if change > threshold else []
        times = f"{1e3 * base.seconds:>7.1f} ms {1e3 * head.seconds:>7.1f} ms {change:>+8.1%}"
        iterations = f"{base.n_iter} -> {head.n_iter}"
        mark = "  slower" if change > threshold else ""
        lines.append(f"{name:<42} {times} {iterations:>12}{mark}")
    return lines, slower


# --- source trees ---------------------------------------------------------------------------------


@contextmanager
def built_revisions(revisions: Sequence[str]) -> Iterator[list[Path]]:
    """Working trees of git revisions, with their kernels built; removed afterwards."""
    show = ["git", "-C", str(BENCH), "rev-parse", "--show-toplevel"]
    top = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
    git, build = ["git", "-C", top, "worktree"], ["setup.py", "-q", "build_ext", "--inplace"]
    trees: list[Path] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for i, revision in enumerate(revisions):
                tree = Path(folder).resolve() / f"{i}"
                command = [*git, "add", "--detach", str(tree), revision]
                subprocess.run(command, check=True, capture_output=True)
                trees.append(tree)
                subprocess.run([sys.executable, *build], cwd=tree, check=True, capture_output=True)
            yield trees
        finally:
            for tree in trees:
                command = [*git, "remove", "--force", str(tree)]
                subprocess.run(command, check=False, capture_output=True)


@contextmanager
def built_trees(paths: Sequence[str]) -> Iterator[list[Path]]:
    """The given trees; SystemExit if their kernels are not built."""
    trees = [Path(path).resolve() for path in paths]
    for tree in trees:
        kernels = tree / "fastdisc/_kernels/_cython"
        if not [*kernels.glob("*.so"), *kernels.glob("*.pyd")]:
            raise SystemExit(
                f"{tree} has no built kernels: run 'python setup.py build_ext --inplace' there"
            )
    yield trees


# --- the program ----------------------------------------------------------------------------------


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument("head")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--revisions", action="store_true", help="base and head are git revisions")
    kind.add_argument("--trees", action="store_true", help="base and head are built source trees")
    parser.add_argument("--only", choices=("kernels", "fits"), help="measure only these")
    parser.add_argument("--rounds", type=int, default=2, help="runs of the kernels of each")
    parser.add_argument("--fit-rounds", type=int, default=9, help="fits of each problem by each")
    parser.add_argument("--select", default="", help="only kernels that match, as pytest -k")
    parser.add_argument("--fit-select", default="", help="only fits whose names contain this")
    parser.add_argument("--threshold", type=float, default=0.25, help="as a share of the time")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    lines: list[str] = []
    slower: list[str] = []
    if options.revisions or options.trees:
        prepare = built_revisions if options.revisions else built_trees
        with prepare([options.base, options.head]) as trees:
            if options.only != "fits":
                found = measure_kernels(trees, options.rounds, options.select)
                lines, slower = compare_kernels(found[0], found[1], options.threshold)
            if options.only != "kernels":
                limits = options.fit_rounds, options.fit_select, options.threshold
                more_lines, more_slower = compare_fits(trees, *limits)
                lines, slower = [*lines, "", *more_lines], slower + more_slower
    else:
        base, head = rows(options.base), rows(options.head)
        lines, slower = compare_kernels(base, head, options.threshold)
    print("\n".join(lines).strip())
    if slower:
        print(f"\n{len(slower)} slower by more than {options.threshold:.0%}: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
