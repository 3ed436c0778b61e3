"""Labels of any container as a NumPy array that keeps their type."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# How pandas, Arrow and polars ask which values are missing, and leave these out.
_MISSING_VALUES = (("isna", "dropna"), ("is_null", "drop_null"), ("is_null", "drop_nulls"))


def plain_labels(y: Any, name: str) -> Any:
    """Return labels as an array of their own type; scikit-learn judges what is no container.

    scikit-learn makes floats of categories that are truth values, and of nullable columns.
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
    return _complete(y, dtype, name)


def _complete(y: Any, dtype: Any, name: str) -> Any:
    """Return the labels of a container that has no missing value."""
    values = getattr(y, "array", y)
    if hasattr(dtype, "pyarrow_dtype"):
        return plain_labels(values.__arrow_array__(), name)
    if hasattr(dtype, "categories") and hasattr(values, "codes"):
        return plain_labels(dtype.categories, name)[np.asarray(values.codes)]
    if hasattr(dtype, "numpy_dtype"):
        return y.to_numpy(dtype=dtype.numpy_dtype)
    return _array(values.to_dense() if hasattr(values, "to_dense") else y)


def _array(y: Any) -> Any:
    if getattr(getattr(y, "dtype", None), "kind", "") == "T":  # NumPy's strings of any length
        return y.astype(object)
    labels = np.asarray(y) if hasattr(y, "__array__") else y
    if getattr(getattr(labels, "dtype", None), "kind", "") == "U" and hasattr(y, "to_list"):
        return object_array(y.to_list())  # strings of polars, whose last zeros NumPy drops
    return labels


def object_array(y: list[Any] | tuple[Any, ...]) -> Any:
    """Return a list as an array of its very objects, or of strings if it holds nothing else.

    Lists of lists stay for scikit-learn to judge.
    """
    if any(isinstance(label, list | np.ndarray) for label in y):
        return y
    if set(map(type, y)) == {str}:
        strings = np.array(y)
        if strings.tolist() == list(y):  # NumPy's drop zeros at their end
            return strings
    return np.fromiter(y, dtype=object, count=len(y))


def with_missing(missing: NDArray[np.bool_], present: NDArray[Any]) -> NDArray[Any]:
    """Return all labels from those that are present; they keep their type beside missing ones."""
    if present.dtype.kind in "mM":
        labels = np.full(missing.shape, "NaT", dtype=present.dtype)
        labels[~missing] = present
        return labels
    labels = np.full(missing.shape, None, dtype=object)
    labels[~missing] = np.fromiter(present, dtype=object, count=len(present))
    return labels


def _split(y: Any) -> tuple[NDArray[np.bool_] | None, Any]:
    """Return which labels are missing and those that are not; None if there are none to leave out."""
    for ask, drop in _MISSING_VALUES:
        if hasattr(y, ask) and hasattr(y, drop):
            missing = np.asarray(getattr(y, ask)(), dtype=bool)
            return (
                (missing, getattr(y, drop)()) if missing.ndim == 1 and missing.any() else (None, y)
            )
    return None, y


def check_no_time_zone(dtype: Any, name: str) -> None:
    """Refuse times in a zone: NumPy has none, so that they would come back as other labels."""
    of = getattr(dtype, "pyarrow_dtype", dtype)
    of = getattr(of, "value_type", of)  # of a dictionary
    zone = getattr(of, "tz", None) or getattr(of, "time_zone", None)
    if zone is not None:
        raise TypeError(
            f"{name} has times in the zone {str(zone)!r}; expected times without a zone, such as "
            "those of tz_convert(None) in pandas, or strings"
        )
