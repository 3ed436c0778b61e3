"""Which class was the base when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.history import History


class BaseClassRun(NamedTuple):
    """Steps one after the other with the same base class; the first step of a model is 1."""

    class_number: int
    first: int
    n_steps: int


def history_of_model(model: ABCBoostClassifier) -> History:
    """Return the record of the training that the model is of: the second, if it was refitted."""
    return model.history_ if model.refit_history_ is None else model.refit_history_


def base_class_runs(model: ABCBoostClassifier) -> list[BaseClassRun]:
    """Return the runs of base classes of a model, in order; steps without one are in none."""
    base = history_of_model(model).base_class[: model.model_.n_steps]
    starts = np.flatnonzero(np.diff(base, prepend=NO_BASE - 1))
    ends = np.append(starts, len(base))[1:]
    runs = zip(base[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [BaseClassRun(k, start + 1, end - start) for k, start, end in runs if k != NO_BASE]
