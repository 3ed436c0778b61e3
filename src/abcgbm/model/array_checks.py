"""Checks of arrays from files and pickles, and read-only dataclasses."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from abcgbm._version import VERSION
from abcgbm.data.digest import digest_of

Shape = tuple[int | None, ...]  # None is any length


def check_array(name: str, array: Any, dtype: DTypeLike, shape: Shape) -> tuple[int, ...]:
    """Return the shape of an array that has an expected type and an expected shape."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{name} is of type {kind}; expected an array of {np.dtype(dtype)}")
    found: tuple[int, ...] = array.shape
    if not fits(found, shape):
        raise ValueError(f"{name} has shape {found}; expected {shown_shape(shape)}")
    return found


def shown_shape(shape: Shape) -> str:
    """Return an expected shape as text."""
    return str(tuple("any" if length is None else length for length in shape)).replace("'", "")


def fits(found: tuple[int, ...], shape: Shape) -> bool:
    """Whether a shape is the expected one."""
    pairs = zip(found, shape, strict=False)
    return len(found) == len(shape) and all(wanted in (None, length) for length, wanted in pairs)


def check_range(name: str, array: NDArray[Any], low: float, end: float) -> None:
    """Check that numbers are at least ``low`` and less than ``end``; NaN is neither."""
    if array.size and not (array.min() >= low and array.max() < end):
        raise ValueError(f"{name} has numbers out of range; expected {low} to less than {end}")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Check that there is neither NaN nor infinity among numbers."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has numbers that are not finite")


def check_starts(name: str, starts: NDArray[np.int64], end: int) -> None:
    """Check where things begin that lie end to end; the last entry is where they end."""
    rises = len(starts) > 0 and starts[0] == 0 and starts[-1] == end
    if not rises or not (starts[:-1] <= starts[1:]).all():
        raise ValueError(f"{name} does not rise from 0 to {end}")


def read_only(owner: Any) -> None:
    """Let nobody change the arrays of a dataclass: what is made of them would not follow."""
    for field in fields(owner):
        value = getattr(owner, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)


class ReadOnly:
    """A frozen dataclass whose pickled state holds a digest of its fields, which loading checks.

    A digest tells damage from what was saved, not good from bad: anybody can make one. So what is
    loaded, from a pickle or from a model file, is checked by itself, too.
    """

    def _content(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return digest_of(self._content()) == digest_of(other._content())

    def __hash__(self) -> int:
        return hash(digest_of(self._content()))

    def __getstate__(self) -> dict[str, Any]:
        state = self._content()
        return state | {"digest": digest_of(state), "version": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, written_by = type(self).__name__, state.get("version", "of an earlier version")
        values = {name: of for name, of in state.items() if name not in ("digest", "version")}
        if state.get("digest") != digest_of(values):
            raise ValueError(
                f"the pickled {kind} was changed or damaged (its digest is not that of what it "
                f"holds), or is of another version: abcgbm {written_by} wrote it, this is {VERSION}"
            )
        values = _defaults(self) | values
        odd = values.keys() ^ {field.name for field in fields(self)}  # type: ignore[arg-type]
        if odd:
            raise ValueError(
                f"the pickled {kind} is one of abcgbm {written_by}, and this is {VERSION}: of "
                f"{sorted(odd)} only one of them knows; a model file (save_model) lasts longer"
            )
        self.__dict__.update(values)
        self.check()

    def check(self) -> None:
        """Raise a ValueError if the fields do not fit each other, so that using them is safe."""
        raise NotImplementedError


def _defaults(owner: Any) -> dict[str, Any]:
    """Return the fields that may be left out."""
    return {field.name: field.default for field in fields(owner) if field.default is not MISSING}
