"""Stochastic gradient descent, a row at a time."""

from __future__ import annotations

import numpy as np
from sklearn.utils.metaestimators import available_if

from . import special
from ._base import choice, number
from ._kernels import Loss, Rate, Rule
from ._online_base import OnlineLearner

LOSSES = {
    "hinge": Loss.HINGE,
    "log_loss": Loss.LOG,
    "modified_huber": Loss.MODIFIED_HUBER,
    "squared_hinge": Loss.SQUARED_HINGE,
    "perceptron": Loss.PERCEPTRON,
    "squared_error": Loss.SQUARED,
}
RATES = {"optimal": Rate.OPTIMAL, "constant": Rate.CONSTANT, "adaptive": Rate.CONSTANT, "invscaling": Rate.INVSCALING}


def _has_probabilities(model):
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")


class OnlineClassifier(OnlineLearner):
    """Linear classifiers by stochastic gradient descent, a row at a time, as scikit-learn's SGDClassifier.

    All K classes, each against the others, learn in one visit of the row. Given rows in the same order, dense features and
    any loss give scikit-learn's weights, with an L2 penalty or, without averaging, an L1 penalty; the elastic net's L1 account
    shrinks along with the weights, and intercepts of sparse features learn at full speed, so that sparse and dense rows give the
    same, but for averages with an L1 penalty, which sparse rows pay late.

    Parameters
    ----------
    loss : {"hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", "squared_error"}, default="hinge"
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
    alpha : float, default=0.0001
        Strength of the penalty; also sets the steps of learning_rate="optimal".
    l1_ratio : float, default=0.15
        The share of the L1 norm in the elastic net.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        The most epochs.
    tol : float or None, default=1e-3
        Stop when the mean objective of a class has not fallen by this much for `n_iter_no_change` epochs; all stop together.
    shuffle : {True, False, "rows"}, default=True
        The order of the rows, anew for each epoch: True shuffles runs of rows, which memory likes; "rows" single ones.
    verbose : int, default=0
        1 shows epochs.
    epsilon, n_jobs : ignored
    random_state : int, RandomState or None, default=None
    learning_rate : {"optimal", "constant", "invscaling", "adaptive"}, default="optimal"
        The step at the t-th row: 1 / (alpha (t0 + t - 1)) with scikit-learn's t0; eta0; eta0 / t^power_t; or eta0, a fifth of it
        each time when `tol` would stop.
    eta0 : float, default=0.01
    power_t : float, default=0.5
    early_stopping : bool, default=False
        Hold rows out, and stop when the weights do not get better on those.
    validation_fraction : float, default=0.1
        The share of rows that are held out.
    n_iter_no_change : int, default=5
    class_weight : dict, "balanced" or None, default=None
        Factors on the steps of the classes' rows, whichever class learns from them.
    warm_start : bool, default=False
        Start from the last weights.
    average : bool or int, default=False
        Take the average of the weights over all rows that were visited, or from the so-manieth on.
    standardize : bool, default=False
        Learn from a standardised copy of the features; `coef_` is for the features as they are. Sparse ones are scaled only.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
    n_threads : int or None, default=None
        Only loss="perceptron" without a penalty uses more than one.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : int
        Epochs.
    converged_ : bool
        Whether `tol` was met.
    t_ : float
        Rows visited, plus one.
    history_ : dict of lists
        "loss", the mean over rows of the sum over classes, at the rows' visits, and "updates", for each epoch.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import OnlineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OnlineClassifier(loss="log_loss", standardize=True, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        loss="hinge",
        *,
        penalty="l2",
        alpha=0.0001,
        l1_ratio=0.15,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-3,
        shuffle=True,
        verbose=0,
        epsilon=0.1,
        n_jobs=None,
        random_state=None,
        learning_rate="optimal",
        eta0=0.01,
        power_t=0.5,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        warm_start=False,
        average=False,
        standardize=False,
        basis=None,
        backend=None,
        n_threads=None,
    ):
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.standardize = standardize
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Probabilities, (N, K), for the losses that have them: "log_loss" and "modified_huber".

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        Z = self.decision_function(X)
        Y = special.sigmoid(Z) if self.loss == "log_loss" else (np.clip(Z, -1, 1) + 1) / 2
        if Y.ndim == 1:
            return np.column_stack([1 - Y, Y])
        total = Y.sum(axis=1, keepdims=True)
        return np.where(total > 0, Y, 1.0) / np.where(total > 0, total, Y.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Logarithms of the probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _rule(self, n_classes):
        alpha, l1 = self._penalty()
        eta, power = float(self.eta0), float(self.power_t)
        if self.learning_rate == "optimal":  # the first step is as long as a weight, by scikit-learn's guess of that
            eta, power = 1 / self.alpha, self.alpha**-0.75
        rule = Rule(LOSSES[self.loss], RATES[self.learning_rate], eta, power, alpha, l1)
        return rule._replace(intercept=self.fit_intercept, begin=max(1.0, self.average))

    def _check_parameters(self):
        choice(self.loss, "loss", tuple(LOSSES))
        super()._check_parameters()
        choice(self.learning_rate, "learning_rate", tuple(RATES))
        number(self.power_t, "power_t", low=-np.inf)
        if self.learning_rate == "optimal" and not self.alpha > 0:
            raise ValueError("alpha must be > 0 since learning_rate is 'optimal': it sets the steps")
