"""Moments of classes: all that the closed-form models know of the data. One sweep collects them; parts merge, and come off again.

A `Moments` never changes: each verb returns a new one. Formulas are in EQUATIONS.md, under Moments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from . import _config
from ._kernels import CSR, Moment, grid, moments_grid
from ._rows import canonical, strata
from ._validate import check_finite, raise_too_large

PILOT = 2048  # rows that tell the classes' means well enough to shift by
FULL = 0.2  # the share of stored values from which on CSR goes through the dense tiles: they are ten times as fast a product
CELLS = 1 << 21  # of a slice
STILL = 1e-13  # a column that deviates by this share of its mean is constant
LOST = 1e-12  # what is left of a variance after a subtraction is rounding, if it is no more than this share


class Moments(NamedTuple):
    """Sums over the rows of each class of u = x - centre: weights n, M of u, S of its products, as `kind` says (see `Moment`).

    Classes of the same number in `group` share a matrix in S, unless each has its `own`. Settled moments have the means for
    centres, and M = 0.
    """

    kind: Moment
    n: np.ndarray  # (K,)
    centre: np.ndarray  # (K, d)
    M: np.ndarray  # (K, d)
    S: np.ndarray | None  # (K, d), (groups, d, d) or (groups, 2 d, 2 d)
    group: np.ndarray  # (K,)
    own: bool

    @property
    def total(self):
        """The weight of all rows."""
        return float(self.n.sum())

    @property
    def mean(self):
        """The classes' means (K, d); the centre where a class has no rows   (4.21)"""
        return self.centre + self.M / np.where(self.n > 0, self.n, 1.0)[:, None]

    @property
    def overall(self):
        """The mean of all rows, (d,)   (4.44)"""
        return self.n @ self.mean / self.total

    @property
    def within(self):
        """S_W, (d, d)   (4.28), (4.40)"""
        d = self.M.shape[1]
        return self.S[:, :d, :d].sum(axis=0)

    @property
    def between(self):
        """S_B, (d, d)   (4.46)"""
        apart = self.mean - self.overall
        return apart.T @ (self.n[:, None] * apart)

    def about(self, centre):
        """The same sums of x less another centre."""
        a = centre - self.centre
        n, S = self.n, self.S
        if self.kind == Moment.SQUARES:
            S = S - 2 * a * self.M + n[:, None] * a**2
        elif self.kind == Moment.SCATTER:
            S = S.copy()
            half = (self.M - n[:, None] * a / 2).reshape(len(n), -1)
            for g in range(len(S)):
                cross = a[self.group == g].T @ half[self.group == g]
                S[g] -= cross + cross.T
        elif self.kind == Moment.QUARTIC:
            S = np.stack([_moved(*parts) for parts in zip(n, self.M, S, a, strict=True)])
        return self._replace(centre=np.asarray(centre), M=self.M - n[:, None] * a, S=S)

    def settled(self):
        """About the means; counts and plain sums stay about 0, where those of whole numbers are exact."""
        if self.kind in (Moment.SUMS, Moment.COUNTS):
            return self
        moved = self.about(self.mean)
        rounding = self.n[:, None] * (STILL * moved.centre) ** 2
        if self.kind != Moment.SQUARES:
            rounding = np.stack([rounding[self.group == g].sum(axis=0) for g in range(len(self.S))])
        return moved._replace(M=np.zeros_like(self.M))._without(moved.squares <= rounding)

    @property
    def squares(self):
        """Sums of squares of the columns, (K, d) or (groups, d)."""
        return self.S if self.kind == Moment.SQUARES else np.einsum("gii->gi", self.S)[:, : self.M.shape[1]]

    def _without(self, still):
        """Columns whose variance is but rounding, (K, d) or (groups, d), at exactly 0, and all products with them."""
        if not still.any():
            return self
        S = self.S.copy()
        if self.kind != Moment.SQUARES:
            still = np.tile(still, S.shape[1] // still.shape[1])
            S.swapaxes(1, 2)[still] = 0
        S[still] = 0
        return self._replace(S=S)

    def merge(self, other):
        """The moments of the rows of both."""
        n = self.n + other.n
        share = other.n / np.where(n > 0, n, 1.0)
        centre = self.centre + share[:, None] * (other.centre - self.centre)
        a, b = self.about(centre), other.about(centre)
        return a._replace(n=n, M=a.M + b.M, S=None if a.S is None else a.S + b.S).settled()

    def subtract(self, other, tol=1e-9):
        """The moments without those rows; ValueError if they cannot have been among these."""
        n = self.n - other.n
        if (n < -tol * np.maximum(1.0, self.n)).any():
            k = int(n.argmin())
            raise ValueError(f"class number {k} has a weight of {self.n[k]:g}: {other.n[k]:g} cannot be taken away")
        empty = n <= tol * self.n
        n = np.where(empty, 0.0, n)
        away = np.where(empty, 0.0, other.n / np.where(empty, 1.0, n))[:, None] * (self.centre - other.centre)
        centre = np.where(empty[:, None], 0.0, self.centre + away)  # nothing is left of a class that has gone
        a, b = self.about(centre), other.about(centre)
        M, S = np.where(empty[:, None], 0.0, a.M - b.M), None if a.S is None else a.S - b.S
        if S is None:
            if (-tol * np.maximum(1.0, np.abs(a.M)) > a.M - b.M).any():
                raise ValueError("some sums of theirs are larger than those of all rows")
            return a._replace(n=n, M=M, S=S)
        if (a._replace(S=S).squares < -1e-6 * a.squares).any():
            raise ValueError("their variance is larger than that of all rows")
        if self.own:
            S[empty] = 0
        rest = a._replace(n=n, M=M, S=S).settled()
        return rest._without(rest.squares <= LOST * self.squares)

    def spread(self, places, K):
        """The same moments among K classes, of which these are the ones at `places`."""
        _, d = self.M.shape
        n, centre, M = np.zeros(K), np.zeros((K, d)), np.zeros((K, d))
        n[places], centre[places], M[places] = self.n, self.centre, self.M
        S, group = self.S, np.arange(K, dtype=np.int32) if self.own else np.zeros(K, np.int32)
        if S is not None and self.own:
            S = np.zeros((K, *self.S.shape[1:]))
            S[places] = self.S
        return self._replace(n=n, centre=centre, M=M, S=S, group=group)

    def split(self, parts):
        """Moments of F K classes, those of each of F parts of the data in a row, as F Moments."""
        n, centre, M = (np.split(values, parts) for values in (self.n, self.centre, self.M))
        S = [None] * parts if self.S is None else np.split(self.S, parts)
        group = self.group[: len(n[0])]
        return [Moments(self.kind, *sums, group, self.own) for sums in zip(n, centre, M, S, strict=True)]


def _moved(n, M, S, a):
    """sum v'v'' of v' = [u - a, (u - a)^2] from those of v = [u, u^2]: v' = L v + b"""
    d = len(M)
    L, b = np.eye(2 * d), np.concatenate([-a, a**2])
    L[np.arange(d, 2 * d), np.arange(d)] = -2 * a
    sums = L @ np.concatenate([M, np.diag(S)[:d]])
    return L @ S @ L.T + np.outer(sums, b) + np.outer(b, sums) + n * np.outer(b, b)


def pilot_means(X, r, K):
    """Means of the classes in a sample of rows that has some of each, (K, d); whole numbers where X is of whole numbers."""
    n = X.shape[0]
    rows = strata(n, PILOT, np.random.default_rng(0))
    missing = np.setdiff1d(np.arange(K), r[rows])
    if len(missing) and n > len(rows):
        last = np.full(K, -1)
        last[r] = np.arange(n)
        rows = np.concatenate([rows, last[missing][last[missing] >= 0]])
    some, codes = X[rows].astype(np.float64), r[rows]
    R = csr_array((np.ones(len(rows)), (codes, np.arange(len(rows)))), shape=(K, len(rows)))
    with np.errstate(invalid="ignore", over="ignore"):
        means = (R @ some) / np.maximum(1, np.bincount(codes, minlength=K))[:, None]
        means = np.where(np.isfinite(means), means, 0.0)
    return np.rint(means) if X.dtype.kind not in "f" else means


def collect(X, r, s, K, kind, *, own=False, parts=1, threshold=0.0, backend=None, n_threads=None):
    """The moments of K classes from one sweep: one matrix for all of them, or each its own.

    With `parts`, the rows are in parts, each with its K classes: codes r are part * K + class, and `split` tells them apart.
    """
    group = (np.arange(parts * K) if own else np.repeat(np.arange(parts), K)).astype(np.int32)
    options = {"own": own, "parts": parts, "backend": backend, "n_threads": n_threads}
    if isinstance(X, CSR):
        X = canonical(X) if kind in (Moment.COUNTS, Moment.SQUARES) else X
        if kind == Moment.QUARTIC or (kind == Moment.SCATTER and len(X.data) > FULL * X.shape[0] * X.shape[1]):
            return _by_slices(X, r, s, K, kind, options)
    shift = np.zeros((parts * K, X.shape[1]))
    if kind == Moment.COUNTS:
        shift += threshold
    elif kind != Moment.SUMS and not isinstance(X, CSR):
        shift = pilot_means(X, r, parts * K)
    n, M, S = _sweep(X, r, s, shift, group, kind, backend, n_threads)
    if kind == Moment.COUNTS:
        shift = np.zeros_like(shift)
    moments = Moments(Moment(kind), n, shift, M, S, group, own or kind == Moment.SQUARES)
    settled = moments.settled()
    if isinstance(X, CSR) and kind in (Moment.SQUARES, Moment.SCATTER) and _cancelled(moments, settled):
        return _by_slices(X, r, s, K, kind, options)
    return settled


def _sweep(X, r, s, shift, group, kind, backend, n_threads):
    (rows, d), K = X.shape, len(shift)
    sparse = isinstance(X, CSR)
    width = 0 if kind < Moment.SCATTER else 2 * d if kind == Moment.QUARTIC else d
    g = moments_grid(X.shape, 8 if sparse else X.dtype.itemsize, K * (d + 1), width, int(group.max()) + 1)
    values = len(X.data) if sparse else rows * d
    with _config.threads(n_threads, values * max(1, width // 4)) as threads, np.errstate(invalid="ignore", over="ignore"):
        n, M, S = _config.kernels(backend).class_moments(X, r, s, shift, group, int(kind), g, threads)
    if not (np.isfinite(M).all() and (S is None or np.isfinite(S).all())):
        check_finite(X)
        raise_too_large(X)
    return n, M, S


def _cancelled(raw, settled):
    """Whether the subtraction of a mean cost some variance five digits."""
    return bool((settled.squares < 1e-5 * raw.squares).any())


def _by_slices(X, r, s, K, kind, options):
    """The moments of CSR made dense, some rows at a time."""
    step = max(16, CELLS // max(1, X.shape[1]))
    check_finite(X)  # here, where rows have their own numbers
    A, total = csr_array((X.data, X.indices, X.indptr), shape=X.shape), None
    for lo in range(0, X.shape[0], step):
        rows = slice(lo, lo + step)
        part = collect(A[rows].toarray(), r[rows], s[rows] if len(s) > 1 else s, K, kind, **options)
        total = part if total is None else total.merge(part)
    return total


def quadratic(X, mean, A, c, *, backend=None, n_threads=None):
    """Quadratic scores of Gaussian classes, (N, K)   (10.34)"""
    work = X.shape[0] * A.size
    g = grid(X.shape, 8, 1, 2)
    mean, A, c = (np.ascontiguousarray(a, dtype=np.float64) for a in (mean, A, c))
    with _config.threads(n_threads, work) as threads, np.errstate(invalid="ignore", over="ignore"):
        Z, finite = _config.kernels(backend).quadratic(X, mean, A, c, g, threads)
    if not finite:
        check_finite(X)
        raise_too_large(X)
    return Z
