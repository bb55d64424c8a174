"""The perceptron (section 4.1.7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.outputs import outputs
from .._kernels import Activation, MarginLoss, OnlineRule
from .._kernels.contract import Array
from .._objectives.epochs import Epochs
from .._solvers.online import OnlineResult
from .._validation.parameters import check_choice
from .base import OnlineLearner


class Perceptron(OnlineLearner):
    """The perceptron algorithm of section 4.1.7: misclassified rows are added to the weights
    (4.55).

    Training ends with an epoch without mistakes, which is certain to come if the classes are
    separable, or when `tol` or `max_iter` stop it. The parameters that scikit-learn has too mean
    what they mean there. The result does not depend on the number of threads: rows are scored ahead
    in parallel, and those that may have become mistakes since are updated in their order.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, default=None
        The penalty on the weights.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        The share of the L1 norm in the elastic net.
    fit_intercept : bool, default=True
        Whether intercepts are learned; otherwise they are 0.
    max_iter : int, default=1000
        The largest number of epochs.
    tol : float or None, default=1e-3
        Stop when the mean loss has not fallen by this much for `n_iter_no_change` epochs. None to
        continue until an epoch has no mistakes.
    shuffle : {True, False, "rows"}, default=True
        The order of the rows, which is new in each epoch: True shuffles contiguous runs of rows,
        for cache locality; "rows" shuffles single rows.
    verbose : int, default=0
        1 prints a line per epoch.
    eta0 : float, default=1.0
        The step size.
    n_jobs : ignored
        For compatibility with scikit-learn.
    random_state : int, RandomState or None, default=0
        Seed of the order of the rows and of the rows that are held out.
    early_stopping : bool, default=False
        Whether to hold out rows, and to stop when the weights no longer improve on them.
    validation_fraction : float, default=0.1
        The share of rows that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Number of epochs without improvement after which training stops.
    class_weight : dict, "balanced" or None, default=None
        Factors of the steps for the rows of each class.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the last fit.
    average : bool or int, default=False
        Whether to use the average of the weights after each row; an integer n averages from the
        n-th row on.
    multi_class : {"winner", "ovr"}, default="winner"
        For K classes: "winner" updates the row's class and the best of the others; "ovr" trains
        each class against all others, as in scikit-learn.
    pocket : bool, default=False
        If no epoch is without mistakes, keep the weights of the epoch with the fewest misclassified
        rows.
    standardize : bool, default=False
        Whether to train on a standardised copy of the features; `coef_` is for the features as they
        are. Sparse features are scaled, not centred.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns that the model uses as features instead of the columns. They are
        computed within the sweep; the matrix of features is never stored.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The largest number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

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
        Whether the last epoch was without mistakes.
    n_updates_ : int
        Number of mistakes in all epochs.
    n_mistakes_ : array of shape (n_iter_,)
        Number of mistakes in each epoch.
    margin_ : float or None
        If converged, the distance of the nearest row from the boundary, in the space of [1 x]. For
        K classes with "winner", the smallest difference of scores, relative to the norm of all
        weights.
    bound_ : float or None
        If converged, (R / margin)^2 with R the largest norm of a row [1 x]. By the convergence
        theorem this bounds the number of mistakes from zero weights with equal steps. With
        "winner", R is the largest norm of a difference of the features of two classes, which is
        sqrt(2) times as large; with "ovr", the bounds of the classes are added.
    t_ : float
        Number of rows processed, plus one.
    history_ : dict of lists
        For each epoch: "loss", the mean perceptron criterion (4.54) of the rows when they were
        processed, and "updates".
    mean_, scale_ : arrays of shape (d,)
        Means and standard deviations of the columns, only with `standardize`.

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

    _stops_without_updates = True

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool | str = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: Any = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: bool | int = False,
        multi_class: str = "winner",
        pocket: bool = False,
        standardize: bool = False,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
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

    def _rule(self, n_classes: int) -> OnlineRule:
        alpha, l1 = self._penalty_strength()
        against_rest = self.multi_class == "ovr" or n_classes == 2
        return OnlineRule(
            MarginLoss.PERCEPTRON if against_rest else MarginLoss.PERCEPTRON_MULTICLASS,
            eta=float(self.eta0),
            alpha=alpha,
            l1=l1,
            intercept=self.fit_intercept,
            begin=max(1.0, self.average),
        )

    @property
    def _keeps_best_weights(self) -> bool:
        return self.pocket

    def _record(self, epochs: Epochs | None, result: OnlineResult | None) -> None:
        self.n_mistakes_ = np.array(self.history_["updates"])
        self.n_updates_ = int(self.n_mistakes_.sum())
        self.margin_ = self.bound_ = None
        if epochs is not None and result is not None and self.converged_:
            self.margin_, self.bound_ = self._margin_and_bound(epochs, result.last_W)

    def _margin_and_bound(self, epochs: Epochs, W: Array) -> tuple[float, float]:
        """The margin of separating weights, and the bound on the number of mistakes."""
        r, s = epochs.batch.r, epochs.batch.s
        rows = slice(None) if len(s) == 1 else s > 0
        options: dict[str, Any] = {"backend": self.backend, "n_threads": self.n_threads}
        Z = outputs(epochs.X, Activation.IDENTITY, W, **options)[rows]
        square = 1 + epochs.X.row_squares()[rows].max()
        if len(W) > 1 and self.multi_class == "winner":
            margin = _winner_margin(Z, r[rows]) / np.linalg.norm(W)
            return float(margin), float(2 * square / margin**2)
        margins = _class_margins(Z, r[rows]) / np.linalg.norm(W, axis=1)
        return float(margins.min()), float((square / margins**2).sum())

    def _exhausted_message(self) -> str:
        return (
            f"every one of max_iter={self.max_iter} epochs had mistakes: the classes may not be "
            "separable, or only by a small margin. Increase max_iter, or set tol to stop earlier; "
            "pocket=True keeps the best weights."
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.multi_class, "multi_class", ("winner", "ovr"))
        check_choice(self.pocket, "pocket", (True, False))


def _winner_margin(Z: Array, r: Array) -> float:
    """The smallest difference between the score of a row's class and the best of the others."""
    own = np.arange(len(r)), r
    right = Z[own].copy()
    Z[own] = -np.inf
    return float((right - Z.max(axis=1)).min())


def _class_margins(Z: Array, r: Array) -> Array:
    """The smallest margin of each class against the others; (1,) for two classes."""
    if Z.shape[1] == 1:
        signs = np.where(r == 1, 1, -1)[:, None]
    else:
        signs = np.where(np.arange(Z.shape[1]) == r[:, None], 1, -1)
    return (signs * Z).min(axis=0)
