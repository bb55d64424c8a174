"""Cross-validation splits: those of scikit-learn, with faster stratified folds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from .._kernels.contract import Array


def split_rows(cv: Any, y: Any, r: Array, K: int) -> list[tuple[Array, Array]]:
    """Training and test rows of each fold, as row numbers. r (N,) are the codes of the labels y."""
    codes = _stratified_codes(cv, r, K)
    if codes is not None:
        folds = range(int(codes.max()) + 1)
        return [(np.flatnonzero(codes != f), np.flatnonzero(codes == f)) for f in folds]
    splits = check_cv(cv, y, classifier=True).split(np.zeros(len(r)), y)
    return [
        (_row_numbers(train, len(r), f), _row_numbers(test, len(r), f))
        for f, (train, test) in enumerate(splits)
    ]


def _row_numbers(rows: Any, n: int, f: int) -> Array:
    """Row numbers, from numbers or a mask."""
    try:
        return np.arange(n)[np.asarray(rows)]
    except IndexError as error:
        raise ValueError(
            f"cv: fold {f} has rows that X, with its {n} rows, does not have: {error}"
        ) from error


def fold_codes(cv: Any, r: Array, K: int) -> tuple[Array, int, int]:
    """The fold in which each row is held out, (N,) int32; the number of parts; the number of folds.

    Rows that no fold holds out are an additional part.
    """
    codes = _stratified_codes(cv, r, K)
    if codes is not None:
        n_folds = int(codes.max()) + 1
        return codes, n_folds, n_folds
    folds, codes = split_rows(cv, r, r, K), np.full(len(r), -1, np.int32)
    for f, (train, test) in enumerate(folds):
        is_partition = len(np.unique(np.concatenate([train, test]))) == len(r) and (
            len(train) + len(test) == len(r)
        )
        if (codes[test] >= 0).any() or not is_partition:
            raise ValueError(
                "cv must hold out each row at most once, and train on all others: folds, not "
                "random splits"
            )
        codes[test] = f
    rest = codes < 0
    codes[rest] = len(folds)
    return codes, len(folds) + bool(rest.any()), len(folds)


def _stratified_codes(cv: Any, r: Array, K: int) -> Array | None:
    """The stratified fold of each row if `cv` is a number of folds, or None for 5; otherwise None:
    scikit-learn makes the split, or raises."""
    counts = np.bincount(r, minlength=K)
    n_folds = 5 if cv is None else int(cv) if isinstance(cv, Integral) else 0
    return stratified_folds(r, counts, n_folds) if 2 <= n_folds <= counts.min() else None


def stratified_folds(r: Array, counts: Array, n_folds: int) -> Array:
    """The folds of scikit-learn's StratifiedKFold, (N,) int32. On a million rows that class takes
    longer than the rest of a cross-validation from moments.

    The classes are laid out one after the other, in the order of their first rows, and the places
    are dealt to the folds in turn. This fixes how many rows of a class each fold has; the rows of a
    class are then assigned to the folds in order.
    """
    # A stable sort of 16-bit integers is a radix sort.
    order = np.argsort(r.astype(np.uint16) if len(counts) < 1 << 16 else r, kind="stable")
    ends = np.cumsum(counts)
    starts = ends - counts
    codes, place = np.empty(len(r), np.int32), 0
    for k in np.argsort(order[starts]):  # the class whose first row comes first
        taken = np.bincount((place + np.arange(counts[k])) % n_folds, minlength=n_folds)
        codes[order[starts[k] : ends[k]]] = np.repeat(np.arange(n_folds), taken)
        place += counts[k]
    return codes
