"""The document of a model file: format, labels, columns, history and parameters."""

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.binned_table import ColumnEncoder
from abcgbm.data.categories import CategoryMap
from abcgbm.data.schema import Schema
from abcgbm.errors import ModelFileError, as_model_file_errors, shorten
from abcgbm.model.file.format_1 import resolved_from_format_1, weight_from_format_1
from abcgbm.model.file.json_values import JsonReader, to_json
from abcgbm.model.history import History
from abcgbm.parameters.algorithms import Checkpoint, KeepOnInterrupt, TimeLimit
from abcgbm.parameters.parameters import callback_list

# What belongs to a machine or to one run rather than to a model: the same model, the same bytes.
_NOT_OF_THE_MODEL = ("n_jobs", "verbose")
# What fit would act on: a file that names a path for a checkpoint would have that path written to.
_ACTED_ON_IN_FORMAT_1 = (*_NOT_OF_THE_MODEL, "checkpoint", "checkpoint_every", "callbacks")
_KEPT_CALLBACKS = (TimeLimit, KeepOnInterrupt)  # these write nothing, and call nothing


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError if a file sets a parameter that makes fit do something outside the model."""
    _check_are_none(parameters, _NOT_OF_THE_MODEL)
    callbacks = parameters.get("callbacks")
    is_kept = callbacks is None or (
        type(callbacks) is list and all(type(of) in _KEPT_CALLBACKS for of in callbacks)
    )
    if not is_kept:
        raise ValueError(
            f"the parameter callbacks={callbacks!r}; expected null, or a list of TimeLimit and "
            "KeepOnInterrupt, because fit would act on it"
        )


def check_parameters_of_format_1(parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError as ``check_parameters`` does, for a file of format 1."""
    _check_are_none(parameters, _ACTED_ON_IN_FORMAT_1)


def _check_are_none(parameters: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if parameters.get(name) is not None:
            raise ValueError(
                f"the parameter {name}={shorten(parameters[name])}; expected null, because fit would act "
                "on it"
            )


def set_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a file sets: those of a machine have their defaults."""
    return {name: value for name, value in parameters.items() if name not in _NOT_OF_THE_MODEL}


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
        if name == "callbacks":
            kept_here, others = _split_callbacks(value)
            dropped |= others
            if kept_here is not None or not others:
                kept[name] = kept_here
        elif _can_be_held(value):
            kept[name] = value
        else:
            dropped[name] = type(value).__name__
    return kept, dropped


def _split_callbacks(given: Any) -> tuple[list[Any] | None, dict[str, str]]:
    """Return the callbacks that a file holds, and the type of those that it cannot.

    A ``Checkpoint`` belongs to one run, as ``n_jobs`` does, so it is left out without a warning.
    """
    items = callback_list(given)
    kept = [of for of in items if type(of) in _KEPT_CALLBACKS and _can_be_held(of)]
    others = [of for of in items if not any(of is one for one in kept)]
    others = [of for of in others if not isinstance(of, Checkpoint)]
    return kept or None, {"callbacks": type(given).__name__} if others else {}


def _can_be_held(value: Any) -> bool:
    try:
        to_json(value)
    except TypeError:
        return False
    return True


FORMAT = 2
NEEDS = "0.3.0"  # the first version that reads this format
_START = b'{\n "digest": "'
_N_HEX = 64
_MAX_BYTES = 2**28
_WEIGHTS = {"train_weight", "validation_weight"}  # of the rows of a history


def text_of(document: dict[str, Any]) -> bytes:
    """Return a document as text, a line for each entry; the first is the SHA-256 of what follows it."""
    entries = [
        f' "{name}": {json.dumps(value, allow_nan=False)}' for name, value in document.items()
    ]
    rest = '",\n{}\n}}\n'.format(",\n".join(entries)).encode()
    return _START + hashlib.sha256(rest).hexdigest().encode() + rest


def document_of(text: bytes) -> dict[str, Any]:
    """Return the document of a text that somebody else may have written; of this format only."""
    end = len(_START) + _N_HEX
    if len(text) > _MAX_BYTES or not text.startswith(_START):
        raise ModelFileError("model.json does not begin as that of a model file")
    if text[len(_START) : end] != hashlib.sha256(text[end:]).hexdigest().encode():
        raise ModelFileError(
            "model.json was changed or damaged: its digest is not that of its text"
        )
    with as_model_file_errors("model.json", ValueError, RecursionError):
        document = json.loads(text, parse_constant=_refuse, object_pairs_hook=_entries)
    if not isinstance(document, dict):
        raise ModelFileError("model.json holds no document")
    _check_format(document)
    return document


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; two entries of one name have no one meaning."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("an entry is there twice")
    return entries


def _check_format(document: dict[str, Any]) -> None:
    written = document.get("format")
    if type(written) is not int or written < 1:
        raise ModelFileError(f"model.json: format={written!r}; expected a number from 1 on")
    if written > FORMAT:
        raise ModelFileError(
            f"the file is of format {written}, written by abcgbm {document.get('written_by')}; this "
            f"version of abcgbm reads formats up to {FORMAT}, abcgbm {document.get('needs')} or "
            f"later reads {written}"
        )


def entry(document: Any, name: str, *kinds: type) -> Any:
    """Return an entry of a document, of one of these types; None is one where it is named."""
    if not isinstance(document, dict) or name not in document:
        raise ModelFileError(f"model.json has no entry {name!r}")
    value = document[name]
    if type(value) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ModelFileError(f"model.json: {name!r} is {type(value).__name__}; expected {names}")
    return value


# ---------------------------------------------------------------------------------------- features


def json_of_encoding(encoding: ColumnEncoder) -> dict[str, Any]:
    """Return names and levels of features; which are categories is an array beside."""
    names = encoding.schema.feature_names
    return {
        "names": None if names is None else names.tolist(),
        "levels": [
            {"feature": feature, "n_codes": levels.n_codes, "levels": to_json([*levels.code_of])}
            for feature, levels in encoding.categories.items()
        ],
        "handle_unknown": encoding.handle_unknown,
    }


def encoding_of_json(
    document: Any, is_categorical: NDArray[np.bool_], reader: JsonReader
) -> ColumnEncoder:
    """Return how tables become numbers."""
    names = entry(document, "names", list, type(None))
    schema = Schema(is_categorical, None if names is None else _objects(names))
    schema.check()
    categorical = np.flatnonzero(is_categorical).tolist()
    of_features = entry(document, "levels", list)
    named = [entry(of_feature, "feature", int) for of_feature in of_features]
    if named != categorical:
        raise ModelFileError(
            f"model.json has levels of features {named}; the categories are {categorical}"
        )
    levels = {
        feature: _levels(schema.label(feature), of_feature, reader)
        for feature, of_feature in zip(categorical, of_features, strict=True)
    }
    return ColumnEncoder(schema, levels, entry(document, "handle_unknown", str))


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _levels(column: str, document: Any, reader: JsonReader) -> CategoryMap:
    levels = reader.value(entry(document, "levels", list))
    last = entry(document, "n_codes", int) - 1
    if {type(level) for level in levels} - {str, float} or not -1 <= last < len(levels):
        raise ModelFileError(f"model.json: levels of {column} that are neither strings nor numbers")
    code_of = {level: min(code, last) for code, level in enumerate(levels)}
    if len(code_of) != len(levels):
        raise ModelFileError(f"model.json: a level of {column} is there twice")
    return CategoryMap(column, code_of)


# ---------------------------------------------------------------------------------------- training


def json_of_history(history: History | None) -> dict[str, Any] | None:
    """Return a training in short; its losses are arrays beside."""
    if history is None:
        return None
    return {
        "n_steps": history.n_iter,
        "best_step": history.best_iteration,
        "stop_reason": history.stop_reason,
        "seed": history.seed,
        "resolved_params": {name: to_json(value) for name, value in history.chosen.items()},
        "train_weight": history.train_weight,
        "validation_weight": history.validation_weight,
    }


def history_of_json(document: Any, arrays: dict[str, Any], reader: JsonReader) -> History:
    """Return the record of a training."""
    return _history(document, arrays, reader, entry(document, "resolved_params", dict))


def history_of_format_1(
    document: Any,
    arrays: dict[str, Any],
    reader: JsonReader,
    parameters: Mapping[str, Any],
    baseline: NDArray[np.float64],
) -> History:
    """Return the record of a training from a file of format 1, with these parameters."""
    history = _history(document, arrays, reader, entry(document, "chosen", dict))
    changed: dict[str, Any] = {"chosen": resolved_from_format_1(history.chosen, parameters)}
    if history.stop_reason == "max_time":
        changed["stop_reason"] = "time_limit"
    if history.train_weight is None:
        changed["train_weight"] = weight_from_format_1(history.class_losses[0], baseline)
    if history.validation_weight is None and len(history.validation_loss):
        changed["validation_weight"] = _validation_weight(history)
    return replace(history, **changed)


def _validation_weight(history: History) -> float | None:
    """Return the weight of the validation rows, if the score is minus the mean loss."""
    with np.errstate(all="ignore"):
        weights = history.validation_loss / -history.validation_score
    is_mean = 0 < weights[0] < math.inf and np.allclose(weights, weights[0], rtol=1e-9, atol=0.0)
    return float(weights[0]) if is_mean else None


def _history(
    document: Any, arrays: dict[str, Any], reader: JsonReader, resolved: dict[str, Any]
) -> History:
    weights = {
        name: entry(document, name, float, type(None)) for name in _WEIGHTS & document.keys()
    }
    return History(
        **arrays,
        best_iteration=entry(document, "best_step", int),
        stop_reason=entry(document, "stop_reason", str),
        seed=entry(document, "seed", int),
        chosen={name: reader.value(value) for name, value in resolved.items()},
        **weights,
    )
