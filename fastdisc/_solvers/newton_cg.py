"""Truncated Newton: each Newton step is solved by conjugate gradients on Hessian products."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import (
    Capability,
    HessianOperator,
    Objective,
    Precision,
    gradient_norm,
    requires,
)
from ..runtime import one_blas_thread
from . import preconditioners
from .line_search import line_search
from .preconditioners import Preconditioner
from .result import Result, Trace, make_result, start_norm

MAX_FORCING = 0.3  # relative residual at which conjugate gradients stop, far from the optimum
MAX_CG_STEPS = 250


@requires(Capability.HESSIAN_OPERATOR, Capability.SAMPLE, Capability.CURVATURE_DIAGONAL)
@one_blas_thread()  # idle BLAS threads spin for up to 30 ms and slow down those of the products
def solve(objective: Objective, W: Array, *, tol: float, max_iter: int, trace: Trace) -> Result:
    """Minimise by W <- W + t p with H p = -g solved approximately.

    1. stop when the gradient norm has fallen to tol times that at zero weights
    2. conjugate gradients on H p = -g, the more accurate the nearer the optimum is
    3. a step along p: 1 unless that overshoots
    4. where no step lowers the loss, go on with products in float64; end if they are
    """
    start = start_norm(objective)
    found, n_iter = objective.value_and_gradient(W), 0
    norm = gradient_norm(found.gradient)
    stop = trace.add("newton-cg", found, W)
    estimate = cache(partial(preconditioners.estimate, objective, W))
    precision, operator = Precision.FLOAT32, None
    while norm > tol * start and not stop and n_iter < max_iter:  # 1
        forcing = min(MAX_FORCING, np.sqrt(norm / start) if start else MAX_FORCING)
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: step 4
            operator = objective.hessian_operator(W, precision, operator)
            p = newton_direction(operator, found.gradient, forcing, estimate)  # 2
        slope = float(np.vdot(found.gradient, p))
        step = line_search(objective, W, p, found, slope) if slope < 0 else None  # 3
        if step is None:  # 4
            precise = objective.use_float64()
            if precise is objective and operator.precision is Precision.FLOAT64:
                break
            objective, precision = precise, Precision.FLOAT64
            found = objective.value_and_gradient(W)
            norm = gradient_norm(found.gradient)
            continue
        t, found = step
        W, n_iter, norm = W + t * p, n_iter + 1, gradient_norm(found.gradient)
        stop = trace.add("newton-cg", found, W)
    return make_result(W, norm, start, tol, n_iter, trace)


def newton_direction(
    operator: HessianOperator,
    g: Array,
    forcing: float,
    estimate: Callable[[], Preconditioner],
) -> Array:
    """p with H p = -g, up to `forcing`; estimate() returns a preconditioner for operators that have
    none of their own."""
    norm = gradient_norm(g)
    precondition = operator.preconditioner or estimate()
    residual = max(forcing, operator.min_residual)
    b = operator.encode(-g, norm)
    p = conjugate_gradients(operator.product, b, precondition, residual)
    return operator.decode(p, norm)


def conjugate_gradients(
    product: Callable[[Array], Array], b: Array, precondition: Preconditioner, forcing: float
) -> Array:
    """x with product(x) = b, up to a residual of forcing ||b|| in the preconditioner's norm."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z.copy(), float(np.vdot(r, z))
    goal, buffer = forcing**2 * rz, np.empty_like(b)
    for _ in range(MAX_CG_STEPS):
        Hp = product(p)
        curvature = float(np.vdot(p, Hp))
        if not np.isfinite(curvature):  # beyond the range of the products: no direction
            return np.full_like(b, np.nan)
        if curvature <= 0:  # a direction that changes no score: nothing is left to gain
            return x if x.any() else p
        a = rz / curvature
        x += np.multiply(p, a, out=buffer)  # in place: new arrays of this size page-fault
        r -= np.multiply(Hp, a, out=buffer)
        z = precondition(r)
        last, rz = rz, float(np.vdot(r, z))
        if rz <= goal:
            break
        p *= rz / last
        p += z
    return x
