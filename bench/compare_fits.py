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


def problems() -> dict[str, Callable[[], Any]]:
    """Fitted estimators by name."""
    import fastdisc as f
    from fastdisc.basis import Polynomial, Quadratic, RadialGaussian

    two, five, tall = dense(3000, 12, 2), dense(3000, 12, 5), dense(200_000, 28, 2)
    csr, csr_many, images = sparse(3000, 60, 2), sparse(1500, 900, 6), dense(600, 40, 10)
    wide = dense(150, 300, 2)
    weight = np.random.default_rng(2).uniform(0, 2, 3000)
    Q = queries(2000, 8)
    logistic = lambda **options: f.LogisticRegression(**options)  # noqa: E731
    online = lambda *a, **o: f.OnlineClassifier(*a, max_iter=3, random_state=0, **o)  # noqa: E731
    found: dict[str, Callable[[], Any]] = {}

    def add(name: str, make: Callable[[], Any], data: tuple, **options: Any) -> None:
        found[name] = lambda: make().fit(*data, **options)

    for solver in ("auto", "newton", "newton-cg", "lbfgs"):
        for label, data in (("two", two), ("five", five), ("csr", csr), ("wide", wide)):
            add(
                f"LogisticRegression {solver} {label}",
                lambda solver=solver: logistic(solver=solver),
                data,
            )
    add("LogisticRegression 200k x 28", lambda: logistic(), tall)
    add(
        "LogisticRegression 200k x 28 float32",
        lambda: logistic(),
        (tall[0].astype("float32"), tall[1]),
    )
    add(
        "LogisticRegression uint8",
        lambda: logistic(),
        (np.clip(two[0] * 3 + 9, 0, 99).astype("u1"), two[1]),
    )
    add("LogisticRegression few rows, ten classes", lambda: logistic(), images)
    add(
        "LogisticRegression newton few rows, ten classes", lambda: logistic(solver="newton"), images
    )
    add("LogisticRegression csr, six classes", lambda: logistic(), csr_many)
    add("LogisticRegression csr lbfgs, six classes", lambda: logistic(solver="lbfgs"), csr_many)
    add("LogisticRegression weights", lambda: logistic(C=0.1), two, sample_weight=weight)
    add("LogisticRegression balanced", lambda: logistic(class_weight="balanced"), five)
    add("LogisticRegression no intercept", lambda: logistic(fit_intercept=False), five)
    add("LogisticRegression reference", lambda: logistic(reference_class=1), five)
    add("LogisticRegression standardize", lambda: logistic(standardize=True), five)
    add("LogisticRegression no penalty", lambda: logistic(C=np.inf), two)
    add("LogisticRegression offset", lambda: logistic(), two, offset=weight)
    add("LogisticRegression lasso", lambda: logistic(l1_ratio=1.0, C=0.05), two)
    add("LogisticRegression elastic net, five", lambda: logistic(l1_ratio=0.5, C=0.1), five)
    add("LogisticRegression lasso csr", lambda: logistic(l1_ratio=1.0, C=0.5), csr_many)
    add("LogisticRegression gd", lambda: logistic(solver="gd", max_iter=200, random_state=0), two)
    add("LogisticRegression sgd", lambda: logistic(solver="sgd", max_iter=3, random_state=0), two)
    add("LogisticRegression polynomial", lambda: logistic(basis=Polynomial(2)), two)
    add("LogisticRegression radial", lambda: logistic(basis=RadialGaussian(20, width=5.0)), two)
    add("LogisticRegression quadratic rank", lambda: logistic(basis=Quadratic(rank=2)), two)
    add("LogisticRegressionCV", lambda: f.LogisticRegressionCV(Cs=5), two)
    add("LogisticRegressionCV five classes", lambda: f.LogisticRegressionCV(Cs=3, cv=3), five)
    add(
        "LogisticRegressionCV lasso",
        lambda: f.LogisticRegressionCV(Cs=3, cv=3, l1_ratios=(1.0,)),
        two,
    )
    add("SigmoidRegression", lambda: f.SigmoidRegression(), two)
    add("SigmoidRegression five", lambda: f.SigmoidRegression(), five)
    add("SigmoidRegression csr", lambda: f.SigmoidRegression(), csr)
    for name in ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "GaussianNB"):
        add(name, lambda name=name: getattr(f, name)(), five)
    shrunk = {"solver": "eigen", "shrinkage": "auto"}
    lda = "LinearDiscriminantAnalysis"
    add(f"{lda} shrinkage", lambda: f.LinearDiscriminantAnalysis(**shrunk), five)
    add("FisherDiscriminant", lambda: f.FisherDiscriminant(), five)
    add("LeastSquaresClassifier", lambda: f.LeastSquaresClassifier(), five)
    add("LeastSquaresClassifierCV", lambda: f.LeastSquaresClassifierCV(), five)
    counts = np.abs(np.rint(five[0]))
    for name in ("BernoulliNB", "MultinomialNB", "PoissonNB"):
        add(name, lambda name=name: getattr(f, name)(), (counts, five[1]))
    for label, data in (("two", two), ("five", five), ("csr", csr)):
        add(f"Perceptron {label}", lambda: f.Perceptron(max_iter=5, random_state=0), data)
        for loss in ("log_loss", "hinge", "modified_huber"):
            make = partial(online, loss, average=True)
            add(f"OnlineClassifier {loss} {label}", make, data)
    add("OnlineClassifier lasso", partial(online, "log_loss", penalty="l1"), csr)
    add("Adaline", lambda: f.Adaline(standardize=True, max_iter=5, random_state=0), two)
    add("OneVsRestClassifier", lambda: f.OneVsRestClassifier(logistic()), five)
    add("PairwiseClassifier", lambda: f.PairwiseClassifier(logistic()), five)
    for loss in ("logistic", "squared_hinge", "margin", "hinge", "ndcg"):
        make = lambda loss=loss: f.PairwiseRanker(loss, random_state=0)  # noqa: E731
        add(f"PairwiseRanker {loss}", make, Q[:2], group=Q[2])
    for solver in ("newton-cg", "lbfgs"):
        make = lambda solver=solver: f.PairwiseRanker(solver=solver)  # noqa: E731
        add(f"PairwiseRanker logistic {solver}", make, Q[:2], group=Q[2])
    add("PairwiseRanker lasso", lambda: f.PairwiseRanker(l1_ratio=1.0, C=0.01), Q[:2], group=Q[2])
    return found


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
