"""Print saved results, of the kernels or of whole fits, as one table; --readme FILE writes it between the markers there."""

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


def fits(found):
    """Markdown: a row a problem, whole fits beside the fastest rival's."""
    lines = [
        "| problem | fastest rival | its time | ours | ratio | gap, ours | gap, rival | held-out accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for problem in found.values() for row in problem["rows"]):
        unit, ours, theirs = row.get("unit", "s"), row["ours"], row.get("theirs")
        gaps = ["" if gap is None else f"{max(gap, 0.0):.0e}" for gap in (row.get("gap"), row.get("rival_gap"))]
        accuracy = "" if row.get("accuracy") is None else f"{row['accuracy']:.4f}{' (training)' if 'on' in row else ''}"
        cells = [row["problem"], row.get("rival", ""), "" if theirs is None else quantity(theirs, unit), quantity(ours, unit)]
        cells += ["" if theirs is None else f"{theirs / ours:.1f}x", *gaps, accuracy]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def quantity(value, unit="s"):
    """Seconds or bytes, readable."""
    if unit == "B":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.1f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--readme")
    options = parser.parse_args()
    found = json.loads(Path(options.run).read_text())
    name, text = ("kernels", table(rows(options.run))) if "benchmarks" in found else ("fits", fits(found))
    print(text)
    if options.readme:
        file = Path(options.readme)
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        file.write_text(re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", file.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
