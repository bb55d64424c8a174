"""Logistic discrimination: two classes by a sigmoid, K by softmax."""

from __future__ import annotations

import copy
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _config, _inference, _validate
from ._base import LinearClassifier, Posteriors, all_or_nothing, choice, number
from ._kernels import Link
from ._problem import Problem
from ._solvers import Trace, choose, gd, lbfgs, newton, newton_cg, proximal, separation, sgd
from ._sweep import Sweep
from .exceptions import SeparationWarning

SOLVERS = {
    "newton": (newton.solve, 200),
    "newton-cg": (newton_cg.solve, 200),
    "lbfgs": (lbfgs.solve, 2000),
    "proximal": (proximal.solve, 1000),
    "gd": (gd.solve, 10_000),
    "sgd": (sgd.solve, 20),
}
ALIASES = {"newton-cholesky": "newton", "liblinear": "auto", "sag": "auto", "saga": "auto"}
PENALTIES = {"l2": 0.0, "l1": 1.0}


def log_ratios(priors, before):
    """What intercepts change by when the priors do (10.20): one number for two classes, else one a class."""
    change = np.log(priors) - np.log(before)
    return change[1:] - change[:1] if len(change) == 2 else change


class Path(NamedTuple):
    """Solutions for several values of C: weights as in `coef_` and `intercept_`, one more axis in front."""

    Cs: np.ndarray  # (n,)
    coefs: np.ndarray  # (n, K, d)
    intercepts: np.ndarray  # (n, K)
    n_iter: np.ndarray  # (n,)
    gradient_norms: np.ndarray  # (n,)


class LogisticRegression(Posteriors, LinearClassifier):
    """Logistic discrimination (section 10.7), with the objective of scikit-learn's LogisticRegression.

    Minimises C times the cross-entropy (10.23), (10.31) plus half the squared norm of the weights, or an elastic net; intercepts
    are not penalised. scikit-learn's parameters mean what they mean there; whatever the solver, the optimum is the same.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, optional
        An older way to say `l1_ratio` and, with None, `C=np.inf`.
    C : float, default=1.0
        Inverse strength of the penalty; np.inf for none.
    l1_ratio : float, default=0.0
        The share of the L1 norm in the penalty: 0 is ridge, 1 is lasso.
    tol : float, default=1e-6
        Stop when the norm of the gradient over all rows has fallen to this share of what it is at zero weights; columns count in
        units of their spread.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes' rows.
    random_state : int, RandomState or None, default=None
        For the start of "gd", weights drawn from U(-0.01, 0.01), and the order of rows of "sgd".
    solver : {"auto", "newton", "newton-cg", "lbfgs", "proximal", "gd", "sgd"}, default="auto"
        "auto" takes "proximal" where there is an L1 penalty, "newton" up to 2000 weights (500 of sparse data), "newton-cg" for
        sparse or very wide data beyond and, with a penalty, for few rows (under 32 for each of over 100 weights), and "lbfgs" for
        the rest. "gd" is batch gradient descent as figures 10.6 and 10.8 have it. Of scikit-learn's names, "newton-cholesky"
        means "newton", and "liblinear", "sag" and "saga" mean "auto".
    max_iter : int or None, default=None
        None for a number that suits the solver. For "sgd", epochs.
    standardize : bool, default=False
        Penalise the weights of standardised features. `mean_` and `scale_` are remembered, and `coef_` is for the features as
        they are.
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns: `coef_` has a weight for each. They are expanded inside the
        sweep, a block of rows at a time, and never held as a matrix. `basis_` is the fitted one.
    reference_class : label, optional
        Hold this class's weights at 0 (10.25)-(10.28), and penalise those of the others relative to it.
    priors : array of shape (K,), optional
        Prior probabilities to assume instead of the classes' shares of the sample (10.20).
    early_stopping : bool or int, default=False
        Stop when no row is misclassified, or when their number has not fallen for so many iterations (10 for True).
    eta : float or "auto", default="auto"
        Step of "gd" on the summed error, or of "sgd" on the mean error of a batch; "auto" takes a safe one.
    warm_start : bool, default=False
        Start from the last solution.
    callback : callable, optional
        Called as callback(iteration, values) with a dict of "loss", "errors" and "norm"; stops the solver by returning True.
    verbose : int, default=0
        1 shows iterations, every hundredth of "gd"; 2 every one.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it. None for the setting of `fastdisc.set_config`.
    dual, intercept_scaling, n_jobs : ignored
        Taken so that scikit-learn's calls keep working.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) or (K, d)
    intercept_ : array of shape (1,) or (K,)
    n_iter_ : array of shape (1,)
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)
        Where the columns of X had names.
    solver_ : str
        The solver that "auto" chose.
    converged_ : bool
    gradient_norm_ : float
        The certificate: norm of the gradient over all rows, relative to that at zero weights (which is estimated on a sample
        where there are many rows). Where the last step left little of it, and there is a penalty, one more is taken that costs
        no pass: this is then the norm before it, and that at the solution is smaller as a rule.
    history_ : dict of lists
        "loss", "errors" (the weight of misclassified rows) and "norm" (||w||), for each iteration over all rows.
    priors_ : array of shape (K,)
        The classes' prior probabilities that the intercepts stand for.
    mean_, scale_ : arrays of shape (d,)
        With `standardize`.
    quadratic_ : array of shape (1, d, d) or (K, d, d)
        With a Quadratic basis: the symmetric matrices W of the scores x'Wx + w'x + w0 (10.34); w is coef_[:, :d].

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
        penalty="deprecated",
        *,
        C=1.0,
        l1_ratio=0.0,
        dual=False,
        tol=1e-6,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        random_state=None,
        solver="auto",
        max_iter=None,
        standardize=False,
        basis=None,
        reference_class=None,
        priors=None,
        early_stopping=False,
        eta="auto",
        warm_start=False,
        callback=None,
        verbose=0,
        backend=None,
        n_threads=None,
        n_jobs=None,
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
    def fit(self, X, y, sample_weight=None, offset=None):
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
            Class labels: whole numbers or names.
        sample_weight : array of shape (N,), optional
        offset : array of shape (N,) or (N, K), optional
            Added to the scores in training: what is known of a row beside its features.
        """
        classes, sweep = self._validated(X, y, sample_weight, offset)
        problem = self._problem(sweep, classes)
        priors = _validate.priors(self.priors, classes, sweep.fractions())
        start = self._start(problem, classes)
        result, name = self._solve(problem, start, self.C)
        self._store(problem, classes, result, name)
        self.priors_ = sweep.fractions()
        self._certainty = self._inspect(problem, result) if result.converged and np.isinf(self._strengths(self.C)[2]) else None
        if self.priors is not None:
            self._shift(priors)
        self._warn(result, name)
        return self

    def fit_path(self, X, y, Cs, sample_weight=None, offset=None):
        """Solutions for several values of C, each started from the last; the model itself stays as it is.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.
        Cs : array of shape (n,)

        Returns
        -------
        Path
            In the order of Cs.
        """
        Cs = _validate.strengths(Cs)
        model = copy.copy(self)  # what validation notes of X is not for this model
        classes, sweep = model._validated(X, y, sample_weight, offset)
        problem = model._problem(sweep, classes)
        priors = _validate.priors(self.priors, classes, sweep.fractions())
        shift = 0.0 if self.priors is None else log_ratios(priors, sweep.fractions())
        found = {}
        for C, result in model._path(problem, len(classes), Cs):
            V = problem.outward(result.W)
            found[C] = V[:, 1:], V[:, 0] + shift, result.n_iter, result.gradient_norm
            self._warn(result, f"{model.solver} at C={C:g}")
        return Path(Cs, *(np.array([found[C][i] for C in Cs]) for i in range(4)))

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take one pass of averaged stochastic gradient steps over some more rows.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        classes : array of shape (K,), optional
            All labels that will ever come; needed in the first call, unless the model is fitted: then its weights are the start.
        sample_weight : array of shape (N,), optional
        """
        first, classes, X, r, s = self._next_rows(X, y, classes, sample_weight)
        sweep = Sweep(X, r, s, *self._link(len(classes))[:1], backend=self.backend, n_threads=self.n_threads)
        stream = copy.deepcopy(getattr(self, "_stream", None))
        if stream is None:
            W = np.zeros((self._link(len(classes))[1], X.shape[1] + 1))
            stream = sgd.Stream(W if first else np.column_stack([self.intercept_, self.coef_]))
        l1, l2, _ = self._strengths(self.C)
        reference = self._reference(classes)
        problem = Problem(sweep, intercept=self.fit_intercept, reference=reference, rescale=False)
        stream.take(problem, len(classes), l1, l2, self.eta)
        self._stream, self.classes_, self.priors_ = stream, classes, stream.mass / stream.mass.sum()
        self.coef_, self.intercept_ = stream.average[:, 1:].copy(), stream.average[:, 0].copy()
        self.n_iter_ = np.array([stream.calls], dtype=np.int32)
        return self

    def with_priors(self, priors):
        """A copy that assumes other prior probabilities: intercepts shifted by their log ratios (10.20).

        Parameters
        ----------
        priors : array of shape (K,)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        model = copy.deepcopy(self)
        model._shift(_validate.priors(priors, self.classes_, self.priors_))
        return model

    def summary(self, level=0.95):
        """Estimates, standard errors, z, p and confidence intervals of an unpenalised fit; log-likelihood and AIC.

        For K classes the weights are relative to `reference_class`, or to the first class.

        Parameters
        ----------
        level : float, default=0.95
            Of the confidence intervals.
        """
        check_is_fitted(self)
        if getattr(self, "_certainty", None) is None:
            raise ValueError("summary() needs a maximum-likelihood fit of at most 2000 weights: fit with C=np.inf")
        if number(level, "level", low=0, open_low=True) >= 1:
            raise ValueError(f"level must be a number between 0 and 1, got {level!r}")
        return _inference.Summary(**self._certainty, level=level)

    @property
    def quadratic_(self):
        """The symmetric matrices of quadratic discriminants (10.34)."""
        basis = getattr(self, "basis_", None)
        if not hasattr(basis, "matrices") or not hasattr(self, "coef_"):
            raise AttributeError("quadratic_ is for a model that is fitted with a Quadratic basis")
        return basis.matrices(self.coef_)

    # --- the three steps of a fit ------------------------------------------------------------------------------------------

    def _validated(self, X, y, sample_weight, offset):
        self._check_parameters()
        X = _validate.features(self, X, reset=True, y=y)
        classes, r = _validate.labels(y, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        s = _validate.class_weight(self.class_weight, classes, r, s)
        link, K = self._link(len(classes))
        offset = _validate.offset(offset, X.shape[0], K)
        return classes, Sweep(X, r, s, link, offset=offset, backend=self.backend, n_threads=self.n_threads)

    def _problem(self, sweep, classes):
        rescale = ALIASES.get(self.solver, self.solver) != "gd"
        reference = self._reference(classes)
        return Problem(sweep, intercept=self.fit_intercept, reference=reference, standardize=self.standardize, rescale=rescale)

    def _solve(self, problem, W, C, models=None):
        l1, l2, _ = self._strengths(C)
        more = {}
        objective = problem.penalized(l2)
        name = ALIASES.get(self.solver, self.solver)
        few = objective.rows if l2 and objective.few else 0
        name = choose(W.shape, objective.sparse, l1, few) if name == "auto" else name
        if l1 and name != "proximal":
            raise ValueError(f"solver {name!r} has no L1 penalty: take solver='auto' or 'proximal'")
        solve, _ = SOLVERS[name]
        if name in ("gd", "sgd"):
            more["eta"] = self.eta
        if name == "sgd":
            more["seed"] = int(check_random_state(self.random_state).randint(2**31))
        if name == "proximal":
            more["l1"] = problem.l1(l1)
        if models and name in models:
            more["model"] = models[name]
        patience = None if self.early_stopping is False else 10 if self.early_stopping is True else self.early_stopping
        trace = Trace(self.verbose, self.callback, patience)
        result = solve(objective, W, tol=self.tol, max_iter=self._limit(name), trace=trace, **more)
        if not (l1 or l2):
            result = result._replace(W=result.start)  # `summary` is of the place where rows were summed
        if len(W) > 1 and objective.singular and name != "gd":
            result.W[:, 0] -= problem.outward(result.W)[:, 0].mean()  # changes no output; scores are the same from every solver
        return result, name

    def _path(self, problem, n_classes, Cs):
        """(C, Result) for each C, the strongest penalty first, each started from the last."""
        W = np.zeros((self._link(n_classes)[1], problem.d + 1))
        models = {"newton": newton.Model(), "proximal": proximal.Model()}
        for C in np.sort(Cs):
            result, _ = self._solve(problem, W, C, models)
            W = result.start
            yield C, result

    def _store(self, problem, classes, result, name):
        V = problem.outward(result.W)
        self.classes_ = classes
        self.coef_, self.intercept_ = V[:, 1:].copy(), V[:, 0].copy()
        self._stream = None
        self.n_iter_ = np.array([result.n_iter], dtype=np.int32)
        self.solver_, self.converged_, self.gradient_norm_, self.history_ = (
            name,
            bool(result.converged),
            result.gradient_norm,
            result.history,
        )
        if self.standardize:
            self.mean_, self.scale_ = problem.mean, problem.scale

    # --- small things ------------------------------------------------------------------------------------------------------

    def _inspect(self, problem, result):
        """Warn of separation; what `summary` needs."""
        objective = problem.penalized(0.0)
        apart, H = separation.separated(objective, result.W, result.history["errors"][-1])
        if apart:
            warnings.warn(
                "the classes can be separated, wholly or along some direction: without a penalty the likelihood has no maximum, "
                "and the weights are where the gradient met tol. Take a finite C.",
                SeparationWarning,
                stacklevel=4,
            )
        if H is None:
            return None
        shape = result.W.shape
        free = ~problem.penalized(0.0).held(shape)
        V = problem.outward(result.W)
        base = 0
        if shape[0] > 1:
            base = 0 if problem.reference is None else problem.reference
            free[base] = False
            V = V - V[base]
        columns = getattr(self, "feature_names_in_", [f"x{j}" for j in range(shape[1] - 1)])
        columns = columns if not hasattr(self, "basis_") else self.basis_.get_feature_names_out()
        names = ["intercept", *map(str, columns)]
        labels = [""] if shape[0] == 1 else [f"{name}: " for name in self.classes_]
        return {
            "names": [
                label + name for label, row in zip(labels, free, strict=True) for name, on in zip(names, row, strict=True) if on
            ],
            "estimate": V[free],
            "covariance": _inference.covariance(problem, H, shape, free),
            "log_likelihood": -result.history["loss"][-1],
            "n_rows": problem.raw.total(),
        }

    def _warn(self, result, name):
        """Say so if the solver stopped short of `tol` and nobody asked it to."""
        if not (result.converged or result.stopped):
            warnings.warn(
                f"solver {name!r} stopped after {result.n_iter} iterations with the gradient at {result.gradient_norm:.1e} of "
                f"what it was at zero weights; tol is {self.tol:g}. Raise max_iter, or take C smaller.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _shift(self, priors):
        """Intercepts for these priors instead of those they stand for."""
        self.intercept_ = self.intercept_ + log_ratios(priors, self.priors_)
        self.priors_ = priors

    def _link(self, n_classes):
        """The link and the number of weight rows."""
        return (Link.LOGISTIC, 1) if n_classes == 2 else (Link.SOFTMAX, n_classes)

    def _reference(self, classes):
        """The row of the reference class; None without one, and for two classes, whose one row of weights is relative anyway."""
        if self.reference_class is None:
            return None
        found = np.flatnonzero(classes == self.reference_class)
        if len(found) != 1:
            raise ValueError(f"reference_class must be one of {classes.tolist()}, got {self.reference_class!r}")
        return int(found[0]) if len(classes) > 2 else None

    def _shares_sweeps(self):
        """Whether many such problems over the same rows can be solved together: by Newton, without L1, in one scale."""
        solver = ALIASES.get(self.solver, self.solver)
        return not self._strengths(self.C)[0] and not self.standardize and solver in ("auto", "newton")

    def _limit(self, solver):
        """The most iterations of a solver."""
        return SOLVERS[solver][1] if self.max_iter is None else self.max_iter

    def _strengths(self, C):
        """L1 and L2 penalties of the sum of losses, and the C that is in force."""
        ratio = PENALTIES.get(self.penalty, self.l1_ratio)
        C = np.inf if self.penalty is None else C
        return ratio / C, (1 - ratio) / C, C

    def _check_parameters(self):
        choice(self.penalty, "penalty", ("deprecated", "l2", "l1", "elasticnet", None))
        number(self.C, "C", low=0, open_low=True)
        if number(self.l1_ratio, "l1_ratio", low=0) > 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {self.l1_ratio!r}")
        number(self.tol, "tol", low=0)
        choice(self.solver, "solver", ("auto", *SOLVERS, *ALIASES))
        if self.max_iter is not None:
            number(self.max_iter, "max_iter", low=1, whole=True)
        if self.eta != "auto":
            number(self.eta, "eta", low=0, open_low=True)
        number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "warm_start", "standardize"):
            choice(getattr(self, name), name, (True, False))
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            number(self.early_stopping, "early_stopping", low=1, whole=True)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}")
        _config.check(self.backend, self.n_threads)

    def _start(self, problem, classes):
        """The last solution, small random weights (figure 10.6), or zeros."""
        shape = self._link(len(classes))[1], problem.d + 1
        if self.warm_start and hasattr(self, "coef_"):
            if self.coef_.shape != (shape[0], problem.d):
                raise ValueError(f"warm_start: the last fit had {self.coef_.shape} weights, this one has {(shape[0], problem.d)}")
            if not np.array_equal(self.classes_, classes):
                raise ValueError(
                    f"warm_start: the last fit had classes {self.classes_.tolist()}, this one has {classes.tolist()}"
                )
            W = problem.inward(np.column_stack([self.intercept_, self.coef_]))
        elif self.solver == "gd":
            W = check_random_state(self.random_state).uniform(-0.01, 0.01, shape)
        else:
            return np.zeros(shape)  # (K, d+1)
        if problem.reference is not None:
            W = W - W[problem.reference]
        W[:, 0] *= self.fit_intercept
        return W
