"""Checks of estimator parameters. The errors name the parameter and the value that was given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    value: Any, name: str, *, low: float, whole: bool = False, open_low: bool = False
) -> Any:
    """A parameter that must be a number >= `low`, or > `low` with `open_low`. Returns it."""
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not (is_number and (value > low if open_low else value >= low)):
        noun = "a whole number" if whole else "a number"
        raise ValueError(f"{name} must be {noun} {'>' if open_low else '>='} {low}, got {value!r}")
    return value


def check_choice(value: Any, name: str, options: Sequence[Any]) -> Any:
    """A parameter that must be one of the options. Returns it."""
    # The test of the type keeps arrays, which do not compare to one truth value, and 1 == True out.
    if not isinstance(value, (*map(type, options), np.bool_)) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value
