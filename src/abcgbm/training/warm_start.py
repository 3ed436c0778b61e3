"""Warm starts: the previous fit that training continues."""

# A warm start needs no state except the model. Scores are sums of multiples of 2^-32 and therefore
# exact: predicting those of the previous trees gives the bits that training had.

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
    """The iterations that a warm start, or a resumed fit, continues.

    Attributes
    ----------
    model : Model
        Model of these iterations.
    history : History
        Its history; iterations after the best one are not continued.
    """

    model: Model
    history: History

    @lazy
    def records(self) -> list[Record]:
        """Records before the first iteration and after each iteration of the model."""
        return self.history.records()[: self.history.best_iteration + 1]

    def raw(self, rows: LabelledRows, handle_unknown: str, n_threads: int) -> Floats:
        """Return the scores of rows, of shape (n_classes, n_rows), computed in chunks."""
        model = self.model.with_unknown(handle_unknown)
        raw = np.empty((len(model.classes), len(rows)))
        row_numbers = rows.row_numbers
        if isinstance(rows.table, BatchedTable):
            for places, table in rows.table.batches_of_rows(row_numbers):
                raw[:, places] = model.raw_scores(table, n_threads).T
            return raw
        for chunk in row_chunks(len(rows), rows.table.shape[1]):
            raw[:, chunk] = model.raw_scores(rows.table.take(row_numbers[chunk]), n_threads).T
        return raw

    def with_model_defaults(self, settings: Parameters) -> Parameters:
        """Return the parameters with the model's values in place of "auto"."""
        values: dict[str, Any] = {"baseline": self._baseline()}
        if "learning_rate" in self.history.chosen:
            values["learning_rate"] = self.history.chosen["learning_rate"]
        return replace(
            settings, **{name: x for name, x in values.items() if is_auto(getattr(settings, name))}
        )

    def check(self, settings: Parameters) -> None:
        """Raise ValueError if parameters contradict the model."""
        labels = self.model.classes.tolist()
        if settings.classes is not None and known_classes(settings.classes).tolist() != labels:
            raise ValueError(
                f"classes={settings.classes!r} with warm_start=True; expected those of the model, "
                f"{labels}"
            )
        # With rows of a single class the baseline is "prior" in any case.
        had_one_class = int(np.count_nonzero(self.records[0].class_losses)) <= 1
        is_given = not is_auto(settings.baseline)
        if is_given and settings.baseline != self._baseline() and not had_one_class:
            raise ValueError(
                f"baseline={settings.baseline!r} with warm_start=True; the model was trained with "
                f"baseline={self._baseline()!r}; expected the same, or warm_start=False"
            )

    def check_n_iter(self, max_iter: int | str | None) -> None:
        """Raise ValueError if the model has more iterations than max_iter."""
        if isinstance(max_iter, int) and max_iter < self.model.n_iter:
            raise ValueError(
                f"max_iter={max_iter!r} with warm_start=True; expected at least the "
                f"{self.model.n_iter} iterations of the model"
            )

    def check_categories(self, categorical_features: Any) -> None:
        """Raise ValueError if other columns are given as categorical than those of the model."""
        if is_auto(categorical_features):
            return  # the kinds of columns are the model's
        schema = self.model.encoding.schema
        expected = schema.is_categorical
        chosen = chosen_columns(categorical_features, len(expected), schema.feature_names)
        if not np.array_equal(chosen, expected):
            raise ValueError(
                f"categorical_features={categorical_features!r} with warm_start=True; expected "
                f"the categorical features of the model, {np.flatnonzero(expected).tolist()}"
            )

    def _baseline(self) -> str:
        return "prior" if self.model.ensemble.init.any() else "zero"


def comparable_records(records: list[Record], now: Record) -> list[Record]:
    """Return previous records with NaN for losses and scores that cannot be compared with now.

    The last record is of the same model as the present one. If its validation loss differs, the
    validation rows do; if only the score differs, so does the scoring. With NaN no best iteration is
    chosen by such values.
    """
    last = records[-1]
    if math.isnan(now.validation_loss):
        return records
    if now.validation_loss != last.validation_loss:
        return [replace(r, validation_loss=math.nan, validation_score=math.nan) for r in records]
    if not np.array_equal(now.validation_score, last.validation_score, equal_nan=True):
        return [replace(r, validation_score=math.nan) for r in records]
    return records
