"""What a maximum-likelihood fit says of its own certainty: standard errors, tests, intervals."""

from __future__ import annotations

import numpy as np
from scipy import linalg, stats


class Summary:
    """A table with one row a weight, and the likelihood.

    Attributes
    ----------
    names : list of str
    estimate, std_error, z, p_value : arrays of shape (n,)
    conf_int : array of shape (n, 2)
    log_likelihood, aic : float
    n_rows : float
        The weight of all rows.
    level : float
        That of the confidence intervals.
    """

    def __init__(self, names, estimate, covariance, log_likelihood, n_rows, level):
        self.names, self.estimate, self.level = names, estimate, level
        self.covariance = covariance
        self.std_error = np.sqrt(np.diag(covariance))
        self.z = estimate / self.std_error
        self.p_value = 2 * stats.norm.sf(np.abs(self.z))
        half = stats.norm.ppf(0.5 + level / 2) * self.std_error
        self.conf_int = np.column_stack([estimate - half, estimate + half])
        self.log_likelihood, self.n_rows = log_likelihood, n_rows
        self.aic = 2 * len(estimate) - 2 * log_likelihood

    def to_frame(self):
        """The table as a pandas DataFrame."""
        import pandas as pd

        low, high = self.conf_int.T
        columns = {"estimate": self.estimate, "std_error": self.std_error, "z": self.z, "p_value": self.p_value}
        return pd.DataFrame(columns | {"low": low, "high": high}, index=self.names)

    def __str__(self):
        width = max(12, *(len(name) for name in self.names))
        share = f"{100 * self.level:g}%"
        lines = [f"{'':<{width}} {'estimate':>12} {'std error':>12} {'z':>9} {'p':>9}   {share} interval"]
        for name, a, s, z, p, (low, high) in zip(
            self.names, self.estimate, self.std_error, self.z, self.p_value, self.conf_int, strict=True
        ):
            lines.append(f"{name:<{width}} {a:>12.6g} {s:>12.4g} {z:>9.3f} {p:>9.3g}   {low:.6g} to {high:.6g}")
        lines.append(f"log-likelihood {self.log_likelihood:.6g}, AIC {self.aic:.6g}, weight of rows {self.n_rows:g}")
        return "\n".join(lines)

    __repr__ = __str__


def covariance(problem, H, shape, free):
    """The inverse of the Hessian over the free weights, (n, n), in the coordinates of the features as they are.

    `free` (K, d+1) says which weights were estimated; H is in the solver's coordinates.
    """
    kept = np.flatnonzero(free.ravel())
    C = np.zeros((H.shape[0], H.shape[0]))
    C[np.ix_(kept, kept)] = linalg.pinvh(H[np.ix_(kept, kept)])
    out = lambda rows: np.array([problem.outward(row.reshape(shape)).ravel() for row in rows])  # noqa: E731
    return out(out(C).T)[np.ix_(kept, kept)]
