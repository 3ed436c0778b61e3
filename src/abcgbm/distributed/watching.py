"""What the client of a fit does with each step: a progress line, and the user's callbacks."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from abcgbm.settings.settings import Settings
from abcgbm.training.callbacks import Means, StepReport
from abcgbm.training.progress import ProgressLine


class Watching:
    """Hears of the steps of a fit on a cluster.

    Parameters
    ----------
    settings : Settings
        What to show, and whom to call.
    """

    def __init__(self, settings: Settings) -> None:
        self.callbacks = settings.callbacks
        most = settings.max_iter if isinstance(settings.max_iter, int) else None
        self._line = ProgressLine(most, settings.verbose)

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

    def hear(self, report: StepReport, means: Means) -> bool:
        """Hear of a step; return whether to stop."""
        if self._line.enabled:
            self._line.show(report.step, *means, report.phase, report.base_class)
        returned = [callback(report) for callback in self.callbacks]
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)
