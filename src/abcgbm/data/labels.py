"""Labels to class numbers."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

_MOST_SHOWN = 10  # labels in an error message


def as_labels(y: ArrayLike, n_rows: int, name: str = "y") -> NDArray[Any]:
    """Return labels as an array, one for each row."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None")
    labels = _flat(y, name)
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} labels; {name.replace('y', 'X')} has {n_rows} rows"
        )
    return labels


def _flat(y: Any, name: str) -> NDArray[Any]:
    try:
        labels: NDArray[Any] = column_or_1d(_plain(y), warn=True)
    except ValueError as error:
        if not str(error).startswith("y should be"):
            raise
        raise ValueError(name + str(error).removeprefix("y")) from error
    return labels


def _plain(y: Any) -> Any:
    """Labels in forms that scikit-learn does not read, or not as they are.

    Nullable columns of pandas without a missing value become NumPy's type, not floats; masked
    labels are missing.
    """
    if isinstance(y, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(y)
        if not mask.any():
            return y.data
        labels = y.data.astype(object)
        labels[mask] = None
        return labels
    if getattr(getattr(y, "dtype", None), "kind", "") == "T":  # NumPy's strings of any length
        return y.astype(object)
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is None or not hasattr(y, "isna") or y.isna().any():
        return y
    return y.to_numpy(dtype=numpy_dtype)


def check_labels(
    labels: NDArray[Any], name: str, which: NDArray[np.int64] | slice = slice(None)
) -> NDArray[Any]:
    """Return labels of which none is missing, classes rather than numbers.

    ``which`` are their rows, for errors.
    """
    missing = _missing_rows(labels)
    if len(missing):
        first = missing[0] if isinstance(which, slice) else which[missing[0]]
        raise ValueError(f"{name} contains NaN or None at {len(missing)} row(s), first at {first}")
    labels = _without_objects(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} contains infinity; expected finite labels")
    if labels.dtype != object:
        check_classification_targets(labels)
    return labels


def _without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Numbers and truth values kept as objects, as pandas does, become an array of their type."""
    if labels.dtype != object or any(isinstance(label, str) for label in labels.tolist()):
        return labels
    narrow = np.array(labels.tolist())
    return narrow if narrow.ndim == 1 else labels


def known_classes(classes: Any) -> NDArray[Any]:
    """Return a given list of classes, sorted."""
    if isinstance(classes, str | bytes | Mapping) or not np.iterable(classes):
        raise TypeError(f"classes={classes!r}; expected a list of labels")
    flat = _flat(list(classes) if isinstance(classes, AbstractSet) else classes, "classes")
    given = check_labels(flat, "classes")
    known, _ = _unique(given, "classes")
    if len(known) != len(given):
        raise ValueError(f"classes={_shown(given)}; expected each label once")
    if len(known) < 2:  # noqa: PLR2004
        raise ValueError(f"classes={_shown(given)}; expected at least 2 classes")
    return known


def encode_labels(
    labels: NDArray[Any], classes: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted classes and the class number of each row.

    With given classes all labels must be among them; a class may be without rows.
    """
    if classes is not None:
        return classes, class_numbers(labels, classes)
    found, class_of_row = _unique(labels, "y")
    if len(found) < 2:  # noqa: PLR2004
        raise ValueError(f"y has 1 class, {found.tolist()[0]!r}; expected at least 2 classes")
    return found, class_of_row


_HINT = "; the parameter classes can name more than y has"


def class_numbers(
    labels: NDArray[Any], classes: NDArray[Any], name: str = "y"
) -> NDArray[np.int32]:
    """Return the class number of each label."""
    found, which = _unique(labels, name)
    number = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in found.tolist() if label not in number]
    if unknown:
        raise ValueError(
            f"{name} has labels that are not among the classes: {_shown(unknown)}; "
            f"expected some of {_shown(classes)}{_HINT if name != 'y' else ''}"
        )
    of_found = np.array([number[label] for label in found.tolist()], dtype=np.int32)
    numbers: NDArray[np.int32] = of_found[which]
    return numbers


def _unique(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    try:
        found, which = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        kinds_text = ", ".join(kinds)
        raise TypeError(f"{name} mixes labels of types {kinds_text}; expected one type") from error
    return found, which.astype(np.int32)


def _shown(labels: Any) -> str:
    """Return labels as text, the first ten of them."""
    listed = np.asarray(labels).tolist() if isinstance(labels, np.ndarray) else list(labels)
    more = ", ..." if len(listed) > _MOST_SHOWN else ""
    return "[" + ", ".join(map(repr, listed[:_MOST_SHOWN])) + more + "]"


def _missing_rows(labels: NDArray[Any]) -> NDArray[np.int64]:
    if labels.dtype == object:
        return np.flatnonzero([_is_missing(label) for label in labels.tolist()])
    return np.flatnonzero(labels != labels)  # noqa: PLR0124


def _is_missing(label: object) -> bool:
    # NaN and NaT are the values that differ from themselves; pandas.NA answers neither yes nor no.
    return label is None or type(label).__name__ == "NAType" or label != label  # noqa: PLR0124
