"""Plots of discriminants with matplotlib (the extra `plot`), as displays like scikit-learn's.

A function makes the plot and returns a display, which holds the figure and the axes (`figure_`,
`ax_`) and the numbers that were drawn. Its method `plot` draws it again, on other axes.
"""

from .hyperplanes import HyperplanesDisplay, plot_hyperplanes
from .posteriors import PosteriorsDisplay, plot_posteriors
from .regions import RegionsDisplay, plot_regions

__all__ = [
    "HyperplanesDisplay",
    "PosteriorsDisplay",
    "RegionsDisplay",
    "plot_hyperplanes",
    "plot_posteriors",
    "plot_regions",
]
