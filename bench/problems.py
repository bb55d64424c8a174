"""Problems: made ones of the shapes that the figures name, and real ones from the folder that FASTDISC_DATA names."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np


@cache
def dense(n, d, K=2, dtype="float64", correlated=False, noise=1.0, seed=0):
    """Gaussian rows, optionally with correlated columns, and classes drawn from a softmax of linear scores / noise: X, y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    if correlated:
        mix = np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)
        X = np.ascontiguousarray((X @ mix).astype(dtype))
    W = rng.standard_normal((K, d)) / np.sqrt(d)
    Z = X @ W.T.astype(X.dtype)
    y = (Z + noise * rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y


@cache
def images(n=60_000, d=784, K=10, dtype="uint8", seed=0):
    """Bytes like an image set's: many zeros, classes that differ in a few pixels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    centers = rng.integers(0, 160, (K, d))
    X = np.where(rng.random((n, d)) < 0.5, 0, np.clip(centers[y] + rng.integers(-60, 60, (n, d)), 0, 255)).astype("uint8")
    return X.astype(dtype), y


@cache
def groups(n=145_000, count=150, d=74, grades=5, seed=0):
    """Rows in queries with relevance grades: X, grades, starts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)
    r = np.searchsorted(np.quantile(score, np.linspace(0, 1, grades + 1)[1:-1]), score).astype(np.int32)
    starts = np.unique(np.concatenate([[0, n], rng.integers(1, n, count - 1)])).astype(np.int64)
    return X, r, starts


def data_folder():
    """The folder with the real data sets."""
    folder = os.environ.get("FASTDISC_DATA")
    if not folder or not Path(folder).is_dir():
        raise FileNotFoundError("set FASTDISC_DATA to the folder with the data sets (higgs_lgb, a9a, ...)")
    return Path(folder)


@cache
def higgs():
    """7,000 x 28, dense, two classes."""
    with gzip.open(data_folder() / "higgs_lgb" / "binary.train.gz") as file:
        table = np.loadtxt(file, delimiter="\t")
    return np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(int)


@cache
def a9a():
    """32,561 x 123, sparse, two classes."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(data_folder() / "a9a" / "a9a.gz"), n_features=123)
    X.indices, X.indptr = (
        X.indices.astype(np.int32),
        X.indptr.astype(np.int32),
    )  # the loader's are 64-bit, which some rivals refuse
    return X, (y > 0).astype(int)
