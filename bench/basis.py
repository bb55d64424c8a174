"""Models with basis functions: features made inside the sweep, beside a matrix of them: time, memory, a user's functions."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
from closed_form import turns
from fits import few, result
from measure import in_child, memory
from race import Judge, objective, race, row, scores, timed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

import fastdisc
from fastdisc.basis import Custom, Quadratic, RadialGaussian, Sine

SLICE = 20_000  # rows whose features the judge looks at together


@cache
def bent(n, d, part="train", others=20_000):
    """Gaussian rows, two classes whose log odds are quadratic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + others, d))
    W = rng.standard_normal((d, d)) / d
    z = np.einsum("ni,ni->n", X @ W, X) + X @ rng.standard_normal(d) / 2
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)
    return (X[:n], y[:n]) if part == "train" else (X[n:], y[n:])


class BasisJudge(Judge):
    """The objective and the accuracy of weights of features, which are looked at a slice at a time."""

    def __init__(self, X, y, features, test):
        super().__init__(X, y, test=test)
        self.features = features

    def objectives(self, solution):
        coef, intercept = solution
        parts = [slice(lo, lo + SLICE) for lo in range(0, len(self.y), SLICE)]
        half = np.vdot(coef, coef) / 2
        losses = [objective(self.features(self.X[rows]), self.y[rows], 1.0, coef, intercept) - half for rows in parts]
        return [math.fsum(losses) + half]

    def accuracy(self, solution):
        X, y = self.test
        return float((scores(self.features(X), *solution).argmax(axis=1) == y).mean())


def polynomial(X):
    return PolynomialFeatures(2, include_bias=False).fit_transform(X)


def radial(centers, width, X):
    return rbf_kernel(X, centers, gamma=0.5 / width**2)


def quadratic_problem():
    return Quadratic(), polynomial


def radial_problem(n=200, width=3.0):
    centers = np.random.default_rng(1).standard_normal((n, 10))
    return RadialGaussian(centers, width), partial(radial, centers, width)


def ours(basis, X, y, tol=1e-6):
    model = fastdisc.LogisticRegression(basis=basis, tol=tol).fit(X, y)
    return model.coef_, model.intercept_


def theirs(features, X, y, tol=1e-4):
    model = LogisticRegression(solver="newton-cholesky", tol=tol).fit(features(X), y)
    return model.coef_, model.intercept_


def fit(data, make, rival, name, *, goal):
    """Both to the same gap; the rival's time has that of making its matrix."""
    X, y = data()
    basis, features = make()
    for call in (partial(ours, basis), partial(theirs, features)):
        call(*few(X, y))
    judge = BasisJudge(X, y, features, data(part="test"))
    judge.values(timed(ours, basis, X, y, 1e-9)[1])
    field = {("fastdisc", "basis"): partial(ours, basis, X, y), ("scikit-learn", rival): partial(theirs, features, X, y)}
    runs, missing = race(field, judge, goal)
    used = [in_child(footprint, data, make, mine) for mine in (True, False)]
    space = {"problem": f"{name}: memory beyond X", "unit": "B", "rival": f"scikit-learn {rival}"}
    return result([row(name, runs, goal), space | {"ours": used[0], "theirs": used[1]}], runs, missing)


def footprint(data, make, mine):
    """Bytes that a fit needs beyond the data."""
    X, y = data()
    basis, features = make()
    call = partial(ours, basis) if mine else partial(theirs, features)
    call(*few(X, y))
    return memory(lambda: call(X, y))


def products_of_pairs(x, out):
    """Quadratic, by hand."""
    d = len(x)
    for i in range(d):
        out[i] = x[i]
    at = d
    for i in range(d):
        for j in range(i, d):
            out[at] = x[i] * x[j]
            at += 1


def sines(x):
    """Sine at three frequencies, by hand."""
    out = np.empty(3 * len(x))
    for j in range(len(x)):
        for k in range(3):
            out[3 * j + k] = math.sin((k + 1) * x[j])
    return out


def numpy_pairs(X):
    """The same as NumPy has it."""
    i, j = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, i] * X[:, j]])


def functions(name, *, goal, n=500_000, rounds=5):
    """A user's functions inside the sweep: beside the built-in ones, and beside a matrix of features made by NumPy."""
    X, y = bent(n, 20)
    pairs = {
        "products of pairs": (Custom(products_of_pairs, n_features=230), Quadratic()),
        "sines": (Custom(sines), Sine([1.0, 2.0, 3.0])),
    }
    rows = []
    for label, bases in pairs.items():
        calls = [partial(ours, basis, X, y) for basis in bases]
        found = [timed(call)[1][0] for call in calls]
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
        times = turns(calls, rounds)
        rows.append({"problem": f"{name}, {label}", "ours": times[0], "rival": "the built-in basis", "theirs": times[1]})
    (first, second) = turns(
        [partial(ours, pairs["products of pairs"][0], X, y), lambda: fastdisc.LogisticRegression().fit(numpy_pairs(X), y)], 2
    )
    rows.append({"problem": f"{name}, products of pairs", "ours": first, "rival": "ours on NumPy's matrix", "theirs": second})
    return result(rows, [])


PROBLEMS = {
    "quadratic logistic, 500k x 20": partial(
        fit, partial(bent, 500_000, 20), quadratic_problem, "PolynomialFeatures, newton-cholesky"
    ),
    "radial Gaussian logistic, 200 centres, 500k x 10": partial(
        fit, partial(bent, 500_000, 10), radial_problem, "rbf_kernel, newton-cholesky"
    ),
    "Custom basis, 500k x 20": functions,
}
