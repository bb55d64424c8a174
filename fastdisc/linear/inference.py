"""Inference for a maximum-likelihood fit: standard errors, tests, confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import linalg, stats

from .._kernels.contract import Array
from .._objectives.coordinates import Problem
from .._solvers.result import Result


class Summary:
    """A table with one row per weight, and the likelihood.

    Attributes
    ----------
    names : list of str
        The names of the weights.
    estimate, std_error, z, p_value : arrays of shape (n,)
        The columns of the table.
    conf_int : array of shape (n, 2)
        Confidence intervals.
    covariance : array of shape (n, n)
        The covariance matrix of the estimates.
    log_likelihood, aic : float
        The log-likelihood, and Akaike's information criterion.
    n_rows : float
        The weight of all rows.
    level : float
        The level of the confidence intervals.
    """

    def __init__(
        self,
        names: list[str],
        estimate: Array,
        covariance: Array,
        log_likelihood: float,
        n_rows: float,
        level: float,
    ):
        self.names, self.estimate, self.level = names, estimate, level
        self.covariance = covariance
        self.std_error = np.sqrt(np.diag(covariance))
        self.z = estimate / self.std_error
        self.p_value = 2 * stats.norm.sf(np.abs(self.z))
        half = stats.norm.ppf(0.5 + level / 2) * self.std_error
        self.conf_int = np.column_stack([estimate - half, estimate + half])
        self.log_likelihood, self.n_rows = log_likelihood, n_rows
        self.aic = 2 * len(estimate) - 2 * log_likelihood

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        import pandas as pd

        low, high = self.conf_int.T
        columns = {
            "estimate": self.estimate,
            "std_error": self.std_error,
            "z": self.z,
            "p_value": self.p_value,
            "low": low,
            "high": high,
        }
        return pd.DataFrame(columns, index=self.names)

    def __str__(self) -> str:
        width = max(12, *(len(name) for name in self.names))
        head = f"{'':<{width}} {'estimate':>12} {'std error':>12} {'z':>9} {'p':>9}"
        lines = [f"{head}   {100 * self.level:g}% interval"]
        rows = (self.names, self.estimate, self.std_error, self.z, self.p_value, self.conf_int)
        for name, a, s, z, p, (low, high) in zip(*rows, strict=True):
            numbers = f"{a:>12.6g} {s:>12.4g} {z:>9.3f} {p:>9.3g}"
            lines.append(f"{name:<{width}} {numbers}   {low:.6g} to {high:.6g}")
        likelihood = f"log-likelihood {self.log_likelihood:.6g}, AIC {self.aic:.6g}"
        lines.append(f"{likelihood}, weight of rows {self.n_rows:g}")
        return "\n".join(lines)

    __repr__ = __str__


def estimates(
    problem: Problem, result: Result, H: Array, classes: Array, columns: Iterable[str]
) -> dict[str, Any]:
    """The arguments of `Summary` but the level. H is the Hessian in the solver's coordinates.

    For K classes the weights are relative to the reference class, or to the first class.
    """
    free, V = ~problem.penalty(0.0).fixed, problem.to_raw(result.W)
    if len(V) > 1:
        base = 0 if problem.reference is None else problem.reference
        free[base] = False
        V = V - V[base]
    names = ["intercept", *map(str, columns)]
    labels = [""] if len(V) == 1 else [f"{name}: " for name in classes]
    return {
        "names": [
            label + name
            for label, row in zip(labels, free, strict=True)
            for name, on in zip(names, row, strict=True)
            if on
        ],
        "estimate": V[free],
        "covariance": covariance(problem, H, free),
        "log_likelihood": -result.history["loss"][-1],
        "n_rows": problem.data.total_weight,
    }


def covariance(problem: Problem, H: Array, free: Array) -> Array:
    """The inverse of the Hessian over the free weights, (n, n), for raw features.

    `free` (K, d+1) says which weights were estimated; H is in the solver's coordinates.
    """
    kept = np.flatnonzero(free.ravel())
    C = np.zeros((H.shape[0], H.shape[0]))
    C[np.ix_(kept, kept)] = linalg.pinvh(H[np.ix_(kept, kept)])

    def to_raw(rows: Array) -> Array:
        return np.array([problem.to_raw(row.reshape(free.shape)).ravel() for row in rows])

    return to_raw(to_raw(C).T)[np.ix_(kept, kept)]
