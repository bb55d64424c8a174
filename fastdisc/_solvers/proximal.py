"""Proximal Newton for L1 and elastic-net penalties, on working sets of columns.

The smooth part of the objective is modelled by a quadratic: its gradient over all rows, and the
Hessian of a sample, corrected by each step (BFGS). Coordinate descent on that model, which never
touches the data, gives the next weights.
"""

from __future__ import annotations

import numpy as np

from .. import runtime
from .._kernels.contract import Array, Kernels
from .._objectives.protocol import Capability, Evaluation, Objective, gradient_norm, requires
from .quadratic_model import QuadraticModel, least_penalty_shift
from .result import Result, Trace, make_result
from .sample_schedule import hessian_cost, sample_sizes

MAX_UNRESTRICTED_WEIGHTS = 1200  # up to which all columns are worked on at once
FREE_STEPS = 3  # that a solution near the last one takes with the Hessian there
INNER_SHARE = 0.3  # a working set is left when its violation has fallen to this share
WORKING_SET_COLUMNS = 100  # that are added to a working set, at least
SAMPLE_GOAL = 0.02  # share of the first violation to which the sample's own problem is solved
SAMPLE_STEPS = 30
MAX_STALLED = 4  # steps without a decrease beyond rounding, after which products are in float64
VALUES_PER_COLUMN = 3  # columns of a sparse Hessian that cost as much as a stored value


@requires(Capability.HESSIAN, Capability.SAMPLE, Capability.COLUMNS)
@runtime.one_blas_thread()  # idle BLAS threads would slow down those of the sweeps
def solve(
    objective: Objective,
    W: Array,
    *,
    l1: Array | float,
    tol: float,
    max_iter: int,
    trace: Trace,
    state: QuadraticModel | None = None,
    backend: str | None = None,
) -> Result:
    """Minimise the objective plus sum_kj l1_j |w_kj| over all weights but the intercepts.

    1. the gradient over all rows and columns, and the violation of the optimality conditions
    2. stop when its norm has fallen to tol times the gradient norm at zero weights
    3. the working set: columns with weights, and those that violate the conditions most
    4. descend on it

    `state` is the model that an earlier solution on all columns left, if any.
    """
    penalty = np.zeros(W.shape)
    penalty[:, 1:] = l1
    penalty[objective.penalty.fixed] = 0
    kernels = runtime.kernels(backend)
    model = QuadraticModel() if state is None else state
    start = model.begin(objective)
    n_iter = 0
    while True:
        found = objective.value_and_gradient(W)  # 1
        gap = violation(found.gradient, W, penalty)
        norm = gradient_norm(gap)
        stop = trace.add("proximal", _with_l1(found, W, penalty), W)
        if norm <= tol * start or stop or n_iter >= max_iter:  # 2
            return make_result(W, norm, start, tol, n_iter, trace)
        before, left = W, max_iter - n_iter
        if W.size <= MAX_UNRESTRICTED_WEIGHTS:
            run = _Run(objective, penalty, model, kernels, trace)
            W = run.descend(W, tol * start, left, found)
            objective = run.objective
        else:
            columns = working_set(gap, W)  # 3
            places = np.concatenate([[0], columns + 1])
            part, inner = objective.columns(columns), QuadraticModel()
            run = _Run(part, penalty[:, places], inner, kernels, trace)
            goal = max(tol * start, INNER_SHARE * norm) / 2
            W = W.copy()
            some = np.ascontiguousarray(W[:, places])
            W[:, places] = run.descend(some, goal, left)  # 4
            if run.objective is not part:
                objective = objective.use_float64()
        n_iter += max(1, run.steps)
        if np.array_equal(before, W):
            return make_result(W, norm, start, tol, n_iter, trace)


def _with_l1(found: Evaluation, W: Array, penalty: Array) -> Evaluation:
    """The evaluation with the L1 penalty added to the value."""
    return found._replace(value=found.value + float((penalty * np.abs(W)).sum()))


def violation(g: Array, W: Array, penalty: Array) -> Array:
    """The smallest element of the subdifferential, (K, d+1): 0 at an optimum."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - penalty, 0)
    return np.where(W != 0, g + penalty * np.sign(W), at_zero)


def working_set(gap: Array, W: Array) -> Array:
    """Columns with weights, and at least as many again that violate the conditions most."""
    active = (W[:, 1:] != 0).any(axis=0)
    badness = np.where(active, 0, np.abs(gap[:, 1:]).max(axis=0))
    wanted = max(WORKING_SET_COLUMNS, active.sum())
    count = max(1, min(wanted, (badness > 0).sum()))  # 1 if the intercept alone violates them
    active[np.argpartition(-badness, count - 1)[:count]] = True
    return np.flatnonzero(active)


class _Run:
    """Proximal Newton steps on one objective."""

    def __init__(
        self,
        objective: Objective,
        penalty: Array,
        model: QuadraticModel,
        kernels: Kernels,
        trace: Trace,
    ):
        self.objective, self.penalty, self.model = objective, penalty, model
        self.kernels, self.trace, self.steps, self.stalled = kernels, trace, 0, 0
        K, D = objective.shape
        # Gradients that a Hessian of all rows costs; of sparse rows it has few products.
        width = min(D, VALUES_PER_COLUMN * objective.costs.values_per_row)
        self.hessian_cost = hessian_cost(K * (width if objective.costs.is_sparse else D))

    def descend(
        self, W: Array, goal: float, max_iter: int, found: Evaluation | None = None
    ) -> Array:
        """Steps until the norm of the violation is below `goal`.

        1. the model's minimum gives the direction
        2. a step along it that lowers the objective
        3. the model learns from the step
        4. where the steps beyond the first few have cost as much as a better Hessian, draw that
        5. where steps no longer lower the objective, go on with products in float64
        """
        if found is None:
            found = self.objective.value_and_gradient(W)
        if self.model.H is None:
            W, found = self._first_model(W, found)
        while True:
            size = gradient_norm(violation(found.gradient, W, self.penalty))
            if size <= goal or self.steps >= max_iter:
                return W
            model, n_rows = self.model, self.objective.n_rows
            rows = min(4 * model.rows, n_rows)  # 4
            if model.debt > self.hessian_cost * rows / n_rows:
                model.draw(self.objective, W, rows)
            p = self._direction(W, found)  # 1
            step = self._line_search(W, p, found)  # 2
            if step is None and model.rows < n_rows:
                model.draw(self.objective, W, rows)
                continue
            if step is None or self.stalled >= MAX_STALLED:  # 5
                precise = self.objective.use_float64()
                if precise is not self.objective:
                    self.objective, self.stalled = precise, 0
                    found = precise.value_and_gradient(W)
                    continue
            if step is None:
                return W
            t, trial = step
            model.learn(t * p, trial.gradient - found.gradient)  # 3
            W, found, self.steps = W + t * p, trial, self.steps + 1
            model.debt += self.steps > FREE_STEPS
            count = np.count_nonzero(W[:, 1:])
            text = f"      step {self.steps}, {count} weights, violation {size:.3g}"
            self.trace.print("proximal", text)

    def _first_model(self, W: Array, found: Evaluation) -> tuple[Array, Evaluation]:
        """The Hessian of a sample; from zero weights, the sample's own solution is a better start,
        and costs little."""
        objective, model = self.objective, self.model
        rows = sample_sizes(objective.n_rows, W.size, W.shape[1])[-1]
        part = model.draw(objective, W, rows)
        if rows < objective.n_rows and not W[:, 1:].any():
            size = gradient_norm(violation(found.gradient, W, self.penalty))
            run = _Run(part, self.penalty, model, self.kernels, self.trace)
            W = run.descend(W, SAMPLE_GOAL * size, SAMPLE_STEPS)
            model.draw(objective, W, rows)
            found = objective.value_and_gradient(W)
        return W, found

    def _direction(self, W: Array, found: Evaluation) -> Array:
        V = self.model.minimise(self.kernels, W, found.gradient, self.penalty)
        if self.objective.penalty.shift_invariant:
            l1 = self.penalty[:, 1:].max(axis=0)
            V = least_penalty_shift(V, l1, self.objective.penalty.l2)
        return V - W

    def _line_search(
        self, W: Array, p: Array, found: Evaluation
    ) -> tuple[float, Evaluation] | None:
        """A step t <= 1 along p that lowers the penalised loss by a share of what the model
        predicts; None if there is none."""
        penalty = self.penalty
        now = found.value + float((penalty * np.abs(W)).sum())
        change = float((penalty * (np.abs(W + p) - np.abs(W))).sum())
        predicted = float(np.vdot(found.gradient, p)) + change
        t, rounding = 1.0, 64 * np.finfo(float).eps * abs(now)
        while t > 1e-8 and predicted < 0:
            trial = self.objective.value_and_gradient(W + t * p)
            value = trial.value + float((penalty * np.abs(W + t * p)).sum())
            if value <= now + 1e-4 * t * predicted + rounding:
                self.stalled = 0 if value < now - rounding else self.stalled + 1
                return t, trial
            t /= 2
        return None
