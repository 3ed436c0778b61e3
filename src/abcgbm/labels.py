"""Labels of any type to class numbers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


def as_labels(y: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return labels as an array, one for each row."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    labels: NDArray[Any] = column_or_1d(_without_nullable(y), warn=True)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels; X has {n_rows} rows")
    return labels


def _without_nullable(y: Any) -> Any:
    """Nullable columns of pandas without a missing value become NumPy's type, not floats."""
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is None or not hasattr(y, "isna") or y.isna().any():
        return y
    return y.to_numpy(dtype=numpy_dtype)


def check_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels of which none is missing, classes rather than numbers."""
    missing = [row for row, label in enumerate(labels.tolist()) if _is_missing(label)]
    if missing:
        raise ValueError(f"y contains NaN or None at {len(missing)} row(s), first at {missing[0]}")
    labels = _without_objects(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains infinity; expected finite labels")
    if labels.dtype != object:
        check_classification_targets(labels)
    return labels


def _without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Numbers and truth values kept as objects, as pandas does, become an array of their type."""
    if labels.dtype != object or any(isinstance(label, str) for label in labels.tolist()):
        return labels
    narrow = np.array(labels.tolist())
    return narrow if narrow.ndim == 1 else labels


def encode_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted classes and the class number of each row."""
    try:
        classes, class_of_row = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(f"y mixes labels of types {', '.join(kinds)}; expected one type") from error
    if len(classes) < 2:  # noqa: PLR2004
        raise ValueError(f"y has 1 class, {classes.tolist()[0]!r}; expected at least 2 classes")
    return classes, class_of_row.astype(np.int32)


def _is_missing(label: object) -> bool:
    # NaN and NaT are the values that differ from themselves; pandas.NA answers neither yes nor no.
    return label is None or type(label).__name__ == "NAType" or label != label  # noqa: PLR0124
