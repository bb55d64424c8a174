"""The losses of rows, one function each, and the table that `sweep` dispatches by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..contract import Array
from ..enums import RowLoss
from ..losses import ROW_LOSSES

# Of a block's scores (N, K) and targets (N,): losses (N,), predicted classes (N,), derivatives by
# the scores (N, K), and the curvature by scores i and j as a function of i and j.
Evaluated = tuple[Array, Array, Array, Callable[[int, int], Array]]


def sigmoid(Z: Array) -> Array:
    """y = 1 / (1 + exp(-z))   (10.15)"""
    u = np.exp(-np.abs(Z))
    return np.where(Z > 0, 1, u) / (1 + u)


def softmax(Z: Array) -> Array:
    """y_k = exp(z_k) / sum_j exp(z_j)   (10.29)"""
    U = np.exp(Z - Z.max(axis=1, keepdims=True))
    return U / U.sum(axis=1, keepdims=True)


def loss_logistic(Z: Array, r: Array) -> Evaluated:
    """z -> loss (10.23), prediction, error (10.24), curvature"""
    z, y = Z[:, 0], sigmoid(Z)
    loss = np.log1p(np.exp(-np.abs(z))) + np.where((z > 0) == (r == 1), 0, np.abs(z))
    return loss, z > 0, y - r[:, None], lambda i, j: y[:, 0] * sigmoid(-z)


def loss_softmax(Z: Array, r: Array) -> Evaluated:
    """z -> loss (10.31), prediction, error (10.33), curvature (10.32)"""
    Y = softmax(Z)
    R = np.eye(Z.shape[1])[r]
    top = Z.max(axis=1)
    loss = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + (top - Z[np.arange(len(r)), r])
    return loss, Z.argmax(axis=1), Y - R, lambda i, j: Y[:, i] * ((i == j) - Y[:, j])


def loss_sigmoid_squared(Z: Array, r: Array) -> Evaluated:
    """z -> half the squared error (10.39), prediction, error (10.40), curvature"""
    z, y = Z[:, 0], sigmoid(Z)[:, 0]
    p, residual = y * sigmoid(-z), np.where(r == 1, -sigmoid(-z), y)  # y (1 - y), y - r
    return residual**2 / 2, z > 0, (residual * p)[:, None], lambda i, j: p**2


def loss_squared(Z: Array, r: Array) -> Evaluated:
    """z -> half the squared error, prediction, error, curvature   (4.1.7)"""
    z = Z[:, 0]
    residual = z - (2 * r - 1)
    return residual**2 / 2, z > 0, residual[:, None], lambda i, j: np.ones(len(z))


LOSSES: dict[int, Callable[[Array, Array], Evaluated]] = {
    RowLoss.LOGISTIC: loss_logistic,
    RowLoss.SOFTMAX: loss_softmax,
    RowLoss.SIGMOID_SQUARED: loss_sigmoid_squared,
    RowLoss.SQUARED: loss_squared,
}


def evaluate(loss: int, Z: Array, r: Array) -> Evaluated:
    """The function of a loss, applied; an unknown loss is an error."""
    if loss not in LOSSES:
        raise ValueError(f"the numpy backend has no row loss {int(loss)}")
    K = Z.shape[1]
    if ROW_LOSSES[loss].multiple_outputs != (K > 1):
        raise ValueError(f"row loss {int(loss)} is not one of {K} scores per row")
    return LOSSES[loss](Z, r)
