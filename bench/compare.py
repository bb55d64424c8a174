"""Compare two runs of the kernel benchmarks by their ratios to reading X, which a slow machine slows alike.

    python bench/compare.py base.json head.json
    python bench/compare.py --revisions main HEAD     builds both, measures them in turn on this machine

Exits with 1 if a kernel has become slower by more than the threshold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import rows


def compare(base, head, threshold):
    """Lines of a table, and the names of what has become slower."""
    lines, slower = [f"{'kernel':<48} {'backend':<8} {'base':>7} {'head':>7} {'change':>8}"], []
    for key in base:
        if key not in head:
            lines.append(f"{key[0]:<48} {key[1]:<8} {'gone':>24}")
            continue
        a, b = base[key]["over_read"], head[key]["over_read"]
        change = b / a - 1
        mark = ""
        if key[1] != "numpy" and change > threshold:
            slower.append(key)
            mark = "  slower"
        lines.append(f"{key[0]:<48} {key[1]:<8} {a:>7.2f} {b:>7.2f} {change:>+8.1%}{mark}")
    lines += [f"{name:<48} {backend:<8} {'new':>24}" for name, backend in head if (name, backend) not in base]
    return lines, slower


def best(runs):
    """The best ratio of each row over several runs."""
    result = {}
    for run in runs:
        for key, info in run.items():
            if key not in result or info["over_read"] < result[key]["over_read"]:
                result[key] = info
    return result


def measure_revisions(revisions, rounds, select):
    """Check out and build each revision, run the benchmarks in turn, return the best of each."""
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        trees = []
        try:
            for i, revision in enumerate(revisions):
                tree = Path(folder) / f"{i}"
                subprocess.run(
                    ["git", "-C", top, "worktree", "add", "--detach", str(tree), revision], check=True, capture_output=True
                )
                trees.append(tree)
                subprocess.run(
                    [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tree, check=True, capture_output=True
                )
            found = [[] for _ in trees]
            for turn in range(rounds):
                for i, tree in enumerate(trees):
                    out = Path(folder) / f"{i}-{turn}.json"
                    command = [
                        sys.executable,
                        "-m",
                        "pytest",
                        "bench/kernels.py",
                        "-q",
                        "--benchmark-enable",
                        f"--benchmark-json={out}",
                    ]
                    command += ["-p", "no:xdist"] + (["-k", select] if select else [])
                    subprocess.run(command, cwd=tree, check=True, env=os.environ | {"PYTHONPATH": str(tree)}, stdout=sys.stderr)
                    found[i].append(rows(out))
            return [best(runs) for runs in found]
        finally:
            for tree in trees:
                subprocess.run(["git", "-C", top, "worktree", "remove", "--force", str(tree)], check=False, capture_output=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("head")
    parser.add_argument("--revisions", action="store_true", help="base and head are git revisions")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each revision")
    parser.add_argument("--select", default="", help="only benchmarks whose names match, as pytest -k")
    parser.add_argument("--threshold", type=float, default=0.25, help="slow-down that fails, as a share")
    options = parser.parse_args(arguments)
    if options.revisions:
        base, head = measure_revisions([options.base, options.head], options.rounds, options.select)
    else:
        base, head = rows(options.base), rows(options.head)
    lines, slower = compare(base, head, options.threshold)
    print("\n".join(lines))
    if slower:
        print(f"\n{len(slower)} slower by more than {options.threshold:.0%}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
