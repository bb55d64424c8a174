"""Hyperplanes, and what they are read off: the weights of fitted linear models, of this library and of others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ._decisions import incidence


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """The points where g(x) = w'x + w0 is 0; g is positive on the side that w points to.

    Parameters
    ----------
    w : array of shape (d,)
        The normal vector, of any length but 0.
    w0 : float
        The threshold.
    name : str, default="g"
        What the discriminant is called in print.
    features : list of str, optional
        Names of the inputs; x0, x1, ... without.

    Examples
    --------
    >>> from fastdisc.geometry import Hyperplane
    >>> plane = Hyperplane([3, -4], 10)
    >>> print(plane)
    g(x) = 3 x0 - 4 x1 + 10 = 0, at distance 2 from the origin
    >>> plane.signed_distance([[0, 0], [0, 5]])
    array([ 2., -2.])
    >>> plane.project([[0, 0]])
    array([[-1.2,  1.6]])
    """

    w: np.ndarray
    w0: float
    name: str = "g"
    features: list[str] | None = field(default=None, repr=False)

    def __post_init__(self):
        w, w0 = np.array(self.w, dtype=np.float64), np.asarray(self.w0, dtype=np.float64)
        if w.ndim != 1 or w0.size != 1:
            raise ValueError(f"a hyperplane has a vector w and a number w0, got shapes {w.shape} and {w0.shape}")
        if not (np.isfinite(w).all() and np.isfinite(w0).all()):
            raise ValueError(f"a hyperplane's weights must be finite, got w={w.tolist()}, w0={w0.tolist()}")
        if not w.any():
            raise ValueError(f"the weights of {self.name} are all 0: it has no direction, and there is no hyperplane")
        if self.features is not None and len(self.features) != len(w):
            raise ValueError(f"{len(self.features)} names for {len(w)} weights")
        w.setflags(write=False)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "w0", float(w0.reshape(-1)[0]))

    @property
    def norm(self):
        """||w||, however large or small the weights are."""
        top = np.abs(self.w).max()
        return float(top * np.linalg.norm(self.w / top))

    @property
    def normal(self):
        """w / ||w||, (d,): at right angles to every vector within the plane."""
        return self.w / self.norm

    @property
    def distance_to_origin(self):
        """r0 = w0 / ||w|| (10.5): positive where the origin is on the positive side."""
        return self.w0 / self.norm

    def __call__(self, X):
        """g(x) = w'x + w0 of each row, (N,)."""
        return points(X, len(self.w)) @ self.w + self.w0

    def signed_distance(self, X):
        """r = g(x) / ||w|| (10.4), (4.7) of each row, (N,)."""
        return self(X) / self.norm

    def project(self, X):
        """The nearest points of the plane, x - r w / ||w|| (4.6), (N, d)."""
        X = points(X, len(self.w))
        return X - (self.signed_distance(X)[:, None]) * self.normal

    def side(self, X):
        """+1 on the positive side, -1 on the negative side, 0 on the plane, (N,)."""
        return np.sign(self(X)).astype(np.int8)

    def __neg__(self):
        """The same plane with its sides exchanged."""
        return Hyperplane(-self.w, -self.w0, f"-{self.name}", self.features)

    def __str__(self):
        names = self.features or [f"x{j}" for j in range(len(self.w))]
        terms = [(v, f" {name}") for v, name in zip(self.w, names, strict=True) if v] + [(self.w0, "")] * bool(self.w0)
        if len(terms) > 9:
            terms = [*terms[:4], None, *terms[-3:]]
        text = ""
        for term in terms:
            if term is None:
                text += " + ..."
                continue
            sign = ("-" if term[0] < 0 else "") if not text else (" - " if term[0] < 0 else " + ")
            text += f"{sign}{abs(term[0]):.4g}{term[1]}"
        return f"{self.name}(x) = {text} = 0, at distance {abs(self.distance_to_origin):.4g} from the origin"


def points(X, d):
    """Rows as float64, (N, d); what is wrong with them is said."""
    X = X.toarray() if sparse.issparse(X) else X
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"points must be rows of {d} numbers: expected an array of shape (N, {d}), got {X.shape}")
    bad = ~np.isfinite(X)
    if bad.any():
        row, column = divmod(int(bad.argmax()), d)
        raise ValueError(f"points must be finite; in row {row}, column {column} it is {X[row, column]}")
    return X


def bent(model):
    """Whether the scores are linear in basis functions of the features, and not in the features themselves."""
    return getattr(model, "basis_", None) is not None


def weights(model):
    """coef_ (K, d) and intercept_ (K,) of a fitted model."""
    if not hasattr(model, "coef_"):
        if hasattr(model, "fit"):
            check_is_fitted(model)
        raise ValueError(f"{type(model).__name__} has no coef_: it is not a linear model")
    if bent(model):
        raise ValueError(f"{type(model).__name__} has a basis: it is not a linear model of the features")
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else np.asarray(model.coef_, dtype=np.float64)
    coef = np.atleast_2d(coef)
    return coef, np.broadcast_to(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64).reshape(-1), len(coef))


def input_names(model):
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def of_pairs(model):
    """Whether the rows of coef_ are of pairs of classes."""
    if type(model).__module__.startswith("sklearn.svm") and hasattr(model, "dual_coef_") and len(model.classes_) > 2:
        raise ValueError(f"{type(model).__name__} decides by pairs of its own: take PairwiseClassifier(LinearSVC())")
    return hasattr(model, "pairs_")


def called(model, rows):
    """What each discriminant is called."""
    if of_pairs(model):
        return [f"g[{model.classes_[i]}, {model.classes_[j]}]" for i, j in model.pairs_]
    if rows == 1 or len(getattr(model, "classes_", ())) != rows:
        return ["g"] if rows == 1 else [f"g[{k}]" for k in range(rows)]
    return [f"g[{label}]" for label in model.classes_]


def classes_of(model):
    """The classes of a fitted classifier, (K,)."""
    if not hasattr(model, "classes_"):
        raise ValueError(f"{type(model).__name__} has no classes_: it is not a classifier")
    return np.asarray(model.classes_)


def code_of(model, label):
    """The place of a label among the classes."""
    classes = classes_of(model)
    found = np.flatnonzero(classes == label)
    if len(found) != 1:
        raise ValueError(f"{label!r} is not one of the classes {classes.tolist()}")
    return int(found[0])


def largest_decides(model):
    """Whether the model chooses the largest of K linear scores, and so has convex regions."""
    return getattr(model, "decision", "max") == ("sum" if of_pairs(model) else "max")


def discriminants(model):
    """One discriminant a class, coef (K, d) and intercept (K,), of which the largest decides (10.8)."""
    coef, intercept = weights(model)
    classes = classes_of(model)
    if of_pairs(model):  # (10.10)
        B = incidence(len(classes)).T
        return B @ coef, B @ intercept
    if len(coef) == 1 and len(classes) == 2:
        return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    if len(coef) != len(classes) or getattr(model, "multilabel_", False):
        raise ValueError(f"{type(model).__name__} has {len(coef)} discriminants for {len(classes)} classes: they do not exclude")
    return coef, intercept
