"""Results as JSON lines that survive an interruption at any moment."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.cells import Cell
from experiments.curves import Curves, decode, encode

FOLDER = Path(__file__).parent / "results"

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """Read all complete lines; an incomplete last one is ignored."""
    if not path.exists():
        return []
    *whole, _ = path.read_bytes().split(b"\n")
    return [_parsed(line, f"{path}:{number}") for number, line in enumerate(whole, 1)]


def _parsed(line: bytes, where: str) -> Line:
    try:
        parsed: Line = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: {line[:60]!r}; expected a JSON object") from error
    return parsed


def append_line(path: Path, line: Line) -> None:
    """Append a line and flush it to disk; repair an incomplete last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Lock a folder for one process; the lock ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(f"another run is filling {folder}; expected one at a time") from error


class Results:
    """Lines of cells in one file, and their curves in a file for each data set.

    Parameters
    ----------
    folder : Path
        Where they are.
    name : str
        Name of the file with a line for each cell, without its ending.
    """

    def __init__(self, folder: Path = FOLDER, name: str = "paper") -> None:
        self.folder = folder
        self._lines = folder / f"{name}.jsonl"
        self._curves = folder / f"{name}_curves"

    def cells(self) -> dict[Cell, Line]:
        """Return the last line of each finished cell."""
        return {Cell.of_line(line): line for line in read_lines(self._lines)}

    def curves(self, dataset: str) -> dict[Cell, Curves]:
        """Return the curves of a data set's finished cells."""
        done = self.cells()
        lines = {Cell.of_line(line): line for line in read_lines(self._curves_of(dataset))}
        return {cell: decode(line) for cell, line in lines.items() if cell in done}

    def add(self, line: Line, curves: Curves) -> None:
        """Save a finished cell; curves are written first, so a cell with a line is complete."""
        keys = Cell.of_line(line).as_keys()
        append_line(self._curves_of(line["dataset"]), keys | encode(curves))
        append_line(self._lines, line)

    def _curves_of(self, dataset: str) -> Path:
        return self._curves / f"{dataset}.jsonl"
