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


def made(n, d, K=2, part="train", others=20_000):
    """Correlated dense rows; the test part is another 20,000 of the same distribution."""
    X, y = dense(n + others, d, K, correlated=True)
    return (X[:n], y[:n]) if part == "train" else (X[n:], y[n:])


@cache
def sparse(n, d, each, K=2, part="train", seed=0):
    """CSR rows of about `each` values, and classes drawn from a softmax of linear scores; a fifth of them are the test part."""
    from scipy.sparse import csr_array, random

    rng = np.random.default_rng(seed)
    X = csr_array(random(n + n // 4, d, each / d, format="csr", random_state=rng))
    y = (X @ rng.standard_normal((d, K)) * 2 + 0.3 * rng.gumbel(size=(X.shape[0], K))).argmax(axis=1)
    rows = slice(n) if part == "train" else slice(n, None)
    return narrow(X[rows]), y[rows]


@cache
def digits(part="train"):
    """1,500 and 297 x 64, dense, 10 classes, standardised."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    return (X[:1500], y[:1500]) if part == "train" else (X[1500:], y[1500:])


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


def data_folder(name=""):
    """The folder with the real data sets, or that of one of them."""
    folder = os.environ.get("FASTDISC_DATA")
    if not folder or not Path(folder).is_dir():
        raise FileNotFoundError("set FASTDISC_DATA to the folder with the data sets (higgs_lgb, a9a, ...)")
    if not (Path(folder) / name).is_dir():
        raise FileNotFoundError(f"the folder that FASTDISC_DATA names, {folder}, has no {name}")
    return Path(folder) / name


@cache
def higgs(part="train"):
    """7,000 and 500 x 28, dense, two classes."""
    with gzip.open(data_folder("higgs_lgb") / f"binary.{part}.gz") as file:
        table = np.loadtxt(file, delimiter="\t")
    return np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(int)


@cache
def a9a(part="train"):
    """32,561 and 16,281 x 123, sparse, two classes."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(data_folder("a9a") / ("a9a.gz" if part == "train" else "a9a.t.gz")), n_features=123)
    return narrow(X), (y > 0).astype(int)


def narrow(X):
    """CSR with 32-bit indices: scikit-learn's loaders make 64-bit ones, which some rivals refuse."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


@cache
def covtype():
    """581,012 x 54, dense, 7 classes, columns of very different spread; no test part."""
    with gzip.open(data_folder("covtype") / "covtype.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int) - 1


@cache
def fashion_mnist(part="train"):
    """60,000 and 10,000 x 784 bytes, 10 classes."""
    folder, prefix = data_folder("fashion_mnist"), "train" if part == "train" else "t10k"
    with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16)
    return X.reshape(len(y), -1), y.astype(int)


@cache
def newsgroups(part="train"):
    """11,293 and 7,528 x 42,254, tf-idf of the words that two of the training texts have, 20 classes."""
    vectorizer, names = _newsgroups_words()
    labels, texts = _newsgroups_texts(part)
    return narrow(vectorizer.transform(texts)), np.searchsorted(names, labels)


@cache
def _newsgroups_words():
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, texts = _newsgroups_texts("train")
    return TfidfVectorizer(min_df=2).fit(texts), np.unique(labels)


def _newsgroups_texts(part):
    """Labels and texts: a line each after 3 lines of header and a blank one."""
    with gzip.open(data_folder("20newsgroups") / f"20newsgroups-{part}.tab.gz", "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[4:]
    return zip(*(line.split("\t", 1) for line in lines if line), strict=True)
