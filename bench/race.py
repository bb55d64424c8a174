"""Races: each contender at ever tighter tolerances until its solution is good enough, then all in turn under the clock."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from time import perf_counter, sleep

import numpy as np
from sklearn.exceptions import ConvergenceWarning

TOLERANCES = [10.0**-k for k in range(2, 11)]
LIMIT = 20.0  # seconds: after a run that takes longer no tighter tolerance is tried, and it is not run again
PAUSE = 0.15  # seconds before a clock starts: OpenBLAS threads of the last contender spin for 0.11, and take a CPU from the next
OURS = "fastdisc"


def scores(X, coef, intercept):
    """(N, K), for two classes too."""
    Z = X @ np.asarray(coef).T + np.asarray(intercept)
    return np.column_stack([np.zeros(len(Z)), Z]) if Z.shape[1] == 1 else Z


def objective(X, y, C, coef, intercept, l1=False):
    """C times the cross-entropy, plus half the squared norm of the weights or their L1 norm."""
    Z = scores(X, coef, intercept)
    loss = (np.logaddexp.reduce(Z, axis=1) - Z[np.arange(len(y)), y]).sum()
    return C * loss + (np.abs(coef).sum() if l1 else np.vdot(coef, coef) / 2)


class Judge:
    """What a solution (coef, intercept) is worth: objectives, beside the least that anybody reaches, and accuracy on `test`."""

    def __init__(self, X, y, C=1.0, test=None):
        self.X, self.y, self.C, self.test, self.floor = X, y, C, test, np.inf

    def objectives(self, solution):
        return [objective(self.X, self.y, self.C, *solution)]

    def values(self, solution):
        """The objectives, noted if they are the least so far."""
        found = np.array(self.objectives(solution))
        self.floor = np.minimum(self.floor, found)
        return found

    def gap(self, values):
        """The largest relative gap."""
        return float((values / self.floor).max() - 1)

    def accuracy(self, solution):
        X, y = self.test
        return float((scores(X, *solution).argmax(axis=1) == y).mean())


class PathJudge(Judge):
    """The same of a list of L1 solutions, one for each value in C; the accuracy is the best of them."""

    def objectives(self, solutions):
        return [objective(self.X, self.y, C, *solution, l1=True) for C, solution in zip(self.C, solutions, strict=True)]

    def accuracy(self, solutions):
        return max(super(PathJudge, self).accuracy(solution) for solution in solutions)


class SearchJudge(Judge):
    """The same of a solution that comes with a C of its own choice; `optimum(C)` returns the least objective there."""

    def __init__(self, X, y, optimum, test=None):
        super().__init__(X, y, test=test)
        self.optimum, self.floor = optimum, 1.0

    def objectives(self, solution):
        C, coef, intercept = solution
        return [objective(self.X, self.y, C, coef, intercept) / self.optimum(C)]

    def accuracy(self, solution):
        return super().accuracy(solution[1:])


@dataclass
class Run:
    """One contender at one tolerance, and its best time."""

    library: str
    label: str
    tol: float
    seconds: float
    values: np.ndarray
    gap: float
    accuracy: float

    def record(self):
        """As JSON takes it."""
        return asdict(self) | {"values": self.values.tolist()}


def timed(call, *arguments):
    """Seconds, and what the call returns. That a solver stopped short is not for a warning to say: its gap does."""
    sleep(PAUSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = perf_counter()
        found = call(*arguments)
        return perf_counter() - begin, found


def turns(calls, rounds):
    """The best time of each call, in turn, with a pause before each: threads of the last one may still spin."""
    times = [[timed(call)[0] for call in calls] for _ in range(rounds)]
    return np.min(times, axis=0).tolist()


def first_run(name, call, tol, judge):
    seconds, solution = timed(call, tol)
    values = judge.values(solution)
    return Run(*name, tol, seconds, values, judge.gap(values), judge.accuracy(solution))


def take_turns(runs, calls, judge, rounds=9):
    """Run all again in turn and keep the best times: of three where a run takes over a second, else of `rounds`."""
    for turn in range(1, rounds):
        for run, call in zip(runs, calls, strict=True):
            if run.seconds <= (LIMIT if turn < 3 else 1.0):
                run.seconds = min(run.seconds, timed(call, run.tol)[0])
    for run in runs:
        run.gap = judge.gap(run.values)  # a later run may have found a lower floor


def race(field, judge, goal):
    """The runs of a field, {(library, label): call(tol)}, and {contender: why it has none}.

    Each is at the loosest tolerance that brings the gap within the goal, or else at that of its best gap.
    """
    runs, missing = {}, {}
    for name, call in field.items():
        try:
            for tol in TOLERANCES:
                run = first_run(name, call, tol, judge)
                if name not in runs or run.gap < runs[name].gap:
                    runs[name] = run
                if run.gap <= goal or run.seconds > LIMIT:
                    break
        except Exception as reason:  # it cannot do this problem, or not in time
            if name[0] == OURS:
                raise
            missing[" ".join(name)] = str(reason).splitlines()[0]
    take_turns(runs.values(), [field[name] for name in runs], judge)
    return list(runs.values()), missing


def fastest(runs, goal):
    """The fastest run within the goal; where none is, that of the best gap."""
    inside = [run for run in runs if run.gap <= goal]
    return min(inside, key=lambda run: run.seconds) if inside else min(runs, key=lambda run: run.gap)


def row(problem, runs, goal, **more):
    """A row of the table: our fastest run, and beside it that of the rivals."""
    ours = fastest([run for run in runs if run.library == OURS], goal)
    found = {"problem": problem, "ours": ours.seconds, "gap": ours.gap, "accuracy": ours.accuracy}
    if rivals := [run for run in runs if run.library not in (OURS, "null")]:
        rival = fastest(rivals, goal)
        found |= {"rival": f"{rival.library} {rival.label}", "theirs": rival.seconds, "rival_gap": rival.gap}
    return found | more
