"""Training of the ranker: from checked data and settings to weights.

Smooth losses have one objective. "margin" is solved by smoothed losses, "ndcg" by rounds, and
online training runs epochs of updates.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._data.query_order import ideal_gains, pair_totals
from .._data.rows import Rows
from .._kernels.contract import Array, PairRule
from .._kernels.enums import PairLoss
from .._objectives.coordinates import Problem
from .._objectives.pair_epochs import PairEpochs
from .._objectives.pair_sums import PairSums
from .._objectives.penalized import Penalized
from .._objectives.query_sums import QuerySums
from .._objectives.score_sums import EMPTY
from .._solvers import lbfgs, online_ranking, smoothed
from .._solvers.registry import SOLVERS, choose_solver
from .._solvers.result import History, Result, Trace
from .._validation.queries import check_gains, check_rank_limit
from .ndcg_rounds import solve_rounds
from .settings import Settings

# Without queries, the logistic losses compare all rows with each other: 13 s per sweep of so many
# pairs, at 1.3 ns each.
MAX_SINGLE_QUERY_PAIRS = 10_000_000_000
SMOOTHED_SOLVERS = {"newton": smoothed.newton, "newton-cg": smoothed.newton_cg}  # of "margin"

Data = QuerySums | PairSums


class Solution(NamedTuple):
    """The weights of raw features, and how they were found."""

    weights: Array  # (d,)
    solver: str
    n_pairs: int
    n_iter: int
    converged: bool
    gradient_norm: float  # for "margin" the relative gap; NaN for online training
    history: History
    scale: Array | None = None  # of the columns, with `standardize`


# --- data -------------------------------------------------------------------------------------


def row_weights(
    group: Array, y: Array, s: Array, q: Array, n_queries: int, settings: Settings
) -> Array:
    """Weights of rows, (N,) or (1,), whose products are the weights of pairs.

    `s` has the weights of rows, and `q` those of queries, (Q,) or (1,). Each of the two rows of a
    pair contributes the square root of its query's weight.
    """
    if settings.weighting == "queries":
        totals = pair_totals(group, y, s, n_queries)
        q = q * np.divide(1.0, totals, out=np.zeros(n_queries), where=totals > 0)
    return s * np.sqrt(q[group] if len(q) > 1 else q)


def make_query_data(
    X: Rows,
    group: Array,
    y: Array,
    s: Array,
    settings: Settings,
    offset: Array = EMPTY,
    *,
    may_be_empty: bool = False,
) -> QuerySums:
    """The loss over the ordered pairs within queries; ValueError if there are none, unless they may
    be missing."""
    gain = check_gains(y, settings.gains) if settings.loss == "ndcg" else EMPTY
    options: dict[str, Any] = {"backend": settings.backend, "n_threads": settings.n_threads}
    data = QuerySums(X, group, y, s, settings.rule, offset=offset, **options)
    if data.total_weight == 0 and not may_be_empty:
        raise ValueError(
            "there is no order to learn: no two rows of a query that have a weight differ in y "
            f"(n_samples={len(y)})"
        )
    if not len(gain):
        return data
    k = check_rank_limit(settings.truncation, "truncation")
    return data.replace(gain=ideal_gains(gain, s, group, data.queries.starts, k))


def make_pair_data(
    X: Rows, pairs: Array, s: Array, settings: Settings, offset: Array = EMPTY
) -> PairSums:
    """The loss over given pairs of rows."""
    options: dict[str, Any] = {"backend": settings.backend, "n_threads": settings.n_threads}
    return PairSums(X, pairs, s, settings.rule, offset=offset, **options)


def warn_single_query(data: QuerySums, settings: Settings) -> None:
    """Warn if all rows are one query and a sweep over its pairs takes very long."""
    if settings.solver == "online" or data.rule.loss != PairLoss.LOGISTIC:
        return
    if data.n_pairs > MAX_SINGLE_QUERY_PAIRS:
        warnings.warn(
            f"without group all {data.n_rows:,} rows are one query: each sweep looks at "
            f"{data.n_pairs:,} pairs. Pass group, or take loss='squared_hinge' or 'margin', which "
            "do not look at each pair.",
            UserWarning,
            stacklevel=4,
        )


# --- solutions --------------------------------------------------------------------------------


def solve(data: Data, start: Array | None, settings: Settings) -> Solution:
    """The weights that minimise the loss, from `start`, (d,), or from the solver's own start."""
    if settings.is_online:
        return _solve_online(data, start, settings)
    problem = Problem(data, intercept=False, standardize=settings.standardize)
    W = np.zeros(problem.shape)
    if start is not None:
        W = problem.to_solver(_with_intercept(start))
    solver = _choose(problem, settings)
    result = _minimise(problem, W, solver, settings)
    return Solution(
        weights=problem.to_raw(result.W)[0, 1:].copy(),
        solver=solver,
        n_pairs=data.n_pairs,
        n_iter=max(1, int(result.n_iter)),
        converged=bool(result.converged),
        gradient_norm=float(result.gradient_norm),
        history=result.history,
        scale=problem.scale if settings.standardize else None,
    )


def _with_intercept(w: Array) -> Array:
    """Weights (d,) with an intercept of 0, (1, d+1)."""
    return np.concatenate([[0.0], w])[None, :]


def _choose(problem: Problem, settings: Settings) -> str:
    """The name of the solver."""
    l1, l2 = settings.strengths
    name = settings.solver
    if name == "auto":
        name = choose_solver(problem.penalized(l2), l1)
    if l1 and name != "proximal":
        raise ValueError(
            f"solver {name!r} does not support an L1 penalty: take solver='auto' or 'proximal'"
        )
    if settings.loss == "margin" and name == "newton" and not problem.data.hessian_is_exact:
        return "newton-cg"  # few pairs have curvature, and a sample would miss them
    return name


def _minimise(problem: Problem, W: Array, solver: str, settings: Settings) -> Result:
    """The solution in the solver's coordinates."""
    l1, l2 = settings.strengths
    run = SOLVERS[solver].solve
    if settings.loss == "margin":
        run = SMOOTHED_SOLVERS.get(solver, run)
    if solver == "proximal":
        run = partial(run, l1=problem.l1(l1), backend=settings.backend)
    trace = Trace(settings.verbose)
    limits: dict[str, Any] = {"tol": settings.tol, "trace": trace}
    limits["max_iter"] = settings.max_iterations(solver)
    if settings.loss == "margin":
        return _minimise_margin(problem, W, settings, inner=run, **limits)
    if settings.loss == "ndcg":

        def solve_round(data: QuerySums, W: Array) -> Result:
            return run(problem.penalized(l2, data), W, **limits)

        options = {"truncation": settings.truncation, "gains": settings.gains, "trace": trace}
        return solve_rounds(problem, W, solve_round, **options)  # type: ignore[arg-type]
    return run(problem.penalized(l2), W, **limits)


def _minimise_margin(
    problem: Problem, W: Array, settings: Settings, inner: smoothed.Solve, **limits: Any
) -> Result:
    """The hinge with a margin, by smoothed losses. The gap is certified if there is an L2 penalty
    and no other."""
    l1, l2 = settings.strengths

    def objectives(width: float) -> Penalized:
        rule = PairRule(PairLoss.HUBER, settings.rule.margin, width)
        return problem.penalized(l2, problem.data.replace(rule=rule))

    return smoothed.solve(
        objectives,
        problem.penalized(l2).value,
        W,
        inner=inner,
        certified=not l1 and bool(np.isfinite(settings.C)),
        fallback=None if l1 else lbfgs.solve,
        **limits,
    )


# --- online -----------------------------------------------------------------------------------


def _solve_online(data: Data, start: Array | None, settings: Settings) -> Solution:
    """Epochs until no pair is out of order, or until the updates do not become fewer."""
    if settings.l1_ratio:
        raise ValueError("solver 'online' does not support a penalty: l1_ratio must be 0")
    if settings.solver not in ("auto", "online"):
        raise ValueError(
            f"solver {settings.solver!r} cannot minimise loss 'hinge', whose minimum is at zero "
            "weights: take solver='online', or loss='margin'"
        )
    if settings.standardize or settings.loss == "ndcg" or len(data.offset):
        raise ValueError("solver 'online' does not support standardize, offset or loss 'ndcg'")
    epochs = _make_epochs(data, settings)
    w = epochs.start() if start is None else start
    limits = {"max_iter": settings.max_epochs, "verbose": settings.verbose}
    w, history, converged = online_ranking.solve(epochs, w, **limits)
    n_iter = len(history["updates"])
    return Solution(w, "online", data.n_pairs, n_iter, converged, np.nan, history)


def continue_online(data: Data, start: Array | None, n_before: int, settings: Settings) -> Solution:
    """One epoch over further rows; `n_before` epochs came before it, and `start` is theirs."""
    epochs = _make_epochs(data, settings, n_before)
    w = epochs.start() if start is None else start
    updates = epochs.run(w) if data.n_pairs else 0
    history: History = {"updates": [updates]}
    is_ordered = epochs.is_ordered(w, updates)
    return Solution(w, "online", data.n_pairs, n_before + 1, is_ordered, np.nan, history)


def _make_epochs(data: Data, settings: Settings, n_before: int = 0) -> PairEpochs:
    seed = int(check_random_state(settings.random_state).randint(2**31)) + n_before
    rng = np.random.default_rng(seed)
    return PairEpochs(data, eta=settings.eta, max_pairs=settings.pairs_per_epoch, rng=rng)


def warn_not_converged(solution: Solution, settings: Settings) -> None:
    """Warn if a solver stopped short of its goal. Rounds of "ndcg" may not end though each of them
    has reached `tol`: that is no reason to warn."""
    if solution.converged:
        return
    if solution.solver == "online":
        text = (
            f"solver 'online' stopped after {solution.n_iter} epochs, the last with "
            f"{solution.history['updates'][-1]} updates: perhaps no weights put all pairs in "
            "order. Raise max_iter, or take another solver."
        )
    elif settings.loss == "ndcg" and solution.gradient_norm <= settings.tol:
        return
    else:
        what = "gap" if settings.loss == "margin" else "gradient"
        text = (
            f"solver {solution.solver!r} stopped after {solution.n_iter} iterations with the "
            f"{what} at {solution.gradient_norm:.1e}; tol is {settings.tol:g}. Raise max_iter, or "
            "take C smaller, or another solver."
        )
    warnings.warn(text, ConvergenceWarning, stacklevel=5)
