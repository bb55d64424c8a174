"""The perceptron (section 4.1.7)."""

from __future__ import annotations

import numpy as np

from ._base import choice
from ._kernels import Link, Loss, Rule
from ._online_base import OnlineLearner
from ._rows import norms
from ._sweep import outputs


class Perceptron(OnlineLearner):
    """The perceptron algorithm of section 4.1.7: at a mistake, and only there, the row is added to the weights (4.55).

    Ends with an epoch without mistakes, which comes if the classes can be separated; or when `tol` or `max_iter` say so.
    scikit-learn's parameters mean what they mean there. The result does not depend on the number of threads: rows are scored
    ahead on all of them, and those that may have become mistakes since are visited in their order.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, default=None
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        The share of the L1 norm in the elastic net.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        The most epochs.
    tol : float or None, default=1e-3
        Stop when the mean loss has not fallen by this much for `n_iter_no_change` epochs; None to go on until an epoch has no
        mistakes.
    shuffle : {True, False, "rows"}, default=True
        The order of the rows, anew for each epoch: True shuffles runs of rows, which memory likes; "rows" single ones.
    verbose : int, default=0
        1 shows epochs.
    eta0 : float, default=1.0
        The step.
    n_jobs : ignored
    random_state : int, RandomState or None, default=0
    early_stopping : bool, default=False
        Hold rows out, and stop when the weights do not get better on those.
    validation_fraction : float, default=0.1
        The share of rows that are held out.
    n_iter_no_change : int, default=5
    class_weight : dict, "balanced" or None, default=None
        Factors on the steps of the classes' rows.
    warm_start : bool, default=False
        Start from the last weights.
    average : bool or int, default=False
        Take the average of the weights over all rows that were visited, or from the so-manieth on.
    multi_class : {"winner", "ovr"}, default="winner"
        What K classes learn from a row: its own class and the best of the others, or each class against all others, as in
        scikit-learn.
    pocket : bool, default=False
        If no epoch is without mistakes, keep the weights of the epoch after which fewest rows were misclassified.
    standardize : bool, default=False
        Learn from a standardised copy of the features; `coef_` is for the features as they are. Sparse ones are scaled only.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it. None for the setting of `fastdisc.set_config`.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : int
        Epochs.
    converged_ : bool
        Whether the last epoch was without mistakes.
    n_updates_ : int
        Mistakes, in all epochs.
    n_mistakes_ : array of shape (n_iter_,)
        Mistakes in each epoch.
    margin_ : float or None
        If converged, the distance of the nearest row from the boundary, in the space of [1 x]; for K classes with "winner",
        that of scores, in units of the norm of all weights.
    bound_ : float or None
        If converged, (R / margin)^2 with R the largest norm of a row [1 x]: by the convergence theorem the algorithm could not
        have made more mistakes, from zero weights and with equal steps. With "winner" R is the largest norm of a difference of
        two classes' features, sqrt(2) as much; with "ovr" the bounds of the classes are added.
    t_ : float
        Rows visited, plus one.
    history_ : dict of lists
        "loss", the mean of the perceptron criterion (4.54) at the rows' visits, and "updates", for each epoch.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Perceptron().fit(X, y == 0)
    >>> model.converged_, model.n_updates_ <= model.bound_
    (True, True)
    >>> model.score(X, y == 0)
    1.0
    """

    _clean = True

    def __init__(
        self,
        *,
        penalty=None,
        alpha=0.0001,
        l1_ratio=0.15,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-3,
        shuffle=True,
        verbose=0,
        eta0=1.0,
        n_jobs=None,
        random_state=0,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        warm_start=False,
        average=False,
        multi_class="winner",
        pocket=False,
        standardize=False,
        basis=None,
        backend=None,
        n_threads=None,
    ):
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.multi_class = multi_class
        self.pocket = pocket
        self.standardize = standardize
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def _rule(self, n_classes):
        alpha, l1 = self._penalty()
        loss = Loss.PERCEPTRON if self.multi_class == "ovr" or n_classes == 2 else Loss.WINNER
        return Rule(loss, eta=float(self.eta0), alpha=alpha, l1=l1, intercept=self.fit_intercept, begin=max(1.0, self.average))

    def _note(self, visits, result):
        self.n_mistakes_ = np.array(self.history_["updates"])
        self.n_updates_ = int(self.n_mistakes_.sum())
        self.margin_ = self.bound_ = None
        if visits is not None and self.converged_:
            self.margin_, self.bound_ = self._theorem(visits, result.last)

    def _theorem(self, visits, W):
        """The margin of separating weights, and the bound on the number of mistakes that follows from it."""
        X, r = visits.X, visits.r
        rows = slice(None) if len(visits.s) == 1 else visits.s > 0
        Z = outputs(X, Link.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)[rows]
        r = r[rows]
        square = 1 + norms(X, np.ones(1), axis=1)[rows].max()
        own = np.arange(len(r)), r
        if Z.shape[1] > 1 and self.multi_class == "winner":
            right = Z[own].copy()
            Z[own] = -np.inf
            margin, square = (right - Z.max(axis=1)).min() / np.linalg.norm(W), 2 * square
            return float(margin), float(square / margin**2)
        signs = np.where(np.arange(Z.shape[1]) == r[:, None], 1, -1) if Z.shape[1] > 1 else np.where(r == 1, 1, -1)[:, None]
        margins = (signs * Z).min(axis=0) / np.linalg.norm(W, axis=1)
        return float(margins.min()), float((square / margins**2).sum())

    def _short(self):
        return (
            f"every one of max_iter={self.max_iter} epochs had mistakes: the classes may not be separable, or only by a small "
            "margin. Raise max_iter, or tell tol when to stop; pocket=True keeps the best weights."
        )

    def _check_parameters(self):
        super()._check_parameters()
        choice(self.multi_class, "multi_class", ("winner", "ovr"))
        choice(self.pocket, "pocket", (True, False))
