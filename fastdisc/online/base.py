"""The base of online classifiers: epochs over all rows until the objective no longer falls, or a
single pass over each part of a stream."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from .. import runtime
from .._base import LinearClassifier, all_or_nothing
from .._data.rows import Rows
from .._data.sampling import standardize
from .._data.source import MemorySource
from .._kernels import Batch, OnlineRule, OnlineState, RowLoss
from .._kernels.contract import Array
from .._objectives.epochs import (
    Epochs,
    averaged_weights,
    copy_state,
    initial_state,
    with_buffers,
)
from .._objectives.row_sums import RowSums
from .._solvers.online import OnlineResult, Stopping, solve
from .._validation.arrays import check_rows, check_sample_weight
from .._validation.labels import check_class_weight, encode_labels
from .._validation.parameters import check_choice, check_number

Errors = Callable[[Array], float]


class Units(NamedTuple):
    """The mean and the scale of standardised columns; 0 and 1 without standardisation."""

    mean: Array
    scale: Array


class OnlineLearner(LinearClassifier):
    """A linear classifier that is updated row by row. Subclasses define the rule."""

    fit_intercept: bool
    max_iter: int
    tol: float | None
    n_iter_no_change: int
    shuffle: bool | str
    random_state: Any
    eta0: Any
    penalty: str | None
    alpha: float
    l1_ratio: float
    average: bool | int
    class_weight: Any
    early_stopping: bool
    validation_fraction: float
    warm_start: bool
    standardize: bool
    verbose: int
    _state: OnlineState | None

    # Whether an epoch without updates is the only form of convergence.
    _stops_without_updates = False

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Training rows.
        y : array of shape (N,)
            Class labels: whole numbers or names.
        coef_init : array of the shape of `coef_`, optional
            Initial weights; zeros by default.
        intercept_init : array of the shape of `intercept_`, optional
            Initial intercepts; zeros by default.
        sample_weight : array of shape (N,), optional
            Row weights: factors of the steps.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True, y=y)
        classes, r = encode_labels(y, rows.shape[0])
        s = check_sample_weight(sample_weight, rows.shape[0])
        s = check_class_weight(self.class_weight, classes, r, s)
        units = Units(np.zeros(rows.shape[1]), np.ones(rows.shape[1]))
        if self.standardize:
            rows, *moments = standardize(rows, s)
            units = Units(*moments)
            self.mean_, self.scale_ = units
        state = self._initial_state(classes, coef_init, intercept_init, units)
        result = self._train(Batch(rows, r, s), state, len(classes))
        self._state = None if self.standardize else state
        self._store(classes, result.W, units)
        if result.exhausted and (self.tol is not None or self._stops_without_updates):
            warnings.warn(self._exhausted_message(), ConvergenceWarning, stacklevel=3)
        return self

    def _train(self, batch: Batch, state: OnlineState, n_classes: int) -> OnlineResult:
        """Train on validated rows, and store how that went."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        training, validation_error = self._hold_out(batch, n_classes, seed)
        training_errors = None
        if self._keeps_best_weights:
            training_errors = self._row_sums(batch, n_classes).errors
        options: dict[str, Any] = {"backend": self.backend, "n_threads": self.n_threads}
        epochs = Epochs(training, shuffle=self.shuffle, seed=seed, **options)
        self._set_step(epochs.X, training.s)
        rule = self._rule(n_classes)
        result = self._solve(epochs, state, rule, validation_error, training_errors)
        self.n_iter_, self.converged_ = result.n_iter, bool(result.converged)
        self.t_, self.history_ = 1 + state.clock[0], result.history
        self._record(epochs, result)
        return result

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: one pass, in the given order.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Further training rows.
        y : array of shape (N,)
            Class labels.
        classes : array of shape (K,), optional
            All labels that may occur; required in the first call, unless the model is fitted: then
            training continues from its weights.
        sample_weight : array of shape (N,), optional
            Row weights: factors of the steps.

        Returns
        -------
        self : object
            The updated estimator.
        """
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping, which needs all rows")
        first, known, rows, r, s = self._next_rows(X, y, classes, sample_weight)
        units = Units(np.zeros(rows.shape[1]), np.ones(rows.shape[1]))
        state = getattr(self, "_state", None)
        if state is None:
            state = self._initial_state(known, None, None, units, warm=not first)
        else:
            state = copy_state(state)
        if first or not hasattr(
            self, "eta_"
        ):  # a step that was derived from the first rows is kept
            self._set_step(rows, s)
        rule = self._rule(len(known))
        state = with_buffers(state, average=bool(self.average), l1=rule.alpha * rule.l1 > 0)
        epochs = Epochs(Batch(rows, r, s), backend=self.backend, n_threads=self.n_threads)
        loss, updates = epochs.run(state, rule)
        self._state = state
        self._store(known, averaged_weights(state, rule.begin), units)
        self.n_iter_, self.t_ = 1, 1 + state.clock[0]
        self.history_ = {"loss": [loss / (epochs.total_weight or 1.0)], "updates": [updates]}
        self.converged_ = bool(self._stops_without_updates and updates == 0)
        self._record(None, None)
        return self

    # --- what subclasses define ---------------------------------------------------------------

    def _rule(self, n_classes: int) -> OnlineRule:
        """The update of a row."""
        raise NotImplementedError

    @property
    def _keeps_best_weights(self) -> bool:
        """Whether the weights with the fewest training errors are kept."""
        return False

    @property
    def _has_adaptive_steps(self) -> bool:
        """Whether steps are reduced when `tol` would stop the training."""
        return False

    def _set_step(self, X: Rows, s: Array) -> None:
        """Derive the step from the rows."""

    def _record(self, epochs: Epochs | None, result: OnlineResult | None) -> None:
        """Store further fitted attributes."""

    def _exhausted_message(self) -> str:
        return (
            f"the objective still fell by more than tol={self.tol:g} in the last of "
            f"max_iter={self.max_iter} epochs: increase max_iter, or tol"
        )

    def _solve(
        self,
        epochs: Epochs,
        state: OnlineState,
        rule: OnlineRule,
        validation_error: Errors | None,
        training_errors: Errors | None,
    ) -> OnlineResult:
        return solve(
            epochs,
            state,
            rule,
            max_iter=self.max_iter,
            stopping=Stopping(
                self.tol,
                self.n_iter_no_change,
                without_updates=self._stops_without_updates,
                adaptive=self._has_adaptive_steps,
            ),
            validation_error=validation_error,
            training_errors=training_errors,
            verbose=self.verbose,
        )

    # --- parts of a fit -----------------------------------------------------------------------

    def _initial_state(
        self, classes: Array, coef: Any, intercept: Any, units: Units, warm: bool | None = None
    ) -> OnlineState:
        """A state at the given weights, at those of the last fit, or at zeros."""
        K, d = 1 if len(classes) == 2 else len(classes), len(units.mean)
        W = np.zeros((K, d + 1))
        warm = self.warm_start and hasattr(self, "coef_") if warm is None else warm
        if warm and coef is None:
            coef, intercept = self.coef_, self.intercept_
            if coef.shape != (K, d):
                raise ValueError(
                    f"warm_start: the last fit had {coef.shape} weights, this one has {(K, d)}"
                )
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start: the last fit had classes {self.classes_.tolist()}, this one has "
                    f"{classes.tolist()}"
                )
        if coef is not None:
            coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
            _check_initial(coef, "coef_init", (K, d))
            W[:, 1:] = coef * units.scale
            W[:, 0] = coef @ units.mean
        if intercept is not None:
            intercept = np.asarray(intercept, dtype=np.float64).reshape(-1)
            _check_initial(intercept, "intercept_init", (K,))
            W[:, 0] += intercept
        rule = self._rule(len(classes))
        return initial_state(W, average=bool(self.average), l1=rule.alpha * rule.l1 > 0)

    def _row_sums(self, batch: Batch, n_classes: int) -> RowSums:
        """An objective that is used for its number of misclassified rows alone."""
        source = MemorySource(batch, backend=self.backend, n_threads=self.n_threads)
        if n_classes == 2:
            return RowSums(source, RowLoss.LOGISTIC)
        return RowSums(source, RowLoss.SOFTMAX, n_outputs=n_classes)

    def _hold_out(self, batch: Batch, n_classes: int, seed: int) -> tuple[Batch, Errors | None]:
        """The batch with weights of 0 for the rows that are held out for early stopping, and the
        share of these that given weights misclassify."""
        if not self.early_stopping:
            return batch, None
        r = batch.r
        try:
            split = StratifiedShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
            _, held = next(split.split(np.zeros(len(r)), r))
        except ValueError as error:
            raise ValueError(
                f"early_stopping: cannot hold out validation_fraction={self.validation_fraction} "
                f"of the rows: {error}"
            ) from error
        validation = self._row_sums(batch, n_classes).take(np.sort(held))
        s = np.array(np.broadcast_to(batch.s, len(r)))
        s[held] = 0
        if not s.any() or not validation.total_weight:
            raise ValueError(
                "early_stopping: the rows that are held out, or the others, have no weight"
            )
        return batch._replace(s=s), lambda W: validation.errors(W) / validation.total_weight

    def _store(self, classes: Array, W: Array, units: Units) -> None:
        self.classes_ = classes
        self.coef_ = W[:, 1:] / units.scale
        self.intercept_ = W[:, 0] - self.coef_ @ units.mean

    def _check_parameters(self) -> None:
        check_choice(self.penalty, "penalty", ("l2", "l1", "elasticnet", None))
        if np.isinf(check_number(self.alpha, "alpha", low=0)):
            raise ValueError("alpha must be finite, got inf")
        if check_number(self.l1_ratio, "l1_ratio", low=0) > 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {self.l1_ratio!r}")
        check_number(self.max_iter, "max_iter", low=1, whole=True)
        if self.tol is not None:
            check_number(self.tol, "tol", low=0)
        check_number(self.n_iter_no_change, "n_iter_no_change", low=1, whole=True)
        check_choice(self.shuffle, "shuffle", (True, False, "rows"))
        fraction = self.validation_fraction
        if check_number(fraction, "validation_fraction", low=0, open_low=True) >= 1:
            raise ValueError(
                f"validation_fraction must be a number between 0 and 1, got {fraction!r}"
            )
        if not isinstance(self.average, (bool, np.bool_)):
            check_number(self.average, "average", low=0, whole=True)
        self._check_step()
        check_number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "warm_start", "early_stopping", "standardize"):
            check_choice(getattr(self, name), name, (True, False))
        runtime.check(self.backend, self.n_threads)

    def _check_step(self) -> None:
        check_number(self.eta0, "eta0", low=0, open_low=True)

    def _penalty_strength(self) -> tuple[float, float]:
        """The strength of the penalty, and the share of the L1 norm."""
        if self.penalty is None:
            return 0.0, 0.0
        shares = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        return float(self.alpha), float(shares[self.penalty])


def _check_initial(values: Array, name: str, shape: tuple[int, ...]) -> None:
    if values.shape != shape or not np.isfinite(values).all():
        raise ValueError(f"{name} must have shape {shape} and be finite, got shape {values.shape}")
