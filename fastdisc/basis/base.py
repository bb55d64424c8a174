"""What bases share: a fitted basis is a program, the table of functions that the kernels read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .. import runtime
from .._base import all_or_nothing
from .._data.dense import DenseRows
from .._data.mapped import FeatureBasis, MappedRows
from .._data.outputs import expand
from .._data.rows import Rows
from .._kernels.basis_program import Part, Program, assemble
from .._kernels.contract import Array
from .._validation.arrays import check_rows


class Basis(FeatureBasis, TransformerMixin, BaseEstimator):
    """A transformer that can also be passed to a linear model as `basis=`.

    A subclass implements `_fit`, which stores what depends on the rows; `_parts`, its functions;
    and `_names`, the names of the features, given those of the columns.
    """

    n_features_in_: int

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the parameters that depend on the rows.

        Parameters
        ----------
        X : array-like of shape (N, d)
        y : array-like of shape (N,), optional
            Class labels, for a basis that needs them.

        Returns
        -------
        self
        """
        rows = check_rows(self, X, reset=True)
        rows.check_finite()
        return self.fit_rows(rows, y)

    def fit_rows(self, X: Rows, y: Any = None) -> Self:
        """`fit` on validated rows, without the check for NaN and infinity.

        Whoever sums the features finds out if they are not finite.
        """
        _check_dense(X)
        self.__dict__.pop("_program", None)
        self._fit(X, y)
        self.program()
        return self

    def fit_clone(self, owner: Any, X: Rows, y: Any = None) -> Self:
        """A clone, fitted to the validated rows of its owner, with its column names."""
        copy = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(owner, name):
                setattr(copy, name, getattr(owner, name))
        return copy.fit_rows(X, y)

    def transform(self, X: Any) -> Array:
        """Compute the features.

        Parameters
        ----------
        X : array-like of shape (N, d)

        Returns
        -------
        ndarray of shape (N, D)
        """
        check_is_fitted(self)
        rows = self.mapped(check_rows(self, X, reset=False))
        return expand(rows, rows.kernels)

    def mapped(self, X: Rows, backend: str | None = None) -> MappedRows:
        """Rows whose features are those of the basis, computed when they are read."""
        _check_dense(X)
        kernels, names = runtime.kernels(backend), self.get_feature_names_out
        rows = MappedRows(cast(DenseRows, X), self.program(), kernels, names)
        rows.failure()  # discards one of an earlier pass that nobody asked for
        return rows

    def program(self) -> Program:
        """The fitted basis as the kernels read it."""
        if not hasattr(self, "_program"):
            self._program = assemble(self._parts())
        return self._program

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features.

        Parameters
        ----------
        input_features : array-like of shape (d,), optional
            Names of the columns, if X had none in `fit`.

        Returns
        -------
        ndarray of shape (D,)
        """
        check_is_fitted(self)
        return np.array(self._names(_check_feature_names_in(self, input_features)), dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        # A program may contain the address of a compiled function, which a pickle cannot store.
        return {name: v for name, v in super().__getstate__().items() if name != "_program"}

    def _fit(self, X: Rows, y: Any) -> None:
        """Validate the parameters, and store what depends on the rows."""

    def _parts(self) -> list[Part]:
        raise NotImplementedError

    def _names(self, names: Iterable[str]) -> list[str]:
        raise NotImplementedError


def _check_dense(X: Rows) -> None:
    if X.is_sparse:
        raise ValueError(
            "a basis needs dense rows, and X is sparse: most basis functions of 0 are not 0. "
            "Pass X.toarray()"
        )


def finite_numbers(value: Any, name: str) -> Array:
    """A parameter that is a finite number or a list of them: (n,)."""
    try:
        found = np.atleast_1d(np.array(value, dtype=np.float64))  # a copy: it is stored
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise ValueError(f"{name} must be a finite number, or a list of such, got {value!r}")
    return found


def precisions(width: Array, given: Any) -> Array:
    """1 / (2 width^2), (n,); ValueError if that is 0 or not finite."""
    with np.errstate(all="ignore"):
        q = np.where(width > 0, 0.5 / width**2, np.nan)
    if not (np.isfinite(q) & (q > 0)).all():
        raise ValueError(
            "width must be > 0, and neither so small nor so large that its square is 0 or "
            f"infinite, got {given!r}"
        )
    return q


def chosen_columns(basis: Any, d: int) -> Array:
    """Numbers of the columns that a basis reads: of all d, or of those in `columns`."""
    if basis.columns is None:
        return np.arange(d)
    known = {str(name): j for j, name in enumerate(getattr(basis, "feature_names_in_", []))}
    given = np.atleast_1d(basis.columns).tolist()
    found: list[Any] = [
        known.get(column, column) if isinstance(column, str) else column for column in given
    ]
    wrong = [column for column in found if not _is_column(column, d)]
    if wrong or not found:
        raise ValueError(
            f"columns must be numbers or names of columns of X, which has {d}; "
            f"got {(wrong or found)!r}"
        )
    return np.arange(d)[found]


def _is_column(column: Any, d: int) -> bool:
    return isinstance(column, int) and not isinstance(column, bool) and -d <= column < d


class Concat(Basis):
    """The features of several bases, one after the other; `concat` is a shorthand.

    Parameters
    ----------
    parts : list of bases
        Their parameters can be set as `0__degree`, `1__width` and so on.

    Attributes
    ----------
    parts_ : list of fitted bases
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> from fastdisc.basis import Concat, Polynomial, Sine
    >>> Concat([Polynomial(1), Sine()]).fit([[0.0], [1.0]]).get_feature_names_out()
    array(['x0', 'sin(x0)'], dtype=object)
    """

    parts_: list[Basis]

    def __init__(self, parts: Any):
        self.parts = parts

    def _bases(self) -> list[Basis]:
        if not isinstance(self.parts, (list, tuple)):
            return []
        return [part for part in self.parts if isinstance(part, Basis)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters by name; those of a part have its number as prefix: `1__width`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parts and their parameters.

        Returns
        -------
        dict
        """
        found = super().get_params(deep=False)
        for i, part in enumerate(self._bases() if deep else []):
            found[str(i)] = part
            found |= {f"{i}__{name}": value for name, value in part.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set `parts`, a part by its number, or parameters of a part.

        Parameters
        ----------
        **params
            With the names of `get_params`.

        Returns
        -------
        self
        """
        if "parts" in params:
            self.parts = params.pop("parts")
        numbers = [str(i) for i in range(len(self._bases()))]
        new = {int(name): params.pop(name) for name in numbers if name in params}
        if new:
            self.parts = [new.get(i, part) for i, part in enumerate(self.parts)]
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        required = (part.__sklearn_tags__().target_tags.required for part in self._bases())
        tags.target_tags.required = any(required)
        return tags

    def _fit(self, X: Rows, y: Any) -> None:
        if not self._bases() or len(self._bases()) != len(self.parts):
            raise ValueError(f"parts must be a list of bases, got {self.parts!r}")
        self.parts_ = [part.fit_clone(self, X, y) for part in self.parts]

    def _parts(self) -> list[Part]:
        return [line for part in self.parts_ for line in part.program().parts]

    def _names(self, names: Iterable[str]) -> list[str]:
        return [name for part in self.parts_ for name in part.get_feature_names_out(names)]


def concat(*parts: Basis) -> Concat:
    """Concatenate the features of several bases.

    Parameters
    ----------
    *parts : bases

    Returns
    -------
    Concat

    Examples
    --------
    >>> from fastdisc.basis import Log, Polynomial, concat
    >>> basis = concat(Polynomial(2, columns=[0]), Log(columns=[1]))
    >>> basis.fit([[1.0, 2.0], [3.0, 4.0]]).get_feature_names_out()
    array(['x0', 'x0^2', 'log(x1)'], dtype=object)
    """
    return Concat(list(parts))
