"""Small models and manipulated model files, for the tests of model files."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from abcgbm import ABCBoostClassifier
from abcgbm.model.file.archive import archive_of
from abcgbm.model.file.document import text_of
from models import noisy_data, small

X, Y = noisy_data(n_rows=150, n_features=3, n_classes=3)
FRAME = pd.DataFrame(X, columns=["slope", "depth", "age"])
FRAME["soil"] = np.array(["clay", "peat", None, "sand"], object)[Y + (X[:, 0] > 0)]
LABELS = np.array(["heath", "marsh", "wood"], object)[Y]
Members = dict[str, bytes]


def small_models() -> dict[str, ABCBoostClassifier]:
    """Return two models with categories, missing values, base classes and a refit."""
    few = {"max_iter": 2, "max_leaf_nodes": 4}
    return {
        "per class": small("abc-logitboost", **few).fit(FRAME, LABELS),
        "shared": small("multi-output", early_stopping=True, refit=True, **few).fit(FRAME, LABELS),
    }


def content_of(model: ABCBoostClassifier) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


def loaded(content: bytes) -> ABCBoostClassifier:
    return ABCBoostClassifier.load_model(io.BytesIO(content))


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def document_in(members: Mapping[str, bytes]) -> dict[str, Any]:
    return json.loads(members["model.json"])


def with_valid_digests(
    members: Members, change: Callable[[dict[str, Any]], None] | None = None
) -> bytes:
    """Return a file of these members with valid digests, as an attacker could make it.

    ``change`` may alter the document.
    """
    document = document_in(members)
    del document["digest"]
    arrays = {name: content for name, content in members.items() if name != "model.json"}
    document["digests"] = {name: hashlib.sha256(of).hexdigest() for name, of in arrays.items()}
    if change is not None:
        change(document)
    return archive_of({"model.json": text_of(document)} | arrays)


def with_document_text(members: Members, text: bytes) -> bytes:
    """Return the file with this text as its document, and a valid digest of it."""
    start = len(b'{\n "digest": "')
    rest = text[start + 64 :]
    digest = hashlib.sha256(rest).hexdigest().encode()
    return archive_of(members | {"model.json": text[:start] + digest + rest})


def with_array(content: bytes, name: str, change: Callable[[np.ndarray], Any]) -> bytes:
    """Return the file with one array changed, and valid digests."""
    members = members_of(content)
    array = np.load(io.BytesIO(members[f"{name}.npy"]), allow_pickle=False).copy()
    changed = change(array)
    members[f"{name}.npy"] = npy(array if changed is None else changed)
    return with_valid_digests(members)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=array.dtype == object)
    return stream.getvalue()
