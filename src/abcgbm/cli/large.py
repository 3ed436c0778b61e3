"""Files that `abcgbm train` reads in parts: those beyond a share of the memory, and many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abcgbm import ABCBoostClassifier, LargeTable
from abcgbm.cli.failure import Misuse
from abcgbm.cli.options import TableOptions
from abcgbm.cli.tables import Columns
from abcgbm.data.files.arrow_files import ArrowFile
from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, shortened
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.data.files.table_file import column_called, open_table
from abcgbm.data.parts.parted_table import features_of
from abcgbm.settings.free_memory import available_bytes, shown_bytes

_SHARE = 4  # a table that takes more than this part of the free memory is read in parts
_BYTES_OF_A_VALUE = 8


@dataclass(frozen=True)
class Memory:
    """What the user says of memory; anything lets a table be read in parts."""

    memory: str | None = None
    cache_dir: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether the user asks for a table in parts."""
        return self.memory is not None or self.cache_dir is not None


@dataclass(frozen=True)
class PartsToLearn:
    """A table to learn from that is read in parts.

    Attributes
    ----------
    large : LargeTable
        The table.
    path : Path
        What the user called it.
    label, weight : str
        The columns of labels and of weights.
    given : dict
        What else the table was opened with; another one is opened alike.
    """

    large: LargeTable
    path: Path
    label: str
    weight: str | None
    given: dict[str, Any]

    @property
    def arguments(self) -> tuple[LargeTable, str, str | None]:
        """The arguments of fit."""
        return self.large, self.label, self.weight

    def validation(self, path: Path | None) -> dict[str, Any]:
        """Return the arguments of fit for a table to validate on."""
        if path is None:
            return {}
        other = LargeTable(str(path), **self.given)
        return {"X_val": other, "y_val": self.label, "sample_weight_val": self.weight}

    def categories(self, chosen: Sequence[str] | None) -> list[str]:
        """Return the features that are categories: those of text, and those that were chosen."""
        schema = features_of(self.large, (self.label, self.weight), "auto")
        names = [] if schema.feature_names is None else schema.feature_names.tolist()
        missing = [name for name in chosen or () if name not in names]
        if missing:
            raise ValueError(f"--categorical {missing[0]}; expected one of {shortened(names, 20)}")
        by_type = dict(zip(names, schema.is_categorical.tolist(), strict=True))
        return [name for name in names if by_type[name] or name in (chosen or ())]

    def choose_categories(
        self, estimator: ABCBoostClassifier, chosen: Sequence[str] | None
    ) -> None:
        """Let columns of numbers be categories beside those of text."""
        if chosen is not None:
            estimator.categorical_features = self.categories(chosen)

    def shown(self, chosen: Sequence[str] | None) -> str:
        """Say that it is read in parts, and what became of its columns."""
        size = self.large.source.n_bytes
        of = "" if size is None else f" of {shown_bytes(size)}"
        found = shortened(self.categories(chosen), 5) or "none"
        return f"{self.path}: a table{of}, read in parts; categories: {found}"


def parts_to_learn(
    path: Path, columns: Columns, tables: TableOptions, memory: Memory
) -> PartsToLearn | None:
    """Return a table that is to be read in parts; None if it is one file that fits into memory."""
    reading = tables.reading()
    if not _is_for_parts(path, reading, memory):
        return None
    given: dict[str, Any] = {
        "memory": memory.memory,
        "cache_dir": memory.cache_dir,
        "missing": reading.missing,
        "format": reading.format,
        "header": reading.header,
        "decimal": reading.decimal,
        "delimiter": reading.delimiter,
        "encoding": reading.encoding,
    }
    if columns.label is None:
        raise Misuse("--label is missing; expected the column of labels, by name or position")
    large = LargeTable(str(path), **given)
    names = large.column_names
    label = column_called(names, columns.label, path, "label")
    weight = (
        None if columns.weight is None else column_called(names, columns.weight, path, "weight")
    )
    given["ignore"] = [
        column_called(names, name, path, "column to ignore") for name in columns.ignored
    ]
    large.leave_out(given["ignore"])
    return PartsToLearn(large, path, label, weight, given)


def _is_for_parts(path: Path, reading: Reading, memory: Memory) -> bool:
    if path.is_dir() or not path.exists():
        return path.is_dir() or bool({*"*?["}.intersection(str(path)))
    if reading.format_of(path) == "libsvm":
        if memory.is_given:
            raise TableFileError(path, "LibSVM is not read in parts; expected CSV or Parquet")
        return False
    free = available_bytes()
    return memory.is_given or (free is not None and _table_bytes(path, reading) * _SHARE > free)


def _table_bytes(path: Path, reading: Reading) -> int:
    """Return about how many bytes a table takes in memory."""
    size = path.stat().st_size
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile) or not isinstance(file, ArrowFile):
        return size
    return max(size, _BYTES_OF_A_VALUE * len(file.names) * (file.n_rows or 0))
