"""The hinge with a margin: its corner is smoothed, less and less, until the error that this makes
is certified to be small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import Capability, Evaluation, Objective, gradient_norm, requires
from ..runtime import one_blas_thread
from . import preconditioners
from .line_search import line_search
from .newton_cg import conjugate_gradients
from .preconditioners import inverse_hessian
from .result import Result, Trace, make_result, start_norm

FIRST_WIDTH = 2.0  # of the corner: at zero weights all pairs are within it, and have curvature
WIDTH_RATIO = 0.25  # of one width to the last
MAX_UNCHANGED = 5  # solutions that do not move
MIN_STEP = 0.1  # of a Newton step: shorter ones mean that other pairs have curvature there
FORCING = 0.01  # residual of conjugate gradients; other values were not tried
FIRST_TOL, MIN_TOL = 1e-2, 1e-14  # of the inner solver
MIN_DAMPING, MAX_DAMPING = 1e-6, 1e6  # in units of the mean of the Hessian's diagonal

Solve = Callable[..., Result]


def solve(
    objectives: Callable[[float], Objective],
    exact: Callable[[Array], float],
    W: Array,
    *,
    inner: Solve,
    tol: float,
    max_iter: int,
    trace: Trace,
    certified: bool = True,
    fallback: Solve | None = None,
) -> Result:
    """Minimise exact(W) through smooth lower bounds objectives(width), which converge to it as the
    width goes to 0.

    1. minimise the smooth objective, as far as it is worth
    2. the gap: what smoothing takes off the exact value, and how far the smooth value may be from
       its minimum, which the penalty bounds by the gradient: F - min F <= sum_j g_j^2 / (2 l2_j)
    3. stop when the gap has fallen to tol times the exact value; else reduce its larger part

    The gradient_norm of the result is that relative gap. Without an L2 penalty nothing bounds the
    second part (`certified` is False): then the tolerance of the inner solver is what holds. Where
    the corner is so narrow and the penalty so weak that the inner solver makes no progress,
    `fallback` continues; when that does not move either, this ends.
    """
    width, inner_tol, n_iter, unchanged = FIRST_WIDTH, FIRST_TOL, 0, 0
    best = np.inf, W
    while True:
        objective = objectives(width)
        options = {"tol": inner_tol, "trace": trace}
        found = inner(objective, W, max_iter=max_iter - n_iter, **options)  # 1
        steps = max(1, found.n_iter)
        left = max_iter - n_iter - steps
        if fallback is not None and left > 0 and not (found.converged or found.stopped):
            found = fallback(objective, found.W, max_iter=left, **options)
            steps += found.n_iter
        moved = found.converged or not np.array_equal(found.W, W)
        unchanged = 0 if moved else unchanged + 1
        W, n_iter = found.W, n_iter + steps
        smooth, value = objective.value_and_gradient(W), exact(W)
        smoothing, rest = max(0.0, value - smooth.value), 0.0
        if certified:
            squares = smooth.gradient[:, 1:] ** 2
            rest = float((squares / (2 * objective.penalty.l2)).sum())  # 2
        gap = (smoothing + rest) / value if value > 0 else 0.0
        trace.print("smoothed", f"width {width:.1e}: loss {value:.6g}, gap {gap:.1e}")
        converged = gap <= tol and (certified or (inner_tol <= tol and found.converged))
        best = min(best, (gap, W), key=lambda pair: pair[0])
        if converged or unchanged >= MAX_UNCHANGED or found.stopped or n_iter >= max_iter:  # 3
            gap, W = (gap, W) if converged else best
            return Result(W, converged, n_iter, gap, trace.history, found.stopped)
        if smoothing > tol / 2 * value:
            width *= WIDTH_RATIO
        if rest > tol / 2 * value or not certified:
            inner_tol = max(inner_tol / 10, MIN_TOL if certified else tol)


@requires(Capability.HESSIAN)
def newton(objective: Objective, W: Array, *, tol: float, max_iter: int, trace: Trace) -> Result:
    """Newton with the Hessian of all rows at every step: few pairs have curvature, others at each
    step, and a sample would miss them."""

    def direction(found: Evaluation, W: Array, damping: float) -> Array:
        H = found.hessian.copy()  # type: ignore[union-attr]
        H[np.diag_indices_from(H)] += damping * H.diagonal()[1:].mean()
        return -inverse_hessian(H, W.shape, False)(found.gradient)

    return _damped(objective, W, direction, True, "newton", tol, max_iter, trace)


@requires(Capability.HESSIAN_OPERATOR, Capability.SAMPLE, Capability.CURVATURE_DIAGONAL)
def newton_cg(objective: Objective, W: Array, *, tol: float, max_iter: int, trace: Trace) -> Result:
    """The same with Hessian products alone: see `newton_cg.solve`."""
    base = preconditioners.estimate(objective, W)
    first = objective.value_and_gradient(W).gradient
    curvature = float(np.vdot(first, objective.hessian_operator(W).product(first)))
    size = curvature / max(float(np.vdot(first, first)), np.finfo(float).tiny)

    def direction(found: Evaluation, W: Array, damping: float) -> Array:
        operator = objective.hessian_operator(W)

        def product(V: Array) -> Array:
            return operator.product(V) + damping * size * V

        with one_blas_thread():
            return conjugate_gradients(product, -found.gradient, base, FORCING)

    return _damped(objective, W, direction, False, "newton-cg", tol, max_iter, trace)


def _damped(
    objective: Objective,
    W: Array,
    direction: Callable[[Evaluation, Array, float], Array],
    hessians: bool,
    name: str,
    tol: float,
    max_iter: int,
    trace: Trace,
) -> Result:
    """Steps along direction(found, W, damping).

    Where the corner is narrow, fewer pairs have curvature than there are weights, and others
    wherever a step goes: then the Hessian's diagonal is raised, ten times more after a step that
    has to be shortened, ten times less after a full one.
    """
    start = start_norm(objective)
    evaluate = objective.hessian if hessians else objective.value_and_gradient
    found, n_iter, damping = evaluate(W), 0, 0.0
    stop = trace.add(name, found, W)
    norm = gradient_norm(found.gradient)
    while norm > tol * start and not stop and n_iter < max_iter and damping <= MAX_DAMPING:
        p = direction(found, W, damping)
        slope = float(np.vdot(found.gradient, p))
        step = line_search(objective, W, p, found, slope, MIN_STEP) if slope < 0 else None
        damping = damping / 10 if step and step[0] == 1 else max(10 * damping, MIN_DAMPING)
        if step:
            W, n_iter = W + step[0] * p, n_iter + 1
            found = evaluate(W) if hessians else step[1]
            stop = trace.add(name, found, W)
            norm = gradient_norm(found.gradient)
    return make_result(W, norm, start, tol, n_iter, trace)
