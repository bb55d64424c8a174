"""The closed-form models and scikit-learn's: whole fits, cross-validation, predictions, memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import sklearn.discriminant_analysis as gaussian
from fits import some_rows
from measure import best_timed, in_child, memory
from problems import Data, correlated, covtype, fashion_mnist
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from tolerance_search import result

import fastdisc

Load = Callable[..., Data]
Found = dict[str, Any]
MAX_ACCURACY_DIFFERENCE = 0.002


def all_covtype(part: str = "train") -> Data:
    """Training and test part are the same."""
    return covtype()


ONE_MILLION = partial(correlated, 1_000_000, 28)
TEN_CLASSES = partial(correlated, 1_000_000, 28, 10)
LDA_RIVALS = {
    "svd": gaussian.LinearDiscriminantAnalysis(),
    "lsqr": gaussian.LinearDiscriminantAnalysis(solver="lsqr"),
}
# name -> data, our model, {label: scikit-learn's model}
FITS: dict[str, tuple[Load, Any, dict[str, Any]]] = {
    "LDA, 1M x 28, K=10": (TEN_CLASSES, fastdisc.LinearDiscriminantAnalysis(), LDA_RIVALS),
    "QDA, 1M x 28, K=10": (
        TEN_CLASSES,
        fastdisc.QuadraticDiscriminantAnalysis(),
        {"svd": gaussian.QuadraticDiscriminantAnalysis()},
    ),
    "LDA, Fashion-MNIST uint8": (
        fashion_mnist,
        fastdisc.LinearDiscriminantAnalysis(),
        LDA_RIVALS,
    ),
    "QDA, covtype": (
        all_covtype,
        fastdisc.QuadraticDiscriminantAnalysis(reg_param=1e-3),
        {"svd": gaussian.QuadraticDiscriminantAnalysis(reg_param=1e-3)},
    ),
    "RidgeClassifier, 1M x 28": (
        ONE_MILLION,
        fastdisc.LeastSquaresClassifier(alpha=1.0),
        {"auto": RidgeClassifier(alpha=1.0)},
    ),
    "BernoulliNB, 1M x 28": (ONE_MILLION, fastdisc.BernoulliNB(), {"": BernoulliNB()}),
    "GaussianNB, 1M x 28, K=10": (TEN_CLASSES, fastdisc.GaussianNB(), {"": GaussianNB()}),
}


def pairs_of_models() -> dict[str, tuple[Any, Any]]:
    """Our model and scikit-learn's."""
    return {
        "LDA": (fastdisc.LinearDiscriminantAnalysis(), gaussian.LinearDiscriminantAnalysis()),
        "QDA": (fastdisc.QuadraticDiscriminantAnalysis(), gaussian.QuadraticDiscriminantAnalysis()),
        "GaussianNB": (fastdisc.GaussianNB(), GaussianNB()),
    }


def fit(
    data: Load, ours: Any, rivals: dict[str, Any], name: str, *, goal: float, rounds: int = 9
) -> Found:
    """Our fit and each of the rivals', and the accuracy on test rows, which must be the same. All
    of them are exact, so that there is no gap."""
    X, y = data()
    test = data(part="test")
    models = [ours, *rivals.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # collinear columns
        for model in models:
            with suppress(ValueError):  # too few rows for a rival, but its code is loaded
                model.fit(*some_rows(X, y))
        times = best_timed([partial(model.fit, X, y) for model in models], rounds, slow_rounds=3)
    accuracy = ours.score(*test)
    rows = []
    for (label, rival), seconds in zip(rivals.items(), times[1:], strict=True):
        theirs = f"scikit-learn {label}".strip()
        if abs(rival.score(*test) - accuracy) > MAX_ACCURACY_DIFFERENCE:
            other = rival.score(*test)
            raise AssertionError(f"{name}: accuracies differ, {accuracy} and {other} of {theirs}")
        row = {"problem": name, "ours": times[0], "rival": theirs, "theirs": seconds}
        rows.append(row | {"accuracy": accuracy})
    return result(rows)


def folds(
    name: str, *, goal: float, data: Load = TEN_CLASSES, cv: int = 10, rounds: int = 2
) -> Found:
    """Accuracies of folds: ours from one pass, scikit-learn's from a fit for each."""
    X, y = data()
    ours, theirs = pairs_of_models()["LDA"]
    found = {}

    def our_scores() -> None:
        found["ours"] = fastdisc.cross_val_from_moments(ours, X, y, cv=cv)

    def their_scores() -> None:
        found["theirs"] = cross_val_score(theirs, X, y, cv=cv)

    times = best_timed([our_scores, their_scores], rounds)
    np.testing.assert_allclose(found["ours"], found["theirs"], atol=1e-4)
    row = {"problem": name, "ours": times[0], "theirs": times[1]}
    row |= {"rival": "scikit-learn cross_val_score", "accuracy": float(found["ours"].mean())}
    return result([row])


def predictions(name: str, *, goal: float, data: Load = TEN_CLASSES, rounds: int = 9) -> Found:
    """predict of fitted models, whose predictions must be the same."""
    X, y = data()
    rows = []
    for label, models in pairs_of_models().items():
        ours, theirs = (model.fit(X[:20_000], y[:20_000]) for model in models)
        if (ours.predict(X) != theirs.predict(X)).mean() > 1e-5:
            raise AssertionError(f"{label}: predictions differ")
        times = best_timed([partial(m.predict, X) for m in (ours, theirs)], rounds, slow_rounds=3)
        row = {"problem": f"{name}, {label} 1M x 28, K=10", "ours": times[0]}
        rows.append(row | {"rival": "scikit-learn", "theirs": times[1]})
    return result(rows)


def fit_memory(model: Any, data: Load) -> int:
    """Bytes that a fit needs beyond the data."""
    X, y = data()
    model.fit(X[:3000], y[:3000])
    return memory(lambda: model.fit(X, y))


def footprints(name: str, *, goal: float, data: Load = TEN_CLASSES) -> Found:
    """Memory of fits, each in a process of its own."""
    rows = []
    for label in ("LDA", "QDA"):
        ours, theirs = (in_child(fit_memory, m, data) for m in pairs_of_models()[label])
        row = {"problem": f"{name}, {label}", "unit": "B", "ours": ours}
        rows.append(row | {"rival": "scikit-learn", "theirs": theirs})
    return result(rows)


PROBLEMS: dict[str, Callable[..., Found]] = {
    **{name: partial(fit, *problem) for name, problem in FITS.items()},
    "10-fold CV of LDA, 1M x 28, K=10": folds,
    "predict": predictions,
    "memory beyond X of a fit, 1M x 28, K=10": footprints,
}
