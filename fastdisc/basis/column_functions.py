"""Functions of one column each: sine, Gaussian, logarithm, threshold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from .._data.rows import Rows
from .._kernels.basis_program import Part
from .._kernels.contract import Array
from .._kernels.enums import BasisKind
from .base import Basis, chosen_columns, finite_numbers, precisions


class ColumnBasis(Basis):
    """One function for each of some columns and each pair of numbers (p, q).

    A subclass has `_kind`, `_pairs` and `_name`.
    """

    _kind: ClassVar[BasisKind]

    def _pairs(self) -> tuple[Array, Array]:
        """The validated numbers p, (n,), and q, (n,) or (1,)."""
        raise NotImplementedError

    def _name(self, column: str, p: float, q: float) -> str:
        raise NotImplementedError

    def _fit(self, X: Rows, y: Any) -> None:
        self._columns = chosen_columns(self, X.shape[1])
        p, q = self._pairs()
        if len(q) not in (1, len(p)):
            raise ValueError(
                f"{type(self).__name__}: one number for all functions, or one for each: expected "
                f"1 or {len(p)}, got {len(q)}"
            )
        self._numbers = p, np.broadcast_to(q, len(p))

    def _parts(self) -> list[Part]:
        p, q = self._numbers
        columns = np.concatenate([[len(self._columns)], self._columns])
        reals = np.concatenate([p, q])
        return [Part(self._kind, len(self._columns) * len(p), columns, reals, len(p))]

    def _names(self, names: Iterable[str]) -> list[str]:
        names = list(names)
        pairs = list(zip(*self._numbers, strict=True))
        return [self._name(names[j], p, q) for j in self._columns for p, q in pairs]


class Sine(ColumnBasis):
    """sin(frequency x_j + phase), for each column and each frequency (10.3).

    Parameters
    ----------
    frequency : float or array-like of shape (n,), default=1.0
    phase : float or array-like of shape (n,), default=0.0
        pi / 2 for cosines.
    columns : list of int or str, optional
        Numbers or names of the columns to use; all by default.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import Sine
    >>> Sine(frequency=[1.0, 2.0]).fit_transform([[0.0], [1.0]]).round(3)
    array([[0.   , 0.   ],
           [0.841, 0.909]])
    """

    _kind = BasisKind.SINE

    def __init__(self, frequency: Any = 1.0, phase: Any = 0.0, *, columns: Any = None):
        self.frequency = frequency
        self.phase = phase
        self.columns = columns

    def _pairs(self) -> tuple[Array, Array]:
        return finite_numbers(self.frequency, "frequency"), finite_numbers(self.phase, "phase")

    def _name(self, column: str, p: float, q: float) -> str:
        factor, phase = "" if p == 1 else f"{p:g} ", "" if q == 0 else f" + {q:g}"
        return f"sin({factor}{column}{phase})"


class Gaussian(ColumnBasis):
    """exp(-(x_j - center)^2 / (2 width^2)), for each column and each centre (10.3).

    Parameters
    ----------
    center : float or array-like of shape (n,), default=0.0
    width : float or array-like of shape (n,), default=1.0
    columns : list of int or str, optional
        Numbers or names of the columns to use; all by default.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import Gaussian
    >>> Gaussian(center=[0.0, 1.0]).fit_transform([[0.0], [1.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    _kind = BasisKind.GAUSSIAN

    def __init__(self, center: Any = 0.0, width: Any = 1.0, *, columns: Any = None):
        self.center = center
        self.width = width
        self.columns = columns

    def _pairs(self) -> tuple[Array, Array]:
        width = finite_numbers(self.width, "width")
        return finite_numbers(self.center, "center"), precisions(width, self.width)

    def _name(self, column: str, p: float, q: float) -> str:
        return f"gaussian({column}; {p:g}, {(0.5 / q) ** 0.5:g})"


class Log(ColumnBasis):
    """log(x_j + shift), for each column (10.3).

    If x_j + shift is not positive, a ValueError names the row.

    Parameters
    ----------
    shift : float, default=0.0
    columns : list of int or str, optional
        Numbers or names of the columns to use; all by default.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import Log
    >>> Log(shift=1.0).fit_transform([[0.0], [1.0]]).round(3)
    array([[0.   ],
           [0.693]])
    """

    _kind = BasisKind.LOG

    def __init__(self, shift: Any = 0.0, *, columns: Any = None):
        self.shift = shift
        self.columns = columns

    def _pairs(self) -> tuple[Array, Array]:
        return finite_numbers(self.shift, "shift"), np.zeros(1)

    def _name(self, column: str, p: float, q: float) -> str:
        return f"log({column}{'' if p == 0 else f' + {p:g}'})"


class Threshold(ColumnBasis):
    """1 if x_j > threshold, else 0, for each column and each threshold (10.3).

    Parameters
    ----------
    threshold : float or array-like of shape (n,), default=0.0
    columns : list of int or str, optional
        Numbers or names of the columns to use; all by default.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import Threshold
    >>> Threshold([0.0, 2.0]).fit_transform([[1.0], [3.0]])
    array([[1., 0.],
           [1., 1.]])
    """

    _kind = BasisKind.THRESHOLD

    def __init__(self, threshold: Any = 0.0, *, columns: Any = None):
        self.threshold = threshold
        self.columns = columns

    def _pairs(self) -> tuple[Array, Array]:
        return finite_numbers(self.threshold, "threshold"), np.zeros(1)

    def _name(self, column: str, p: float, q: float) -> str:
        return f"1({column} > {p:g})"
