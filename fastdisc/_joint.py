"""Logistic discriminants of many two-class problems, trained together: one against the rest, pairs of classes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import _num_samples

from . import _config
from ._kernels import CSR, Link
from ._problem import Problem
from ._rows import take_rows, window
from ._solvers import Trace, together
from ._sweep import Sweep
from ._together import Segment, Together, suits
from ._validate import check_finite
from .logistic import LogisticRegression

FEW = 200_000  # cells of X: up to here a Newton step more costs next to nothing
FINE = 1e-9

# What a LogisticRegression must leave as it is, besides an L2 penalty: the rest has its own way of fitting.
PLAIN = {"basis": None, "class_weight": None, "reference_class": None, "priors": None, "early_stopping": False, "callback": None}


class Constant(ClassifierMixin, BaseEstimator):
    """What stands for a discriminant where all rows are on one side: that side, with certainty."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.y_ = np.array([0, 1]), int(y[0])
        return self

    def decision_function(self, X):
        return np.full(_num_samples(X), 2.0 * self.y_ - 1)

    def predict(self, X):
        return np.full(_num_samples(X), self.y_)

    def predict_proba(self, X):
        return np.tile([1.0 - self.y_, self.y_], (_num_samples(X), 1))


def covers(estimator):
    """Whether an estimator's fits are L2-penalised logistic problems without any specials."""
    if type(estimator) is not LogisticRegression or estimator.warm_start:
        return False
    estimator._check_parameters()
    plain = all(getattr(estimator, name) is value for name, value in PLAIN.items())
    return plain and estimator._strengths(estimator.C)[1] > 0 and estimator._shares_sweeps()


def gather(X, order, n_threads):
    """All rows in another order, copied by several threads: of 1M x 28 in 41 ms instead of 70."""
    if isinstance(X, CSR):
        return take_rows(X, order)
    result, step = np.empty(X.shape, X.dtype), 1 << 16
    with _config.threads(n_threads, X.size) as n, ThreadPoolExecutor(n) as pool:
        parts = [slice(begin, begin + step) for begin in range(0, len(order), step)]
        list(pool.map(lambda part: np.take(X, order[part], axis=0, out=result[part], mode="clip"), parts))
    return result


class Joint:
    """Rows, their kinds and weights, and the estimator that each problem is to be an instance of."""

    def __init__(self, estimator, X, r, s, options):
        self.estimator, self.r, self.options = estimator, r, options
        self.sweep = Sweep(X, r, s, Link.LOGISTIC, **options)
        self.problem = Problem(self.sweep, intercept=estimator.fit_intercept)
        self.mass = self.sweep.unit * self.sweep.mass

    @property
    def suits(self):
        """Whether training together is the better way, and every kind of rows has a weight."""
        return suits(self.problem) and bool((self.mass > 0).all())

    def against_rest(self, sides, verbose):
        """A fitted estimator for each column of sides (kinds, K), 1 or -1; a constant where all rows are on one side."""
        found = np.flatnonzero((sides != sides[0]).any(axis=0))
        models = [Constant().fit(None, (side > 0).astype(int)) for side in sides.T]
        if len(found):
            fitted = self._fit(Together.of(self.problem, sides[:, found], self._l2()), sides[:, found], verbose)
            for k, model in zip(found, fitted, strict=True):
                models[k] = model
        return models

    def pairs(self, pairs, verbose):
        """A fitted estimator for each pair of kinds i < j, negative for i."""
        sides = np.zeros((len(self.mass), len(pairs)), np.int8)
        sides[pairs[:, 0], np.arange(len(pairs))], sides[pairs[:, 1], np.arange(len(pairs))] = -1, 1
        problem = self.problem
        together = Together(self._segments(sides), problem.mean, problem.scale, problem.l2(self._l2()), problem.intercept)
        return self._fit(together, sides, verbose)

    def _segments(self, sides):
        """Rows grouped by kind, each group with the problems that it has a part in: one copy of X, none where they are so."""
        X, r, s = self.sweep.X, self.r, self.sweep.s
        if (r[1:] < r[:-1]).any():
            order = np.argsort(r.astype(np.uint16 if len(sides) < 1 << 16 else r.dtype), kind="stable")  # 16 bits: by counting
            X, s = gather(X, order, self.options["n_threads"]), s[order] if len(s) > 1 else s
        ends = np.append(0, np.cumsum(self.sweep.counts))
        segments = []
        for kind, row in enumerate(sides):
            begin, end = ends[kind], ends[kind + 1]
            mine = np.flatnonzero(row)
            weight = self.sweep.unit * (s[begin:end] if len(s) > 1 else s)
            sweep = Sweep(window(X, begin, end), np.zeros(end - begin, np.int32), weight, Link.LOGISTIC, **self.options)
            segments.append(Segment(sweep, np.ascontiguousarray(row[None, mine]), mine))
        return segments

    def _l2(self):
        return self.estimator._strengths(self.estimator.C)[1]

    def _fit(self, objective, sides, verbose):
        estimator, X = self.estimator, self.sweep.X
        few = (len(X.data) if isinstance(X, CSR) else X.size) <= FEW
        tol = min(estimator.tol, FINE) if few else estimator.tol
        limit = estimator._limit("newton")
        W = np.zeros((objective.K, self.problem.d + 1))
        try:
            results = together.solve(objective, W, tol=tol, max_iter=limit, trace=Trace(max(verbose, estimator.verbose)))
        except ValueError:
            check_finite(X)  # names the cell by its place in X as it was given
            raise
        plain = clone(estimator)
        models = [self._model(copy(plain), result, column) for result, column in zip(results, sides.T, strict=True)]
        worst = max(results, key=lambda result: result.gradient_norm)
        if worst.gradient_norm > estimator.tol:
            estimator._warn(worst, "together")
        return models

    def _model(self, model, result, column):
        """A LogisticRegression, as if fitted by itself."""
        model.n_features_in_ = self.problem.d
        model._store(self.problem, np.array([0, 1]), result, "together")
        mass = np.array([self.mass[column < 0].sum(), self.mass[column > 0].sum()])
        model.priors_, model._certainty = mass / mass.sum(), None
        model.converged_ = bool(result.gradient_norm <= model.tol)
        return model
