"""Rivals: one adapter per library, all with the same signature.

An adapter module has NAME and `fit(X, y, C, tol)`, a generator of (label, seconds, coef, intercept): one for each of the
library's solvers that fits the problem. coef is (1, d) or (K, d). Where the library is not installed, importing the module raises
ImportError, and the benchmark says so. `null` answers at once: what it costs is what the benchmark itself costs.
"""

import importlib

NAMES = ("null", "ours", "scikit_learn", "intelex", "glum_", "skglm_", "liblinear_", "statsmodels_")
RANKERS = ("lightgbm_",)


def load(name):
    """The adapter's module."""
    return importlib.import_module(f"rivals.{name}")


def timed(label, clock, fit):
    """Run fit() -> (coef, intercept) under the clock."""
    begin = clock()
    coef, intercept = fit()
    return label, clock() - begin, coef, intercept
