"""Functions of one column at a time: sine, Gaussian, logarithm, threshold."""

from __future__ import annotations

import numpy as np

from .._kernels.maps import Map, Part
from ._base import Basis, chosen_columns, numbers, precisions


def _short(number):
    return f"{number:g}"


class OfColumns(Basis):
    """Each pair of parameters (p, q) to each of some columns. A subclass has `_pairs`, and `_name(column, p, q)`."""

    def _learn(self, X, y):
        self._columns = chosen_columns(self, X)
        p, q = self._pairs()
        if len(q) not in (1, len(p)):
            raise ValueError(f"{type(self).__name__}: one number for all, or as many of the second as of the first: {len(p)}")
        self._numbers = p, np.broadcast_to(q, len(p))

    def _parts(self):
        p, q = self._numbers
        ints = np.concatenate([[len(self._columns)], self._columns])
        return [Part(self._kind, len(self._columns) * len(p), ints, np.concatenate([p, q]), len(p))]

    def _names(self, names):
        return [self._name(names[j], p, q) for j in self._columns for p, q in zip(*self._numbers, strict=True)]


class Sine(OfColumns):
    """sin(frequency x_j + phase), for each column and each frequency (10.3).

    Parameters
    ----------
    frequency : float or array of shape (n,), default=1.0
    phase : float or array of shape (n,), default=0.0
        pi / 2 makes cosines.
    columns : list of int or str, optional
        Numbers or names of the columns to read; all by default.

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Sine
    >>> Sine(frequency=[1.0, 2.0]).fit_transform([[0.0], [1.0]]).round(3)
    array([[0.   , 0.   ],
           [0.841, 0.909]])
    """

    _kind = Map.SINE

    def __init__(self, frequency=1.0, phase=0.0, *, columns=None):
        self.frequency = frequency
        self.phase = phase
        self.columns = columns

    def _pairs(self):
        return numbers(self.frequency, "frequency"), numbers(self.phase, "phase")

    def _name(self, column, p, q):
        return f"sin({'' if p == 1 else _short(p) + ' '}{column}{'' if q == 0 else f' + {_short(q)}'})"


class Gaussian(OfColumns):
    """exp(-(x_j - center)^2 / (2 width^2)), for each column and each centre (10.3).

    Parameters
    ----------
    center : float or array of shape (n,), default=0.0
    width : float or array of shape (n,), default=1.0
    columns : list of int or str, optional
        Numbers or names of the columns to read; all by default.

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Gaussian
    >>> Gaussian(center=[0.0, 1.0]).fit_transform([[0.0], [1.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    _kind = Map.GAUSSIAN

    def __init__(self, center=0.0, width=1.0, *, columns=None):
        self.center = center
        self.width = width
        self.columns = columns

    def _pairs(self):
        return numbers(self.center, "center"), precisions(numbers(self.width, "width"), self.width)

    def _name(self, column, p, q):
        return f"gaussian({column}; {_short(p)}, {_short((0.5 / q) ** 0.5)})"


class Log(OfColumns):
    """log(x_j + shift), for each column (10.3). x_j + shift must be > 0: elsewhere there is a ValueError that names the row.

    Parameters
    ----------
    shift : float, default=0.0
    columns : list of int or str, optional
        Numbers or names of the columns to read; all by default.

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Log
    >>> Log(shift=1.0).fit_transform([[0.0], [1.0]]).round(3)
    array([[0.   ],
           [0.693]])
    """

    _kind = Map.LOG

    def __init__(self, shift=0.0, *, columns=None):
        self.shift = shift
        self.columns = columns

    def _pairs(self):
        return numbers(self.shift, "shift"), np.zeros(1)

    def _name(self, column, p, q):
        return f"log({column}{'' if p == 0 else f' + {_short(p)}'})"


class Threshold(OfColumns):
    """1 where x_j > threshold, else 0, for each column and each threshold (10.3).

    Parameters
    ----------
    threshold : float or array of shape (n,), default=0.0
    columns : list of int or str, optional
        Numbers or names of the columns to read; all by default.

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Threshold
    >>> Threshold([0.0, 2.0]).fit_transform([[1.0], [3.0]])
    array([[1., 0.],
           [1., 1.]])
    """

    _kind = Map.THRESHOLD

    def __init__(self, threshold=0.0, *, columns=None):
        self.threshold = threshold
        self.columns = columns

    def _pairs(self):
        return numbers(self.threshold, "threshold"), np.zeros(1)

    def _name(self, column, p, q):
        return f"1({column} > {_short(p)})"
