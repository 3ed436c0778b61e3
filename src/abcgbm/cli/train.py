"""`abcgbm train`: a table file to a model file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from abcgbm import ABCBoostClassifier, Categorical, LargeTable
from abcgbm.cli.console import Misuse, tell
from abcgbm.cli.options import Jobs, Label, TableFile, TableOptions, writable
from abcgbm.cli.parameters import ParameterOptions, callbacks_of, given_parameters
from abcgbm.cli.tables import Columns, LabelledTable, read_to_learn
from abcgbm.data.files.arrow import ArrowFile
from abcgbm.data.files.batched_table import features_of
from abcgbm.data.files.column_types import columns_of_type, is_text
from abcgbm.data.files.file_source import column_called, open_table
from abcgbm.data.files.formats import Reading
from abcgbm.data.files.sources import files_of
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.errors import TableFileError, format_bytes, quoted_list, require_pyarrow
from abcgbm.parameters.machine import available_bytes
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.checkpoint import check_replaceable
from abcgbm.training.fit_run import FitArguments

_SHARE = 4  # a table that takes more than this part of the free memory is read in parts
_BYTES_OF_A_VALUE = 8


def set_categories(estimator: ABCBoostClassifier, columns: list[str]) -> None:
    """Set the categorical columns; how they are split stays as it is."""
    given = estimator.categorical_features
    if isinstance(given, Categorical):
        estimator.set_params(categorical_features__columns=columns)
    else:
        estimator.categorical_features = columns


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
class BatchesToLearn:
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
            raise ValueError(
                f"--categorical {missing[0]}; expected one of {quoted_list(names, 20)}"
            )
        by_type = dict(zip(names, schema.is_categorical.tolist(), strict=True))
        return [name for name in names if by_type[name] or name in (chosen or ())]

    def choose_categories(
        self, estimator: ABCBoostClassifier, chosen: Sequence[str] | None
    ) -> None:
        """Let columns of numbers be categories beside those of text."""
        if chosen is not None:
            set_categories(estimator, self.categories(chosen))

    def shown(self, chosen: Sequence[str] | None) -> str:
        """Say that it is read in parts, and what became of its columns."""
        size = self.large.source.n_bytes
        of = "" if size is None else f" of {format_bytes(size)}"
        found = quoted_list(self.categories(chosen), 5) or "none"
        return f"{self.path}: a table{of}, read in parts; categories: {found}"


def batches_to_learn(
    path: Path, columns: Columns, tables: TableOptions, memory: Memory
) -> BatchesToLearn | None:
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
    return BatchesToLearn(large, path, label, weight, given)


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


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of the table are."""

    label: Label = None
    weight: Annotated[str | None, typer.Option("--weight", help="The column of weights.")] = None
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="A column not to learn from (repeatable).")
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical",
            help="A column of numbers that are categories (repeatable); text always is.",
        ),
    ] = None

    def columns(self) -> Columns:
        """Return these options as the reader of tables takes them."""
        return Columns(self.label, self.weight, tuple(self.ignore or ()))


@dataclass(frozen=True)
class FurtherOptions:
    """Validation, parameters of any kind, and what a long training needs."""

    valid: Annotated[
        Path | None, typer.Option("--valid", help="A table to validate on, with the same columns.")
    ] = None
    params: Annotated[
        Path | None,
        typer.Option("--params", help="A TOML file of parameters, named as in Python."),
    ] = None
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE: any parameter, as TOML has it, or an object (repeatable).",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", help="Seconds after which no iteration begins."),
    ] = None
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Where to write checkpoints.")
    ] = None
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-every", help="Iterations between checkpoints; default: a minute."
        ),
    ] = None
    resume: Annotated[Path | None, typer.Option("--resume", help="A checkpoint to resume.")] = None
    keep_on_interrupt: Annotated[
        bool, typer.Option("--keep-on-interrupt", help="Ctrl-C keeps the model so far.")
    ] = False
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="What training may take, such as 4GB; by default all free."),
    ] = None
    cache_dir: Annotated[
        Path | None,
        typer.Option("--cache-dir", help="A folder for scratch files; nothing is left there."),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            "-f",
            help="Replace a file that is there already, by the model or a checkpoint.",
        ),
    ] = False
    n_jobs: Jobs = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False

    def check_checkpoint(self, path: Path | None, model: Path, read: Sequence[Path]) -> None:
        """Refuse to write checkpoints over the model, or over a file that may be of use."""
        check_replaceable(path, read, force=self.force)
        if path is not None and os.path.realpath(path) == os.path.realpath(model):
            raise Misuse(f"the checkpoint and the model are both {model}; expected two files")

    def room(self) -> Memory:
        """Return what training may take; where it is given, the table is read in parts."""
        return Memory(self.memory, self.cache_dir)

    def estimator(self, options: Any) -> ABCBoostClassifier:
        """Return the estimator with the parameters that were given."""
        limits = (self.time_limit, self.checkpoint, self.checkpoint_every, self.keep_on_interrupt)
        own = {"callbacks": callbacks_of(*limits), "verbose": 0 if self.quiet else 1}
        if self.n_jobs is not None:
            own["n_jobs"] = self.n_jobs
        given = given_parameters(options, self.params, self.set) | own
        return ABCBoostClassifier().set_params(**given)


def train(
    file: TableFile,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="The model file to write, such as out.abcgbm.")
    ],
    columns: ColumnOptions,
    parameters: ParameterOptions,
    further: FurtherOptions,
    tables: TableOptions,
) -> None:
    """Train on a table file, or on a folder or pattern of them, and write the model.

    Text columns are categories, no value needs to be filled in, and defaults are those of Python.
    """
    read = _files_read((file, further.valid), further.params)
    resumed = [] if further.resume is None else [further.resume]
    target = writable(model, [*read, *resumed], force=further.force)
    say = (lambda _: None) if further.quiet else tell
    estimator = further.estimator(parameters)
    settings = Parameters.from_parameters(estimator.get_params(deep=False))  # before a file is read
    further.check_checkpoint(settings.checkpoint, target, read)
    if (parts := batches_to_learn(file, columns.columns(), tables, further.room())) is not None:
        say(parts.shown(columns.categorical))
        parts.choose_categories(estimator, columns.categorical)
        validation = parts.validation(further.valid)
        _fit(estimator, FitArguments(*parts.arguments, **validation), further)
        _save(estimator, target, say)
        return
    table = read_to_learn(file, columns.columns(), tables.reading())
    _choose_categories(estimator, table, columns)
    say(_shown_table(file, table, columns.categorical))
    validation = _validation(further.valid, table, columns, tables.reading())
    _fit(estimator, FitArguments(table.X, table.y, table.weight, **validation), further)
    _save(estimator, target, say)


def _files_read(tables: Iterable[Path | None], params: Path | None) -> list[Path]:
    """Return the files of tables, which may be patterns or folders, and that of parameters."""
    files = [file for path in tables if path is not None for file in files_of(str(path))]
    return files if params is None else [*files, params]


def _fit(estimator: ABCBoostClassifier, given: FitArguments, further: FurtherOptions) -> None:
    """Fit as ``fit`` does, which has no ``force``."""
    remark = estimator._fit(given._replace(force=further.force), further.resume)
    if remark is not None:
        warnings.warn(remark, UserWarning, stacklevel=2)


def _save(estimator: ABCBoostClassifier, target: Path, say: Callable[[str], None]) -> None:
    estimator.save_model(target)
    say(_shown_model(estimator, target))


def _choose_categories(
    estimator: ABCBoostClassifier, table: LabelledTable, columns: ColumnOptions
) -> None:
    """Let columns of numbers be categories beside those of text."""
    if columns.categorical is None:
        return
    if not hasattr(table.X, "schema"):
        raise Misuse("--categorical names columns; a LibSVM file has no names")
    names, chosen = table.X.column_names, {*columns.categorical}
    missing = [*chosen.difference(names)]
    if missing:
        raise ValueError(f"--categorical {missing[0]}; expected one of {quoted_list(names, 20)}")
    chosen.update(_text_columns(table))
    set_categories(estimator, [name for name in names if name in chosen])


def _text_columns(table: LabelledTable) -> list[str]:
    """Return the columns that are categories by themselves."""
    is_dictionary = require_pyarrow("pyarrow.types").is_dictionary
    return columns_of_type(table.X.schema, lambda of: is_text(of) or is_dictionary(of))


def _validation(
    path: Path | None, table: LabelledTable, columns: ColumnOptions, reading: Reading
) -> dict[str, Any]:
    if path is None:
        return {}
    other = read_to_learn(path, columns.columns(), reading, like=table)
    return {"X_val": other.X, "y_val": other.y, "sample_weight_val": other.weight}


def _shown_table(path: Path, table: LabelledTable, chosen: Sequence[str] | None) -> str:
    """Say what was read: a number that is spelled wrong once makes a category of its column."""
    n_rows, n_features = table.X.shape
    shown = f"{path}: {n_rows:,} rows, {n_features:,} features"
    if not hasattr(table.X, "schema"):
        return shown
    marked = {*_text_columns(table), *(chosen or ())}
    categories = [name for name in table.X.column_names if name in marked]
    return f"{shown}; categories: {quoted_list(categories, 5) or 'none'}"


def _shown_model(estimator: ABCBoostClassifier, path: Path) -> str:
    size = format_bytes(path.stat().st_size)
    steps = f"{estimator.best_iteration_} iterations ({estimator.stop_reason_})"
    return f"{path}: {len(estimator.classes_)} classes, {steps}, {size}"
