"""A zip archive of named members, all of them stored as they are: the same members, the same bytes."""

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import IO

from abcgbm.model.file.errors import ModelFileError, as_model_file_errors

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip archive knows
_READABLE_BY_ALL = 0o644 << 16
_UNIX = 3
_NAME = re.compile(r"[a-z_]+(/[a-z_]+)?\.(json|npy)")
# What zipfile raises of an archive that is none, or of one that was damaged.
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
)


def archive_of(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of some members, in their order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system = _UNIX
            info.external_attr = _READABLE_BY_ALL
            archive.writestr(info, content)
    return stream.getvalue()


class Archive:
    """The members of an archive that somebody else may have made.

    None is taken for larger than the file has room for, so nothing is allocated for a size that is
    only claimed; and nothing is ever unpacked to a folder.
    """

    def __init__(self, file: IO[bytes]) -> None:
        n_bytes = file.seek(0, io.SEEK_END)
        with as_model_file_errors("not a zip archive, or a damaged one", *_DAMAGE):
            self._zip = zipfile.ZipFile(file)
        self._members = {info.filename: info for info in self._zip.infolist()}
        if len(self._members) != len(self._zip.infolist()):
            raise ModelFileError("a member of the archive is there twice")
        for info in self._members.values():
            _check_member(info)
        claimed = sum(info.file_size for info in self._members.values())
        if claimed > n_bytes:
            raise ModelFileError(
                f"the members claim to have {claimed} bytes; the file has {n_bytes}"
            )

    @property
    def names(self) -> set[str]:
        """The names of all members."""
        return {*self._members}

    def read(self, name: str) -> bytes:
        """Return the content of a member."""
        if name not in self._members:
            raise ModelFileError(f"{name} is not in the archive")
        with as_model_file_errors(name, *_DAMAGE):
            return self._zip.read(self._members[name])


def _check_member(info: zipfile.ZipInfo) -> None:
    if not _NAME.fullmatch(info.filename):
        raise ModelFileError(f"{info.filename!r} is no member of a model file")
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise ModelFileError(f"{info.filename} is compressed; expected members stored as they are")
