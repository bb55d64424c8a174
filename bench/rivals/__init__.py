"""Rivals: one adapter per library, all with the same signatures.

An adapter module has NAME and, each a dict of label -> call(tol), one for each of the library's solvers that suit the problem:

    solvers(X, y, C)    the call returns (coef, intercept), coef being (1, d) or (K, d)
    paths(X, y, Cs)     L1 solutions for rising Cs: the call returns a list of (coef, intercept)
    searches(X, y)      C chosen from 10 by 5 folds: the call returns (C, coef, intercept)

The last two are left out where the library has no such thing. Where it is not installed, importing the module raises ImportError,
and the benchmark says so. `null` answers at once: what it costs is what the benchmark itself costs.
"""

import importlib
from functools import wraps
from time import perf_counter

NAMES = ("null", "ours", "scikit_learn", "intelex", "glum_", "skglm_", "liblinear_", "statsmodels_")
RANKERS = ("lightgbm_",)
PATIENCE = 45.0  # seconds that a path may take; who takes longer is named as not measured


def load(name):
    """The adapter's module."""
    return importlib.import_module(f"rivals.{name}")


def field(kind, *problem):
    """{(library, label): call(tol)} of all adapters, and {adapter: why it is missing}."""
    found, missing = {}, {}
    for name in NAMES:
        try:
            rival = load(name)
        except Exception as reason:  # not installed, or broken beside the other versions here: said in the output
            missing[name] = str(reason).splitlines()[0]
            continue
        calls = getattr(rival, kind)(*problem) if hasattr(rival, kind) else {}
        found |= {(rival.NAME, label): call for label, call in calls.items()}
    return found, missing


def listed(walk):
    """A generator's solutions as a list; TimeoutError where they do not end."""

    @wraps(walk)
    def collect(*arguments):
        found, begin = [], perf_counter()
        for solution in walk(*arguments):
            found.append(solution)
            if perf_counter() - begin > PATIENCE:
                raise TimeoutError(f"{len(found)} values of C took over {PATIENCE:.0f} s")
        return found

    return collect
