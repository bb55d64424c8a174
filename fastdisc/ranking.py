"""Learning to rank: a linear score that puts the better rows of each query first (section 10.9)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _config, _validate, _validate_rank, metrics
from ._base import all_or_nothing, choice, number
from ._kernels import Link, PairLoss, PairRule
from ._problem import Problem
from ._rank_online import Stream
from ._rank_order import ideal, pair_totals
from ._rank_rounds import climb
from ._rank_sweep import NONE, PairSweep, RankSweep
from ._solvers import Trace, choose, lbfgs, newton, newton_cg, proximal, smoothed
from ._sweep import Standardized, outputs

SOLVERS = {
    "newton": (newton.solve, 200),
    "newton-cg": (newton_cg.solve, 200),
    "lbfgs": (lbfgs.solve, 2000),
    "proximal": (proximal.solve, 1000),
}
FORGOTTEN = 10_000_000_000  # pairs of one query, 13 s a sweep at 1.3 ns each: `group` may have been forgotten
SMOOTHED = {"newton": smoothed.newton, "newton-cg": smoothed.newton_cg}  # for "margin"
RULES = {
    "hinge": PairRule(PairLoss.HINGE, 0.0),
    "margin": PairRule(PairLoss.HINGE, 1.0),
    "squared_hinge": PairRule(PairLoss.SQUARED_HINGE, 1.0),
    "logistic": PairRule(PairLoss.LOGISTIC),
    "ndcg": PairRule(PairLoss.LOGISTIC),
}


class PairwiseRanker(BaseEstimator):
    """Linear ranker that learns from pairs: a score w'x (10.47), higher for the row that is preferred.

    Minimises C times the sum over ordered pairs of the loss of z_u - z_v, u being preferred to v, plus half the squared norm of
    the weights, or an elastic net. There is no intercept: it would cancel in every pair. Pairs are those of rows of the same
    query whose grades or utilities differ; they are never formed, but for the logistic losses, which look at all pairs of scores.
    On explicit differences of pairs, scikit-learn's LogisticRegression and LinearSVC without intercept have the same optimum.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "margin", "hinge", "ndcg"}, default="logistic"
        "logistic" is log(1 + exp(z_v - z_u)); "squared_hinge" is [1 + z_v - z_u]_+^2, "margin" the same without the square, and
        "hinge" is (10.46), without a margin: zero weights minimise that, so it is learned online only. "ndcg" is the logistic
        loss with pairs weighted by what exchanging them would change in the query's NDCG, in the order of the last weights.
    C : float, default=1.0
        Inverse strength of the penalty; np.inf for none. What is learned online ("hinge" always is) has no penalty, and no C.
    l1_ratio : float, default=0.0
        The share of the L1 norm in the penalty.
    weighting : {"pairs", "queries"}, default="pairs"
        Whether all pairs weigh the same, or all queries: then the pairs of each have a total weight of 1.
    truncation : int or None, default=10
        Of "ndcg": ranks beyond count nothing.
    gains : {"exponential", "linear"}, default="exponential"
        Of "ndcg": a row of grade y brings 2^y - 1, or y.
    solver : {"auto", "newton", "newton-cg", "lbfgs", "proximal", "online"}, default="auto"
        As for LogisticRegression. "margin" is solved by rounding its corner, less and less, until the gap that this leaves is
        certified to be below `tol`. "online" is the published update (10.49), pair by pair in random order, without a penalty.
    tol : float or None, default=None
        Stop when the gradient has fallen to this share of what it is at zero weights; for "margin" the objective's relative
        gap. None for 1e-6, and 1e-3 for "margin".
    max_iter : int or None, default=None
        None for a number that suits the solver. For "online", epochs; for "ndcg", of each of at most 10 rounds.
    standardize : bool, default=False
        Penalise the weights of features in units of their spread; `coef_` is for the features as they are.
    eta : float or "auto", default="auto"
        Step of "online" and `partial_fit`; "auto" takes 1 over the mean squared distance of a pair's rows, for "squared_hinge" 1
        over twice the largest, of some pairs. The steps of "logistic" and "squared_hinge" shrink from epoch to epoch.
    pairs_per_epoch : int, default=1000000
        Of "online" and `partial_fit`: all pairs where there are no more, else so many drawn at random.
    warm_start : bool, default=False
        Start from the last solution.
    random_state : int, RandomState or None, default=None
        For the order of pairs and the first weights of "online".
    verbose : int, default=0
    basis : basis of `fastdisc.basis`, optional
        Functions of the columns to learn from instead of the columns, expanded inside the sweep and never held as a matrix.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The most threads to use; the result does not depend on it.

    Attributes
    ----------
    coef_ : array of shape (d,)
    n_pairs_ : int
        Ordered pairs that were learned from.
    n_iter_ : int
        For "ndcg", of all rounds.
    solver_ : str
    converged_ : bool
        For "ndcg", whether the order of the scores is the one by which pairs were weighted: rounds may go in circles, and the
        solution is the one with the best NDCG. For "online", whether no pair is left to learn from, or the weights stand still.
    gradient_norm_ : float
        The certificate, as that of LogisticRegression; for "margin" the relative gap.
    history_ : dict of lists
        "loss", "errors" and "norm" by iteration; for "ndcg" also the mean "ndcg" by round; for "online" "updates" by epoch.
    scale_ : array of shape (d,)
        With `standardize`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import PairwiseRanker
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [5.0, 5.0], [4.0, 9.0]])
    >>> grades, query = [0, 1, 2, 0, 1], [1, 1, 1, 2, 2]
    >>> ranker = PairwiseRanker().fit(X, grades, group=query)
    >>> ranker.rank(X, group=query)
    array([3, 2, 1, 2, 1])
    >>> ranker.score(X, grades, group=query)
    1.0
    """

    # where metadata are routed, nobody has to ask
    __metadata_request__fit: ClassVar = {"group": True}
    __metadata_request__partial_fit: ClassVar = {"group": True}
    __metadata_request__score: ClassVar = {"group": True}

    def __init__(
        self,
        loss="logistic",
        *,
        C=1.0,
        l1_ratio=0.0,
        weighting="pairs",
        truncation=10,
        gains="exponential",
        solver="auto",
        tol=None,
        max_iter=None,
        standardize=False,
        eta="auto",
        pairs_per_epoch=1_000_000,
        warm_start=False,
        random_state=None,
        verbose=0,
        basis=None,
        backend=None,
        n_threads=None,
    ):
        self.loss = loss
        self.C = C
        self.l1_ratio = l1_ratio
        self.weighting = weighting
        self.truncation = truncation
        self.gains = gains
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.eta = eta
        self.pairs_per_epoch = pairs_per_epoch
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.basis = basis
        self.backend = backend
        self.n_threads = n_threads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        return tags

    # --- learning ----------------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, group=None, sample_weight=None, query_weight=None, offset=None):
        """Learn the weights from grades or utilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y : array of shape (N,)
            Grades or real utilities: within a query, the higher the better.
        group : array of shape (N,) or (Q,), optional
            The query of each row, in any order; or the sizes of queries whose rows stand together. None: all rows are one query,
            each compared with every other; where that is more work than anybody would want of the logistic losses, a warning
            says so. As many values as there are rows are names of queries, always: queries of one row each, given as sizes,
            would be misread.
        sample_weight : array of shape (N,), optional
            A pair weighs the product of its rows' weights.
        query_weight : array of shape (Q,), optional
            Factors on the pairs of the queries, in the order of their sizes, or of their sorted names.
        offset : array of shape (N,), optional
            Scores of another ranker, to which the ones learned here are added: see `rerank`.
        """
        self._check_parameters()
        X = _validate.features(self, X, reset=True)
        y, s, codes = self._rows(X, y, group, sample_weight, query_weight)
        gain = _validate_rank.gains(y, self.gains) if self.loss == "ndcg" else NONE
        options = {"offset": self._offset(offset, X), "backend": self.backend, "n_threads": self.n_threads}
        sweep = RankSweep(X, codes, y, s, RULES[self.loss], **options)
        if sweep.total() == 0:
            raise ValueError(
                f"there is no order to learn: no two rows of a query that have a weight differ in y (n_samples={len(y)})"
            )
        if group is None and self.solver != "online" and sweep.rule.loss == PairLoss.LOGISTIC and sweep.pairs > FORGOTTEN:
            warnings.warn(
                f"without group all {len(y):,} rows are one query: each sweep looks at {sweep.pairs:,} pairs. Pass group, or "
                "take loss='squared_hinge' or 'margin', which do not look at each pair.",
                UserWarning,
                stacklevel=3,
            )
        if len(gain):
            k = _validate_rank.depth(self.truncation, "truncation")
            sweep = sweep.changed(gain=ideal(gain, s, codes, sweep.queries.starts, k))
        return self._learn(sweep)

    @all_or_nothing
    def fit_pairs(self, X, pairs, weight=None, offset=None):
        """Learn the weights from a partial order, given as pairs of rows.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        pairs : array of shape (P, 2)
            (preferred, other): numbers of rows of X.
        weight : array of shape (P,), optional
        offset : array of shape (N,), optional
            As in `fit`.
        """
        self._check_parameters()
        if self.loss == "ndcg" or self.weighting == "queries":
            raise ValueError("fit_pairs knows no queries: take another loss than 'ndcg', and weighting='pairs'")
        X = _validate.features(self, X, reset=True)
        pairs, s = _validate_rank.pairs(pairs, weight, X.shape[0])
        options = {"offset": self._offset(offset, X), "backend": self.backend, "n_threads": self.n_threads}
        return self._learn(PairSweep(X, pairs, s, RULES[self.loss], **options))

    def fit_clicks(self, X, shown, clicked, offset=None):
        """Learn the weights from click logs: a clicked row is preferred to those shown above it that were skipped.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        shown : list of arrays, or array of shape (lists, k)
            Rows of X in the order in which they were shown; -1 fills up short lists.
        clicked : of the shape of `shown`
            1 for the rows that were clicked.
        offset : array of shape (N,), optional
            As in `fit`.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return self.fit_pairs(X, _validate_rank.skipped(shown, clicked, n), offset=offset)

    @all_or_nothing
    def partial_fit(self, X, y, group=None, sample_weight=None):
        """One pass of online updates (10.49) over pairs of some more rows; queries must not be torn apart.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y, group, sample_weight
            As in `fit`.
        """
        self._check_parameters()
        if self.standardize or self.loss == "ndcg" or self.weighting == "queries":
            raise ValueError("partial_fit has no standardize, no weighting by queries and no 'ndcg': those need all rows at once")
        if self.l1_ratio:
            raise ValueError("partial_fit has no penalty: l1_ratio must be 0")
        first = not hasattr(self, "coef_")
        if not first and (self.basis is None) == hasattr(self, "basis_"):
            raise ValueError("partial_fit: the basis is not the one of the last fit")
        X = _validate.features(self, X, reset=first)
        y, s, codes = self._rows(X, y, group, sample_weight, None)
        sweep = RankSweep(X, codes, y, s, RULES[self.loss], backend=self.backend, n_threads=self.n_threads)
        stream = self._stream(sweep, seed=getattr(self, "n_iter_", 0))
        w = stream.start() if first else self._last(X.shape[1], "partial_fit")
        updates = stream.epoch(w) if sweep.pairs else 0
        self.coef_, self.n_pairs_, self.n_iter_ = w, stream.count, getattr(self, "n_iter_", 0) + 1
        self.solver_, self.converged_, self.gradient_norm_ = "online", stream.settled(w, updates), np.nan
        self.history_ = {"updates": [updates]}
        self._store_scale(None)
        return self

    def _rows(self, X, y, group, sample_weight, query_weight):
        """Utilities, weights and queries of the rows."""
        n = X.shape[0]
        y = _validate_rank.utilities(y, n)
        codes, count = _validate_rank.queries(group, n)
        s = _validate.sample_weight(sample_weight, n)
        q = _validate_rank.weights(query_weight, count, "query_weight", "query")
        if self.weighting == "queries":
            totals = pair_totals(codes, y, s, count)
            q = q * np.divide(1.0, totals, out=np.zeros(count), where=totals > 0)
        return y, s * np.sqrt(q[codes] if len(q) > 1 else q), codes

    def _offset(self, offset, X):
        return _validate.offset(offset, X.shape[0], 1)[:, 0].copy() if offset is not None else NONE

    def _learn(self, sweep):
        """Solve and store."""
        if self.solver == "online" or self.loss == "hinge":
            return self._learn_online(sweep)
        problem = Problem(sweep, intercept=False, standardize=self.standardize)
        W = np.zeros((1, problem.d + 1))
        if self.warm_start and hasattr(self, "coef_"):
            W = problem.inward(np.concatenate([[0.0], self._last(problem.d, "warm_start")])[None, :])
        name, tol, result = self._solve(problem, W)
        self.coef_, self.solver_ = problem.outward(result.W)[0, 1:].copy(), name
        self.n_pairs_, self.n_iter_ = sweep.count(), max(1, int(result.n_iter))
        self.converged_, self.gradient_norm_, self.history_ = bool(result.converged), float(result.gradient_norm), result.history
        self._store_scale(problem.scale if self.standardize else None)
        if not result.converged and not (self.loss == "ndcg" and result.gradient_norm <= tol):
            what = "gap" if self.loss == "margin" else "gradient"
            self._warn(
                f"solver {name!r} stopped after {self.n_iter_} iterations with the {what} at {self.gradient_norm_:.1e}; tol is "
                f"{tol:g}. Raise max_iter, or take C smaller, or another solver."
            )
        return self

    def _last(self, d, who):
        """The last weights, copied, if there are as many as are needed now."""
        if len(self.coef_) != d:
            raise ValueError(f"{who}: the last fit had {len(self.coef_)} weights, this one has {d}")
        return self.coef_.copy()

    def _store_scale(self, scale):
        if scale is not None:
            self.scale_ = scale
        elif hasattr(self, "scale_"):  # of an earlier fit
            del self.scale_

    def _warn(self, text):
        warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def _solve(self, problem, W):
        """The solver's name, its tolerance, and what it found."""
        sweep, trace = problem.raw, Trace(self.verbose)
        l1, l2 = self.l1_ratio / self.C, (1 - self.l1_ratio) / self.C
        name = choose(W.shape, sweep.sparse, l1) if self.solver == "auto" else self.solver
        if l1 and name != "proximal":
            raise ValueError(f"solver {name!r} has no L1 penalty: take solver='auto' or 'proximal'")
        if self.loss == "margin" and name == "newton" and not sweep.exact():
            name = "newton-cg"
        solve, limit = SOLVERS[name]
        solve = SMOOTHED.get(name, solve) if self.loss == "margin" else solve
        limit = self.max_iter if self.max_iter is not None else max(limit, 1000) if self.loss == "margin" else limit
        tol = self.tol if self.tol is not None else 1e-3 if self.loss == "margin" else 1e-6
        inner = partial(solve, l1=problem.l1(l1)) if name == "proximal" else solve
        if self.loss == "margin":
            result = self._solve_margin(problem, W, l2, l1, inner, tol, limit, trace)
        elif self.loss == "ndcg":
            solve = lambda sweep, W: inner(  # noqa: E731
                problem.penalized(l2, _like(problem, sweep)), W, tol=tol, max_iter=limit, trace=trace
            )
            result = climb(problem, W, solve, truncation=self.truncation, gains=self.gains, trace=trace)
        else:
            result = inner(problem.penalized(l2), W, tol=tol, max_iter=limit, trace=trace)
        return name, tol, result

    def _solve_margin(self, problem, W, l2, l1, inner, tol, limit, trace):
        """The hinge with a margin, by way of smooth losses."""

        def objectives(width):
            sweep = problem.raw.changed(rule=PairRule(PairLoss.HUBER, 1.0, width))
            return problem.penalized(l2, _like(problem, sweep))

        exact = lambda W: problem.penalized(l2)(W, 0).loss  # noqa: E731
        certified = not l1 and np.isfinite(self.C)
        options = {"certified": certified, "spare": None if l1 else lbfgs.solve}
        return smoothed.solve(objectives, exact, W, inner=inner, tol=tol, max_iter=limit, trace=trace, **options)

    def _stream(self, sweep, seed):
        rng = np.random.default_rng(int(check_random_state(self.random_state).randint(2**31)) + seed)
        return Stream(sweep, eta=self.eta, most=self.pairs_per_epoch, rng=rng)

    def _learn_online(self, sweep):
        """Epochs until no pair is wrong, or until their number does not fall any more."""
        if self.l1_ratio:
            raise ValueError("solver 'online' has no penalty: l1_ratio must be 0")
        if self.solver not in ("auto", "online"):
            raise ValueError(
                f"loss 'hinge' is least at zero weights: there is nothing for solver {self.solver!r} to find. Take "
                "solver='online', or loss='margin'"
            )
        if self.standardize or self.loss == "ndcg" or len(sweep.offset):
            raise ValueError("solver 'online' has no standardize, no offset and no 'ndcg'")
        stream = self._stream(sweep, seed=0)
        again = self.warm_start and hasattr(self, "coef_")
        w = self._last(sweep.X.shape[1], "warm_start") if again else stream.start()
        w, history, converged = stream.learn(w, 100 if self.max_iter is None else self.max_iter, self.verbose)
        self.coef_, self.solver_, self.converged_, self.gradient_norm_ = w, "online", converged, np.nan
        self.n_pairs_, self.n_iter_, self.history_ = stream.count, len(history["updates"]), history
        self._store_scale(None)
        if not converged:
            self._warn(
                f"solver 'online' stopped after {self.n_iter_} epochs, the last with {history['updates'][-1]} updates: no "
                "weights may put all pairs right. Raise max_iter, or take another solver."
            )
        return self

    # --- using -------------------------------------------------------------------------------------------------------------

    def predict(self, X):
        """Scores w'x (10.47), (N,): within a query, the higher the better.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        """
        check_is_fitted(self)
        X = _validate.features(self, X, reset=False)
        W = np.concatenate([[0.0], self.coef_])[None, :]
        return outputs(X, Link.IDENTITY, W, backend=self.backend, n_threads=self.n_threads)[:, 0]

    def rank(self, X, group=None):
        """The rank of each row in its query, (N,): 1 is the best; rows of equal scores in their order.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        group : as in `fit`
        """
        return metrics.ranks(self.predict(X), group)

    def top_k(self, X, k, group=None):
        """The best k rows, best first, without sorting all of them: (k,), or for each query (Q, k), filled up with -1.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        k : int
        group : as in `fit`
        """
        return metrics.top_k(self.predict(X), k, group)

    def rerank(self, base_scores, X, group=None, weight=1.0):
        """Ranks, as in `rank`, by another ranker's scores plus `weight` times the ones learned here.

        To learn such a correction, pass the other ranker's scores as `offset` to `fit`.

        Parameters
        ----------
        base_scores : array of shape (N,)
        X : {array, sparse matrix} of shape (N, d)
        group : as in `fit`
        weight : float, default=1.0
        """
        scores = self.predict(X)
        base = _validate_rank.utilities(base_scores, len(scores), "base_scores")
        number(weight, "weight", low=0)
        return metrics.ranks(base + weight * scores, group)

    def score(self, X, y, group=None):
        """The share of pairs in the right order, averaged over queries; those without pairs are left out.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
        y, group : as in `fit`
        """
        return metrics.pairwise_accuracy(
            y, self.predict(X), group=group, empty="skip", backend=self.backend, n_threads=self.n_threads
        )

    def _check_parameters(self):
        choice(self.loss, "loss", tuple(RULES))
        number(self.C, "C", low=0, open_low=True)
        if number(self.l1_ratio, "l1_ratio", low=0) > 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {self.l1_ratio!r}")
        choice(self.weighting, "weighting", ("pairs", "queries"))
        _validate_rank.depth(self.truncation, "truncation")
        choice(self.gains, "gains", ("exponential", "linear"))
        choice(self.solver, "solver", ("auto", *SOLVERS, "online"))
        if self.tol is not None:
            number(self.tol, "tol", low=0)
        if self.max_iter is not None:
            number(self.max_iter, "max_iter", low=1, whole=True)
        if not (isinstance(self.eta, str) and self.eta == "auto"):
            number(self.eta, "eta", low=0, open_low=True)
        number(self.pairs_per_epoch, "pairs_per_epoch", low=1, whole=True)
        number(self.verbose, "verbose", low=0, whole=True)
        for name in ("standardize", "warm_start"):
            choice(getattr(self, name), name, (True, False))
        _config.check(self.backend, self.n_threads)


def _like(problem, sweep):
    """Another sweep in the coordinates of a problem."""
    return sweep if problem.sweep is problem.raw else Standardized(sweep, problem.mean, problem.scale)
