"""Objectives ask rows for what the contract of rows has, and nothing else."""

import inspect

import numpy as np
import pytest
from helpers.fits import rows_of
from scipy import sparse

from fastdisc._data.rows import Rows
from fastdisc._data.source import MemorySource
from fastdisc._kernels import Batch, PairLoss, PairRule, RowLoss
from fastdisc._objectives.coordinates import Problem
from fastdisc._objectives.pair_sums import PairSums
from fastdisc._objectives.query_sums import QuerySums
from fastdisc._objectives.row_sums import RowSums

MEMBERS = {name for name in dir(Rows) if not name.startswith("_")} | set(Rows.__annotations__)


class StrictRows:
    """Rows of which only the members of the protocol can be used."""

    def __init__(self, rows):
        object.__setattr__(self, "_rows", rows)

    def __setattr__(self, name, value):
        raise AttributeError(f"rows never change: {name!r} was set")

    def __getattr__(self, name):
        if name not in MEMBERS:
            raise AttributeError(f"{name!r} is no member of Rows")
        value = getattr(self._rows, name)
        if not inspect.ismethod(value):
            return value
        return lambda *arguments, **options: wrap(value(*arguments, **options))


def wrap(value):
    if inspect.isgenerator(value):
        return (wrap(part) for part in value)
    if isinstance(value, tuple):
        return tuple(map(wrap, value))
    return StrictRows(value) if hasattr(value, "layout") else value


def make_rows(rng, form):
    X = rng.standard_normal((300, 6))
    if form == "csr":
        return rows_of(sparse.csr_array(np.where(rng.random(X.shape) < 0.5, 0, X)))
    return rows_of(X.astype(form))


FORMS = pytest.mark.parametrize("form", ["float64", "float32", "csr"])


def use_everything(objective, W):
    """Call all members that read rows."""
    objective.value_and_gradient(W)
    objective.hessian(W)
    objective.hessian_operator(W)
    objective.sample(150, 0).value_and_gradient(W)
    objective.columns(np.array([0, 2])).value_and_gradient(W[:, [0, 1, 3]])
    objective.use_float64().value_and_gradient(W)
    objective.curvature_diagonal()
    assert objective.costs


@FORMS
@pytest.mark.parametrize("loss", [RowLoss.LOGISTIC, RowLoss.SOFTMAX])
def test_row_sums_keep_to_the_contract_of_rows(rng, form, loss):
    r = rng.integers(0, 2 if loss == RowLoss.LOGISTIC else 3, 300).astype(np.int32)
    batch = Batch(StrictRows(make_rows(rng, form)), r, rng.random(300) + 0.1)
    data = RowSums(MemorySource(batch, backend="numpy"), loss)
    for options in ({"rescale": False}, {"standardize": True}, {}):
        objective = Problem(data, **options).penalized(1.0)
        W = 0.1 * rng.standard_normal(objective.shape)
        use_everything(objective, W)
        objective.sample(150, 0, by_norm=True)
        objective.batch(np.arange(50))
        objective.curvature_bound()
        objective.max_abs_score(W)
        if form != "csr":
            objective.curvature_factors(W)


@FORMS
@pytest.mark.parametrize("kind", [QuerySums, PairSums])
def test_ranking_objectives_keep_to_the_contract_of_rows(rng, form, kind):
    X, rule = StrictRows(make_rows(rng, form)), PairRule(PairLoss.LOGISTIC)
    y, group = rng.integers(0, 3, 300).astype(float), np.sort(rng.integers(0, 9, 300))
    if kind is QuerySums:
        data = QuerySums(X, group, y, np.ones(1), rule, backend="numpy")
    else:
        u, v = np.nonzero((group[:, None] == group) & (y[:, None] > y))
        data = PairSums(X, np.column_stack([u, v]), np.ones(1), rule, backend="numpy")
    objective = Problem(data, intercept=False).penalized(1.0)
    W = 0.1 * rng.standard_normal(objective.shape)
    W[:, 0] = 0
    use_everything(objective, W)


def test_proxy_refuses_what_the_contract_does_not_have(rng):
    X = StrictRows(make_rows(rng, "float64"))
    with pytest.raises(AttributeError, match="'values' is no member of Rows"):
        _ = X.values
    with pytest.raises(AttributeError):
        X.shape = 3, 4
    assert isinstance(X.take(slice(3)), StrictRows)
