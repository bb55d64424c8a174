"""Validation of what rankers and metrics take besides X: queries, grades, pairs and clicks."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._kernels.contract import Array
from .labels import check_column, encode_values

MAX_GRADE = 1000  # of exponential gains: 2^grade must be finite


def check_queries(group: Any, n_rows: int) -> tuple[Array, int]:
    """The number of each row's query, (N,) int32, and the number of queries.

    `group` has the query of each row, in any order, or the sizes of queries of consecutive rows.
    None is a single query.
    """
    if group is None:
        return np.zeros(n_rows, np.int32), 1
    group = np.asarray(group)
    if group.ndim != 1:
        raise ValueError(f"group must have one dimension, got shape {group.shape}")
    if len(group) == n_rows:
        if group.dtype.kind == "f" and np.isnan(group).any():
            row = int(np.isnan(group).argmax())
            raise ValueError(f"group contains NaN, first in row {row}")
        names, codes = encode_values(group)
        return codes, len(names)
    if group.dtype.kind not in "iu" or (group < 0).any() or int(group.sum()) != n_rows:
        sums = f", which add up to {group.sum()}" if group.dtype.kind in "iuf" else ""
        raise ValueError(
            f"group must name a query for each of the {n_rows} rows, or have sizes >= 0 of "
            f"queries, whole numbers that add up to {n_rows}; got {len(group)} values{sums}"
        )
    return np.repeat(np.arange(len(group), dtype=np.int32), group), len(group)


def check_utilities(y: Any, n_rows: int, name: str = "y") -> Array:
    """Grades or utilities, (N,) float64 and finite: the higher the better."""
    if y is not None:
        y = np.asarray(y)
        if name != "y" and y.ndim == 1 and len(y) != n_rows:
            raise ValueError(f"{name} has {len(y)} values, expected {n_rows}")
    y = check_column(y, n_rows)
    message = f"{name} must be grades or utilities, numbers of which the higher is the better"
    if y.dtype.kind in "cSU":
        raise ValueError(f"{message}, got {y.dtype}")
    try:
        y = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{message}: {error}") from error
    bad = ~np.isfinite(y)
    if bad.any():
        row = int(bad.argmax())
        what = "NaN" if np.isnan(y[row]) else "infinity"
        raise ValueError(f"Input {name} contains {what}, first in row {row}")
    return y


def check_gains(y: Array, kind: Any, name: str = "y") -> Array:
    """The gains of graded rows, (N,): the grade itself, or 2^grade - 1."""
    if kind not in ("linear", "exponential"):
        raise ValueError(f"gains must be one of 'linear', 'exponential', got {kind!r}")
    if (y < 0).any():
        row = int((y < 0).argmax())
        raise ValueError(
            f"{name} must not be negative for discounted gains; in row {row} it is {y[row]:g}"
        )
    if kind == "linear":
        return y
    if y.max(initial=0) > MAX_GRADE:
        raise ValueError(
            f"{name} has grades up to {y.max():g}: 2^grade - 1 is too large. Use gains='linear'"
        )
    return np.exp2(y) - 1


def check_pairs(pairs: Any, weight: Any, n_rows: int) -> tuple[Array, Array]:
    """(P, 2) int64 of (preferred, other) rows, and the weights of the pairs, (P,) or (1,)."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(
            "pairs must be (preferred, other) rows, of shape (P, 2) with P >= 1, "
            f"got shape {pairs.shape}"
        )
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"pairs must be whole numbers of rows, got {pairs.dtype}")
    outside = ((pairs < 0) | (pairs >= n_rows)).any(axis=1)
    if outside.any():
        place = int(outside.argmax())
        raise ValueError(f"pairs: X has {n_rows} rows, and pair {place} is {pairs[place].tolist()}")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        place = int(same.argmax())
        raise ValueError(f"pairs: pair {place} prefers row {pairs[place, 0]} to itself")
    s = check_weights(weight, len(pairs), "weight", "pair")
    return np.ascontiguousarray(pairs, dtype=np.int64), s


def check_weights(values: Any, count: int, name: str, noun: str) -> Array:
    """Weights of queries or pairs, (count,) float64, finite and >= 0, not all 0; (1,) for None."""
    if values is None:
        return np.ones(1)
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (count,):
        raise ValueError(
            f"{name}.shape == {values.shape}, expected {(count,)}: one for each {noun}"
        )
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"{name} must be finite and >= 0; that of {noun} {place} is {values[place]}"
        )
    if not values.any():
        raise ValueError(f"{name} is zero for every {noun}")
    return np.ascontiguousarray(values)


def pairs_from_clicks(shown: Sequence[Any], clicked: Sequence[Any], n_rows: int) -> Array:
    """(P, 2) pairs of a click log: a clicked row is preferred to the rows that were shown above it
    and not clicked."""
    if len(shown) != len(clicked):
        raise ValueError(f"shown has {len(shown)} lists, clicked has {len(clicked)}")
    found = []
    for place, (rows, clicks) in enumerate(zip(shown, clicked, strict=True)):
        rows, clicks = np.asarray(rows), np.asarray(clicks)
        if not rows.size and not clicks.size:
            continue
        rows, clicks = _check_list(rows, clicks, place, n_rows)
        position = np.arange(len(rows))
        is_above = position[:, None] > position
        hit, skipped = np.nonzero(clicks[:, None] & ~clicks[None, :] & is_above)
        found.append(np.column_stack([rows[hit], rows[skipped]]))
    pairs = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    if not len(pairs):
        raise ValueError(
            "no row was clicked below one that was not clicked: the log has no information about "
            "preferences"
        )
    return check_pairs(pairs, None, n_rows)[0]


def _check_list(rows: Array, clicks: Array, place: int, n_rows: int) -> tuple[Array, Array]:
    """The rows of one list, and whether each was clicked; without -1, which pads short lists."""
    if rows.shape != clicks.shape or rows.ndim != 1:
        raise ValueError(
            f"list {place} shows {rows.shape} rows and has {clicks.shape} clicks: one for each row"
        )
    if not np.isin(clicks, (0, 1)).all():
        raise ValueError(
            "clicked must be 1 for a row that was clicked and 0 for others; "
            f"in list {place} it is not"
        )
    if rows.dtype.kind not in "iu":
        raise ValueError(f"shown must be whole numbers of rows, got {rows.dtype} in list {place}")
    real = rows != -1
    bad = real & ((rows < 0) | (rows >= n_rows))
    if bad.any():
        raise ValueError(
            f"X has {n_rows} rows, and list {place} shows row {rows[bad.argmax()]}; "
            "-1 pads short lists"
        )
    rows, clicks = rows[real], clicks[real].astype(bool)
    values, counts = np.unique(rows, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"list {place} shows row {values[counts.argmax()]} twice")
    return rows, clicks


def check_rank_limit(k: Any, name: str = "k") -> int:
    """The number of ranks that count; a very large number for None, which means all."""
    limit = int(np.iinfo(np.int64).max)
    if k is None:
        return limit
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"{name} must be None or a whole number >= 1, got {k!r}")
    return min(int(k), limit)
