"""Print saved results, of kernels or of whole fits, as a table; --readme FILE writes it between
the markers of that file."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def rows(path: str | Path) -> dict[tuple[str, str], Row]:
    """{(problem, backend): extra_info} of a saved run."""
    runs = json.loads(Path(path).read_text())["benchmarks"]
    return {(info["problem"], info["backend"]): info for info in (r["extra_info"] for r in runs)}


def table(found: dict[tuple[str, str], Row]) -> str:
    """Markdown: times and ratios of the kernels, one row for each problem."""
    lines = [
        "| kernel | NumPy | Cython | over NumPy | over reading X | Numba | Numba / Cython |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(problem for problem, _ in found):
        numpy, cython, numba = (found[name, backend] for backend in ("numpy", "cython", "numba"))
        cells = [
            name,
            f"{numpy['milliseconds']:,.0f} ms",
            f"{cython['milliseconds']:.1f} ms",
            f"{cython['over_numpy']:.1f}x",
            f"{cython['over_read']:.2f}",
            f"{numba['milliseconds']:.1f} ms",
            f"{numba['milliseconds'] / cython['milliseconds']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fits(found: dict[str, Any]) -> str:
    """Markdown: whole fits and the fastest rival, one row for each problem."""
    lines = [
        "| problem | fastest rival | its time | ours | ratio | gap, ours | gap, rival "
        "| held-out accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for problem in found.values() for row in problem["rows"]):
        lines.append(f"| {' | '.join(_fit_cells(row))} |")
    return "\n".join(lines)


def _fit_cells(row: Row) -> list[str]:
    unit, ours, theirs = row.get("unit", "s"), row["ours"], row.get("theirs")
    gaps = [row.get("gap"), row.get("rival_gap")]
    accuracy = ""
    if row.get("accuracy") is not None:
        accuracy = f"{row['accuracy']:.4f}{' (training)' if 'on' in row else ''}"
    return [
        row["problem"],
        row.get("rival", ""),
        "" if theirs is None else quantity(theirs, unit),
        quantity(ours, unit),
        "" if theirs is None else f"{theirs / ours:.1f}x",
        *("" if gap is None else f"{max(gap, 0.0):.0e}" for gap in gaps),
        accuracy,
    ]


def quantity(value: float, unit: str = "s") -> str:
    """Seconds or bytes, readable."""
    if unit == "B":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.1f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--readme")
    options = parser.parse_args()
    found = json.loads(Path(options.run).read_text())
    is_kernels = "benchmarks" in found
    name, text = ("kernels", table(rows(options.run))) if is_kernels else ("fits", fits(found))
    print(text)
    if options.readme:
        file = Path(options.readme)
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        new = f"{begin}\n{text}\n{end}"
        old = file.read_text()
        file.write_text(re.sub(f"{begin}.*?{end}", lambda _: new, old, flags=re.S))


if __name__ == "__main__":
    main()
