"""Moments of classes: everything that closed-form models use of the data.

One sweep collects them. Moments of parts of the data can be merged, and subtracted again. A
`Moments` never changes: its methods return new ones. The formulas are in EQUATIONS.md, under
Moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .. import runtime
from .._kernels import Batch, MomentKind, moments_grid, row_grid
from .._kernels.contract import Array
from .rows import Rows, raise_too_large
from .sampling import stratified_rows

SHIFT_SAMPLE_ROWS = 2048  # enough to estimate class means that the rows are shifted by
CONSTANT_DEVIATION = 1e-13  # a column that deviates by this share of its mean is constant
# What a subtraction leaves of a variance is rounding if it is no more than this share.
MIN_REMAINING_SHARE = 1e-12
MAX_CANCELLATION = 1e-5  # share of a raw square below which too many digits of a variance are lost


class Moments(NamedTuple):
    """Sums over the rows of each class of u = x - centre: weights n, sums M of u, and sums S of its
    products, as `kind` says (see `MomentKind`).

    Classes of the same number in `group` share a matrix in S; with `per_class`, each has its own.
    Centred moments have the class means as centres, and M = 0.
    """

    kind: MomentKind
    n: Array  # (K,)
    centre: Array  # (K, d)
    M: Array  # (K, d)
    S: Array | None  # (K, d), (groups, d, d) or (groups, 2 d, 2 d)
    group: Array  # (K,)
    per_class: bool

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.n.sum())

    @property
    def mean(self) -> Array:
        """The means of the classes, (K, d); the centre of a class without rows   (4.21)"""
        return self.centre + self.M / np.where(self.n > 0, self.n, 1.0)[:, None]

    @property
    def overall(self) -> Array:
        """The mean of all rows, (d,)   (4.44)"""
        return self.n @ self.mean / self.total

    @property
    def products(self) -> Array:
        """S, for kinds that have it."""
        if self.S is None:
            raise ValueError(f"moments of kind {self.kind.name} have no sums of products")
        return self.S

    @property
    def within(self) -> Array:
        """S_W, (d, d)   (4.28), (4.40)"""
        d = self.M.shape[1]
        return self.products[:, :d, :d].sum(axis=0)

    @property
    def between(self) -> Array:
        """S_B, (d, d)   (4.46)"""
        apart = self.mean - self.overall
        return apart.T @ (self.n[:, None] * apart)

    @property
    def squares(self) -> Array:
        """Sums of squares of the columns, (K, d) or (groups, d)."""
        if self.kind == MomentKind.SQUARES:
            return self.products
        return np.einsum("gii->gi", self.products)[:, : self.M.shape[1]]

    def about(self, centre: Array) -> Moments:
        """The same sums with another centre."""
        a = centre - self.centre
        n, S = self.n, self.S
        if self.kind == MomentKind.SQUARES:
            S = self.products - 2 * a * self.M + n[:, None] * a**2
        elif self.kind == MomentKind.SCATTER:
            S = self.products.copy()
            half = (self.M - n[:, None] * a / 2).reshape(len(n), -1)
            for g in range(len(S)):
                cross = a[self.group == g].T @ half[self.group == g]
                S[g] -= cross + cross.T
        elif self.kind == MomentKind.QUARTIC:
            classes = zip(n, self.M, self.products, a, strict=True)
            S = np.stack([_shift_quartic(*sums) for sums in classes])
        return self._replace(centre=np.asarray(centre), M=self.M - n[:, None] * a, S=S)

    def centred(self) -> Moments:
        """The same sums about the class means. Counts and plain sums stay about 0, where those of
        integers are exact."""
        if self.S is None:
            return self
        moved = self.about(self.mean)
        rounding = self.n[:, None] * (CONSTANT_DEVIATION * moved.centre) ** 2
        if self.kind != MomentKind.SQUARES:
            groups = range(len(self.S))
            rounding = np.stack([rounding[self.group == g].sum(axis=0) for g in groups])
        constant = moved.squares <= rounding
        return moved._replace(M=np.zeros_like(self.M)).without_variance(constant)

    def without_variance(self, constant: Array) -> Moments:
        """With exact zeros for the products of constant columns, (K, d) or (groups, d), whose
        variance is rounding error."""
        if not constant.any():
            return self
        S = self.products.copy()
        if self.kind != MomentKind.SQUARES:
            constant = np.tile(constant, S.shape[1] // constant.shape[1])
            S.swapaxes(1, 2)[constant] = 0
        S[constant] = 0
        return self._replace(S=S)

    def merge(self, other: Moments) -> Moments:
        """The moments of the rows of both."""
        n = self.n + other.n
        share = other.n / np.where(n > 0, n, 1.0)
        centre = self.centre + share[:, None] * (other.centre - self.centre)
        a, b = self.about(centre), other.about(centre)
        S = None if a.S is None else a.S + b.products
        return a._replace(n=n, M=a.M + b.M, S=S).centred()

    def subtract(self, other: Moments, tol: float = 1e-9) -> Moments:
        """The moments without the rows of the other; ValueError if those cannot have been among
        these."""
        n = self.n - other.n
        if (n < -tol * np.maximum(1.0, self.n)).any():
            k = int(n.argmin())
            raise ValueError(
                f"class number {k} has a weight of {self.n[k]:g}: {other.n[k]:g} cannot be "
                "subtracted"
            )
        empty = n <= tol * self.n
        n = np.where(empty, 0.0, n)
        ratio = np.where(empty, 0.0, other.n / np.where(empty, 1.0, n))
        centre = self.centre + ratio[:, None] * (self.centre - other.centre)
        centre = np.where(empty[:, None], 0.0, centre)
        a, b = self.about(centre), other.about(centre)
        M = np.where(empty[:, None], 0.0, a.M - b.M)
        if a.S is None:
            if (-tol * np.maximum(1.0, np.abs(a.M)) > a.M - b.M).any():
                raise ValueError("their sums are larger than those of all rows")
            return a._replace(n=n, M=M)
        S = a.S - b.products
        if (a._replace(S=S).squares < -1e-6 * a.squares).any():
            raise ValueError("their variance is larger than that of all rows")
        if self.per_class:
            S[empty] = 0
        rest = a._replace(n=n, M=M, S=S).centred()
        return rest.without_variance(rest.squares <= MIN_REMAINING_SHARE * self.squares)

    def embed(self, places: Array, K: int) -> Moments:
        """The same moments among K classes, of which these are the ones at `places`."""
        d = self.M.shape[1]
        n, centre, M = np.zeros(K), np.zeros((K, d)), np.zeros((K, d))
        n[places], centre[places], M[places] = self.n, self.centre, self.M
        group = np.arange(K, dtype=np.int32) if self.per_class else np.zeros(K, np.int32)
        S = self.S
        if S is not None and self.per_class:
            S = np.zeros((K, *S.shape[1:]))
            S[places] = self.products
        return self._replace(n=n, centre=centre, M=M, S=S, group=group)

    def split(self, parts: int) -> list[Moments]:
        """The moments of each of F parts of the data, from those of their F K classes."""
        n, centre, M = (np.split(values, parts) for values in (self.n, self.centre, self.M))
        S = [None] * parts if self.S is None else np.split(self.S, parts)
        group = self.group[: len(n[0])]
        return [
            Moments(self.kind, *sums, group, self.per_class)
            for sums in zip(n, centre, M, S, strict=True)
        ]


def _shift_quartic(n: float, M: Array, S: Array, a: Array) -> Array:
    """sum v'v'' of v' = [u - a, (u - a)^2] from those of v = [u, u^2], where v' = L v + b."""
    d = len(M)
    L, b = np.eye(2 * d), np.concatenate([-a, a**2])
    L[np.arange(d, 2 * d), np.arange(d)] = -2 * a
    sums = L @ np.concatenate([M, np.diag(S)[:d]])
    return L @ S @ L.T + np.outer(sums, b) + np.outer(b, sums) + n * np.outer(b, b)


def merge_all(parts: list[Moments]) -> Moments:
    """The moments of all parts, merged in their order."""
    total, *others = parts
    for part in others:
        total = total.merge(part)
    return total


def collect(
    X: Rows,
    r: Array,
    s: Array,
    K: int,
    kind: MomentKind,
    *,
    per_class: bool = False,
    parts: int = 1,
    threshold: float = 0.0,
    backend: str | None = None,
    n_threads: int | None = None,
) -> Moments:
    """The moments of K classes from one sweep, with one matrix for all classes or one for each.

    With `parts`, each of several parts of the rows has its own K classes: the codes r are
    part * K + class, and `Moments.split` separates the parts. `threshold` is for COUNTS.
    """
    options: dict[str, Any] = {
        "per_class": per_class,
        "parts": parts,
        "backend": backend,
        "n_threads": n_threads,
    }
    if kind in (MomentKind.COUNTS, MomentKind.SQUARES):  # not linear in values stored twice
        X = X.canonical()
    if X.prefers_dense_moments(kind):
        return _collect_dense(X, r, s, K, kind, options)
    group = (np.arange(parts * K) if per_class else np.repeat(np.arange(parts), K)).astype(np.int32)
    centre = np.zeros((parts * K, X.shape[1]))
    has_products = kind not in (MomentKind.SUMS, MomentKind.COUNTS)
    if has_products and not X.is_sparse:
        centre = _approximate_means(X, r, parts * K)
    shift = centre + threshold if kind == MomentKind.COUNTS else centre
    n, M, S = _sweep(X, r, s, shift, group, kind, backend, n_threads)
    is_own = per_class or kind == MomentKind.SQUARES
    raw = Moments(MomentKind(kind), n, centre, M, S, group, is_own)
    moments = raw.centred()
    if has_products and X.is_sparse and _cancelled(raw, moments):
        return _collect_dense(X, r, s, K, kind, options)
    return moments


def _approximate_means(X: Rows, r: Array, K: int) -> Array:
    """Means of the classes in a sample of rows that has some of each, (K, d); integers if X has
    integers, so that sums of 8-bit features stay exact."""
    n = X.shape[0]
    rows = stratified_rows(n, SHIFT_SAMPLE_ROWS, np.random.default_rng(0))
    missing = np.setdiff1d(np.arange(K), r[rows])
    if len(missing) and n > len(rows):
        last = np.full(K, -1)
        last[r] = np.arange(n)
        rows = np.concatenate([rows, last[missing][last[missing] >= 0]])
    some, codes = X.take(rows).dense(), r[rows]
    members = csr_array((np.ones(len(rows)), (codes, np.arange(len(rows)))), shape=(K, len(rows)))
    with np.errstate(invalid="ignore", over="ignore"):
        means = (members @ some) / np.maximum(1, np.bincount(codes, minlength=K))[:, None]
        means = np.where(np.isfinite(means), means, 0.0)
    return means if X.dtype.kind == "f" else np.rint(means)


def _sweep(
    X: Rows,
    r: Array,
    s: Array,
    shift: Array,
    group: Array,
    kind: MomentKind,
    backend: str | None,
    n_threads: int | None,
) -> tuple[Array, Array, Array | None]:
    d, K = X.shape[1], len(shift)
    width = {MomentKind.SCATTER: d, MomentKind.QUARTIC: 2 * d}.get(kind, 0)
    n_groups = int(group.max()) + 1
    grid = moments_grid(X.shape, X.dtype.itemsize, K * (d + 1), width, n_groups)
    flops = X.n_values * max(1, width // 4)
    with runtime.threads(n_threads, flops) as n_used, np.errstate(invalid="ignore", over="ignore"):
        kernels = runtime.kernels(backend)
        n, M, S = kernels.class_moments(Batch(X, r, s), shift, group, int(kind), grid, n_used)
    if not (np.isfinite(M).all() and (S is None or np.isfinite(S).all())):
        X.check_finite()
        raise_too_large(X)
    return n, M, S


def _cancelled(raw: Moments, centred: Moments) -> bool:
    """Whether the subtraction of a mean cost some variance five digits."""
    return bool((centred.squares < MAX_CANCELLATION * raw.squares).any())


def _collect_dense(
    X: Rows, r: Array, s: Array, K: int, kind: MomentKind, options: dict[str, Any]
) -> Moments:
    """The moments of sparse rows that are converted to dense rows, a slice at a time."""
    X.check_finite()  # here, where rows have their own numbers
    parts = (
        collect(part, r[rows], s[rows] if len(s) > 1 else s, K, kind, **options)
        for rows, part in X.dense_slices()
    )
    total = next(parts)
    for part in parts:
        total = total.merge(part)
    return total


def quadratic_scores(
    X: Rows,
    mean: Array,
    A: Array,
    c: Array,
    *,
    backend: str | None = None,
    n_threads: int | None = None,
) -> Array:
    """Quadratic scores of Gaussian classes, (N, K)   (10.34)"""
    grid = row_grid(X.shape, 8, 1, 2)
    mean, A, c = (np.ascontiguousarray(a, dtype=np.float64) for a in (mean, A, c))
    flops = X.shape[0] * A.size
    with runtime.threads(n_threads, flops) as n_used, np.errstate(invalid="ignore", over="ignore"):
        Z, finite = runtime.kernels(backend).quadratic_scores(X, mean, A, c, grid, n_used)
    if not finite:
        X.check_finite()
        raise_too_large(X)
    return Z
