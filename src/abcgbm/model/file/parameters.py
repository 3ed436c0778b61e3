"""The parameters of an estimator that a model file keeps."""

import warnings
from collections.abc import Mapping
from typing import Any

from abcgbm.model.file.values import to_json

# What belongs to a machine or an evening rather than to a model: the same model, the same bytes.
_NOT_OF_THE_MODEL = ("n_jobs", "verbose", "checkpoint", "checkpoint_every")
# What fit would act on: a file that names a path for it would have that path written to.
_ACTED_ON = (*_NOT_OF_THE_MODEL, "callbacks")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError if a file sets a parameter that makes fit do something outside the model."""
    for name in _ACTED_ON:
        if parameters.get(name) is not None:
            raise ValueError(
                f"the parameter {name}={parameters[name]!r}; expected null, because fit would act on it"
            )


def set_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a file sets: those that fit acts on have their defaults."""
    return {name: value for name, value in parameters.items() if name not in _ACTED_ON}


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
    kept: dict[str, Any] = {}
    dropped: dict[str, str] = {}
    for name, value in parameters.items():
        if name in _NOT_OF_THE_MODEL:
            continue
        if name == "callbacks" and isinstance(value, list | tuple) and not value:
            kept[name] = None
        elif _can_be_held(name, value):
            kept[name] = value
        else:
            dropped[name] = type(value).__name__
    return kept, dropped


def _can_be_held(name: str, value: Any) -> bool:
    if name in _ACTED_ON:
        return value is None
    try:
        to_json(value)
    except TypeError:
        return False
    return True
