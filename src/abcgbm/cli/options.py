"""Options shared by several commands, as groups: a command takes a group as one parameter."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from abcgbm.cli.console import Misuse
from abcgbm.data.files.atomic import same_file
from abcgbm.data.files.formats import FORMATS, Reading

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.")]
TableFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV, TSV (.gz, .zst), Parquet, Feather or LibSVM."),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        help="Column of labels: its name, or its position: 0 is the first, -1 the last.",
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace an existing file.")]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", help="Number of threads; all CPUs by default.")
]


@dataclass(frozen=True)
class TableOptions:
    """How to read a table file, where its suffix does not determine it."""

    format: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; by default from the suffix."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line holds the column names."),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            help="Delimiter of cells: a comma by default, with --decimal , a semicolon.",
        ),
    ] = None
    decimal: Annotated[
        str, typer.Option("--decimal", help="Decimal separator of numbers: . or a comma.")
    ] = "."
    encoding: Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")] = "utf-8"
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", help="Another spelling of a missing value, such as '?' (repeatable)."
        ),
    ] = None
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="Columns of a LibSVM file are counted from 0.")
    ] = False

    def reading(self) -> Reading:
        """Return the options as the file reader takes them."""
        return Reading(
            self.format,
            self.header,
            self.delimiter,
            self.encoding,
            tuple(self.missing or ()),
            self.zero_based,
            self.decimal,
        )

    def as_given(self) -> list[str]:
        """Return the options that are not the default, as command line arguments."""
        line = [] if self.header is None else ["--header" if self.header else "--no-header"]
        for name in ("format", "delimiter", "decimal", "encoding"):
            value = getattr(self, name)
            if value != type(self).__dataclass_fields__[name].default:
                line += [f"--{name}", value]
        for spelling in self.missing or ():
            line += ["--missing", spelling]
        return [*line, "--zero-based"] if self.zero_based else line


@dataclass(frozen=True)
class OutputOptions:
    """The file to write."""

    output: Output = None
    force: Force = False

    def checked(self, *read: Path) -> Path | None:
        """Return the file to write, checked before any work is done; None is standard output."""
        path = self.output
        return None if path is None or str(path) == "-" else writable(path, read, force=self.force)

    def needed(self, suffixes: str, *read: Path) -> Path:
        """Return the file to write, for a format that does not go to standard output."""
        path = self.checked(*read)
        if path is None:
            raise Misuse(f"--output is missing; expected a file such as {suffixes}")
        return path


def writable(path: Path, read: Sequence[Path] = (), *, force: bool) -> Path:
    """Return the path after checking that it can be written and is not one of the input files."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder; expected a file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: the folder {str(path.parent)!r} cannot be written to")
    if same_file(path, read) is not None:
        raise FileExistsError(f"{path}: is an input file; expected another file to write")
    if path.is_file() and not force:
        raise FileExistsError(f"{path}: the file exists; --force replaces it")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path}: the file cannot be written to")
    return path


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flatten the groups among a command's parameters into one option per field, for typer."""
    hints = get_type_hints(command, include_extras=True)
    options: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            options.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        fields = get_type_hints(kind, include_extras=True)
        options += [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=fields[f.name]
            )
            for f in dataclasses.fields(kind)
        ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        values = {
            name: kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        return command(**given, **values)

    del run.__wrapped__  # typer would read the signature of the command itself
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    return run
