"""Sigmoid, logit, softmax, scaled probit and their derivatives, stable for every finite argument."""

from __future__ import annotations

from functools import wraps

import numpy as np
from scipy import special as _scipy

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

ROOT_PI_4 = 0.443113462726379, -1.9166466249564497e-17  # sqrt(pi) / 4, and what float64 leaves of it
PI_16 = 0.19634954084936207, 7.654042494670958e-18  # pi / 16, and what float64 leaves of it


# exp(x^2) erfc(x) at x = 1.4 + t, |t| <= 1, in Chebyshev polynomials of t: SciPy's erfcx is up to 5 ulp off there, this one 3.
ERFCX = (
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


def _in_double(function):
    """Compute in float64, without warnings of underflow and of limits; float32 comes back as float32."""

    @wraps(function)
    def wrapped(z):
        z = np.asarray(z)
        if z.dtype.kind not in "fiub":
            raise TypeError(f"{function.__name__} takes real numbers, got {z.dtype}")
        with np.errstate(all="ignore"):
            result = function(z.astype(np.float64, copy=False))
        return (result.astype(np.float32) if z.dtype == np.float32 else result)[()]

    return wrapped


@_in_double
def sigmoid(z):
    """1 / (1 + exp(-z))   (10.15), (4.59). SciPy's expit is 0 where the result is below the normal numbers; this is not.

    Examples
    --------
    >>> from fastdisc.special import sigmoid
    >>> float(sigmoid(0))
    0.5
    """
    u = np.exp(-np.abs(z))
    return np.where(z > 0, 1, u) / (1 + u)


@_in_double
def sigmoid_derivative(z):
    """y (1 - y) with y = sigmoid(z), without the loss of digits where y is near 1.

    Examples
    --------
    >>> from fastdisc.special import sigmoid_derivative
    >>> float(sigmoid_derivative(0))
    0.25
    """
    u = np.exp(-np.abs(z))
    return u / (1 + u) / (1 + u)


@_in_double
def logit(y):
    """log(y / (1 - y)), the inverse of the sigmoid   (4.61)

    Examples
    --------
    >>> from fastdisc.special import logit
    >>> float(logit(0.5))
    0.0
    """
    return _scipy.logit(y)


@_in_double
def logit_derivative(y):
    """1 / (y (1 - y)).

    Examples
    --------
    >>> from fastdisc.special import logit_derivative
    >>> float(logit_derivative(0.5))
    4.0
    """
    return 1 / (y * (1 - y))


@_in_double
def log1pexp(z):
    """log(1 + exp(z)), the cross-entropy of a score z for the other class; its derivative is the sigmoid.

    Examples
    --------
    >>> from fastdisc.special import log1pexp
    >>> float(log1pexp(1000.0))
    1000.0
    """
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


@_in_double
def softmax(Z):
    """exp(z_k) / sum_j exp(z_j) along the last axis   (10.29), (4.62)

    Examples
    --------
    >>> from fastdisc.special import softmax
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    U, total, rest = _exp_below_top(Z)
    return U / total * (1 - rest)


@_in_double
def log_softmax(Z):
    """log softmax(Z) along the last axis, finite where softmax underflows.

    Examples
    --------
    >>> from fastdisc.special import log_softmax
    >>> log_softmax([0.0, -2000.0])
    array([    0., -2000.])
    """
    V, error = _below_top(Z)
    rest = np.exp(V) * (1 + error)
    np.put_along_axis(rest, V.argmax(axis=-1)[..., None], 0, axis=-1)  # the top's own 1 goes into log1p
    return V + (error - np.log1p(rest.sum(axis=-1, keepdims=True)))


@_in_double
def softmax_derivative(Z):
    """dy_i / dz_j = y_i (delta_ij - y_j)   (10.32): the last axis of Z becomes two, i and j.

    Examples
    --------
    >>> from fastdisc.special import softmax_derivative
    >>> softmax_derivative([0.0, 0.0])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    U, total, rest = _exp_below_top(Z)
    J = -(U[..., :, None] * U[..., None, :]) / (total * total)[..., None] * (1 - 2 * rest)[..., None]
    # 1 - y_i as the sum of the others: no digits are lost where y_i is near 1
    own = np.eye(U.shape[-1], dtype=bool)
    others = np.where(own, 0, U[..., None, :]).sum(axis=-1)
    diagonal = np.arange(U.shape[-1])
    J[..., diagonal, diagonal] = U * others / (total * total) * (1 - 2 * rest)
    return J


def _below_top(Z):
    """Z minus its largest value along the last axis, and what rounding took from the difference (Knuth's two-sum).

    The difference may be large, and its rounding then shows in the exponential. Past the largest float it is -inf.
    """
    if Z.ndim == 0 or Z.shape[-1] == 0:
        raise ValueError(f"softmax needs at least one score along the last axis, got shape {Z.shape}")
    top = Z.max(axis=-1, keepdims=True)
    V = Z - top
    back = V + top
    error = (Z - back) - (top - (back - V))
    return V, np.where(np.isfinite(error), error, 0)


def _exp_below_top(Z):
    """exp(z - max), its sum along the last axis, and what rounding took from the sum, as a share of it."""
    V, error = _below_top(Z)
    U = np.exp(V)
    U += U * error
    others = U.copy()
    np.put_along_axis(others, V.argmax(axis=-1)[..., None], 0, axis=-1)
    others = others.sum(axis=-1, keepdims=True)
    total = 1 + others
    return U, total, (others - (total - 1)) / total


def _exp_minus_square(z):
    """exp(-pi z^2 / 16): the exponent in two floats, because an error of one ulp in it is one of many in the result."""
    z = np.clip(z, -100, 100)  # the result is 0 from 62 on
    square, square_error = _product(z, z)
    exponent, error = _product(PI_16[0], square)
    return np.exp(-exponent) * (1 - (error + PI_16[0] * square_error + PI_16[1] * square))


def _product(a, b):
    """a b, and what rounding took from it (Dekker's product of halves)."""
    a_high = a * 134217729.0 - (a * 134217729.0 - a)
    b_high = b * 134217729.0 - (b * 134217729.0 - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low


@_in_double
def scaled_probit(z):
    """Phi(lambda z) with lambda^2 = pi / 8: the normal distribution function with the sigmoid's slope at 0   (figure 4.9)

    Examples
    --------
    >>> from fastdisc.special import scaled_probit
    >>> float(scaled_probit(0))
    0.5
    """
    size = np.minimum(np.abs(z), 100)
    x, error = _product(ROOT_PI_4[0], size)
    scaled = np.where(np.abs(x - 1.4) <= 1, np.polynomial.chebyshev.chebval(x - 1.4, ERFCX), _scipy.erfcx(x))
    scaled += (2 * x * scaled - 2 / np.sqrt(np.pi)) * (error + ROOT_PI_4[1] * size)  # erfcx' times the argument's error
    tail = scaled * _exp_minus_square(z) / 2  # beyond |z|
    tail = np.where(x < 0.4, (1 - _scipy.erf(x)) / 2, tail)
    return np.where(z > 0, 1 - tail, tail)


@_in_double
def scaled_probit_derivative(z):
    """lambda phi(lambda z); 1/4 at 0, as the sigmoid's.

    Examples
    --------
    >>> from fastdisc.special import scaled_probit_derivative
    >>> float(scaled_probit_derivative(0))
    0.25
    """
    return _exp_minus_square(z) / 4
