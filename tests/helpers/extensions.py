"""A loss and a layout that are not in the package, added by registration alone.

The loss is the complementary log-log: y = 1 - exp(-exp(z)) is the probability of class 1. Its
second derivative depends on the target, which Hessian products do not read, so that the curvature
is its expectation, the Fisher information (dy/dz)^2 / (y (1 - y)).

The layout is column-major chunks: a list of Fortran-ordered blocks of rows.
"""

import math
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from fastdisc._data.dense import ArrayRows
from fastdisc._data.rows import raise_not_finite
from fastdisc._kernels import ROW_LOSSES
from fastdisc._kernels import _numpy as numpy_backend
from fastdisc._kernels.losses import RowLossSpec

COMPLEMENTARY_LOG_LOG = 100
MAX_EXP = 6.5  # of z: exp(exp(z)) is finite


# --- the loss -------------------------------------------------------------------------------------


def loss_complementary_log_log(Z, r):
    """The reference: losses, predicted classes, derivatives, curvature."""
    z = Z[:, 0]
    t = np.exp(z)
    q = np.expm1(np.exp(np.minimum(z, MAX_EXP)))
    loss = np.where(r == 1, -np.log(-np.expm1(-t)), t)
    information = np.where(z < MAX_EXP, t * t / q, 0.0)
    return loss, z > 0, np.where(r == 1, -t / q, t)[:, None], lambda i, j: information


def numba_loss(Z, r, s, m, work, Y):
    loss, wrong = 0.0, 0.0
    for i in range(m):
        z = float(Z[0, i])
        t, q = math.exp(z), math.expm1(math.exp(min(z, MAX_EXP)))
        if r[i] == 1:
            loss += s[i] * -math.log(-math.expm1(-t))
            Z[0, i] = s[i] * (-t / q)
        else:
            loss += s[i] * t
            Z[0, i] = s[i] * t
        wrong += s[i] if (z > 0) != (r[i] == 1) else 0.0
        if len(Y) > 0:
            Y[0, i] = t * t / q if z < MAX_EXP else 0.0
    return loss, wrong


def numba_curvature(j, k, E, Y, s, m, c):
    for i in range(m):
        c[i] = s[i] * Y[0, i]


def numba_curvature_product(Z, U, s, m, work):
    for i in range(m):
        z = float(Z[0, i])
        t = math.exp(z)
        U[0, i] *= s[i] * (t * t / math.expm1(t) if z < MAX_EXP else 0.0)


@contextmanager
def complementary_log_log():
    """The loss, registered in the table, the reference and the Numba backend: its code."""
    from fastdisc._kernels._numba import losses as numba_losses

    code, name = COMPLEMENTARY_LOG_LOG, "complementary_log_log"
    functions = numba_losses.LossFunctions(numba_loss, numba_curvature, numba_curvature_product)
    ROW_LOSSES[code] = RowLossSpec(name, "(10.23)", False, 0.65, True, False)
    numpy_backend.losses.LOSSES[code] = loss_complementary_log_log
    numba_losses.register_loss(code, functions)
    try:
        yield code
    finally:
        numba_losses.remove_loss(code)
        del numpy_backend.losses.LOSSES[code], ROW_LOSSES[code]


# --- the layout -----------------------------------------------------------------------------------


class ColumnChunks(ArrayRows):
    """Rows in chunks of `size` (the last may be shorter), each stored column by column."""

    layout = "column_chunks"
    lazy = False
    float32_products = False

    def __init__(self, values, size):
        n, d = self.shape = values.shape
        self.size, self.buffer, self.blocks = size, np.empty(n * d), []
        for lo in range(0, n, size):
            part = values[lo : lo + size]
            block = self.buffer[lo * d : lo * d + part.size].reshape(part.shape, order="F")
            block[...] = part
            self.blocks.append(block)

    @property
    def dtype(self):
        return np.dtype(np.float64)

    @property
    def bytes_per_row(self):
        return 8 * self.shape[1]

    def is_small_dense(self, n_outputs):
        return False

    def to_float64(self):
        return np.vstack([np.empty((0, self.shape[1])), *self.blocks])

    def dense(self):
        return np.ascontiguousarray(self.to_float64())

    def _like(self, values):
        return ColumnChunks(values, self.size)

    def block(self, rows):
        return self.to_float64()[rows]

    def take(self, rows):
        return self._like(self.to_float64()[rows])

    def columns(self, chosen):
        return self._like(self.to_float64()[:, chosen])

    def gather(self, order, n_threads):
        return self.take(order)

    def standardized(self, mean, scale):
        return self._like((self.to_float64() - mean) / scale)

    def check_finite(self):
        values = self.to_float64()
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            raise_not_finite(values[tuple(bad[0])], *map(int, bad[0]))


class ColumnChunksArguments(NamedTuple):
    """What jitted code takes for them."""

    buffer: np.ndarray
    n: int
    size: int


def fetch_column_chunks(X, lo, m, buffer):
    d = buffer.shape[1]
    for i in range(m):
        chunk = (lo + i) // X.size
        first = chunk * X.size
        rows = min(X.size, X.n - first)
        for j in range(d):
            buffer[i, j] = X.buffer[first * d + j * rows + (lo + i - first)]
    return buffer


_fetch_is_overloaded = False


@contextmanager
def column_chunks():
    """The layout, registered in the Numba backend; the reference needs no registration."""
    from numba import types
    from numba.extending import overload

    from fastdisc._kernels._numba.layouts import ARGUMENTS, fetch

    global _fetch_is_overloaded
    if not _fetch_is_overloaded:

        @overload(fetch)
        def _fetch(X, lo, m, buffer):
            own = isinstance(X, types.BaseNamedTuple)
            own = own and X.instance_class is ColumnChunksArguments
            return fetch_column_chunks if own else None

        _fetch_is_overloaded = True
    ARGUMENTS["column_chunks"] = lambda X: ColumnChunksArguments(X.buffer, X.shape[0], X.size)
    try:
        yield ColumnChunks
    finally:
        del ARGUMENTS["column_chunks"]
