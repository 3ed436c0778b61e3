"""Numbers that tell how good a model is, once: plots and reports draw the same ones."""

from abcgbm.evaluation.answers import Answers, answers_of
from abcgbm.evaluation.base_classes import BaseClassRun, base_class_runs
from abcgbm.evaluation.calibration import Calibration, class_calibration, top_calibration
from abcgbm.evaluation.confusion import Confusion
from abcgbm.evaluation.hardest import HardRow, hardest_rows
from abcgbm.evaluation.shapley import ShapleySummary, shapley_summary
from abcgbm.evaluation.staged import StagedScores, staged_scores

__all__ = [
    "Answers",
    "BaseClassRun",
    "Calibration",
    "Confusion",
    "HardRow",
    "ShapleySummary",
    "StagedScores",
    "answers_of",
    "base_class_runs",
    "class_calibration",
    "hardest_rows",
    "shapley_summary",
    "staged_scores",
    "top_calibration",
]
