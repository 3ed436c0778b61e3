"""Arrays as members of a model file: `.npy`, each in the narrowest type that holds its numbers."""

import io
import math
import re
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from abcgbm.model.checks import Shape, fits, shown_shape
from abcgbm.model.file.errors import ModelFileError

# The types in which numbers of a kind may be stored, narrowest first. Floats are often counts.
_STORED_AS = {
    "i": ("<i1", "<i2", "<i4", "<i8"),
    "u": ("<u1", "<u2", "<u4", "<u8"),
    "f": ("<u1", "<u2", "<u4", "<f4", "<f8"),
}
_KNOWN = {dtype.str: dtype for names in _STORED_AS.values() for dtype in map(np.dtype, names)}
_FIRST = 1000  # numbers that are looked at before all are
_VERSION = (1, 0)
# What NumPy writes: version 1.0, the length of the rest, and a dictionary of three entries.
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
    """Return the same numbers, to the last bit, in the first type that holds them."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    for dtype in _STORED_AS[array.dtype.kind]:
        if _holds(dtype, array.ravel()[:_FIRST]) and _holds(dtype, array):
            return array.astype(dtype)
    raise TypeError(f"an array of {array.dtype} is wider than a model file holds")


def _holds(dtype: str, array: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):  # of floats that are beyond the type
        return array.astype(dtype).astype(array.dtype).tobytes() == array.tobytes()


def from_npy(name: str, content: bytes, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
    """Return the array of a member as the given type, C-contiguous.

    What it says of itself is checked before NumPy reads it. Of ``shape``, None is any length.
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
    allowed = [of for of in _STORED_AS[dtype.kind] if np.dtype(of).itemsize <= dtype.itemsize]
    if stored not in [np.dtype(of) for of in allowed]:
        raise ModelFileError(f"{name}: numbers of type {stored.str}; expected one of {allowed}")
    if not fits(found, shape):
        raise ModelFileError(f"{name}: shape {found}; expected {shown_shape(shape)}")
