"""One case for each objective of the package: what its conformance tests run over."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fastdisc._data.dense import DenseRows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import NO_OFFSET, Batch, PairLoss, PairRule, RowLoss
from fastdisc._objectives.coordinates import Problem
from fastdisc._objectives.pair_sums import PairSums
from fastdisc._objectives.query_sums import QuerySums
from fastdisc._objectives.row_sums import RowSums

from .fits import rows_of
from .objectives import numpy_problem

N, D = 600, 5


class Case(NamedTuple):
    """An objective, and the strength of its L2 penalty by raw or standardised weights, (d,)."""

    objective: Any
    l2: Any

    @property
    def float64(self):
        return self.objective.use_float64()


def row_case(rng, loss=RowLoss.LOGISTIC, K=2, *, form=np.asarray, offset=False, **options):
    """Row sums; with an l2 or other options of `Problem`, penalised ones."""
    rescale, backend = options.pop("rescale", False), options.pop("backend", "cython")
    X = rng.standard_normal((N, D)) * np.arange(1, D + 1)
    X = np.where(rng.random((N, D)) < 0.4, 0, X) if form is sparse.csr_array else X
    X = np.rint(X).astype(np.int8) if form is np.int8 else form(X)
    r = rng.integers(0, K, N).astype(np.int32)
    outputs = K if loss == RowLoss.SOFTMAX else 1
    o = rng.standard_normal((N, outputs)) if offset else NO_OFFSET
    source = MemorySource(Batch(rows_of(X), r, 3 * rng.random(N) + 0.1, o), backend=backend)
    data = RowSums(source, loss)
    if not options and not rescale:
        return Case(data, np.zeros(D))
    l2 = options.pop("l2", 0.0)
    problem = Problem(data, rescale=rescale, **options)
    return Case(problem.penalized(l2), problem.penalty(l2).l2)


def rank_data(rng, rule, kind, **options):
    """Pairs within queries, or the same pairs given."""
    X, y = rng.standard_normal((N, D)), rng.integers(0, 4, N).astype(float)
    group, s = np.sort(rng.integers(0, 6, N)), rng.random(N) + 0.5
    if kind is QuerySums:
        return QuerySums(DenseRows(X), group, y, s, rule, **options)
    u, v = np.nonzero((group[:, None] == group) & (y[:, None] > y))
    return PairSums(DenseRows(X), np.column_stack([u, v]), s[u] * s[v], rule, **options)


def rank_case(rng, loss, kind, l2=0.0):
    data = rank_data(rng, PairRule(loss, 0.5, 2.0), kind)
    if not l2:
        return Case(data, np.zeros(D))
    problem = Problem(data, intercept=False)
    return Case(problem.penalized(l2), problem.penalty(l2).l2)


SOFTMAX, CSR = RowLoss.SOFTMAX, sparse.csr_array
CASES = {
    "logistic": row_case,
    "logistic reference backend": lambda rng: row_case(rng, backend="numpy"),
    "softmax": lambda rng: row_case(rng, SOFTMAX, 3),
    "softmax offset": lambda rng: row_case(rng, SOFTMAX, 3, offset=True),
    "sigmoid squared": lambda rng: row_case(rng, RowLoss.SIGMOID_SQUARED),
    "squared": lambda rng: row_case(rng, RowLoss.SQUARED),
    "logistic int8": lambda rng: row_case(rng, form=np.int8),
    "softmax float32": lambda rng: row_case(rng, SOFTMAX, 3, form=np.float32),
    "logistic csr": lambda rng: row_case(rng, form=CSR),
    "softmax csr": lambda rng: row_case(rng, SOFTMAX, 3, form=CSR, offset=True),
    "penalised": lambda rng: row_case(rng, l2=2.0),
    "penalised softmax": lambda rng: row_case(rng, SOFTMAX, 3, l2=2.0),
    "penalised csr": lambda rng: row_case(rng, SOFTMAX, 3, form=CSR, l2=2.0),
    "no intercept": lambda rng: row_case(rng, l2=2.0, intercept=False),
    "reference class": lambda rng: row_case(rng, SOFTMAX, 3, l2=2.0, reference=1),
    "standardised": lambda rng: row_case(rng, l2=2.0, rescale=True),
    "standardised softmax": lambda rng: row_case(rng, SOFTMAX, 3, l2=2.0, rescale=True),
    "standardised offset": lambda rng: row_case(rng, l2=2.0, rescale=True, offset=True),
    "standardised csr": lambda rng: row_case(rng, form=CSR, l2=2.0, standardize=True),
    "queries logistic": lambda rng: rank_case(rng, PairLoss.LOGISTIC, QuerySums),
    "queries squared hinge": lambda rng: rank_case(rng, PairLoss.SQUARED_HINGE, QuerySums, 2.0),
    "queries huber": lambda rng: rank_case(rng, PairLoss.HUBER, QuerySums),
    "pairs logistic": lambda rng: rank_case(rng, PairLoss.LOGISTIC, PairSums, 2.0),
    "pairs huber": lambda rng: rank_case(rng, PairLoss.HUBER, PairSums),
    "numpy": lambda rng: Case(numpy_problem(rng, N, D, 3, l2=2.0), np.full(D, 2.0)),
    "numpy no intercept": lambda rng: Case(
        numpy_problem(rng, N, D, 2, l2=2.0, intercept=False), np.full(D, 2.0)
    ),
}
# Hessians are second derivatives everywhere: not those of squared errors of a sigmoid, which are
# Gauss and Newton's, nor those of losses with corners.
SMOOTH = [name for name in CASES if not any(w in name for w in ("sigmoid", "hinge", "huber"))]
