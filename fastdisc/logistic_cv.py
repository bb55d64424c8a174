"""Logistic discrimination with the strength of its penalty chosen by cross-validation."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from . import _validate
from ._base import LinearClassifier, Posteriors, all_or_nothing, choice, number
from ._kernels import Link
from ._rows import take_rows
from ._sweep import Sweep, outputs
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
    "basis",
    "backend",
    "n_threads",
)
SLICE = 1 << 21  # numbers that are held at a time when rows held out are scored


class LogisticRegressionCV(Posteriors, LinearClassifier):
    """LogisticRegression whose C, and l1_ratio, score best on rows held out.

    Each fold's solutions for all C follow each other, the strongest penalty first. No fold copies X: rows held out have weight 0.

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
        Fit all rows with the best values; else the folds' weights there are averaged.
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
        weight = np.broadcast_to(_validate.sample_weight(sample_weight, sweep.rows), sweep.rows)  # without those of classes
        folds = list(check_cv(self.cv, y, classifier=True).split(np.zeros(sweep.rows), y))
        if not folds:
            raise ValueError("cv has no fold")
        # 2. solve
        scores, paths, n_iter = [], [], []
        for number_of_fold, (train, test) in enumerate(folds):
            fold = self._fold(sweep, classes, train, f"fold {number_of_fold}")
            held_out = Held(self, model, sweep, classes, X, y, test, weight)
            found = [self._paths(fold, classes, Cs, ratio, held_out) for ratio in ratios]
            scores.append([[f[0] for f in path] for path in found])
            paths.append([[f[1] for f in path] for path in found])
            n_iter.append([[f[2] for f in path] for path in found])
            if self.verbose:
                best = np.max([f[0] for path in found for f in path])
                print(f"[cv] fold {number_of_fold + 1} of {len(folds)}: best score {best:.6g}", flush=True)
        scores, paths = np.array(scores), np.array(paths)
        if not np.isfinite(scores).all():
            raise ValueError(f"scoring={self.scoring!r} gave a score that is not finite: no C can be chosen by it")
        i, j = np.unravel_index(scores.mean(axis=0).argmax(), scores.shape[1:])
        C, ratio, V = float(Cs[j]), float(ratios[i]), paths[:, i, j].mean(axis=0)
        if self.refit:
            final = self._model(C, ratio)
            problem = final._problem(sweep, classes)
            result, name = final._solve(problem, problem.inward(V), C)
            V = problem.outward(result.W)
            final._warn(result, name)
        # 3. store
        self.C_, self.l1_ratio_, self.Cs_, self.l1_ratios_, self.scores_ = C, ratio, Cs, ratios, scores
        self.coefs_paths_, self.n_iter_ = np.roll(paths, -1, axis=-1), np.array(n_iter, dtype=np.int32)
        self.classes_, self.coef_, self.intercept_ = classes, V[:, 1:].copy(), V[:, 0].copy()
        for name in ("n_features_in_", "feature_names_in_", "basis_"):
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

    def _fold(self, sweep, classes, train, name):
        """The sweep with weight on the training rows alone."""
        s = only(train, sweep.unit * np.broadcast_to(sweep.s, sweep.rows))
        missing = classes[np.bincount(sweep.r, s, len(classes)) == 0]
        if len(missing):
            raise ValueError(f"{name} has no training rows of class {missing[0]!r}: take fewer folds, or stratified ones")
        return Sweep(sweep.X, sweep.r, s, sweep.link, **sweep.options)

    def _paths(self, fold, classes, Cs, ratio, held_out):
        """(score, weights, iterations) for each of Cs."""
        model = self._model(1.0, ratio)
        problem = model._problem(fold, classes)
        found = {}
        for C, result in model._path(problem, len(classes), Cs):
            found[C] = problem.outward(result.W), result.n_iter
            model._warn(result, f"{self.solver} at C={C:g}")
        scores = held_out.scores(np.array([found[C][0] for C in Cs]))
        return [(score, *found[C]) for score, C in zip(scores, Cs, strict=True)]


def only(rows, weight):
    """The weights of some rows, as often as they are named; 0 for all others."""
    n = len(weight)
    return weight * np.bincount(np.arange(n)[rows], minlength=n)


class Held:
    """The rows held out of one fold, and how weights score on them."""

    def __init__(self, owner, model, sweep, classes, X, y, test, weight):
        self.scorer = None if owner.scoring is None else get_scorer(owner.scoring)
        self.sweep, self.model = sweep, model
        if self.scorer is None:
            self.rows = np.arange(sweep.rows)[test]
            self.rows = self.rows[weight[self.rows] > 0]
            self.weight = weight[self.rows]
            if not len(self.rows):
                raise ValueError("cv: a fold holds out no row with a weight: its score would be undefined")
        else:
            self.X, self.y = _safe_indexing(X, test), _safe_indexing(y, test)
            model.classes_ = classes

    def scores(self, V):
        """Accuracy, or what the scorer says, of each of the weights (n, K, d+1)."""
        if self.scorer is None:
            return self.accuracies(V)
        found = []
        for weights in V:
            self.model.coef_, self.model.intercept_ = weights[:, 1:], weights[:, 0]
            found.append(float(self.scorer(self.model, self.X, self.y)))
        return found

    def accuracies(self, V):
        """The share of the weight that is classified rightly: all weights in one pass, a slice of the rows at a time."""
        n, K, D = V.shape
        right, step = np.zeros(n), max(1, SLICE // (D + n * K))
        for begin in range(0, len(self.rows), step):
            rows = self.rows[begin : begin + step]
            Z = outputs(take_rows(self.sweep.X, rows), Link.IDENTITY, V.reshape(n * K, D), **self.sweep.options)
            chosen = Z > 0 if K == 1 else Z.reshape(len(rows), n, K).argmax(axis=2)
            right += self.weight[begin : begin + step] @ (chosen == self.sweep.r[rows, None])
        return right / self.weight.sum()
