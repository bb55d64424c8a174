"""The closed-form models against scikit-learn's: whole fits, cross-validation, predictions and memory, in turn in one process."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import partial

import numpy as np
import sklearn.discriminant_analysis as gaussian
from fits import few
from measure import in_child, memory
from problems import covtype, fashion_mnist, made
from race import timed
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import fastdisc


def bytes_of_images(part="train"):
    return fashion_mnist(part)


def all_covtype(part="train"):
    return covtype()


MANY = partial(made, 1_000_000, 28, 10)
# name -> data, our model, {label: the rival's}
FITS = {
    "LDA, 1M x 28, K=10": (
        MANY,
        fastdisc.LinearDiscriminantAnalysis(),
        {
            "svd": gaussian.LinearDiscriminantAnalysis(),
            "lsqr": gaussian.LinearDiscriminantAnalysis(solver="lsqr"),
        },
    ),
    "QDA, 1M x 28, K=10": (MANY, fastdisc.QuadraticDiscriminantAnalysis(), {"svd": gaussian.QuadraticDiscriminantAnalysis()}),
    "LDA, Fashion-MNIST uint8": (
        bytes_of_images,
        fastdisc.LinearDiscriminantAnalysis(),
        {
            "svd": gaussian.LinearDiscriminantAnalysis(),
            "lsqr": gaussian.LinearDiscriminantAnalysis(solver="lsqr"),
        },
    ),
    "QDA, covtype": (
        all_covtype,
        fastdisc.QuadraticDiscriminantAnalysis(reg_param=1e-3),
        {"svd": gaussian.QuadraticDiscriminantAnalysis(reg_param=1e-3)},
    ),
    "RidgeClassifier, 1M x 28": (
        partial(made, 1_000_000, 28),
        fastdisc.LeastSquaresClassifier(alpha=1.0),
        {"auto": RidgeClassifier(alpha=1.0)},
    ),
    "BernoulliNB, 1M x 28": (partial(made, 1_000_000, 28), fastdisc.BernoulliNB(), {"": BernoulliNB()}),
    "GaussianNB, 1M x 28, K=10": (MANY, fastdisc.GaussianNB(), {"": GaussianNB()}),
}


def result(rows):
    return {"rows": rows, "runs": [], "missing": {}}


def turns(calls, rounds):
    """The best time of each call, in turn: of three where a call takes over a second, else of `rounds`."""
    best = [np.inf] * len(calls)
    for turn in range(rounds):
        for i, call in enumerate(calls):
            if turn < 3 or best[i] <= 1.0:
                best[i] = min(best[i], timed(call)[0])
    return best


def fit(data, ours, rivals, name, *, goal, rounds=9):
    """Our fit and each rival's, in turn; accuracy on rows that none has seen, which must be the same. Both are exact: no gap."""
    X, y = data()
    test = data(part="test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # collinear columns
        for model in (ours, *rivals.values()):
            with suppress(ValueError):  # too few rows for a rival: it is loaded all the same
                model.fit(*few(X, y))
        times = turns([partial(model.fit, X, y) for model in (ours, *rivals.values())], rounds)
    accuracy = ours.score(*test)
    rows = []
    for (label, rival), seconds in zip(rivals.items(), times[1:], strict=True):
        theirs = f"scikit-learn {label}".strip()
        if abs(rival.score(*test) - accuracy) > 0.002:
            raise AssertionError(f"{name}: accuracies differ, {accuracy} and {rival.score(*test)} of {theirs}")
        rows.append({"problem": name, "ours": times[0], "rival": theirs, "theirs": seconds, "accuracy": accuracy})
    return result(rows)


def folds(name, *, goal, data=MANY, cv=10, rounds=2):
    """Accuracies over folds: ours from one pass, scikit-learn's from a fit for each."""
    X, y = data()
    ours, theirs = fastdisc.LinearDiscriminantAnalysis(), gaussian.LinearDiscriminantAnalysis()
    found = {}

    def mine():
        found["ours"] = fastdisc.cross_val_from_moments(ours, X, y, cv=cv)

    def rival():
        found["theirs"] = cross_val_score(theirs, X, y, cv=cv)

    times = turns([mine, rival], rounds)
    np.testing.assert_allclose(found["ours"], found["theirs"], atol=1e-4)
    row = {"problem": name, "ours": times[0], "rival": "scikit-learn cross_val_score", "theirs": times[1]}
    return result([row | {"accuracy": float(found["ours"].mean())}])


def predictions(name, *, goal, data=MANY, rounds=9):
    """predict of fitted models, same classes."""
    X, y = data()
    pairs = {
        "LDA": (fastdisc.LinearDiscriminantAnalysis(), gaussian.LinearDiscriminantAnalysis()),
        "QDA": (fastdisc.QuadraticDiscriminantAnalysis(), gaussian.QuadraticDiscriminantAnalysis()),
        "GaussianNB": (fastdisc.GaussianNB(), GaussianNB()),
    }
    rows = []
    for label, models in pairs.items():
        ours, theirs = (model.fit(X[:20_000], y[:20_000]) for model in models)
        if (ours.predict(X) != theirs.predict(X)).mean() > 1e-5:
            raise AssertionError(f"{label}: predictions differ")
        times = turns([partial(ours.predict, X), partial(theirs.predict, X)], rounds)
        rows.append({"problem": f"{name}, {label} 1M x 28, K=10", "ours": times[0], "rival": "scikit-learn", "theirs": times[1]})
    return result(rows)


def footprint(model, data):
    """Bytes that a fit needs beyond the data."""
    X, y = data()
    model.fit(X[:3000], y[:3000])
    return memory(lambda: model.fit(X, y))


def footprints(name, *, goal, data=MANY):
    """Memory of fits, each in a process of its own."""
    pairs = {
        "LDA": (fastdisc.LinearDiscriminantAnalysis(), gaussian.LinearDiscriminantAnalysis()),
        "QDA": (fastdisc.QuadraticDiscriminantAnalysis(), gaussian.QuadraticDiscriminantAnalysis()),
    }
    rows = []
    for label, models in pairs.items():
        ours, theirs = (in_child(footprint, model, data) for model in models)
        rows.append({"problem": f"{name}, {label}", "unit": "B", "ours": ours, "rival": "scikit-learn", "theirs": theirs})
    return result(rows)


PROBLEMS = {name: partial(fit, *problem) for name, problem in FITS.items()} | {
    "10-fold CV of LDA, 1M x 28, K=10": folds,
    "predict": predictions,
    "memory beyond X of a fit, 1M x 28, K=10": footprints,
}
