"""fastdisc: linear discrimination on CPUs, many times faster than scikit-learn at the same optimum.

Public names are loaded on first use, so that `import fastdisc` costs little more than importing NumPy.
"""

import importlib

from ._config import config_context, get_config, set_config, show_config

__version__ = "0.1.0"

_LAZY = {
    "Adaline": "adaline",
    "LogisticRegression": "logistic",
    "LogisticRegressionCV": "logistic_cv",
    "OnlineClassifier": "online",
    "Perceptron": "perceptron",
    "SeparationWarning": "exceptions",
    "SigmoidRegression": "regression",
}
_MODULES = ("exceptions", "special")

__all__ = [
    "Adaline",
    "LogisticRegression",
    "LogisticRegressionCV",
    "OnlineClassifier",
    "Perceptron",
    "SeparationWarning",
    "SigmoidRegression",
    "config_context",
    "exceptions",
    "get_config",
    "set_config",
    "show_config",
    "special",
]


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, "__version__"])
