"""Basis functions as the kernels see them: a table of maps, and rows that stand for what the maps make of them.

A map takes a row x (d,) to some features (10.3). All that a kernel needs of it is in a `Part`: its kind, its numbers, and how
many features it has. `Mapped` is a layout beside arrays and CSR: a kernel expands a block of its rows when it works on them, so
that the matrix of features never exists. What each kind computes stands in `FEATURES`, the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np


class Map(IntEnum):
    """What a part of a basis computes. `ints` of the first five begin with the number of columns and the columns they read."""

    PRODUCTS = 0  # x_j, then for each (i, start, count) that follows x_i times `count` features of this part from `start` on
    SINE = 1  # of x_j, for each pair (p, q) of reals, p of all first: sin(p x_j + q)
    GAUSSIAN = 2  # exp(-q (x_j - p)^2)
    LOG = 3  # log(x_j + p)
    THRESHOLD = 4  # 1(x_j > p)
    RADIAL = 5  # reals: q (n,), m' (d, n): exp(-q_k ||x - m_k||^2)
    HALFSPACE = 6  # reals: c (n,), a' (d, n): 1(a_k'x > c_k)
    SUBSPACE = 7  # reals: V' (d, n): x_j, then z_i z_j for i <= j with z = V x
    CUSTOM = 8  # a function of a block of rows, at an address


class Part(NamedTuple):
    """One map. `function`, of CUSTOM, takes rows (n, d) to features (n, width); `address` is where a kernel calls it."""

    kind: Map
    width: int
    ints: np.ndarray = np.zeros(0, np.int64)
    reals: np.ndarray = np.zeros(0)
    size: int = 0  # steps of PRODUCTS, pairs of the maps of one column, n of the others
    function: Callable | None = None
    address: int = 0


COLUMNS = 7  # of the table


def padded(n):
    """Numbers that a row of n takes where it begins on a cache line."""
    return -(-n // 8) * 8


def turned(A):
    """A' as the kernels read it: (d, n), each row padded with zeros."""
    rows = np.zeros((A.shape[1], padded(len(A))))
    rows[:, : len(A)] = A.T
    return rows.ravel()


class Program(NamedTuple):
    """Parts one after the other: a line of the table for each, and their numbers in two long arrays."""

    parts: tuple[Part, ...]
    table: np.ndarray  # (parts, COLUMNS) int64: kind, first feature, width, where its ints and reals begin, size, address
    ints: np.ndarray
    reals: np.ndarray
    width: int

    def same(self, other):
        """Whether another has the same features."""
        return all(np.array_equal(a, b) for a, b in zip(self[1:], other[1:], strict=True))


def assemble(parts):
    """Parts as a program."""
    ends = np.cumsum([(part.width, len(part.ints), len(part.reals)) for part in parts], axis=0)
    begins = ends - [(part.width, len(part.ints), len(part.reals)) for part in parts]
    lines = [
        (part.kind, first, part.width, at, real, part.size, part.address)
        for part, (first, at, real) in zip(parts, begins.tolist(), strict=True)
    ]
    ints = np.concatenate([*(part.ints for part in parts), np.zeros(1)]).astype(np.int64)
    reals = np.concatenate([*(part.reals for part in parts), np.zeros(1)]).astype(np.float64)
    return Program(tuple(parts), np.array(lines, np.int64), ints, reals, int(ends[-1, 0]))


class Mapped:
    """Rows X (N, d) that stand for their features (N, D), or some of those. Rows are taken of X: D is never multiplied by N.

    Features are (f - mean) / scale. Indexing expands: a slice, or some rows, as an array of float64.
    """

    dtype, itemsize = np.dtype(np.float64), 8

    def __init__(self, raw, program, kernels, names, chosen=None, mean=None, scale=None):
        self.raw, self.program, self.kernels, self.names = raw, program, kernels, names
        self.chosen, self.mean, self.scale = chosen, mean, scale
        self.shape = raw.shape[0], program.width if chosen is None else len(chosen)

    def like(self, raw=None, **changes):
        """The same features of other rows, or others of the same rows."""
        fields = {"chosen": self.chosen, "mean": self.mean, "scale": self.scale} | changes
        return Mapped(self.raw if raw is None else raw, self.program, self.kernels, self.names, **fields)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        from . import grid

        part = self.take_rows(rows)
        return self.kernels.expand(part, grid(part.shape, 8), 1) if len(part) else np.empty(part.shape)

    def take_rows(self, rows):
        """Some of the rows."""
        raw = self.raw[rows] if isinstance(rows, slice) else np.ascontiguousarray(self.raw[rows])
        return self.like(raw)

    def take_columns(self, columns):
        """Some of the features."""
        columns = np.arange(self.shape[1])[columns]
        chosen = columns if self.chosen is None else self.chosen[columns]
        mean, scale = (None, None) if self.mean is None else (self.mean[columns], self.scale[columns])
        return self.like(chosen=np.ascontiguousarray(chosen, np.int64), mean=mean, scale=scale)

    def standardized(self, mean, scale):
        """The features less a mean, divided by a scale."""
        if self.mean is not None:
            mean, scale = self.mean + self.scale * mean, self.scale * scale
        return self.like(mean=np.ascontiguousarray(mean), scale=np.ascontiguousarray(scale))

    def failure(self):
        """What a user's function raised where nothing could be raised, once; None if nothing."""
        return next(filter(None, [part.function.failure() for part in self.program.parts if part.function is not None]), None)

    def name(self, column):
        """What a feature is called."""
        return self.names()[column if self.chosen is None else self.chosen[column]]


# --- the reference -----------------------------------------------------------------------------------------------------------


def _columns(part):
    count = int(part.ints[0])
    return part.ints[1 : 1 + count], part.ints[1 + count :]


def products(X, part):
    """x_j, and higher-order terms   (10.2), (10.3)"""
    columns, steps = _columns(part)
    F = np.empty((len(X), part.width), order="F")
    done = len(columns)
    F[:, :done] = X[:, columns]
    for i, start, count in steps.reshape(-1, 3):
        F[:, done : done + count] = F[:, i : i + 1] * F[:, start : start + count]
        done += count
    return F


def _of_one_column(phi):
    """A map of single columns: each pair of parameters to each column."""

    def features(X, part):
        p, q = part.reals.reshape(2, -1)
        return phi(X[:, _columns(part)[0], None], p, q).reshape(len(X), -1)

    return features


def _turned_back(part, d):
    """The numbers of `turned`, and what stands before them."""
    body = d * padded(part.size)
    return part.reals[:-body], part.reals[-body:].reshape(d, -1)[:, : part.size]


def radial(X, part):
    """exp(-q ||x - m||^2)   (10.3)"""
    q, centres = _turned_back(part, X.shape[1])
    return np.exp(-q * ((X[:, :, None] - centres) ** 2).sum(axis=1))


def half_space(X, part):
    """1(a'x > c)   (10.3)"""
    c, normals = _turned_back(part, X.shape[1])
    return (X @ normals > c).astype(np.float64)


def subspace(X, part):
    """x_j, and products of z = V x   (10.34)"""
    Z = X @ _turned_back(part, X.shape[1])[1]
    i, j = np.triu_indices(part.size)
    return np.hstack([X, Z[:, i] * Z[:, j]])


def custom(X, part):
    """What the function says; it may change the rows that it gets, which are not those of the user."""
    return part.function(X.copy())


FEATURES = {
    Map.PRODUCTS: products,
    Map.SINE: _of_one_column(lambda x, p, q: np.sin(p * x + q)),
    Map.GAUSSIAN: _of_one_column(lambda x, p, q: np.exp(-q * (x - p) ** 2)),
    Map.LOG: _of_one_column(lambda x, p, q: np.log(x + p)),
    Map.THRESHOLD: _of_one_column(lambda x, p, q: (x > p) + 0.0 * q),
    Map.RADIAL: radial,
    Map.HALFSPACE: half_space,
    Map.SUBSPACE: subspace,
    Map.CUSTOM: custom,
}


def features(mapped):
    """All features of mapped rows; of a row with a cell that is not finite none is a number."""
    X = np.asarray(mapped.raw, dtype=np.float64)
    with np.errstate(all="ignore"):
        F = np.hstack([FEATURES[part.kind](X, part) for part in mapped.program.parts])
    F[~np.isfinite(X).all(axis=1)] = np.nan
    F = F if mapped.chosen is None else F[:, mapped.chosen]
    return F if mapped.mean is None else (F - mapped.mean) / mapped.scale
