"""Passes that return numbers per row: scores and outputs of a linear model, features of a basis.
Also the cost and the grid of a pass, which every pass over rows needs."""

from __future__ import annotations

import numpy as np

from .. import runtime
from .._kernels.contract import Array, Grid, Kernels
from .._kernels.enums import Activation
from .._kernels.grid import MAX_CHUNKS, row_grid
from .rows import Rows, raise_too_large


def sweep_flops(X: Rows, K: int, order: int) -> int:
    """About how many operations a sweep takes: what decides whether threads pay."""
    hessian = max(1, K * X.shape[1] // 4) if order == 2 else 1
    return 2 * X.flops_per_output * K * hessian


def sweep_grid(
    X: Rows, K: int, order: int, *, float32: bool = True, hessian_blocks: int | None = None
) -> Grid:
    """The grid of a sweep, with products in float32 where that is allowed and useful."""
    single = X.stored is None and X.dtype != np.float64 and order < 2 and float32
    grid = row_grid(X.shape, 4 if single else 8, K, order, X.stored, hessian_blocks)
    return grid._replace(float32=float32)


def output_grid(X: Rows, K: int) -> Grid:
    """The grid of a pass without sums: small chunks, so that threads share the work evenly."""
    grid = sweep_grid(X, K, 1, float32=False)
    smallest = -(-X.shape[0] // (MAX_CHUNKS * grid.block)) * grid.block
    return grid._replace(chunk=min(grid.chunk, smallest))


def scores(kernels: Kernels, X: Rows, W: Array, *, n_threads: int | None) -> Array:
    """Scores of a linear model, (N, K), whether finite or not."""
    with runtime.threads(n_threads, sweep_flops(X, len(W), 1)) as n:
        return kernels.outputs(X, Activation.IDENTITY, W, output_grid(X, len(W)), n)[0]


def outputs(
    X: Rows,
    activation: Activation,
    W: Array,
    *,
    backend: str | None = None,
    n_threads: int | None = None,
) -> Array:
    """Scores or outputs of a linear model, (N, K); ValueError where X is not finite."""
    with runtime.threads(n_threads, sweep_flops(X, len(W), 1)) as n:
        kernels = runtime.kernels(backend)
        Y, finite = kernels.outputs(X, activation, W, output_grid(X, len(W)), n)
    if not finite:
        X.check_finite()
        raise_too_large(X)
    return Y


def expand(X: Rows, kernels: Kernels, *, n_threads: int | None = None) -> Array:
    """The features of mapped rows, (N, d)."""
    with runtime.threads(n_threads, X.shape[0] * X.shape[1]) as n:
        F = kernels.expand(X, row_grid(X.shape, 8), n)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(F.sum(axis=0)).all()
    if not finite:
        X.check_finite()
    return F
