"""Archive of a model file: an uncompressed zip, with arrays as npy."""

import hashlib
import io
import math
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from abcgbm.errors import ModelFileError, as_model_file_errors
from abcgbm.model.array_checks import Shape, fits, shown_shape

DOCUMENT = "model.json"
# Types in which numbers of a kind may be stored, narrowest first. Floats are often counts.
_STORED_AS = {
    "i": ("<i1", "<i2", "<i4", "<i8"),
    "u": ("<u1", "<u2", "<u4", "<u8"),
    "f": ("<u1", "<u2", "<u4", "<f4", "<f8"),
}
_KNOWN = {dtype.str: dtype for names in _STORED_AS.values() for dtype in map(np.dtype, names)}
_FIRST = 1000  # numbers to try before all of them
_VERSION = (1, 0)
# Header as NumPy writes it: version 1.0, length of the rest, and a dictionary of three entries.
_LENGTH = rb"(?:0|[1-9]\d{0,17})"
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][iuf][1248])', 'fortran_order': False, "
    rb"'shape': \(((?:%b, )*(?:%b,|(?<=, )%b)?)\), \} *\n" % (_LENGTH, _LENGTH, _LENGTH),
    re.DOTALL,
)


def npy_of(array: NDArray[Any]) -> bytes:
    """Return an array of numbers as the content of a `.npy` file."""
    stream = io.BytesIO()
    npy.write_array(stream, _narrow(array), version=_VERSION, allow_pickle=False)
    return stream.getvalue()


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the narrowest type that holds them exactly."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    for dtype in _STORED_AS[array.dtype.kind]:
        if _holds(dtype, array.ravel()[:_FIRST]) and _holds(dtype, array):
            return array.astype(dtype)
    raise TypeError(f"an array of {array.dtype}; expected at most 64 bits per number")


def _holds(dtype: str, array: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):  # of floats out of range
        return array.astype(dtype).astype(array.dtype).tobytes() == array.tobytes()


def from_npy(name: str, content: bytes, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
    """Return the array of a member as the given type, C-contiguous.

    The header is checked before NumPy reads it. None in ``shape`` is any length.
    """
    header = _HEADER.fullmatch(content, 0, 10 + int.from_bytes(content[8:10], "little"))
    if header is None or header[1].decode() not in _KNOWN:
        raise ModelFileError(f"{name} is no .npy file as NumPy writes it")
    stored, found = _KNOWN[header[1].decode()], tuple(map(int, re.findall(rb"\d+", header[2])))
    _check_header(name, found, stored, np.dtype(dtype), shape)
    n_bytes = len(content) - header.end()
    if n_bytes != math.prod(found) * stored.itemsize:
        raise ModelFileError(f"{name}: {n_bytes} bytes of numbers do not fit its shape {found}")
    array: NDArray[Any] = npy.read_array(io.BytesIO(content), allow_pickle=False)
    return array.astype(dtype)


def _check_header(
    name: str, found: tuple[int, ...], stored: np.dtype[Any], dtype: np.dtype[Any], shape: Shape
) -> None:
    allowed = [t for t in _STORED_AS[dtype.kind] if np.dtype(t).itemsize <= dtype.itemsize]
    if stored not in [np.dtype(t) for t in allowed]:
        raise ModelFileError(f"{name}: numbers of type {stored.str}; expected one of {allowed}")
    if not fits(found, shape):
        raise ModelFileError(f"{name}: shape {found}; expected {shown_shape(shape)}")


_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive can hold
_READABLE_BY_ALL = 0o644 << 16
_UNIX = 3
_LOCAL_HEADER = struct.Struct("<26xHH")  # ends with the lengths of name and extra field
_ENTRY_BYTES = 46  # of a member in the central directory, without name, extra field and comment
_END_BYTES = (22, 22 + 20 + 56)  # after the central directory; the second for more than 2 GiB
_NAME = re.compile(r"[a-z_]+(/[a-z_]+)?\.(json|npy)")
# Exceptions that zipfile raises for a damaged archive, or for a file that is no archive.
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
    """Return a zip archive of members in the given order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system = _UNIX
            info.external_attr = _READABLE_BY_ALL
            archive.writestr(info, content)
    return stream.getvalue()


class Archive:
    """Members of an archive from an untrusted source.

    Members cannot claim more bytes than the file has, so a false size allocates nothing. Nothing is
    ever extracted to a folder.
    """

    def __init__(self, file: IO[bytes]) -> None:
        n_bytes = file.seek(0, io.SEEK_END)
        with as_model_file_errors("not a zip archive, or a damaged one", *_DAMAGE):
            self._zip = zipfile.ZipFile(file)
        self._members = {info.filename: info for info in self._zip.infolist()}
        if len(self._members) != len(self._zip.infolist()):
            raise ModelFileError("the archive has two members of the same name")
        for info in self._members.values():
            _check_member(info)
        self._check_no_junk(file, n_bytes)
        claimed = sum(info.file_size for info in self._members.values())
        if claimed > n_bytes:
            raise ModelFileError(
                f"the members claim to have {claimed} bytes; the file has {n_bytes}"
            )

    def _check_no_junk(self, file: IO[bytes], n_bytes: int) -> None:
        """Raise ModelFileError unless the members and the central directory fill the file."""
        members = sorted(self._members.values(), key=lambda info: info.header_offset)
        place = 0
        for info in members:
            _check_begins(info.filename, info.header_offset, place)
            place += _n_bytes_of(info, file)
        _check_begins("the central directory", self._zip.start_dir, place)
        place += sum(_n_bytes_of_entry(info) for info in members)
        if n_bytes - place not in _END_BYTES or self._zip.comment:
            raise ModelFileError("the file has bytes after its archive; expected none")

    @property
    def names(self) -> set[str]:
        """Names of all members."""
        return {*self._members}

    def read(self, name: str) -> bytes:
        """Return the content of a member."""
        if name not in self._members:
            raise ModelFileError(f"{name} is not in the archive")
        with as_model_file_errors(name, *_DAMAGE):
            return self._zip.read(self._members[name])


def _check_begins(name: str, begin: int, expected: int) -> None:
    if begin != expected:
        raise ModelFileError(
            f"{name} begins at byte {begin} of the file; expected {expected}: a model file has "
            "nothing before or between its members"
        )


def _n_bytes_of(info: zipfile.ZipInfo, file: IO[bytes]) -> int:
    """Return the size of a member with its header."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        raise ModelFileError(f"{info.filename} is outside of the file")
    n_name, n_extra = _LOCAL_HEADER.unpack(header)
    return int(_LOCAL_HEADER.size + n_name + n_extra + info.compress_size)


def _n_bytes_of_entry(info: zipfile.ZipInfo) -> int:
    """Return the size of a member in the central directory."""
    return _ENTRY_BYTES + len(info.orig_filename.encode()) + len(info.extra) + len(info.comment)


def _check_member(info: zipfile.ZipInfo) -> None:
    if not _NAME.fullmatch(info.filename):
        raise ModelFileError(f"{info.filename!r} is no member of a model file")
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise ModelFileError(f"{info.filename} is compressed; expected uncompressed members")


def digest_of_member(content: bytes) -> str:
    """Return the digest of a member, as model.json has it."""
    return hashlib.sha256(content).hexdigest()


class Members:
    """Arrays of a file, each checked against its digest in the document and read once."""

    def __init__(self, archive: Archive, digests: dict[str, Any]) -> None:
        if archive.names != {DOCUMENT, *digests}:
            unexpected = sorted(archive.names ^ {DOCUMENT, *digests})
            raise ModelFileError(
                f"only one of the archive and model.json lists the members {unexpected}"
            )
        self._archive = archive
        self._digests = digests
        self._unread = {*digests}

    def array(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """Return an array of this name, type and shape; None in a shape is any length."""
        name = f"{name}.npy"
        content = self._archive.read(name)
        if digest_of_member(content) != self._digests.get(name):
            raise ModelFileError(
                f"{name} was changed or damaged: its digest is not the one in model.json"
            )
        self._unread.discard(name)
        return from_npy(name, content, dtype, shape)

    def check_all_read(self) -> None:
        """Raise a ModelFileError if a member was not asked for."""
        if self._unread:
            raise ModelFileError(f"members that no model has: {sorted(self._unread)}")
