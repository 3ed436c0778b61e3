"""Files that are written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a file in the place of an earlier one, at once.

    Whatever goes wrong, a full disk or a power cut, leaves the earlier file as it was.
    """
    with written_whole(path) as file:
        file.write(content)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Give a file to write to, which takes the place of an earlier one when the block ends well."""
    try:
        with _opened(Path(os.path.realpath(path))) as file:  # a link stays one
            yield file
    except OSError as error:
        if (
            error.filename is None and error.errno in _FULL
        ):  # only an error of opening names its file
            error.filename = os.fspath(path)
        raise


@contextmanager
def _opened(target: Path) -> Iterator[IO[bytes]]:
    if target.exists() and not target.is_file():
        with target.open("wb") as device:  # a device or a pipe is no file to be replaced
            yield device
        return
    if target.exists() and not os.access(target, os.W_OK):  # which a rename would not ask for
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
    """Let the same people read a file as before; on Windows the folder says who they are."""
    if not hasattr(os, "fchmod"):
        return
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, target.stat().st_mode & 0o777)


def _sync_folder(folder: Path) -> None:
    """Let the new name be on the disk, too, where the system can do that; Windows opens no folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
