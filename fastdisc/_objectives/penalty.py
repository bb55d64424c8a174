"""The L2 penalty and the weights that are fixed at 0: applied here and nowhere else."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._kernels.contract import Array


class Penalty:
    """sum_j l2_j / 2 w_j^2 over all weights but the intercepts; some weights may be fixed at 0.

    Intercepts are fixed if there are none, and all weights of a reference class. A penalty never
    changes. Arrays of weights are (K, d+1); `transposed` gives one for (d+1, K).
    """

    def __init__(
        self,
        shape: tuple[int, int],
        l2: Array | float = 0.0,
        *,
        intercept: bool = True,
        reference: int | None = None,
    ):
        self.shape, self.intercept, self.reference = shape, intercept, reference
        self.l2 = np.broadcast_to(np.asarray(l2, dtype=np.float64), shape[1] - 1)  # (d,)

    @property
    def has_fixed(self) -> bool:
        """Whether some weights are fixed at 0."""
        return not self.intercept or self.reference is not None

    @cached_property
    def fixed(self) -> Array:
        """Which weights are fixed at 0, (K, d+1)."""
        mask = np.zeros(self.shape, bool)
        mask[:, 0] = not self.intercept
        if self.reference is not None:
            mask[self.reference] = True
        return mask

    @property
    def shift_invariant(self) -> bool:
        """Whether adding one vector to the weights of all K classes changes the penalty alone."""
        return self.reference is None and self.shape[0] > 1

    def with_l2(self, l2: Array | float) -> Penalty:
        """The same fixed weights with another strength."""
        return Penalty(self.shape, l2, intercept=self.intercept, reference=self.reference)

    def columns(self, chosen: Array) -> Penalty:
        """The penalty of some of the columns."""
        shape = self.shape[0], len(self.l2[chosen]) + 1
        return Penalty(shape, self.l2[chosen], intercept=self.intercept, reference=self.reference)

    @cached_property
    def diagonal(self) -> Array:
        """The second derivative by the weights of one class, (d+1,): 0 for the intercept."""
        return np.concatenate([[0.0], self.l2])

    def value(self, W: Array) -> float:
        """The penalty of all weights."""
        return float(np.vdot(self.l2 * W[:, 1:], W[:, 1:])) / 2

    def values(self, W: Array) -> Array:
        """The penalty of each row of weights, (K,)."""
        return (self.l2 * W[:, 1:] ** 2).sum(axis=1) / 2

    def add_gradient(self, W: Array, G: Array) -> None:
        """Add the gradient at W to G, (..., d+1), in place; fixed weights have none."""
        G[..., 1:] += self.l2 * W[..., 1:]
        if self.has_fixed:
            G[self._fixed_like(G)] = 0

    def add_product(self, V: Array, HV: Array) -> None:
        """Add the product of the penalty's Hessian with V to HV, in place."""
        self.add_gradient(V, HV)

    def _fixed_like(self, G: Array) -> Array:
        """`fixed` for as many rows of weights as G has: one for each problem over shared rows."""
        return self.fixed if G.shape == self.shape else np.broadcast_to(self.fixed[:1], G.shape)

    def add_hessian(self, H: Array) -> None:
        """Add the Hessian to H, (K (d+1), K (d+1)), in place; fixed weights get a unit diagonal."""
        K, D = self.shape
        np.einsum("kjkj->kj", H.reshape(K, D, K, D))[:, 1:] += self.l2
        if self.has_fixed:
            mask = self.fixed.ravel()
            H[mask], H[:, mask] = 0, 0
            H[mask, mask] = 1

    def replace_in(self, H: Array, old: Penalty) -> Array:
        """A Hessian that was computed with another L2 penalty, with this one instead."""
        if old is self:
            return H
        K, D = self.shape
        H = H.copy()
        np.einsum("kjkj->kj", H.reshape(K, D, K, D))[:, 1:] += self.l2 - old.l2
        return H

    def in_float32(self, unit: float, *, transposed: bool = False) -> Float32Penalty:
        """The penalty in units of `unit`, for float32 directions, (K, d+1) or transposed."""
        diagonal = (self.diagonal / unit).astype(np.float32)
        fixed = self.fixed if self.has_fixed else None
        if transposed:
            fixed = None if fixed is None else np.ascontiguousarray(fixed.T)
            return Float32Penalty(diagonal[:, None], fixed)
        return Float32Penalty(diagonal, fixed)


class Float32Penalty(NamedTuple):
    """What an operator in float32 adds to its products."""

    diagonal: Array  # broadcasts to the shape of directions
    fixed: Array | None

    def add_product(self, V: Array, HV: Array, buffer: Array | None = None) -> None:
        """Add the product with V to HV, in place; fixed weights become 0."""
        HV += np.multiply(self.diagonal, V, out=buffer)
        if self.fixed is not None:
            HV[self.fixed] = 0
