"""Solvers by name, and which one "auto" is."""

import inspect

import numpy as np
import pytest

from fastdisc._objectives.protocol import Costs
from fastdisc._solvers import lbfgs, registry
from fastdisc._solvers.registry import SOLVERS, choose_solver


class Facts:
    """What the choice depends on."""

    def __init__(self, shape, n_rows, *, is_sparse=False, is_small_dense=False):
        self.shape, self.n_rows = shape, n_rows
        self.costs = Costs(shape[1] - 1, is_sparse, is_small_dense)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_have_the_same_arguments(name):
    parameters = inspect.signature(SOLVERS[name].solve).parameters
    assert list(parameters)[:2] == ["objective", "W"]
    required = {
        p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    }
    assert required == {"tol", "max_iter", "trace"} | ({"l1"} if name == "proximal" else set())
    assert SOLVERS[name].max_iter > 0


@pytest.mark.parametrize(
    ("shape", "n_rows", "kind", "expected"),
    [
        ((10, 65), 1797, {"is_small_dense": True}, "newton-cg"),
        ((10, 65), 1797, {}, "newton"),
        ((4, 31), 30_000, {"is_small_dense": True}, "newton"),  # many rows per weight
        ((3, 5), 150, {"is_small_dense": True}, "newton"),  # few weights
        ((1, 2000), 10**5, {}, "newton"),
        ((1, 2002), 10**5, {}, "lbfgs"),
        ((1, lbfgs.MAX_GRAM_COLUMNS + 1), 10**5, {}, "newton-cg"),
        ((1, 500), 10**5, {"is_sparse": True}, "newton"),
        ((1, 502), 10**5, {"is_sparse": True}, "newton-cg"),
    ],
)
def test_choice_for_an_l2_penalty(shape, n_rows, kind, expected):
    assert choose_solver(Facts(shape, n_rows, **kind), 0.0, prefer_products=True) == expected


def test_products_on_small_dense_data_must_be_preferred():
    facts = Facts((10, 65), 1797, is_small_dense=True)
    assert choose_solver(facts, 0.0) == "newton"


def test_l1_penalty_has_a_solver_of_its_own():
    for weights in (5, 10**6):
        assert choose_solver(Facts((1, weights), 100), 0.1) == "proximal"


def test_choice_is_a_registered_solver():
    for D in np.geomspace(2, 10**6, 30).astype(int):
        for sparse in (False, True):
            assert choose_solver(Facts((3, int(D)), 1000, is_sparse=sparse), 0.0) in SOLVERS


def test_limits_grow_where_hessians_are_cheap():
    assert registry.MAX_NEWTON_WEIGHTS_SPARSE < registry.MAX_NEWTON_WEIGHTS
