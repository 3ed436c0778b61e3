"""Rows that somebody else reads: a data set of pyarrow, or batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from abcgbm.data.files.errors import TableFileError, require_pyarrow
from abcgbm.data.files.formats import shortened
from abcgbm.data.parts.column_types import as_types, common_type

_BATCHES = "record batches, tables of Arrow or data frames"


class DatasetSource:
    """The rows of a data set of pyarrow.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The data set; what it filters stays out.
    """

    is_columnar = True
    is_steady = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        _check_names(self.schema.names, "the data set")

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        try:
            for batch in self._dataset.scanner(columns=[*columns]).to_batches():
                yield arrow.Table.from_batches([batch])
        except (arrow.ArrowException, OSError) as error:
            raise TableFileError(self._culprit(columns), f"cannot be read: {error}") from error

    def _culprit(self, columns: Sequence[str]) -> str:
        """Look for the file that cannot be read, slowly."""
        arrow = require_pyarrow()
        for fragment in self._dataset.get_fragments():
            scanner = fragment.scanner(schema=self.schema, columns=[*columns])
            try:
                for _ in scanner.to_batches():
                    pass
            except (arrow.ArrowException, OSError):
                return str(getattr(fragment, "path", fragment))
        return "a file of the data set"


class BatchSource:
    """Batches of rows that somebody makes, as often as they are asked for.

    Types are those that have room for all batches that were read: those of the first until all were.

    Parameters
    ----------
    batches : iterable, or function that returns one
        Record batches or tables of Arrow, or data frames. Each iteration has the same rows.
    """

    is_columnar = False
    is_steady = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._batches = batches
        self._last: Any = None
        if not callable(batches):
            _check_can_be_begun_anew(batches)
        first = next(self._tables(), None)
        if first is None:
            raise ValueError("X has no batches; expected at least one")
        self.schema = first.schema
        _check_names(self.schema.names, "batch 0")

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        for number, table in enumerate(self._tables()):
            if not table.schema.equals(self.schema):
                self._widen(table.schema, number)
            yield as_types(table.select([*columns]), self.schema)

    def _widen(self, schema: Any, number: int) -> None:
        """Make room for the columns of a batch, too."""
        arrow, names, fields = require_pyarrow(), self.schema.names, []
        if sorted(schema.names) != sorted(names):
            other = min({*schema.names} ^ {*names}, default=schema.names[0])
            has = "a column" if other in schema.names else "no column"
            raise ValueError(f"batch {number} has {has} {other!r}; expected {shortened(names, 20)}")
        for name in names:
            now, so_far = schema.field(name).type, self.schema.field(name).type
            of = common_type(so_far, now)
            if of is None:
                raise TypeError(
                    f"batch {number} has {now} in column {name!r}; expected {so_far}, as before"
                )
            fields.append(arrow.field(name, of))
        self.schema = arrow.schema(fields)

    def _tables(self) -> Iterator[Any]:
        arrow = require_pyarrow()
        for number, batch in enumerate(self._begun()):
            yield _as_arrow(arrow, batch, number)

    def _begun(self) -> Iterator[Any]:
        """Begin to iterate; a function must do so anew each time."""
        batches = self._batches() if callable(self._batches) else self._batches
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"the function returned {type(batches).__name__}; expected an iterable of {_BATCHES}"
            )
        begun = iter(batches)
        if begun is self._last:
            raise TypeError(
                "the function returned the same iterator twice; expected a new one each time"
            )
        self._last = begun
        return begun


def _check_can_be_begun_anew(batches: Any) -> None:
    kind = type(batches).__name__
    if _is_table(batches):
        raise TypeError(
            f"X is of type {kind}, a table itself, which fit takes as it is; expected a path, a "
            f"data set of pyarrow, or an iterable of {_BATCHES}"
        )
    if not hasattr(batches, "__iter__"):
        raise TypeError(
            f"X is of type {kind}; expected a path, a data set of pyarrow, or an iterable of "
            f"{_BATCHES}"
        )
    if iter(batches) is batches:
        raise TypeError(
            f"X is of type {kind}, which can be read only once; expected an iterable that can be "
            "begun anew, such as a list, or a function that returns one"
        )


def _is_table(given: Any) -> bool:
    """Whether it is columns rather than something that yields batches."""
    looks_so = hasattr(given, "columns") or hasattr(given, "dtype") or isinstance(given, dict)
    return bool(looks_so)


def _check_names(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{what} has columns of the same name: {shortened(twice)}; expected all to differ"
        )


def _as_arrow(arrow: Any, batch: Any, number: int) -> Any:
    if isinstance(batch, arrow.Table):
        return batch
    if isinstance(batch, arrow.RecordBatch):
        return arrow.Table.from_batches([batch])
    if not hasattr(batch, "__arrow_c_stream__") and not hasattr(batch, "iloc"):
        raise TypeError(
            f"batch {number} is of type {type(batch).__name__}; expected one of {_BATCHES}"
        )
    try:
        if hasattr(batch, "iloc"):
            return arrow.Table.from_pandas(batch, preserve_index=False)
        return arrow.table(batch)
    except (TypeError, ValueError, AttributeError, arrow.ArrowException) as error:
        raise TypeError(f"batch {number} cannot be read: {error}; expected {_BATCHES}") from error
