"""The losses of rows, one table row each. Backends implement one function per loss; solvers and
objectives read the facts below and never test for a particular loss."""

from __future__ import annotations

from typing import NamedTuple

from .enums import PairLoss, RowLoss


class RowLossSpec(NamedTuple):
    """What is known of a loss without evaluating it."""

    name: str
    equation: str  # where EQUATIONS.md states it
    multiple_outputs: bool  # one score per class, or a single score
    curvature_bound: float  # on the largest eigenvalue of d2 loss / dz dz', at unit weight
    convex: bool
    probabilities: bool  # outputs are class probabilities, the curvature is y_j (delta_jk - y_k)

    def curvature_growth(self, K: int) -> float:
        """A bound on the curvature anywhere, relative to that at zero weights; K / 2 for K softmax
        outputs (Bohning's bound)."""
        return max(1.0, K / 2) if self.multiple_outputs else 1.0


# fmt: off
ROW_LOSSES: dict[int, RowLossSpec] = {
    RowLoss.LOGISTIC: RowLossSpec("logistic", "(10.23)", False, 0.25, True, True),
    RowLoss.SOFTMAX: RowLossSpec("softmax", "(10.31)", True, 0.5, True, True),
    # The supremum is 0.077; 0.25 is what the diagonal preconditioner was tuned with.
    RowLoss.SIGMOID_SQUARED: RowLossSpec("sigmoid_squared", "(10.39)", False, 0.25, False, False),
    RowLoss.SQUARED: RowLossSpec("squared", "(4.1.7)", False, 1.0, True, False),
}
# fmt: on


def row_loss(loss: int) -> RowLossSpec:
    """The table row of a loss; an unknown loss is an error."""
    try:
        return ROW_LOSSES[loss]
    except KeyError:
        raise ValueError(f"unknown row loss {loss!r}: not in ROW_LOSSES") from None


class PairLossSpec(NamedTuple):
    """What is known of a loss of ordered pairs."""

    name: str
    curvature_bound: float  # sup of the second derivative by a; of HUBER in units of 1 / width


PAIR_LOSSES: dict[int, PairLossSpec] = {
    PairLoss.HINGE: PairLossSpec("hinge", 1.0),
    PairLoss.SQUARED_HINGE: PairLossSpec("squared_hinge", 2.0),
    PairLoss.HUBER: PairLossSpec("huber", 1.0),
    PairLoss.LOGISTIC: PairLossSpec("logistic", 0.25),
}
