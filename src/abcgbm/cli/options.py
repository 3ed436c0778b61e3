"""Options that several commands have, in groups: a command takes a group as one parameter."""

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
from abcgbm.data.files.formats import FORMATS, Reading

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.")]
TableFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV, TSV (.gz, .zst), Parquet, Feather or LibSVM."),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label", "-l", help="The column of labels: its name, or 0 for the first, -1 for the last."
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace a file that is there already.")]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", help="Number of threads; all CPUs by default.")
]


@dataclass(frozen=True)
class TableOptions:
    """How a table file is read where its name does not tell."""

    format: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; by default as the name ends."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line has the names of the columns."
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            help="Between two cells; by default a comma, with --decimal , a semicolon.",
        ),
    ] = None
    decimal: Annotated[
        str, typer.Option("--decimal", help="Before the decimals of a number: . or a comma.")
    ] = "."
    encoding: Annotated[str, typer.Option("--encoding", help="Of a text file.")] = "utf-8"
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", help="A further spelling of a missing value, such as '?' (repeatable)."
        ),
    ] = None
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="Columns of a LibSVM file are counted from 0.")
    ] = False

    def reading(self) -> Reading:
        """Return these options as the reader of files takes them."""
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
        """Return what is not the default, as in the line."""
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
    """Where something is written."""

    output: Output = None
    force: Force = False

    def checked(self, *read: Path) -> Path | None:
        """Return where to write, before any work is spent on it; None is standard output."""
        path = self.output
        return None if path is None or str(path) == "-" else writable(path, read, force=self.force)

    def needed(self, endings: str, *read: Path) -> Path:
        """Return where to write what standard output is no place for."""
        path = self.checked(*read)
        if path is None:
            raise Misuse(f"--output is missing; expected a file, such as {endings}")
        return path


def writable(path: Path, read: Sequence[Path] = (), *, force: bool) -> Path:
    """Return the path of a file that may be written, and is none of those that are read."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a folder; expected a file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {str(path.parent)!r}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: the folder {str(path.parent)!r} cannot be written to")
    if any(path.exists() and other.exists() and path.samefile(other) for other in read):
        raise FileExistsError(f"{path}: is read, too; expected another file to write")
    if path.is_file() and not force:
        raise FileExistsError(f"{path}: the file is there already; --force replaces it")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path}: the file cannot be written to")
    return path


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let typer see the fields of groups, and the command the groups."""
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        of = hints[parameter.name]
        if not dataclasses.is_dataclass(of):
            shown.append(parameter.replace(annotation=of, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = of
        fields = get_type_hints(of, include_extras=True)
        shown += [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=fields[f.name]
            )
            for f in dataclasses.fields(of)
        ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        made = {
            name: of(**{f.name: given.pop(f.name) for f in dataclasses.fields(of)})
            for name, of in groups.items()
        }
        return command(**given, **made)

    del run.__wrapped__  # its own signature is the one to be seen
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run
