"""The losses of rows, three functions each, and the table that kernels dispatch by.

`loss(Z, r, s, m, work, Y)` turns the scores Z (K, block) of m rows into e = dE/dz, times the row
weights s, and returns the weighted loss and the weight of misclassified rows. Y, (K, block) if a
Hessian is asked for and else (0, block), keeps what the curvature needs; work is (4, block).
`curvature(j, k, E, Y, s, m, c)` writes the second derivatives by z_j and z_k, times s, to c.
`curvature_product(Z, U, s, m, work)` turns the scores U of a direction into the second derivative
times U; Z is overwritten.

The losses of RowLoss share one compiled version of each kernel, in which `loss` is an integer. A
loss that is registered at run time has a type of its own, for which kernels are compiled when they
are first called.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from ..contract import Array
from ..enums import RowLoss
from .codes import checked
from .options import Function, jit, jit_uncached
from .vector_math import exp_nonpositive, log1p_ratio

LOGISTIC, SOFTMAX = int(RowLoss.LOGISTIC), int(RowLoss.SOFTMAX)
SIGMOID_SQUARED, SQUARED = int(RowLoss.SIGMOID_SQUARED), int(RowLoss.SQUARED)


class LossFunctions(NamedTuple):
    """The functions of a loss."""

    loss: Function
    curvature: Function
    curvature_product: Function
    multiple_outputs: bool = False  # one score per class


# --- logistic -------------------------------------------------------------------------------------


@jit()
def loss_logistic(
    Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:
    """z -> e = s (y - r), with s times the cross-entropy   (10.23), (10.24)"""
    zero, one, two = Z.dtype.type(0), Z.dtype.type(1), Z.dtype.type(2)
    loss, wrong = 0.0, 0.0
    for i in range(m):
        sign = one - two * Z.dtype.type(r[i])
        z = sign * Z[0, i]  # the score of the other class; e = s sign sigmoid(z)
        u = exp_nonpositive(-abs(z))
        v = one / ((one + u) * (two + u))
        loss += s[i] * (log1p_ratio(u * (one + u) * v) + max(z, zero))
        wrong += s[i] * ((z > zero) | ((z == zero) & (r[i] > 0)))  # a score of 0 chooses class 0
        Z[0, i] = s[i] * sign * v * (two + u) * (one if z > zero else u)
    return loss, wrong


@jit()
def curvature_logistic(j: int, k: int, E: Array, Y: Array, s: Array, m: int, c: Array) -> None:
    """c = |e| (1 - |e| / s), which is s y (1 - y)   (10.32)"""
    for i in range(m):
        c[i] = abs(E[0, i]) * (1 - abs(E[0, i]) / s[i]) if s[i] > 0 else 0


@jit()
def product_logistic(Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    """u -> s y (1 - y) u   (10.32)"""
    one = Z.dtype.type(1)
    for i in range(m):
        u = exp_nonpositive(-abs(Z[0, i]))
        U[0, i] *= s[i] * u / ((one + u) * (one + u))


# --- softmax --------------------------------------------------------------------------------------


@jit()
def softmax_rows(Z: Array, m: int, top: Array, total: Array, best: Array) -> None:
    """z_k -> exp(z_k - max), its sum over k, and the first k of the maximum   (10.29)"""
    for i in range(m):
        top[i], total[i], best[i] = Z[0, i], 0, 0
    for k in range(1, Z.shape[0]):
        for i in range(m):
            more = Z[k, i] > top[i]
            best[i] = k if more else best[i]
            top[i] = Z[k, i] if more else top[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] = exp_nonpositive(Z[k, i] - top[i])
            total[i] += Z[k, i]


@jit()
def loss_softmax(
    Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:
    """z_k -> e_k = s (y_k - r_k), with s times the cross-entropy   (10.31), (10.33)"""
    top, total, best, own = work[0], work[1], work[2], work[3]
    loss, wrong = 0.0, 0.0
    for i in range(m):
        own[i] = Z[r[i], i]
    softmax_rows(Z, m, top, total, best)
    for i in range(m):
        loss += s[i] * (np.log(total[i]) + (top[i] - own[i]))
        wrong += s[i] if best[i] != r[i] else Z.dtype.type(0)
        total[i] = Z.dtype.type(1) / total[i]
    for k in range(Y.shape[0]):
        for i in range(m):
            Y[k, i] = Z[k, i] * total[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] *= s[i] * total[i]
    for i in range(m):
        Z[r[i], i] -= s[i]
    return loss, wrong


@jit()
def curvature_softmax(j: int, k: int, E: Array, Y: Array, s: Array, m: int, c: Array) -> None:
    """c = s y_j (delta_jk - y_k)   (10.32)"""
    for i in range(m):
        c[i] = s[i] * Y[j, i] * ((1.0 if j == k else 0.0) - Y[k, i])


@jit()
def product_softmax(Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    """u_k -> s y_k (u_k - sum_j y_j u_j)   (10.32)"""
    top, total, best, mean = work[0], work[1], work[2], work[3]
    softmax_rows(Z, m, top, total, best)
    for i in range(m):
        mean[i], total[i] = 0, Z.dtype.type(1) / total[i]
    for k in range(Z.shape[0]):
        for i in range(m):
            Z[k, i] *= total[i]
            mean[i] += Z[k, i] * U[k, i]
    for k in range(Z.shape[0]):
        for i in range(m):
            U[k, i] = s[i] * Z[k, i] * (U[k, i] - mean[i])


# --- squared errors: Y has the squared derivative of the output by the score ----------------------


@jit()
def loss_sigmoid_squared(
    Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:
    """z -> e = s (y - r) y (1 - y), with s times half the squared error   (10.39), (10.40)"""
    one, zero = Z.dtype.type(1), Z.dtype.type(0)
    loss, wrong = 0.0, 0.0
    for i in range(m):
        sign = one - 2 * Z.dtype.type(r[i])
        z = sign * Z[0, i]
        u = Z.dtype.type(math.exp(-abs(z)))
        v = one / (one + u)
        p = u * v * v  # y (1 - y)
        miss = v * (one if z > zero else u)  # |y - r|
        loss += s[i] * (miss * miss / 2)
        wrong += s[i] * ((z > zero) | ((z == zero) & (r[i] > 0)))  # a score of 0 chooses class 0
        Z[0, i] = s[i] * sign * miss * p
        if len(Y) > 0:
            Y[0, i] = p * p
    return loss, wrong


@jit()
def product_sigmoid_squared(Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    """u -> s (y (1 - y))^2 u   (10.40)"""
    for i in range(m):
        u = Z.dtype.type(math.exp(-abs(Z[0, i])))
        p = u / ((1 + u) * (1 + u))
        U[0, i] *= s[i] * p * p


@jit()
def loss_squared(
    Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:
    """z -> e = s (z - r'), with s times half the squared error; r' = +1 or -1   (4.1.7)"""
    loss, wrong = 0.0, 0.0
    for i in range(m):
        miss = Z[0, i] - Z.dtype.type(2 * r[i] - 1)
        loss += s[i] * (miss * miss / 2)
        wrong += s[i] * ((Z[0, i] > 0) != (r[i] > 0))
        Z[0, i] = s[i] * miss
        if len(Y) > 0:
            Y[0, i] = 1
    return loss, wrong


@jit()
def product_squared(Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    """u -> s u   (4.1.7)"""
    for i in range(m):
        U[0, i] *= s[i]


@jit()
def curvature_saved(j: int, k: int, E: Array, Y: Array, s: Array, m: int, c: Array) -> None:
    """c = s times what the loss has saved   (10.40), (4.1.7)"""
    for i in range(m):
        c[i] = s[i] * Y[0, i]


LOSSES: dict[int, LossFunctions] = {
    LOGISTIC: LossFunctions(loss_logistic, curvature_logistic, product_logistic),
    SOFTMAX: LossFunctions(loss_softmax, curvature_softmax, product_softmax, True),
    SIGMOID_SQUARED: LossFunctions(loss_sigmoid_squared, curvature_saved, product_sigmoid_squared),
    SQUARED: LossFunctions(loss_squared, curvature_saved, product_squared),
}

# --- dispatch -------------------------------------------------------------------------------------

# A type for each loss that is registered at run time; kernels take its instances as `loss`.
_types: dict[int, Any] = {}
_type_of: dict[LossFunctions, Any] = {}
_functions: dict[Any, LossFunctions] = {}


def register_loss(code: int, functions: LossFunctions) -> None:
    """Add a loss to the table. Its functions may be compiled by Numba or not yet."""
    if code in RowLoss._value2member_map_:
        raise ValueError(f"row loss {code} is built in")
    if functions not in _type_of:  # or what has been compiled for them is used again
        kind = namedtuple(f"RowLoss{code}", ["code"])
        compiled = map(jit_uncached, functions[:3])
        _type_of[functions] = kind
        _functions[kind] = LossFunctions(*compiled, functions.multiple_outputs)
    _types[code] = _type_of[functions]
    LOSSES[code] = _functions[_types[code]]


def remove_loss(code: int) -> None:
    """Remove a registered loss from the table."""
    del _types[code], LOSSES[code]


def loss_argument(loss: int, K: int) -> Any:
    """A loss of K scores per row as jitted code takes it; ValueError if it is unknown, or not of
    K."""
    code = checked("row loss", loss, LOSSES)
    if LOSSES[code].multiple_outputs != (K > 1):
        raise ValueError(f"row loss {code} is not one of {K} scores per row")
    return _types[code](code) if code in _types else code


def evaluate(
    loss: Any, Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:  # type: ignore[empty-body]
    """The function `loss` of a loss."""


@overload(evaluate, strict=False)
def _evaluate(loss: types.Type, *_: types.Type) -> Function:
    if isinstance(loss, types.Integer):
        return evaluate_built_in
    function = _functions[loss.instance_class].loss
    return lambda loss, Z, r, s, m, work, Y: function(Z, r, s, m, work, Y)


def evaluate_built_in(
    loss: int, Z: Array, r: Array, s: Array, m: int, work: Array, Y: Array
) -> tuple[float, float]:
    if loss == LOGISTIC:
        return loss_logistic(Z, r, s, m, work, Y)
    if loss == SOFTMAX:
        return loss_softmax(Z, r, s, m, work, Y)
    if loss == SIGMOID_SQUARED:
        return loss_sigmoid_squared(Z, r, s, m, work, Y)
    if loss == SQUARED:
        return loss_squared(Z, r, s, m, work, Y)
    return np.nan, np.nan  # not reached: `loss_argument` refuses other codes


def curvature(loss: Any, j: int, k: int, E: Array, Y: Array, s: Array, m: int, c: Array) -> None:
    """The function `curvature` of a loss."""


@overload(curvature, strict=False)
def _curvature(loss: types.Type, *_: types.Type) -> Function:
    if isinstance(loss, types.Integer):
        return curvature_built_in
    function = _functions[loss.instance_class].curvature
    return lambda loss, j, k, E, Y, s, m, c: function(j, k, E, Y, s, m, c)


def curvature_built_in(
    loss: int, j: int, k: int, E: Array, Y: Array, s: Array, m: int, c: Array
) -> None:
    if loss == LOGISTIC:
        curvature_logistic(j, k, E, Y, s, m, c)
    elif loss == SOFTMAX:
        curvature_softmax(j, k, E, Y, s, m, c)
    elif loss == SIGMOID_SQUARED or loss == SQUARED:
        curvature_saved(j, k, E, Y, s, m, c)
    else:
        c[:m] = np.nan


def curvature_product(loss: Any, Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    """The function `curvature_product` of a loss."""


@overload(curvature_product, strict=False)
def _curvature_product(loss: types.Type, *_: types.Type) -> Function:
    if isinstance(loss, types.Integer):
        return product_built_in
    function = _functions[loss.instance_class].curvature_product
    return lambda loss, Z, U, s, m, work: function(Z, U, s, m, work)


def product_built_in(loss: int, Z: Array, U: Array, s: Array, m: int, work: Array) -> None:
    if loss == LOGISTIC:
        product_logistic(Z, U, s, m, work)
    elif loss == SOFTMAX:
        product_softmax(Z, U, s, m, work)
    elif loss == SIGMOID_SQUARED:
        product_sigmoid_squared(Z, U, s, m, work)
    elif loss == SQUARED:
        product_squared(Z, U, s, m, work)
    else:
        U[:, :m] = np.nan
