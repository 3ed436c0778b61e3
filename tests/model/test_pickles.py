"""Pickles have the state of a model file and pass the same checks."""

import io
import pickle

import joblib
import numpy as np
import pytest

from abcgbm import ABCBoostClassifier
from abcgbm.data.digest import digest_of
from model_files import FRAME, content_of, loaded, small_models

MODELS = small_models()


def by_joblib(model):
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    return joblib.load(stream)


def by_cloudpickle(model):
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(model))


def by_skops(model):
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(model)
    types = skops.get_untrusted_types(data=content)
    assert all(name.startswith("abcgbm.") for name in types)
    return skops.loads(content, trusted=types)


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": by_joblib,
    "cloudpickle": by_cloudpickle,
    "skops": by_skops,
    "model file": lambda model: loaded(content_of(model)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_model_is_the_same_by_every_pickler(name, way):
    model = MODELS[name]
    restored = WAYS[way](model)
    assert content_of(restored) == content_of(model)
    np.testing.assert_array_equal(restored.predict_proba(FRAME), model.predict_proba(FRAME))


def resealed(part, **changes):
    """Return a changed pickle state with a valid digest."""
    state = part.__getstate__()
    content = {name: of for name, of in state.items() if name not in ("digest", "version")}
    content |= changes
    return content | {"digest": digest_of(content), "version": state["version"]}


def unpickled(part, state):
    restored = type(part).__new__(type(part))
    restored.__setstate__(state)
    return restored


def with_ensemble(model, **arrays):
    ensemble = type(model.ensemble).__new__(type(model.ensemble))
    ensemble.__setstate__(model.ensemble.__getstate__() | arrays)
    return resealed(model, ensemble=ensemble)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("feature", 0, 99, "feature has values out of range"),
        ("left", 0, 0, "child out of range"),
        ("left", -1, 3, "left of a leaf is not -1"),
        ("value", 0, 1.0, "value of a split"),
        ("init", 0, np.nan, "init has values that are not finite"),
        ("iteration_start", -1, 99, "iteration_start does not rise"),
        ("left_set_size", 0, 7, "left_set_size does not fit the number of categories"),
        ("tree_base", 0, 7, "class out of range"),
    ],
)
def test_pickle_of_invalid_trees_is_refused_despite_a_valid_digest(name, place, value, message):
    model = MODELS["per class"].model_
    array = changed(getattr(model.ensemble, name), place, value)
    with pytest.raises(ValueError, match=message):
        unpickled(model, with_ensemble(model, **{name: array}))


def test_pickle_of_another_array_type_is_refused():
    model = MODELS["per class"].model_
    for name in ("feature", "gain_start", "threshold"):
        array = getattr(model.ensemble, name).astype(np.float32)
        with pytest.raises(ValueError, match=f"{name} is of type float32; expected an array of"):
            unpickled(model, with_ensemble(model, **{name: array}))


def test_pickle_of_invalid_history_is_refused_despite_a_valid_digest():
    history = MODELS["shared"].history_
    assert unpickled(history, resealed(history)) == history
    with pytest.raises(ValueError, match="best_iteration=9; expected 0 to 2"):
        unpickled(history, resealed(history, best_iteration=9))


# ----------------------------------------------------------------------------------- other versions


def test_pickle_of_an_estimator_is_read_by_the_same_version_only():
    model = MODELS["per class"]
    state = model.__getstate__()
    assert content_of(unpickled(model, state)) == content_of(model)
    with pytest.raises(ValueError, match=r"the pickle is of abcgbm 9\.9, this is"):
        unpickled(model, state | {"_abcgbm_version": "9.9"})
    del state["_abcgbm_version"]
    with pytest.raises(ValueError, match=r"the pickle is of abcgbm before 0\.3"):
        unpickled(model, state)


def test_pickle_without_a_field_that_has_a_default_loads():
    model = MODELS["shared"].model_
    state = resealed(model)
    del state["recenter"]
    content = {name: of for name, of in state.items() if name not in ("digest", "version")}
    assert unpickled(model, state | {"digest": digest_of(content)}) == model


def test_pickle_of_an_incompatible_version_is_refused():
    history = MODELS["shared"].history_
    state = resealed(history, luck=1.0) | {"version": "9.9"}
    with pytest.raises(ValueError, match=r"of abcgbm 9\.9, this is .*'luck'"):
        unpickled(history, state)


def test_unfitted_estimator_can_be_pickled():
    restored = pickle.loads(pickle.dumps(ABCBoostClassifier(max_iter=7, learning_rate=0.15)))
    assert restored.max_iter == 7
    assert not hasattr(restored, "refit_history_")
