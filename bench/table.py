"""Print a saved run of the kernel benchmarks as one table; --readme FILE writes it between the markers there."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path


def rows(path):
    """{(problem, backend): extra_info} of a saved run."""
    runs = json.loads(Path(path).read_text())["benchmarks"]
    return {(info["problem"], info["backend"]): info for info in (run["extra_info"] for run in runs)}


def table(found):
    """Markdown: a row a problem, times and ratios of the compiled backends."""
    lines = [
        "| kernel | NumPy | Cython | over NumPy | over reading X | Numba | Numba / Cython |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(problem for problem, _ in found):
        numpy, cython, numba = (found[name, backend] for backend in ("numpy", "cython", "numba"))
        lines.append(
            f"| {name} | {numpy['milliseconds']:,.0f} ms | {cython['milliseconds']:.1f} ms | {cython['over_numpy']:.1f}x "
            f"| {cython['over_read']:.2f} | {numba['milliseconds']:.1f} ms "
            f"| {numba['milliseconds'] / cython['milliseconds']:.2f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--readme")
    options = parser.parse_args()
    text = table(rows(options.run))
    print(text)
    if options.readme:
        file = Path(options.readme)
        begin, end = "<!-- kernels -->", "<!-- /kernels -->"
        file.write_text(re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", file.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
