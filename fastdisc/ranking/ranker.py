"""Learning to rank: a linear score that puts the better rows of each query first (section 10.9)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import metrics
from .._base import all_or_nothing
from .._data.outputs import outputs
from .._data.rows import Rows
from .._kernels.contract import Array
from .._kernels.enums import Activation
from .._objectives.score_sums import EMPTY
from .._validation.arrays import check_offset, check_rows, check_sample_weight
from .._validation.parameters import check_number
from .._validation.queries import (
    check_pairs,
    check_queries,
    check_utilities,
    check_weights,
    pairs_from_clicks,
)
from .settings import Settings, read_settings
from .training import (
    Data,
    Solution,
    continue_online,
    make_pair_data,
    make_query_data,
    row_weights,
    solve,
    warn_not_converged,
    warn_single_query,
)


class PairwiseRanker(BaseEstimator):
    """Linear ranker that learns from pairs: the score w'x (10.47) is higher for the preferred row.

    Minimises C times the sum over ordered pairs of the loss of z_u - z_v, where u is preferred to
    v, plus half the squared norm of the weights, or an elastic-net penalty. There is no intercept:
    it would cancel in every pair. Pairs are those of rows of the same query whose grades or
    utilities differ. They are never formed, and only the logistic losses compare all pairs of
    scores. On explicit differences of pairs, scikit-learn's LogisticRegression and LinearSVC
    without intercept have the same optimum.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "margin", "hinge", "ndcg"}, default="logistic"
        "logistic" is log(1 + exp(z_v - z_u)); "squared_hinge" is [1 + z_v - z_u]_+^2, "margin" the
        same without the square, and "hinge" is (10.46), without a margin: zero weights minimise it,
        so it is learned online only. "ndcg" is the logistic loss with each pair weighted by the
        change in the query's NDCG if its rows were exchanged, in the order of the last weights.
    C : float, default=1.0
        Inverse strength of the penalty; np.inf for none. Online training, always used for "hinge",
        has no penalty and ignores C.
    l1_ratio : float, default=0.0
        The share of the L1 norm in the penalty: 0 is ridge, 1 is lasso.
    weighting : {"pairs", "queries"}, default="pairs"
        Whether all pairs have the same weight, or all queries: then the weights of the pairs of
        each query sum to 1.
    truncation : int or None, default=10
        For "ndcg": lower ranks do not count. None for all ranks.
    gains : {"exponential", "linear"}, default="exponential"
        For "ndcg": the gain of a row of grade y is 2^y - 1, or y.
    solver : {"auto", "newton", "newton-cg", "lbfgs", "proximal", "online"}, default="auto"
        As for LogisticRegression. "margin" is solved by smoothing its corner, less and less, until
        the gap that remains is certified to be below `tol`. "online" is the published update
        (10.49), pair by pair in random order, without a penalty.
    tol : float or None, default=None
        Stop when the norm of the gradient has fallen to this share of its norm at zero weights; for
        "margin", when the relative gap of the objective has. None for 1e-6, and 1e-3 for "margin".
    max_iter : int or None, default=None
        None for a default of the solver. For "online", epochs; for "ndcg", the iterations of each
        of at most 10 rounds.
    standardize : bool, default=False
        Penalise the weights of features that are divided by their standard deviations. `scale_` is
        stored; `coef_` is for the features as they are.
    eta : float or "auto", default="auto"
        Step size of "online" and `partial_fit`. "auto" takes 1 over the mean squared distance of
        the rows of a pair; for "squared_hinge", 1 over twice the largest. Both are estimated on a
        sample of pairs. The steps of "logistic" and "squared_hinge" shrink from epoch to epoch.
    pairs_per_epoch : int, default=1000000
        For "online" and `partial_fit`: all pairs if there are at most that many, else as many drawn
        at random.
    warm_start : bool, default=False
        Start from the last solution.
    random_state : int, RandomState or None, default=None
        For the order of pairs and the start of "online".
    verbose : int, default=0
        1 or more prints iterations.
    basis : basis of `fastdisc.basis`, optional
        Basis functions of the columns to learn from instead of the columns: `coef_` has a weight
        for each. They are computed inside the sweep and never stored as a matrix. `basis_` is the
        fitted basis.
    backend : {"auto", "cython", "numba", "numpy"} or None, default=None
        None for the setting of `fastdisc.set_config`.
    n_threads : int or None, default=None
        The maximum number of threads; the result does not depend on it. None for the setting of
        `fastdisc.set_config`.

    Attributes
    ----------
    coef_ : array of shape (d,)
        The weights of the features.
    n_pairs_ : int
        The number of ordered pairs in the training data.
    n_iter_ : int
        Iterations over all rows; for "ndcg", of all rounds; for "online", epochs.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of shape (d,)
        The names of the columns of X, if it had any.
    solver_ : str
        The solver that was used.
    converged_ : bool
        Whether `tol` was reached. For "ndcg", whether the order of the scores is also the one by
        which pairs were weighted: rounds may cycle, and the solution is the one with the best NDCG.
        For "online", whether no pair is left to learn from, or the weights no longer change.
    gradient_norm_ : float
        The certificate, as for LogisticRegression; for "margin" the relative gap, for "online" NaN.
    history_ : dict of lists
        "loss", "errors" and "norm" by iteration; for "ndcg" also the mean "ndcg" by round; for
        "online" instead "updates" by epoch.
    scale_ : array of shape (d,)
        The standard deviations of the features, with `standardize`.

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

    # With metadata routing, `group` is always passed on, without a request.
    __metadata_request__fit: ClassVar = {"group": True}
    __metadata_request__partial_fit: ClassVar = {"group": True}
    __metadata_request__score: ClassVar = {"group": True}

    def __init__(
        self,
        loss: str = "logistic",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        weighting: str = "pairs",
        truncation: int | None = 10,
        gains: str = "exponential",
        solver: str = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        standardize: bool = False,
        eta: float | str = "auto",
        pairs_per_epoch: int = 1_000_000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        basis: Any = None,
        backend: str | None = None,
        n_threads: int | None = None,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        offset: Any = None,
    ) -> PairwiseRanker:
        """Learn the weights from grades or utilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Grades or real utilities: within a query, the higher the better.
        group : array of shape (N,) or (Q,), optional
            The query of each row, in any order; or the sizes of queries of consecutive rows. None
            for a single query: every row is compared with every other, and there is a warning if
            the logistic losses would take very long. As many values as there are rows are always
            read as the queries of the rows, never as sizes.
        sample_weight : array of shape (N,), optional
            The weight of a pair is the product of its rows' weights.
        query_weight : array of shape (Q,), optional
            Factors on the weights of the pairs of each query, in the order of the sizes, or of the
            sorted values of `group`.
        offset : array of shape (N,), optional
            Scores of another ranker, to which those learned here are added: see `rerank`.

        Returns
        -------
        self : PairwiseRanker
            The fitted estimator.
        """
        settings = read_settings(self)
        rows = check_rows(self, X, reset=True)
        targets = check_targets(rows, y, group, sample_weight, query_weight, settings)
        data = make_query_data(rows, *targets, settings, _check_offset(offset, rows))
        if group is None:
            warn_single_query(data, settings)
        return self._fit(data, settings)

    @all_or_nothing
    def fit_pairs(
        self, X: Any, pairs: Any, weight: Any = None, offset: Any = None
    ) -> PairwiseRanker:
        """Learn the weights from a partial order, given as pairs of rows.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        pairs : array of shape (P, 2)
            (preferred, other): numbers of rows of X.
        weight : array of shape (P,), optional
            Weights of the pairs.
        offset : array of shape (N,), optional
            As in `fit`.

        Returns
        -------
        self : PairwiseRanker
            The fitted estimator.
        """
        settings = read_settings(self)
        if settings.loss == "ndcg" or settings.weighting == "queries":
            raise ValueError(
                "fit_pairs has no queries: take another loss than 'ndcg', and weighting='pairs'"
            )
        rows = check_rows(self, X, reset=True)
        pairs, s = check_pairs(pairs, weight, rows.shape[0])
        data = make_pair_data(rows, pairs, s, settings, _check_offset(offset, rows))
        return self._fit(data, settings)

    def fit_clicks(self, X: Any, shown: Any, clicked: Any, offset: Any = None) -> PairwiseRanker:
        """Learn the weights from click logs: a clicked row is preferred to the rows that were shown
        above it and not clicked.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        shown : list of arrays, or array of shape (lists, k)
            Rows of X in the order in which they were shown; -1 pads short lists.
        clicked : of the shape of `shown`
            1 for the rows that were clicked, 0 for others.
        offset : array of shape (N,), optional
            As in `fit`.

        Returns
        -------
        self : PairwiseRanker
            The fitted estimator.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return self.fit_pairs(X, pairs_from_clicks(shown, clicked, n), offset=offset)

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, group: Any = None, sample_weight: Any = None
    ) -> PairwiseRanker:
        """One pass of online updates (10.49) over pairs of further rows. All rows of a query must
        be in the same call.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Grades or utilities.
        group, sample_weight
            As in `fit`.

        Returns
        -------
        self : PairwiseRanker
            The estimator.
        """
        settings = read_settings(self)
        if settings.standardize or settings.loss == "ndcg" or settings.weighting == "queries":
            raise ValueError(
                "partial_fit does not support standardize, weighting='queries' and loss 'ndcg', "
                "which need all rows at once"
            )
        if settings.l1_ratio:
            raise ValueError("partial_fit does not support a penalty: l1_ratio must be 0")
        first = not hasattr(self, "coef_")
        if not first and (self.basis is None) == hasattr(self, "basis_"):
            raise ValueError("partial_fit: the basis is not the one of the last fit")
        rows = check_rows(self, X, reset=first)
        targets = check_targets(rows, y, group, sample_weight, None, settings)
        data = make_query_data(rows, *targets, settings, may_be_empty=True)
        start = None if first else self._last_weights(rows.shape[1], "partial_fit")
        store(self, continue_online(data, start, getattr(self, "n_iter_", 0), settings))
        return self

    def _fit(self, data: Data, settings: Settings) -> PairwiseRanker:
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            start = self._last_weights(data.shape[1] - 1, "warm_start")
        solution = solve(data, start, settings)
        store(self, solution)
        warn_not_converged(solution, settings)
        return self

    def _last_weights(self, d: int, caller: str) -> Array:
        """A copy of the last weights; ValueError if there are not d."""
        if len(self.coef_) != d:
            raise ValueError(
                f"{caller}: the last fit had {len(self.coef_)} weights, this one has {d}"
            )
        return self.coef_.copy()

    def predict(self, X: Any) -> Array:
        """Scores w'x (10.47): within a query, the higher the better.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.

        Returns
        -------
        scores : array of shape (N,)
            One score for each row.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        W = np.concatenate([[0.0], self.coef_])[None, :]  # (1, d+1)
        options: dict[str, Any] = {"backend": self.backend, "n_threads": self.n_threads}
        return outputs(rows, Activation.IDENTITY, W, **options)[:, 0]

    def rank(self, X: Any, group: Any = None) -> Array:
        """The rank of each row in its query.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        group : array of shape (N,) or (Q,), optional
            As in `fit`.

        Returns
        -------
        ranks : array of shape (N,)
            1 is the best. Rows of equal scores are ranked in the order of the rows.
        """
        return metrics.ranks(self.predict(X), group)

    def top_k(self, X: Any, k: int, group: Any = None) -> Array:
        """The best k rows, without sorting all of them.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        k : int
            The number of rows.
        group : array of shape (N,) or (Q,), optional
            As in `fit`.

        Returns
        -------
        rows : array of shape (k,) or (Q, k)
            Row numbers, the best first; with `group`, for each query, padded with -1.
        """
        return metrics.top_k(self.predict(X), k, group)

    def rerank(self, base_scores: Any, X: Any, group: Any = None, weight: float = 1.0) -> Array:
        """Ranks by another ranker's scores plus `weight` times the scores learned here.

        To learn such a correction, pass the other ranker's scores as `offset` to `fit`.

        Parameters
        ----------
        base_scores : array of shape (N,)
            Scores of the other ranker.
        X : {array, sparse matrix} of shape (N, d)
            The features.
        group : array of shape (N,) or (Q,), optional
            As in `fit`.
        weight : float, default=1.0
            The factor on the scores learned here.

        Returns
        -------
        ranks : array of shape (N,)
            As from `rank`.
        """
        scores = self.predict(X)
        base = check_utilities(base_scores, len(scores), "base_scores")
        check_number(weight, "weight", low=0)
        return metrics.ranks(base + weight * scores, group)

    def score(self, X: Any, y: Any, group: Any = None) -> float:
        """The share of pairs in the right order, averaged over the queries that have pairs.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            The features.
        y : array of shape (N,)
            Grades or utilities.
        group : array of shape (N,) or (Q,), optional
            As in `fit`.

        Returns
        -------
        accuracy : float
            From 0 to 1.
        """
        scores = self.predict(X)
        options: dict[str, Any] = {"backend": self.backend, "n_threads": self.n_threads}
        return metrics.pairwise_accuracy(y, scores, group=group, empty="skip", **options)


def check_targets(
    X: Rows, y: Any, group: Any, sample_weight: Any, query_weight: Any, settings: Settings
) -> tuple[Array, Array, Array]:
    """The query, the utility and the weight of each row, validated; weights are (N,) or (1,)."""
    n = X.shape[0]
    utilities = check_utilities(y, n)
    queries, n_queries = check_queries(group, n)
    s = check_sample_weight(sample_weight, n)
    q = check_weights(query_weight, n_queries, "query_weight", "query")
    return queries, utilities, row_weights(queries, utilities, s, q, n_queries, settings)


def _check_offset(offset: Any, X: Rows) -> Array:
    """(N,) float64, or EMPTY."""
    return EMPTY if offset is None else check_offset(offset, X.shape[0], 1)[:, 0].copy()


def store(model: PairwiseRanker, solution: Solution) -> None:
    """Store a solution as the fitted attributes of a model."""
    model.coef_, model.n_pairs_ = solution.weights, solution.n_pairs
    model.solver_, model.n_iter_ = solution.solver, solution.n_iter
    model.converged_, model.gradient_norm_ = solution.converged, solution.gradient_norm
    model.history_ = solution.history
    if solution.scale is not None:
        model.scale_ = solution.scale
    elif hasattr(model, "scale_"):  # of an earlier fit
        del model.scale_
