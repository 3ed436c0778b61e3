"""Evaluation of a fitted model on labelled rows, for plots and reports."""

from abcgbm.evaluation.class_metrics import (
    Calibration,
    Confusion,
    class_calibration,
    top_calibration,
)
from abcgbm.evaluation.curves import BaseClassRun, StagedScores, base_class_runs, staged_scores
from abcgbm.evaluation.explanations import HardRow, ShapleySummary, hardest_rows, shapley_summary
from abcgbm.evaluation.predictions import Predictions, predictions_of

__all__ = [
    "BaseClassRun",
    "Calibration",
    "Confusion",
    "HardRow",
    "Predictions",
    "ShapleySummary",
    "StagedScores",
    "base_class_runs",
    "class_calibration",
    "hardest_rows",
    "predictions_of",
    "shapley_summary",
    "staged_scores",
    "top_calibration",
]
