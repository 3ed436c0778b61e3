"""`model.json`: format, labels, columns, history and parameters of a model."""

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
from abcgbm.parameters.objects import callback_list

# Parameters of a machine or a run rather than of a model; the same model gives the same bytes.
_NOT_OF_THE_MODEL = ("n_jobs", "verbose")
# Parameters with side effects in fit: a path for a checkpoint, for example, would be written to.
_ACTED_ON_IN_FORMAT_1 = (*_NOT_OF_THE_MODEL, "checkpoint", "checkpoint_every", "callbacks")
_KEPT_CALLBACKS = (TimeLimit, KeepOnInterrupt)  # without side effects


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a file sets a parameter with which fit has side effects."""
    _check_are_none(parameters, _NOT_OF_THE_MODEL)
    callbacks = parameters.get("callbacks")
    is_kept = callbacks is None or (
        type(callbacks) is list and all(type(c) in _KEPT_CALLBACKS for c in callbacks)
    )
    if not is_kept:
        raise ValueError(
            f"the parameter callbacks={shorten(callbacks)}; expected null, or a list of TimeLimit and "
            "KeepOnInterrupt, because fit would act on it"
        )


def check_parameters_of_format_1(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError like ``check_parameters``, for a file of format 1."""
    _check_are_none(parameters, _ACTED_ON_IN_FORMAT_1)


def _check_are_none(parameters: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if parameters.get(name) is not None:
            raise ValueError(
                f"the parameter {name}={shorten(parameters[name])}; expected null, because fit would act "
                "on it"
            )


def set_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a file sets, without those of a machine or a run."""
    return {name: value for name, value in parameters.items() if name not in _NOT_OF_THE_MODEL}


def kept_parameters(parameters: Mapping[str, Any], stacklevel: int = 2) -> dict[str, Any]:
    """Return the parameters that a model file can hold; warn of all others."""
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
    """Return the parameters that a model file can hold, and the types of all others."""
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
    """Return the callbacks that a file can hold, and the type of all others.

    A ``Checkpoint`` belongs to one run, like ``n_jobs``, so it is left out without a warning.
    """
    items = callback_list(given)
    kept = [item for item in items if type(item) in _KEPT_CALLBACKS and _can_be_held(item)]
    others = [item for item in items if not any(item is other for other in kept)]
    others = [item for item in others if not isinstance(item, Checkpoint)]
    return kept or None, {"callbacks": type(given).__name__} if others else {}


def _can_be_held(value: Any) -> bool:
    try:
        to_json(value)
    except TypeError:
        return False
    return True


FORMAT = 2
NEEDS = "0.3.0"  # first version that reads this format
_START = b'{\n "digest": "'
_N_HEX = 64
_MAX_BYTES = 2**28
_WEIGHTS = {"train_weight", "validation_weight"}  # of a history


def text_of(document: dict[str, Any]) -> bytes:
    """Return a document as text, one line per entry; the first line is the SHA-256 of the rest."""
    entries = [
        f' "{name}": {json.dumps(value, allow_nan=False)}' for name, value in document.items()
    ]
    rest = '",\n{}\n}}\n'.format(",\n".join(entries)).encode()
    return _START + hashlib.sha256(rest).hexdigest().encode() + rest


def document_of(text: bytes) -> dict[str, Any]:
    """Parse and check an untrusted document."""
    end = len(_START) + _N_HEX
    if len(text) > _MAX_BYTES or not text.startswith(_START):
        raise ModelFileError("model.json does not start like that of a model file")
    if text[len(_START) : end] != hashlib.sha256(text[end:]).hexdigest().encode():
        raise ModelFileError(
            "model.json was changed or damaged: its digest does not match its text"
        )
    with as_model_file_errors("model.json", ValueError, RecursionError):
        document = json.loads(text, parse_constant=_refuse, object_pairs_hook=_entries)
    if not isinstance(document, dict):
        raise ModelFileError("model.json holds no JSON object")
    _check_format(document)
    return document


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError if two entries have the same name."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("an object has two entries of the same name")
    return entries


def _check_format(document: dict[str, Any]) -> None:
    written = document.get("format")
    if type(written) is not int or written < 1:
        raise ModelFileError(f"model.json: format={written!r}; expected an integer of at least 1")
    if written > FORMAT:
        raise ModelFileError(
            f"the file is of format {written}, written by abcgbm {document.get('written_by')}; this "
            f"version of abcgbm reads formats up to {FORMAT}, abcgbm {document.get('needs')} or "
            f"later reads {written}"
        )


def entry(document: Any, name: str, *kinds: type) -> Any:
    """Return an entry of a document, which has one of the given types."""
    if not isinstance(document, dict) or name not in document:
        raise ModelFileError(f"model.json has no entry {name!r}")
    value = document[name]
    if type(value) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ModelFileError(f"model.json: {name!r} is {type(value).__name__}; expected {names}")
    return value


# ---------------------------------------------------------------------------------------- features


def json_of_encoding(encoding: ColumnEncoder) -> dict[str, Any]:
    """Return names and categories of features; an array stores which are categorical."""
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
    """Return the column encoding."""
    names = entry(document, "names", list, type(None))
    schema = Schema(is_categorical, None if names is None else _objects(names))
    schema.check()
    categorical = np.flatnonzero(is_categorical).tolist()
    of_features = entry(document, "levels", list)
    named = [entry(of_feature, "feature", int) for of_feature in of_features]
    if named != categorical:
        raise ModelFileError(
            f"model.json has categories of features {named}; expected those of {categorical}"
        )
    levels = {
        feature: _category_map(schema.label(feature), of_feature, reader)
        for feature, of_feature in zip(categorical, of_features, strict=True)
    }
    return ColumnEncoder(schema, levels, entry(document, "handle_unknown", str))


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _category_map(column: str, document: Any, reader: JsonReader) -> CategoryMap:
    categories = reader.value(entry(document, "levels", list))
    last = entry(document, "n_codes", int) - 1
    if {type(c) for c in categories} - {str, float} or not -1 <= last < len(categories):
        raise ModelFileError(
            f"model.json: categories of {column} that are neither strings nor numbers"
        )
    code_of = {category: min(code, last) for code, category in enumerate(categories)}
    if len(code_of) != len(categories):
        raise ModelFileError(f"model.json: {column} has the same category twice")
    return CategoryMap(column, code_of)


# ---------------------------------------------------------------------------------------- training


def json_of_history(history: History | None) -> dict[str, Any] | None:
    """Return all of a history except its arrays."""
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
    """Return the history of a training."""
    return _history(document, arrays, reader, entry(document, "resolved_params", dict))


def history_of_format_1(
    document: Any,
    arrays: dict[str, Any],
    reader: JsonReader,
    parameters: Mapping[str, Any],
    baseline: NDArray[np.float64],
) -> History:
    """Return the history from a file of format 1 with the given parameters."""
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
    """Return the total weight of the validation rows, if the score is minus the mean loss."""
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
