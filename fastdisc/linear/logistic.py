"""Logistic discrimination: two classes by a sigmoid, K by softmax."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import LinearClassifier, Posteriors, all_or_nothing
from .._kernels.contract import Array
from .._objectives.coordinates import Problem
from .._objectives.row_sums import RowSums
from .._solvers.result import Result
from .._solvers.separation import is_separated
from .._solvers.sgd import Stream
from .._validation.arrays import check_Cs, check_offset, check_rows, check_sample_weight
from .._validation.labels import check_class_weight, check_priors, encode_labels
from .._validation.parameters import check_number
from ..basis import Quadratic
from ..exceptions import SeparationWarning
from .inference import Summary, estimates
from .settings import Settings, read_settings
from .training import make_data, make_problem, solve, solve_path, warn_not_converged


def log_prior_ratios(priors: Array, before: Array) -> Array:
    """The change of the intercepts if the priors change (10.20): one number for two classes, else
    one per class."""
    change = np.log(priors) - np.log(before)
    return change[1:] - change[:1] if len(change) == 2 else change


class Path(NamedTuple):
    """Solutions for several values of C: weights as in `coef_` and `intercept_`, with one more axis
    in front."""

    Cs: Array  # (n,)
    coefs: Array  # (n, K, d)
    intercepts: Array  # (n, K)
    n_iter: Array  # (n,)
    gradient_norms: Array  # (n,)


class LogisticRegression(Posteriors, LinearClassifier):
    """Logistic discrimination (section 10.7), with the objective of scikit-learn's estimator.

    Minimises C times the cross-entropy (10.23), (10.31) plus half the squared norm of the weights,
    or an elastic-net penalty; intercepts are not penalised. Parameters that scikit-learn has mean
    the same here, and every solver finds the same optimum.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, optional
        An older way to set `l1_ratio` and, with None, `C=np.inf`.
    C : float, default=1.0
        Inverse strength of the penalty; np.inf for none.
    l1_ratio : float, default=0.0
        The share of the L1 norm in the penalty: 0 is ridge, 1 is lasso.
    tol : float, default=1e-6
        Stop when the norm of the gradient over all rows has fallen to this share of its norm at
        zero weights. Columns are measured in units of their standard deviation.
    fit_intercept : bool, default=True
        Whether to learn intercepts.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class.
    random_state : int, RandomState or None, default=None
        For the start of "gd", weights drawn from U(-0.01, 0.01), and the order of rows of "sgd".
    solver : {"auto", "newton", "newton-cg", "lbfgs", "proximal", "gd", "sgd"}, default="auto"
        "auto" chooses "proximal" if there is an L1 penalty, "newton" up to 2000 weights (500 for
        sparse data), "newton-cg" for sparse or very wide data beyond that and, with a penalty, for
        small data with fewer than 32 rows for each of more than 100 weights, and "lbfgs" otherwise.
        "gd" is batch gradient descent as in figures 10.6 and 10.8. Of scikit-learn's names,
        "newton-cholesky" means "newton", and "liblinear", "sag" and "saga" mean "auto".
    max_iter : int or None, default=None
        None for a default of the solver. For "sgd", epochs.
    standardize : bool, default=False
        Penalise the weights of standardised features. `mean_` and `scale_` are stored; `coef_` is
        for the features as they are.
    basis : basis of `fastdisc.basis`, optional
        Basis functions of the columns to learn from instead of the columns: `coef_` has a weight
        for each. They are computed inside the sweep, a block of rows at a time, and never stored as
        a matrix. `basis_` is the fitted basis.
    reference_class : label, optional
        Fix the weights of this class at 0 (10.25)-(10.28), and penalise those of the others
        relative to it.
    priors : array of shape (K,), optional
        Prior probabilities to assume instead of the class frequencies of the sample (10.20).
    early_stopping : bool or int, default=False
        Stop when no row is misclassified, or when their number has not decreased for this many
        iterations (10 for True).
    eta : float or "auto", default="auto"
        Step size of "gd" on the summed error, or of "sgd" on the mean error of a batch; "auto"
        takes a safe one.
    warm_start : bool, default=False
        Start from the last solution.
    callback : callable, optional
        Called as callback(iteration, values) with a dict of "loss", "errors" and "norm"; the solver
        stops if it returns True.
    verbose : int, default=0
        1 prints iterations, every hundredth of "gd"; 2 prints every one.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The maximum number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.
    dual, intercept_scaling, n_jobs : ignored
        Accepted for compatibility with scikit-learn.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The class labels, sorted.
    coef_ : array of shape (1, d) or (K, d)
        The weights of the features.
    intercept_ : array of shape (1,) or (K,)
        The intercepts.
    n_iter_ : array of shape (1,)
        Iterations over all rows.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of shape (d,)
        The names of the columns of X, if it had any.
    solver_ : str
        The solver that was used.
    converged_ : bool
        Whether `tol` was reached.
    gradient_norm_ : float
        The certificate: the norm of the gradient over all rows, relative to that at zero weights
        (which is estimated on a sample if there are many rows). If the last step reduced it well
        and there is a penalty, a final step is taken without re-evaluating the gradient: this is
        then the norm before it, and that at the solution is usually smaller.
    history_ : dict of lists
        "loss", "errors" (the weight of misclassified rows) and "norm" (||w||), for each iteration
        over all rows.
    priors_ : array of shape (K,)
        The prior probabilities that the intercepts stand for.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.
    quadratic_ : array of shape (1, d, d) or (K, d, d)
        With a Quadratic basis: the symmetric matrices W of the scores x'Wx + w'x + w0 (10.34); w is
        coef_[:, :d].

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
        penalty: str | None = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        dual: bool = False,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int | None = None,
        standardize: bool = False,
        basis: Any = None,
        reference_class: Any = None,
        priors: Any = None,
        early_stopping: bool | int = False,
        eta: float | str = "auto",
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        backend: str | None = None,
        n_threads: int | None = None,
        n_jobs: int | None = None,
    ):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.standardize = standardize
        self.basis = basis
        self.reference_class = reference_class
        self.priors = priors
        self.early_stopping = early_stopping
        self.eta = eta
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.backend = backend
        self.n_threads = n_threads
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
    ) -> LogisticRegression:
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Class labels: integers or strings.
        sample_weight : array of shape (N,), optional
            Weights of the rows.
        offset : array of shape (N,) or (N, K), optional
            Added to the scores in training.

        Returns
        -------
        self : LogisticRegression
            The fitted estimator.
        """
        settings = read_settings(self)
        classes, data = check_training_data(self, settings, X, y, sample_weight, offset)
        problem = make_problem(data, classes, settings)
        fractions = data.source.class_fractions
        priors = check_priors(self.priors, classes, fractions)
        start = self._start(problem, classes, settings)
        result, solver = solve(problem, start, settings.C, settings)
        store_solution(self, problem, classes, result, solver)
        self.priors_ = fractions
        if result.converged and settings.unpenalized:
            self._inference = self._inspect(problem, result)
        if self.priors is not None:
            self._shift(priors)
        warn_not_converged(result, solver, self.tol)
        return self

    def fit_path(
        self, X: Any, y: Any, Cs: Any, sample_weight: Any = None, offset: Any = None
    ) -> Path:
        """Solutions for several values of C, each started from the last; the model itself is not
        changed.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Class labels.
        Cs : array of shape (n,)
            The values of C.
        sample_weight, offset
            As in `fit`.

        Returns
        -------
        path : Path
            The solutions in the order of Cs.
        """
        Cs, settings = check_Cs(Cs), read_settings(self)
        model = copy.copy(self)  # validation stores names of columns: not in this model
        classes, data = check_training_data(model, settings, X, y, sample_weight, offset)
        problem = make_problem(data, classes, settings)
        fractions = data.source.class_fractions
        priors = check_priors(self.priors, classes, fractions)
        shift = 0.0 if self.priors is None else log_prior_ratios(priors, fractions)
        found = {}
        for C, result in solve_path(problem, Cs, settings):
            V = problem.to_raw(result.W)
            found[C] = V[:, 1:], V[:, 0] + shift, result.n_iter, result.gradient_norm
            warn_not_converged(result, f"{self.solver} at C={C:g}", self.tol, stacklevel=3)
        columns = (np.array([found[C][i] for C in Cs]) for i in range(4))
        return Path(Cs, *columns)

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> LogisticRegression:
        """One pass of averaged stochastic gradient steps over further rows.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Class labels.
        classes : array of shape (K,), optional
            All labels that will ever occur; required in the first call, unless the model is fitted:
            then its weights are the start.
        sample_weight : array of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        self : LogisticRegression
            The estimator.
        """
        settings = read_settings(self)
        first, classes, rows, r, s = self._next_rows(X, y, classes, sample_weight)
        data = make_data(rows, r, s, len(classes), settings)
        stream = copy.deepcopy(getattr(self, "_stream", None))
        if stream is None:
            start = np.zeros(data.shape)
            if not first:
                start = np.column_stack([self.intercept_, self.coef_])
            stream = Stream(start, len(classes))
        reference = settings.reference(classes)
        intercept = settings.fit_intercept
        problem = Problem(data, intercept=intercept, reference=reference, rescale=False)
        (l1, l2), share = settings.strengths(settings.C), stream.share(data.total_weight)
        stream.take(problem.penalized(l2 * share), problem.l1(l1) * share, self.eta)
        stream.add_classes(data.unit * data.source.class_weights)
        self._stream, self.classes_, self.priors_ = stream, classes, stream.class_fractions
        self.coef_, self.intercept_ = stream.average[:, 1:].copy(), stream.average[:, 0].copy()
        self.n_iter_ = np.array([stream.calls], dtype=np.int32)
        return self

    def with_priors(self, priors: Any) -> LogisticRegression:
        """A copy that assumes other prior probabilities: the intercepts are shifted by their log
        ratios (10.20).

        Parameters
        ----------
        priors : array of shape (K,)
            In the order of `classes_`.

        Returns
        -------
        model : LogisticRegression
            The copy.
        """
        check_is_fitted(self)
        model = copy.deepcopy(self)
        model._shift(check_priors(priors, self.classes_, self.priors_))
        return model

    def summary(self, level: float = 0.95) -> Summary:
        """Estimates, standard errors, z, p and confidence intervals of an unpenalised fit, with the
        log-likelihood and AIC.

        For K classes the weights are relative to `reference_class`, or to the first class.

        Parameters
        ----------
        level : float, default=0.95
            The level of the confidence intervals.

        Returns
        -------
        summary : Summary
            Prints as a table.
        """
        check_is_fitted(self)
        inference = getattr(self, "_inference", None)
        if inference is None:
            raise ValueError(
                "summary() needs a maximum-likelihood fit of at most 2000 weights: set C=np.inf"
            )
        if check_number(level, "level", low=0, open_low=True) >= 1:
            raise ValueError(f"level must be a number between 0 and 1, got {level!r}")
        return Summary(**inference, level=level)

    @property
    def quadratic_(self) -> Array:
        """The symmetric matrices of quadratic discriminants (10.34)."""
        basis = getattr(self, "basis_", None)
        if not isinstance(basis, Quadratic) or not hasattr(self, "coef_"):
            raise AttributeError("quadratic_ is for a model that is fitted with a Quadratic basis")
        return basis.matrices(self.coef_)

    def _start(self, problem: Problem, classes: Array, settings: Settings) -> Array:
        """The last solution, small random weights (figure 10.6), or zeros, (K, d+1)."""
        if self.warm_start and hasattr(self, "coef_"):
            shape = problem.shape[0], problem.d
            if self.coef_.shape != shape:
                raise ValueError(
                    f"warm_start: the last fit had {self.coef_.shape} weights, this one has {shape}"
                )
            if not np.array_equal(self.classes_, classes):
                raise ValueError(
                    f"warm_start: the last fit had classes {self.classes_.tolist()}, this one has "
                    f"{classes.tolist()}"
                )
            W = problem.to_solver(np.column_stack([self.intercept_, self.coef_]))
        elif settings.solver == "gd":
            W = check_random_state(self.random_state).uniform(-0.01, 0.01, problem.shape)
        else:
            return np.zeros(problem.shape)
        if problem.reference is not None:
            W = W - W[problem.reference]
        W[:, 0] *= self.fit_intercept
        return W

    def _inspect(self, problem: Problem, result: Result) -> dict[str, Any] | None:
        """Warn of separation; what `summary` needs."""
        objective = problem.penalized(0.0)
        separated, H = is_separated(objective, result.W, result.history["errors"][-1])
        if separated:
            warnings.warn(
                "the classes are separable, wholly or along some direction: without a penalty the "
                "likelihood has no maximum, and the weights are those at which the gradient met "
                "tol. Take a finite C.",
                SeparationWarning,
                stacklevel=4,
            )
        if H is None:
            return None
        columns = getattr(self, "feature_names_in_", [f"x{j}" for j in range(problem.d)])
        if hasattr(self, "basis_"):
            columns = self.basis_.get_feature_names_out()
        return estimates(problem, result, H, self.classes_, columns)

    def _check_parameters(self) -> None:
        read_settings(self)

    def _shift(self, priors: Array) -> None:
        """Adapt the intercepts to other priors."""
        self.intercept_ = self.intercept_ + log_prior_ratios(priors, self.priors_)
        self.priors_ = priors


def check_training_data(
    model: LogisticRegression,
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any = None,
) -> tuple[Array, RowSums]:
    """Validated arguments of `fit`: the classes and the data term. Stores what `model` has to know
    of the columns of X."""
    rows = check_rows(model, X, reset=True, y=y)
    n = rows.shape[0]
    classes, r = encode_labels(y, n)
    s = check_sample_weight(sample_weight, n)
    s = check_class_weight(model.class_weight, classes, r, s)
    n_outputs = 1 if len(classes) == 2 else len(classes)
    return classes, make_data(
        rows, r, s, len(classes), settings, check_offset(offset, n, n_outputs)
    )


def store_solution(
    model: LogisticRegression, problem: Problem, classes: Array, result: Result, solver: str
) -> None:
    """Store a solution as the fitted attributes of a model."""
    V = problem.to_raw(result.W)
    model.classes_ = classes
    model.coef_, model.intercept_ = V[:, 1:].copy(), V[:, 0].copy()
    model._stream = model._inference = None
    model.n_iter_ = np.array([result.n_iter], dtype=np.int32)
    model.solver_, model.converged_ = solver, bool(result.converged)
    model.gradient_norm_, model.history_ = result.gradient_norm, result.history
    if model.standardize:
        model.mean_, model.scale_ = problem.mean, problem.scale
