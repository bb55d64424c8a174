"""Newton-Raphson, or iteratively reweighted least squares, on growing samples and then on all rows.

Newton's method on a small sample finds the neighbourhood of the optimum at almost no cost. From
there full gradients with the Hessian of a sample reduce the error by a factor of sqrt(D / m) per
sweep, or better, with the corrections of a quasi-Newton memory (1M x 28: four sweeps to 1e-10). A
full Hessian costs D / 12 gradients, and is only summed where those of samples turn out not to
suffice.

Many problems over shared rows are solved together: each has a descent of its own, and all share the
passes. One problem is the case of a single descent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._kernels.contract import Array
from .._objectives.penalty import Penalty
from .._objectives.protocol import (
    Capability,
    Evaluation,
    Objective,
    SharedObjective,
    gradient_norm,
    requires,
)
from . import preconditioners
from .descent import Descent, memory_size
from .preconditioners import Preconditioner, inverse_hessian
from .result import Result, Trace
from .sample_schedule import (
    MIN_ROWS_PER_WEIGHT,
    MIN_ROWS_PER_WEIGHT_NONCONVEX,
    hessian_cost,
    hessian_price,
    sample_sizes,
    sufficient_decrease,
)

MAX_WEIGHTS = 20_000  # 3 GB of Hessian
MAX_SAMPLE_STEPS = 50
FIRST_SHORTENING = 0.25  # of a step that overshoots on a sample
# Squared gradient norm in the sample's metric, relative to its expectation, above which a few rows
# must be far from the others (a column that is nonzero in three rows): then rows are drawn by norm.
# Standardised covertype: more than 50 sweeps with plain samples, 16 with these.
MAX_SURPRISE = 30
# Gradients that a Hessian costs, from where on few rows with several classes start with a Kronecker
# approximation: 1,800 x 64, 10 classes, takes 73 ms, and 236 with a Hessian at every step.
MIN_KRONECKER_COST = 20
# A new Hessian is worth its cost if it saves 3 sweeps more than a multiple of that cost.
SPARE_SWEEPS, HESSIAN_WEIGHT, HESSIAN_WEIGHT_KRONECKER = 3, 2.0, 0.5


class OneProblem:
    """A single objective as a SharedObjective."""

    n_problems = 1

    def __init__(self, objective: Objective):
        self.objective, self.shape, self.n_rows = objective, objective.shape, objective.n_rows
        self.convex, self.penalty = objective.convex, objective.penalty
        self.capabilities = objective.capabilities

    def evaluate(self, W: Sequence[Array], problems: Array, order: int) -> list[Evaluation]:
        evaluate = self.objective.hessian if order == 2 else self.objective.value_and_gradient
        return [evaluate(W[0])]

    def sample(self, m: int, seed: int, by_norm: bool = False) -> OneProblem:
        return OneProblem(self.objective.sample(m, seed, by_norm))

    def use_float64(self) -> OneProblem:
        precise = self.objective.use_float64()
        return self if precise is self.objective else OneProblem(precise)

    def curvature_factors(self, W: Array) -> tuple[Array, Array]:
        return self.objective.sample(self.n_rows, seed=0).curvature_factors(W)


class NewtonState:
    """What the solutions of some problems leave to the next ones on the same data, with another
    penalty: Hessians, and the gradient norms at zero weights."""

    def __init__(self) -> None:
        self.hessians: list[tuple[Array, Penalty]] = []
        self.start_norms: Array | None = None

    def base(self, problems: SharedObjective, k: int) -> Preconditioner:
        """The preconditioner of problem k's Hessian, with the present penalty."""
        H, penalty = self.hessians[k]
        H = problems.penalty.replace_in(H, penalty)
        return inverse_hessian(H, problems.shape, problems.penalty.shift_invariant)


@requires(Capability.HESSIAN, Capability.SAMPLE)
def solve(
    objective: Objective,
    W: Array,
    *,
    tol: float,
    max_iter: int,
    trace: Trace,
    state: NewtonState | None = None,
) -> Result:
    """Minimise one objective by W <- W - t H^-1 g: see `solve_shared`."""
    if len(W) > 1 and objective.penalty.shift_invariant:
        W = W - W.mean(axis=0)  # changes no output; the penalty only falls
    problem = OneProblem(objective)
    options = {"tol": tol, "max_iter": max_iter, "trace": trace, "state": state}
    return _Newton(problem, **options).solve([W])[0]  # type: ignore[arg-type]


@requires(Capability.HESSIAN, Capability.SAMPLE)
def solve_shared(
    problems: SharedObjective,
    W: Sequence[Array],
    *,
    tol: float,
    max_iter: int,
    trace: Trace,
    state: NewtonState | None = None,
) -> list[Result]:
    """Minimise several problems over shared rows; a Result for each.

    Starts other than 0 are taken to be near the optimum: they go to step 3, with the Hessians of
    `state`, which earlier solutions left, or of the largest sample.

    1. on each sample, descend until its optimum is nearer than that of the next sample is likely to
       be; each Hessian is used until the gradients since have cost as much as the next one
    2. if the full gradient is far larger than the sample predicts, draw rows by norm, and start
       again
    3. on all rows, gradients with the last sample's Hessian, corrected by the last steps
    4. where the gradient falls too slowly, the Hessian of a larger sample, in the end of all rows
    """
    options = {"tol": tol, "max_iter": max_iter, "trace": trace, "state": state}
    return _Newton(problems, **options).solve(W)  # type: ignore[arg-type]


class _Newton:
    """The run of `solve_shared`."""

    def __init__(
        self,
        problems: SharedObjective,
        *,
        tol: float,
        max_iter: int,
        trace: Trace,
        state: NewtonState | None,
    ):
        (K, D), P = problems.shape, problems.n_problems
        if K * D > MAX_WEIGHTS:
            raise ValueError(
                f"Newton's method would need a Hessian of {K * D:,} x {K * D:,}: "
                "take solver='lbfgs'"
            )
        self.problems, self.tol, self.max_iter, self.trace = problems, tol, max_iter, trace
        self.state = NewtonState() if state is None else state
        self.unknowns, self.columns, self.all = K * D, D, list(range(P))
        per_weight = MIN_ROWS_PER_WEIGHT if problems.convex else MIN_ROWS_PER_WEIGHT_NONCONVEX
        self.sizes = sample_sizes(problems.n_rows, self.unknowns, D, per_weight)
        self.traces = [trace] if P == 1 else [Trace() for _ in range(P)]
        self.memory, self.by_norm = memory_size(self.unknowns * P), False
        few_rows = self.sizes == [problems.n_rows] and K > 1
        expensive = hessian_cost(self.unknowns) > MIN_KRONECKER_COST
        factors = Capability.CURVATURE_FACTORS in problems.capabilities
        self.kronecker = few_rows and expensive and factors

    def solve(self, W: Sequence[Array]) -> list[Result]:
        if any(w.any() for w in W):
            descents = self._start_near(W)
        elif self.kronecker:
            factors = self.problems.curvature_factors(W[0])
            base = preconditioners.kronecker(self.problems.penalty, factors)
            descents = [self._descent(W[0], base, 0)]
            self._evaluate(self.problems, descents, self.all, 1)
            self.state.start_norms = np.array([descents[0].norm])
        else:
            descents = self._grow_samples(W)
        return self._descend(descents)

    def _descent(self, W: Array, base: Preconditioner | None, k: int | None) -> Descent:
        """A descent on all rows, recorded in the trace of problem k; on a sample for None."""
        record = None
        if k is not None:
            record = lambda found, W: self.traces[k].add("newton", found, W)  # noqa: E731
        return Descent(
            W,
            base,
            shift_invariant=self.problems.penalty.shift_invariant,
            memory=self.memory,
            first_shortening=FIRST_SHORTENING if k is None else None,
            record=record,
        )

    def _evaluate(
        self, problems: SharedObjective, descents: list[Descent], active: Sequence[int], order: int
    ) -> None:
        """One pass for the active problems."""
        numbers = np.asarray(active)
        found = problems.evaluate([descents[k].trial_point for k in active], numbers, order)
        for k, evaluation in zip(active, found, strict=True):
            descents[k].receive(evaluation)

    def _hessians(
        self, part: SharedObjective, W: Sequence[Array], active: list[int]
    ) -> list[Array]:
        found = part.evaluate([W[k] for k in active], np.array(active), 2)
        return [evaluation.hessian for evaluation in found]  # type: ignore[misc]

    def _set_start_norms(self, part: SharedObjective) -> None:
        zeros = [np.zeros(self.problems.shape)] * len(self.all)
        found = part.evaluate(zeros, np.array(self.all), 1)
        self.state.start_norms = np.array([gradient_norm(e.gradient) for e in found])

    def _start_near(self, W: Sequence[Array]) -> list[Descent]:
        """Descents from a start that is taken to be near the optimum."""
        state = self.state
        if not state.hessians:
            part = self.problems.sample(self.sizes[-1], seed=len(self.sizes) - 1)
            found = self._hessians(part, W, self.all)
            state.hessians = [(H, self.problems.penalty) for H in found]
            self._set_start_norms(part)
        bases = [state.base(self.problems, k) for k in self.all]
        descents = [self._descent(w, bases[k], k) for k, w in enumerate(W)]
        self._evaluate(self.problems, descents, self.all, 1)
        return descents

    def _grow_samples(self, W: Sequence[Array]) -> list[Descent]:
        """Descents that start from the optimum of the largest sample."""
        while True:
            self.state.start_norms, self.state.hessians = None, []
            start, losses = list(W), np.zeros(len(W))
            for level, m in enumerate(self.sizes):
                start, losses = self._solve_sample(level, m, start)
            bases = [self.state.base(self.problems, k) for k in self.all]
            descents = [self._descent(w, bases[k], k) for k, w in enumerate(start)]
            found = self.problems.evaluate(start, np.array(self.all), 1)
            if self._is_surprising(found, bases, losses):
                self.by_norm = True  # 2
                continue
            for descent, evaluation in zip(descents, found, strict=True):
                descent.receive(evaluation)
            return descents

    def _is_surprising(
        self, found: list[Evaluation], bases: list[Preconditioner], losses: Array
    ) -> bool:
        """Whether the full gradient is far larger than the sample predicts, and drawing rows by
        norm may help."""
        m, can_draw = self.sizes[-1], Capability.SAMPLE_BY_NORM in self.problems.capabilities
        if self.by_norm or not can_draw or m >= self.problems.n_rows:
            return False
        expected = self.unknowns / m * np.abs(losses) + np.finfo(float).tiny
        pairs = zip(found, bases, strict=True)
        sizes = [float(np.vdot(e.gradient, base(e.gradient))) for e, base in pairs]
        surprise = float((np.array(sizes) / expected).max())
        if surprise > MAX_SURPRISE:
            text = f"gradient {surprise:.0f} times as large as expected: rows are drawn by norm"
            self.trace.print("newton", text)
        return surprise > MAX_SURPRISE

    def _solve_sample(self, level: int, m: int, W: Sequence[Array]) -> tuple[list[Array], Array]:
        """The optimum of a sample, as nearly as it is worth: weights and losses. The state gets
        Hessians of about there."""
        problems, state = self.problems, self.state
        part = problems.sample(m, seed=level, by_norm=self.by_norm)
        rows, all_rows = part.n_rows, part.n_rows == problems.n_rows
        share = sufficient_decrease(rows, self.unknowns, all_rows)
        cost = hessian_price(rows, self.unknowns, self.columns) if problems.convex else 0.0
        if level and m == self.sizes[-1]:
            self._set_start_norms(part)  # that of a small sample is mostly noise
        bases = [state.base(problems, k) if level else None for k in self.all]
        descents = [self._descent(w, bases[k], None) for k, w in enumerate(W)]
        active, since = list(self.all), -1  # since: gradients after the last Hessian
        while active:
            shortened = any(descents[k].shortened for k in active)
            order = 2 if shortened or since + 2 > cost else 1
            if since < 0:
                order = 1 if level else 2
            self._evaluate(part, descents, active, order)
            since = 0 if order == 2 else since + 1
            if state.start_norms is None:
                state.start_norms = np.array([descent.norms[0] for descent in descents])
            active = [k for k in active if not _is_solved(descents[k], share, all_rows)]
        final = [_final_weights(descent, share, all_rows) for descent in descents]
        self._keep_hessians(part, descents, final, all_rows)
        losses = np.array([d.evaluation.value for d in descents])
        steps = max(d.steps for d in descents)
        self.trace.print("newton", f"{rows:>9,} rows: {steps} steps, loss {losses.sum():.6g}")
        return final, losses

    def _keep_hessians(
        self,
        part: SharedObjective,
        descents: list[Descent],
        W: list[Array],
        all_rows: bool,
    ) -> None:
        """The state gets Hessians at the last weights; of all rows, the last that was summed."""
        found = [descent.evaluation.hessian for descent in descents]
        if all_rows:
            found = [descent.last_hessian for descent in descents]
            pairs = enumerate(found)
            found = [self.state.hessians[k][0] if H is None else H for k, H in pairs]
        if any(H is None for H in found):
            found = list(self._hessians(part, W, self.all))
        self.state.hessians = [(H, self.problems.penalty) for H in found if H is not None]

    def _descend(self, descents: list[Descent]) -> list[Result]:
        """Steps 3 and 4."""
        assert self.state.start_norms is not None
        goals, m = self.tol * self.state.start_norms, self.sizes[-1]
        while True:
            running = [k for k in self.all if not descents[k].finished(goals[k], self.max_iter)]
            m = self._renew_hessians(descents, running, goals, m)  # 4
            running = [k for k in running if not descents[k].stuck]
            if not running:
                break
            self._evaluate(self.problems, descents, running, 1)  # 3
            if len(self.all) > 1:
                norm = max(descents[k].norm for k in running)
                self.trace.print("newton", f"{len(running)} problems, gradient norm {norm:.3g}")
        starts = self.state.start_norms
        return [d.result(self.tol, starts[k], self.traces[k]) for k, d in enumerate(descents)]

    def _renew_hessians(
        self, descents: list[Descent], running: list[int], goals: Array, m: int
    ) -> int:
        """Products in float64, or Hessians of a larger sample, for problems that need them; the
        size of the last sample."""
        if any(descents[k].stuck for k in running):
            precise = self.problems.use_float64()
            if precise is not self.problems:
                self.problems = precise
                for k in running:
                    descents[k].reevaluate()
                return m
        rows = self.problems.n_rows
        size = rows if 8 * m > rows else 4 * m
        weight = HESSIAN_WEIGHT_KRONECKER if self.kronecker else HESSIAN_WEIGHT
        cost = SPARE_SWEEPS + weight * hessian_cost(self.unknowns) * size / rows
        slow = [
            k
            for k in running
            if descents[k].can_renew and descents[k].remaining_steps(goals[k]) >= cost
        ]
        if not slow:
            return m
        self.trace.print("newton", f"Hessians of {size:,} rows for {len(slow)} problem(s)")
        part = self.problems
        if size < rows:
            part = self.problems.sample(size, seed=size, by_norm=self.by_norm)
        W = [d.W for d in descents]
        found = self._hessians(part, W, slow)
        hessians = list(self.state.hessians)
        hessians = hessians or [(H, self.problems.penalty) for H in found]
        for k, H in zip(slow, found, strict=True):
            hessians[k] = H, self.problems.penalty
        self.state.hessians = hessians
        for k in slow:
            descents[k].retry(self.state.base(self.problems, k))
        return size


def _is_near(descent: Descent, share: float) -> bool:
    """Whether the next step promises no more than this share of the loss."""
    return -descent.slope <= share * abs(descent.evaluation.value)


def _is_separable(descent: Descent, all_rows: bool) -> bool:
    """Whether the classes of a sample are separable: further steps would only scale the weights."""
    return not all_rows and descent.evaluation.errors == 0


def _final_weights(descent: Descent, share: float, all_rows: bool) -> Array:
    """The weights of a sample's solution: one more step is taken without evaluating it, which
    leaves less than the next sample will change."""
    stop = all_rows or descent.stuck or descent.t < 1 or _is_separable(descent, all_rows)
    return descent.trial_point if not stop and _is_near(descent, share) else descent.W


def _is_solved(descent: Descent, share: float, all_rows: bool) -> bool:
    """Whether the optimum of a sample is near enough."""
    done = descent.stuck or descent.steps == MAX_SAMPLE_STEPS or _is_near(descent, share)
    return done or _is_separable(descent, all_rows)
