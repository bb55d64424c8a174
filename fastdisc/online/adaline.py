"""Adaline (section 4.1.7): the model of the perceptron, trained by the least-mean-squares rule."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._data.rows import Rows, raise_too_large
from .._data.sampling import largest_eigenvalue, largest_row_norm
from .._data.source import MemorySource
from .._kernels import MarginLoss, OnlineRule, OnlineState, RowLoss
from .._kernels.contract import Array
from .._objectives.coordinates import Problem
from .._objectives.epochs import Epochs
from .._objectives.row_sums import RowSums
from .._solvers import gd
from .._solvers.online import OnlineResult
from .._solvers.result import Result, Trace
from .._validation.parameters import check_choice, check_number
from .base import Errors, OnlineLearner


def _is_online(model: Any) -> bool:
    if model.solver == "online":
        return True
    raise AttributeError(
        "partial_fit is for solver='online': batch gradient descent needs all rows at once"
    )


class Adaline(OnlineLearner):
    """A linear unit trained by the least-mean-squares rule: w += eta (r - w'x) x with targets
    r = +1 and -1 (section 4.1.7).

    K classes have a unit each, with target +1 for its own rows; the class with the largest output
    is predicted.

    Parameters
    ----------
    solver : {"online", "batch"}, default="online"
        "online" takes a step for each row; "batch" takes one for the mean of all rows, which is
        gradient descent to the least-squares solution. With constant steps, the weights of "online"
        fluctuate around that solution; their average approaches it.
    eta0 : float or "auto", default="auto"
        The step size. From 2 / (largest eigenvalue of the mean of [1 x][1 x]') on the weights
        diverge; such a step is a ValueError before training. "auto" is half of 1 / (largest squared
        norm of a row) for "online", and 1 / (largest eigenvalue) for "batch". Both are estimated
        from a sample if there are many rows. Row weights count as factors.
    fit_intercept : bool, default=True
        Whether intercepts are learned; otherwise they are 0.
    max_iter : int, default=1000
        The largest number of epochs, or of steps of "batch".
    tol : float or None, default=1e-4
        "online": stop when the mean squared error has not fallen by this much for
        `n_iter_no_change` epochs. "batch": stop when the norm of the gradient has fallen to this
        share of its value at zero weights.
    n_iter_no_change : int, default=5
        "online": number of epochs without improvement after which training stops.
    shuffle : {True, False, "rows"}, default=True
        "online": the order of the rows, which is new in each epoch. True shuffles contiguous runs
        of rows, for cache locality; "rows" shuffles single rows.
    random_state : int, RandomState or None, default=0
        Seed of the order of the rows and of the rows that are held out.
    average : bool or int, default=True
        "online": whether to use the average of the weights after each row; an integer n averages
        from the n-th row on.
    class_weight : dict, "balanced" or None, default=None
        Factors of the steps for the rows of each class.
    early_stopping : bool, default=False
        "online": whether to hold out rows, and to stop when the weights no longer improve on them.
    validation_fraction : float, default=0.1
        The share of rows that `early_stopping` holds out.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the last fit.
    standardize : bool, default=False
        Whether to train on a standardised copy of the features; `coef_` is for the features as they
        are. Sparse features are scaled, not centred.
    verbose : int, default=0
        1 prints the progress of training.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns that the model uses as features instead of the columns. They are
        computed within the sweep; the matrix of features is never stored.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads of "batch"; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The sorted class labels.
    coef_ : array of shape (1, d) or (K, d)
        Weights of the features; a single row for two classes.
    intercept_ : array of shape (1,) or (K,)
        Intercepts.
    n_iter_ : int
        Number of epochs or steps.
    converged_ : bool
        Whether `tol` was met.
    eta_ : float
        The step size that was used.
    t_ : float
        Number of rows processed by "online", plus one.
    history_ : dict of lists
        For each epoch or step: "loss", half the mean squared error, summed over the classes.
    mean_, scale_ : arrays of shape (d,)
        Means and standard deviations of the columns, only with `standardize`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import Adaline
    >>> X, y = load_iris(return_X_y=True)
    >>> Adaline(standardize=True).fit(X, y == 0).score(X, y == 0)
    1.0
    """

    penalty, alpha, l1_ratio = None, 0.0, 0.0
    eta_: float

    def __init__(
        self,
        *,
        solver: str = "online",
        eta0: float | str = "auto",
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        n_iter_no_change: int = 5,
        shuffle: bool | str = True,
        random_state: Any = 0,
        average: bool | int = True,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        standardize: bool = False,
        verbose: int = 0,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.solver = solver
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.average = average
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.standardize = standardize
        self.verbose = verbose
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def _rule(self, n_classes: int) -> OnlineRule:
        eta = getattr(self, "eta_", 1.0) if isinstance(self.eta0, str) else float(self.eta0)
        return OnlineRule(
            MarginLoss.SQUARED,
            eta=eta,
            intercept=self.fit_intercept,
            begin=max(1.0, self.average),
        )

    def _set_step(self, X: Rows, s: Array) -> None:
        self.eta_ = self._step(X, s)

    def _step(self, X: Rows, s: Array) -> float:
        """The step size; ValueError if the weights would diverge."""
        is_online = self.solver == "online"
        top = largest_eigenvalue(X, s, self.fit_intercept) * (s.mean() if is_online else 1)
        if not np.isfinite(top):
            X.check_finite()
            raise_too_large(X)
        if isinstance(self.eta0, str):
            # If no column varies and there is no intercept, any step will do.
            top = max(top, np.finfo(float).tiny)
            if not is_online:
                return 1 / top
            return 0.5 / max(largest_row_norm(X, s, self.fit_intercept), top)
        if self.eta0 >= 2 / top:
            raise ValueError(
                f"with eta0={self.eta0:g} the weights would diverge: the largest eigenvalue of the "
                f"mean of [1 x][1 x]' is {top:.3g}, and steps must be below 2 / {top:.3g} = "
                f"{2 / top:.3g}. Use eta0='auto', or standardize=True."
            )
        return float(self.eta0)

    def _solve(
        self,
        epochs: Epochs,
        state: OnlineState,
        rule: OnlineRule,
        validation_error: Errors | None,
        training_errors: Errors | None,
    ) -> OnlineResult:
        if self.solver == "online":
            return super()._solve(epochs, state, rule, validation_error, training_errors)
        step = rule.eta / epochs.total_weight
        results = [self._descend(epochs, W, k, len(state.W), step) for k, W in enumerate(state.W)]
        state.W[:] = np.vstack([result.W for result in results])
        losses = [result.history["loss"] for result in results]
        longest = max(len(loss) for loss in losses)
        padded = [np.pad(loss, (0, longest - len(loss)), mode="edge") for loss in losses]
        history = {"loss": (np.sum(padded, axis=0) / epochs.total_weight).tolist()}
        converged = all(result.converged for result in results)
        n_iter = max(result.n_iter for result in results)
        return OnlineResult(state.W.copy(), converged, n_iter, history, not converged, state.W)

    def _descend(self, epochs: Epochs, W: Array, k: int, K: int, step: float) -> Result:
        """Gradient descent of the unit of class k, from weights W (d+1,)."""
        batch = epochs.batch
        if K > 1:
            batch = batch._replace(r=(batch.r == k).astype(np.int32))
        source = MemorySource(batch, backend=self.backend, n_threads=self.n_threads)
        data = RowSums(source, RowLoss.SQUARED).use_float64()
        problem = Problem(data, intercept=self.fit_intercept, rescale=False)
        return gd.solve(
            problem.penalized(0.0),
            W[None],
            eta=step,
            tol=self.tol or 0.0,
            max_iter=self.max_iter,
            trace=Trace(self.verbose),
        )

    def _exhausted_message(self) -> str:
        if self.solver == "online":
            return super()._exhausted_message()
        return (
            f"gradient descent did not meet tol={self.tol} in max_iter={self.max_iter} steps: "
            "increase max_iter, or use standardize=True"
        )

    def _check_parameters(self) -> None:
        check_choice(self.solver, "solver", ("online", "batch"))
        if self.solver == "batch" and self.early_stopping:
            raise ValueError("solver 'batch' does not support early_stopping")
        super()._check_parameters()

    def _check_step(self) -> None:
        if not (isinstance(self.eta0, str) and self.eta0 == "auto"):
            check_number(self.eta0, "eta0", low=0, open_low=True)

    @available_if(_is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: one pass, in the given order. With "auto", the step size of the
        first call is kept.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Further training rows.
        y : array of shape (N,)
            Class labels.
        classes : array of shape (K,), optional
            All labels that may occur; required in the first call.
        sample_weight : array of shape (N,), optional
            Row weights: factors of the steps.

        Returns
        -------
        self : object
            The updated estimator.
        """
        return super().partial_fit(X, y, classes, sample_weight)
