"""Plots of decision regions."""

from __future__ import annotations

from typing import Any, Self

from .._kernels.contract import Array
from ..geometry import boundary_2d
from ..geometry.regions import predicted_codes
from .display import Display, class_colors, get_axes

REJECTED_COLOR = "0.8"  # grey


class RegionsDisplay(Display):
    """Decision regions of a classifier of two features.

    Made by `from_estimator` or `plot_regions`.

    Attributes
    ----------
    polygons : dict from label to list of ndarrays of shape (m, 2), or None
        The exact regions of a linear classifier; rejected regions have the key None.
    codes : ndarray of shape (resolution, resolution), or None
        For other classifiers, the codes of the classes on a grid; K where rows are rejected.
    ax_, figure_ : matplotlib axes and figure
    """

    polygons: dict[Any, list[Array]] | None
    codes: Array | None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        margin: float = 0.1,
        resolution: int = 300,
        ax: Any = None,
        alpha: float = 0.3,
    ) -> Self:
        """Compute the regions, and draw them.

        Parameters
        ----------
        model : fitted classifier of two features
            The regions of a linear classifier are exact polygons; those of others are evaluated on
            a grid.
        X : array-like or data frame of shape (N, 2)
        y : array-like of shape (N,), optional
            Classes of the rows, which are drawn as points; without y they only set the limits.
        margin : float, default=0.1
            Space around the points, as a fraction of their range.
        resolution : int, default=300
            The number of grid points per axis.
        ax : matplotlib axes, optional
            New ones by default.
        alpha : float, default=0.3
            The opacity of the regions.

        Returns
        -------
        RegionsDisplay
        """
        self = cls()._set_data(model, X, y, (2,), margin)
        self.polygons = self.codes = None
        try:
            self.polygons = boundary_2d(model, self.box)
        except ValueError:  # not a linear classifier
            _, _, points = self._grid(resolution)
            self.codes = predicted_codes(model, points).reshape(resolution, resolution)
        return self.plot(ax=ax, alpha=alpha)

    def plot(self, ax: Any = None, *, alpha: float = 0.3) -> Self:
        """Draw the regions.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        alpha : float, default=0.3
            The opacity of the regions.

        Returns
        -------
        self
        """
        ax = get_axes(ax)
        colors = [*class_colors(len(self.classes)), REJECTED_COLOR]
        if self.polygons is not None:
            self._draw_polygons(ax, colors, self.polygons, alpha)
        else:
            self._draw_codes(ax, colors, alpha)
        self._draw_points(ax)
        return self._finish(ax)

    def _draw_polygons(
        self, ax: Any, colors: list[Any], polygons: dict[Any, list[Array]], alpha: float
    ) -> None:
        from matplotlib.patches import Polygon

        for color, region in zip(colors, polygons.values(), strict=False):
            # Edges between the convex parts of one region are not boundaries.
            edge = "none" if len(region) > 1 else "black"
            for vertices in region:
                patch = Polygon(
                    vertices, facecolor=color, edgecolor=edge, alpha=alpha, linewidth=0.8
                )
                ax.add_patch(patch)

    def _draw_codes(self, ax: Any, colors: list[Any], alpha: float) -> None:
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


def plot_regions(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    margin: float = 0.1,
    resolution: int = 300,
    ax: Any = None,
    alpha: float = 0.3,
) -> RegionsDisplay:
    """Plot the decision regions of a classifier of two features, and the points.

    Rejected regions are grey.

    Parameters
    ----------
    model, X, y, margin, resolution, ax, alpha
        As in `RegionsDisplay.from_estimator`.

    Returns
    -------
    RegionsDisplay

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastdisc import LogisticRegression
    >>> from fastdisc.plot import plot_regions
    >>> X, y = load_iris(return_X_y=True)
    >>> display = plot_regions(LogisticRegression().fit(X[:, 2:], y), X[:, 2:], y)
    >>> display.figure_.savefig("regions.png")  # doctest: +SKIP
    """
    return RegionsDisplay.from_estimator(
        model, X, y, margin=margin, resolution=resolution, ax=ax, alpha=alpha
    )
