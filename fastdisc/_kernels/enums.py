"""Codes that Python and the compiled backends share. A test compares their values."""

from __future__ import annotations

from enum import IntEnum


class RowLoss(IntEnum):
    """A loss of one row's scores. The table in `losses.py` describes each of them."""

    LOGISTIC = 0
    SOFTMAX = 1
    SIGMOID_SQUARED = 2
    SQUARED = 3


class Activation(IntEnum):
    """The function that turns scores into outputs at prediction."""

    IDENTITY = 0
    SIGMOID = 1  # two columns: the probabilities of class 0 and class 1
    SOFTMAX = 2


class MarginLoss(IntEnum):
    """A loss of the margin m = r' z of an online rule. Each class is trained against the others,
    except for PERCEPTRON_MULTICLASS, which compares a row's class with its best competitor."""

    PERCEPTRON = 0
    PERCEPTRON_MULTICLASS = 1
    HINGE = 2
    SQUARED_HINGE = 3
    LOG = 4
    MODIFIED_HUBER = 5
    SQUARED = 6


class PairLoss(IntEnum):
    """A loss of a pair, as a function of a = margin + z_v - z_u, where u is preferred to v."""

    HINGE = 0  # [a]_+
    SQUARED_HINGE = 1  # [a]_+^2
    HUBER = 2  # smoothed hinge: ([a]_+^2 - [a - width]_+^2) / (2 width)
    LOGISTIC = 3  # log(1 + exp(a))


class LearningRate(IntEnum):
    """The step size of an online rule at its t-th row."""

    CONSTANT = 0  # eta
    OPTIMAL = 1  # eta / (power + t - 1)
    INVSCALING = 2  # eta / t^power


class RankMetric(IntEnum):
    """The metrics of `query_metric`."""

    NDCG = 0  # averaged over all orders of tied scores
    NDCG_WORST = 1  # tied scores in their worst order, as in the metrics below
    AVERAGE_PRECISION = 2
    RECIPROCAL_RANK = 3
    EXPECTED_RECIPROCAL_RANK = 4
    KENDALL = 5
    PAIRS = 6


class MomentKind(IntEnum):
    """The sums that `class_moments` takes of u = x - shift of the row's class."""

    SUMS = 0  # u
    COUNTS = 1  # [x > shift]
    SQUARES = 2  # u, u^2
    SCATTER = 3  # u, u u'
    QUARTIC = 4  # u, v v' with v = [u u^2]


class BasisKind(IntEnum):
    """The basis functions that kernels evaluate. `ints` of the first five begin with the number
    of columns, followed by the columns."""

    PRODUCTS = 0  # x_j; then for each (i, start, count): x_i times `count` features from `start` on
    SINE = 1  # sin(p x_j + q) for each pair (p, q) of reals; all p are stored first
    GAUSSIAN = 2  # exp(-q (x_j - p)^2)
    LOG = 3  # log(x_j + p)
    THRESHOLD = 4  # 1(x_j > p)
    RADIAL = 5  # reals: q (n,), m' (d, n): exp(-q_k ||x - m_k||^2)
    HALFSPACE = 6  # reals: c (n,), a' (d, n): 1(a_k'x > c_k)
    SUBSPACE = 7  # reals: V' (d, n): x_j, then z_i z_j for i <= j with z = V x
    CUSTOM = 8  # a function of a block of rows, called by its address
