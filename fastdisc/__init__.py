"""Linear discrimination on CPUs, many times faster than scikit-learn at the same optimum.

Public names are imported on first use: `import fastdisc` takes little longer than importing NumPy.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._version import __version__ as __version__
from .runtime import config_context, get_config, set_config, show_config

_MODULE_OF = {
    "Adaline": "online.adaline",
    "BernoulliNB": "closed_form.naive_bayes",
    "CollinearWarning": "exceptions",
    "FisherDiscriminant": "closed_form.fisher",
    "GaussianNB": "closed_form.naive_bayes",
    "LeastSquaresClassifier": "closed_form.least_squares",
    "LeastSquaresClassifierCV": "closed_form.least_squares",
    "LinearDiscriminantAnalysis": "closed_form.gaussian",
    "LogisticRegression": "linear.logistic",
    "LogisticRegressionCV": "linear.logistic_cv",
    "MultinomialNB": "closed_form.naive_bayes",
    "OneVsRestClassifier": "multiclass.one_vs_rest",
    "OnlineClassifier": "online.sgd",
    "PairwiseClassifier": "multiclass.pairwise",
    "PairwiseRanker": "ranking.ranker",
    "Perceptron": "online.perceptron",
    "PoissonNB": "closed_form.naive_bayes",
    "QuadraticDiscriminantAnalysis": "closed_form.gaussian",
    "RejectOption": "multiclass.reject",
    "SeparationWarning": "exceptions",
    "SigmoidRegression": "linear.sigmoid_regression",
    "cross_val_from_moments": "closed_form.cross_validation",
}
_MODULES = ("basis", "exceptions", "geometry", "metrics", "plot", "special")

__all__ = [
    "Adaline",
    "BernoulliNB",
    "CollinearWarning",
    "FisherDiscriminant",
    "GaussianNB",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultinomialNB",
    "OneVsRestClassifier",
    "OnlineClassifier",
    "PairwiseClassifier",
    "PairwiseRanker",
    "Perceptron",
    "PoissonNB",
    "QuadraticDiscriminantAnalysis",
    "RejectOption",
    "SeparationWarning",
    "SigmoidRegression",
    "basis",
    "config_context",
    "cross_val_from_moments",
    "exceptions",
    "geometry",
    "get_config",
    "metrics",
    "plot",
    "set_config",
    "show_config",
    "special",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
