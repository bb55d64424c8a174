"""Codes and losses: equal in all backends, unknown ones raise, a new one needs registration."""

import math
from enum import IntEnum

import numpy as np
import pytest
from helpers import oracles
from helpers.assertions import assert_all_close
from helpers.extensions import complementary_log_log
from helpers.problems import make_features, make_queries

from fastdisc import _kernels
from fastdisc._kernels import (
    PAIR_LOSSES,
    ROW_LOSSES,
    Batch,
    Grid,
    MarginLoss,
    OnlineRule,
    OnlineState,
    PairLoss,
    PairRule,
    RowLoss,
    RowOrder,
    enums,
    query_grid,
)
from fastdisc._kernels.basis_program import TABLE_COLUMNS
from fastdisc._kernels.contract import MAX_SLOPE, MIN_SCALE

GRID, UNKNOWN = Grid(16, 48), 77
EXTENSIBLE = ["numpy", "numba"]


def test_tables_describe_all_losses():
    from fastdisc._kernels._numba.losses import LOSSES as NUMBA_LOSSES
    from fastdisc._kernels._numpy.losses import LOSSES as NUMPY_LOSSES

    for table in (ROW_LOSSES, NUMPY_LOSSES, NUMBA_LOSSES):
        assert set(table) == set(RowLoss)
    assert set(PAIR_LOSSES) == set(PairLoss)


def test_cython_has_the_same_codes():
    cython = _kernels.load("cython")
    assert set(cython.ENUMS) >= {"MarginLoss", "LearningRate", "PairLoss", "RankMetric"}
    for name, codes in cython.ENUMS.items():
        assert codes == {member.name: int(member) for member in getattr(enums, name)}
    kinds = {kind.__name__ for kind in vars(enums).values() if isinstance(kind, type)}
    assert set(cython.ENUMS) <= kinds - {IntEnum.__name__}


def test_compiled_constants_are_those_of_python():
    expected = {"MAX_SLOPE": MAX_SLOPE, "MIN_SCALE": MIN_SCALE, "TABLE_COLUMNS": TABLE_COLUMNS}
    assert expected == _kernels.load("cython").CONSTANTS


def make_calls(rng):
    """For each kind of code, calls of kernels that must refuse one they do not know."""
    n, d = 30, 3
    X, r, s = make_features(rng, n, d), np.zeros(n, np.int32), np.ones(1)
    batch, W, signs = Batch(X, r, s), np.zeros((1, d + 1)), np.ones((1, 1), np.int8)
    queries, y = make_queries(rng, n, 2, 3)
    z, grid, pairs = rng.standard_normal(n), query_grid(queries.starts), np.array([(0, 1)])
    none, order = np.zeros((0, d + 1)), RowOrder(np.arange(2), 16)
    shift, group, rule = np.zeros((1, d)), np.zeros(1, np.int32), PairRule(UNKNOWN)

    def online(k, **codes):
        state = OnlineState(W.copy(), none, none, np.zeros(2))
        return k.online_epoch(batch, state, OnlineRule(**codes), order, 1)

    return {
        "row loss": [
            lambda k: k.sweep(batch, UNKNOWN, W, 1, GRID, 1),
            lambda k: k.sweep_many(batch, UNKNOWN, signs, W, 1, GRID, 1),
            lambda k: k.hessian_product(batch, UNKNOWN, W, W, GRID, 1),
        ],
        "activation": [lambda k: k.outputs(X, UNKNOWN, W, GRID, 1)],
        "margin loss": [lambda k: online(k, loss=UNKNOWN)],
        "learning rate": [lambda k: online(k, loss=MarginLoss.LOG, rate=UNKNOWN)],
        "pair loss": [
            lambda k: k.query_loss(z, queries, rule, grid, 1),
            lambda k: k.query_curvature_product(z, z, queries, rule, grid, 1),
            lambda k: k.query_hessian(X, z, queries, rule, grid, 1),
            lambda k: k.query_sweep(X, np.arange(n), queries, rule, np.ones(d), z, grid, 1),
            lambda k: k.pair_loss(z, pairs, s, rule, GRID, 1),
            lambda k: k.pair_curvature_product(z, z, pairs, s, rule, GRID, 1),
            lambda k: k.online_pairs(X, pairs, s, np.zeros(d), 1.0, rule),
        ],
        "metric": [lambda k: k.query_metric(UNKNOWN, y, z, queries.starts, 5, grid, 1)],
        "moment kind": [lambda k: k.class_moments(batch, shift, group, UNKNOWN, GRID, 1)],
    }


@pytest.mark.parametrize("kind", make_calls(np.random.default_rng(0)))
def test_unknown_codes_raise(backend, rng, kind):
    name = backend.__name__.rsplit("_", 1)[1]
    for call in make_calls(rng)[kind]:
        with pytest.raises(ValueError, match=f"the {name} backend has no {kind} {UNKNOWN}"):
            call(backend)


def test_built_in_losses_cannot_be_replaced():
    from fastdisc._kernels._numba.losses import LOSSES, register_loss

    with pytest.raises(ValueError, match="row loss 0 is built in"):
        register_loss(RowLoss.LOGISTIC, LOSSES[RowLoss.SQUARED])


def test_losses_of_several_scores_are_not_for_sweep_many(rng, backend):
    batch = Batch(make_features(rng, 30, 3), np.zeros(30, np.int32), np.ones(1))
    signs, W = np.ones((1, 2), np.int8), np.zeros((2, 4))
    with pytest.raises(ValueError, match="row loss 1 is not one of 1 scores per row"):
        backend.sweep_many(batch, RowLoss.SOFTMAX, signs, W, 1, GRID, 1)


def test_number_of_scores_must_be_that_of_the_loss(rng, backend):
    batch = Batch(make_features(rng, 30, 3), np.zeros(30, np.int32), np.ones(1))
    W = np.zeros((3, 4))
    with pytest.raises(ValueError, match="row loss 0 is not one of 3 scores per row"):
        backend.sweep(batch, RowLoss.LOGISTIC, W, 1, GRID, 1)
    with pytest.raises(ValueError, match="row loss 1 is not one of 1 scores per row"):
        backend.hessian_product(batch, RowLoss.SOFTMAX, W[:1], W[:1], GRID, 1)


@pytest.mark.parametrize(
    "change",
    [{"r": np.zeros(29, np.int32)}, {"s": np.ones(31)}, {"o": np.zeros((29, 1))}],
    ids=["r", "s", "o"],
)
def test_compiled_kernels_refuse_arrays_of_another_length(rng, change):
    batch = Batch(make_features(rng, 30, 3), np.zeros(30, np.int32), np.ones(1))
    with pytest.raises(ValueError, match=f"{next(iter(change))} has .* numbers, X has 30 rows"):
        batch = batch._replace(**change)
        _kernels.load("cython").sweep(batch, RowLoss.LOGISTIC, np.zeros((1, 4)), 1, GRID, 1)


# --- a new loss -----------------------------------------------------------------------------------


def scalar_complementary_log_log(X, r, s, W):
    """By the definition: loss, misclassified weight, gradient, Fisher information."""
    loss, errors, g, H = 0.0, 0.0, np.zeros(len(W[0])), np.zeros((len(W[0]), len(W[0])))
    for row, target, weight in zip(oracles.dense(X), r, s, strict=True):
        (z,) = oracles.scores(row, W)
        y, x = 1 - math.exp(-math.exp(z)), np.array([1.0, *row])
        slope = math.exp(z) * math.exp(-math.exp(z))  # dy/dz
        loss -= weight * (math.log(y) if target else math.log(1 - y))
        errors += weight * ((z > 0) != bool(target))
        g += weight * (y - target) / (y * (1 - y)) * slope * x
        H += weight * slope**2 / (y * (1 - y)) * np.outer(x, x)
    return loss, errors, g[None], H


@pytest.fixture
def new_loss():
    with complementary_log_log() as code:
        yield code


@pytest.fixture
def problem(rng):
    r = rng.integers(0, 2, 101).astype(np.int32)
    return Batch(make_features(rng, 101, 4), r, rng.random(101)), rng.standard_normal((1, 5)) * 0.3


@pytest.mark.parametrize("name", EXTENSIBLE)
def test_new_loss_is_the_definition(name, new_loss, problem, rng):
    kernels, (batch, W) = _kernels.load(name), problem
    expected = scalar_complementary_log_log(*batch[:3], W)
    assert_all_close(kernels.sweep(batch, new_loss, W, 2, GRID, 2), expected, 1e-12)
    V = rng.standard_normal((1, 5))
    product = kernels.hessian_product(batch, new_loss, W, V, GRID, 2)
    assert_all_close([product[0]], [expected[3] @ V[0]], 1e-12)


@pytest.mark.parametrize("name", EXTENSIBLE)
def test_new_loss_has_the_derivatives_of_finite_differences(name, new_loss, problem):
    """The gradient, and the Hessian of the expected loss if the outputs at W are the truth."""
    kernels, (batch, W) = _kernels.load(name), problem

    def sweep(V, order=1):
        return kernels.sweep(batch, new_loss, V, order, GRID, 1)

    numeric = oracles.numerical_gradient(lambda V: sweep(V)[0], W)
    np.testing.assert_allclose(sweep(W)[2], numeric, rtol=1e-6, atol=1e-6)
    z = batch.X.values @ W[0, 1:] + W[0, 0]
    truth, expected = 1 - np.exp(-np.exp(z)), []
    for place in range(W.size):
        total = 0.0
        for target, share in ((1, truth), (0, 1 - truth)):
            some = Batch(batch.X, np.full(101, target, np.int32), batch.s * share)
            step = 1e-5 * np.eye(W.size)[place]
            both = W + step, W - step
            up, down = (kernels.sweep(some, new_loss, V, 1, GRID, 1)[2] for V in both)
            total += (up - down)[0] / 2e-5
        expected.append(total)
    np.testing.assert_allclose(sweep(W, 2)[3], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EXTENSIBLE)
def test_new_loss_serves_many_problems(name, new_loss, problem, rng):
    kernels, (batch, _) = _kernels.load(name), problem
    W, signs = 0.3 * rng.standard_normal((2, 5)), np.array([[1, 0], [-1, 1]], np.int8)
    losses, errors, G, H = kernels.sweep_many(batch, new_loss, signs, W, 2, GRID, 2)
    for k in range(2):
        sign = signs[batch.r, k]
        rows = sign != 0
        args = batch.X.values[rows], sign[rows] > 0, batch.s[rows], W[k : k + 1]
        expected = scalar_complementary_log_log(*args)
        assert_all_close((losses[k], errors[k], G[k : k + 1], H[k]), expected, 1e-12)


def test_new_loss_is_unknown_before_and_after_its_registration(backend, problem):
    batch, W = problem
    with complementary_log_log() as code:
        pass
    with pytest.raises(ValueError, match=f"no row loss {code}"):
        backend.sweep(batch, code, W, 1, GRID, 1)
