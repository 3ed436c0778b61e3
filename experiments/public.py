"""Download, unpack, parse and split data sets from their public sources."""

import gzip
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Iterator
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
CHUNK = 1 << 16
TIMEOUT = 60.0  # seconds without a response
# Errors of a server, of decompression, or of an unexpected layout.
FAILURES = (OSError, EOFError, ValueError, zlib.error, HTTPException, subprocess.SubprocessError)


class Source(NamedTuple):
    """The entry of a data set in ``datasets.toml``."""

    files: list[str]
    label: str
    separator: str
    n_classes: int
    n_train: int
    n_test: int
    n_features: int
    digest: str
    split: int | str | None = None
    held_out: str = "last tenth"


Part = tuple[NDArray[np.float64], NDArray[Any]]


def fetch(source: Source) -> tuple[Part, Part]:
    """Return the training part and the test part."""
    parts = [parse(unpack(url, download(url)), source) for url in source.files]
    if len(parts) == 1:
        return split(*parts[0], source.split)
    return parts[0], parts[1]


def download(url: str) -> bytes:
    """Return the bytes of a URL, showing progress."""
    name = url.rsplit("/", 1)[-1]
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        length = int(answer.headers.get("Content-Length") or 0)
        content = b"".join(_chunks(answer, name, length))
    if length and len(content) != length:
        raise OSError(f"{url}: {len(content)} bytes; expected {length}")
    return content


def _chunks(answer: Any, name: str, length: int) -> Iterator[bytes]:
    n_bytes, shown = 0, -np.inf
    of = f" of {length / 1e6:.1f}" if length else ""
    while chunk := answer.read(CHUNK):
        yield chunk
        n_bytes += len(chunk)
        if time.monotonic() - shown > 1 or n_bytes == length:
            shown = time.monotonic()
            print(f"downloading {name}: {n_bytes / 1e6:.1f}{of} MB", file=sys.stderr, flush=True)


def unpack(name: str, content: bytes) -> bytes:
    """Decompress a file according to its name."""
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if name.endswith(".Z"):  # Unix compress, not supported by Python
        return subprocess.run(["gzip", "-dc"], input=content, stdout=-1, check=True).stdout
    return content


def parse(text: bytes, source: Source) -> Part:
    """Read features and labels."""
    separator = None if source.separator == "space" else source.separator
    return columns(BytesIO(text), separator, source.label, source.n_features)


def columns(file: Path | BytesIO, separator: str | None, label: str, n_features: int) -> Part:
    """Read correctly rounded features, and labels; numeric labels become integers."""
    of_label = 0 if label == "first" else n_features
    of_features = [column for column in range(n_features + 1) if column != of_label]
    X = np.loadtxt(file, delimiter=separator, usecols=of_features, ndmin=2)
    if isinstance(file, BytesIO):
        file.seek(0)
    y = np.loadtxt(file, delimiter=separator, usecols=of_label, dtype=str, ndmin=1)
    try:
        return X, y.astype(np.float64).astype(np.int64)
    except ValueError:
        return X, y


def split(X: NDArray[np.float64], y: NDArray[Any], by: int | str | None) -> tuple[Part, Part]:
    """Split by the number of training rows, or by a file of bits that mark them."""
    if isinstance(by, str):
        bits = np.fromfile(HERE / by, dtype=np.uint8)
        is_train = np.unpackbits(bits, count=len(y)).astype(bool)
    else:
        is_train = np.arange(len(y)) < (by or 0)
    return (X[is_train], y[is_train]), (X[~is_train], y[~is_train])
