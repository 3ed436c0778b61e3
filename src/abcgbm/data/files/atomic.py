"""Atomic writes of files, and whether they would replace an input."""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def same_file(path: Path, others: Iterable[Path]) -> Path | None:
    """Return the first of some files that is the file at a path under any spelling or link, or None."""
    if not path.exists():
        return None
    return next((other for other in others if other.exists() and path.samefile(other)), None)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically: on any failure the previous file is left unchanged."""
    with written_whole(path) as file:
        file.write(content)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing; it replaces the previous one if the block ends without an error."""
    try:
        with _opened(Path(os.path.realpath(path))) as file:  # follow links, so that they stay links
            yield file
    except OSError as error:
        # Errors of opening name a file, those of writing to a full disk do not.
        if error.filename is None and error.errno in _FULL:
            error.filename = os.fspath(path)
        raise


@contextmanager
def _opened(target: Path) -> Iterator[IO[bytes]]:
    if target.exists() and not target.is_file():
        with target.open("wb") as device:  # devices and pipes cannot be replaced
            yield device
        return
    if target.exists() and not os.access(target, os.W_OK):  # a rename would not check this
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    beside = target.with_name(f".abcgbm-{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:
            _keep_mode(target, file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            beside.unlink()
        raise
    _sync_folder(target.parent)


def _keep_mode(target: Path, descriptor: int) -> None:
    """Copy the permissions of the previous file; Windows inherits them from the folder."""
    if not hasattr(os, "fchmod"):
        return
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, target.stat().st_mode & 0o777)


def _sync_folder(folder: Path) -> None:
    """Flush the rename to disk, where the system can do that; Windows cannot open folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
