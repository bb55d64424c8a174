"""Samples of rows, and bounds that are estimated on them."""

from __future__ import annotations

import numpy as np

from .._kernels.contract import Array
from .rows import Rows, unit_scale


def stratified_rows(n: int, m: int, rng: np.random.Generator) -> Array:
    """About m of n row numbers in rising order: one at random from each of m runs of consecutive
    rows, so that the order of the rows cannot bias the sample."""
    if m >= n:
        return np.arange(n)
    edges = np.arange(m + 1) * n // m
    return edges[:-1] + (rng.random(m) * np.diff(edges)).astype(np.int64)


def standardize(X: Rows, s: Array) -> tuple[Rows, Array, Array]:
    """Rows whose columns have standard deviation 1 and, unless sparse, mean 0; the mean that was
    subtracted, and the scale."""
    mean, deviation = X.moments(s)
    scale = unit_scale(deviation)
    shift = np.zeros_like(mean) if X.is_sparse else mean
    return X.standardized(shift, scale), shift, scale


def largest_eigenvalue(
    X: Rows, s: Array, intercept: bool, max_rows: int = 4096, max_iter: int = 100
) -> float:
    """The largest eigenvalue of the mean of [1 x][1 x]', or of x x', over a sample of the rows, by
    power iteration from a random start."""
    rng = np.random.default_rng(0)
    some = stratified_rows(X.shape[0], max_rows, rng)
    s = s[some] if len(s) > 1 and s[some].any() else np.ones(1)
    A = X.take(some).to_float64()
    v, top = rng.standard_normal(X.shape[1] + 1), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for done in range(max_iter):
            v[0] *= intercept
            v /= np.linalg.norm(v) or 1.0
            z = s * (A @ v[1:] + v[0])
            v = np.append(z.sum(), A.T @ z) / (s[0] * len(some) if len(s) == 1 else s.sum())
            v[0] *= intercept
            last, top = top, float(np.linalg.norm(v))
            if done > 5 and not abs(top - last) > 1e-4 * top:
                break
    return top


def largest_row_norm(X: Rows, s: Array, intercept: bool, max_rows: int = 1 << 16) -> float:
    """max s ||[1 x]||^2, or s ||x||^2, over a sample of the rows."""
    some = stratified_rows(X.shape[0], max_rows, np.random.default_rng(0))
    weight = s[some] if len(s) > 1 else s
    return float((weight * (intercept + X.take(some).row_squares())).max())
