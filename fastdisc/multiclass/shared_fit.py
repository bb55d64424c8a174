"""Logistic discriminants of many two-class problems, trained in shared passes over the rows: one
class against the rest, and pairs of classes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import runtime
from .._data.rows import Rows
from .._kernels.contract import Array, Batch
from .._kernels.enums import RowLoss
from .._objectives.row_sums import RowSums
from .._objectives.shared_rows import Segment, SharedRows, worthwhile
from .._solvers import newton
from .._solvers.result import Result, Trace
from ..linear.logistic import LogisticRegression, store_solution
from ..linear.settings import Settings, read_settings
from ..linear.training import make_data, make_problem, warn_not_converged
from .constant import Constant

MAX_SMALL_VALUES = 200_000  # of X: up to here another Newton step costs almost nothing
SMALL_TOL = 1e-9  # the tolerance for such data
TWO_CLASSES = np.array([0, 1])

# Parameters of a LogisticRegression that must have these values, besides an L2 penalty.
REQUIRED = {
    "basis": None,
    "class_weight": None,
    "reference_class": None,
    "priors": None,
    "early_stopping": False,
    "callback": None,
}


class SharedFit:
    """Rows, their groups and weights, and the estimator that each problem is an instance of."""

    def __init__(
        self, estimator: LogisticRegression, X: Rows, r: Array, s: Array, options: dict[str, Any]
    ):
        self.estimator, self.r = estimator, r
        self.settings: Settings = replace(read_settings(estimator), **options)
        self.data = make_data(X, r, s, 2, self.settings)
        self.problem = make_problem(self.data, TWO_CLASSES, self.settings)
        self.group_weights = self.data.unit * self.data.source.class_weights

    @staticmethod
    def supports(estimator: Any) -> bool:
        """Whether the fits of an estimator are plain L2-penalised logistic problems."""
        if type(estimator) is not LogisticRegression or estimator.warm_start:
            return False
        settings = read_settings(estimator)
        if not all(getattr(estimator, name) is value for name, value in REQUIRED.items()):
            return False
        return settings.can_share_rows and settings.strengths(settings.C)[1] > 0

    @property
    def worthwhile(self) -> bool:
        """Whether shared passes are faster, and every group of rows has a weight."""
        return worthwhile(self.problem) and bool((self.group_weights > 0).all())

    @property
    def _l2(self) -> float:
        return self.settings.strengths(self.settings.C)[1]

    def against_rest(self, signs: Array, verbose: int) -> list[Any]:
        """A fitted estimator for each column of signs (groups, K), 1 or -1; a constant where all
        rows have the same sign."""
        found = np.flatnonzero((signs != signs[0]).any(axis=0))
        models: list[Any] = [Constant().fit(None, (sign > 0).astype(int)) for sign in signs.T]
        if len(found):
            objective = SharedRows.of(self.problem, signs[:, found], self._l2)
            fitted = self._fit(objective, signs[:, found], verbose)
            for k, model in zip(found, fitted, strict=True):
                models[k] = model
        return models

    def pairs(self, pairs: Array, verbose: int) -> list[Any]:
        """A fitted estimator for each pair of groups i < j, negative for i."""
        signs, columns = np.zeros((len(self.group_weights), len(pairs)), np.int8), range(len(pairs))
        signs[pairs[:, 0], columns], signs[pairs[:, 1], columns] = -1, 1
        segments, penalty = self._segments(signs), self.problem.penalty(self._l2)
        return self._fit(SharedRows(segments, self.problem.units, penalty), signs, verbose)

    def _segments(self, signs: Array) -> list[Segment]:
        """Rows sorted by group, each group with the problems that it belongs to. X is copied unless
        it is sorted: (1M x 28, K = 10: 44 ms per pass instead of 286, for 41 ms of copying)."""
        source, r = self.data.source, self.r
        X, s = source.X, source.batch.s
        if (r[1:] < r[:-1]).any():
            # np.argsort counts 16-bit numbers instead of comparing them
            order = np.argsort(
                r.astype(np.uint16 if len(signs) < 1 << 16 else r.dtype), kind="stable"
            )
            with runtime.threads(source.n_threads, X.n_values) as n:
                X, s = X.gather(order, n), s[order] if len(s) > 1 else s
        ends, segments = np.append(0, np.cumsum(source.class_counts)), []
        for group, row in enumerate(signs):
            begin, end = ends[group], ends[group + 1]
            own = np.flatnonzero(row)
            weight = self.data.unit * (s[begin:end] if len(s) > 1 else s)
            batch = Batch(X.take(slice(begin, end)), np.zeros(end - begin, np.int32), weight)
            data = RowSums(source.like(batch), RowLoss.LOGISTIC)
            segments.append(Segment(data, np.ascontiguousarray(row[None, own]), own))
        return segments

    def _fit(self, objective: SharedRows, signs: Array, verbose: int) -> list[Any]:
        settings, X = self.settings, self.data.X
        small = X.n_values <= MAX_SMALL_VALUES
        tol = min(settings.tol, SMALL_TOL) if small else settings.tol
        trace = Trace(max(verbose, settings.verbose))
        max_iter = settings.max_iterations("newton")
        start = list(np.zeros((objective.n_problems, *objective.shape)))
        try:
            results = newton.solve_shared(objective, start, tol=tol, max_iter=max_iter, trace=trace)
        except ValueError:
            X.check_finite()  # names the cell by its row in X as it was given
            raise
        plain = clone(self.estimator)
        pairs = zip(results, signs.T, strict=True)
        models = [self._model(copy(plain), result, column) for result, column in pairs]
        worst = max(results, key=lambda result: result.gradient_norm)
        if worst.gradient_norm > settings.tol:
            warn_not_converged(worst, "newton", settings.tol, stacklevel=6)
        return models

    def _model(self, model: LogisticRegression, result: Result, column: Array) -> Any:
        """A LogisticRegression, as if it had been fitted by itself."""
        model.n_features_in_ = self.problem.d
        store_solution(model, self.problem, TWO_CLASSES, result, "newton")
        weights = self.group_weights
        totals = np.array([weights[column < 0].sum(), weights[column > 0].sum()])
        model.priors_ = totals / totals.sum()
        model.converged_ = bool(result.gradient_norm <= model.tol)
        return model
