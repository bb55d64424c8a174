"""The features of a basis: one function per kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..basis_program import Part, Program, padded
from ..contract import Array
from ..enums import BasisKind


def _columns(part: Part) -> tuple[Array, Array]:
    """The columns that a part reads, and the integers after them."""
    count = int(part.ints[0])
    return part.ints[1 : 1 + count], part.ints[1 + count :]


def products(X: Array, part: Part) -> Array:
    """x_j, and higher-order terms   (10.2), (10.3)"""
    columns, steps = _columns(part)
    F = np.empty((len(X), part.width), order="F")
    done = len(columns)
    F[:, :done] = X[:, columns]
    for i, start, count in steps.reshape(-1, 3):
        F[:, done : done + count] = F[:, i : i + 1] * F[:, start : start + count]
        done += count
    return F


def _of_one_column(phi: Callable[..., Array]) -> Callable[[Array, Part], Array]:
    """A function of single columns, applied with each pair of parameters to each column."""

    def features(X: Array, part: Part) -> Array:
        p, q = part.reals.reshape(2, -1)
        return phi(X[:, _columns(part)[0], None], p, q).reshape(len(X), -1)

    return features


def _parameters(part: Part, d: int) -> tuple[Array, Array]:
    """What `padded_transpose` stored, (d, n), and the parameters before it."""
    body = d * padded(part.size)
    return part.reals[:-body], part.reals[-body:].reshape(d, -1)[:, : part.size]


def radial(X: Array, part: Part) -> Array:
    """exp(-q ||x - m||^2)   (10.3)"""
    q, centres = _parameters(part, X.shape[1])
    return np.exp(-q * ((X[:, :, None] - centres) ** 2).sum(axis=1))


def half_space(X: Array, part: Part) -> Array:
    """1(a'x > c)   (10.3)"""
    c, normals = _parameters(part, X.shape[1])
    return (X @ normals > c).astype(np.float64)


def subspace(X: Array, part: Part) -> Array:
    """x_j, and products of z = V x   (10.34)"""
    Z = X @ _parameters(part, X.shape[1])[1]
    i, j = np.triu_indices(part.size)
    return np.hstack([X, Z[:, i] * Z[:, j]])


def custom(X: Array, part: Part) -> Array:
    """A user's function, called on a copy of the rows."""
    assert part.function is not None
    return part.function(X.copy())


FEATURES: dict[int, Callable[[Array, Part], Array]] = {
    BasisKind.PRODUCTS: products,
    BasisKind.SINE: _of_one_column(lambda x, p, q: np.sin(p * x + q)),
    BasisKind.GAUSSIAN: _of_one_column(lambda x, p, q: np.exp(-q * (x - p) ** 2)),
    BasisKind.LOG: _of_one_column(lambda x, p, q: np.log(x + p)),
    BasisKind.THRESHOLD: _of_one_column(lambda x, p, q: (x > p) + 0.0 * q),
    BasisKind.RADIAL: radial,
    BasisKind.HALFSPACE: half_space,
    BasisKind.SUBSPACE: subspace,
    BasisKind.CUSTOM: custom,
}


def features(program: Program, X: Array) -> Array:
    """All features of the rows X, (N, width); NaN for a row with a cell that is not finite."""
    for part in program.parts:
        if part.kind not in FEATURES:
            raise ValueError(f"the numpy backend has no basis kind {int(part.kind)}")
    with np.errstate(all="ignore"):
        F = np.hstack([FEATURES[part.kind](X, part) for part in program.parts])
    F[~np.isfinite(X).all(axis=1)] = np.nan
    return F
