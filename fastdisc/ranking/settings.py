"""The parameters of the ranker, checked, as the training code reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import runtime
from .._kernels.contract import PairRule
from .._kernels.enums import PairLoss
from .._solvers.registry import SOLVERS
from .._validation.parameters import check_choice, check_number
from .._validation.queries import check_rank_limit

RULES = {
    "hinge": PairRule(PairLoss.HINGE, 0.0),
    "margin": PairRule(PairLoss.HINGE, 1.0),
    "squared_hinge": PairRule(PairLoss.SQUARED_HINGE, 1.0),
    "logistic": PairRule(PairLoss.LOGISTIC),
    "ndcg": PairRule(PairLoss.LOGISTIC),
}
BATCH_SOLVERS = ("newton", "newton-cg", "lbfgs", "proximal")
DEFAULT_TOL = 1e-6
DEFAULT_MARGIN_TOL = 1e-3  # of "margin": the relative gap of the objective
DEFAULT_EPOCHS = 100
MIN_MARGIN_ITER = 1000  # of "margin", whose iterations are those of all smoothed losses


@dataclass(frozen=True)
class Settings:
    """What training depends on besides the data."""

    loss: str
    C: float
    l1_ratio: float
    weighting: str
    truncation: int | None
    gains: str
    solver: str
    tol: float
    max_iter: int | None
    standardize: bool
    eta: float | str
    pairs_per_epoch: int
    random_state: Any
    verbose: int
    backend: str | None
    n_threads: int | None

    @property
    def rule(self) -> PairRule:
        """The loss of a pair."""
        return RULES[self.loss]

    @property
    def is_online(self) -> bool:
        """Whether the weights are learned pair by pair."""
        return self.solver == "online" or self.loss == "hinge"

    @property
    def strengths(self) -> tuple[float, float]:
        """The L1 and L2 penalties on the sum of losses."""
        return self.l1_ratio / self.C, (1 - self.l1_ratio) / self.C

    @property
    def max_epochs(self) -> int:
        """The number of epochs that online training may take."""
        return DEFAULT_EPOCHS if self.max_iter is None else self.max_iter

    def max_iterations(self, solver: str) -> int:
        """The number of iterations that a solver may take."""
        if self.max_iter is not None:
            return self.max_iter
        default = SOLVERS[solver].max_iter
        return max(default, MIN_MARGIN_ITER) if self.loss == "margin" else default


def read_settings(model: Any) -> Settings:
    """The parameters of a PairwiseRanker; ValueError for what is not valid."""
    check_choice(model.loss, "loss", tuple(RULES))
    check_number(model.C, "C", low=0, open_low=True)
    if check_number(model.l1_ratio, "l1_ratio", low=0) > 1:
        raise ValueError(f"l1_ratio must be a number from 0 to 1, got {model.l1_ratio!r}")
    check_choice(model.weighting, "weighting", ("pairs", "queries"))
    check_rank_limit(model.truncation, "truncation")
    check_choice(model.gains, "gains", ("exponential", "linear"))
    check_choice(model.solver, "solver", ("auto", *BATCH_SOLVERS, "online"))
    if model.tol is not None:
        check_number(model.tol, "tol", low=0)
    if model.max_iter is not None:
        check_number(model.max_iter, "max_iter", low=1, whole=True)
    if not (isinstance(model.eta, str) and model.eta == "auto"):
        check_number(model.eta, "eta", low=0, open_low=True)
    check_number(model.pairs_per_epoch, "pairs_per_epoch", low=1, whole=True)
    check_number(model.verbose, "verbose", low=0, whole=True)
    for name in ("standardize", "warm_start"):
        check_choice(getattr(model, name), name, (True, False))
    runtime.check(model.backend, model.n_threads)
    default_tol = DEFAULT_MARGIN_TOL if model.loss == "margin" else DEFAULT_TOL
    return Settings(
        loss=model.loss,
        C=model.C,
        l1_ratio=model.l1_ratio,
        weighting=model.weighting,
        truncation=model.truncation,
        gains=model.gains,
        solver=model.solver,
        tol=default_tol if model.tol is None else model.tol,
        max_iter=model.max_iter,
        standardize=model.standardize,
        eta=model.eta,
        pairs_per_epoch=model.pairs_per_epoch,
        random_state=model.random_state,
        verbose=model.verbose,
        backend=model.backend,
        n_threads=model.n_threads,
    )
