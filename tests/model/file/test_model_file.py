"""Saving and loading preserves the model, and equal models give equal files."""

import errno
import io
import json
import math
import os
import pickle
import sys
import warnings
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import model_files
import stored_models
from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    Checkpoint,
    KeepOnInterrupt,
    ModelFileError,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.data.categories import CategoryMap
from abcgbm.data.digest import digest_of
from abcgbm.data.files.atomic import write_whole
from abcgbm.model.file import ModelContents, save
from abcgbm.model.file.json_values import JsonReader, to_json
from golden import MODELS
from model_files import (
    FRAME,
    LABELS,
    X,
    Y,
    content_of,
    document_in,
    loaded,
    members_of,
    with_valid_digests,
)
from models import assert_same_model, base_labels, noisy_data, run_python, small

SMALL = {"max_iter": 2, "max_leaf_nodes": 3}


def assert_all_is_same(one, other):
    """Check that all stored state is equal, bit for bit."""
    assert_same_model(one, other)
    for name in ("model_", "history_", "refit_history_"):
        assert digest_of(getattr(one, name)) == digest_of(getattr(other, name))


# ------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", MODELS)
def test_model_is_the_same_after_a_round_trip(name):
    model = MODELS[name]()
    content = content_of(model)
    restored = loaded(content)
    assert_all_is_same(restored, model)
    assert content_of(restored) == content  # and so are the parameters


def test_loaded_model_predicts_and_continues_training_the_same():
    model = small("abc-mart", warm_start=True, **SMALL).fit(FRAME, LABELS)
    restored = loaded(content_of(model))
    np.testing.assert_array_equal(restored.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(restored.predict_proba(FRAME), model.predict_proba(FRAME))
    np.testing.assert_array_equal(
        restored.feature_importances_by_class_, model.feature_importances_by_class_
    )
    assert restored.resolved_params_ == model.resolved_params_
    assert base_labels(restored) == base_labels(model)
    assert_all_is_same(
        restored.set_params(max_iter=4).fit(FRAME, LABELS),
        model.set_params(max_iter=4).fit(FRAME, LABELS),
    )


def test_history_of_validation_and_refit_is_stored():
    model = small("multi-output", early_stopping=True, refit=True, **SMALL).fit(FRAME, LABELS)
    restored = loaded(content_of(model))
    assert restored.refit_history_ == model.refit_history_ is not None
    np.testing.assert_array_equal(restored.validation_score_, model.validation_score_)


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", "bé", "c"]),
        np.array(["a", "b", "c" * 50])[[0, 1, 0]] + np.array(["", "", "c"]),
        np.array(["a", "b", "line\nbreak"], object),
        np.array(["\ud800", "b", "null\0"], object),
        *(np.array([0, 1, 100], kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
        np.array([0, 1, 2**63], np.uint64),
        np.array([2**70, 2**80, -(2**90)], object),
        np.array([1.0, 2.0, -3.0]),
        np.array([1.0, 2.0, -3.0], np.float32),
        np.array(["2020-01-01", "2021-01-01", "1969-07-20"], "M8[D]"),
        np.array(["2020-01-01", "2021-01-01", "1969-07-20"], "M8[ns]"),
        np.array([1, 2, 3], "m8[s]"),
        np.array([date(2020, 1, 1), date(1900, 1, 1), date(2020, 2, 29)], object),
        np.array([datetime(2020, 1, d, 3, 4, 5, 6) for d in (1, 2, 3)], object),
        np.array([datetime(2020, 1, d, tzinfo=UTC) for d in (1, 2, 3)], object),
        np.array([timedelta(days=d, microseconds=1) for d in (1, 2, 3)], object),
    ],
    ids=lambda classes: f"{classes.dtype.str} {classes[-1]!r}",
)
def test_labels_of_every_type_round_trip(classes):
    model = small(**SMALL).fit(X, classes[Y])
    restored = loaded(content_of(model))
    assert restored.classes_.dtype == model.classes_.dtype
    assert [*map(type, restored.classes_)] == [*map(type, model.classes_)]
    assert restored.classes_.tolist() == model.classes_.tolist()


def test_boolean_labels_round_trip():
    model = small(**SMALL).fit(X, Y > 0)
    assert loaded(content_of(model)).classes_.dtype == bool


@pytest.mark.parametrize(
    "column",
    [
        np.array(["", "é\0", "line\n"], object)[Y],
        np.array(["x"], object)[0 * Y],
        np.array([None], object)[0 * Y],
        np.array([math.inf, -0.0, 2.5])[Y],
        np.array([f"level {i}" for i in range(len(Y))], object),
        np.arange(len(Y)) % 70,
    ],
    ids=["strings", "one", "none", "numbers", "rare", "words"],
)
def test_categories_of_every_type_round_trip(column):
    frame = FRAME.assign(soil=pd.Series(column))
    model = small(categorical_features=["soil"], max_bins=3, **SMALL).fit(frame, LABELS)
    restored = loaded(content_of(model))
    assert_all_is_same(restored, model)
    assert restored.model_.encoding.categories == model.model_.encoding.categories
    np.testing.assert_array_equal(restored.predict_proba(frame), model.predict_proba(frame))


def test_feature_names_round_trip():
    frame = FRAME.rename(columns={"slope": "é\n", "age": ""})
    model = small(**SMALL).fit(frame, LABELS)
    restored = loaded(content_of(model))
    assert restored.feature_names_in_.dtype == object
    assert restored.feature_names_in_.tolist() == frame.columns.tolist()


# -------------------------------------------------------------------------------------- parameters


def same_value(one, other):
    return type(one) is type(other) and digest_of(one) == digest_of(other)


VALUES = [
    None,
    True,
    -(2**100),
    0.1,
    -0.0,
    math.inf,
    "ä\ud800",
    [1, [2.5, "x"]],
    (0, (), "a"),
    {"a": 1.0, 3: "b", (1, 2): None, True: [1]},
    {},
    b"\0\xff",
    date(2020, 2, 29),
    datetime(2020, 2, 29, 1, 2, 3, 4),
    datetime(2020, 2, 29, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    timedelta(-1, 5, 7),
    np.int8(-3),
    np.float32(0.1),
    np.float64(math.nan),
    np.bool_(True),
    np.str_("abc"),
    np.datetime64("2020-02-29T01:02:03"),
    np.timedelta64(5, "m"),
    np.array([[1, 2], [3, 4]], np.uint16),
    np.array([0.1, math.nan, -math.inf], np.float16),
    np.array(["a", "longer"]),
    np.array([b"a", b"\xff\0x"]),
    np.array(["NaT", "2020-01-01"], "M8[us]"),
    np.array([1, "a", None, (1,)], object),
    np.array([], ">i4"),
    np.array([1, 2], ">i4"),
    MultiOutputTrees("mart", n_projections=3),
    TreePerClass(sequential_residuals=True),
    AdaptiveBaseClass(base_label=np.int64(3)),
    Categorical(["soil", 2], smoothing=0.5),
    TimeLimit(60),
    KeepOnInterrupt(),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_round_trips_with_its_type(value):
    text = json.dumps(to_json(value), allow_nan=False)
    assert same_value(JsonReader().value(json.loads(text)), value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(width=64) | st.text() | st.binary(),
        lambda parts: (
            st.lists(parts) | st.lists(parts).map(tuple) | st.dictionaries(st.text(), parts)
        ),
    )
)
def test_any_nested_value_round_trips(value):
    text = json.dumps(to_json(value), allow_nan=False)
    assert same_value(JsonReader().value(json.loads(text)), value)


@pytest.mark.parametrize("kind", [set, frozenset])
def test_set_is_written_in_a_fixed_order(kind):
    values = kind({"oak", "elm", "ash", "fir", "yew", "larch", 3, 1.5, None})
    assert to_json(values) == to_json(kind(sorted(values, key=repr)))
    assert JsonReader().value(to_json(values)) == values


@pytest.mark.parametrize(
    ("json_value", "message"),
    [
        ({}, "an object of 0 entries"),
        ({"tuple": [1], "list": []}, "an object of 2 entries"),
        ({"code": "print()"}, "unknown type 'code'"),
        ({"tuple": 3}, "not a value of type tuple: "),
        ({"dict": [1]}, "not a value of type dict: "),
        ({"dict": [[[], 1]]}, "not a value of type dict: unhashable"),
        ({"set": [[]]}, "not a value of type set: unhashable"),
        ({"set": [*range(2**13 + 1)]}, "more than 8192 keys"),
        (
            {"dict": [[key * (2**61 - 1), 0] for key in range(10**5)]},
            "more than 8192 keys",
        ),  # of one hash
        ({"date": "yesterday"}, "Invalid isoformat string: 'yesterday'"),
        ({"bytes": "zz"}, "non-hexadecimal number"),
        ({"float": []}, "not a value of type float: "),
        ({"timedelta": [10**30]}, "not a value of type timedelta: "),
        (
            {"AdaptiveBaseClass": {"import": "os"}},
            "not a value of type AdaptiveBaseClass: .*'import'",
        ),
        ({"BaseClassSearch": {}}, "unknown type 'BaseClassSearch'"),  # word: a name of format 1
        ({"scalar": 3}, "not a value of type scalar: "),
        (
            {"array": {"dtype": "<i4", "shape": [2], "values": [1]}},
            "cannot reshape array of size 1",
        ),
        (
            {"array": {"dtype": "<i4", "shape": [1], "values": [1.5]}},
            "an array of <i4 whose values do not fit",
        ),
        (
            {"array": {"dtype": "<i1", "shape": [1], "values": [300]}},
            "not a value of type array: .* out of bounds",
        ),
        (
            {"array": {"dtype": "<U1", "shape": [1], "values": ["two"]}},
            "an array of <U1 whose values do not fit",
        ),
        (
            {"array": {"dtype": "<U400000000", "shape": [1], "values": [""]}},
            "arrays of more than 268435456 bytes",
        ),
        ({"array": {"dtype": "V8", "shape": [], "values": []}}, "unknown dtype 'V8'"),
        ({"array": {"dtype": "i4,i4", "shape": [], "values": []}}, "unknown dtype 'i4,i4'"),
        (
            {"array": {"dtype": "<M8[parsec]", "shape": [0], "values": []}},
            "not a value of type array: .*parsec",
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_json_without_a_known_value_is_an_error(json_value, message):
    with pytest.raises(ValueError, match=message):
        JsonReader().value(json_value)


def test_dictionary_with_too_many_keys_is_not_written():
    with pytest.raises(TypeError, match="8193 keys; a model file holds at most 8192"):
        to_json(dict.fromkeys(range(2**13 + 1)))


def test_parameters_round_trip_with_their_types():
    given = {
        "algorithm": AdaptiveBaseClass(n_candidates=2, gap=3),
        "class_weight": {"heath": 2.0, "wood": np.float32(0.5)},
        "classes": np.array(["heath", "marsh", "wood"]),
        "interaction_cst": [[0, 1], ["soil"]],
        "categorical_features": ["soil"],
        "random_state": np.int64(3),
        "tol": 0.0,
    }
    model = small(**SMALL, **given).fit(FRAME, LABELS)
    found = loaded(content_of(model)).get_params(deep=False)
    assert all(same_value(found[name], value) for name, value in given.items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scoring", lambda model, X, y: 0.0),
        ("callbacks", [print]),
        ("random_state", np.random.default_rng(3)),
    ],
    ids=["scoring", "callbacks", "random_state"],
)
def test_parameter_that_cannot_be_stored_warns_and_is_dropped(name, value):
    model = small(**SMALL).fit(X, Y).set_params(**{name: value})
    with pytest.warns(UserWarning, match=rf"cannot hold the value of {name} \(of type") as caught:
        content = content_of(model)
    assert caught[0].filename == model_files.__file__
    assert name not in document_in(members_of(content))["parameters"]
    assert loaded(content).get_params()[name] == ABCBoostClassifier().get_params()[name]


def test_parameter_of_a_later_version_warns_and_is_dropped():
    model = small(**SMALL).fit(X, Y)
    members = members_of(content_of(model))
    content = with_valid_digests(
        members, lambda document: document["parameters"].update(depth_charge=3)
    )
    with pytest.warns(UserWarning, match=r"does not have: \['depth_charge'\]"):
        restored = loaded(content)
    assert_all_is_same(restored, model)


# ---------------------------------------------------------------------------------------- the file


def test_same_model_is_the_same_file():
    content = content_of(small(**SMALL).fit(FRAME, LABELS))
    again = small(n_jobs=2, verbose=0, **SMALL).fit(FRAME, LABELS).set_params(n_jobs=1, verbose=5)
    assert content_of(again) == content


def test_file_is_the_same_in_every_process():
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from model_files import *\nimport hashlib\n"
        "model = small(classes={'heath', 'marsh', 'wood', 'x'}, max_iter=2).fit(FRAME, LABELS)\n"
        "print(hashlib.sha256(content_of(model)).hexdigest())"
    )
    assert run_python(code, PYTHONHASHSEED="1") == run_python(code, PYTHONHASHSEED="2")


def test_file_is_an_archive_of_json_and_arrays():
    content = content_of(small(**SMALL).fit(FRAME, LABELS))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    assert infos[0].filename == "model.json"
    assert {info.compress_type for info in infos} == {zipfile.ZIP_STORED}
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:  # uses NumPy's zip reader
        names = [name for name in arrays.files if name != "model.json"]
        assert all(arrays[name].dtype.kind in "iuf" for name in names)
    document = document_in(members_of(content))
    assert [f"{name}.npy" for name in names] == [*document["digests"]]
    assert document["features"]["names"] == ["slope", "depth", "age", "soil"]
    soil = {"feature": 3, "n_codes": 3, "levels": ["clay", "peat", "sand"]}
    assert document["features"]["levels"] == [soil]
    assert document["parameters"]["max_iter"] == 2
    assert "n_jobs" not in document["parameters"]


def test_file_contains_neither_machine_nor_time(tmp_path):
    model = small(**SMALL).fit(FRAME, LABELS)
    model.save_model(tmp_path / "model.abcgbm")
    content = (tmp_path / "model.abcgbm").read_bytes()
    assert content == content_of(model)
    for word in (str(tmp_path), os.uname().nodename, sys.prefix):
        assert word.encode() not in content


@pytest.mark.parametrize("kind", ["path", "str", "open file"])
def test_model_is_saved_to_and_loaded_from_a_path_or_an_open_file(kind, tmp_path):
    model, path = small(**SMALL).fit(X, Y), tmp_path / "model.abcgbm"
    if kind == "open file":
        with path.open("wb") as file:
            model.save_model(file)
        with path.open("rb") as file:
            assert_all_is_same(ABCBoostClassifier.load_model(file), model)
    else:
        target = str(path) if kind == "str" else path
        model.save_model(target)
        assert_all_is_same(ABCBoostClassifier.load_model(target), model)


def test_file_may_be_a_stream_without_seek():
    model = small(**SMALL).fit(X, Y)
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as stream:
        model.save_model(stream)  # shorter than the buffer of a pipe
    with os.fdopen(read_end, "rb") as stream:
        assert_all_is_same(ABCBoostClassifier.load_model(stream), model)


def test_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        ABCBoostClassifier().save_model(tmp_path / "model")
    assert [*tmp_path.iterdir()] == []


def test_missing_file_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        ABCBoostClassifier.load_model(tmp_path / "none")


def test_file_of_a_newer_format_names_the_version_that_reads_it():
    members = members_of(content_of(small(**SMALL).fit(X, Y)))
    newer = {"format": 3, "needs": "7.1", "written_by": "7.2.3"}
    content = with_valid_digests(
        members | {"trees/new.npy": b""}, lambda document: document.update(newer)
    )
    with pytest.raises(
        ModelFileError, match=r"format 3, written by abcgbm 7\.2\.3.* 7\.1 or later"
    ):
        loaded(content)


def test_subclass_loads_as_itself():
    class Forester(ABCBoostClassifier):
        pass

    content = content_of(small(**SMALL).fit(X, Y))
    assert type(Forester.load_model(io.BytesIO(content))) is Forester


def test_loading_and_predicting_needs_no_data_frames(tmp_path):
    path = tmp_path / "model"
    small(categorical_features=[1], **SMALL).fit(np.round(X), LABELS).save_model(path)
    code = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'polars', 'matplotlib'): sys.modules[name] = None\n"
        "from abcgbm import ABCBoostClassifier\n"
        f"model = ABCBoostClassifier.load_model({str(path)!r})\n"
        "print(model.predict([[1.0, 0.0, 2.0]]).shape)"
    )
    assert run_python(code) == "(1,)\n"


# ------------------------------------------------------------------------------------ atomic writes


def folder_of(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()], ids=repr
)
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "model"
    path.write_bytes(b"the old one")
    before = folder_of(tmp_path)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(*((Path, step) if step == "replace" else (os, step)), fail)
    with pytest.raises(type(error)):
        small(**SMALL).fit(X, Y).save_model(path)
    assert folder_of(tmp_path) == before


def test_file_is_written_without_folder_descriptors_or_modes(tmp_path, monkeypatch):
    """As on Windows."""
    path, open_file = tmp_path / "model", os.open
    path.write_bytes(b"the old one")

    def open_no_folder(name, *flags, **options):
        if Path(name).is_dir():
            raise PermissionError(errno.EACCES, "a folder", str(name))
        return open_file(name, *flags, **options)

    monkeypatch.delattr(os, "fchmod")
    monkeypatch.setattr(os, "open", open_no_folder)
    write_whole(path, b"the new one")
    assert folder_of(tmp_path) == {"model": b"the new one"}


def test_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"the old one")
    code = (
        "import sys, signal, resource; sys.path.insert(0, 'tests')\n"
        "from model_files import *\n"
        "model = small(max_iter=2).fit(FRAME, LABELS)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"try: model.save_model({str(path)!r})\n"
        "except OSError as error: print(type(error).__name__)"
    )
    assert run_python(code, PYTHONDONTWRITEBYTECODE="1") == "OSError\n"
    assert folder_of(tmp_path) == {"model": b"the old one"}


def test_link_stays_a_link_and_mode_is_kept(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"the old one")
    path.chmod(0o600)
    link.symlink_to(path)
    model = small(**SMALL).fit(X, Y)
    model.save_model(link)
    assert link.is_symlink()
    assert path.read_bytes() == content_of(model)
    assert path.stat().st_mode & 0o777 == 0o600


def test_device_is_written_to_not_replaced():
    small(**SMALL).fit(X, Y).save_model("/dev/null")
    assert Path("/dev/null").is_char_device()


def test_folder_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError):
        small(**SMALL).fit(X, Y).save_model(tmp_path)


def test_new_file_has_the_default_mode(tmp_path):
    small(**SMALL).fit(X, Y).save_model(tmp_path / "model")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "other").stat().st_mode


# ------------------------------------------------------------------------------------ old files


STORED = sorted(path.stem for path in stored_models.FOLDER.glob("*.abcgbm"))


def stored(name):
    return ABCBoostClassifier.load_model(stored_models.FOLDER / f"{name}.abcgbm")


@pytest.mark.parametrize("name", STORED)
def test_file_of_any_format_loads_and_predicts_the_same(name):
    expected = json.loads((stored_models.FOLDER / f"{name}.json").read_text())
    model = stored(name)
    X, _ = stored_models.rows()[name]
    assert model.predict_proba(X[:12]).tolist() == expected["probabilities"]
    assert model.history_.train_loss.tolist() == expected["loss"]
    assert [str(label) for label in model.classes_] == expected["classes"]
    assert model.get_params()["max_leaf_nodes"] == 4
    assert_all_is_same(loaded(content_of(model)), model)  # as a file of this format


@pytest.mark.parametrize("name", stored_models.TRAINED_AGAIN)
def test_model_of_format_1_trains_to_the_same_bytes(name):
    model = stored(name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "max_iter=3 with the default learning rate")
        again = model.fit(*stored_models.rows()[name])
    assert stored_models.digest(again) == stored_models.TRAINED_AGAIN[name]


def test_every_file_of_format_1_is_trained_again_by_a_test():
    written = {name for name in STORED if not name.startswith("format_2")}
    assert written == set(stored_models.TRAINED_AGAIN)
    assert set(stored_models.FORMAT_2) == set(STORED) - written


def test_parameters_of_format_1_are_converted():
    assert stored("per_class").algorithm == AdaptiveBaseClass("logitboost", n_candidates=2, gap=1)
    assert stored("shared").algorithm == "multi-output"
    assert stored("two_classes").algorithm == "mart"
    assert stored("dates").algorithm == TreePerClass(baseline="prior")
    assert stored("fixed_base").algorithm == AdaptiveBaseClass(
        base_label="birch", line_search=False, baseline="prior"
    )
    assert stored("base_label").algorithm == AdaptiveBaseClass(base_label=2, min_gain=0.01)
    kept = stored("exhaustive")
    assert kept.algorithm == AdaptiveBaseClass(
        "logitboost", n_candidates=None, min_hessian_leaf=0.5
    )
    assert kept.callbacks == [TimeLimit(3600.0), KeepOnInterrupt()]
    by_class = TreePerClass("mart", sequential_residuals=True, recenter=True)
    assert stored("class_by_class").algorithm == by_class
    assert stored("worst_with_mart").algorithm == AdaptiveBaseClass(base_derivatives=False)
    assert stored("worst_with_mart").categorical_features == Categorical(
        ["soil"], smoothing=2.0, penalty=0.0, handle_unknown="error"
    )
    assert stored("shared_mart").algorithm == MultiOutputTrees(
        "mart", n_projections=2, baseline="zero"
    )
    assert stored("abc_none").algorithm == AdaptiveBaseClass("logitboost")


def test_history_of_format_1_has_means_and_resolved_parameters():
    model = stored("per_class")  # version 0.1 stored no weights
    assert model.train_loss_[0] == pytest.approx(math.log(3))
    assert model.train_loss_[0] * 90 == pytest.approx(model.history_.train_loss[0])
    assert model.resolved_params_["algorithm"] == model.algorithm
    shared = stored("shared")
    assert shared.resolved_params_["algorithm"] == MultiOutputTrees(n_projections=3)
    assert shared.validation_loss_[0] == pytest.approx(-shared.validation_score_[0])
    assert shared.refit_history_.mean_train_loss()[0] < math.log(3)


def test_removed_options_of_format_1_are_named_in_a_warning():
    def change(document):
        document["parameters"] |= {"recenter": True, "monotonic_cst": "up"}

    content = (stored_models.FOLDER / "per_class.abcgbm").read_bytes()
    message = r"does not have: \['monotonic_cst', 'recenter'\]; they are ignored"
    with pytest.warns(UserWarning, match=message):
        model = loaded(with_valid_digests(members_of(content), change))
    assert model.algorithm == stored("per_class").algorithm


def test_checkpoint_of_format_1_is_refused_by_name_and_its_model_is_read():
    path = stored_models.FOLDER.parent / "checkpoint_of_format_1.abcgbm"
    with pytest.raises(ValueError, match=r"a checkpoint of abcgbm 0\.2\.0 \(file format 1\)"):
        small().fit(stored_models.numbers(), stored_models.class_numbers(), resume_from=path)
    assert ABCBoostClassifier.load_model(path).n_iter_ == 3


def test_pickle_of_an_earlier_version_is_refused_by_name():
    path = stored_models.FOLDER.parent / "pickle_of_0_2.pickle"
    with pytest.raises(ValueError, match=r"the pickle is of abcgbm before 0\.3, this is"):
        pickle.loads(path.read_bytes())


# ------------------------------------------------------------------------------- callbacks in a file


@pytest.mark.parametrize(
    "callbacks",
    [
        {"Checkpoint": {"path": "/tmp/x", "every": None}},
        [{"Checkpoint": {"path": "/tmp/x", "every": None}}],
        [{"MultiOutputTrees": {}}],
        ["print"],
        {"tuple": [{"KeepOnInterrupt": {}}]},
    ],
    ids=str,
)
def test_file_cannot_set_callbacks_with_side_effects(callbacks):
    def change(document):
        document["parameters"]["callbacks"] = callbacks

    content = content_of(small(max_iter=1).fit(X, LABELS))
    with pytest.raises(ModelFileError, match=r"Checkpoint|callbacks="):
        loaded(with_valid_digests(members_of(content), change))


def test_callbacks_without_side_effects_are_stored_and_others_are_not(tmp_path):
    kept = [TimeLimit(1e6), KeepOnInterrupt()]
    model = small(max_iter=1, callbacks=[*kept, Checkpoint(tmp_path / "a.abcgbm")]).fit(X, LABELS)
    assert loaded(content_of(model)).callbacks == kept
    model.callbacks.append(print)
    with pytest.warns(UserWarning, match=r"cannot hold the value of callbacks \(of type list\)"):
        content = content_of(model)
    assert loaded(content).callbacks == kept


# --------------------------------------------------------------------------------- checks of content


def test_check_of_categories_counts_codes_once(monkeypatch):
    n_counted = 0
    count = CategoryMap.n_codes.fget

    def counting(categories):
        nonlocal n_counted
        n_counted += 1
        return count(categories)

    monkeypatch.setattr(CategoryMap, "n_codes", property(counting))
    CategoryMap("shop", {f"{i:03}": i for i in range(1000)}).check()
    assert n_counted == 1  # a count per category would take time quadratic in their number


def test_model_and_history_have_the_same_iterations():
    model = small(max_iter=3).fit(*noisy_data())
    shorter = model.model_.first_iterations(2)
    with pytest.raises(ValueError, match="a model of 2 iterations; its history has 3"):
        save(ModelContents(shorter, model.history_, None, {}), io.BytesIO())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "seed=-1; expected 0 to"),
        ({"seed": 2**70}, "expected 0 to less than"),
        ({"chosen": {"learning_rate": "x"}}, "learning_rate='x'; expected above 0"),
    ],
)
def test_inconsistent_history_is_an_error(changes, message):
    history = small(max_iter=2).fit(*noisy_data()).history_
    with pytest.raises(ValueError, match=message):
        replace(history, **changes).check()


def test_node_of_negative_weight_is_an_error():
    model = small(max_iter=2).fit(*noisy_data()).model_
    ensemble = replace(model.ensemble, weight=-model.ensemble.weight)
    with pytest.raises(ValueError, match="weight has values out of range"):
        replace(model, ensemble=ensemble).check()


def test_pickled_trees_of_another_version_are_refused():
    ensemble = small(max_iter=2).fit(*noisy_data()).model_.ensemble
    state = ensemble.__getstate__()
    del state["gain_start"]
    with pytest.raises(ValueError, match=r"another version than abcgbm .*gain_start"):
        object.__new__(type(ensemble)).__setstate__(state)


# ------------------------------------------------------------------------- errors of paths and files


@pytest.mark.parametrize(
    "target", [None, 3, io.StringIO()], ids=lambda target: type(target).__name__
)
def test_invalid_target_is_an_error_with_the_expected_types(target):
    kind = type(target).__name__
    with pytest.raises(
        TypeError, match=rf"{kind} given; expected a path, or a binary file .* write"
    ):
        small().fit(*noisy_data()).save_model(target)
    with pytest.raises(
        TypeError, match=rf"{kind} given; expected a path, or a binary file .* read"
    ):
        ABCBoostClassifier.load_model(target)


def test_missing_folder_is_named(tmp_path):
    model = small().fit(*noisy_data())
    with pytest.raises(FileNotFoundError, match=r"no such folder.*nowhere'"):
        model.save_model(tmp_path / "nowhere" / "model.abc")


def test_error_names_the_file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no model")
    with pytest.raises(ModelFileError, match=r"notes\.txt: not a zip archive"):
        ABCBoostClassifier.load_model(path)


def test_endless_device_is_no_model():
    with pytest.raises(ModelFileError, match="/dev/zero is not a regular file"):
        ABCBoostClassifier.load_model("/dev/zero")
