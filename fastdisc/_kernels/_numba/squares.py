"""Links with a squared error, one score a row. Y gets the squared derivative of the output by the score."""

import math

from .. import Link
from .options import jit

SIGMOID = int(Link.SIGMOID)


@jit()
def link_sigmoid(Z, r, s, m, Y):
    """z -> e = s (y - r) y (1 - y), with s times half the squared error (10.39), (10.40)"""
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
def link_linear(Z, r, s, m, Y):
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
def bend_square(link, Z, U, s, m):
    """u -> c u, c as in the two links"""
    for i in range(m):
        u = Z.dtype.type(math.exp(-abs(Z[0, i])))
        p = u / ((1 + u) * (1 + u)) if link == SIGMOID else Z.dtype.type(1)
        U[0, i] *= s[i] * p * p
