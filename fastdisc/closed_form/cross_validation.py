"""Cross-validation from one pass: moments of folds are subtracted from those of all rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from .._data.moments import merge_all
from .._kernels.contract import Array
from .._validation.arrays import check_rows, check_sample_weight, forbid_supervised_basis
from .._validation.labels import encode_labels
from .._validation.splits import fold_codes
from .base import FromMoments


def cross_val_from_moments(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    return_estimator: bool = False,
) -> Any:
    """Cross-validated scores of a closed-form model from one pass over the data.

    The moments of each fold are subtracted from those of all rows, and the model is computed from
    the rest. The scores are those of scikit-learn's `cross_val_score`.

    Parameters
    ----------
    estimator : a closed-form model of this package
        LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, FisherDiscriminant,
        LeastSquaresClassifier or naive Bayes.
    X : {array, sparse matrix} of shape (N, d)
        Training rows.
    y : array of shape (N,)
        Class labels.
    cv : int, splitter or None, default=None
        As in scikit-learn, but folds only: each row is held out at most once. None for 5 stratified
        folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None for accuracy.
    sample_weight : array of shape (N,), optional
        Row weights of the fits; the scores are not weighted.
    return_estimator : bool, default=False
        Whether to return the model of each fold as well.

    Returns
    -------
    scores : array of shape (n_folds,)
        The score of each fold's model on the rows that it was not fitted to.
    estimators : list
        The fitted models, only with `return_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LinearDiscriminantAnalysis, cross_val_from_moments
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_from_moments(LinearDiscriminantAnalysis(), X, y, cv=5).round(2)
    array([1.  , 1.  , 0.97, 0.93, 1.  ])
    """
    if not isinstance(estimator, FromMoments) or not estimator.is_function_of_moments:
        raise ValueError(
            f"{estimator!r} is not a function of moments: use "
            "sklearn.model_selection.cross_val_score"
        )
    model = clone(estimator)
    model.check_parameters()
    forbid_supervised_basis(getattr(model, "basis", None))
    X = X.tocsr() if issparse(X) else X
    rows = check_rows(model, X, reset=True)
    classes, r = encode_labels(y, rows.shape[0])
    s = check_sample_weight(sample_weight, rows.shape[0])
    folds, n_parts, n_folds = fold_codes(cv, r, len(classes))
    parts = model.fold_moments(rows, r, s, len(classes), folds, n_parts)
    total = merge_all(parts)
    scores, models = np.empty(n_folds), []
    for f in range(n_folds):
        fitted = copy.copy(model)
        fitted.learn_moments(total.subtract(parts[f]), classes)
        held = np.flatnonzero(folds == f)
        scores[f] = _score(fitted, scoring, X, y, held, classes[r[held]])
        models.append(fitted)
    return (scores, models) if return_estimator else scores


def _score(model: Any, scoring: Any, X: Any, y: Any, rows: Array, labels: Array) -> float:
    """The score on some rows, which have these labels."""
    held = X.take(rows, axis=0) if type(X) is np.ndarray else _safe_indexing(X, rows)
    if scoring is None:
        return float(np.mean(model.predict(held) == labels))
    return float(get_scorer(scoring)(model, held, _safe_indexing(y, rows)))
