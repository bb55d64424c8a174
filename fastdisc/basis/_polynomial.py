"""Higher-order terms: products of columns (10.2), (10.34)."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import numpy as np
from scipy import linalg

from .._base import choice, number
from .._kernels.maps import Map, Part, turned
from ._base import Basis, chosen_columns

MOST = 10_000_000  # features


def steps(n, degree, interactions):
    """The features of PRODUCTS: how many there are, and (i, start, count) for x_i times `count` features from `start` on.

    The products of degree k that begin with x_i are x_i times those of degree k - 1 that begin with x_i or a later column, which
    stand together at the end of their degree.
    """
    found, starts, end = [], list(range(n)), n  # where those of the last degree that begin with x_i start, and where they end
    for _ in range(degree - 1):
        done, begins = end, []
        for i in range(n):
            begins.append(done)
            start = starts[i + 1] if interactions and i + 1 < n else end if interactions else starts[i]
            if end > start:
                found.append((i, start, end - start))
                done += end - start
        starts, end = begins, done
        if end > MOST:
            raise ValueError(f"degree={degree} would have more than {MOST:,} features")
    return end, np.array(found, dtype=np.int64).reshape(-1, 3)


class Polynomial(Basis):
    """Columns and their products up to a degree: x_i, x_i x_j, ... (10.3). There is no constant: models have an intercept.

    In the order of scikit-learn's PolynomialFeatures.

    Parameters
    ----------
    degree : int, default=2
    interactions_only : bool, default=False
        Only products of different columns.
    columns : list of int or str, optional
        Numbers or names of the columns to read; all by default.

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fastdisc.basis import Polynomial
    >>> Polynomial(2).fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> Polynomial(3, interactions_only=True).fit([[2.0, 3.0]]).get_feature_names_out()
    array(['x0', 'x1', 'x0 x1'], dtype=object)
    """

    def __init__(self, degree=2, interactions_only=False, *, columns=None):
        self.degree = degree
        self.interactions_only = interactions_only
        self.columns = columns

    def _learn(self, X, y):
        number(self.degree, "degree", low=1, whole=True)
        choice(self.interactions_only, "interactions_only", (True, False))
        self._columns = chosen_columns(self, X)
        self._terms = int(self.degree), bool(self.interactions_only)

    def _parts(self):
        n = len(self._columns)
        width, lines = steps(n, *self._terms)
        return [Part(Map.PRODUCTS, width, np.concatenate([[n], self._columns, lines.ravel()]), size=len(lines))]

    def _names(self, names):
        degree, different = self._terms
        pick = combinations if different else combinations_with_replacement
        terms = (term for k in range(1, degree + 1) for term in pick(self._columns, k))
        return [" ".join(_power(names[j], term.count(j)) for j in dict.fromkeys(term)) for term in terms]


def _power(name, exponent):
    return name if exponent == 1 else f"{name}^{exponent}"


class Quadratic(Basis):
    """Columns and their products in pairs: a discriminant x'Wx + w'x + w0 that is linear in them (10.2), (10.34).

    A fitted LogisticRegression has W as `quadratic_`.

    With `rank`, W is restrained to its leading eigenvectors, which keeps its variance under control: a first fit of the full
    quadratic discriminant to labelled rows gives W_i for each class, the `rank` leading eigenvectors of sum_i W_i^2 (for two
    classes those of W with the largest eigenvalues by size) are kept as V, and the features are x and the products of pairs of
    V'x. A model on them learns its weights anew, with W_i = V'A_i V of that rank. The eigenvectors are those of the columns in
    their units: standardise columns that are not alike.

    Parameters
    ----------
    rank : int, optional
        None for all products.
    C : float, default=1.0
        Inverse strength of the penalty of the first fit, on weights of standardised features.

    Attributes
    ----------
    directions_ : array of shape (rank, d)
        With `rank`, the eigenvectors V.
    n_features_in_, feature_names_in_

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

    def __init__(self, rank=None, *, C=1.0):
        self.rank = rank
        self.C = C

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.rank is not None
        return tags

    def _learn(self, X, y):
        vars(self).pop("directions_", None)
        if self.rank is None:
            return
        if number(self.rank, "rank", low=1, whole=True) > X.shape[1]:
            raise ValueError(f"rank={self.rank} is more than X has columns, {X.shape[1]}")
        if y is None:
            raise ValueError("rank: requires y to be passed, but the target y is None: the eigenvectors are of a fit to labels")
        from ..logistic import LogisticRegression

        model = LogisticRegression(C=self.C, standardize=True, basis=Quadratic()).fit(X, y)
        total = sum(W @ W for W in model.quadratic_)
        _, vectors = linalg.eigh(total)
        V = vectors[:, ::-1][:, : self.rank].T
        self.directions_ = V * np.where(V[np.arange(len(V)), np.abs(V).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]

    def _rank(self):
        """That of the fit; None for all products."""
        return len(self.directions_) if hasattr(self, "directions_") else None

    def _parts(self):
        d, rank = self.n_features_in_, self._rank()
        if rank is None:
            width, lines = steps(d, 2, False)
            return [Part(Map.PRODUCTS, width, np.concatenate([[d], np.arange(d), lines.ravel()]), size=len(lines))]
        width = d + rank * (rank + 1) // 2
        return [Part(Map.SUBSPACE, width, reals=turned(self.directions_), size=rank)]

    def _names(self, names):
        names, rank = list(names), self._rank()
        factors = names if rank is None else [f"v{k}" for k in range(rank)]
        pairs = combinations_with_replacement(factors, 2)
        return names + [_power(a, 2) if a == b else f"{a} {b}" for a, b in pairs]

    def matrices(self, coef):
        """W (K, d, d), symmetric, from weights (K, D): the weight of x_i x_j in halves on both sides of the diagonal."""
        d, rank = self.n_features_in_, self._rank()
        n = d if rank is None else rank
        i, j = np.triu_indices(n)
        W = np.zeros((len(coef), n, n))
        W[:, i, j] = coef[:, d:] / 2
        W = W + W.swapaxes(1, 2)
        return W if rank is None else self.directions_.T @ W @ self.directions_
