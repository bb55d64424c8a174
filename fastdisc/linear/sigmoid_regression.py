"""Discrimination by regression: sigmoid outputs and squared error."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import runtime, special
from .._base import LinearClassifier, all_or_nothing
from .._data.rows import Rows
from .._data.source import MemorySource
from .._kernels.contract import Array, Batch
from .._kernels.enums import Activation, RowLoss
from .._objectives.coordinates import Problem
from .._objectives.row_sums import RowSums
from .._solvers.registry import SOLVERS as ALL_SOLVERS
from .._solvers.registry import choose_solver
from .._solvers.result import Result, Trace
from .._validation.arrays import check_rows, check_sample_weight
from .._validation.labels import (
    check_class_weight,
    check_indicator,
    encode_labels,
    is_indicator,
)
from .._validation.parameters import check_choice, check_number

SOLVERS = {name: ALL_SOLVERS[name] for name in ("newton", "newton-cg", "lbfgs", "gd")}


class Solved(NamedTuple):
    """The solution of one output."""

    problem: Problem
    result: Result
    solver: str


class SigmoidRegression(LinearClassifier):
    """Discrimination by regression (section 10.8): independent sigmoid outputs that minimise the
    squared error (10.39), (10.44).

    Two classes have one output, K classes one each, and the largest wins. Classes may overlap: with
    an indicator matrix as y, a row may belong to several of them or to none. Each output is a
    problem of its own. The error is not convex, so the solution is a local minimum; from the usual
    start, zero weights, it is a good one.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of an L2 penalty; np.inf for none, as published.
    tol : float, default=1e-6
        Stop when the norm of the gradient over all rows has fallen to this share of its norm at
        zero weights. Columns are measured in units of their standard deviation.
    fit_intercept : bool, default=True
        Whether to learn intercepts.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class; not for an indicator matrix.
    random_state : int, RandomState or None, default=None
        For the start of "gd", weights drawn from U(-0.01, 0.01).
    solver : {"auto", "newton", "newton-cg", "lbfgs", "gd"}, default="auto"
        "auto" chooses "newton", with the Gauss-Newton matrix, up to 2000 weights per output (500
        for sparse data), "newton-cg" for sparse or very wide data beyond that, and "lbfgs"
        otherwise.
        "gd" is the published update (10.40), (10.45).
    max_iter : int or None, default=None
        None for a default of the solver.
    standardize : bool, default=False
        Penalise the weights of standardised features. `mean_` and `scale_` are stored; `coef_` is
        for the features as they are.
    eta : float or "auto", default="auto"
        Step size of "gd" on the summed error; "auto" takes a safe one.
    verbose : int, default=0
        1 prints iterations, every hundredth of "gd"; 2 prints every one.
    basis : basis of `fastdisc.basis`, optional
        Basis functions of the columns to learn from instead of the columns; they are computed
        inside the sweep and never stored as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The maximum number of threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The class labels; for an indicator matrix, the numbers of its columns.
    multilabel_ : bool
        Whether y was an indicator matrix.
    coef_ : array of shape (1, d) or (K, d)
        The weights of the features.
    intercept_ : array of shape (1,) or (K,)
        The intercepts.
    n_iter_ : array of shape (1,) or (K,)
        Iterations of each output over all rows.
    solver_ : str
        The solver that was used.
    converged_ : bool
        Whether all outputs reached `tol`.
    gradient_norm_ : array of shape (1,) or (K,)
        Norms of the gradients over all rows, relative to those at zero weights.
    history_ : list of dicts of lists
        For each output "loss", "errors" and "norm" by iteration.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import SigmoidRegression
    >>> X = np.arange(8.0)[:, None]
    >>> SigmoidRegression(C=10.0).fit(X, [0, 0, 0, 1, 0, 1, 1, 1]).predict([[0.0], [7.0]])
    array([0, 1])
    >>> Y = np.column_stack([X[:, 0] > 2, X[:, 0] > 4]).astype(int)  # none, one or both
    >>> SigmoidRegression(C=100.0).fit(X, Y).predict([[0.0], [3.6], [7.0]])
    array([[0, 0],
           [1, 0],
           [1, 1]])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int | None = None,
        standardize: bool = False,
        eta: float | str = "auto",
        verbose: int = 0,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
    ):
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.standardize = standardize
        self.eta = eta
        self.verbose = verbose
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SigmoidRegression:
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,) or {array, sparse matrix} of shape (N, K)
            Class labels, or 1 for each class that the row belongs to and 0 for the others.
        sample_weight : array of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        self : SigmoidRegression
            The fitted estimator.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True, y=y)
        multilabel = is_indicator(y)
        s = check_sample_weight(sample_weight, rows.shape[0])
        targets: Iterable[Array]
        if multilabel:
            if self.class_weight is not None:
                raise ValueError("class_weight is not for an indicator matrix: its classes overlap")
            Y = check_indicator(y, rows.shape[0])
            classes, targets = np.arange(Y.shape[1]), (column.astype(np.int32) for column in Y.T)
        else:
            classes, r = encode_labels(y, rows.shape[0])
            s = check_class_weight(self.class_weight, classes, r, s)
            targets = [r]
            if len(classes) > 2:
                targets = ((r == k).astype(np.int32) for k in range(len(classes)))
        n_outputs = 1 if not multilabel and len(classes) == 2 else len(classes)
        start = np.zeros((n_outputs, rows.shape[1] + 1))  # (K, d+1)
        if self.solver == "gd":
            start = check_random_state(self.random_state).uniform(-0.01, 0.01, start.shape)
            start[:, 0] *= self.fit_intercept
        pairs = zip(targets, start, strict=True)
        self._store(classes, multilabel, [self._solve(rows, r, s, W) for r, W in pairs])
        return self

    def _solve(self, X: Rows, target: Array, s: Array, W: Array) -> Solved:
        """The solution of one output."""
        batch = Batch(X, target, s)
        source = MemorySource(batch, backend=self.backend, n_threads=self.n_threads)
        data = RowSums(source, RowLoss.SIGMOID_SQUARED)
        options = {"standardize": self.standardize, "rescale": self.solver != "gd"}
        problem = Problem(data, intercept=self.fit_intercept, **options)
        objective = problem.penalized(1 / self.C)
        name = choose_solver(objective, 0.0) if self.solver == "auto" else self.solver
        solver = SOLVERS[name]
        eta = {"eta": self.eta} if name == "gd" else {}
        max_iter = solver.max_iter if self.max_iter is None else self.max_iter
        limits = {"tol": self.tol, "max_iter": max_iter, "trace": Trace(self.verbose)}
        return Solved(problem, solver.solve(objective, W[None], **limits, **eta), name)

    def _store(self, classes: Array, multilabel: bool, found: list[Solved]) -> None:
        V = np.vstack([problem.to_raw(result.W) for problem, result, _ in found])
        results = [solved.result for solved in found]
        self.classes_, self.multilabel_, self.solver_ = classes, multilabel, found[0].solver
        self.coef_, self.intercept_ = V[:, 1:].copy(), V[:, 0].copy()
        # Steps on samples count as one.
        self.n_iter_ = np.array([max(1, result.n_iter) for result in results], dtype=np.int32)
        self.gradient_norm_ = np.array([result.gradient_norm for result in results])
        self.history_ = [result.history for result in results]
        self.converged_ = all(bool(result.converged) for result in results)
        if self.standardize:
            self.mean_, self.scale_ = found[0].problem.mean, found[0].problem.scale
        if not self.converged_:
            worst = int(self.gradient_norm_.argmax())
            warnings.warn(
                f"solver {self.solver_!r} stopped after {self.n_iter_[worst]} iterations with the "
                f"gradient of output {worst} at {self.gradient_norm_[worst]:.1e} of its norm at "
                f"zero weights; tol is {self.tol:g}. Raise max_iter, or take C smaller.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def decision_function(self, X: Any) -> Array:
        """Scores w'x + w0.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.

        Returns
        -------
        scores : array of shape (N,) or (N, K)
            (N,) for two classes, positive for the second; else (N, K), positive for the classes of
            a row.
        """
        Z = self._outputs(X, Activation.IDENTITY)
        return Z if self.multilabel_ or Z.shape[1] > 1 else Z[:, 0]

    def predict_proba(self, X: Any) -> Array:
        """Outputs (10.37), (10.42).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.

        Returns
        -------
        outputs : array of shape (N, K)
            For classes that exclude each other divided by their sum, else as they are.
        """
        Y = special.sigmoid(self._outputs(X, Activation.IDENTITY))
        if self.multilabel_:
            return Y
        if Y.shape[1] == 1:
            return np.hstack([1 - Y, Y])
        return Y / np.maximum(Y.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def predict(self, X: Any) -> Array:
        """The class with the highest score, for each row.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.

        Returns
        -------
        labels : array of shape (N,) or (N, K)
            Labels; for overlapping classes, 1 for each class with a positive score.
        """
        Z = self._outputs(X, Activation.IDENTITY)
        if self.multilabel_:
            return (Z > 0).astype(int)
        return self.classes_[(Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)]

    def _check_parameters(self) -> None:
        check_number(self.C, "C", low=0, open_low=True)
        check_number(self.tol, "tol", low=0)
        check_choice(self.solver, "solver", ("auto", *SOLVERS))
        if self.max_iter is not None:
            check_number(self.max_iter, "max_iter", low=1, whole=True)
        if self.eta != "auto":
            check_number(self.eta, "eta", low=0, open_low=True)
        check_number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "standardize"):
            check_choice(getattr(self, name), name, (True, False))
        runtime.check(self.backend, self.n_threads)
