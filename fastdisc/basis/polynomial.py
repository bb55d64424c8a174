"""Polynomial features: columns and their products (10.2), (10.34)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from scipy import linalg

from .._data.rows import Rows
from .._kernels.basis_program import Part, padded_transpose
from .._kernels.contract import Array
from .._kernels.enums import BasisKind
from .._validation.parameters import check_choice, check_number
from .base import Basis, chosen_columns

MAX_FEATURES = 10_000_000


def product_steps(n: int, degree: int, interactions_only: bool) -> tuple[int, Array]:
    """The number of features of PRODUCTS, and its steps (i, start, count), (m, 3).

    A step multiplies x_i by `count` features from `start` on. The products of degree k that begin
    with x_i are x_i times those of degree k - 1 that begin with x_i or a later column, which are
    contiguous at the end of their degree.
    """
    steps: list[tuple[int, int, int]] = []
    starts, end = list(range(n)), n  # of the last degree: where the products with x_i first start
    for _ in range(degree - 1):
        next_starts, next_end = [], end
        for i in range(n):
            next_starts.append(next_end)
            first = i + 1 if interactions_only else i
            start = starts[first] if first < n else end
            if end > start:
                steps.append((i, start, end - start))
                next_end += end - start
        starts, end = next_starts, next_end
        if end > MAX_FEATURES:
            raise ValueError(f"degree={degree} would have more than {MAX_FEATURES:,} features")
    return end, np.array(steps, dtype=np.int64).reshape(-1, 3)


def products_part(columns: Array, degree: int, interactions_only: bool) -> Part:
    """The products of some columns as the kernels read them."""
    width, steps = product_steps(len(columns), degree, interactions_only)
    ints = np.concatenate([[len(columns)], columns, steps.ravel()])
    return Part(BasisKind.PRODUCTS, width, ints, size=len(steps))


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


class Polynomial(Basis):
    """Columns and their products up to a degree: x_i, x_i x_j, ... (10.3).

    The order is that of scikit-learn's PolynomialFeatures. There is no constant feature: models
    have an intercept.

    Parameters
    ----------
    degree : int, default=2
    interactions_only : bool, default=False
        Whether to use only products of different columns.
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
    >>> from fastdisc.basis import Polynomial
    >>> Polynomial(2).fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> Polynomial(3, interactions_only=True).fit([[2.0, 3.0]]).get_feature_names_out()
    array(['x0', 'x1', 'x0 x1'], dtype=object)
    """

    def __init__(self, degree: int = 2, interactions_only: bool = False, *, columns: Any = None):
        self.degree = degree
        self.interactions_only = interactions_only
        self.columns = columns

    def _fit(self, X: Rows, y: Any) -> None:
        check_number(self.degree, "degree", low=1, whole=True)
        check_choice(self.interactions_only, "interactions_only", (True, False))
        self._columns = chosen_columns(self, X.shape[1])
        self._terms = int(self.degree), bool(self.interactions_only)

    def _parts(self) -> list[Part]:
        return [products_part(self._columns, *self._terms)]

    def _names(self, names: Iterable[str]) -> list[str]:
        names = list(names)
        degree, interactions_only = self._terms
        pick = combinations if interactions_only else combinations_with_replacement
        terms = (term for k in range(1, degree + 1) for term in pick(self._columns.tolist(), k))
        return [
            " ".join(_power(names[j], term.count(j)) for j in dict.fromkeys(term)) for term in terms
        ]


class Quadratic(Basis):
    """Columns and the products of all pairs of them (10.2), (10.34).

    A linear discriminant of these features is x'Wx + w'x + w0. A fitted LogisticRegression has W as
    `quadratic_`.

    With `rank`, W is restricted to a subspace, which reduces its variance. A first fit of the full
    quadratic discriminant to labelled rows gives W_i for each class. V are the `rank` leading
    eigenvectors of sum_i W_i^2; for two classes, those of W whose eigenvalues have the largest
    absolute values. The features are x and the products of all pairs of V'x. A model on them fits
    its weights anew, with W_i = V'A_i V of that rank. The eigenvectors depend on the units of the
    columns: standardise columns of different scales.

    Parameters
    ----------
    rank : int, optional
        None for all products.
    C : float, default=1.0
        Inverse strength of the penalty of the first fit, on weights of standardised features.

    Attributes
    ----------
    directions_ : ndarray of shape (rank, d)
        The eigenvectors V, if `rank` is given.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.basis import Quadratic
    >>> X = np.linspace(0, 6, 61)[:, None]
    >>> y = (X[:, 0] > 2) & (X[:, 0] < 4)
    >>> model = LogisticRegression(basis=Quadratic(), C=100.0).fit(X, y)
    >>> bool(model.quadratic_[0, 0, 0] < 0), model.score(X, y) > 0.95
    (True, True)
    """

    directions_: Array

    def __init__(self, rank: int | None = None, *, C: float = 1.0):
        self.rank = rank
        self.C = C

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.rank is not None
        return tags

    def _fit(self, X: Rows, y: Any) -> None:
        self.__dict__.pop("directions_", None)
        if self.rank is None:
            return
        if check_number(self.rank, "rank", low=1, whole=True) > X.shape[1]:
            raise ValueError(f"rank={self.rank} is more than X has columns, {X.shape[1]}")
        if y is None:
            raise ValueError(
                "rank: requires y to be passed, but the target y is None: the eigenvectors come "
                "from a fit to class labels"
            )
        self.directions_ = self._leading_eigenvectors(X, y)

    def _leading_eigenvectors(self, X: Rows, y: Any) -> Array:
        from ..linear.logistic import LogisticRegression  # which imports bases

        model = LogisticRegression(C=self.C, standardize=True, basis=Quadratic())
        model.fit(X.to_float64(), y)
        total = sum(W @ W for W in model.quadratic_)
        _, vectors = linalg.eigh(total)
        V = vectors[:, ::-1][:, : self.rank].T
        # The sign is arbitrary: make the largest component positive.
        largest = V[np.arange(len(V)), np.abs(V).argmax(axis=1)]
        return V * np.where(largest < 0, -1.0, 1.0)[:, None]

    def _fitted_rank(self) -> int | None:
        """The rank of the fit; None for all products."""
        return len(self.directions_) if hasattr(self, "directions_") else None

    def _parts(self) -> list[Part]:
        d, rank = self.n_features_in_, self._fitted_rank()
        if rank is None:
            return [products_part(np.arange(d), 2, False)]
        width = d + rank * (rank + 1) // 2
        reals = padded_transpose(self.directions_)
        return [Part(BasisKind.SUBSPACE, width, reals=reals, size=rank)]

    def _names(self, names: Iterable[str]) -> list[str]:
        names, rank = list(names), self._fitted_rank()
        factors = names if rank is None else [f"v{k}" for k in range(rank)]
        pairs = combinations_with_replacement(factors, 2)
        return names + [_power(a, 2) if a == b else f"{a} {b}" for a, b in pairs]

    def matrices(self, coef: Array) -> Array:
        """The symmetric matrices W, (K, d, d), of weights (K, D) of the features.

        The weight of x_i x_j is divided equally between W_ij and W_ji.
        """
        d, rank = self.n_features_in_, self._fitted_rank()
        n = d if rank is None else rank
        i, j = np.triu_indices(n)
        W = np.zeros((len(coef), n, n))
        W[:, i, j] = coef[:, d:] / 2
        W = W + W.swapaxes(1, 2)
        return W if rank is None else self.directions_.T @ W @ self.directions_
