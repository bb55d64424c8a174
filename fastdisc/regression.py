"""Discrimination by regression: sigmoid outputs and a squared error (section 10.8)."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from . import _config, _validate, special
from ._base import LinearClassifier, all_or_nothing, choice, number
from ._kernels import Link
from ._problem import Problem
from ._solvers import Trace, choose, gd, lbfgs, newton, newton_cg
from ._sweep import Sweep

SOLVERS = {
    "newton": (partial(newton.solve, convex=False), 200),
    "newton-cg": (newton_cg.solve, 200),
    "lbfgs": (lbfgs.solve, 2000),
    "gd": (gd.solve, 10_000),
}


class SigmoidRegression(LinearClassifier):
    """Discrimination by regression (section 10.8): independent sigmoid outputs that minimise the squared error (10.39), (10.44).

    Two classes have one output, K classes one each, and the largest wins. Classes may overlap: with an indicator matrix as y a
    row may belong to several of them, or to none. Each output is a problem of its own. The error is not convex, so that what is
    found is a minimum, and from the usual start, zero weights, a good one.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of an L2 penalty; np.inf for none, as published.
    tol : float, default=1e-6
        Stop when the norm of the gradient over all rows has fallen to this share of what it is at zero weights; columns count in
        units of their spread.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes' rows; not for an indicator matrix.
    random_state : int, RandomState or None, default=None
        For the start of "gd", weights drawn from U(-0.01, 0.01).
    solver : {"auto", "newton", "newton-cg", "lbfgs", "gd"}, default="auto"
        "auto" takes "newton" up to 2000 weights an output, with the Hessian of Gauss and Newton, on samples and then on all rows;
        "newton-cg" for sparse or very wide data, "lbfgs" for the rest. "gd" is the published update (10.40), (10.45).
    max_iter : int or None, default=None
        None for a number that suits the solver.
    standardize : bool, default=False
        Penalise the weights of standardised features. `mean_` and `scale_` are remembered, and `coef_` is for the features as
        they are.
    eta : float or "auto", default="auto"
        Step of "gd" on the summed error; "auto" takes a safe one.
    verbose : int, default=0
        1 shows iterations, every hundredth of "gd"; 2 every one.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
        For an indicator matrix, the numbers of its columns.
    multilabel_ : bool
        Whether y was an indicator matrix.
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : array of shape (1,) or (K,)
    solver_ : str
    converged_ : bool
        Whether all outputs have.
    gradient_norm_ : array of shape (1,) or (K,)
        Norms of the gradients over all rows at the solution, relative to those at zero weights.
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
        C=1.0,
        tol=1e-6,
        fit_intercept=True,
        class_weight=None,
        random_state=None,
        solver="auto",
        max_iter=None,
        standardize=False,
        eta="auto",
        verbose=0,
        basis=None,
        backend=None,
        n_threads=None,
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,) or {array, sparse matrix} of shape (N, K)
            Class labels, or 1 for each class that the row belongs to and 0 for the others.
        sample_weight : array of shape (N,), optional
        """
        self._check_parameters()
        X = _validate.features(self, X, reset=True, y=y)
        multilabel = _validate.is_indicator(y)
        s = _validate.sample_weight(sample_weight, X.shape[0])
        if multilabel:
            if self.class_weight is not None:
                raise ValueError("class_weight is not for an indicator matrix: its classes overlap")
            Y = _validate.indicator(y, X.shape[0])
            classes, targets = np.arange(Y.shape[1]), (column.astype(np.int32) for column in Y.T)
        else:
            classes, r = _validate.labels(y, X.shape[0])
            s = _validate.class_weight(self.class_weight, classes, r, s)
            targets = [r] if len(classes) == 2 else ((r == k).astype(np.int32) for k in range(len(classes)))
        single = not multilabel and len(classes) == 2
        start = np.zeros((1 if single else len(classes), X.shape[1] + 1))  # (K, d+1)
        if self.solver == "gd":
            start = check_random_state(self.random_state).uniform(-0.01, 0.01, start.shape)
            start[:, 0] *= self.fit_intercept
        found = [self._solve(X, column, s, W) for column, W in zip(targets, start, strict=True)]
        self._store(classes, multilabel, found)
        return self

    def _solve(self, X, target, s, W):
        """One output: its problem, the solver's result and name."""
        sweep = Sweep(X, target, s, Link.SIGMOID, backend=self.backend, n_threads=self.n_threads)
        problem = Problem(sweep, intercept=self.fit_intercept, standardize=self.standardize, rescale=self.solver != "gd")
        objective = problem.penalized(1 / self.C)
        name = choose((1, X.shape[1] + 1), objective.sparse, 0.0) if self.solver == "auto" else self.solver
        solve, limit = SOLVERS[name]
        limit = limit if self.max_iter is None else self.max_iter
        more = {"eta": self.eta} if name == "gd" else {}
        return problem, solve(objective, W[None], tol=self.tol, max_iter=limit, trace=Trace(self.verbose), **more), name

    def _store(self, classes, multilabel, found):
        problems, results, names = zip(*found, strict=True)
        V = np.vstack([problem.outward(result.W) for problem, result in zip(problems, results, strict=True)])
        self.classes_, self.multilabel_, self.solver_ = classes, multilabel, names[0]
        self.coef_, self.intercept_ = V[:, 1:].copy(), V[:, 0].copy()
        self.n_iter_ = np.array([max(1, result.n_iter) for result in results], dtype=np.int32)  # steps on samples count as one
        self.gradient_norm_ = np.array([result.gradient_norm for result in results])
        self.history_ = [result.history for result in results]
        self.converged_ = all(bool(result.converged) for result in results)
        if self.standardize:
            self.mean_, self.scale_ = problems[0].mean, problems[0].scale
        if not self.converged_:
            worst = int(self.gradient_norm_.argmax())
            warnings.warn(
                f"solver {names[0]!r} stopped after {self.n_iter_[worst]} iterations with the gradient of output {worst} at "
                f"{self.gradient_norm_[worst]:.1e} of what it was at zero weights; tol is {self.tol:g}. Raise max_iter, or take "
                "C smaller.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def decision_function(self, X):
        """Scores w'x + w0: (N,) for two classes, positive for the second; else (N, K), positive for the classes of a row.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._outputs(X, Link.IDENTITY)
        return Z if self.multilabel_ or Z.shape[1] > 1 else Z[:, 0]

    def predict_proba(self, X):
        """Outputs (10.37), (10.42), (N, K): for classes that exclude each other divided by their sum, else as they are.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Y = special.sigmoid(self._outputs(X, Link.IDENTITY))
        if self.multilabel_:
            return Y
        if Y.shape[1] == 1:
            return np.hstack([1 - Y, Y])
        return Y / np.maximum(Y.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def predict(self, X):
        """The class with the highest score, for each row; of classes that overlap, 1 for each with a positive score.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self._outputs(X, Link.IDENTITY)
        if self.multilabel_:
            return (Z > 0).astype(int)
        return self.classes_[(Z[:, 0] > 0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)]

    def _check_parameters(self):
        number(self.C, "C", low=0, open_low=True)
        number(self.tol, "tol", low=0)
        choice(self.solver, "solver", ("auto", *SOLVERS))
        if self.max_iter is not None:
            number(self.max_iter, "max_iter", low=1, whole=True)
        if self.eta != "auto":
            number(self.eta, "eta", low=0, open_low=True)
        number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "standardize"):
            choice(getattr(self, name), name, (True, False))
        _config.check(self.backend, self.n_threads)
