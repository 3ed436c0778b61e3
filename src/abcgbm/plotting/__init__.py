"""Plots of fitted models with matplotlib (extra `plot`).

Every function takes a fitted model, draws into the given ``Axes`` or those of a new figure, and returns
them. No function opens a window or changes the state of pyplot: notebooks show ``ax.figure``, and
``ax.figure.savefig("file.png")`` writes it.
"""

from abcgbm.plotting._axes import new_figure
from abcgbm.plotting.curves import plot_base_classes, plot_class_losses, plot_errors, plot_losses
from abcgbm.plotting.importances import plot_class_importances, plot_importances, plot_tree
from abcgbm.plotting.predictions import plot_calibration, plot_confusion

__all__ = [
    "new_figure",
    "plot_base_classes",
    "plot_calibration",
    "plot_class_importances",
    "plot_class_losses",
    "plot_confusion",
    "plot_errors",
    "plot_importances",
    "plot_losses",
    "plot_tree",
]
