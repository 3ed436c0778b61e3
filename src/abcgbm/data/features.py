"""Features by name or by number."""

from typing import Any

from numpy.typing import NDArray

from abcgbm.settings.checks import is_integer


def find_feature(item: Any, n_features: int, names: NDArray[Any] | None) -> int | None:
    """Return the number of the feature that a user named, by name or by number; None: there is none."""
    if isinstance(item, str):
        known: list[str] = [] if names is None else names.tolist()
        return known.index(item) if item in known else None
    if is_integer(item) and 0 <= int(item) < n_features:
        return int(item)
    return None
