"""Problems: random ones, and real data sets from the folder in the environment variable
FASTDISC_DATA. Nothing here imports fastdisc, so that any revision can be measured on them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Data = tuple[Any, np.ndarray]  # X and the classes y

# --- random data ----------------------------------------------------------------------------------


@cache
def dense(
    n: int,
    d: int,
    K: int = 2,
    dtype: str = "float64",
    correlated: bool = False,
    noise: float = 1.0,
    seed: int = 0,
) -> Data:
    """Gaussian rows, with correlated columns if asked for, and classes that are drawn from a
    softmax of linear scores / noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    if correlated:
        mix = np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)
        X = np.ascontiguousarray((X @ mix).astype(dtype))
    W = rng.standard_normal((K, d)) / np.sqrt(d)
    Z = X @ W.T.astype(X.dtype)
    y = (Z + noise * rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y


def correlated(n: int, d: int, K: int = 2, part: str = "train", n_test: int = 20_000) -> Data:
    """Dense rows with correlated columns; the test part has the same distribution."""
    X, y = dense(n + n_test, d, K, correlated=True)
    return (X[:n], y[:n]) if part == "train" else (X[n:], y[n:])


@cache
def sparse(n: int, d: int, per_row: int, K: int = 2, part: str = "train", seed: int = 0) -> Data:
    """CSR rows with about `per_row` values, and classes that are drawn from a softmax of linear
    scores; n / 4 further rows are the test part."""
    from scipy.sparse import csr_array, random

    rng = np.random.default_rng(seed)
    X = csr_array(random(n + n // 4, d, per_row / d, format="csr", random_state=rng))
    Z = X @ rng.standard_normal((d, K)) * 2
    y = (Z + 0.3 * rng.gumbel(size=(X.shape[0], K))).argmax(axis=1)
    rows = slice(n) if part == "train" else slice(n, None)
    return with_32_bit_indices(X[rows]), y[rows]


@cache
def images(n: int = 60_000, d: int = 784, K: int = 10, dtype: str = "uint8", seed: int = 0) -> Data:
    """Bytes like those of images: half of them zero, and classes that differ in a few pixels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    centers = rng.integers(0, 160, (K, d))
    is_zero = rng.random((n, d)) < 0.5
    pixels = np.clip(centers[y] + rng.integers(-60, 60, (n, d)), 0, 255)
    return np.where(is_zero, 0, pixels).astype("uint8").astype(dtype), y


@cache
def queries(
    n: int = 145_000, n_queries: int = 150, d: int = 74, grades: int = 5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of queries with equally frequent grades: X, grades, and where the queries start."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)
    levels = np.quantile(score, np.linspace(0, 1, grades + 1)[1:-1])
    r = np.searchsorted(levels, score).astype(np.int32)
    cuts = np.concatenate([[0, n], rng.integers(1, n, n_queries - 1)])
    return X, r, np.unique(cuts).astype(np.int64)


@cache
def rankings(
    n: int, d: int, n_queries: int, shares: Sequence[float], seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of queries with columns of different scales: X, y, and the query of each row. `shares`
    are the shares of the grades 0, 1, ..."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(d))
    score = (X / X.std(axis=0)) @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)
    y = np.searchsorted(np.quantile(score, np.cumsum(shares)[:-1]), score)
    return X, y, np.sort(rng.integers(0, n_queries, n))


# --- data sets ------------------------------------------------------------------------------------


@cache
def digits(part: str = "train") -> Data:
    """1,500 and 297 x 64, dense, 10 classes, standardised."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    return (X[:1500], y[:1500]) if part == "train" else (X[1500:], y[1500:])


def data_folder(name: str = "") -> Path:
    """The folder of a data set in FASTDISC_DATA."""
    folder = os.environ.get("FASTDISC_DATA")
    if not folder or not Path(folder).is_dir():
        raise FileNotFoundError(
            "set FASTDISC_DATA to the folder with the data sets (higgs_lgb, a9a, ...)"
        )
    if not (Path(folder) / name).is_dir():
        raise FileNotFoundError(f"the folder of FASTDISC_DATA, {folder}, has no {name}")
    return Path(folder) / name


@cache
def higgs(part: str = "train") -> Data:
    """7,000 and 500 x 28, dense, two classes."""
    with gzip.open(data_folder("higgs_lgb") / f"binary.{part}.gz") as file:
        table = np.loadtxt(file, delimiter="\t")
    return np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(int)


@cache
def a9a(part: str = "train") -> Data:
    """32,561 and 16,281 x 123, sparse, two classes."""
    from sklearn.datasets import load_svmlight_file

    name = "a9a.gz" if part == "train" else "a9a.t.gz"
    X, y = load_svmlight_file(str(data_folder("a9a") / name), n_features=123)
    return with_32_bit_indices(X), (y > 0).astype(int)


def with_32_bit_indices(X: Any) -> Any:
    """CSR with 32-bit indices. Those of scikit-learn's loaders have 64 bits, which some libraries
    do not support."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


@cache
def covtype() -> Data:
    """581,012 x 54, dense, 7 classes, columns of very different scales; no test part."""
    with gzip.open(data_folder("covtype") / "covtype.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int) - 1


@cache
def fashion_mnist(part: str = "train") -> Data:
    """60,000 and 10,000 x 784 bytes, 10 classes."""
    folder, prefix = data_folder("fashion_mnist"), "train" if part == "train" else "t10k"
    with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16)
    return X.reshape(len(y), -1), y.astype(int)


@cache
def newsgroups(part: str = "train") -> Data:
    """11,293 and 7,528 x 42,254, tf-idf of the words of at least two training texts, 20 classes."""
    vectorizer, names = _newsgroups_vocabulary()
    labels, texts = _newsgroups_texts(part)
    return with_32_bit_indices(vectorizer.transform(texts)), np.searchsorted(names, labels)


@cache
def _newsgroups_vocabulary() -> tuple[Any, np.ndarray]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, texts = _newsgroups_texts("train")
    return TfidfVectorizer(min_df=2).fit(texts), np.unique(labels)


def _newsgroups_texts(part: str) -> Any:
    """Labels and texts: one line each, after four lines of header."""
    path = data_folder("20newsgroups") / f"20newsgroups-{part}.tab.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[4:]
    return zip(*(line.split("\t", 1) for line in lines if line), strict=True)


@cache
def lgb_rank(part: str = "train") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LightGBM's example of ranking, grades 0 to 4: X, grades, sizes of the queries."""
    from sklearn.datasets import load_svmlight_file

    folder = data_folder("lgb_rank")
    with gzip.open(folder / f"rank.{part}.gz") as file:
        X, y = load_svmlight_file(file, n_features=301)
    return X.toarray(), y.astype(int), np.loadtxt(folder / f"rank.{part}.query", dtype=int)
