"""A damaged pickle is an error, never another model."""

import pickle

import numpy as np
import pandas as pd
import pytest

from abcgbm import BinMapper
from abcgbm.data.digest import digest_of
from models import ensemble_arrays, noisy_data, small

X, Y = noisy_data(n_rows=150)
FRAME = pd.DataFrame(X, columns=["slope", "a", "b", "c"])
FRAME["soil"] = np.array(["clay", "peat", None], object)[Y % 3]
LABELS = np.array(["heath", "marsh", "moor", "wood"], object)[Y]
MODEL = small("abc-logitboost", max_iter=2).fit(FRAME, LABELS)
SHARED = small("multi-output", max_iter=2).fit(FRAME, LABELS)
STATE = pickle.dumps(MODEL)


def arrays_of(model):
    return {
        name: array.tobytes()
        for name, array in (ensemble_arrays(model) | vars(model.history_)).items()
        if isinstance(array, np.ndarray) and array.nbytes >= 16
    }


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((MODEL, name) for name in arrays_of(MODEL)),
        *((SHARED, name) for name in ("leaf_value", "gain_feature", "class_gain", "gain_start")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value.algorithm).__name__,
)
def test_flipped_bit_of_an_array_is_an_error(model, name):
    state, array = pickle.dumps(model), arrays_of(model)[name]
    start = state.find(array)
    assert start >= 0
    for place in np.random.default_rng(0).integers(0, 8 * len(array), 20).tolist():
        damaged = bytearray(state)
        damaged[start + place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match="was changed or damaged"):
            pickle.loads(bytes(damaged))


@pytest.mark.parametrize(
    ("old", "new"), [(b"slope", b"slopf"), (b"peat", b"feat"), (b"heath", b"heatt")]
)
def test_changed_name_is_an_error(old, new):
    assert old in STATE
    with pytest.raises(ValueError, match="was changed or damaged"):
        pickle.loads(STATE.replace(old, new))


@pytest.mark.parametrize("kept", ["model_", "history_"])
def test_changed_number_is_reported_as_damage(kept):
    part = getattr(MODEL, kept)
    state = part.__getstate__()
    name, value = next((n, v) for n, v in state.items() if isinstance(v, np.ndarray) and v.size)
    changed = value[::-1].copy()
    assert digest_of(changed) != digest_of(value)
    with pytest.raises(ValueError, match=f"pickled {type(part).__name__} was changed or damaged"):
        type(part).__new__(type(part)).__setstate__(state | {name: changed})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [[1], 2]),
        (1, 1.0),
        (True, 1),
        ("1", 1),
        (["ab", "c"], ["a", "bc"]),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.array([0.0]), np.array([-0.0])),
        ({"a": None}, {"a": "None"}),
        (np.array(["a", None], object), np.array([None, "a"], object)),
    ],
    ids=repr,
)
def test_digest_differs_for_different_values(one, other):
    assert digest_of(one) == digest_of(one) != digest_of(other)


def test_damaged_bin_mapper_is_an_error():
    mapper = BinMapper().fit(FRAME)
    state = pickle.dumps(mapper)
    restored = pickle.loads(state)
    assert all(map(np.array_equal, restored.thresholds_, mapper.thresholds_))
    damaged = bytearray(state)
    damaged[state.find(mapper.thresholds_[0].tobytes()) + 3] ^= 1
    with pytest.raises(ValueError, match="pickled BinMapper is corrupted"):
        pickle.loads(bytes(damaged))
    assert not hasattr(pickle.loads(pickle.dumps(BinMapper(max_bins=7))), "thresholds_")


# ------------------------------------------------------------------------------ value semantics


def test_models_are_equal_if_their_bits_are_equal():
    same = small("abc-logitboost", max_iter=2).fit(FRAME, LABELS)
    other = small("abc-logitboost", max_iter=3).fit(FRAME, LABELS)
    for name in ("model_", "history_"):
        ours = getattr(MODEL, name)
        assert ours == pickle.loads(pickle.dumps(ours)) == getattr(same, name)
        assert len({ours, getattr(same, name)}) == 1
        assert ours != getattr(other, name)
        assert ours != name


@pytest.mark.parametrize("model", [MODEL, pickle.loads(STATE)], ids=["fitted", "loaded"])
def test_arrays_of_a_model_are_read_only(model):
    for owner in (model.model_.ensemble, model.history_):
        arrays = [v for v in vars(owner).values() if isinstance(v, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)
    model.train_loss_[0] = 5.0  # of a copy
    assert model.history_.train_loss[0] == MODEL.history_.train_loss[0] != 5.0


def test_repr_of_a_model_is_short():
    table = BinMapper().fit(FRAME).transform(FRAME)
    levels = MODEL.model_.encoding.categories[4]
    shown = [MODEL.model_, MODEL.history_, MODEL.model_.ensemble, table, levels]
    assert all(len(repr(part)) < 120 for part in shown)
    assert repr(table) == f"BinnedTable(150 rows, 5 features, {table.binned.total_bins} bins)"
    assert repr(levels) == "CategoryMap(column 'soil', 2 categories, 2 codes)"
    assert "Ensemble(2 iterations, 6 trees, 5 features, 4 classes)" in repr(MODEL.model_)
