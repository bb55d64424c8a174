"""Plots of the lines where linear discriminants of two features are 0."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._kernels.contract import Array
from ..geometry import Hyperplane, hyperplane
from .display import Display, class_colors, get_axes

LINE_COLORS, LINE_STYLES = ("0.2", "0.4", "0.6"), ("-", "--", "-.", ":")
ARROW_LENGTH = 0.07  # relative to the diagonal of the plot


class HyperplanesDisplay(Display):
    """The lines where the discriminants of a linear model of two features are 0.

    Made by `from_estimator` or `plot_hyperplanes`.

    Attributes
    ----------
    planes : list of Hyperplane
    segments : list of ndarrays of shape (2, 2), or None
        The ends of each line within the plot; None for a line that does not cross it.
    ax_, figure_ : matplotlib axes and figure
    """

    planes: list[Hyperplane]
    segments: list[Array | None]

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        margin: float = 0.1,
        ax: Any = None,
        normals: bool = True,
    ) -> Self:
        """Compute the lines, and draw them.

        Parameters
        ----------
        model : fitted linear classifier of two features
        X : array-like or data frame of shape (N, 2)
        y : array-like of shape (N,), optional
            Classes of the rows, which are drawn as points; without y they only set the limits.
        margin : float, default=0.1
            Space around the points, as a fraction of their range.
        ax : matplotlib axes, optional
            New ones by default.
        normals : bool, default=True
            Whether arrows show the positive sides.

        Returns
        -------
        HyperplanesDisplay
        """
        self = cls()._set_data(model, X, y, (2,), margin)
        planes = hyperplane(model)
        self.planes = [planes] if isinstance(planes, Hyperplane) else planes
        self.segments = [_segment(plane, self.box) for plane in self.planes]
        return self.plot(ax=ax, normals=normals)

    def plot(self, ax: Any = None, *, normals: bool = True) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        normals : bool, default=True
            Whether arrows show the positive sides.

        Returns
        -------
        self
        """
        ax = get_axes(ax)
        for k, (plane, ends) in enumerate(zip(self.planes, self.segments, strict=True)):
            if ends is not None:
                self._draw_line(ax, k, plane, ends, normals)
        self._draw_points(ax)
        return self._finish(ax)

    def _draw_line(
        self, ax: Any, k: int, plane: Hyperplane, ends: Array, with_normal: bool
    ) -> None:
        if len(self.planes) == len(self.classes):  # one discriminant per class
            color, style = class_colors(len(self.planes))[k], "-"
        else:
            color, style = LINE_COLORS[k % len(LINE_COLORS)], LINE_STYLES[k % len(LINE_STYLES)]
        ax.plot(*ends.T, color=color, label=f"{plane.name}(x) = 0", linestyle=style)
        if with_normal:
            size = ARROW_LENGTH * np.hypot(self.box[1] - self.box[0], self.box[3] - self.box[2])
            middle = ends.mean(axis=0)
            arrow = {"arrowstyle": "->", "color": color}
            ax.annotate("", xy=middle + size * plane.normal, xytext=middle, arrowprops=arrow)


def _segment(plane: Hyperplane, box: tuple[float, ...]) -> Array | None:
    """The ends of a line within a box, (2, 2); None if it does not cross the box."""
    (a, b), (x0, x1, y0, y1) = plane.w, box
    crossings = [(x, -(plane.w0 + a * x) / b) for x in (x0, x1)] if b else []
    crossings += [(-(plane.w0 + b * y) / a, y) for y in (y0, y1)] if a else []
    slack = 1e-9 * max(x1 - x0, y1 - y0)
    inside = [
        (x, y)
        for x, y in crossings
        if x0 - slack <= x <= x1 + slack and y0 - slack <= y <= y1 + slack
    ]
    if len(inside) < 2:
        return None
    along = np.array(inside) @ np.array([-b, a])
    ends = np.array([inside[int(along.argmin())], inside[int(along.argmax())]])
    return ends if np.ptp(along) > 0 else None


def plot_hyperplanes(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    margin: float = 0.1,
    ax: Any = None,
    normals: bool = True,
) -> HyperplanesDisplay:
    """Plot the lines where the discriminants of a linear model are 0, and the points.

    Parameters
    ----------
    model, X, y, margin, ax, normals
        As in `HyperplanesDisplay.from_estimator`.

    Returns
    -------
    HyperplanesDisplay

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
