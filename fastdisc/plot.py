"""Pictures of discriminants with matplotlib (the extra `plot`), as display objects like scikit-learn's.

A function makes the picture; what it returns holds the picture (`figure_`, `ax_`) and the numbers that were drawn, and can be
drawn again, on other axes, by its `plot`.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import geometry

__all__ = [
    "HyperplanesDisplay",
    "PosteriorsDisplay",
    "RegionsDisplay",
    "plot_hyperplanes",
    "plot_posteriors",
    "plot_regions",
]

REJECTED = "0.8"  # grey


def _axes(ax):
    """The axes that are given, or new ones; matplotlib is imported when the first picture is made."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as problem:
        raise ImportError("fastdisc.plot needs matplotlib: pip install 'fastdisc[plot]'") from problem
    return plt.subplots()[1] if ax is None else ax


def _colors(count):
    """A color for each class."""
    from matplotlib import colormaps

    return [colormaps["tab10" if count <= 10 else "tab20"](k % 20) for k in range(count)]


def _rows(X, columns):
    """The points to be drawn, (N, columns)."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] not in columns:
        raise ValueError(f"the picture is of {' or '.join(map(str, columns))} features, X has the shape {X.shape}")
    if not len(X) or not np.isfinite(X).all():
        raise ValueError("X must have rows, and finite values")
    return X, names


def _box(X, margin):
    """Where the points are, and some more: (x_low, x_high, y_low, y_high)."""
    if not margin >= 0:
        raise ValueError(f"margin must be a number >= 0, got {margin!r}")
    low, high = X.min(axis=0), X.max(axis=0)
    more = margin * np.where(high > low, high - low, 1.0)
    return tuple(float(v) for pair in zip(low - more, high + more, strict=True) for v in pair)


class Display:
    """What displays share: points over what they are drawn on."""

    def _points(self, ax):
        """The training rows, a color and a mark for each class."""
        if self.y is None:
            return
        for k, (label, color) in enumerate(zip(self.classes, _colors(len(self.classes)), strict=True)):
            mine = self.X[self.y == label]
            if len(mine):
                mark = "osD^vP*X<>"[k % 10]
                ax.scatter(
                    *mine.T, color=color, marker=mark, s=18, edgecolors="black", linewidths=0.4, label=str(label), zorder=3
                )

    def _finish(self, ax, legend=True):
        box = self.box
        ax.set_xlim(box[0], box[1])
        if len(box) == 4:
            ax.set_ylim(box[2], box[3])
        names = self.names or ["x0", "x1"]
        ax.set_xlabel(names[0])
        if len(box) == 4:
            ax.set_ylabel(names[1])
        if legend and ax.get_legend_handles_labels()[0]:
            ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _take(self, model, X, y, columns, margin):
        check_is_fitted(model)
        self.X, self.names = _rows(X, columns)
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and self.y.shape != (len(self.X),):
            raise ValueError(f"X has {len(self.X)} rows, y has the shape {self.y.shape}")
        self.classes = np.asarray(model.classes_)
        self.box = _box(self.X, margin)
        return self

    def _grid(self, resolution):
        """Points all over the box, as rows of the type that the model was fitted to."""
        if resolution < 2:
            raise ValueError(f"resolution must be a whole number >= 2, got {resolution!r}")
        x, y = np.linspace(*self.box[:2], resolution), np.linspace(*self.box[2:], resolution)
        return x, y, self._frame(np.column_stack([part.ravel() for part in np.meshgrid(x, y)]))

    def _frame(self, points):
        if self.names is None:
            return points
        import pandas as pd

        return pd.DataFrame(points, columns=self.names)


class RegionsDisplay(Display):
    """Decision regions of a classifier of two features. Made by `from_estimator`, or `plot_regions`.

    Attributes
    ----------
    polygons : dict from label to a list of arrays (m, 2), or None
        The regions, where they are known exactly; under None what is rejected.
    codes : array of shape (resolution, resolution), or None
        Else the codes of the classes on a grid, K for what is rejected.
    ax_, figure_ : matplotlib's axes and figure
    """

    @classmethod
    def from_estimator(cls, model, X, y=None, *, margin=0.1, resolution=300, ax=None, alpha=0.3):
        """Find the regions, and draw them.

        Parameters
        ----------
        model : fitted classifier of two features
            The regions of a linear one are exact polygons; of any other they are looked up on a grid.
        X : array or data frame of shape (N, 2)
        y : array of shape (N,), optional
            Classes of the rows, which are drawn as points; without y they only tell where to look.
        margin : float, default=0.1
            Space around the points, as a share of their range.
        resolution : int, default=300
            Of the grid.
        ax : matplotlib axes, optional
        alpha : float, default=0.3
            How opaque the regions are.
        """
        self = cls()._take(model, X, y, (2,), margin)
        self.polygons = self.codes = None
        try:
            self.polygons = geometry.boundary_2d(model, self.box)
        except ValueError:  # not a linear classifier
            _, _, points = self._grid(resolution)
            codes = np.searchsorted(self.classes, model._choose(points) if hasattr(model, "_choose") else model.predict(points))
            if hasattr(model, "reject_mask"):
                codes = np.where(model.reject_mask(points), len(self.classes), codes)
            self.codes = codes.reshape(resolution, resolution)
        return self.plot(ax=ax, alpha=alpha)

    def plot(self, ax=None, *, alpha=0.3):
        """Draw on these axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
        alpha : float, default=0.3
        """
        ax = _axes(ax)
        colors = [*_colors(len(self.classes)), REJECTED]
        if self.polygons is not None:
            from matplotlib.patches import Polygon

            for color, pieces in zip(colors, self.polygons.values(), strict=False):
                for corners in pieces:
                    edge = "none" if len(pieces) > 1 else "black"
                    ax.add_patch(Polygon(corners, facecolor=color, edgecolor=edge, alpha=alpha, linewidth=0.8))
        else:
            from matplotlib.colors import ListedColormap

            ax.imshow(
                self.codes,
                extent=self.box,
                origin="lower",
                aspect="auto",
                cmap=ListedColormap(colors),
                vmin=-0.5,
                vmax=len(colors) - 0.5,
                alpha=alpha,
                interpolation="nearest",
            )
        self._points(ax)
        return self._finish(ax)


class HyperplanesDisplay(Display):
    """Where the discriminants of a linear model of two features are 0. Made by `from_estimator`, or `plot_hyperplanes`.

    Attributes
    ----------
    planes : list of Hyperplane
    segments : list of arrays (2, 2), or None for a line that does not cross the picture
    ax_, figure_ : matplotlib's axes and figure
    """

    @classmethod
    def from_estimator(cls, model, X, y=None, *, margin=0.1, ax=None, normals=True):
        """Find the lines, and draw them.

        Parameters
        ----------
        model : fitted linear classifier of two features
        X : array or data frame of shape (N, 2)
        y : array of shape (N,), optional
        margin : float, default=0.1
        ax : matplotlib axes, optional
        normals : bool, default=True
            Whether an arrow shows the positive side.
        """
        self = cls()._take(model, X, y, (2,), margin)
        planes = geometry.hyperplane(model)
        self.planes = [planes] if isinstance(planes, geometry.Hyperplane) else planes
        self.segments = [_segment(plane, self.box) for plane in self.planes]
        return self.plot(ax=ax, normals=normals)

    def plot(self, ax=None, *, normals=True):
        """Draw on these axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
        normals : bool, default=True
        """
        ax = _axes(ax)
        own = len(self.planes) == len(self.classes)
        colors = _colors(len(self.planes)) if own else [("0.2", "0.4", "0.6")[k % 3] for k in range(len(self.planes))]
        size = 0.07 * np.hypot(self.box[1] - self.box[0], self.box[3] - self.box[2])
        for k, (plane, ends) in enumerate(zip(self.planes, self.segments, strict=True)):
            if ends is None:
                continue
            color = colors[k]
            ax.plot(*ends.T, color=color, label=f"{plane.name}(x) = 0", linestyle=("-", "--", "-.", ":")[0 if own else k % 4])
            if normals:
                arrow = {"arrowstyle": "->", "color": color}
                middle = ends.mean(axis=0)
                ax.annotate("", xy=middle + size * plane.normal, xytext=middle, arrowprops=arrow)
        self._points(ax)
        return self._finish(ax)


def _segment(plane, box):
    """The part of a line within a box, (2, 2), or None."""
    (a, b), (x0, x1, y0, y1) = plane.w, box
    found = [(x, -(plane.w0 + a * x) / b) for x in (x0, x1)] if b else []
    found += [(-(plane.w0 + b * y) / a, y) for y in (y0, y1)] if a else []
    slack = 1e-9 * max(x1 - x0, y1 - y0)
    inside = [p for p in found if x0 - slack <= p[0] <= x1 + slack and y0 - slack <= p[1] <= y1 + slack]
    if len(inside) < 2:
        return None
    along = np.array(inside) @ np.array([-b, a])
    ends = np.array([inside[int(along.argmin())], inside[int(along.argmax())]])
    return ends if np.ptp(along) > 0 else None


class PosteriorsDisplay(Display):
    """Posterior probabilities over one feature or two. Made by `from_estimator`, or `plot_posteriors`.

    Attributes
    ----------
    grid : array of shape (resolution,), or a pair of them
    posteriors : array of shape (resolution, K) or (resolution, resolution, K)
    label : the class that is drawn over two features, or None for the largest posterior
    ax_, figure_ : matplotlib's axes and figure
    """

    @classmethod
    def from_estimator(cls, model, X, y=None, *, label=None, margin=0.1, resolution=200, ax=None):
        """Find the posteriors, and draw them: a curve for each class over one feature, shades and contours over two.

        Parameters
        ----------
        model : fitted classifier with predict_proba, of one feature or two
        X : array or data frame of shape (N, 1) or (N, 2)
        y : array of shape (N,), optional
        label : optional
            Over two features, the class; by default the second of two, and the largest posterior of more.
        margin : float, default=0.1
        resolution : int, default=200
        ax : matplotlib axes, optional
        """
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{type(model).__name__} has no predict_proba")
        self = cls()._take(model, X, y, (1, 2), margin)
        if label is not None and label not in self.classes:
            raise ValueError(f"{label!r} is not one of the classes {self.classes.tolist()}")
        self.label = self.classes[1] if label is None and len(self.classes) == 2 else label
        if self.X.shape[1] == 1:
            self.grid = np.linspace(*self.box, resolution)
            self.posteriors = model.predict_proba(self._frame(self.grid[:, None]))
        else:
            x, z, points = self._grid(resolution)
            self.grid, self.posteriors = (x, z), model.predict_proba(points).reshape(resolution, resolution, -1)
        return self.plot(ax=ax)

    def plot(self, ax=None):
        """Draw on these axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax = _axes(ax)
        if self.posteriors.ndim == 2:
            self._curves(ax)
        else:
            self._shades(ax)
        return self._finish(ax)

    def _curves(self, ax):
        for k, color in enumerate(_colors(len(self.classes))):
            ax.plot(self.grid, self.posteriors[:, k], color=color, label=f"P({self.classes[k]} | x)")
            if self.y is not None:
                mine = self.X[self.y == self.classes[k], 0]
                ax.scatter(mine, np.full(len(mine), -0.03 - 0.03 * k), color=color, marker="|", s=20)
        ax.set_ylabel("posterior")

    def _shades(self, ax):
        code = None if self.label is None else int(np.flatnonzero(self.classes == self.label)[0])
        P = self.posteriors.max(axis=2) if code is None else self.posteriors[:, :, code]
        low = 1 / len(self.classes) if code is None else 0.0
        image = ax.imshow(P, extent=self.box, origin="lower", aspect="auto", cmap="viridis", vmin=low, vmax=1, alpha=0.7)
        if P.min() < 0.9 and P.max() > 0.5:
            ax.contour(*self.grid, P, levels=[0.5, 0.7, 0.9], colors="black", linewidths=0.6)
        ax.figure.colorbar(image, ax=ax, label="largest posterior" if code is None else f"P({self.label} | x)")
        self._points(ax)


def plot_regions(model, X, y=None, *, margin=0.1, resolution=300, ax=None, alpha=0.3):
    """Decision regions of a classifier of two features, and the points; what is rejected is grey.

    Parameters are those of `RegionsDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.plot import plot_regions
    >>> X, y = load_iris(return_X_y=True)
    >>> display = plot_regions(LogisticRegression().fit(X[:, 2:], y), X[:, 2:], y)
    >>> display.figure_.savefig("regions.png")  # doctest: +SKIP
    """
    return RegionsDisplay.from_estimator(model, X, y, margin=margin, resolution=resolution, ax=ax, alpha=alpha)


def plot_hyperplanes(model, X, y=None, *, margin=0.1, ax=None, normals=True):
    """Lines where the discriminants of a linear model of two features are 0, and the points.

    Parameters are those of `HyperplanesDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import PairwiseClassifier
    >>> from fastdisc.plot import plot_hyperplanes
    >>> X, y = load_iris(return_X_y=True)
    >>> display = plot_hyperplanes(PairwiseClassifier().fit(X[:, 2:], y), X[:, 2:], y)
    >>> len(display.planes)
    3
    """
    return HyperplanesDisplay.from_estimator(model, X, y, margin=margin, ax=ax, normals=normals)


def plot_posteriors(model, X, y=None, *, label=None, margin=0.1, resolution=200, ax=None):
    """Posterior probabilities over one feature (a curve for each class) or two (shades), and the points.

    Parameters are those of `PosteriorsDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.plot import plot_posteriors
    >>> X, y = load_iris(return_X_y=True)
    >>> display = plot_posteriors(LogisticRegression().fit(X[:, 2:3], y), X[:, 2:3], y)
    >>> display.posteriors.shape
    (200, 3)
    """
    return PosteriorsDisplay.from_estimator(model, X, y, label=label, margin=margin, resolution=resolution, ax=ax)
