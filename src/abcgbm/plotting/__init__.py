"""Pictures of models, drawn with matplotlib (the extra `plot`).

Every function takes a fitted model, draws into the ``Axes`` that it is given, or into those of a new
figure, and returns them. No function shows a window or touches the state of pyplot: in a notebook
``ax.figure`` is the picture, and ``ax.figure.savefig("file.png")`` writes it.
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
