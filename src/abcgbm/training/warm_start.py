"""Warm starts: what a previous fit leaves to continue."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import row_chunks
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.labels import known_classes
from abcgbm.data.once import lazy
from abcgbm.data.samples import LabelledRows
from abcgbm.data.schema import chosen_columns
from abcgbm.model.history import History, Record
from abcgbm.model.model import Model
from abcgbm.parameters.parameters import Parameters
from abcgbm.parameters.validators import is_auto


@dataclass(frozen=True)
class PreviousFit:
    """Steps that were taken before: what a warm start, or a training that was broken off, goes on from.

    Attributes
    ----------
    model : Model
        The model of these steps.
    history : History
        How it came about; steps after the best one are not gone on from.
    """

    model: Model
    history: History

    @lazy
    def records(self) -> list[Record]:
        """The state before the first step and after each one of the model."""
        return self.history.records()[: self.history.best_iteration + 1]

    def raw(self, rows: LabelledRows, handle_unknown: str, n_threads: int) -> Floats:
        """Return the scores of rows, of shape (n_classes, n_rows), some rows at a time."""
        model = self.model.with_unknown(handle_unknown)
        raw = np.empty((len(model.classes), len(rows)))
        row_numbers = rows.row_numbers
        if isinstance(rows.table, BatchedTable):
            for places, table in rows.table.batches_of_rows(row_numbers):
                raw[:, places] = model.raw(table, n_threads).T
            return raw
        for part in row_chunks(len(rows), rows.table.shape[1]):
            raw[:, part] = model.raw(rows.table.take(row_numbers[part]), n_threads).T
        return raw

    def kept(self, settings: Parameters) -> Parameters:
        """Return the settings with what is left open, but stays as the model has it."""
        kept: dict[str, Any] = {"baseline": self._baseline()}
        if "learning_rate" in self.history.chosen:
            kept["learning_rate"] = self.history.chosen["learning_rate"]
        return replace(
            settings, **{name: x for name, x in kept.items() if is_auto(getattr(settings, name))}
        )

    def check(self, settings: Parameters) -> None:
        """Raise ValueError if settings contradict the model."""
        if settings.classes is not None:
            self._check_classes(settings.classes)
        if (
            not is_auto(settings.baseline)
            and settings.baseline != self._baseline()
            and not self._began_with_one_class()
        ):
            raise ValueError(
                f"baseline={settings.baseline!r} with warm_start=True; the model began with "
                f"baseline={self._baseline()!r}; expected that, or warm_start=False"
            )

    def check_n_iter(self, given: int | str | None) -> None:
        """Raise ValueError if the model has more steps already than are asked for."""
        if isinstance(given, int) and given < self.model.n_iter:
            raise ValueError(
                f"max_iter={given!r} with warm_start=True; expected at least the "
                f"{self.model.n_iter} steps of the model"
            )

    def check_categories(self, categorical_features: Any) -> None:
        """Raise ValueError if other columns are given as categories than the model's."""
        if is_auto(categorical_features):
            return  # a column is a category if it was one
        schema = self.model.encoding.schema
        mine = schema.is_categorical
        chosen = chosen_columns(categorical_features, len(mine), schema.feature_names)
        if not np.array_equal(chosen, mine):
            raise ValueError(
                f"categorical_features={categorical_features!r} with warm_start=True; expected "
                f"the categories of the model, {np.flatnonzero(mine).tolist()}"
            )

    def _check_classes(self, classes: Any) -> None:
        mine = self.model.classes.tolist()
        if known_classes(classes).tolist() != mine:
            raise ValueError(
                f"classes={classes!r} with warm_start=True; expected those of the model, {mine}"
            )

    def _baseline(self) -> str:
        return "prior" if self.model.ensemble.init.any() else "zero"

    def _began_with_one_class(self) -> bool:
        """Whether there were rows of one class alone: then the start is "prior" in any case."""
        return int(np.count_nonzero(self.records[0].class_losses)) <= 1


def comparable(records: list[Record], now: Record) -> list[Record]:
    """Return earlier records without what cannot be compared with the present one.

    The last of them is of the same model as the present one. If its validation loss is another, so
    are the rows; if only the score is, so is what it means. NaN takes the place of such losses and
    scores, so that no best step is chosen by them.
    """
    last = records[-1]
    if math.isnan(now.validation_loss):
        return records
    if now.validation_loss != last.validation_loss:
        return [replace(r, validation_loss=math.nan, validation_score=math.nan) for r in records]
    if not np.array_equal(now.validation_score, last.validation_score, equal_nan=True):
        return [replace(r, validation_score=math.nan) for r in records]
    return records
