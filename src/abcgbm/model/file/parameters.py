"""The parameters of an estimator that a model file keeps."""

import warnings
from collections.abc import Mapping
from typing import Any

from abcgbm.model.file.values import to_json

# What belongs to a machine or an evening rather than to a model: the same model, the same bytes.
_NOT_OF_THE_MODEL = ("n_jobs", "verbose", "checkpoint", "checkpoint_every")


def kept_parameters(parameters: Mapping[str, Any], stacklevel: int = 2) -> dict[str, Any]:
    """Return the parameters that a model file holds; a warning names those that it cannot."""
    kept, dropped = split_parameters(parameters)
    if dropped:
        names = ", ".join(f"{name} (of type {of})" for name, of in dropped.items())
        warnings.warn(
            f"a model file cannot hold the value of {names}; a model that is loaded from it has the "
            "default instead",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
    return kept


def split_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters that a model file holds, and the types of those that it cannot."""
    kept, dropped = {}, {}
    for name, value in parameters.items():
        if name in _NOT_OF_THE_MODEL:
            continue
        try:
            to_json(value)
            kept[name] = value
        except TypeError:
            dropped[name] = type(value).__name__
    return kept, dropped
