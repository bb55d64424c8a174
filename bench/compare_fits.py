"""Compare the fitted attributes of every estimator between two versions of the package.

    python bench/compare_fits.py BASE HEAD [--tol 1e-12] [--select NAME]

BASE and HEAD are folders that contain the package `fastdisc` (source trees with built kernels, or
site-packages folders). Each version fits the same problems in a process of its own; the table
shows, for each problem, the largest difference of the weights relative to their largest absolute
value.
Exits with 1 if one is larger than the tolerance.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def dense(n: int, d: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns of different scales, and classes with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d))
    X = X * rng.uniform(0.2, 5, d) + rng.uniform(-2, 2, d)
    scores = X @ rng.standard_normal((d, K)) / np.sqrt(d) + rng.gumbel(size=(n, K))
    return X, scores.argmax(axis=1)


def sparse(n: int, d: int, K: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """The same with a tenth of the cells."""
    from scipy.sparse import csr_array

    X, y = dense(n, d, K, seed)
    return csr_array(np.where(np.random.default_rng(seed).random(X.shape) < 0.1, X, 0)), y


def queries(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, grades and queries of about 20 rows."""
    X, _ = dense(n, d, 2)
    rng = np.random.default_rng(1)
    grade = np.digitize(X[:, 0] + X[:, 1] + 2 * rng.standard_normal(n), [-1, 1, 3])
    return X, grade, np.sort(rng.integers(0, n // 20, n))


class Problems(dict[str, Callable[[], Any]]):
    """Functions that return fitted estimators, by name."""

    def add(self, name: str, make: Callable[[], Any], data: tuple, **options: Any) -> None:
        """An estimator, and the arguments of its `fit`."""
        self[name] = lambda: make().fit(*data, **options)


def problems() -> Problems:
    """All problems."""
    found = Problems()
    for group in (logistic, logistic_options, regression, closed_form, online, combined, ranking):
        group(found)
    return found


def logistic(found: Problems) -> None:
    """Logistic regression: solvers, layouts and types."""
    from fastdisc import LogisticRegression

    two, five, tall = dense(3000, 12, 2), dense(3000, 12, 5), dense(200_000, 28, 2)
    csr, csr_many, images = sparse(3000, 60, 2), sparse(1500, 900, 6), dense(600, 40, 10)
    layouts = {"two": two, "five": five, "csr": csr, "wide": dense(150, 300, 2)}
    for solver in ("auto", "newton", "newton-cg", "lbfgs"):
        for label, data in layouts.items():
            make = partial(LogisticRegression, solver=solver)
            found.add(f"LogisticRegression {solver} {label}", make, data)
    tall_float32 = tall[0].astype("float32"), tall[1]
    counts = np.clip(two[0] * 3 + 9, 0, 99).astype("u1"), two[1]
    newton = partial(LogisticRegression, solver="newton")
    lbfgs = partial(LogisticRegression, solver="lbfgs")
    found.add("LogisticRegression 200k x 28", LogisticRegression, tall)
    found.add("LogisticRegression 200k x 28 float32", LogisticRegression, tall_float32)
    found.add("LogisticRegression uint8", LogisticRegression, counts)
    found.add("LogisticRegression few rows, ten classes", LogisticRegression, images)
    found.add("LogisticRegression newton few rows, ten classes", newton, images)
    found.add("LogisticRegression csr, six classes", LogisticRegression, csr_many)
    found.add("LogisticRegression csr lbfgs, six classes", lbfgs, csr_many)


def logistic_options(found: Problems) -> None:
    """Logistic regression: parameters and cross-validation."""
    from fastdisc import LogisticRegression, LogisticRegressionCV
    from fastdisc.basis import Polynomial, Quadratic, RadialGaussian

    two, five, csr = dense(3000, 12, 2), dense(3000, 12, 5), sparse(1500, 900, 6)
    weight = np.random.default_rng(2).uniform(0, 2, 3000)
    step = {"random_state": 0}
    variants: list[tuple[str, dict[str, Any], tuple]] = [
        ("balanced", {"class_weight": "balanced"}, five),
        ("no intercept", {"fit_intercept": False}, five),
        ("reference", {"reference_class": 1}, five),
        ("standardize", {"standardize": True}, five),
        ("no penalty", {"C": np.inf}, two),
        ("lasso", {"l1_ratio": 1.0, "C": 0.05}, two),
        ("elastic net, five", {"l1_ratio": 0.5, "C": 0.1}, five),
        ("lasso csr", {"l1_ratio": 1.0, "C": 0.5}, csr),
        ("gd", {"solver": "gd", "max_iter": 200} | step, two),
        ("sgd", {"solver": "sgd", "max_iter": 3} | step, two),
        ("polynomial", {"basis": Polynomial(2)}, two),
        ("radial", {"basis": RadialGaussian(20, width=5.0)}, two),
        ("quadratic rank", {"basis": Quadratic(rank=2)}, two),
    ]
    for label, options, data in variants:
        found.add(f"LogisticRegression {label}", partial(LogisticRegression, **options), data)
    light = partial(LogisticRegression, C=0.1)
    found.add("LogisticRegression weights", light, two, sample_weight=weight)
    found.add("LogisticRegression offset", LogisticRegression, two, offset=weight)
    lasso = partial(LogisticRegressionCV, Cs=3, cv=3, l1_ratios=(1.0,))
    found.add("LogisticRegressionCV", partial(LogisticRegressionCV, Cs=5), two)
    found.add("LogisticRegressionCV five classes", partial(LogisticRegressionCV, Cs=3, cv=3), five)
    found.add("LogisticRegressionCV lasso", lasso, two)


def regression(found: Problems) -> None:
    """Discrimination by regression."""
    from fastdisc import SigmoidRegression

    found.add("SigmoidRegression", SigmoidRegression, dense(3000, 12, 2))
    found.add("SigmoidRegression five", SigmoidRegression, dense(3000, 12, 5))
    found.add("SigmoidRegression csr", SigmoidRegression, sparse(3000, 60, 2))


def closed_form(found: Problems) -> None:
    """Models that are functions of class moments."""
    import fastdisc

    five = dense(3000, 12, 5)
    counts = np.abs(np.rint(five[0])), five[1]
    names = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "GaussianNB"]
    names += ["FisherDiscriminant", "LeastSquaresClassifier", "LeastSquaresClassifierCV"]
    for name in names:
        found.add(name, getattr(fastdisc, name), five)
    lda = partial(fastdisc.LinearDiscriminantAnalysis, solver="eigen", shrinkage="auto")
    found.add("LinearDiscriminantAnalysis shrinkage", lda, five)
    for name in ("BernoulliNB", "MultinomialNB", "PoissonNB"):
        found.add(name, getattr(fastdisc, name), counts)


def online(found: Problems) -> None:
    """Online models."""
    from fastdisc import Adaline, OnlineClassifier, Perceptron

    two, csr = dense(3000, 12, 2), sparse(3000, 60, 2)
    rule = partial(OnlineClassifier, max_iter=3, random_state=0)
    for label, data in (("two", two), ("five", dense(3000, 12, 5)), ("csr", csr)):
        found.add(f"Perceptron {label}", partial(Perceptron, max_iter=5, random_state=0), data)
        for loss in ("log_loss", "hinge", "modified_huber"):
            found.add(f"OnlineClassifier {loss} {label}", partial(rule, loss, average=True), data)
    found.add("OnlineClassifier lasso", partial(rule, "log_loss", penalty="l1"), csr)
    found.add("Adaline", partial(Adaline, standardize=True, max_iter=5, random_state=0), two)


def combined(found: Problems) -> None:
    """Combinations of two-class discriminants."""
    from fastdisc import LogisticRegression, OneVsRestClassifier, PairwiseClassifier

    five = dense(3000, 12, 5)
    found.add("OneVsRestClassifier", lambda: OneVsRestClassifier(LogisticRegression()), five)
    found.add("PairwiseClassifier", lambda: PairwiseClassifier(LogisticRegression()), five)


def ranking(found: Problems) -> None:
    """Rankers."""
    from fastdisc import PairwiseRanker

    X, grade, query = queries(2000, 8)
    for loss in ("logistic", "squared_hinge", "margin", "hinge", "ndcg"):
        make = partial(PairwiseRanker, loss, random_state=0)
        found.add(f"PairwiseRanker {loss}", make, (X, grade), group=query)
    for solver in ("newton-cg", "lbfgs"):
        make = partial(PairwiseRanker, solver=solver)
        found.add(f"PairwiseRanker logistic {solver}", make, (X, grade), group=query)
    lasso = partial(PairwiseRanker, l1_ratio=1.0, C=0.01)
    found.add("PairwiseRanker lasso", lasso, (X, grade), group=query)


ATTRIBUTES = (
    "coef_",
    "intercept_",
    "means_",
    "covariance_",
    "theta_",
    "var_",
    "feature_log_prob_",
    "scalings_",
)


def attributes(model: Any) -> Arrays:
    """The fitted arrays of a model, or of its parts."""
    found = {}
    for name in ATTRIBUTES:
        value = getattr(model, name, None)
        if isinstance(value, np.ndarray):
            found[name] = value
    return found


def fit_all(select: str) -> dict[str, tuple[Arrays, Any]]:
    """The fitted arrays and the number of iterations of every problem."""
    result = {}
    warnings.simplefilter("ignore")
    for name, fit in problems().items():
        if select.lower() in name.lower():
            model = fit()
            result[name] = attributes(model), getattr(model, "n_iter_", None)
    return result


def fitted_by(folder: Path, select: str) -> dict[str, tuple[Arrays, Any]]:
    """`fit_all` of the package in a folder, in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        code = f"import compare_fits, pickle; r = compare_fits.fit_all({select!r}); "
        code += f"pickle.dump(r, open({file.name!r}, 'wb'))"
        path = os.pathsep.join([str(folder.resolve()), str(Path(__file__).parent)])
        environment = os.environ | {"PYTHONPATH": path}
        subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True)
        return pickle.load(open(file.name, "rb"))


def difference(a: Arrays, b: Arrays) -> float:
    """The largest difference, relative to the largest value; infinite if shapes differ."""
    largest = 0.0
    for name, old in a.items():
        new = b.get(name)
        if new is None or new.shape != old.shape:
            return np.inf
        scale = float(np.abs(old).max()) or 1.0
        largest = max(largest, float(np.abs(new - old).max()) / scale)
    return largest


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--tol", type=float, default=1e-12)
    parser.add_argument("--select", default="", help="only problems whose names contain this")
    options = parser.parse_args(arguments)
    base, head = (fitted_by(folder, options.select) for folder in (options.base, options.head))
    failed = []
    for name, (old, n_iter) in base.items():
        new, n_iter_new = head[name]
        size = difference(old, new)
        mark = "" if size <= options.tol else "  different"
        failed += [name] if mark else []
        iterations = "" if n_iter is None else f"{np.max(n_iter)} -> {np.max(n_iter_new)}"
        print(f"{name:<52} {size:9.1e}  {iterations:<12}{mark}")
    print(f"{len(base) - len(failed)} of {len(base)} within {options.tol:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
