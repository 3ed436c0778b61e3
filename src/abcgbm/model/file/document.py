"""The part of a model file that people read: `model.json`."""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.categories import Levels
from abcgbm.data.encoding import Encoding
from abcgbm.data.tables import Schema
from abcgbm.model.file.errors import ModelFileError, as_model_file_errors
from abcgbm.model.file.values import JsonReader, to_json
from abcgbm.model.history import History

FORMAT = 1
NEEDS = "0.1.0"  # the first version that reads this format
_START = b'{\n "digest": "'
_N_HEX = 64
_MOST_BYTES = 2**28
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
    if len(text) > _MOST_BYTES or not text.startswith(_START):
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


def json_of_encoding(encoding: Encoding) -> dict[str, Any]:
    """Return names and levels of features; which are categories is an array beside."""
    names = encoding.schema.feature_names
    return {
        "names": None if names is None else names.tolist(),
        "levels": [
            {"feature": feature, "n_codes": levels.n_codes, "levels": to_json([*levels.code_of])}
            for feature, levels in encoding.levels.items()
        ],
        "handle_unknown": encoding.handle_unknown,
    }


def encoding_of_json(
    document: Any, is_categorical: NDArray[np.bool_], reader: JsonReader
) -> Encoding:
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
    return Encoding(schema, levels, entry(document, "handle_unknown", str))


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _levels(column: str, document: Any, reader: JsonReader) -> Levels:
    levels = reader.value(entry(document, "levels", list))
    last = entry(document, "n_codes", int) - 1
    if {type(level) for level in levels} - {str, float} or not -1 <= last < len(levels):
        raise ModelFileError(f"model.json: levels of {column} that are neither strings nor numbers")
    code_of = {level: min(code, last) for code, level in enumerate(levels)}
    if len(code_of) != len(levels):
        raise ModelFileError(f"model.json: a level of {column} is there twice")
    return Levels(column, code_of)


# ---------------------------------------------------------------------------------------- training


def json_of_history(history: History | None) -> dict[str, Any] | None:
    """Return a training in short; its losses are arrays beside."""
    if history is None:
        return None
    return {
        "n_steps": history.n_steps,
        "best_step": history.best_step,
        "stop_reason": history.stop_reason,
        "seed": history.seed,
        "chosen": {name: to_json(value) for name, value in history.chosen.items()},
        "train_weight": history.train_weight,
        "validation_weight": history.validation_weight,
    }


def history_of_json(document: Any, arrays: dict[str, Any], reader: JsonReader) -> History:
    """Return the record of a training; version 0.1 wrote no weights."""
    chosen = entry(document, "chosen", dict)
    weights = {
        name: entry(document, name, float, type(None)) for name in _WEIGHTS & document.keys()
    }
    return History(
        **arrays,
        best_step=entry(document, "best_step", int),
        stop_reason=entry(document, "stop_reason", str),
        seed=entry(document, "seed", int),
        chosen={name: reader.value(value) for name, value in chosen.items()},
        **weights,
    )
