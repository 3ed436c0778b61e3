"""File formats, compression, and options for parsing text files."""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from abcgbm.errors import TableFileError, quoted_list, require_pyarrow

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
}
# Signatures of other formats, their description, and the suffix that such files should have.
_SIGNATURES: tuple[tuple[bytes, str, str | None], ...] = (
    (rb"\x1f\x8b", "gzip data", ".gz"),
    (rb"BZh[1-9]1AY&SY", "bzip2 data", ".bz2"),
    (rb"\x28\xb5\x2f\xfd", "zstd data", ".zst"),
    (rb"\x04\x22\x4d\x18", "lz4 data", ".lz4"),
    (rb"\xfd7zXZ\x00", "xz data", None),
    (rb"PK\x03\x04", "a zip archive or a spreadsheet", None),
    (rb"PAR1[^ -\xff]", "a Parquet file", ".parquet"),
    (rb"ARROW1\x00\x00", "a Feather file", ".feather"),
)
_SIGNATURE_BYTES = 16
FORMATS = ("csv", "tsv", "parquet", "feather", "libsvm")
# Spellings of a missing value in a text file, as in pandas.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """How a file is read, as far as its name does not determine it.

    Attributes
    ----------
    format : {"csv", "tsv", "parquet", "feather", "libsvm"} or None
        Its format; None: by the suffix.
    header : bool or None
        Whether the first line of a text file has the column names; None: it should have, and a line
        that looks like data is an error.
    delimiter : str or None
        Delimiter of cells; None: a comma (a semicolon if ``decimal`` is a comma), and a tab in TSV.
    encoding : str
        Encoding of a text file.
    missing : tuple of str
        Further spellings of a missing value.
    zero_based : bool
        Whether columns of a LibSVM file are counted from 0 rather than from 1.
    decimal : {".", ","}
        Decimal mark of numbers in a text file.
    """

    format: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()
    zero_based: bool = False
    decimal: str = "."

    def format_of(self, path: Path) -> str:
        """Return the format of a file, as given or by its suffix."""
        if self.format is not None:
            if self.format not in FORMATS:
                what = f"unknown format {self.format!r}; expected one of {', '.join(FORMATS)}"
                raise TableFileError(path, what, hint="format")
            return self.format
        suffixes = [s.lower() for s in path.suffixes if s.lower() not in _COMPRESSIONS]
        found = _FORMATS.get(suffixes[-1]) if suffixes else None
        if found is None:
            raise TableFileError(
                path,
                f"a name without a known suffix; expected one of {', '.join(_FORMATS)} (perhaps "
                f"followed by {', '.join(_COMPRESSIONS)}), or a format: {', '.join(FORMATS)}",
                hint="format",
            )
        return found

    def delimiter_of(self, path: Path) -> str:
        """Return the delimiter of cells."""
        usual = "\t" if self.format_of(path) == "tsv" else ";" if self.decimal == "," else ","
        delimiter = "\t" if self.delimiter == "\\t" else self.delimiter or usual
        if len(delimiter) != 1 or delimiter in '"\r\n' or ord(delimiter) > 127:  # noqa: PLR2004
            what = f"the delimiter {delimiter!r}; expected one ASCII character, not a quote"
            raise TableFileError(path, what, hint="delimiter")
        if delimiter == self.decimal_of(path):
            what = (
                f"{delimiter!r} is both the delimiter and the decimal mark; expected two characters"
            )
            raise TableFileError(path, what, hint="delimiter")
        return delimiter

    def decimal_of(self, path: Path) -> str:
        """Return the decimal mark."""
        if self.decimal not in (".", ","):
            what = f"the decimal mark {self.decimal!r}; expected '.' or ','"
            raise TableFileError(path, what, hint="decimal")
        return self.decimal


def is_table(path: Path) -> bool:
    """Whether a path is a file whose suffix is that of a table format."""
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in _COMPRESSIONS]
    return bool(suffixes) and suffixes[-1] in _FORMATS and path.is_file()


def checked_path(path: Any) -> Path:
    """Return the path of a file, after checking that it can be read as a table."""
    found = Path(path)
    if str(path) == "-":
        raise TableFileError(path, "standard input; expected a file, which is read twice")
    if not found.exists():
        raise TableFileError(path, "no such file")
    if found.is_dir():
        raise TableFileError(path, "a folder; expected a file")
    if not found.is_file():
        raise TableFileError(path, "a pipe or a device; expected a file, which is read twice")
    if found.stat().st_size == 0:
        raise TableFileError(path, "the file is empty; expected a table")
    return found


def check_names(names: list[str], path: Path, line: int | None = None) -> None:
    """Raise an error for duplicate column names."""
    twice = sorted(name for name, n_columns in Counter(names).items() if n_columns > 1)
    if twice:
        shown = quoted_list(twice)
        raise TableFileError(path, f"duplicate column names: {shown}; expected unique names", line)


def looks_undivided(names: Sequence[str]) -> bool:
    """Whether a single column name looks like several, as if the delimiter were wrong."""
    return len(names) == 1 and any(between in names[0] for between in ",;\t|")


def compression_of(path: Path) -> str | None:
    """Return the compression of a file by its suffix, or None."""
    return _COMPRESSIONS.get(path.suffix.lower())


def open_file(path: Path) -> Any:
    """Open a file for pyarrow, which accepts names that are not UTF-8 as bytes only.

    It is not memory-mapped: truncating a mapped file would crash the process.
    """
    return require_pyarrow().OSFile(os.fsencode(path))


def open_bytes(path: Path, encoding: str = "utf-8") -> IO[bytes]:
    """Open a file for reading, decompressed by its suffix and recoded to UTF-8."""
    pyarrow = require_pyarrow()
    _check_is_no_other_format(path)
    stream = pyarrow.input_stream(open_file(path), compression=compression_of(path))
    if encoding.lower().replace("-", "") == "utf8":
        return stream  # type: ignore[no-any-return]
    try:
        _check_is_text_encoding(encoding)
        return pyarrow.transcoding_input_stream(stream, encoding, "utf8")  # type: ignore[no-any-return]
    except LookupError as error:
        what = f"unknown encoding {encoding!r}; expected one such as latin-1"
        raise TableFileError(path, what, hint="encoding") from error


def _check_is_text_encoding(encoding: str) -> None:
    """Raise a LookupError for an encoding of bytes, such as hex, or of domain names."""
    "a".encode(encoding)  # Python does not look up the encoding of an empty text
    if codecs.lookup(encoding).name in ("idna", "punycode"):
        raise LookupError(f"{encoding!r} is an encoding of domain names")


def _check_is_no_other_format(path: Path) -> None:
    """Raise an error if the content of a file is of another format than its name says."""
    if compression_of(path) is not None:
        return
    with path.open("rb") as stream:
        head = stream.read(_SIGNATURE_BYTES)
    for signature, what, ending in _SIGNATURES:
        if re.match(signature, head, re.DOTALL):
            expected = "a text file" if ending is None else f"the suffix {ending}"
            hint = "format" if ending in _FORMATS else None
            raise TableFileError(path, f"{what}, not text; expected {expected}", hint=hint)


def raise_unreadable(path: Path, error: OSError) -> NoReturn:
    """Raise the error of a file that cannot be read or decompressed, with its name."""
    if isinstance(error, FileNotFoundError | PermissionError):
        raise error  # these name the file themselves
    compression = compression_of(path)
    how = "" if compression is None else f" as {compression} data"
    raise TableFileError(path, f"cannot be read{how}: {error}") from error
