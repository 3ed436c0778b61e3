"""Numbers that tell how good a model is, once: plots and reports draw the same ones."""

from abcgbm.evaluation.class_metrics import (
    Calibration,
    Confusion,
    class_calibration,
    top_calibration,
)
from abcgbm.evaluation.curves import BaseClassRun, StagedScores, base_class_runs, staged_scores
from abcgbm.evaluation.explanations import HardRow, ShapleySummary, hardest_rows, shapley_summary
from abcgbm.evaluation.predictions import Answers, answers_of

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
