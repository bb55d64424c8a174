"""Bounds on the curvature of an objective."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._kernels.contract import Array
from .protocol import Evaluation, gradient_norm

# The power iteration converges from below: 10% are added, where a factor of 2 would still be safe.
SAFETY = 1.1


class HasGradient(Protocol):
    @property
    def shape(self) -> tuple[int, int]: ...

    def value_and_gradient(self, W: Array) -> Evaluation: ...


def curvature_bound(objective: HasGradient, growth: float, max_iter: int = 30) -> float:
    """A bound on the largest eigenvalue of the Hessian at any weights.

    Power iteration on differences of gradients at zero weights, where the curvature of a sigmoid is
    largest; `growth` bounds the curvature elsewhere relative to it. The step of the differences
    shrinks until the gradient is linear in it, which columns of large values need.
    """
    zeros = np.zeros(objective.shape)
    g0 = objective.value_and_gradient(zeros).gradient.copy()

    def difference(V: Array, step: float) -> Array:
        return (objective.value_and_gradient(step * V).gradient - g0) / step

    def product(V: Array, step: float) -> tuple[Array, float]:
        V = V / gradient_norm(V)
        HV = difference(V, step)
        while step > 1e-12:
            nearer = difference(V, step / 10)
            if gradient_norm(nearer - HV) <= 0.01 * gradient_norm(nearer):
                break
            HV, step = nearer, step / 10
        return HV, step

    V, step, bound = np.random.default_rng(0).standard_normal(objective.shape), 1.0, 0.0
    for _ in range(max_iter):
        V, step = product(V, step)
        last, bound = bound, gradient_norm(V)
        if bound == 0 or abs(bound - last) <= 0.003 * bound:
            break
    return max(SAFETY * bound * growth, float(np.finfo(float).tiny))
