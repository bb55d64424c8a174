"""Quasi-Newton descent as a state machine: it says where to evaluate next, and is given the result.

One problem is a loop around `trial_point` and `receive`; the trial points of many problems over
shared rows are evaluated in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._kernels.contract import Array
from .._objectives.protocol import Evaluation, gradient_norm
from .line_search import MIN_STEP, ROUNDING, next_step
from .preconditioners import Preconditioner, inverse_hessian
from .result import Result, Trace, make_result

Pair = tuple[Array, Array]  # a step, and the change of the gradient along it
MAX_MEMORY = 1_000_000  # numbers in the pairs of all problems
MIN_PAIRS, MAX_PAIRS = 10, 100
# Steps without a decrease beyond rounding, and the share of the gradient norm that must be gone.
MAX_STALLED, MIN_PROGRESS = 4, 0.5


def memory_size(unknowns: int) -> int:
    """Pairs that cost little compared with a sweep."""
    return int(np.clip(MAX_MEMORY // unknowns, MIN_PAIRS, MAX_PAIRS))


def two_loop_recursion(g: Array, pairs: Sequence[Pair], base: Preconditioner) -> Array:
    """The base preconditioner, corrected by the pairs (limited-memory BFGS), times g."""
    q, shares = g.copy(), []
    for s, y in reversed(pairs):
        shares.append(np.vdot(s, q) / np.vdot(s, y))
        q -= shares[-1] * y
    q = base(q)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += s * (share - np.vdot(y, q) / np.vdot(s, y))
    return q


class Descent:
    """One problem: where it is, and the step that it wants to try.

    1. the direction: the preconditioner, corrected by the last pairs, times the gradient
    2. a step along it: 1 unless that overshoots
    3. remember the pair
    4. if no step lowers the loss, forget the pairs; if there are none, no progress is possible with
       this preconditioner (`stuck`)
    """

    def __init__(
        self,
        W: Array,
        base: Preconditioner | None,
        *,
        shift_invariant: bool,
        memory: int,
        first_shortening: float | None = None,
        record: Callable[[Evaluation, Array], bool] | None = None,
    ):
        self.W, self.base, self.shift_invariant, self.memory = W, base, shift_invariant, memory
        self.first_shortening, self.record = first_shortening, record
        self.found: Evaluation | None = None
        self.pairs: list[Pair] = []
        self.p, self.slope, self.t = np.zeros_like(W), 0.0, 0.0
        self.steps = 0  # accepted
        self.norms: list[float] = []  # of the gradient, at the last steps
        self.stalled, self.forgot, self.stuck, self.stopped = 0, False, False, False
        self.again = False  # the next evaluation repeats the last one, more precisely
        self.exhausted = False  # steps no longer lower the loss beyond rounding
        self.renewed_at = -1  # steps at the last `retry`
        self.last_hessian: Array | None = None

    @property
    def trial_point(self) -> Array:
        """Where to evaluate next."""
        return self.W + self.t * self.p

    @property
    def norm(self) -> float:
        """The gradient norm at the last accepted step."""
        return self.norms[-1]

    @property
    def shortened(self) -> bool:
        """Whether the step that is tried is shorter than a full one."""
        return self.found is not None and self.t < 1

    @property
    def evaluation(self) -> Evaluation:
        assert self.found is not None
        return self.found

    def receive(self, trial: Evaluation) -> None:
        """Given the evaluation at `trial_point`, accept or shorten the step; choose the next."""
        if self.found is not None:
            shorter = next_step(self.found, self.slope, self.p, self.t, trial)  # 2
            if shorter is not None:
                if self.t == 1 and self.first_shortening is not None:
                    shorter = self.first_shortening
                self.t = shorter
                if shorter < MIN_STEP:
                    self._forget()
                return
            y = trial.gradient - self.found.gradient
            if np.vdot(self.p, y) > 0:  # 3; a loss that is not convex may curve the other way
                self.pairs = [*self.pairs[1 - self.memory :], (self.t * self.p, y)]
            decrease = self.found.value - trial.value
            self.stalled = self.stalled + 1 if decrease <= ROUNDING * abs(self.found.value) else 0
            self.steps, self.forgot = self.steps + 1, False
        self.W, self.found = self.trial_point, trial
        self.norms = [*self.norms[-3:], gradient_norm(trial.gradient)]
        if self.record is not None and not self.again:
            self.stopped = self.record(trial, self.W)
        self.again = False
        if self.stalled >= MAX_STALLED and self.norm > MIN_PROGRESS * self.norms[0]:
            self.stuck = self.exhausted = True
        base = self.base
        if trial.hessian is not None:
            self.last_hessian = trial.hessian
            base = inverse_hessian(trial.hessian, self.W.shape, self.shift_invariant)
        self.set_direction(base)

    def set_direction(self, base: Preconditioner | None) -> None:
        """Choose the next direction, with a base that may be new."""
        assert base is not None and self.found is not None
        if base is not self.base:
            self.base, self.pairs, self.norms = base, [], self.norms[-1:]
        self.p = -two_loop_recursion(self.found.gradient, self.pairs, self.base)  # 1
        self.t, self.slope = 1.0, float(np.vdot(self.found.gradient, self.p))
        if not self.slope < 0:
            self._forget()

    def _forget(self) -> None:  # 4
        self.stuck, self.forgot = self.stuck or self.forgot or not self.pairs, True
        self.pairs = []
        if not self.stuck:
            self.set_direction(self.base)

    def retry(self, base: Preconditioner | None = None) -> None:
        """Go on from here with a new base."""
        self.stuck, self.forgot, self.renewed_at = False, False, self.steps
        self.set_direction(base)

    @property
    def can_renew(self) -> bool:
        """Whether a new base may help: not twice at the same weights."""
        return not self.exhausted and self.steps != self.renewed_at

    def reevaluate(self) -> None:
        """Evaluate the present weights again, because the objective has become more precise."""
        self.found, self.pairs, self.t, self.stalled = None, [], 0.0, 0
        self.stuck, self.forgot, self.again, self.exhausted = False, False, True, False
        self.norms = self.norms[:-1]

    def finished(self, goal: float, max_iter: int) -> bool:
        """Whether the tolerance or the number of iterations is reached."""
        if self.found is None:
            return False
        return self.stopped or self.norm <= goal or self.steps >= max_iter

    def remaining_steps(self, goal: float) -> float:
        """Steps to the goal at the present rate of convergence."""
        if self.stuck:
            return np.inf
        if not goal or len(self.norms) < 2:
            return 0.0
        rate = min(0.95, (self.norm / self.norms[0]) ** (1 / (len(self.norms) - 1)))
        return float(np.log(self.norm / goal) / -np.log(rate))

    @property
    def accept_unverified(self) -> bool:
        """Whether the next step may be taken without evaluating it: the last one reduced the
        gradient fourfold, and the next is at most half as long.

        The gradient alone would not do: a class of 9 rows among 60,000 has almost no part in it,
        and steps of its own.
        """
        if self.stuck or self.t != 1 or len(self.norms) < 2 or not self.pairs:
            return False
        if self.norm > self.norms[-2] / 4:
            return False
        return bool(np.abs(self.p).max() <= np.abs(self.pairs[-1][0]).max() / 2)

    def result(self, tol: float, start: float, trace: Trace) -> Result:
        """Where it stopped; one step further than it evaluated if that step is safe."""
        converged = self.norm <= tol * start and not self.stopped
        W = self.trial_point if converged and self.accept_unverified else self.W
        return make_result(W, self.norm, start, tol, self.steps, trace, self.W)
