"""Conversion of Python and NumPy values to JSON and back, with their types.

Values that JSON has are written as they are, all others as an object with one entry named by the type:
`{"tuple": [1, 2]}`. Nothing is pickled: values of other types raise TypeError.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.model.file.format_1 import BaseClassSearch, FixedBase
from abcgbm.parameters.algorithms import (
    AdaptiveBaseClass,
    Categorical,
    KeepOnInterrupt,
    MultiOutputTrees,
    ParameterGroup,
    TimeLimit,
    TreePerClass,
)

_MAX_BYTES = 2**28  # of all arrays: a short text with dtype U99999999 would allocate gigabytes
_MAX_KEYS = 2**13  # of all dictionaries and sets: crafted keys can have colliding hashes
_DTYPE = re.compile(r"[<>|][biufUSMmO]\d*(\[([1-9]\d{0,8})?[A-Za-z]+\])?")
_WIDEST_FLOAT = 8  # bytes, as a Python float


def to_json(value: Any) -> Any:
    """Return a value as JSON; raise TypeError if a model file cannot hold it."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return [to_json(part) for part in value]
    for name, tag in _TAGS.items():
        if kind is tag.kind or (tag.kind is np.generic and isinstance(value, np.generic)):
            return {name: tag.to_json(value)}
    raise TypeError(f"a value of type {kind.__name__} cannot be held by a model file")


class JsonReader:
    """Converter of untrusted JSON to values; raises ValueError if it is invalid."""

    def __init__(self, format_: int = 2) -> None:
        self._tags = _TAGS_OF_FORMAT_1 if format_ == 1 else _TAGS
        self._bytes_left = _MAX_BYTES
        self._keys_left = _MAX_KEYS

    def value(self, json: Any) -> Any:
        """Return the value that ``to_json`` converted."""
        if isinstance(json, list):
            return [self.value(part) for part in json]
        if not isinstance(json, dict):
            return json
        if len(json) != 1:
            raise ValueError(f"an object of {len(json)} entries; expected one that names a type")
        ((name, content),) = json.items()
        if name not in self._tags:
            raise ValueError(f"a value of unknown type {name!r}; expected one of {[*self._tags]}")
        try:
            return self._tags[name].from_json(self, content)
        except (TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a value of type {name}: {error}") from error

    def keys(self, json: Any) -> list[Any]:
        """Return values that will be hashed; their number is bounded."""
        self._keys_left -= len(json)
        if self._keys_left < 0:
            raise ValueError(f"dictionaries and sets of more than {_MAX_KEYS} keys")
        return [self.value(key) for key in json]

    def array(self, json: Any) -> NDArray[Any]:
        """Return an array, after checking that ``to_json`` would write the same."""
        text, shape, values = json["dtype"], json["shape"], json["values"]
        if not _DTYPE.fullmatch(text):
            raise ValueError(f"an array of unknown dtype {text!r}")
        dtype = np.dtype(text)
        self._bytes_left -= dtype.itemsize * len(values)
        if self._bytes_left < 0:
            raise ValueError(f"arrays of more than {_MAX_BYTES} bytes")
        array = _filled(dtype, [self.value(part) for part in values]).reshape(shape)
        if _array_to_json(array) != json:
            raise ValueError(f"an array of {text} whose values do not fit its dtype and shape")
        return array


def _array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    kind = array.dtype.kind
    if not _DTYPE.fullmatch(array.dtype.str) or (kind == "f" and array.itemsize > _WIDEST_FLOAT):
        raise TypeError(f"an array of {array.dtype} cannot be held by a model file")
    flat = array.ravel()
    values = flat.view(_integers(array.dtype)) if kind in "Mm" else flat
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "values": to_json(values.tolist()),
    }


def _filled(dtype: np.dtype[Any], values: list[Any]) -> NDArray[Any]:
    if dtype.kind in "Mm":  # dates are stored as integers in units of the dtype
        return np.array(values, dtype=_integers(dtype)).view(dtype)
    array = np.empty(len(values), dtype=dtype)
    for place, value in enumerate(values):  # one by one, as NumPy would unpack lists and tuples
        array[place] = value
    return array


def _integers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int64).newbyteorder(dtype.byteorder)


# ------------------------------------------------------------------------------------------- types


@dataclass(frozen=True)
class _Tag:
    """How values of a type are written and read."""

    kind: type
    to_json: Callable[[Any], Any]
    from_json: Callable[[JsonReader, Any], Any]


def _sorted_parts(values: Any) -> list[Any]:
    """Return the items of a set in an order that does not depend on their hashes."""
    _check_keys(values)
    return sorted(map(to_json, values), key=lambda part: (type(part).__name__, repr(part)))


def _pairs(values: dict[Any, Any]) -> list[Any]:
    _check_keys(values)
    return [[to_json(key), to_json(value)] for key, value in values.items()]


def _from_pairs(read: JsonReader, json: Any) -> dict[Any, Any]:
    keys = read.keys([key for key, _ in json])
    return dict(zip(keys, [read.value(value) for _, value in json], strict=True))


def _check_keys(values: Any) -> None:
    if len(values) > _MAX_KEYS:
        raise TypeError(f"{len(values)} keys; a model file holds at most {_MAX_KEYS}")


def _time_to_json(value: datetime) -> str:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise TypeError(f"a time in {value.tzinfo!r} cannot be held by a model file")
    return value.isoformat()


def _group_to_json(group: ParameterGroup) -> dict[str, Any]:
    return {name: to_json(value) for name, value in group.get_params(deep=False).items()}


def _group_tag(kind: type[ParameterGroup]) -> _Tag:
    """Return the tag of a parameter group, which is written by the names of its parameters."""

    def from_json(read: JsonReader, json: dict[str, Any]) -> ParameterGroup:
        return kind(**{name: read.value(value) for name, value in json.items()})

    return _Tag(kind, _group_to_json, from_json)


def _parts(read: JsonReader, json: Any) -> list[Any]:
    return [read.value(part) for part in json]


_TAGS = {
    "float": _Tag(float, repr, lambda _, json: float(json)),
    "tuple": _Tag(
        tuple, lambda value: to_json([*value]), lambda read, json: (*_parts(read, json),)
    ),
    "set": _Tag(set, _sorted_parts, lambda read, json: {*read.keys(json)}),
    "frozenset": _Tag(frozenset, _sorted_parts, lambda read, json: frozenset(read.keys(json))),
    "dict": _Tag(dict, _pairs, _from_pairs),
    "bytes": _Tag(bytes, bytes.hex, lambda _, json: bytes.fromhex(json)),
    "date": _Tag(date, date.isoformat, lambda _, json: date.fromisoformat(json)),
    "datetime": _Tag(datetime, _time_to_json, lambda _, json: datetime.fromisoformat(json)),
    "timedelta": _Tag(
        timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda _, json: timedelta(*json),
    ),
    "array": _Tag(np.ndarray, _array_to_json, lambda read, json: read.array(json)),
    "scalar": _Tag(
        np.generic,
        lambda value: _array_to_json(np.array(value)),
        lambda read, json: read.array(json)[()],
    ),
    **{
        kind.__name__: _group_tag(kind)
        for kind in (
            MultiOutputTrees,
            TreePerClass,
            AdaptiveBaseClass,
            Categorical,
            TimeLimit,
            KeepOnInterrupt,
        )
    },
}


def _not_written(value: Any) -> Any:
    raise TypeError(f"{value!r} is a value of format 1, which is not written")


_TAGS_OF_FORMAT_1 = _TAGS | {
    "BaseClassSearch": _Tag(
        BaseClassSearch,
        _not_written,
        lambda read, json: BaseClassSearch(
            **{name: read.value(value) for name, value in json.items()}
        ),
    ),
    "FixedBase": _Tag(FixedBase, _not_written, lambda read, json: FixedBase(read.value(json))),
}
