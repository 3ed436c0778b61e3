"""What the client of a fit does with each step: a progress line, and the user's callbacks."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from abcgbm.distributed.partitions import Partitions
from abcgbm.settings.settings import Settings
from abcgbm.training.callbacks import StepReport
from abcgbm.training.progress import ProgressLine


class Watching:
    """Hears of the steps of a fit on a cluster.

    Parameters
    ----------
    settings : Settings
        What to show, and whom to call.
    rows : Partitions
        What is learned from, and validated on.
    """

    def __init__(self, settings: Settings, rows: Partitions) -> None:
        self.callbacks = settings.callbacks
        most = settings.max_iter if isinstance(settings.max_iter, int) else None
        self._line = ProgressLine(most, settings.verbose)
        self._rows = rows
        self._weights: tuple[float, float] | None = None

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.__exit__(kind, error, trace)

    def hear(self, report: StepReport) -> bool:
        """Hear of a step; return whether to stop."""
        if self._line.enabled:
            self._show(report)
        returned = [callback(report) for callback in self.callbacks]
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)

    def _show(self, report: StepReport) -> None:
        """Show losses as means over the weights that were given."""
        if self._weights is None:
            self._weights = self._rows.weights()
        learned, validated = self._weights
        total = report.validation_loss
        of_validation = total / validated if total is not None and validated > 0 else None
        loss = report.train_loss / learned
        self._line.show(report.step, loss, of_validation, report.phase, report.base_class)
