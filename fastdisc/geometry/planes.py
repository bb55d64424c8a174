"""Hyperplanes, and validated points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from .._kernels.contract import Array

MAX_PRINTED_TERMS = 9


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """The points where g(x) = w'x + w0 is 0; g is positive on the side that w points to.

    Parameters
    ----------
    w : array-like of shape (d,)
        The normal vector, of any length but 0.
    w0 : float
        The intercept.
    name : str, default="g"
        The name of the discriminant in print.
    features : list of str, optional
        Names of the inputs; x0, x1, ... by default.

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane
    >>> plane = Hyperplane([3, -4], 10)
    >>> print(plane)
    g(x) = 3 x0 - 4 x1 + 10 = 0, at distance 2 from the origin
    >>> plane.signed_distance([[0, 0], [0, 5]])
    array([ 2., -2.])
    >>> plane.project([[0, 0]])
    array([[-1.2,  1.6]])
    """

    w: Array
    w0: float
    name: str = "g"
    features: list[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        w, w0 = np.array(self.w, dtype=np.float64), np.asarray(self.w0, dtype=np.float64)
        if w.ndim != 1 or w0.size != 1:
            raise ValueError(
                f"a hyperplane has a vector w and a number w0, got shapes {w.shape} and {w0.shape}"
            )
        if not (np.isfinite(w).all() and np.isfinite(w0).all()):
            raise ValueError(
                f"a hyperplane's weights must be finite, got w={w.tolist()}, w0={w0.tolist()}"
            )
        if not w.any():
            raise ValueError(
                f"the weights of {self.name} are all 0: it has no direction, and there is no "
                "hyperplane"
            )
        if self.features is not None and len(self.features) != len(w):
            raise ValueError(f"{len(self.features)} names for {len(w)} weights")
        w.setflags(write=False)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "w0", float(w0.reshape(-1)[0]))

    @property
    def norm(self) -> float:
        """||w||, without overflow or underflow."""
        top = np.abs(self.w).max()
        return float(top * np.linalg.norm(self.w / top))

    @property
    def normal(self) -> Array:
        """w / ||w||, (d,): orthogonal to every vector within the plane."""
        return self.w / self.norm

    @property
    def distance_to_origin(self) -> float:
        """r0 = w0 / ||w|| (10.5): positive if the origin is on the positive side."""
        return self.w0 / self.norm

    def __call__(self, X: Any) -> Array:
        """g(x) = w'x + w0 of each row.

        Parameters
        ----------
        X : array-like of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        return check_points(X, len(self.w)) @ self.w + self.w0

    def signed_distance(self, X: Any) -> Array:
        """r = g(x) / ||w|| (10.4), (4.7) of each row.

        Parameters
        ----------
        X : array-like of shape (N, d)

        Returns
        -------
        ndarray of shape (N,)
        """
        return self(X) / self.norm

    def project(self, X: Any) -> Array:
        """The nearest points of the plane, x - r w / ||w|| (4.6).

        Parameters
        ----------
        X : array-like of shape (N, d)

        Returns
        -------
        ndarray of shape (N, d)
        """
        X = check_points(X, len(self.w))
        return X - self.signed_distance(X)[:, None] * self.normal

    def side(self, X: Any) -> Array:
        """+1 on the positive side, -1 on the negative side, 0 on the plane, for each row.

        Parameters
        ----------
        X : array-like of shape (N, d)

        Returns
        -------
        ndarray of shape (N,), int8
        """
        return np.sign(self(X)).astype(np.int8)

    def __neg__(self) -> Hyperplane:
        """The same plane with its sides exchanged."""
        return Hyperplane(-self.w, -self.w0, f"-{self.name}", self.features)

    def __str__(self) -> str:
        names = self.features or [f"x{j}" for j in range(len(self.w))]
        terms = [(v, f" {name}") for v, name in zip(self.w, names, strict=True) if v]
        if self.w0:
            terms.append((self.w0, ""))
        first, *rest = terms
        text = ("-" if first[0] < 0 else "") + f"{abs(first[0]):.4g}{first[1]}"
        signed = [f" {'-' if v < 0 else '+'} {abs(v):.4g}{name}" for v, name in rest]
        if len(terms) > MAX_PRINTED_TERMS:
            signed = [*signed[:3], " + ...", *signed[-3:]]
        distance = f"at distance {abs(self.distance_to_origin):.4g} from the origin"
        return f"{self.name}(x) = {text}{''.join(signed)} = 0, {distance}"


def check_points(X: Any, d: int) -> Array:
    """Validated points as float64, (N, d)."""
    X = X.toarray() if sparse.issparse(X) else X
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(
            f"points must be rows of {d} numbers: expected an array of shape (N, {d}), got "
            f"{X.shape}"
        )
    bad = ~np.isfinite(X)
    if bad.any():
        row, column = divmod(int(bad.argmax()), d)
        raise ValueError(
            f"points must be finite; in row {row}, column {column} it is {X[row, column]}"
        )
    return X
