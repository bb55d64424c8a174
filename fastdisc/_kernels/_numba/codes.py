"""Checks of codes on entry to a kernel: jitted code never sees one that it has no branch for."""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum

from ..contract import OnlineRule, PairRule
from ..enums import LearningRate, MarginLoss, PairLoss


def checked(name: str, code: int, known: Container[int] | type[IntEnum]) -> int:
    """The code as an int; ValueError if it is unknown."""
    if code not in (known._value2member_map_ if isinstance(known, type) else known):
        raise ValueError(f"the numba backend has no {name} {int(code)}")
    return int(code)


def pair_rule(rule: PairRule) -> PairRule:
    """A rule with the types that jitted code is compiled for."""
    loss = checked("pair loss", rule.loss, PairLoss)
    return PairRule(loss, float(rule.margin), float(rule.width))


def online_rule(rule: OnlineRule) -> OnlineRule:
    """A rule with the types that jitted code is compiled for."""
    return OnlineRule(
        checked("margin loss", rule.loss, MarginLoss),
        checked("learning rate", rule.rate, LearningRate),
        *map(float, rule[2:6]),
        bool(rule.intercept),
        float(rule.begin),
    )
