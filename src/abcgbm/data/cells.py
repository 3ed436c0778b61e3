"""What a single Python value is: missing, a number, or neither."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

OBJECT_KINDS = tuple("OUST")  # kinds of arrays that are looked at one by one: objects, strings
REAL_KINDS = ("b", "i", "u", "f")  # kinds of real numbers


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Name the source of values that a library cannot convert: its own error names the value alone.

    Parameters
    ----------
    what : str
        What errors call the source, for example ``column 'a'``.
    """
    try:
        yield
    except Exception as error:
        is_arrow = type(error).__module__.startswith("pyarrow")
        if not is_arrow and not isinstance(error, ValueError | OverflowError):
            raise
        raise ValueError(f"{what} has values that cannot be converted: {error}") from error


def is_missing(value: Any) -> bool:
    """Whether a Python value stands for none: None, NaN, NA, NaT."""
    # NaN differs from itself; the NA of pandas answers neither yes nor no, and is asked by name.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):  # a signalling NaN may not be compared
        return value.is_nan()
    return isinstance(value, Real | np.generic) and bool(value != value)  # noqa: PLR0124


def as_float(value: Any) -> float:
    """Return a number as a float, infinite if it is an integer beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _float_reader(name: str, hint: str = "") -> Callable[[Any], float]:
    """Return a function that reads a number, NaN where it is missing; errors call its source by name.

    The hint follows in an error that was caused by strings.
    """

    def read(value: Any) -> float:
        if isinstance(value, str | bytes):
            raise ValueError(  # noqa: TRY004 (as scikit-learn does)
                f"{name} holds strings, such as {value!r}; expected numbers{hint}"
            )
        if is_missing(value):
            return math.nan
        if not isinstance(value, Real | Decimal | np.bool_):
            raise TypeError(
                f"{name} holds values of type {type(value).__name__}, such as {shown(value)}; "
                "expected numbers (the argument must be free of strings and objects, of numbers alone)"
            )
        return as_float(value)

    return read


def floats_of(objects: Any, name: str, hint: str = "") -> NDArray[np.float64]:
    """Return objects as floats, each read by itself, as ``_float_reader`` has it."""
    read = np.frompyfunc(_float_reader(name, hint), 1, 1)
    # NumPy 2.5 warns if the CPU's flag is up afterwards, as it is where a NaN was compared.
    with np.errstate(invalid="ignore"):
        return np.asarray(read(objects), dtype=np.float64)


def shown(value: Any, most: int = 60) -> str:
    """Return a value as errors show it, cut short."""
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."


def as_reals(values: Any, name: str) -> NDArray[np.float64]:
    """Return an array-like of real numbers as floats, NaN where one is missing.

    Objects are looked at one by one, so that nothing is taken for a number that is none.
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(values))
        if len(masked):
            raise ValueError(
                f"{name} is masked at {len(masked)} row(s), first at {masked[0]}; expected a "
                "number for each row"
            )
        values = values.data
    with naming(name):
        array = np.asarray(values) if hasattr(values, "dtype") else made_array(values)
    if array.dtype.kind in OBJECT_KINDS:
        return floats_of(array.astype(object), name)
    if array.dtype.kind not in REAL_KINDS:
        raise TypeError(f"{name} is an array of type {array.dtype}; expected real numbers")
    with np.errstate(over="ignore"):  # what no float can hold is infinite
        return array.astype(np.float64, copy=False)


def made_array(values: Any) -> NDArray[Any]:
    """Return an array of what is none yet; numbers beside strings stay what they are."""
    array = np.asarray(values)
    return np.asarray(values, dtype=object) if array.dtype.kind in OBJECT_KINDS else array
