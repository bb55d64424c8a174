"""Discriminants of fitted linear models, of this library and of others."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .._base import has_basis
from .._kernels.contract import Array
from ..multiclass.decisions import incidence


def linear_weights(model: Any) -> tuple[Array, Array]:
    """coef_ (K, d) and intercept_ (K,) of a fitted model; ValueError if it is not linear."""
    if not hasattr(model, "coef_"):
        if hasattr(model, "fit"):
            check_is_fitted(model)
        raise ValueError(f"{type(model).__name__} has no coef_: it is not a linear model")
    if has_basis(model):
        raise ValueError(
            f"{type(model).__name__} has a basis: it is not a linear model of the features"
        )
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64).reshape(-1)
    return coef, np.broadcast_to(intercept, len(coef))


def input_names(model: Any) -> list[str] | None:
    """The names of the columns that a model was fitted to, if they had names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def is_pairwise(model: Any) -> bool:
    """Whether the rows of coef_ belong to pairs of classes."""
    is_svm = type(model).__module__.startswith("sklearn.svm") and hasattr(model, "dual_coef_")
    if is_svm and len(model.classes_) > 2:
        raise ValueError(
            f"{type(model).__name__} decides by pairs of its own: use "
            "PairwiseClassifier(LinearSVC())"
        )
    return hasattr(model, "pairs_")


def discriminant_names(model: Any, n: int) -> list[str]:
    """Names of the n rows of coef_."""
    if is_pairwise(model):
        return [f"g[{model.classes_[i]}, {model.classes_[j]}]" for i, j in model.pairs_]
    if n == 1:
        return ["g"]
    if len(getattr(model, "classes_", ())) != n:
        return [f"g[{k}]" for k in range(n)]
    return [f"g[{label}]" for label in model.classes_]


def model_classes(model: Any) -> Array:
    """The classes of a fitted classifier, (K,)."""
    if not hasattr(model, "classes_"):
        raise ValueError(f"{type(model).__name__} has no classes_: it is not a classifier")
    return np.asarray(model.classes_)


def class_code(model: Any, label: Any) -> int:
    """The index of a label among the classes."""
    classes = model_classes(model)
    found = np.flatnonzero(classes == label)
    if len(found) != 1:
        raise ValueError(f"{label!r} is not one of the classes {classes.tolist()}")
    return int(found[0])


def largest_decides(model: Any) -> bool:
    """Whether the model predicts the class of the largest of K linear scores; its decision regions
    are then convex."""
    return getattr(model, "decision", "max") == ("sum" if is_pairwise(model) else "max")


def class_discriminants(model: Any) -> tuple[Array, Array]:
    """One discriminant per class, coef (K, d) and intercept (K,), of which the largest decides
    (10.8)."""
    coef, intercept = linear_weights(model)
    classes = model_classes(model)
    if is_pairwise(model):  # (10.10)
        B = incidence(len(classes)).T
        return B @ coef, B @ intercept
    if len(coef) == 1 and len(classes) == 2:
        return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    if len(coef) != len(classes) or getattr(model, "multilabel_", False):
        raise ValueError(
            f"{type(model).__name__} has {len(coef)} discriminants for {len(classes)} classes: "
            "they do not exclude each other"
        )
    return coef, intercept
