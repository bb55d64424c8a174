"""Stochastic gradient descent, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .. import special
from .._kernels import LearningRate, MarginLoss, OnlineRule
from .._kernels.contract import Array
from .._validation.parameters import check_choice, check_number
from .base import OnlineLearner

LOSSES = {
    "hinge": MarginLoss.HINGE,
    "log_loss": MarginLoss.LOG,
    "modified_huber": MarginLoss.MODIFIED_HUBER,
    "squared_hinge": MarginLoss.SQUARED_HINGE,
    "perceptron": MarginLoss.PERCEPTRON,
    "squared_error": MarginLoss.SQUARED,
}
RATES = {
    "optimal": LearningRate.OPTIMAL,
    "constant": LearningRate.CONSTANT,
    "adaptive": LearningRate.CONSTANT,
    "invscaling": LearningRate.INVSCALING,
}


def _has_probabilities(model: Any) -> bool:
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")


class OnlineClassifier(OnlineLearner):
    """Linear classifiers by stochastic gradient descent, row by row, like scikit-learn's
    SGDClassifier.

    All K classes, each against the others, are updated in one pass over the row. For rows in the
    same order and dense features, the weights are those of scikit-learn for any loss, with an L2
    penalty or, without averaging, an L1 penalty. There are three differences. The accumulated L1
    penalty of the elastic net shrinks along with the weights. Intercepts of sparse features have
    full step sizes, so that sparse and dense rows give the same weights. Averages with an L1
    penalty differ for sparse rows, whose penalty is applied late.

    Parameters
    ----------
    loss : str, default="hinge"
        The loss of a row's margin: "hinge", "log_loss", "modified_huber", "squared_hinge",
        "perceptron" or "squared_error".
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        The penalty on the weights.
    alpha : float, default=0.0001
        Strength of the penalty; also determines the steps of learning_rate="optimal".
    l1_ratio : float, default=0.15
        The share of the L1 norm in the elastic net.
    fit_intercept : bool, default=True
        Whether intercepts are learned; otherwise they are 0.
    max_iter : int, default=1000
        The largest number of epochs.
    tol : float or None, default=1e-3
        Stop when the mean objective of a class has not fallen by this much for `n_iter_no_change`
        epochs; all classes stop together. None to run `max_iter` epochs.
    shuffle : {True, False, "rows"}, default=True
        The order of the rows, which is new in each epoch: True shuffles contiguous runs of rows,
        for cache locality; "rows" shuffles single rows.
    verbose : int, default=0
        1 prints a line per epoch.
    epsilon, n_jobs : ignored
        For compatibility with scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed of the order of the rows and of the rows that are held out.
    learning_rate : {"optimal", "constant", "invscaling", "adaptive"}, default="optimal"
        The step at the t-th row: "optimal", 1 / (alpha (t0 + t - 1)) with scikit-learn's t0;
        "constant", eta0; "invscaling", eta0 / t^power_t; "adaptive", eta0, which is divided by 5
        whenever `tol` would stop the training.
    eta0 : float, default=0.01
        The (initial) step size.
    power_t : float, default=0.5
        The exponent of "invscaling".
    early_stopping : bool, default=False
        Whether to hold out rows, and to stop when the weights no longer improve on them.
    validation_fraction : float, default=0.1
        The share of rows that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Number of epochs without improvement after which training stops.
    class_weight : dict, "balanced" or None, default=None
        Factors of the steps for the rows of each class, in the training of all classes.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the last fit.
    average : bool or int, default=False
        Whether to use the average of the weights after each row; an integer n averages from the
        n-th row on.
    standardize : bool, default=False
        Whether to train on a standardised copy of the features; `coef_` is for the features as they
        are. Sparse features are scaled, not centred.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns that the model uses as features instead of the columns. They are
        computed within the sweep; the matrix of features is never stored.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads. Only loss="perceptron" without a penalty uses more than one;
        the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The sorted class labels.
    coef_ : array of shape (1, d) or (K, d)
        Weights of the features; a single row for two classes.
    intercept_ : array of shape (1,) or (K,)
        Intercepts.
    n_iter_ : int
        Number of epochs.
    converged_ : bool
        Whether `tol` was met.
    t_ : float
        Number of rows processed, plus one.
    history_ : dict of lists
        For each epoch: "loss", the mean over rows of the sum of the losses of all classes when the
        row was processed, and "updates".
    mean_, scale_ : arrays of shape (d,)
        Means and standard deviations of the columns, only with `standardize`.

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
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool | str = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        n_jobs: Any = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: bool | int = False,
        standardize: bool = False,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
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
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, for the losses that have them: "log_loss" and "modified_huber".

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        Z = self.decision_function(X)
        Y = special.sigmoid(Z) if self.loss == "log_loss" else (np.clip(Z, -1, 1) + 1) / 2
        if Y.ndim == 1:
            return np.column_stack([1 - Y, Y])
        total = Y.sum(axis=1, keepdims=True)
        return np.where(total > 0, Y, 1.0) / np.where(total > 0, total, Y.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        log_probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _rule(self, n_classes: int) -> OnlineRule:
        alpha, l1 = self._penalty_strength()
        eta, power = float(self.eta0), float(self.power_t)
        if self.learning_rate == "optimal":
            # The first step is as large as a typical weight, by scikit-learn's heuristic for it.
            eta, power = 1 / self.alpha, self.alpha**-0.75
        rule = OnlineRule(LOSSES[self.loss], RATES[self.learning_rate], eta, power, alpha, l1)
        return rule._replace(intercept=self.fit_intercept, begin=max(1.0, self.average))

    @property
    def _has_adaptive_steps(self) -> bool:
        return self.learning_rate == "adaptive"

    def _check_parameters(self) -> None:
        check_choice(self.loss, "loss", tuple(LOSSES))
        super()._check_parameters()
        check_choice(self.learning_rate, "learning_rate", tuple(RATES))
        check_number(self.power_t, "power_t", low=-np.inf)
        if self.learning_rate == "optimal" and not self.alpha > 0:
            raise ValueError(
                "alpha must be > 0 since learning_rate is 'optimal': it determines the steps"
            )
