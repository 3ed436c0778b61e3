"""Crafted model files: no side effects in fit, and exactly one archive of one model."""

import zipfile

import numpy as np
import pytest

from abcgbm import ABCBoostClassifier, Checkpoint, ModelFileError
from abcgbm.data.schema import Schema
from abcgbm.model.file.archive import archive_of
from model_files import (
    FRAME,
    LABELS,
    X,
    Y,
    content_of,
    document_in,
    loaded,
    members_of,
    with_document_text,
    with_valid_digests,
)
from models import assert_same_model, small
from stored_models import FOLDER

SMALL = {"max_iter": 2, "max_leaf_nodes": 3}
MODEL = small(**SMALL).fit(FRAME, LABELS)
CONTENT = content_of(MODEL)
ACTED_ON = ("n_jobs", "verbose", "callbacks")
ACTED_ON_IN_FORMAT_1 = (*ACTED_ON, "checkpoint", "checkpoint_every")
FORMAT_1 = (FOLDER / "two_classes.abcgbm").read_bytes()


def with_parameters(content, **parameters):
    return with_valid_digests(
        members_of(content), lambda document: document["parameters"].update(parameters)
    )


# -------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", 10_000),
        ("n_jobs", 0),
        ("verbose", 1),
        ("verbose", 0),
        ("verbose", False),
        ("callbacks", "victim.csv"),
        ("callbacks", ["victim.csv"]),
        ("callbacks", [{"Categorical": {}}]),
    ],
)
def test_parameter_with_side_effects_in_fit_is_an_error(name, value):
    with pytest.raises(ModelFileError, match=rf"the parameter {name}=.*; expected null"):
        loaded(with_parameters(CONTENT, **{name: value}))


@pytest.mark.parametrize("where", [lambda of: of, lambda of: [of], lambda of: [[of]]])
def test_file_cannot_store_a_checkpoint_callback(where):
    checkpoint = {"Checkpoint": {"path": "victim.csv", "every": 1}}
    for name in ("callbacks", "algorithm", "scoring"):
        with pytest.raises(ModelFileError, match="a value of unknown type 'Checkpoint'"):
            loaded(with_parameters(CONTENT, **{name: where(checkpoint)}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoint", "victim.csv"),
        ("checkpoint", ""),
        ("checkpoint", {"bytes": b"victim.csv".hex()}),
        ("checkpoint_every", 1),
        ("n_jobs", 10_000),
        ("verbose", 1),
        ("callbacks", []),
        ("callbacks", ["victim.csv"]),
    ],
)
def test_parameter_of_format_1_with_side_effects_in_fit_is_an_error(name, value):
    with pytest.raises(ModelFileError, match=rf"the parameter {name}=.*; expected null"):
        loaded(with_parameters(FORMAT_1, **{name: value}))


def test_null_for_a_parameter_with_side_effects_in_format_1_is_the_default():
    model = loaded(with_parameters(FORMAT_1, **dict.fromkeys(ACTED_ON_IN_FORMAT_1)))
    assert (model.n_jobs, model.verbose, model.callbacks) == (None, 0, None)


@pytest.mark.parametrize(
    "name", ["algorithm", "trees", "base_class", "init", "refresh", "recenter"]
)
@pytest.mark.parametrize("value", [3, [], {"dict": []}, {"float": "nan"}, "x" * 1000, True])
def test_any_value_of_format_1_loads_or_is_an_error(name, value):
    try:
        model = loaded(with_parameters(FORMAT_1, **{name: value}))
    except ModelFileError:
        return
    model.predict(X)


@pytest.mark.parametrize("history", ["history", "refit_history"])
@pytest.mark.parametrize("name", ACTED_ON)
def test_resolved_parameter_with_side_effects_is_an_error(name, history):
    given = {"early_stopping": True, "refit": True, "max_iter": 3}
    content = content_of(small(**given).fit(X, Y))
    with pytest.raises(ModelFileError, match=rf"the parameter {name}='victim'; expected null"):
        loaded(
            with_valid_digests(
                members_of(content),
                lambda d: d[history]["resolved_params"].update({name: "victim"}),
            )
        )


def test_long_value_is_shortened_in_the_error():
    with pytest.raises(ModelFileError) as raised:
        loaded(with_parameters(CONTENT, n_jobs="x" * 10_000))
    assert len(str(raised.value)) < 400


def test_null_for_a_parameter_with_side_effects_is_the_default():
    model = loaded(with_parameters(CONTENT, **dict.fromkeys(ACTED_ON)))
    assert_same_model(model, MODEL)
    defaults = ABCBoostClassifier().get_params()
    assert {name: getattr(model, name) for name in ACTED_ON} == {
        name: defaults[name] for name in ACTED_ON
    }
    model.fit(FRAME, LABELS)


@pytest.mark.parametrize("name", ACTED_ON)
def test_checkpoint_with_a_side_effect_parameter_is_not_resumed(name, tmp_path):
    path = tmp_path / "run"
    small(callbacks=[Checkpoint(path)], **SMALL).fit(X, Y)
    path.write_bytes(with_parameters(path.read_bytes(), **{name: 1}))
    with pytest.raises(ModelFileError, match=f"the parameter {name}=1; expected null"):
        small(**SMALL).fit(X, Y, resume_from=path)


@pytest.mark.parametrize("callbacks", [None, [], ()], ids=repr)
def test_file_stores_no_parameter_with_side_effects(callbacks, tmp_path):
    path = tmp_path / "run"
    given = {"n_jobs": 1, "callbacks": [*(callbacks or []), Checkpoint(path, every=1)]}
    model = small(**given, **SMALL).fit(X, Y).set_params(verbose=3)
    for content in (content_of(model), path.read_bytes()):
        held = document_in(members_of(content))["parameters"]
        assert {name: held.get(name) for name in ACTED_ON} == dict.fromkeys(ACTED_ON)
        loaded(content)
    assert_same_model(small(**SMALL).fit(X, Y, resume_from=path), model)


@pytest.mark.parametrize("callbacks", ["x", [1]], ids=repr)
def test_invalid_callbacks_are_named_and_not_stored(callbacks):
    model = small(**SMALL).fit(X, Y).set_params(callbacks=callbacks)
    with pytest.warns(UserWarning, match="cannot hold the value of callbacks"):
        content = content_of(model)
    assert loaded(content).callbacks is None


NUMBERS = {
    "max_bins": [1, 65535, 10**30],
    "max_leaf_nodes": [1, 32769, 10**30],
    "max_depth": [0, -1],
    "max_iter": [0, -1, 1.5],
    "max_features": [0, 1.5, 10**30],
    "n_iter_no_change": [0],
    "learning_rate": [0, 2.0],
    "subsample": [0, 1.5],
    "min_samples_leaf": [0, -1],
    "l2_regularization": [-1],
    "tol": [-1],
    "callbacks": [[{"TimeLimit": {"seconds": seconds}}] for seconds in (0, -1)],
    "categorical_features": [{"Categorical": {"smoothing": -1}}],
    "random_state": [-1],
    "algorithm": [
        {"MultiOutputTrees": {"n_projections": 0}},
        {"MultiOutputTrees": {"min_gain": -1}},
        {"AdaptiveBaseClass": {"n_candidates": -(10**9)}},
        {"Categorical": {}},
    ],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values]
)
def test_number_from_a_file_is_validated_by_fit(name, value):
    """They load, since a model with such parameters can predict."""
    model = loaded(
        with_parameters(content_of(small("abc-mart", **SMALL).fit(X, Y)), **{name: value})
    )
    with pytest.raises((ValueError, TypeError), match=r"; expected|random_state|seed"):
        model.fit(X, Y)


@pytest.mark.parametrize("name", ["max_depth", "n_iter_no_change"])
def test_large_number_in_a_file_allocates_nothing(name):
    content = content_of(small("abc-mart", **SMALL).fit(X, Y))
    model = loaded(with_parameters(content, **{name: 10**30})).fit(X, Y)
    assert_same_model(model, loaded(content).fit(X, Y))


# ------------------------------------------------------------------------------------ the archive


@pytest.mark.parametrize("junk", [b"\0", b"#!/bin/sh\n", bytes(70_000), CONTENT], ids=len)
def test_bytes_before_or_after_the_archive_are_an_error(junk):
    for content in (junk + CONTENT, CONTENT + junk):
        with pytest.raises(ModelFileError):
            loaded(content)


def test_two_archives_end_to_end_are_an_error():
    other = content_of(small(max_iter=3).fit(FRAME, LABELS))
    with pytest.raises(ModelFileError, match=r"begins at byte \d+ of the file; expected 0"):
        loaded(other + CONTENT)


def moved(content, n_bytes):
    """Return the archive after other bytes, with offsets in its directory that allow for them."""
    data = bytearray(content)
    end = len(data) - 22
    start = int.from_bytes(data[end + 16 : end + 20], "little")
    data[end + 16 : end + 20] = (start + n_bytes).to_bytes(4, "little")
    place = start
    while place < end:
        offset = int.from_bytes(data[place + 42 : place + 46], "little")
        data[place + 42 : place + 46] = (offset + n_bytes).to_bytes(4, "little")
        place += 46 + int.from_bytes(data[place + 28 : place + 30], "little")
    return bytes(n_bytes) + bytes(data)


def test_bytes_before_the_archive_are_an_error_even_if_its_directory_allows_for_them():
    assert moved(CONTENT, 0) == CONTENT
    with pytest.raises(ModelFileError, match="begins at byte 5 of the file; expected 0"):
        loaded(moved(CONTENT, 5))


def test_bytes_between_members_are_an_error():
    end = len(CONTENT) - 22
    start = int.from_bytes(CONTENT[end + 16 : end + 20], "little")
    later = (start + 3).to_bytes(4, "little")
    content = CONTENT[:start] + b"abc" + CONTENT[start : end + 16] + later + CONTENT[end + 20 :]
    with pytest.raises(ModelFileError, match=r"the central directory begins at byte"):
        loaded(content)


def test_comment_of_the_archive_is_an_error():
    content = CONTENT[:-2] + b"\x03\x00" + b"abc"
    with pytest.raises(ModelFileError, match="bytes after its archive"):
        loaded(content)


def test_zip64_archive_is_read(monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    content = archive_of(members_of(CONTENT))
    assert b"PK\x06\x06" in content
    monkeypatch.undo()
    assert_same_model(loaded(content), MODEL)
    with pytest.raises(ModelFileError):
        loaded(b"x" + content)
    with pytest.raises(ModelFileError):
        loaded(content + b"x")


def test_duplicate_feature_names_are_an_error():
    def rename(document):
        document["features"]["names"][1] = document["features"]["names"][0]

    with pytest.raises(ModelFileError, match=r"duplicate feature names: \['slope'\]"):
        loaded(with_valid_digests(members_of(CONTENT), rename))
    schema = Schema(np.zeros(3, dtype=bool), np.array(["a", "b", "a"], object))
    with pytest.raises(ValueError, match="duplicate feature names"):
        schema.check()


def test_duplicate_key_of_the_document_is_an_error():
    members = members_of(CONTENT)
    text = members["model.json"].replace(
        b'"recenter": false', b'"recenter": false, "recenter": true'
    )
    with pytest.raises(ModelFileError, match="two entries of the same name"):
        loaded(with_document_text(members, text))
