"""Logistic discrimination with the strength of its penalty chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from .._base import LinearClassifier, Posteriors, all_or_nothing
from .._data.outputs import outputs
from .._data.source import MemorySource
from .._kernels.contract import Array, Batch
from .._kernels.enums import Activation, RowLoss
from .._objectives.row_sums import RowSums
from .._objectives.shared_rows import sweep_many
from .._validation.arrays import check_Cs, check_sample_weight, forbid_supervised_basis
from .._validation.parameters import check_choice, check_number
from .._validation.splits import split_rows
from .cv_paths import fold_paths
from .logistic import LogisticRegression, check_training_data
from .settings import read_settings
from .training import make_problem, solve, warn_not_converged, with_tol

# Parameters that are passed on.
SHARED = (
    "fit_intercept",
    "class_weight",
    "tol",
    "max_iter",
    "solver",
    "standardize",
    "random_state",
    "verbose",
    "basis",
    "backend",
    "n_threads",
)
MAX_SCORE_CELLS = 1 << 20  # numbers that are held at a time when held-out rows are scored


class LogisticRegressionCV(Posteriors, LinearClassifier):
    """LogisticRegression with C, and l1_ratio, chosen by cross-validation.

    The solutions for all C form a path, the strongest penalty first. No fold copies X: held-out
    rows have weight 0. With two classes, folds share their passes: each row is read once for all
    folds.

    Parameters
    ----------
    Cs : int or array, default=10
        Values of C to try, or how many between 1e-4 and 1e4.
    l1_ratios : array, default=(0.0,)
        Values of l1_ratio to try.
    cv : int, splitter or None, default=None
        As in scikit-learn; None for 5 stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn; None for accuracy, which is counted for all C in one pass.
    refit : bool, default=True
        Fit all rows with the best values; otherwise the weights of the folds at these values are
        averaged (scikit-learn averages those at the best values of each fold).
    fit_intercept, class_weight, tol, max_iter, solver, standardize, random_state, verbose, basis
        As in LogisticRegression.
    backend, n_threads
        As in LogisticRegression.
    dual, intercept_scaling, n_jobs, use_legacy_attributes : ignored
        Accepted for compatibility with scikit-learn.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The best values.
    Cs_, l1_ratios_ : arrays
        All values that were tried.
    scores_ : array of shape (n_folds, n_l1_ratios, n_Cs)
        Scores on the held-out rows.
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_Cs, n_outputs, d+1)
        The weights, with the intercept last.
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in LogisticRegression.
    n_iter_ : array of shape (n_folds, n_l1_ratios, n_Cs)
        Iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fastdisc import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 1.0], standardize=True).fit(X, y)
    >>> model.C_
    1.0
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        scoring: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        class_weight: Any = None,
        standardize: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        refit: bool = True,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
        n_jobs: int | None = None,
        intercept_scaling: float = 1.0,
        use_legacy_attributes: bool = False,
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose
        self.refit = refit
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads
        self.n_jobs = n_jobs
        self.intercept_scaling = intercept_scaling
        self.use_legacy_attributes = use_legacy_attributes

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegressionCV:
        """Choose C and l1_ratio, and learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Class labels.
        sample_weight : array of shape (N,), optional
            Weights of the rows; also of held-out rows if `scoring` is None.

        Returns
        -------
        self : LogisticRegressionCV
            The fitted estimator.
        """
        # 1. validate
        check_choice(self.refit, "refit", (True, False))
        Cs, ratios = self._check_Cs(), self._check_ratios()
        forbid_supervised_basis(self.basis)
        model = self._model(1.0, 0.0)
        classes, data = check_training_data(model, read_settings(model), X, y, sample_weight)
        weight = check_sample_weight(sample_weight, data.n_rows)  # without those of classes
        folds = split_rows(self.cv, y, data.source.batch.r, len(classes))
        training = _training_rows(folds, classes, data)
        model.classes_ = classes
        held_out = self._held_out(model, folds, data, weight, X, y)
        # 2. solve
        V, n_iter = self._paths(data, classes, training, Cs, ratios)
        pairs = zip(held_out, V, strict=True)
        scores = np.array([[held.scores(path) for path in fold] for held, fold in pairs])
        if not np.isfinite(scores).all():
            raise ValueError(
                f"scoring={self.scoring!r} gave a score that is not finite: no C can be chosen"
            )
        i, j = np.unravel_index(scores.mean(axis=0).argmax(), scores.shape[1:])
        C, ratio, W = float(Cs[j]), float(ratios[i]), V[:, i, j].mean(axis=0)
        if self.refit:
            W = self._refit(data, classes, C, ratio, W)
        # 3. store
        self.C_, self.l1_ratio_, self.Cs_, self.l1_ratios_ = C, ratio, Cs, ratios
        self.scores_, self.n_iter_ = scores, n_iter.astype(np.int32)
        self.coefs_paths_ = np.roll(V, -1, axis=-1)
        self._store(model, W)
        return self

    def _held_out(
        self,
        model: LogisticRegression,
        folds: list[tuple[Array, Array]],
        data: RowSums,
        weight: Array,
        X: Any,
        y: Any,
    ) -> list[HeldOut]:
        """The held-out rows of each fold, with the score that they are judged by."""
        if self.scoring is None:
            return [Accuracy(data, test, weight) for _, test in folds]
        scorer, tests = get_scorer(self.scoring), [test for _, test in folds]
        return [
            Scores(scorer, model, _safe_indexing(X, test), _safe_indexing(y, test))
            for test in tests
        ]

    def _paths(
        self, data: RowSums, classes: Array, training: list[Array], Cs: Array, ratios: Array
    ) -> tuple[Array, Array]:
        """Weights (n_folds, n_l1_ratios, n_Cs, K, d+1), and iterations."""
        found = []
        for ratio in ratios:
            settings = read_settings(self._model(1.0, ratio))
            found.append(fold_paths(settings, data, classes, training, Cs))
        weights, n_iter = zip(*found, strict=True)
        return np.stack(weights, axis=1), np.stack(n_iter, axis=1)

    def _store(self, model: LogisticRegression, W: Array) -> None:
        self.classes_, self.coef_, self.intercept_ = model.classes_, W[:, 1:].copy(), W[:, 0].copy()
        for name in ("n_features_in_", "feature_names_in_", "basis_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _check_Cs(self) -> Array:
        if np.ndim(self.Cs) == 0:
            return np.logspace(-4, 4, check_number(self.Cs, "Cs", low=1, whole=True))
        return check_Cs(self.Cs)

    def _check_ratios(self) -> Array:
        ratios = np.atleast_1d(self.l1_ratios)
        if not len(ratios):
            raise ValueError("l1_ratios has no value to try")
        return np.array([self._model(1.0, ratio).l1_ratio for ratio in ratios])

    def _model(self, C: float, ratio: float) -> LogisticRegression:
        """A LogisticRegression with the parameters of this estimator, checked."""
        shared = {name: getattr(self, name) for name in SHARED}
        model = LogisticRegression(C=C, l1_ratio=ratio, **shared)
        read_settings(model)
        return model

    def _refit(self, data: RowSums, classes: Array, C: float, ratio: float, W: Array) -> Array:
        """The weights of all rows, from the mean of the folds' weights."""
        # The mean of the folds may meet a loose tol as it is.
        settings = with_tol(read_settings(self._model(C, ratio)), self.tol / 10)
        problem = make_problem(data, classes, settings)
        result, solver = solve(problem, problem.to_solver(W), C, settings)
        warn_not_converged(result, solver, settings.tol, stacklevel=5)
        return problem.to_raw(result.W)


def _training_rows(folds: list[tuple[Array, Array]], classes: Array, data: RowSums) -> list[Array]:
    """The training rows of each fold; ValueError if one has no rows of some class."""
    if not folds:
        raise ValueError("cv has no fold")
    _, r, s, _ = data.source.batch
    for f, (train, _) in enumerate(folds):
        weight = s[train] if len(s) > 1 else None
        missing = np.bincount(r[train], weight, len(classes)) == 0
        if missing.any():
            name = classes.tolist()[missing.argmax()]
            raise ValueError(
                f"fold {f} has no training rows of class {name!r}: take fewer folds, or stratified "
                "ones"
            )
    return [train for train, _ in folds]


class HeldOut(Protocol):
    """The held-out rows of one fold."""

    def scores(self, V: Array) -> Array | list[float]:
        """The score of each of the weights (n, K, d+1)."""
        ...


class Scores:
    """A scorer on the held-out rows of one fold."""

    def __init__(self, scorer: Any, model: LogisticRegression, X: Any, y: Any):
        self.scorer, self.model, self.X, self.y = scorer, model, X, y

    def scores(self, V: Array) -> list[float]:
        """The score of each of the weights (n, K, d+1)."""
        found = []
        for weights in V:
            self.model.coef_, self.model.intercept_ = weights[:, 1:], weights[:, 0]
            found.append(float(self.scorer(self.model, self.X, self.y)))
        return found


class Accuracy:
    """The share of the held-out weight of one fold that is classified correctly."""

    def __init__(self, data: RowSums, test: Array, weight: Array):
        equal = len(weight) == 1
        self.source, self.rows = data.source, test if equal else test[weight[test] > 0]
        self.weight = weight if equal else weight[self.rows]
        if not len(self.rows):
            raise ValueError(
                "cv: a fold holds out no row with a weight: its score would be undefined"
            )

    def scores(self, V: Array) -> Array:
        """The accuracy of each of the weights (n, K, d+1): all in one pass, by slices of rows."""
        n, K, _ = V.shape
        X, wrong = self.source.X, np.zeros(n)
        width = X.n_values / X.shape[0]
        step = max(1024, int(MAX_SCORE_CELLS / (width + n * K)))  # each slice copies all weights
        for begin in range(0, len(self.rows), step):
            rows = self.rows[begin : begin + step]
            s = self.weight
            s = s if len(s) == 1 else s[begin : begin + step]
            part = self.source.like(Batch(X.take(_as_slice(rows)), self.source.batch.r[rows], s))
            wrong += self._errors(part, V)
        total = np.broadcast_to(self.weight, len(self.rows)).sum()
        return (total - wrong) / total

    def _errors(self, part: MemorySource, V: Array) -> Array:
        """The misclassified weight."""
        n, K, D = V.shape
        if K == 1:  # n problems on the same rows, counted without storing their scores
            signs = np.array([[-1] * n, [1] * n], np.int8)
            return sweep_many(RowSums(part, RowLoss.LOGISTIC), signs, V.reshape(n, D), 0).errors
        weights, backend = V.reshape(n * K, D), part.backend
        identity = Activation.IDENTITY
        Z = outputs(part.X, identity, weights, backend=backend, n_threads=part.n_threads)
        wrong = Z.reshape(part.n_rows, n, K).argmax(axis=2) != part.batch.r[:, None]
        s = part.batch.s
        return s @ wrong if len(s) > 1 else s[0] * np.count_nonzero(wrong, axis=0)


def _as_slice(rows: Array) -> Array | slice:
    """Consecutive rows as a slice, which needs no copy."""
    if (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
