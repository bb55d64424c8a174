"""The contract between solvers and objectives: everything that a solver may ask.

Solvers declare the capabilities that they need with `requires`; an objective declares those that it
has. A mismatch is an error that names both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .._kernels.contract import Array
from .penalty import Penalty


class Evaluation(NamedTuple):
    """An objective at some weights."""

    value: float
    errors: float  # weight of the misclassified rows
    gradient: Array  # (K, d+1)
    hessian: Array | None = None  # (K (d+1), K (d+1))


class Precision(Enum):
    """The type in which products of features are taken. Sums over blocks are always float64."""

    FLOAT32 = 32
    FLOAT64 = 64


class Capability(Enum):
    """What an objective can do beyond its value and gradient."""

    HESSIAN = "hessian"
    HESSIAN_OPERATOR = "hessian_operator"
    SAMPLE = "sample"
    SAMPLE_BY_NORM = "sample(by_norm=True)"
    COLUMNS = "columns"
    BATCHES = "batch"
    CURVATURE_FACTORS = "curvature_factors"
    CURVATURE_DIAGONAL = "curvature_diagonal"
    CURVATURE_BOUND = "curvature_bound"
    MAX_ABS_SCORE = "max_abs_score"


class Costs(NamedTuple):
    """Facts by which solvers weigh gradients against Hessians and products."""

    values_per_row: float  # that a pass reads: all columns, or the stored values of sparse rows
    is_sparse: bool
    is_small_dense: bool  # a float32 copy of the rows makes Hessian products cheap


class HessianOperator(Protocol):
    """The Hessian at fixed weights, for products with many directions.

    Directions are encoded: scaled to norm 1, and in the operator's own type and memory order.
    Arrays that `product` and `precondition` return may be overwritten by the next call.
    """

    @property
    def precision(self) -> Precision: ...

    @property
    def min_residual(self) -> float:
        """The relative residual below which rounding of the products dominates."""
        ...

    @property
    def preconditioner(self) -> Callable[[Array], Array] | None:
        """Of encoded residuals; None if the operator has none."""
        ...

    def encode(self, gradient: Array, norm: float) -> Array:
        """A gradient of that norm, as `product` takes directions."""
        ...

    def decode(self, direction: Array, norm: float) -> Array:
        """The solution for such a gradient, as weights (K, d+1)."""
        ...

    def product(self, direction: Array) -> Array:
        """The Hessian times an encoded direction."""
        ...


class Objective(Protocol):
    """A penalised sum of losses as a function of the weights W (K, d+1)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(K, d+1)."""
        ...

    @property
    def n_rows(self) -> int: ...

    @property
    def total_weight(self) -> float:
        """The weight of all rows, or pairs."""
        ...

    @property
    def convex(self) -> bool: ...

    @property
    def loss_curvature_bound(self) -> float:
        """A bound on the second derivative of the loss of one row by its scores."""
        ...

    @property
    def costs(self) -> Costs: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def penalty(self) -> Penalty: ...

    def value_and_gradient(self, W: Array) -> Evaluation: ...

    def use_float64(self) -> Objective:
        """The same objective with products in float64; itself if they are already."""
        ...

    # --- capabilities -------------------------------------------------------------------------

    def hessian(self, W: Array) -> Evaluation:
        """Value, gradient and Hessian, from one pass."""
        ...

    def hessian_operator(
        self,
        W: Array,
        precision: Precision = Precision.FLOAT32,
        previous: HessianOperator | None = None,
    ) -> HessianOperator:
        """The Hessian at W, with products in float32 if that is faster and `precision` allows it.

        The preconditioner of `previous`, the operator of an earlier step, may be reused.
        """
        ...

    def sample(self, m: int, seed: int, by_norm: bool = False) -> Objective:
        """An estimate of the objective from about m rows. Of all rows if m is their number: itself,
        or the same with rows standardised in memory, where that keeps digits of the Hessian."""
        ...

    def columns(self, chosen: Array) -> Objective:
        """The objective of some of the columns, the other weights being 0."""
        ...

    def batch(self, rows: Array) -> Objective:
        """The objective of some of the rows, with the share of the penalty that is theirs."""
        ...

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        """B (K, K) and M (d+1, d+1): their Kronecker product approximates the loss's Hessian."""
        ...

    def curvature_diagonal(self) -> tuple[Array, Array]:
        """B (K, K) and the diagonal of M, (d+1,), at zero weights."""
        ...

    def curvature_bound(self) -> float:
        """A bound on the largest eigenvalue of the Hessian at any weights."""
        ...

    def max_abs_score(self, V: Array) -> float:
        """max |v'x + v_0| over rows and classes."""
        ...


class SharedObjective(Protocol):
    """Several problems over shared rows, each with weights of the same shape (K, d+1)."""

    @property
    def n_problems(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]:
        """(K, d+1) of one problem."""
        ...

    @property
    def n_rows(self) -> int:
        """Rows of the smallest problem."""
        ...

    @property
    def convex(self) -> bool: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def penalty(self) -> Penalty:
        """Of one problem."""
        ...

    def evaluate(self, W: Sequence[Array], problems: Array, order: int) -> list[Evaluation]:
        """The problems of the given numbers, in rising order, each at its own weights; with their
        Hessians for order 2."""
        ...

    def sample(self, m: int, seed: int, by_norm: bool = False) -> SharedObjective: ...

    def use_float64(self) -> SharedObjective: ...

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        """As `Objective.curvature_factors`, of a single problem."""
        ...


F = TypeVar("F", bound=Callable[..., Any])


def check_capabilities(objective: Any, solver: str, *needed: Capability) -> None:
    """TypeError that names the solver and the objective, if the objective lacks a capability."""
    missing = [c.value for c in needed if c not in objective.capabilities]
    if missing:
        raise TypeError(
            f"{solver} needs {', '.join(missing)}, which {type(objective).__name__} does not "
            "provide"
        )


def requires(*needed: Capability) -> Callable[[F], F]:
    """Declare the capabilities that a solver needs of its objective."""

    def decorate(solve: F) -> F:
        name = f"{solve.__module__}.{solve.__qualname__}"

        @wraps(solve)
        def checked(objective: Any, *arguments: Any, **options: Any) -> Any:
            check_capabilities(objective, name, *needed)
            return solve(objective, *arguments, **options)

        checked.requires = frozenset(needed)  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def gradient_norm(g: Array) -> float:
    """||g||, without overflow or underflow of the squares."""
    square = float(np.vdot(g, g))
    if 1e-200 < square < 1e200:
        return math.sqrt(square)
    top = float(np.abs(g).max())
    return top * float(np.linalg.norm(g / top)) if top else 0.0
