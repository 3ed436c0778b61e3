"""Stored names: renaming a field changes neither golden digests nor model files."""

from dataclasses import fields
from types import SimpleNamespace

import pytest

import models
from abcgbm.model.ensemble import Ensemble
from abcgbm.model.file import model_file as saved
from abcgbm.model.file import model_file as trees
from abcgbm.model.history import History
from golden import digest
from model_files import content_of, loaded, members_of, small_models
from models import assert_same_model

HISTORY = (
    *("train_loss", "class_losses", "base_class", "search_losses"),
    *("validation_loss", "validation_score"),
)
TREES = (
    *("feature", "weight", "left_set", "leaf_value", "gain_feature", "class_gain", "gain_start"),
    *("tree_start", "tree_class", "tree_base", "tree_base_scale", "step_start", "init"),
    *("threshold", "left", "missing_left", "gain", "value"),
)
# Not stored: a set's size follows from the categories, the shape from model.json.
NOT_STORED = {"left_set_size", "n_features", "n_classes"}
MEMBERS = [
    "model.json",
    "features/is_categorical.npy",
    *(f"trees/{name}.npy" for name in TREES),
    *(f"history/{name}.npy" for name in HISTORY),
]


@pytest.fixture(scope="module", params=["per class", "shared"])
def model(request):
    return small_models()[request.param]


def names_of(kind) -> set[str]:
    return {field.name for field in fields(kind)}


def test_every_field_has_one_stored_name():
    assert models.STORED_NAMES.keys() == names_of(Ensemble)
    assert trees.STORED_NAMES.keys() == names_of(Ensemble) - NOT_STORED
    others = {
        "best_iteration",
        "stop_reason",
        "seed",
        "chosen",
        "train_weight",
        "validation_weight",
    }  # entries of model.json
    assert saved.STORED_NAMES_OF_HISTORY.keys() == names_of(History) - others


@pytest.mark.parametrize(
    "names", [models.STORED_NAMES, trees.STORED_NAMES, saved.STORED_NAMES_OF_HISTORY]
)
def test_no_two_fields_have_the_same_stored_name(names):
    assert len({*names.values()}) == len(names)


def test_golden_digests_and_model_files_use_the_same_names():
    assert trees.STORED_NAMES.items() <= models.STORED_NAMES.items()


def test_model_file_has_the_documented_members():
    per_class, shared = (members_of(content_of(model)) for model in small_models().values())
    assert [*per_class] == MEMBERS
    assert [*shared] == [*MEMBERS, *(f"refit_history/{name}.npy" for name in HISTORY)]


def test_golden_digest_does_not_depend_on_field_names(model, monkeypatch):
    expected = digest(model)
    ensemble = {f"renamed_{name}": of for name, of in vars(model.model_.ensemble).items()}
    names = {f"renamed_{field}": stored for field, stored in models.STORED_NAMES.items()}
    monkeypatch.setattr(models, "STORED_NAMES", names)
    renamed = SimpleNamespace(model_=SimpleNamespace(ensemble=SimpleNamespace(**ensemble)))
    assert digest(renamed) == expected


def test_stored_name_is_part_of_the_golden_digest(model, monkeypatch):
    expected = digest(model)
    monkeypatch.setitem(models.STORED_NAMES, "gain", "split_gain")
    assert digest(model) != expected


def test_model_file_uses_only_the_stored_names(model, monkeypatch):
    """A file written with another table of names has exactly those names and is read by them."""
    expected = [*members_of(content_of(model)).values()]
    for module, table in ((trees, "STORED_NAMES"), (saved, "STORED_NAMES_OF_HISTORY")):
        names = {field: f"stored_{name}" for field, name in getattr(module, table).items()}
        monkeypatch.setattr(module, table, names)
    content = content_of(model)
    arrays = [*members_of(content)][2:]
    assert all("/stored_" in name for name in arrays)
    assert [*members_of(content).values()][1:] == expected[1:]  # the arrays themselves are the same
    assert_same_model(loaded(content), model)
