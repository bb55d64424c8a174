"""The kernels: passes over rows that return sums, in three backends behind one contract.

`contract.py` documents every function and structure; `EQUATIONS.md` fixes the symbols. This package
imports nothing else of fastdisc.
"""

from __future__ import annotations

import importlib
from typing import cast

from .contract import (
    BACKENDS,
    DTYPES,
    NO_OFFSET,
    Batch,
    Grid,
    KernelRows,
    Kernels,
    OnlineRule,
    OnlineState,
    PairRule,
    Queries,
    QueryGrid,
    RowOrder,
)
from .enums import (
    Activation,
    BasisKind,
    LearningRate,
    MarginLoss,
    MomentKind,
    PairLoss,
    RankMetric,
    RowLoss,
)
from .grid import moments_grid, pair_grid, query_grid, row_grid
from .losses import PAIR_LOSSES, ROW_LOSSES, row_loss

__all__ = [
    "BACKENDS",
    "DTYPES",
    "NO_OFFSET",
    "PAIR_LOSSES",
    "ROW_LOSSES",
    "Activation",
    "BasisKind",
    "Batch",
    "Grid",
    "KernelRows",
    "Kernels",
    "LearningRate",
    "MarginLoss",
    "MomentKind",
    "OnlineRule",
    "OnlineState",
    "PairLoss",
    "PairRule",
    "Queries",
    "QueryGrid",
    "RankMetric",
    "RowLoss",
    "RowOrder",
    "load",
    "moments_grid",
    "pair_grid",
    "query_grid",
    "row_grid",
    "row_loss",
]


def load(name: str) -> Kernels:
    """The module of a backend. An ImportError says why it is missing."""
    if name not in BACKENDS:
        names = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"backend must be 'auto' or one of {names}, got {name!r}")
    return cast(Kernels, importlib.import_module(f"{__name__}._{name}"))
