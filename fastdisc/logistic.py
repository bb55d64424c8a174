"""Logistic discrimination: two classes by a sigmoid, K by softmax."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _config, _validate, special
from ._base import LinearClassifier, choice, number
from ._kernels import Link
from ._solvers import gd, newton
from ._sweep import Penalized, Sweep


class LogisticRegression(LinearClassifier):
    """Logistic discrimination (section 10.7), with the objective of scikit-learn's LogisticRegression.

    Minimises C times the cross-entropy (10.23), (10.31) plus half the squared norm of the weights; intercepts are not penalised.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty; np.inf for none.
    solver : {"newton", "gd"}, default="newton"
        Newton-Raphson, or batch gradient descent as figures 10.6 and 10.8 have it.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes' rows.
    tol : float, default=1e-6
        Stop when the norm of the gradient over all rows has fallen to this share of what it is at zero weights.
    max_iter : int or None, default=None
        None for 100 Newton steps, or 10,000 of gradient descent.
    eta : float or "auto", default="auto"
        Step of gradient descent on the summed error; "auto" takes the largest that is safe everywhere.
    warm_start : bool, default=False
        Start from the last solution.
    random_state : int, RandomState or None, default=None
        For gradient descent's start: weights drawn from U(-0.01, 0.01).
    verbose : int, default=0
        1 shows every Newton step, or every hundredth of gradient descent; 2 every one.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it. None for the setting of `fastdisc.set_config`.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : array of shape (1,)
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)
        Where the columns of X had names.
    converged_ : bool
    gradient_norm_ : float
        The certificate: norm of the gradient over all rows at the solution, relative to that at zero weights.
    history_ : dict of lists
        "loss", "errors" (the weight of misclassified rows) and "norm" (||w||), for each iteration.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> round(model.score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        *,
        C=1.0,
        solver="newton",
        fit_intercept=True,
        class_weight=None,
        tol=1e-6,
        max_iter=None,
        eta="auto",
        warm_start=False,
        random_state=None,
        verbose=0,
        backend=None,
        n_threads=None,
    ):
        self.C = C
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.eta = eta
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.backend = backend
        self.n_threads = n_threads

    def fit(self, X, y, sample_weight=None):
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
        """
        # 1. validate
        self._check_parameters()
        X = _validate.features(self, X, reset=True)
        classes, r = _validate.labels(y, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        s = _validate.class_weight(self.class_weight, classes, r, s)
        two = len(classes) == 2
        link, K = (Link.LOGISTIC, 1) if two else (Link.SOFTMAX, len(classes))
        # 2. solve
        sweep = Sweep(X, r, s, link, backend=self.backend, n_threads=self.n_threads)
        objective = Penalized(sweep, 1 / self.C, self.fit_intercept)
        solve, options = self._solver()
        result = solve(objective, self._start(K, X.shape[1], classes), tol=self.tol, verbose=self.verbose, **options)
        # 3. store
        self.classes_ = classes
        self.coef_, self.intercept_ = result.W[:, 1:].copy(), result.W[:, 0].copy()
        self.n_iter_ = np.array([result.n_iter], dtype=np.int32)
        self.converged_, self.gradient_norm_, self.history_ = bool(result.converged), result.gradient_norm, result.history
        if not result.converged:
            warnings.warn(
                f"solver {self.solver!r} stopped after {result.n_iter} iterations with the gradient at "
                f"{result.gradient_norm:.1e} of what it was at zero weights; tol is {self.tol:g}. "
                "Raise max_iter, scale the columns, or take C smaller.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X):
        """Posterior probabilities, (N, K): sigmoid (10.21) for two classes, softmax (10.29) for K.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        check_is_fitted(self)
        if len(self.coef_) > 1:
            return self._outputs(X, Link.SOFTMAX)
        y = self._outputs(X, Link.LOGISTIC)
        return np.hstack([1 - y, y])

    def predict_log_proba(self, X):
        """Logarithms of the posterior probabilities, finite however small those are.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self.decision_function(X)
        if Z.ndim == 1:
            return -np.column_stack([special.log1pexp(Z), special.log1pexp(-Z)])
        return special.log_softmax(Z)

    def _check_parameters(self):
        number(self.C, "C", low=0, open_low=True)
        number(self.tol, "tol", low=0)
        choice(self.solver, "solver", ("newton", "gd"))
        if self.max_iter is not None:
            number(self.max_iter, "max_iter", low=1, whole=True)
        if self.eta != "auto":
            number(self.eta, "eta", low=0, open_low=True)
        number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "warm_start"):
            choice(getattr(self, name), name, (True, False))
        _config.check(self.backend, self.n_threads)

    def _solver(self):
        """The solver's function and what it alone takes."""
        if self.solver == "gd":
            return gd.solve, {"eta": self.eta, "max_iter": 10_000 if self.max_iter is None else self.max_iter}
        return newton.solve, {"max_iter": 100 if self.max_iter is None else self.max_iter}

    def _start(self, K, d, classes):
        """The last solution, small random weights (figure 10.6), or zeros."""
        if self.warm_start and hasattr(self, "coef_"):
            if self.coef_.shape != (K, d):
                raise ValueError(f"warm_start: the last fit had {self.coef_.shape} weights, this one has {(K, d)}")
            if not np.array_equal(self.classes_, classes):
                raise ValueError(
                    f"warm_start: the last fit had classes {self.classes_.tolist()}, this one has {classes.tolist()}"
                )
            return np.column_stack([self.intercept_ * self.fit_intercept, self.coef_])
        if self.solver == "gd":
            W = check_random_state(self.random_state).uniform(-0.01, 0.01, (K, d + 1))
            W[:, 0] *= self.fit_intercept
            return W
        return np.zeros((K, d + 1))  # (K, d+1)
