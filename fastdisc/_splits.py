"""Which rows are held out together: scikit-learn's splitters, and its stratified folds without the time that they take."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.model_selection import check_cv


def splits(cv, y, r, K):
    """Training and test rows of each fold, pairs of arrays of row numbers; r (N,) are the codes of the labels y."""
    codes = _plain(cv, r, K)
    if codes is not None:
        return [(np.flatnonzero(codes != f), np.flatnonzero(codes == f)) for f in range(codes.max() + 1)]
    folds = check_cv(cv, y, classifier=True).split(np.zeros(len(r)), y)
    return [tuple(_numbers(rows, len(r), f) for rows in fold) for f, fold in enumerate(folds)]


def _numbers(rows, n, f):
    """Row numbers, from numbers or a mask."""
    try:
        return np.arange(n)[np.asarray(rows)]
    except IndexError as problem:
        raise ValueError(f"cv: fold {f} has rows that X, with its {n} rows, does not have: {problem}") from problem


def fold_codes(cv, r, K):
    """The fold in which each row is held out (N,), the number of parts, and how many of them are folds.

    Rows that no fold holds out make one part more.
    """
    codes = _plain(cv, r, K)
    if codes is not None:
        return codes, int(codes.max()) + 1, int(codes.max()) + 1
    folds, codes = splits(cv, r, r, K), np.full(len(r), -1, np.int32)
    for f, (train, test) in enumerate(folds):
        if (codes[test] >= 0).any() or len(np.unique(np.concatenate([train, test]))) < len(r) or len(train) + len(test) > len(r):
            raise ValueError("cv must hold out each row at most once, and train on all others: folds, not random splits")
        codes[test] = f
    rest = codes < 0
    codes[rest] = len(folds)
    return codes, len(folds) + bool(rest.any()), len(folds)


def _plain(cv, r, K):
    """The stratified fold of each row where `cv` is a number of folds, or None for 5; None if scikit-learn has to say."""
    folds, counts = 5 if cv is None else cv, np.bincount(r, minlength=K)
    return stratified(r, counts, folds) if isinstance(folds, Integral) and 2 <= folds <= counts.min() else None


def stratified(r, counts, folds):
    """The folds of scikit-learn's StratifiedKFold: on a million rows its own take longer than all the rest here.

    With the classes in the order of their first rows, one after the other, each fold gets every `folds`-th row's class; how many
    of a class are a fold's own is then a matter of counts.
    """
    order = np.argsort(r.astype(np.uint16) if len(counts) < 1 << 16 else r, kind="stable")  # of short numbers by radix
    ends = np.cumsum(counts)
    starts = ends - counts
    codes, place = np.empty(len(r), np.int32), 0
    for k in np.argsort(order[starts]):  # the class whose first row comes first
        taken = np.bincount((place + np.arange(counts[k])) % folds, minlength=folds)
        codes[order[starts[k] : ends[k]]] = np.repeat(np.arange(folds), taken)
        place += counts[k]
    return codes
