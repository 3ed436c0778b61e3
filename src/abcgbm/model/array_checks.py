"""Checks of arrays from files and pickles, and read-only dataclasses."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from abcgbm._version import VERSION
from abcgbm.data.digest import digest_of

Shape = tuple[int | None, ...]  # None is any length


def check_array(name: str, array: Any, dtype: DTypeLike, shape: Shape) -> tuple[int, ...]:
    """Check type, layout and shape of an array; return its shape."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{name} is of type {kind}; expected an array of {np.dtype(dtype)}")
    found: tuple[int, ...] = array.shape
    if not fits(found, shape):
        raise ValueError(f"{name} has shape {found}; expected {shown_shape(shape)}")
    return found


def shown_shape(shape: Shape) -> str:
    """Format an expected shape for an error message."""
    return str(tuple("any" if length is None else length for length in shape)).replace("'", "")


def fits(found: tuple[int, ...], shape: Shape) -> bool:
    """Whether a shape matches the expected one."""
    pairs = zip(found, shape, strict=False)
    return len(found) == len(shape) and all(
        expected in (None, length) for length, expected in pairs
    )


def check_range(name: str, array: NDArray[Any], low: float, end: float) -> None:
    """Check that values are in [low, end); NaN is not."""
    if array.size and not (array.min() >= low and array.max() < end):
        raise ValueError(f"{name} has values out of range; expected {low} to less than {end}")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Check that no value is NaN or infinite."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has values that are not finite")


def check_starts(name: str, starts: NDArray[np.int64], end: int) -> None:
    """Check start offsets into a concatenated array, whose length is the last entry."""
    rises = len(starts) > 0 and starts[0] == 0 and starts[-1] == end
    if not rises or not (starts[:-1] <= starts[1:]).all():
        raise ValueError(f"{name} does not rise from 0 to {end}")


def read_only(owner: Any) -> None:
    """Make the arrays of a dataclass read-only: cached properties would not follow a change."""
    for field in fields(owner):
        value = getattr(owner, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)


class ReadOnly:
    """Base class of frozen dataclasses whose pickles hold a digest of all fields.

    A digest detects damage but no manipulation, as anyone can compute one. So ``check`` validates
    the fields after loading, too.
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
        values = {name: v for name, v in state.items() if name not in ("digest", "version")}
        if state.get("digest") != digest_of(values):
            raise ValueError(
                f"the pickled {kind} was changed or damaged (its digest does not match its content), or "
                f"is of another version: abcgbm {written_by} wrote it, this is {VERSION}"
            )
        values = _defaults(self) | values
        unexpected = values.keys() ^ {field.name for field in fields(self)}  # type: ignore[arg-type]
        if unexpected:
            raise ValueError(
                f"the pickled {kind} is of abcgbm {written_by}, this is {VERSION}: only one of the two "
                f"has the fields {sorted(unexpected)}; expected a pickle of the same version, or a model "
                "file (save_model)"
            )
        self.__dict__.update(values)
        self.check()

    def check(self) -> None:
        """Raise ValueError unless all fields are valid, so that every use of them is safe."""
        raise NotImplementedError


def _defaults(owner: Any) -> dict[str, Any]:
    """Return the default values of fields that have one."""
    return {field.name: field.default for field in fields(owner) if field.default is not MISSING}
