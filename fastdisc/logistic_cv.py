"""Logistic discrimination with the strength of its penalty chosen by cross-validation."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from . import _validate
from ._base import LinearClassifier, Posteriors, all_or_nothing, choice, number
from ._fold_paths import paths
from ._kernels import Link
from ._rows import some_rows
from ._splits import splits
from ._sweep import Sweep, outputs
from ._together import sweeps
from .logistic import LogisticRegression

# Parameters that are handed on.
SHARED = (
    "fit_intercept",
    "class_weight",
    "tol",
    "max_iter",
    "solver",
    "standardize",
    "random_state",
    "verbose",
    "basis",
    "backend",
    "n_threads",
)
SLICE = 1 << 20  # numbers that are held at a time when rows held out are scored


class LogisticRegressionCV(Posteriors, LinearClassifier):
    """LogisticRegression whose C, and l1_ratio, score best on rows held out.

    Solutions for all C follow each other, the strongest penalty first. No fold copies X: rows held out have weight 0. With two
    classes, folds share their sweeps: each row is read once for all of them.

    Parameters
    ----------
    Cs : int or array, default=10
        Values of C to try, or how many between 1e-4 and 1e4.
    l1_ratios : array, default=(0.0,)
        Values of l1_ratio to try.
    cv : int, splitter or None, default=None
        As in scikit-learn; None for 5 stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None for accuracy, counted for all C in one pass.
    refit : bool, default=True
        Fit all rows with the best values; else the folds' weights there are averaged (scikit-learn averages those at each fold's
        own best).
    fit_intercept, class_weight, tol, max_iter, solver, standardize, random_state, verbose, basis, backend, n_threads
        As in LogisticRegression.
    dual, intercept_scaling, n_jobs, use_legacy_attributes : ignored
        Taken so that scikit-learn's calls keep working.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The best values.
    Cs_, l1_ratios_ : arrays
        All values that were tried.
    scores_ : array of shape (n_folds, n_l1_ratios, n_Cs)
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_Cs, n_rows_of_weights, d+1)
        The intercept last.
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in LogisticRegression.
    n_iter_ : array of shape (n_folds, n_l1_ratios, n_Cs)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fastdisc import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 1.0], standardize=True).fit(X, y)
    >>> model.C_
    1.0
    """

    def __init__(
        self,
        *,
        Cs=10,
        l1_ratios=(0.0,),
        fit_intercept=True,
        cv=None,
        dual=False,
        scoring=None,
        solver="auto",
        tol=1e-6,
        max_iter=None,
        class_weight=None,
        standardize=False,
        random_state=None,
        verbose=0,
        refit=True,
        basis=None,
        backend=None,
        n_threads=None,
        n_jobs=None,
        intercept_scaling=1.0,
        use_legacy_attributes=False,
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose
        self.refit = refit
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads
        self.n_jobs = n_jobs
        self.intercept_scaling = intercept_scaling
        self.use_legacy_attributes = use_legacy_attributes

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Choose C and l1_ratio, and learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        sample_weight : array of shape (N,), optional
            Also weighs the rows held out, where `scoring` is None.
        """
        # 1. validate
        choice(self.refit, "refit", (True, False))
        Cs = self._strengths()
        ratios = np.array([self._model(1.0, ratio).l1_ratio for ratio in np.atleast_1d(self.l1_ratios)])
        if not len(ratios):
            raise ValueError("l1_ratios has no value to try")
        _validate.blind(self.basis)
        model = self._model(1.0, 0.0)
        classes, sweep = model._validated(X, y, sample_weight, None)
        weight = _validate.sample_weight(sample_weight, sweep.rows)  # without those of classes
        folds = splits(self.cv, y, sweep.r, len(classes))
        trains = self._training_rows(folds, classes, sweep)
        if self.scoring is None:
            held_out = [Accuracy(sweep, test, weight) for _, test in folds]
        else:
            scorer, model.classes_ = get_scorer(self.scoring), classes
            held_out = [Scores(scorer, model, _safe_indexing(X, test), _safe_indexing(y, test)) for _, test in folds]
        # 2. solve
        found = [paths(self._model(1.0, ratio), sweep, classes, trains, Cs) for ratio in ratios]
        V, n_iter = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))  # (n_folds, n_l1_ratios, n_Cs, ...)
        scores = np.array([[held.scores(path) for path in fold] for held, fold in zip(held_out, V, strict=True)])
        if not np.isfinite(scores).all():
            raise ValueError(f"scoring={self.scoring!r} gave a score that is not finite: no C can be chosen by it")
        i, j = np.unravel_index(scores.mean(axis=0).argmax(), scores.shape[1:])
        C, ratio, W = float(Cs[j]), float(ratios[i]), V[:, i, j].mean(axis=0)
        if self.refit:
            final = self._model(C, ratio).set_params(tol=self.tol / 10)  # the folds' mean may meet a loose tol as it is
            problem = final._problem(sweep, classes)
            result, name = final._solve(problem, problem.inward(W), C)
            W = problem.outward(result.W)
            final._warn(result, name)
        # 3. store
        self.C_, self.l1_ratio_, self.Cs_, self.l1_ratios_, self.scores_ = C, ratio, Cs, ratios, scores
        self.coefs_paths_, self.n_iter_ = np.roll(V, -1, axis=-1), n_iter.astype(np.int32)
        self.classes_, self.coef_, self.intercept_ = classes, W[:, 1:].copy(), W[:, 0].copy()
        for name in ("n_features_in_", "feature_names_in_", "basis_"):
            vars(self).pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def _strengths(self):
        if np.ndim(self.Cs) == 0:
            return np.logspace(-4, 4, number(self.Cs, "Cs", low=1, whole=True))
        return _validate.strengths(self.Cs)

    def _model(self, C, ratio):
        """A LogisticRegression with this one's parameters, checked."""
        model = LogisticRegression(C=C, l1_ratio=ratio, **{name: getattr(self, name) for name in SHARED})
        model._check_parameters()
        return model

    def _training_rows(self, folds, classes, sweep):
        """Of each fold, checked for rows of all classes."""
        if not folds:
            raise ValueError("cv has no fold")
        for f, (train, _) in enumerate(folds):
            weight = sweep.s[train] if len(sweep.s) > 1 else None
            missing = np.bincount(sweep.r[train], weight, len(classes)) == 0
            if missing.any():
                name = classes[missing.argmax()]
                raise ValueError(f"fold {f} has no training rows of class {name!r}: take fewer folds, or stratified ones")
        return [train for train, _ in folds]


class Scores:
    """What a scorer says of weights on the rows held out of one fold."""

    def __init__(self, scorer, model, X, y):
        self.scorer, self.model, self.X, self.y = scorer, model, X, y

    def scores(self, V):
        """The score of each of the weights (n, K, d+1)."""
        found = []
        for weights in V:
            self.model.coef_, self.model.intercept_ = weights[:, 1:], weights[:, 0]
            found.append(float(self.scorer(self.model, self.X, self.y)))
        return found


class Accuracy:
    """The share of the weight held out of one fold that is classified rightly."""

    def __init__(self, sweep, test, weight):
        equal = len(weight) == 1
        self.sweep, self.rows = sweep, test if equal else test[weight[test] > 0]
        self.weight = weight if equal else weight[self.rows]
        if not len(self.rows):
            raise ValueError("cv: a fold holds out no row with a weight: its score would be undefined")

    def scores(self, V):
        """The accuracy of each of the weights (n, K, d+1): all in one pass, a slice of the rows at a time."""
        n, K, _ = V.shape
        wrong, step = np.zeros(n), max(1024, int(SLICE / (self.sweep.width + n * K)))  # each slice lays out all weights anew
        for begin in range(0, len(self.rows), step):
            rows = self.rows[begin : begin + step]
            s = self.weight if len(self.weight) == 1 else self.weight[begin : begin + step]
            part = Sweep(some_rows(self.sweep.X, rows), self.sweep.r[rows], s, Link.LOGISTIC, **self.sweep.options)
            wrong += self._errors(part, V)
        total = np.broadcast_to(self.weight, len(self.rows)).sum()
        return (total - wrong) / total

    def _errors(self, part, V):
        """The misclassified weight."""
        n, K, D = V.shape
        if K == 1:  # as n problems on the same rows, which are counted without their scores in memory
            return sweeps(part, np.array([[-1] * n, [1] * n], np.int8), V.reshape(n, D), 0).errors
        Z = outputs(part.X, Link.IDENTITY, V.reshape(n * K, D), **part.options)
        wrong = Z.reshape(part.rows, n, K).argmax(axis=2) != part.r[:, None]
        return part.unit * (part.s @ wrong if len(part.s) > 1 else np.count_nonzero(wrong, axis=0))
