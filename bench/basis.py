"""Models with basis functions, whose features are computed within the sweep, and models of the
matrix of features: time, memory, functions of users."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from fits import some_rows
from measure import best_timed, in_child, memory, timed
from problems import Data
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures
from tolerance_search import Evaluator, objective, result, row, scores, search_tolerances

import fastdisc
from fastdisc.basis import Custom, Quadratic, RadialGaussian, Sine

Load = Callable[..., Data]
Features = Callable[[np.ndarray], np.ndarray]
Problem = Callable[[], tuple[Any, Features]]  # a basis, and a rival's function for its features
Found = dict[str, Any]
SLICE_ROWS = 20_000  # rows whose features are evaluated at a time


@cache
def quadratic_odds(n: int, d: int, part: str = "train", n_test: int = 20_000) -> Data:
    """Gaussian rows of two classes whose log odds are quadratic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_test, d))
    W = rng.standard_normal((d, d)) / d
    z = np.einsum("ni,ni->n", X @ W, X) + X @ rng.standard_normal(d) / 2
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)
    return (X[:n], y[:n]) if part == "train" else (X[n:], y[n:])


class BasisEvaluator(Evaluator):
    """The objective and the accuracy of weights of features, a slice of rows at a time."""

    def __init__(self, X: np.ndarray, y: np.ndarray, features: Features, test: Data):
        super().__init__(X, y, test=test)
        self.features = features

    def objectives(self, solution: Any) -> list[float]:
        coef, intercept = solution
        half = np.vdot(coef, coef) / 2
        losses = []
        for lo in range(0, len(self.y), SLICE_ROWS):
            rows = slice(lo, lo + SLICE_ROWS)
            value = objective(self.features(self.X[rows]), self.y[rows], 1.0, coef, intercept)
            losses.append(value - half)
        return [math.fsum(losses) + half]

    def accuracy(self, solution: Any) -> float:
        X, y = self.test
        return float((scores(self.features(X), *solution).argmax(axis=1) == y).mean())


def polynomial(X: np.ndarray) -> np.ndarray:
    return PolynomialFeatures(2, include_bias=False).fit_transform(X)


def radial(centers: np.ndarray, width: float, X: np.ndarray) -> np.ndarray:
    return rbf_kernel(X, centers, gamma=0.5 / width**2)


def quadratic_problem() -> tuple[Any, Features]:
    return Quadratic(), polynomial


def radial_problem(n: int = 200, width: float = 3.0) -> tuple[Any, Features]:
    centers = np.random.default_rng(1).standard_normal((n, 10))
    return RadialGaussian(centers, width), partial(radial, centers, width)


def ours(basis: Any, X: np.ndarray, y: np.ndarray, tol: float = 1e-6) -> tuple[Any, Any]:
    model = fastdisc.LogisticRegression(basis=basis, tol=tol).fit(X, y)
    return model.coef_, model.intercept_


def theirs(features: Features, X: np.ndarray, y: np.ndarray, tol: float = 1e-4) -> tuple[Any, Any]:
    model = LogisticRegression(solver="newton-cholesky", tol=tol).fit(features(X), y)
    return model.coef_, model.intercept_


def fit(data: Load, make: Problem, rival: str, name: str, *, goal: float) -> Found:
    """Both to the same gap. The rival's time includes that of computing its matrix."""
    X, y = data()
    basis, features = make()
    for call in (partial(ours, basis), partial(theirs, features)):
        call(*some_rows(X, y))
    evaluator = BasisEvaluator(X, y, features, data(part="test"))
    evaluator.values(timed(ours, basis, X, y, 1e-9)[1])
    fits = {
        ("fastdisc", "basis"): partial(ours, basis, X, y),
        ("scikit-learn", rival): partial(theirs, features, X, y),
    }
    runs, missing = search_tolerances(fits, evaluator, goal)
    used = [in_child(fit_memory, data, make, is_ours) for is_ours in (True, False)]
    space = {"problem": f"{name}: memory beyond X", "unit": "B", "rival": f"scikit-learn {rival}"}
    space |= {"ours": used[0], "theirs": used[1]}
    return result([row(name, runs, goal), space], runs, missing)


def fit_memory(data: Load, make: Problem, is_ours: bool) -> int:
    """Bytes that a fit needs beyond the data."""
    X, y = data()
    basis, features = make()
    call = partial(ours, basis) if is_ours else partial(theirs, features)
    call(*some_rows(X, y))
    return memory(lambda: call(X, y))


def products_of_pairs(x: Any, out: Any) -> None:
    """The features of Quadratic as a user's function."""
    d = len(x)
    for i in range(d):
        out[i] = x[i]
    place = d
    for i in range(d):
        for j in range(i, d):
            out[place] = x[i] * x[j]
            place += 1


def sines(x: Any) -> Any:
    """The features of Sine with three frequencies as a user's function."""
    out = np.empty(3 * len(x))
    for j in range(len(x)):
        for k in range(3):
            out[3 * j + k] = math.sin((k + 1) * x[j])
    return out


def numpy_products(X: np.ndarray) -> np.ndarray:
    """The features of Quadratic by NumPy."""
    i, j = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, i] * X[:, j]])


def functions(name: str, *, goal: float, n: int = 500_000, rounds: int = 5) -> Found:
    """Functions of users within the sweep, compared with the built-in bases, and with a matrix of
    features that NumPy computes."""
    X, y = quadratic_odds(n, 20)
    products = Custom(products_of_pairs, n_features=230)
    pairs = {
        "products of pairs": (products, Quadratic()),
        "sines": (Custom(sines), Sine([1.0, 2.0, 3.0])),
    }
    rows = []
    for label, bases in pairs.items():
        calls = [partial(ours, basis, X, y) for basis in bases]
        found = [timed(call)[1][0] for call in calls]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
        times = best_timed(calls, rounds, slow_rounds=3)
        found_row = {"problem": f"{name}, {label}", "ours": times[0], "theirs": times[1]}
        rows.append(found_row | {"rival": "the built-in basis"})

    def fit_matrix() -> None:
        fastdisc.LogisticRegression().fit(numpy_products(X), y)

    times = best_timed([partial(ours, products, X, y), fit_matrix], 2)
    found_row = {"problem": f"{name}, products of pairs", "ours": times[0], "theirs": times[1]}
    rows.append(found_row | {"rival": "ours on NumPy's matrix"})
    return result(rows)


PROBLEMS: dict[str, Callable[..., Found]] = {
    "quadratic logistic, 500k x 20": partial(
        fit,
        partial(quadratic_odds, 500_000, 20),
        quadratic_problem,
        "PolynomialFeatures, newton-cholesky",
    ),
    "radial Gaussian logistic, 200 centres, 500k x 10": partial(
        fit, partial(quadratic_odds, 500_000, 10), radial_problem, "rbf_kernel, newton-cholesky"
    ),
    "Custom basis, 500k x 20": functions,
}
