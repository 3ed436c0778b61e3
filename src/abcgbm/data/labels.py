"""Validation of labels, and conversion to class numbers."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from abcgbm.communication.collectives import raise_together
from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data.arrays import chunks, is_missing, naming
from abcgbm.errors import quoted_list, shorten

ALLOWED_LABELS = "strings, integers, booleans, floats with integer values, or dates"
_KINDS = "biufUSTMmO"  # kinds of arrays that may hold labels
_GROUPS: tuple[tuple[Any, type], ...] = (
    (str, str),
    (bytes, bytes),
    (Integral, int),
    (float | np.floating, float),
    (date, date),
    (timedelta, timedelta),
)
# Methods of pandas, Arrow and polars that find missing values, and that drop them.
_MISSING_VALUES = (("isna", "dropna"), ("is_null", "drop_null"), ("is_null", "drop_nulls"))
_MAX_AT_ONCE = 250_000  # labels sorted per call, during which the GIL is held
_MAX_CHARACTERS = 22  # of a label in a figure
_CLASSES_HINT = "; use the parameter classes to declare labels that y does not have"


class CodedLabels(NamedTuple):
    """Labels of many rows as codes of distinct labels.

    Attributes
    ----------
    known : ndarray
        The distinct labels, in any order.
    code : ndarray of int32 of shape (n_rows,)
        Index of each row's label in ``known``; -1 if it is missing.
    """

    known: NDArray[Any]
    code: NDArray[np.int32]


AnyLabels = NDArray[Any] | CodedLabels


# ------------------------------------------------------------------------------------- validation


def as_labels(y: ArrayLike | CodedLabels, n_rows: int, name: str = "y") -> AnyLabels:
    """Convert y to an array with one label for each row; coded labels are returned as they are."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None")
    if isinstance(y, CodedLabels):
        return y
    if isinstance(y, str):
        raise ValueError(  # noqa: TRY004 (valid for other tables)
            f"{name}={y!r}; expected one label for each row. The name of a column is allowed only if "
            f"{name.replace('y', 'X')} is a path, a pyarrow dataset or a LargeTable"
        )
    labels = _as_1d(y, name)
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} labels; {name.replace('y', 'X')} has {n_rows} rows"
        )
    return labels


def _as_1d(y: Any, name: str) -> NDArray[Any]:
    with naming(name):
        plain = plain_labels(y, name)
    kind = getattr(getattr(plain, "dtype", None), "kind", "O")
    if kind not in _KINDS:
        raise TypeError(f"{name} is an array of type {plain.dtype}; expected {ALLOWED_LABELS}")
    try:
        labels: NDArray[Any] = column_or_1d(plain, warn=True)
    except Exception as error:
        if str(error).startswith("y should be"):
            raise ValueError(name + str(error).removeprefix("y")) from error
        with naming(name):
            raise
    return labels


def check_rows_labels(
    labels: AnyLabels, name: str, which: NDArray[np.int64] | slice, *, has_classes: bool
) -> AnyLabels:
    """Return the labels of some rows of a table, after checking them."""
    if not isinstance(labels, CodedLabels):
        return check_labels(labels[which], name, which, has_classes=has_classes)
    code = labels.code[which]
    _check_none_missing(np.flatnonzero(code < 0), name, which)
    occurs = np.zeros(len(labels.known), dtype=bool)
    occurs[code] = True  # labels that only zero-weight rows have are not checked
    known = check_labels(labels.known[occurs], name, has_classes=True)
    return CodedLabels(known, (np.cumsum(occurs) - 1).astype(np.int32)[code])


def check_labels(
    labels: NDArray[Any],
    name: str,
    which: NDArray[np.int64] | slice = slice(None),
    *,
    has_classes: bool = False,
) -> NDArray[Any]:
    """Return labels after checking that none is missing, and that all are class labels of one type.

    Parameters
    ----------
    labels : ndarray
        The labels.
    name : str
        Name of the argument in errors.
    which : ndarray of int64 or slice
        Row numbers of the labels, for errors.
    has_classes : bool
        Whether the classes are known. If not, scikit-learn warns of many distinct labels.
    """
    _check_none_missing(_missing_rows(labels), name, which)
    if labels.dtype == object:
        labels = _of_one_type(labels, name)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} contains infinity; expected finite labels")
    if labels.dtype != object and len(labels):
        check_classification_targets(np.tile(labels, 2) if has_classes else labels)
    return labels


def _check_none_missing(
    missing: NDArray[np.int64], name: str, which: NDArray[np.int64] | slice
) -> None:
    if len(missing):
        first = missing[0] if isinstance(which, slice) else which[missing[0]]
        raise ValueError(f"{name} contains NaN or None at {len(missing)} row(s), first at {first}")


def _missing_rows(labels: NDArray[Any]) -> NDArray[np.int64]:
    if labels.dtype == object:
        return np.flatnonzero([is_missing(label) for label in labels.tolist()])
    return np.flatnonzero(labels != labels)  # noqa: PLR0124


def _of_one_type(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an object array to an array of its type, if NumPy has one; other types are errors."""
    types = set(map(type, labels.tolist()))
    kinds = {_kind(of) for of in types}
    if None in kinds and len(types) == 1:
        raise TypeError(
            f"{name} has labels of type {next(iter(types)).__name__}, such as {labels[0]!r}; "
            f"expected {ALLOWED_LABELS}"
        )
    if kinds == {int, float}:
        return _as_whole_floats(labels, name)
    if len(kinds) > 1 or None in kinds:
        names = ", ".join(sorted(of.__name__ for of in types))
        raise TypeError(
            f"{name} mixes labels of types {names}; expected one type of {ALLOWED_LABELS}"
        )
    kind = next(iter(kinds), str)
    if kind is int:
        return _as_integers(labels)
    return np.array(labels.tolist()) if kind in (bool, float, np.generic) else labels


def _kind(of: type) -> type | None:
    """Return the type as which labels are compared and sorted; None if they cannot be labels."""
    if issubclass(of, np.datetime64 | np.timedelta64):
        return np.generic
    if issubclass(of, bool | np.bool_):
        return bool
    for group, kind in _GROUPS:
        if issubclass(of, group):
            return kind
    return None


def _as_integers(labels: NDArray[Any]) -> NDArray[Any]:
    """Convert Python integers to int64 or uint64; beyond both they stay objects."""
    types = set(map(type, labels.tolist()))
    if len(types) == 1 and issubclass(next(iter(types)), np.generic):
        return np.array(labels.tolist())
    values = [int(label) for label in labels.tolist()]
    low, high = min(values), max(values)
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return np.array(values, dtype=dtype)
    return labels


def _as_whole_floats(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert integers and floats to floats, if no integer is too large to be exact."""
    for label in labels.tolist():
        if isinstance(label, Integral) and abs(int(label)) > 2**53:
            raise TypeError(
                f"{name} mixes floats with the integer {label!r}, which a float cannot represent; "
                f"expected one type of {ALLOWED_LABELS}"
            )
    return np.array([float(label) for label in labels.tolist()])


# ------------------------------------------------------------------------------------- containers


def plain_labels(y: Any, name: str) -> Any:
    """Return labels as an array of their own type; what is not a container is returned unchanged.

    scikit-learn would convert boolean categories and nullable columns to floats.
    """
    if isinstance(y, list | tuple):
        return object_array(y)
    if isinstance(y, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(y)
        return with_missing(mask, y.compressed()) if mask.any() else y.data
    dtype = getattr(y, "dtype", getattr(y, "type", None))
    check_no_time_zone(dtype, name)
    missing, present = _split(y)
    if missing is not None:
        return with_missing(missing, plain_labels(present, name))
    return _without_missing(y, dtype, name)


def _without_missing(y: Any, dtype: Any, name: str) -> Any:
    """Return the labels of a container without missing values."""
    values = getattr(y, "array", y)
    if hasattr(dtype, "pyarrow_dtype"):
        return plain_labels(values.__arrow_array__(), name)
    if hasattr(dtype, "categories") and hasattr(values, "codes"):
        return plain_labels(dtype.categories, name)[np.asarray(values.codes)]
    if hasattr(dtype, "numpy_dtype"):
        return y.to_numpy(dtype=dtype.numpy_dtype)
    return _array(values.to_dense() if hasattr(values, "to_dense") else y)


def _array(y: Any) -> Any:
    if getattr(getattr(y, "dtype", None), "kind", "") == "T":  # NumPy's StringDType
        return y.astype(object)
    labels = np.asarray(y) if hasattr(y, "__array__") else y
    if getattr(getattr(labels, "dtype", None), "kind", "") == "U" and hasattr(y, "to_list"):
        return object_array(y.to_list())  # of polars: NumPy drops trailing NUL characters
    return labels


def object_array(y: list[Any] | tuple[Any, ...]) -> Any:
    """Return a list as an object array, or as a string array if it only holds strings.

    Nested lists are returned as they are, for scikit-learn to reject.
    """
    if any(isinstance(label, list | np.ndarray) for label in y):
        return y
    if set(map(type, y)) == {str}:
        strings = np.array(y)
        if strings.tolist() == list(y):  # NumPy drops trailing NUL characters
            return strings
    return np.fromiter(y, dtype=object, count=len(y))


def with_missing(missing: NDArray[np.bool_], present: NDArray[Any]) -> NDArray[Any]:
    """Return an array of all labels, given the mask of missing ones and the others."""
    if present.dtype.kind in "mM":
        labels = np.full(missing.shape, "NaT", dtype=present.dtype)
        labels[~missing] = present
        return labels
    labels = np.full(missing.shape, None, dtype=object)
    labels[~missing] = np.fromiter(present, dtype=object, count=len(present))
    return labels


def _split(y: Any) -> tuple[NDArray[np.bool_] | None, Any]:
    """Return the mask of missing labels and the others; (None, y) if no label is missing."""
    for ask, drop in _MISSING_VALUES:
        if hasattr(y, ask) and hasattr(y, drop):
            missing = np.asarray(getattr(y, ask)(), dtype=bool)
            return (
                (missing, getattr(y, drop)()) if missing.ndim == 1 and missing.any() else (None, y)
            )
    return None, y


def check_no_time_zone(dtype: Any, name: str) -> None:
    """Raise a TypeError for times with a zone: NumPy would return them as other labels."""
    of = getattr(dtype, "pyarrow_dtype", dtype)
    of = getattr(of, "value_type", of)  # of a dictionary
    zone = getattr(of, "tz", None) or getattr(of, "time_zone", None)
    if zone is not None:
        raise TypeError(
            f"{name} has times in the zone {str(zone)!r}; expected times without a zone, such as "
            "those returned by tz_convert(None) in pandas, or strings"
        )


# ---------------------------------------------------------------------------------------- classes


def known_classes(classes: Any) -> NDArray[Any]:
    """Return the classes given by the user, sorted."""
    if isinstance(classes, str | bytes | Mapping) or not np.iterable(classes):
        raise TypeError(f"classes={classes!r}; expected a list of labels")
    flat = _as_1d(list(classes) if isinstance(classes, AbstractSet) else classes, "classes")
    given = check_labels(flat, "classes", has_classes=True)
    known, _ = _unique(given, "classes")
    if len(known) != len(given):
        raise ValueError(f"classes={shorten(given.tolist())}; expected each label once")
    if len(known) < 2:  # noqa: PLR2004
        raise ValueError(f"classes={shorten(given.tolist())}; expected at least 2 classes")
    return known


def check_classes(classes: NDArray[Any]) -> None:
    """Raise a ValueError unless the array holds at least two sorted class labels."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise ValueError("the classes are not a one-dimensional array of labels")
    try:
        is_sorted = np.array_equal(known_classes(classes), classes)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if not is_sorted:
        raise ValueError(f"classes={shorten(classes.tolist())}; expected them sorted")


def encode_labels(
    labels: AnyLabels, classes: NDArray[Any] | None = None, shard: Shard = LOCAL
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted classes of all ranks, and the class number of each row.

    If ``classes`` are given, all labels must be among them; a class may have no rows.
    """
    if classes is not None:
        return classes, raise_together(shard, lambda: class_numbers(labels, classes))
    found, which = raise_together(shard, lambda: _unique(labels, "y"))
    known = _merged_labels(shard.communicator.allgather((shard.name, found)))
    if len(known) < 2:  # noqa: PLR2004
        raise ValueError(f"y has 1 class, {known.tolist()[0]!r}; expected at least 2 classes")
    return known, which if known is found else _class_numbers(found, which, known)


def _merged_labels(found: list[tuple[str, NDArray[Any]]]) -> NDArray[Any]:
    """Return the sorted distinct labels of all ranks, from pairs of rank and labels."""
    some = [of_rank for _, of_rank in found if len(of_rank)]
    if len(some) == 1:
        return some[0]
    if len({of_rank.dtype.kind for of_rank in some}) == 1:
        return _unique(np.concatenate(some), "y")[0]
    objects = object_array([label for of_rank in some for label in label_objects(of_rank)])
    try:
        return _unique(_of_one_type(np.asarray(objects, dtype=object), "y"), "y")[0]
    except TypeError as error:
        first = [(rank, label_objects(of)[0]) for rank, of in found if len(of)]
        here = first[0]
        there = next((of for of in first if _kind(type(of[1])) is not _kind(type(here[1]))), here)
        raise TypeError(
            f"y has {here[1]!r} on {here[0]}, and {there[1]!r} on {there[0]}; expected one type of "
            f"{ALLOWED_LABELS}"
        ) from error


def class_numbers(labels: AnyLabels, classes: NDArray[Any], name: str = "y") -> NDArray[np.int32]:
    """Return the class number of each label."""
    return _class_numbers(*_unique(labels, name), classes, name)


def _class_numbers(
    found: NDArray[Any], which: NDArray[np.int32], classes: NDArray[Any], name: str = "y"
) -> NDArray[np.int32]:
    """Return the class number of each row, given distinct labels and their index by row."""
    number = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in found.tolist() if label not in number]
    if unknown:
        raise ValueError(
            f"{name} has labels that are not among the classes: {quoted_list(unknown)}; "
            f"expected some of {quoted_list(classes.tolist())}{_CLASSES_HINT if name != 'y' else ''}"
        )
    of_found = np.array([number[label] for label in found.tolist()], dtype=np.int32)
    class_of_row: NDArray[np.int32] = of_found[which]
    return class_of_row


def _unique(labels: AnyLabels, name: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted distinct labels, and the index of each row's label."""
    if isinstance(labels, CodedLabels):
        classes, number = _unique(labels.known, name)
        return classes, number[labels.code].astype(np.int32, copy=False)
    try:
        found, which = _unique_in_chunks(labels)
    except TypeError as error:
        types = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise TypeError(
            f"{name} has labels of types {types} that cannot be sorted ({error}); expected one "
            f"type of {ALLOWED_LABELS}"
        ) from error
    return found, which


def _unique_in_chunks(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Do the work of ``np.unique`` in chunks, so that other threads can take the GIL in between."""
    cut = chunks(len(labels), _MAX_AT_ONCE)
    of_chunks = [np.unique(labels[rows], return_inverse=True) for rows in cut]
    if len(of_chunks) < 2:  # noqa: PLR2004
        found, which = of_chunks[0] if of_chunks else np.unique(labels, return_inverse=True)
        return found, which.astype(np.int32)
    found, place = np.unique(np.concatenate([of for of, _ in of_chunks]), return_inverse=True)
    begins = np.cumsum([0, *(len(of) for of, _ in of_chunks)])
    numbers = [place[begin + of] for begin, (_, of) in zip(begins, of_chunks, strict=False)]
    return found, np.concatenate(numbers).astype(np.int32)


def label_objects(classes: NDArray[Any]) -> list[Any]:
    """Return labels as Python objects, except dates, which NumPy would convert to integers."""
    return [*classes] if classes.dtype.kind in "mM" else classes.tolist()


def known_label(class_: Any, labels: list[Any]) -> Any:
    """Return the label that equals ``class_``."""
    found = [label for label in labels if np.ndim(class_) == 0 and label == class_]
    if not found:
        raise ValueError(f"class_={class_!r}; expected one of {quoted_list(labels)}")
    return found[0]


# ------------------------------------------------------------------------------------------- text


def shown_label(label: Any) -> str:
    """Return a label as text; quoted if it would be invisible."""
    text = str(label)
    return text if text.strip() else repr(text)


def short_label(label: Any) -> str:
    """Return a label, or any name, as text that fits into a figure."""
    text = shown_label(label)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
