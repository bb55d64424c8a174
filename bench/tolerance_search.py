"""Whole fits at equal accuracy: each library runs at tighter and tighter tolerances until its
solution is within a gap of the optimum; then all of them are timed in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from measure import timed

TOLERANCES = [10.0**-k for k in range(2, 11)]
# Seconds: after a run that takes longer, no tighter tolerance is tried, and it is not repeated.
MAX_SECONDS = 20.0
OURS = "fastdisc"

Name = tuple[str, str]  # the library, and its solver
Fit = Callable[[float], Any]  # of the tolerance
Row = dict[str, Any]


def scores(X: Any, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """(N, K), also for two classes."""
    Z = X @ np.asarray(coef).T + np.asarray(intercept)
    return np.column_stack([np.zeros(len(Z)), Z]) if Z.shape[1] == 1 else Z


def objective(
    X: Any, y: np.ndarray, C: float, coef: Any, intercept: Any, l1: bool = False
) -> float:
    """C times the cross-entropy, plus half the squared norm of the weights or their L1 norm."""
    Z = scores(X, coef, intercept)
    loss = (np.logaddexp.reduce(Z, axis=1) - Z[np.arange(len(y)), y]).sum()
    return C * loss + (np.abs(coef).sum() if l1 else np.vdot(coef, coef) / 2)


class Evaluator:
    """Objectives of solutions (coef, intercept), relative to the best that was found so far, and
    their accuracy on `test`."""

    def __init__(self, X: Any, y: Any, C: Any = 1.0, test: Any = None):
        self.X, self.y, self.C, self.test = X, y, C, test
        self.best: Any = np.inf

    def objectives(self, solution: Any) -> list[float]:
        return [objective(self.X, self.y, self.C, *solution)]

    def values(self, solution: Any) -> np.ndarray:
        """The objectives, which are stored if they are the best so far."""
        found = np.array(self.objectives(solution))
        self.best = np.minimum(self.best, found)
        return found

    def gap(self, values: np.ndarray) -> float:
        """The largest relative gap."""
        return float((values / self.best).max() - 1)

    def accuracy(self, solution: Any) -> float:
        X, y = self.test
        return float((scores(X, *solution).argmax(axis=1) == y).mean())


class PathEvaluator(Evaluator):
    """L1 solutions, one for each value in C; their accuracy is that of the best."""

    def objectives(self, solutions: Any) -> list[float]:
        pairs = zip(self.C, solutions, strict=True)
        return [objective(self.X, self.y, C, w, b, l1=True) for C, (w, b) in pairs]

    def accuracy(self, solutions: Any) -> float:
        return max(super(PathEvaluator, self).accuracy(solution) for solution in solutions)


class SearchEvaluator(Evaluator):
    """A solution (C, coef, intercept) with the C that was chosen; `optimum(C)` returns the least
    objective for it."""

    def __init__(self, X: Any, y: Any, optimum: Callable[[float], float], test: Any = None):
        super().__init__(X, y, test=test)
        self.optimum, self.best = optimum, 1.0

    def objectives(self, solution: Any) -> list[float]:
        C, coef, intercept = solution
        return [objective(self.X, self.y, C, coef, intercept) / self.optimum(C)]

    def accuracy(self, solution: Any) -> float:
        return super().accuracy(solution[1:])


@dataclass
class Run:
    """A library at one tolerance, and its best time."""

    library: str
    label: str
    tol: float
    seconds: float
    values: np.ndarray
    gap: float
    accuracy: float

    def record(self) -> Row:
        """As JSON takes it."""
        return asdict(self) | {"values": self.values.tolist()}


def first_run(name: Name, fit: Fit, tol: float, evaluator: Evaluator) -> Run:
    seconds, solution = timed(fit, tol)
    values = evaluator.values(solution)
    accuracy = evaluator.accuracy(solution)
    return Run(*name, tol, seconds, values, evaluator.gap(values), accuracy)


def repeat(runs: Sequence[Run], fits: Sequence[Fit], evaluator: Evaluator, rounds: int = 9) -> None:
    """Run all of them in turn, and keep their best times: of three runs that take over a second,
    of `rounds` others."""
    for turn in range(1, rounds):
        for run, fit in zip(runs, fits, strict=True):
            if run.seconds <= (MAX_SECONDS if turn < 3 else 1.0):
                run.seconds = min(run.seconds, timed(fit, run.tol)[0])
    for run in runs:
        run.gap = evaluator.gap(run.values)  # a later run may have found a better optimum


def search_tolerances(
    fits: Mapping[Name, Fit], evaluator: Evaluator, goal: float
) -> tuple[list[Run], dict[str, str]]:
    """The timed runs, each at the loosest tolerance that brings the gap within the goal, or else at
    that of its smallest gap; and for each library that has none, why."""
    runs: dict[Name, Run] = {}
    missing = {}
    for name, fit in fits.items():
        try:
            for tol in TOLERANCES:
                run = first_run(name, fit, tol, evaluator)
                if name not in runs or run.gap < runs[name].gap:
                    runs[name] = run
                if run.gap <= goal or run.seconds > MAX_SECONDS:
                    break
        except Exception as reason:  # it does not support this problem, or takes too long
            if name[0] == OURS:
                raise
            missing[" ".join(name)] = str(reason).splitlines()[0]
    repeat(list(runs.values()), [fits[name] for name in runs], evaluator)
    return list(runs.values()), missing


def fastest(runs: Sequence[Run], goal: float) -> Run:
    """The fastest run within the goal; if there is none, that of the smallest gap."""
    inside = [run for run in runs if run.gap <= goal]
    return min(inside, key=lambda r: r.seconds) if inside else min(runs, key=lambda r: r.gap)


def row(problem: str, runs: Sequence[Run], goal: float, **more: Any) -> Row:
    """A row of the table: our fastest run, and the fastest of the rivals."""
    ours = fastest([run for run in runs if run.library == OURS], goal)
    found: Row = {"problem": problem, "ours": ours.seconds}
    found |= {"gap": ours.gap, "accuracy": ours.accuracy}
    if rivals := [run for run in runs if run.library not in (OURS, "null")]:
        rival = fastest(rivals, goal)
        found |= {"rival": f"{rival.library} {rival.label}"}
        found |= {"theirs": rival.seconds, "rival_gap": rival.gap}
    return found | more


def result(
    rows: Sequence[Row], runs: Sequence[Run] = (), missing: dict[str, str] | None = None
) -> dict[str, Any]:
    """What each benchmark of whole fits returns."""
    return {"rows": list(rows), "runs": [r.record() for r in runs], "missing": missing or {}}
