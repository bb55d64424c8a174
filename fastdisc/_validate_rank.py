"""The door for what rankers and their metrics are given beside X: queries, grades, pairs, clicks."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ._validate import _column, _encode


def queries(group, n_rows):
    """The (N,) number of each row's query, 0, 1, ..., and how many there are.

    `group` names the query of each row, in any order, or has the sizes of queries whose rows stand together; None is one query.
    """
    if group is None:
        return np.zeros(n_rows, np.int32), 1
    group = np.asarray(group)
    if group.ndim != 1:
        raise ValueError(f"group must have one dimension, got shape {group.shape}")
    if len(group) == n_rows:
        if group.dtype.kind == "f" and np.isnan(group).any():
            raise ValueError(f"group contains NaN, first in row {int(np.isnan(group).argmax())}")
        names, codes = _encode(group)
        return codes, len(names)
    if group.dtype.kind not in "iu" or (group < 0).any() or int(group.sum()) != n_rows:
        adds = f", which add up to {group.sum()}" if group.dtype.kind in "iuf" else ""
        raise ValueError(
            f"group must name a query for each of the {n_rows} rows, or have sizes >= 0 of queries, whole numbers that "
            f"add up to {n_rows}; got {len(group)} values{adds}"
        )
    return np.repeat(np.arange(len(group), dtype=np.int32), group), len(group)


def utilities(y, n_rows, name="y"):
    """(N,) float64, finite: the higher the better."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if name != "y" and y.ndim == 1 and len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} values, expected {n_rows}")
    y = _column(y, n_rows)
    if y.dtype.kind in "cSU":
        raise ValueError(f"{name} must be grades or utilities, numbers of which the higher is the better, got {y.dtype}")
    try:
        y = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{name} must be grades or utilities, numbers of which the higher is the better: {problem}") from problem
    bad = ~np.isfinite(y)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"Input {name} contains {'NaN' if np.isnan(y[row]) else 'infinity'}, first in row {row}")
    return y


def gains(y, kind, name="y"):
    """What a row of each grade brings: the grade itself, or 2^grade - 1."""
    if kind not in ("linear", "exponential"):
        raise ValueError(f"gains must be one of 'linear', 'exponential', got {kind!r}")
    if (y < 0).any():
        row = int((y < 0).argmax())
        raise ValueError(f"{name} must not be negative for discounted gains; in row {row} it is {y[row]:g}")
    if kind == "exponential" and y.max(initial=0) > 1000:
        raise ValueError(f"{name} has grades up to {y.max():g}: 2^grade - 1 is too large. Take gains='linear'")
    return np.exp2(y) - 1 if kind == "exponential" else y


def pairs(pairs, weight, n_rows):
    """(P, 2) int64 of (preferred, other) rows, and their weights, (P,) or (1,)."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"pairs must be (preferred, other) rows, of shape (P, 2) with P >= 1, got shape {pairs.shape}")
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"pairs must be whole numbers of rows, got {pairs.dtype}")
    outside = ((pairs < 0) | (pairs >= n_rows)).any(axis=1)
    if outside.any():
        place = int(outside.argmax())
        raise ValueError(f"pairs: X has {n_rows} rows, and pair {place} is {pairs[place].tolist()}")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise ValueError(f"pairs: pair {int(same.argmax())} prefers row {pairs[same.argmax(), 0]} to itself")
    return np.ascontiguousarray(pairs, dtype=np.int64), weights(weight, len(pairs), "weight", "pair")


def weights(values, count, name, noun):
    """(count,) float64 weights, finite and >= 0, not all 0; (1,) where there are none."""
    if values is None:
        return np.ones(1)
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (count,):
        raise ValueError(f"{name}.shape == {values.shape}, expected {(count,)}: one for each {noun}")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(f"{name} must be finite and >= 0; that of {noun} {place} is {values[place]}")
    if not values.any():
        raise ValueError(f"{name} is zero for every {noun}")
    return np.ascontiguousarray(values)


def skipped(shown, clicked, n_rows):
    """(P, 2) pairs of a click log: each clicked row is preferred to those that were shown above it and not clicked."""
    if len(shown) != len(clicked):
        raise ValueError(f"shown has {len(shown)} lists, clicked has {len(clicked)}")
    found = []
    for place, (rows, clicks) in enumerate(zip(shown, clicked, strict=True)):
        rows, clicks = np.asarray(rows), np.asarray(clicks)
        if not rows.size and not clicks.size:
            continue
        if rows.shape != clicks.shape or rows.ndim != 1:
            raise ValueError(f"list {place} shows {rows.shape} rows and has {clicks.shape} clicks: one for each row")
        if not np.isin(clicks, (0, 1)).all():
            raise ValueError(f"clicked must be 1 for a row that was clicked and 0 for others; in list {place} it is not")
        rows, clicks = _shown(rows, clicks.astype(bool), place, n_rows)
        hit, above = np.nonzero(clicks[:, None] & ~clicks[None, :] & (np.arange(len(rows))[:, None] > np.arange(len(rows))))
        found.append(np.column_stack([rows[hit], rows[above]]))
    found = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    if not len(found):
        raise ValueError("no row was clicked below one that was not: the log tells nothing")
    return pairs(found, None, n_rows)[0]


def _shown(rows, clicks, place, n_rows):
    """The rows of a list that are there, and their clicks: -1 fills up short lists."""
    if rows.dtype.kind not in "iu":
        raise ValueError(f"shown must be whole numbers of rows, got {rows.dtype} in list {place}")
    real = rows != -1
    bad = real & ((rows < 0) | (rows >= n_rows))
    if bad.any():
        raise ValueError(f"X has {n_rows} rows, and list {place} shows row {rows[bad.argmax()]}; -1 fills up short lists")
    rows, clicks = rows[real], clicks[real]
    values, counts = np.unique(rows, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"list {place} shows row {values[counts.argmax()]} twice")
    return rows, clicks


def depth(k, name="k"):
    """How many rows count: all of them for None."""
    if k is None:
        return np.iinfo(np.int64).max
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"{name} must be None or a whole number >= 1, got {k!r}")
    return min(int(k), np.iinfo(np.int64).max)
