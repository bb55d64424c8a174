"""What bases share: a fitted basis is a list of parts, which the kernels read as a table."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .. import _config, _validate
from .._kernels.maps import Mapped, assemble
from .._sweep import expand


class Basis(TransformerMixin, BaseEstimator):
    """A transformer, and what a linear model takes as `basis=`.

    A subclass has `_learn(X, y)`, which sets what it learns from the rows; `_parts()`, the maps; and `_names(names)`, what the
    features are called, given the names of the columns.
    """

    def fit(self, X, y=None):
        """Learn what the basis needs to know of the rows.

        Parameters
        ----------
        X : array of shape (N, d)
        y : array of shape (N,), optional
            Class labels, for a basis that asks for them.
        """
        before = vars(self).copy()
        try:
            X = _validate.features(self, X, reset=True)
            _validate.check_finite(X)
            return self.settle(X, y)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def settle(self, X, y=None):
        """`fit` on rows that are validated; a sweep over the features will tell if they are finite."""
        _check_dense(X)
        vars(self).pop("_program", None)
        self._learn(X, y)
        self.program()
        return self

    def transform(self, X):
        """The features, (N, D).

        Parameters
        ----------
        X : array of shape (N, d)
        """
        check_is_fitted(self)
        return expand(self.mapped(_validate.features(self, X, reset=False)))

    def mapped(self, X, backend=None):
        """Validated rows that stand for their features."""
        _check_dense(X)
        rows = Mapped(X, self.program(), _config.kernels(backend), self.get_feature_names_out)
        rows.failure()  # of an earlier pass, which did not ask
        return rows

    def program(self):
        """The fitted basis as the kernels read it."""
        if not hasattr(self, "_program"):
            self._program = assemble(self._parts())
        return self._program

    def get_feature_names_out(self, input_features=None):
        """What the features are called, (D,).

        Parameters
        ----------
        input_features : array of shape (d,), optional
            Names of the columns, where those of `fit` had none.
        """
        check_is_fitted(self)
        return np.array(self._names(_check_feature_names_in(self, input_features)), dtype=object)

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_program"}  # an address is nothing to keep

    def _learn(self, X, y):
        pass


def _check_dense(X):
    if not isinstance(X, np.ndarray):
        raise ValueError(
            "basis functions are of dense rows, X is sparse: most features of an empty row are not 0. Pass X.toarray()"
        )


def numbers(value, name):
    """A parameter that is a finite number, or some: (n,)."""
    try:
        found = np.atleast_1d(np.array(value, dtype=np.float64))  # a copy: it is kept
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise ValueError(f"{name} must be a finite number, or a list of such, got {value!r}")
    return found


def precisions(width, given):
    """1 / (2 width^2), (n,), from widths for which that is a number."""
    with np.errstate(all="ignore"):
        q = np.where(width > 0, 0.5 / width**2, np.nan)
    if not (np.isfinite(q) & (q > 0)).all():
        raise ValueError(f"width must be > 0, and neither so small nor so large that its square is 0 or infinite, got {given!r}")
    return q


def chosen_columns(basis, X):
    """The numbers of the columns that a basis reads: all of them, or those that `columns` says by number or name."""
    d = X.shape[1]
    if basis.columns is None:
        return np.arange(d)
    known = {str(name): j for j, name in enumerate(getattr(basis, "feature_names_in_", []))}
    found = [known.get(column, column) if isinstance(column, str) else column for column in np.atleast_1d(basis.columns).tolist()]
    wrong = [column for column in found if not isinstance(column, int) or isinstance(column, bool) or not -d <= column < d]
    if wrong or not found:
        raise ValueError(f"columns must be numbers or names of columns of X, which has {d}; got {(wrong or found)!r}")
    return np.arange(d)[found]


class Concat(Basis):
    """Bases side by side: the features of the first, then those of the next; see `concat`.

    Parameters
    ----------
    parts : list of bases
        Their own parameters are `0__degree`, `1__width` and so on.

    Attributes
    ----------
    parts_ : list of fitted bases
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Concat, Polynomial, Sine
    >>> Concat([Polynomial(1), Sine()]).fit([[0.0], [1.0]]).get_feature_names_out()
    array(['x0', 'sin(x0)'], dtype=object)
    """

    def __init__(self, parts):
        self.parts = parts

    def _bases(self):
        return [part for part in self.parts if isinstance(part, Basis)] if isinstance(self.parts, (list, tuple)) else []

    def get_params(self, deep=True):
        """Parameters by name; those of the parts by their numbers: `1__width`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parts and their parameters.
        """
        found = super().get_params(deep=False)
        for i, part in enumerate(self._bases() if deep else []):
            found[str(i)] = part
            found |= {f"{i}__{name}": value for name, value in part.get_params().items()}
        return found

    def set_params(self, **params):
        """Set `parts`, a part by its number, or a parameter of a part.

        Parameters
        ----------
        **params
            As `get_params` names them.
        """
        if "parts" in params:
            self.parts = params.pop("parts")
        known = range(len(self._bases()))
        new = {int(name): params.pop(name) for name in list(params) if name.isdecimal() and int(name) in known}
        if new:
            self.parts = [new.get(i, part) for i, part in enumerate(self.parts)]
        return super().set_params(**params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = any(part.__sklearn_tags__().target_tags.required for part in self._bases())
        return tags

    def _learn(self, X, y):
        if not self._bases() or len(self._bases()) != len(self.parts):
            raise ValueError(f"parts must be a list of bases, got {self.parts!r}")
        self.parts_ = [fit_clone(part, self, X, y) for part in self.parts]

    def _parts(self):
        return [line for part in self.parts_ for line in part._parts()]

    def _names(self, names):
        return [name for part in self.parts_ for name in part._names(names)]


def fit_clone(basis, owner, X, y=None):
    """A copy of a basis, fitted on the validated rows of its owner, whose names of columns it takes over."""
    copy = clone(basis)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(owner, name):
            setattr(copy, name, getattr(owner, name))
    return copy.settle(X, y)


def concat(*parts):
    """Bases side by side: the features of the first, then those of the next.

    Parameters
    ----------
    *parts : bases

    Examples
    --------
    >>> from fastdisc.basis import Log, Polynomial, concat
    >>> basis = concat(Polynomial(2, columns=[0]), Log(columns=[1]))
    >>> basis.fit([[1.0, 2.0], [3.0, 4.0]]).get_feature_names_out()
    array(['x0', 'x0^2', 'log(x1)'], dtype=object)
    """
    return Concat(list(parts))
