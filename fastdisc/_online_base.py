"""What online classifiers share: rows visited until nothing is left to learn, or a stream of them, once."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from . import _config, _validate
from ._base import LinearClassifier, all_or_nothing, choice, number
from ._kernels import Link
from ._rows import standardized
from ._solvers.online import solve
from ._sweep import Sweep
from ._visits import State, Visits


class OnlineLearner(LinearClassifier):
    """A linear classifier that learns from one row after the other. Subclasses say by what rule."""

    _clean = False  # whether an epoch without an update is the end

    @all_or_nothing
    def fit(self, X, y, coef_init=None, intercept_init=None, sample_weight=None):
        """Learn the weights.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
            Class labels: whole numbers or names.
        coef_init : array of the shape of `coef_`, optional
            Where to start from; zeros by default.
        intercept_init : array of the shape of `intercept_`, optional
        sample_weight : array of shape (N,), optional
            Factors on the rows' steps.
        """
        self._check_parameters()
        X = _validate.features(self, X, reset=True, y=y)
        classes, r = _validate.labels(y, X.shape[0])
        s = _validate.sample_weight(sample_weight, X.shape[0])
        s = _validate.class_weight(self.class_weight, classes, r, s)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            X, mean, scale = standardized(X, s)
        state = self._start(classes, X.shape[1], coef_init, intercept_init, mean, scale)
        seed = int(check_random_state(self.random_state).randint(2**31))
        sweep = self._sweep(X, r, s, len(classes))
        s, errors = self._hold_out(sweep, r, s, seed)
        visits = Visits(X, r, s, shuffle=self.shuffle, seed=seed, backend=self.backend, n_threads=self.n_threads)
        pocket = (lambda W: sweep(W, 0).errors) if getattr(self, "pocket", False) else None
        self._set_step(X, s)
        result = self._learn(visits, state, self._rule(len(classes)), errors, pocket)
        self._state = None if self.standardize else state
        if self.standardize:
            self.mean_, self.scale_ = mean, scale
        self._store(classes, result.W, mean, scale)
        self.n_iter_, self.converged_, self.t_ = result.n_iter, bool(result.converged), 1 + state.clock[0]
        self.history_ = result.history
        self._note(visits, result)
        if result.exhausted and (self.tol is not None or self._clean):
            warnings.warn(self._short(), ConvergenceWarning, stacklevel=3)
        return self

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Visit some more rows once, in their order.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
        classes : array of shape (K,), optional
            All labels that will ever come; needed in the first call, unless the model is fitted: then its weights are the start.
        sample_weight : array of shape (N,), optional
        """
        if self.early_stopping:
            raise ValueError("partial_fit has no early_stopping: that needs all rows at once")
        first, classes, X, r, s = self._next_rows(X, y, classes, sample_weight)
        state = getattr(self, "_state", None)
        state = self._start(classes, X.shape[1], None, None, 0.0, 1.0, warm=not first) if state is None else state.copy()
        if first or not hasattr(self, "eta_"):  # a step that was told from the first rows is kept
            self._set_step(X, s)
        rule = self._rule(len(classes))
        state.want(average=bool(self.average), l1=rule.alpha * rule.l1 > 0)
        visits = Visits(X, r, s, backend=self.backend, n_threads=self.n_threads)
        loss, updates = visits(state, rule)
        self._state = state
        self._store(classes, state.weights(rule.begin), 0.0, 1.0)
        self.n_iter_, self.t_ = 1, 1 + state.clock[0]
        self.history_ = {"loss": [loss / (visits.total() or 1.0)], "updates": [updates]}
        self.converged_ = bool(self._clean and updates == 0)
        self._note(None, None)
        return self

    def _learn(self, visits, state, rule, errors, pocket):
        return solve(
            visits,
            state,
            rule,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=self.n_iter_no_change,
            clean=self._clean,
            adaptive=getattr(self, "learning_rate", None) == "adaptive",
            errors=errors,
            pocket=pocket,
            verbose=self.verbose,
        )

    def _start(self, classes, d, coef, intercept, mean, scale, warm=None):
        """Given weights, the last ones, or zeros: as a state."""
        W = np.zeros((1 if len(classes) == 2 else len(classes), d + 1))  # (K, d+1)
        warm = self.warm_start and hasattr(self, "coef_") if warm is None else warm
        if warm and coef is None:
            coef, intercept = self.coef_, self.intercept_
            if coef.shape != (len(W), d) or not np.array_equal(classes, self.classes_):
                raise ValueError(f"warm_start: the last fit had {coef.shape} weights, this one {(len(W), d)}, or other classes")
        if coef is not None:
            coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
            if coef.shape != (len(W), d) or not np.isfinite(coef).all():
                raise ValueError(f"coef_init must have shape {(len(W), d)} and be finite, got shape {coef.shape}")
            W[:, 1:] = coef * scale
            W[:, 0] = coef @ np.broadcast_to(mean, d)
        if intercept is not None:
            intercept = np.asarray(intercept, dtype=np.float64).reshape(-1)
            if intercept.shape != (len(W),) or not np.isfinite(intercept).all():
                raise ValueError(f"intercept_init must have shape {(len(W),)} and be finite, got shape {intercept.shape}")
            W[:, 0] += intercept
        rule = self._rule(len(classes))
        return State(W, average=bool(self.average), l1=rule.alpha * rule.l1 > 0)

    def _sweep(self, X, r, s, n_classes):
        link = Link.LOGISTIC if n_classes == 2 else Link.SOFTMAX  # for the number of misclassified rows alone
        return Sweep(X, r, s, link, backend=self.backend, n_threads=self.n_threads)

    def _hold_out(self, sweep, r, s, seed):
        """Row weights without the rows that are held out for early stopping, and the share of those that weights get wrong."""
        if not self.early_stopping:
            return s, None
        try:
            split = StratifiedShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
            _, held = next(split.split(np.zeros(len(r)), r))
        except ValueError as problem:
            raise ValueError(
                f"early_stopping: validation_fraction={self.validation_fraction} leaves none: {problem}"
            ) from problem
        part = sweep.part(np.sort(held))
        s = np.array(np.broadcast_to(s, len(r)))
        s[held] = 0
        if not s.any() or not part.total():
            raise ValueError("early_stopping: no weight is left to learn from, or to check by")
        return s, lambda W: part(W, 0).errors / part.total()

    def _store(self, classes, W, mean, scale):
        self.classes_ = classes
        self.coef_ = W[:, 1:] / scale
        self.intercept_ = W[:, 0] - self.coef_ @ np.broadcast_to(mean, self.coef_.shape[1])

    def _set_step(self, X, s):
        """Where a subclass tells its step from the rows."""

    def _note(self, visits, result):
        """What a subclass keeps beside the weights."""

    def _short(self):
        return (
            f"the objective still fell by more than tol={self.tol:g} in the last of max_iter={self.max_iter} epochs: "
            "raise max_iter, or tol"
        )

    def _check_parameters(self):
        choice(self.penalty, "penalty", ("l2", "l1", "elasticnet", None))
        if np.isinf(number(self.alpha, "alpha", low=0)):
            raise ValueError("alpha must be finite, got inf")
        if number(self.l1_ratio, "l1_ratio", low=0) > 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {self.l1_ratio!r}")
        number(self.max_iter, "max_iter", low=1, whole=True)
        if self.tol is not None:
            number(self.tol, "tol", low=0)
        number(self.n_iter_no_change, "n_iter_no_change", low=1, whole=True)
        choice(self.shuffle, "shuffle", (True, False, "rows"))
        if number(self.validation_fraction, "validation_fraction", low=0, open_low=True) >= 1:
            raise ValueError(f"validation_fraction must be a number between 0 and 1, got {self.validation_fraction!r}")
        if not isinstance(self.average, (bool, np.bool_)):
            number(self.average, "average", low=0, whole=True)
        self._check_step()
        number(self.verbose, "verbose", low=0, whole=True)
        for name in ("fit_intercept", "warm_start", "early_stopping", "standardize"):
            choice(getattr(self, name), name, (True, False))
        _config.check(self.backend, self.n_threads)

    def _check_step(self):
        number(self.eta0, "eta0", low=0, open_low=True)

    def _penalty(self):
        """Strength, and the share of the L1 norm."""
        shares = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        return (0.0, 0.0) if self.penalty is None else (float(self.alpha), float(shares[self.penalty]))
