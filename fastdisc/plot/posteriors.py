"""Plots of posterior probabilities over one or two features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._kernels.contract import Array
from .display import Display, class_colors, get_axes

CONTOURS = (0.5, 0.7, 0.9)


class PosteriorsDisplay(Display):
    """Posterior probabilities over one or two features.

    Made by `from_estimator` or `plot_posteriors`.

    Attributes
    ----------
    grid : ndarray of shape (resolution,), or a pair of them
    posteriors : ndarray of shape (resolution, K) or (resolution, resolution, K)
    label : object
        The class whose posterior is drawn over two features; None for the largest posterior.
    ax_, figure_ : matplotlib axes and figure
    """

    grid: Any
    posteriors: Array
    label: Any

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        label: Any = None,
        margin: float = 0.1,
        resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Compute the posteriors, and draw them.

        Parameters
        ----------
        model : fitted classifier with predict_proba, of one or two features
        X : array-like or data frame of shape (N, 1) or (N, 2)
        y : array-like of shape (N,), optional
            Classes of the rows, which are drawn as points; without y they only set the limits.
        label : optional
            The class whose posterior is drawn over two features; by default the second of two
            classes, and the largest posterior of more.
        margin : float, default=0.1
            Space around the points, as a fraction of their range.
        resolution : int, default=200
            The number of grid points per axis.
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        PosteriorsDisplay
        """
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{type(model).__name__} has no predict_proba")
        self = cls()._set_data(model, X, y, (1, 2), margin)
        if label is not None and label not in self.classes:
            raise ValueError(f"{label!r} is not one of the classes {self.classes.tolist()}")
        self.label = self.classes[1] if label is None and len(self.classes) == 2 else label
        if self.X.shape[1] == 1:
            self.grid = np.linspace(self.box[0], self.box[1], resolution)
            self.posteriors = model.predict_proba(self._with_names(self.grid[:, None]))
        else:
            x, z, points = self._grid(resolution)
            P = model.predict_proba(points)
            self.grid, self.posteriors = (x, z), P.reshape(resolution, resolution, -1)
        return self.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the posteriors.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
        """
        ax = get_axes(ax)
        if self.posteriors.ndim == 2:
            self._draw_curves(ax)
        else:
            self._draw_image(ax)
        return self._finish(ax)

    def _draw_curves(self, ax: Any) -> None:
        """A curve for each class over one feature."""
        for k, color in enumerate(class_colors(len(self.classes))):
            name = f"P({self.classes[k]} | x)"
            ax.plot(self.grid, self.posteriors[:, k], color=color, label=name)
            if self.y is not None:
                x = self.X[self.y == self.classes[k], 0]
                height = np.full(len(x), -0.03 - 0.03 * k)
                ax.scatter(x, height, color=color, marker="|", s=20)
        ax.set_ylabel("posterior")

    def _draw_image(self, ax: Any) -> None:
        """An image and contours over two features."""
        if self.label is None:
            P, low, name = self.posteriors.max(axis=2), 1 / len(self.classes), "largest posterior"
        else:
            code = int(np.flatnonzero(self.classes == self.label)[0])
            P, low, name = self.posteriors[:, :, code], 0.0, f"P({self.label} | x)"
        image = ax.imshow(
            P,
            extent=self.box,
            origin="lower",
            aspect="auto",
            cmap="viridis",
            vmin=low,
            vmax=1,
            alpha=0.7,
        )
        if P.min() < CONTOURS[-1] and P.max() > CONTOURS[0]:
            ax.contour(*self.grid, P, levels=list(CONTOURS), colors="black", linewidths=0.6)
        ax.figure.colorbar(image, ax=ax, label=name)
        self._draw_points(ax)


def plot_posteriors(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    label: Any = None,
    margin: float = 0.1,
    resolution: int = 200,
    ax: Any = None,
) -> PosteriorsDisplay:
    """Plot posterior probabilities and the points.

    Over one feature there is a curve for each class; over two, an image with contours.

    Parameters
    ----------
    model, X, y, label, margin, resolution, ax
        As in `PosteriorsDisplay.from_estimator`.

    Returns
    -------
    PosteriorsDisplay

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
    return PosteriorsDisplay.from_estimator(
        model, X, y, label=label, margin=margin, resolution=resolution, ax=ax
    )
