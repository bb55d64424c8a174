"""What displays share: validated points, axes, colors and labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._kernels.contract import Array

MARKERS = "osD^vP*X<>"


def get_axes(ax: Any) -> Any:
    """The given axes, or new ones. Matplotlib is imported when the first plot is made."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as problem:
        raise ImportError(
            "fastdisc.plot needs matplotlib: pip install 'fastdisc[plot]'"
        ) from problem
    return plt.subplots()[1] if ax is None else ax


def class_colors(count: int) -> list[Any]:
    """A color for each of some classes."""
    from matplotlib import colormaps

    return [colormaps["tab10" if count <= 10 else "tab20"](k % 20) for k in range(count)]


def _check_points(X: Any, columns: tuple[int, ...]) -> tuple[Array, list[str] | None]:
    """The points to plot, with one of some numbers of columns, and the names of the columns."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] not in columns:
        raise ValueError(
            f"the plot needs {' or '.join(map(str, columns))} features, X has the shape {X.shape}"
        )
    if not len(X) or not np.isfinite(X).all():
        raise ValueError("X must have rows, and finite values")
    return X, names


def _bounding_box(X: Array, margin: float) -> tuple[float, ...]:
    """The range of the points with a margin: (x_low, x_high), or with (..., y_low, y_high)."""
    if not margin >= 0:
        raise ValueError(f"margin must be a number >= 0, got {margin!r}")
    low, high = X.min(axis=0), X.max(axis=0)
    space = margin * np.where(high > low, high - low, 1.0)
    return tuple(float(v) for pair in zip(low - space, high + space, strict=True) for v in pair)


class Display:
    """The points of a plot, the classes of a model, and the methods that draw them."""

    X: Array
    y: Array | None
    names: list[str] | None
    classes: Array
    box: tuple[float, ...]
    ax_: Any
    figure_: Any

    def _set_data(
        self, model: Any, X: Any, y: Any, columns: tuple[int, ...], margin: float
    ) -> Self:
        check_is_fitted(model)
        self.X, self.names = _check_points(X, columns)
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and self.y.shape != (len(self.X),):
            raise ValueError(f"X has {len(self.X)} rows, y has the shape {self.y.shape}")
        self.classes = np.asarray(model.classes_)
        self.box = _bounding_box(self.X, margin)
        return self

    def _grid(self, resolution: int) -> tuple[Array, Array, Any]:
        """The coordinates of a grid over the box, and its points as the model expects rows."""
        if resolution < 2:
            raise ValueError(f"resolution must be a whole number >= 2, got {resolution!r}")
        x_low, x_high, y_low, y_high = self.box
        x, y = np.linspace(x_low, x_high, resolution), np.linspace(y_low, y_high, resolution)
        points = np.column_stack([part.ravel() for part in np.meshgrid(x, y)])
        return x, y, self._with_names(points)

    def _with_names(self, points: Array) -> Any:
        """Points as a data frame if X was one, else as they are."""
        if self.names is None:
            return points
        import pandas as pd

        return pd.DataFrame(points, columns=self.names)

    def _draw_points(self, ax: Any) -> None:
        """The rows of X, with a color and a marker for each class."""
        if self.y is None:
            return
        colors = class_colors(len(self.classes))
        for k, (label, color) in enumerate(zip(self.classes, colors, strict=True)):
            points = self.X[self.y == label]
            if len(points):
                ax.scatter(
                    *points.T,
                    color=color,
                    marker=MARKERS[k % len(MARKERS)],
                    s=18,
                    edgecolors="black",
                    linewidths=0.4,
                    label=str(label),
                    zorder=3,
                )

    def _finish(self, ax: Any) -> Self:
        """Set the limits, labels and legend, and store the axes."""
        names = self.names or ["x0", "x1"]
        ax.set_xlim(*self.box[:2])
        ax.set_xlabel(names[0])
        if len(self.box) == 4:
            ax.set_ylim(*self.box[2:])
            ax.set_ylabel(names[1])
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self
