"""Pictures of models, drawn with matplotlib (the extra `plot`).

Every function takes a fitted model, draws into the ``Axes`` that it is given, or into those of a new
figure, and returns them. No function shows a window or touches the state of pyplot: in a notebook
``ax.figure`` is the picture, and ``ax.figure.savefig("file.png")`` writes it.
"""

from abcgbm.plotting.answers import plot_calibration, plot_confusion
from abcgbm.plotting.canvas import new_figure
from abcgbm.plotting.classes import plot_base_classes, plot_class_losses
from abcgbm.plotting.curves import plot_errors, plot_losses
from abcgbm.plotting.features import plot_class_importances, plot_importances
from abcgbm.plotting.tree import plot_tree

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
