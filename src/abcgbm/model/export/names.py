"""Names instead of numbers: of features, of the levels of categories, and of classes."""

from typing import Any

from numpy.typing import NDArray

from abcgbm.data.categories import Levels
from abcgbm.model.model import Model


def feature_names(model: Model) -> list[str]:
    """Return the names of all features; x0, x1 and so on if they have none."""
    schema = model.encoding.schema
    if schema.feature_names is None:
        return [f"x{feature}" for feature in range(len(schema.is_categorical))]
    return [str(name) for name in schema.feature_names]


def label_objects(classes: NDArray[Any]) -> list[Any]:
    """Return labels as Python has them, but NumPy's dates as they are: they would become numbers."""
    return [*classes] if classes.dtype.kind in "mM" else classes.tolist()


def plain_labels(classes: NDArray[Any]) -> list[str | int | float | bool]:
    """Return labels as strings, numbers and truth values; others, such as dates, as strings."""
    labels = label_objects(classes)
    return [label if isinstance(label, str | int | float) else str(label) for label in labels]


def has_strings(levels: Levels) -> bool:
    """Whether the levels of a category are strings rather than numbers."""
    return any(isinstance(level, str) for level in levels.code_of)


def levels_by_code(levels: Levels) -> list[list[Any]]:
    """Return the levels of each code: one, or those that share it."""
    by_code: list[list[Any]] = [[] for _ in range(levels.n_codes)]
    for level, code in levels.code_of.items():
        by_code[code].append(level)
    return by_code
