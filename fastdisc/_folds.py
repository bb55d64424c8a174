"""Cross-validation for the price of one pass: each fold's moments come off those of all rows."""

from __future__ import annotations

import copy

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from . import _validate
from ._generative import FromMoments
from ._rows import take_rows
from ._splits import fold_codes


def merged(parts):
    """The moments of all parts."""
    total, *others = parts
    for part in others:
        total = total.merge(part)
    return total


def cross_val_from_moments(estimator, X, y, *, cv=None, scoring=None, sample_weight=None, return_estimator=False):
    """Cross-validated scores of a closed-form model from one pass over the data, as scikit-learn's cross_val_score has them.

    Each fold's moments are subtracted from those of all rows, and the model is solved for from the rest.

    Parameters
    ----------
    estimator : a closed-form model of this package
        LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, FisherDiscriminant, LeastSquaresClassifier or naive Bayes.
    X : {array, sparse matrix} of shape (N, d)
    y : array of shape (N,)
    cv : int, splitter or None, default=None
        As in scikit-learn, but folds only: each row is held out at most once. None for 5 stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None for accuracy.
    sample_weight : array of shape (N,), optional
        For the fits; scores count rows.
    return_estimator : bool, default=False
        Also return the model of each fold.

    Returns
    -------
    scores : array of shape (n_folds,)
    estimators : list
        With `return_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LinearDiscriminantAnalysis, cross_val_from_moments
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_from_moments(LinearDiscriminantAnalysis(), X, y, cv=5).round(2)
    array([1.  , 1.  , 0.97, 0.93, 1.  ])
    """
    if not isinstance(estimator, FromMoments) or hasattr(estimator, "alphas"):
        raise ValueError(f"{estimator!r} is not a function of moments: take sklearn.model_selection.cross_val_score")
    model = clone(estimator)
    model._check()
    _validate.blind(getattr(model, "basis", None))
    X = X.tocsr() if issparse(X) else X
    features = _validate.features(model, X, reset=True)
    classes, r = _validate.labels(y, features.shape[0])
    s = _validate.sample_weight(sample_weight, features.shape[0])
    folds, count, tested = fold_codes(cv, r, len(classes))
    parts = model._gather_folds(features, r, s, len(classes), folds, count)
    total = merged(parts)
    scores, models = np.empty(tested), []
    for f in range(tested):
        fitted = copy.copy(model)
        fitted._learn(total.subtract(parts[f]), classes, closed=False)
        rows = np.flatnonzero(folds == f)
        held = take_rows(X, rows) if type(X) is np.ndarray else _safe_indexing(X, rows)
        if scoring is None:
            scores[f] = np.mean(fitted.predict(held) == classes[r[rows]])
        else:
            scores[f] = get_scorer(scoring)(fitted, held, _safe_indexing(y, rows))
        models.append(fitted)
    return (scores, models) if return_estimator else scores
