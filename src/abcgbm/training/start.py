"""Where training starts: from zero, from the class frequencies, or from an earlier fit."""

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from abcgbm.data.columns import Floats
from abcgbm.data.encoding import row_chunks
from abcgbm.data.labels import known_classes
from abcgbm.data.lazy import lazy
from abcgbm.data.parts.parted_table import PartedTable
from abcgbm.data.rows import LabelledRows
from abcgbm.data.tables import chosen_columns
from abcgbm.model.history import History, Record
from abcgbm.model.model import Model
from abcgbm.settings.checks import is_auto
from abcgbm.settings.settings import Settings

_GRID = 2**32  # scores are multiples of one part in this


def init_scores(init: str, rows: LabelledRows) -> Floats:
    """Return the scores of the classes before the first step, of shape (n_classes,).

    With rows of one class alone no tree can be split, so the frequencies are all there is to learn.
    """
    if init == "zero" and not has_one_class(rows):
        return np.zeros(len(rows.of_class))
    return log_frequencies(rows)


def has_one_class(rows: LabelledRows) -> bool:
    """Whether the rows of all ranks are of the same class."""
    return int(np.count_nonzero(rows.of_class)) == 1


def log_frequencies(rows: LabelledRows) -> Floats:
    """Return the logarithms of the weighted class frequencies, on the grid of the scores.

    A class without rows counts as half an average row.
    """
    weight_of_class = np.zeros(len(rows.of_class), dtype=np.int64)
    np.add.at(weight_of_class, rows.y, rows.integer_weights.weight)
    rows.share.reducer.sum(weight_of_class)
    n_rows, total = rows.n_rows, int(weight_of_class.sum())
    # Twice the weight times the rows, so that half an average row is an integer too.
    counts = [2 * n_rows * int(w) or total for w in weight_of_class]
    return np.array([_log_on_grid(count, 2 * n_rows * total) for count in counts])


def _log_on_grid(numerator: int, denominator: int) -> float:
    """Return log(numerator / denominator); decimals have the same logarithm on every machine."""
    with localcontext(prec=40):
        log = (Decimal(numerator) / Decimal(denominator)).ln()
        return float(int((log * _GRID).to_integral_value()) / _GRID)


@dataclass(frozen=True)
class EarlierFit:
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
        return self.history.records()[: self.history.best_step + 1]

    def raw(self, rows: LabelledRows, handle_unknown: str, n_threads: int) -> Floats:
        """Return the scores of rows, of shape (n_classes, n_rows), some rows at a time."""
        model = self.model.with_unknown(handle_unknown)
        raw = np.empty((len(model.classes), len(rows)))
        row_numbers = rows.row_numbers
        if isinstance(rows.table, PartedTable):
            for places, table in rows.table.parts_of_rows(row_numbers):
                raw[:, places] = model.raw(table, n_threads).T
            return raw
        for part in row_chunks(len(rows), rows.table.shape[1]):
            raw[:, part] = model.raw(rows.table.take(row_numbers[part]), n_threads).T
        return raw

    def kept(self, settings: Settings) -> Settings:
        """Return the settings with what is left open, but stays as the model has it."""
        kept: dict[str, Any] = {"init": self._init()}
        if "learning_rate" in self.history.chosen:
            kept["learning_rate"] = self.history.chosen["learning_rate"]
        return replace(
            settings, **{name: x for name, x in kept.items() if is_auto(getattr(settings, name))}
        )

    def check(self, settings: Settings) -> None:
        """Raise ValueError if settings contradict the model."""
        if settings.classes is not None:
            self._check_classes(settings.classes)
        if (
            not is_auto(settings.init)
            and settings.init != self._init()
            and not self._began_with_one_class()
        ):
            raise ValueError(
                f"init={settings.init!r} with warm_start=True; the model began with "
                f"init={self._init()!r}; expected that, or warm_start=False for a model of its own"
            )

    def check_steps(self, given: int | str | None) -> None:
        """Raise ValueError if the model has more steps already than are asked for."""
        if isinstance(given, int) and given < self.model.n_steps:
            raise ValueError(
                f"max_iter={given!r} with warm_start=True; expected at least the "
                f"{self.model.n_steps} steps of the model"
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

    def _init(self) -> str:
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
