"""Other libraries, each behind an adapter module with the same functions.

An adapter has NAME and functions that return {label: fit(tol)}, one fit for each of the library's
solvers that support the problem:

    solvers(X, y, C)    a fit returns (coef, intercept); coef is (1, d) or (K, d)
    paths(X, y, Cs)     L1 solutions for rising Cs: a fit returns a list of (coef, intercept)
    searches(X, y)      C chosen from 10 values by 5 folds: a fit returns (C, coef, intercept)

The last two are omitted if the library has no such method. If the library is not installed,
importing the module raises ImportError, which the benchmark reports. `null` does nothing: its time
is the overhead of the benchmark.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import wraps
from time import perf_counter
from typing import Any

NAMES = (
    "null",
    "ours",
    "scikit_learn",
    "intelex",
    "glum_",
    "skglm_",
    "liblinear_",
    "statsmodels_",
)
# Seconds that a path may take. A library that takes longer is reported as not measured.
MAX_PATH_SECONDS = 45.0

Fit = Callable[..., Any]


def load(name: str) -> Any:
    """The adapter module."""
    return importlib.import_module(f"rivals.{name}")


def solvers_of(kind: str, *problem: Any) -> tuple[dict[tuple[str, str], Fit], dict[str, str]]:
    """{(library, label): fit(tol)} of all adapters, and {adapter: why it is missing}."""
    found: dict[tuple[str, str], Fit] = {}
    missing: dict[str, str] = {}
    for name in NAMES:
        try:
            rival = load(name)
        except Exception as reason:  # not installed, or incompatible with other packages
            missing[name] = str(reason).splitlines()[0]
            continue
        fits = getattr(rival, kind)(*problem) if hasattr(rival, kind) else {}
        found |= {(rival.NAME, label): fit for label, fit in fits.items()}
    return found, missing


def with_time_limit(solve: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    """Decorator: the solutions of a generator as a list; TimeoutError if they take too long."""

    @wraps(solve)
    def collect(*arguments: Any) -> list[Any]:
        found, begin = [], perf_counter()
        for solution in solve(*arguments):
            found.append(solution)
            if perf_counter() - begin > MAX_PATH_SECONDS:
                raise TimeoutError(f"{len(found)} values of C took over {MAX_PATH_SECONDS:.0f} s")
        return found

    return collect
