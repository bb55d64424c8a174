"""Sigmoid, logit, softmax, scaled probit and their derivatives, accurate for all finite arguments.

The functions compute in float64; the result has the type float32 if the argument has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import special as scipy_special

from ._kernels.contract import Array

__all__ = [
    "log1pexp",
    "log_softmax",
    "logit",
    "logit_derivative",
    "scaled_probit",
    "scaled_probit_derivative",
    "sigmoid",
    "sigmoid_derivative",
    "softmax",
    "softmax_derivative",
]

# Constants as unevaluated sums of two floats.
ROOT_PI_4 = 0.443113462726379, -1.9166466249564497e-17  # sqrt(pi) / 4
PI_16 = 0.19634954084936207, 7.654042494670958e-18  # pi / 16
MAX_PROBIT_ARGUMENT = 100  # the tail is 0 from 62 on
SPLITTER = 134217729.0  # 2^27 + 1, of Dekker's product

# exp(x^2) erfc(x) at x = 1.4 + t, |t| <= 1, in Chebyshev polynomials of t. The error is up to 3
# ulp; that of SciPy's erfcx is up to 5 there.
ERFCX_COEFFICIENTS = (
    0.3891305666008901,
    -0.21357322746126783,
    0.052852249656481026,
    -0.012040232802919429,
    0.002559749532480633,
    -0.0005128302965501555,
    9.752637880199701e-05,
    -1.7705007117694245e-05,
    3.082176445777317e-06,
    -5.164303050208712e-07,
    8.354059407449021e-08,
    -1.3081242550650073e-08,
    1.98718937089365e-09,
    -2.9343573649916363e-10,
    4.219009342007131e-11,
    -5.915424745798638e-12,
    8.098822222311381e-13,
    -1.084027712520139e-13,
    1.42007799443467e-14,
    -1.822484827149749e-15,
    2.2934224503722993e-16,
    -2.832226225692689e-17,
)


def _in_float64(function: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """Compute in float64, without floating-point warnings; return float32 for float32."""

    @wraps(function)
    def wrapper(z: Any) -> Any:
        z = np.asarray(z)
        if z.dtype.kind not in "fiub":
            raise TypeError(f"{function.__name__} takes real numbers, got {z.dtype}")
        with np.errstate(all="ignore"):
            result = function(z.astype(np.float64, copy=False))
        return (result.astype(np.float32) if z.dtype == np.float32 else result)[()]

    return wrapper


@_in_float64
def sigmoid(z: Array) -> Array:
    """Logistic sigmoid, 1 / (1 + exp(-z)) (10.15), (4.59).

    Subnormal results are computed; SciPy's expit returns 0 for them.

    Parameters
    ----------
    z : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of z

    Examples
    --------
    >>> from fastdisc.special import sigmoid
    >>> float(sigmoid(0))
    0.5
    """
    u = np.exp(-np.abs(z))
    return np.where(z > 0, 1, u) / (1 + u)


@_in_float64
def sigmoid_derivative(z: Array) -> Array:
    """Derivative of the sigmoid, y (1 - y), without cancellation for y near 1.

    Parameters
    ----------
    z : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of z

    Examples
    --------
    >>> from fastdisc.special import sigmoid_derivative
    >>> float(sigmoid_derivative(0))
    0.25
    """
    u = np.exp(-np.abs(z))
    return u / (1 + u) / (1 + u)


@_in_float64
def logit(y: Array) -> Array:
    """Inverse of the sigmoid, log(y / (1 - y)) (4.61).

    Parameters
    ----------
    y : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of y

    Examples
    --------
    >>> from fastdisc.special import logit
    >>> float(logit(0.5))
    0.0
    """
    return scipy_special.logit(y)


@_in_float64
def logit_derivative(y: Array) -> Array:
    """Derivative of the logit, 1 / (y (1 - y)).

    Parameters
    ----------
    y : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of y

    Examples
    --------
    >>> from fastdisc.special import logit_derivative
    >>> float(logit_derivative(0.5))
    4.0
    """
    return 1 / (y * (1 - y))


@_in_float64
def log1pexp(z: Array) -> Array:
    """log(1 + exp(z)), without overflow.

    This is the cross-entropy of a score z for the other class. Its derivative is the sigmoid.

    Parameters
    ----------
    z : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of z

    Examples
    --------
    >>> from fastdisc.special import log1pexp
    >>> float(log1pexp(1000.0))
    1000.0
    """
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


@_in_float64
def softmax(Z: Array) -> Array:
    """Softmax, exp(z_k) / sum_j exp(z_j), along the last axis (10.29), (4.62).

    Parameters
    ----------
    Z : array-like of shape (..., K)

    Returns
    -------
    ndarray of shape (..., K)

    Examples
    --------
    >>> from fastdisc.special import softmax
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    U, total, rest = _exp_below_top(Z)
    return U / total * (1 - rest)


@_in_float64
def log_softmax(Z: Array) -> Array:
    """Logarithm of the softmax along the last axis, finite even if the softmax underflows.

    Parameters
    ----------
    Z : array-like of shape (..., K)

    Returns
    -------
    ndarray of shape (..., K)

    Examples
    --------
    >>> from fastdisc.special import log_softmax
    >>> log_softmax([0.0, -2000.0])
    array([    0., -2000.])
    """
    V, error = _below_top(Z)
    rest = np.exp(V) * (1 + error)
    # The exponential of the largest score is 1, which log1p adds.
    np.put_along_axis(rest, V.argmax(axis=-1)[..., None], 0, axis=-1)
    return V + (error - np.log1p(rest.sum(axis=-1, keepdims=True)))


@_in_float64
def softmax_derivative(Z: Array) -> Array:
    """Jacobian of the softmax, dy_i / dz_j = y_i (delta_ij - y_j) (10.32).

    Parameters
    ----------
    Z : array-like of shape (..., K)

    Returns
    -------
    ndarray of shape (..., K, K)

    Examples
    --------
    >>> from fastdisc.special import softmax_derivative
    >>> softmax_derivative([0.0, 0.0])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    U, total, rest = _exp_below_top(Z)
    square = total * total
    J = -(U[..., :, None] * U[..., None, :]) / square[..., None] * (1 - 2 * rest)[..., None]
    # 1 - y_i is the sum of the others, which avoids cancellation for y_i near 1
    own = np.eye(U.shape[-1], dtype=bool)
    others = np.where(own, 0, U[..., None, :]).sum(axis=-1)
    diagonal = np.arange(U.shape[-1])
    J[..., diagonal, diagonal] = U * others / square * (1 - 2 * rest)
    return J


def _below_top(Z: Array) -> tuple[Array, Array]:
    """Z minus its largest value along the last axis, and the rounding error (Knuth's two-sum).

    The difference may be large, and its rounding error is then visible in the exponential. A
    difference beyond the largest float is -inf.
    """
    if Z.ndim == 0 or Z.shape[-1] == 0:
        raise ValueError(
            f"softmax needs at least one score along the last axis, got shape {Z.shape}"
        )
    top = Z.max(axis=-1, keepdims=True)
    V = Z - top
    back = V + top
    error = (Z - back) - (top - (back - V))
    return V, np.where(np.isfinite(error), error, 0)


def _exp_below_top(Z: Array) -> tuple[Array, Array, Array]:
    """exp(z - max), its sum along the last axis, and the relative rounding error of the sum."""
    V, error = _below_top(Z)
    U = np.exp(V)
    U += U * error
    others = U.copy()
    np.put_along_axis(others, V.argmax(axis=-1)[..., None], 0, axis=-1)
    others = others.sum(axis=-1, keepdims=True)
    total = 1 + others
    return U, total, (others - (total - 1)) / total


def _exp_minus_square(z: Array) -> Array:
    """exp(-pi z^2 / 16), with the exponent as a sum of two floats: an error of one ulp in it would
    be one of many ulp in the result."""
    z = np.clip(z, -MAX_PROBIT_ARGUMENT, MAX_PROBIT_ARGUMENT)
    square, square_error = _product(z, z)
    exponent, error = _product(PI_16[0], square)
    return np.exp(-exponent) * (1 - (error + PI_16[0] * square_error + PI_16[1] * square))


def _product(a: Any, b: Array) -> tuple[Array, Array]:
    """a b, and its rounding error (Dekker's product)."""
    a_high = a * SPLITTER - (a * SPLITTER - a)
    b_high = b * SPLITTER - (b * SPLITTER - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    error = (a_high * b_high - product) + (a_high * b_low + a_low * b_high)
    return product, error + a_low * b_low


@_in_float64
def scaled_probit(z: Array) -> Array:
    """Scaled probit, Phi(lambda z) with lambda^2 = pi / 8 (figure 4.9).

    The normal distribution function, scaled to the slope of the sigmoid at 0.

    Parameters
    ----------
    z : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of z

    Examples
    --------
    >>> from fastdisc.special import scaled_probit
    >>> float(scaled_probit(0))
    0.5
    """
    size = np.minimum(np.abs(z), MAX_PROBIT_ARGUMENT)
    x, error = _product(ROOT_PI_4[0], size)
    series = np.polynomial.chebyshev.chebval(x - 1.4, ERFCX_COEFFICIENTS)
    scaled = np.where(np.abs(x - 1.4) <= 1, series, scipy_special.erfcx(x))
    # The derivative of erfcx times the rounding error of its argument.
    scaled += (2 * x * scaled - 2 / np.sqrt(np.pi)) * (error + ROOT_PI_4[1] * size)
    tail = scaled * _exp_minus_square(z) / 2  # the probability beyond |z|
    tail = np.where(x < 0.4, (1 - scipy_special.erf(x)) / 2, tail)
    return np.where(z > 0, 1 - tail, tail)


@_in_float64
def scaled_probit_derivative(z: Array) -> Array:
    """Derivative of the scaled probit, lambda phi(lambda z); 1/4 at 0, as that of the sigmoid.

    Parameters
    ----------
    z : array-like of real numbers

    Returns
    -------
    ndarray or scalar of the shape of z

    Examples
    --------
    >>> from fastdisc.special import scaled_probit_derivative
    >>> float(scaled_probit_derivative(0))
    0.25
    """
    return _exp_minus_square(z) / 4
