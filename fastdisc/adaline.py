"""Adaline (section 4.1.7): the perceptron's model, trained by the least-mean-squares rule."""

from __future__ import annotations

import numpy as np
from sklearn.utils.metaestimators import available_if

from . import _validate
from ._base import choice, number
from ._kernels import Link, Loss, Rule
from ._online_base import OnlineLearner
from ._problem import Problem
from ._rows import largest_eigenvalue, largest_norm
from ._solvers import Trace, gd
from ._solvers.online import Result
from ._sweep import Sweep


def _is_online(model):
    if model.solver == "online":
        return True
    raise AttributeError("partial_fit is for solver='online': gradient descent in a batch needs all rows at once")


class Adaline(OnlineLearner):
    """A linear unit trained by the least-mean-squares rule: w += eta (r - w'x) x with targets r = +1 and -1 (section 4.1.7).

    K classes have a unit each, +1 for its own rows, and the largest output wins.

    Parameters
    ----------
    solver : {"online", "batch"}, default="online"
        "online" takes a step for each row, "batch" one for the mean of all rows: gradient descent, down to the least-squares
        solution. Steps of one size leave "online" weights moving about that solution; their average nears it.
    eta0 : float or "auto", default="auto"
        The step. From 2 / (largest eigenvalue of the mean of [1 x][1 x]') on the weights run away, and a ValueError says so
        before they do. "auto" takes half of 1 / (largest squared norm of a row) for "online", 1 / (that eigenvalue) for
        "batch". Both are told from a sample where there are many rows. Weights of rows count as factors.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        The most epochs, or steps of "batch".
    tol : float or None, default=1e-4
        "online": stop when the mean squared error has not fallen by this much for `n_iter_no_change` epochs. "batch": stop when
        the gradient's norm has fallen to this share of what it is at zero weights.
    n_iter_no_change : int, default=5
    shuffle : {True, False, "rows"}, default=True
        The order of the rows in "online": True shuffles runs of rows, "rows" single ones.
    random_state : int, RandomState or None, default=0
    average : bool or int, default=True
        "online": take the average of the weights over all rows that were visited, or from the so-manieth on.
    class_weight : dict, "balanced" or None, default=None
    early_stopping : bool, default=False
        "online": hold rows out, and stop when the weights do not get better on those.
    validation_fraction : float, default=0.1
    warm_start : bool, default=False
    standardize : bool, default=False
        Learn from a standardised copy of the features; `coef_` is for the features as they are. Sparse ones are scaled only.
    verbose : int, default=0
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        For "batch"; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : int
    converged_ : bool
    eta_ : float
        The step that was taken.
    t_ : float
        Rows visited, plus one.
    history_ : dict of lists
        "loss", half the mean squared error summed over the classes, for each epoch or step.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import Adaline
    >>> X, y = load_iris(return_X_y=True)
    >>> Adaline(standardize=True).fit(X, y == 0).score(X, y == 0)
    1.0
    """

    penalty, alpha, l1_ratio = None, 0.0, 0.0

    def __init__(
        self,
        *,
        solver="online",
        eta0="auto",
        fit_intercept=True,
        max_iter=1000,
        tol=1e-4,
        n_iter_no_change=5,
        shuffle=True,
        random_state=0,
        average=True,
        class_weight=None,
        early_stopping=False,
        validation_fraction=0.1,
        warm_start=False,
        standardize=False,
        verbose=0,
        basis=None,
        backend=None,
        n_threads=None,
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

    def _rule(self, n_classes):
        eta = getattr(self, "eta_", 1.0) if isinstance(self.eta0, str) else float(self.eta0)
        return Rule(Loss.SQUARED, eta=eta, intercept=self.fit_intercept, begin=max(1.0, self.average))

    def _set_step(self, X, s):
        self.eta_ = self._step(X, s)

    def _step(self, X, s):
        """The step, or ValueError if the weights would run away with it."""
        top = largest_eigenvalue(X, s, self.fit_intercept) * (s.mean() if self.solver == "online" else 1)
        if not np.isfinite(top):
            _validate.check_finite(X)
            _validate.raise_too_large(X)
        if isinstance(self.eta0, str):
            top = max(top, np.finfo(float).tiny)  # no column varies, and there is no intercept: any step does
            return 0.5 / max(largest_norm(X, s, self.fit_intercept), top) if self.solver == "online" else 1 / top
        if self.eta0 >= 2 / top:
            raise ValueError(
                f"with eta0={self.eta0:g} the weights would run away: the largest eigenvalue of the mean of [1 x][1 x]' is "
                f"{top:.3g}, and steps must be below 2 / {top:.3g} = {2 / top:.3g}. Take eta0='auto', or standardize=True."
            )
        return float(self.eta0)

    def _learn(self, visits, state, rule, errors, pocket):
        if self.solver == "online":
            return super()._learn(visits, state, rule, errors, pocket)
        return self._batch(visits, state, rule)

    def _batch(self, visits, state, rule):
        """Gradient descent of each class's unit."""
        options = {"backend": self.backend, "n_threads": self.n_threads}
        results, total = [], visits.total()
        for k, W in enumerate(state.W):
            r = visits.r if len(state.W) == 1 else (visits.r == k).astype(np.int32)
            sweep = Sweep(visits.X, r, visits.s, Link.LINEAR, **options)
            sweep.sharpen()
            objective = Problem(sweep, intercept=self.fit_intercept, rescale=False).penalized(0.0)
            more = {"eta": rule.eta / total, "tol": self.tol or 0.0, "max_iter": self.max_iter, "trace": Trace(self.verbose)}
            results.append(gd.solve(objective, W[None], **more))
        state.W[:] = np.vstack([result.W for result in results])
        longest = max(len(result.history["loss"]) for result in results)
        losses = [np.pad(result.history["loss"], (0, longest - len(result.history["loss"])), mode="edge") for result in results]
        converged = all(result.converged for result in results)
        history = {"loss": (np.sum(losses, axis=0) / total).tolist()}
        steps = max(result.n_iter for result in results)
        return Result(state.W.copy(), converged, steps, history, not converged, state.W)

    def _short(self):
        if self.solver == "online":
            return super()._short()
        return f"gradient descent did not meet tol={self.tol} in max_iter={self.max_iter} steps: raise it, or standardize=True"

    def _check_parameters(self):
        choice(self.solver, "solver", ("online", "batch"))
        if self.solver == "batch" and self.early_stopping:
            raise ValueError("early_stopping is for solver='online'")
        super()._check_parameters()

    def _check_step(self):
        if not (isinstance(self.eta0, str) and self.eta0 == "auto"):
            number(self.eta0, "eta0", low=0, open_low=True)

    @available_if(_is_online)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Visit some more rows once, in their order; "auto" keeps the step of the first call.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        classes : array of shape (K,), optional
            All labels that will ever come; needed in the first call.
        sample_weight : array of shape (N,), optional
        """
        return super().partial_fit(X, y, classes, sample_weight)
