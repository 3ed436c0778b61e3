"""A binned table as a state: pickled, copied, sent to workers, and tampered with."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import cross_val_score

from abcgbm import BinMapper, _core
from abcgbm.data import bin_mapper
from models import assert_same_model, noisy_data, small
from strategies import one_hot_problem

X, Y = noisy_data(n_rows=300, n_classes=3)
ONE_HOT = one_hot_problem(0, 300, 3).X
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(category=np.array(["x", "y", "z"])[Y])
FRAME.loc[::9, "category"] = None
WIDE = np.random.default_rng(0).normal(size=(300, 2)) + Y[:, None]
MIXED = sparse.csr_array(np.where(np.random.default_rng(1).random((300, 9)) < 0.15, 3.0, 0.0))
TABLES = {
    "dense": (X, {}),
    "two bytes a code": (WIDE, {"max_bins": 400}),
    "bundled": (ONE_HOT, {}),
    "sparse": (MIXED, {}),
    "categories": (FRAME, {}),
    "sparse, two bytes a code": (
        np.column_stack([np.arange(300.0), MIXED.toarray()]),
        {"max_bins": 1000},
    ),
}
every_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


def binned(table):
    values, options = table
    return BinMapper(**options).fit(values).transform(values)


def assert_same_table(one, other):
    assert one.has_bins_of(other)
    for name in ("n_rows", "total_bins", "n_bins", "is_sparse", "is_bundled", "code_bytes"):
        assert getattr(one.binned, name) == getattr(other.binned, name), name
    np.testing.assert_array_equal(one.binned.codes(), other.binned.codes())


def test_tables_here_are_of_every_kind():
    made = {name: binned(table).binned for name, table in TABLES.items()}
    assert made["bundled"].is_bundled.count(True) > 5
    assert made["sparse"].is_sparse.count(True) > 5
    assert not all(made["sparse"].is_bundled)
    assert {of.code_bytes for of in made.values()} == {1, 2}
    assert any(made["categories"].is_categorical)


@every_table
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_table_is_the_same_after_a_pickle(table, protocol):
    mine = binned(table)
    again = pickle.loads(pickle.dumps(mine, protocol))
    assert_same_table(mine, again)
    assert_same_model(small().fit(again, Y), small().fit(mine, Y))


@every_table
def test_rows_of_a_table_are_the_same_after_a_pickle(table):
    part = binned(table)[np.flatnonzero(np.arange(300) % 3)]
    again = pickle.loads(pickle.dumps(part))
    assert_same_table(part, again)
    assert_same_table(part[::2], again[::2])


@every_table
def test_table_is_the_same_after_joblib_and_a_copy(table, tmp_path):
    mine = binned(table)
    joblib.dump(mine, tmp_path / "table")
    for again in (joblib.load(tmp_path / "table"), copy.deepcopy(mine), copy.copy(mine)):
        assert_same_table(mine, again)
    mapped = joblib.load(tmp_path / "table", mmap_mode="r")
    assert_same_table(mine, mapped)


def test_table_is_cross_validated_by_several_processes():
    mine = binned(TABLES["categories"])
    here = cross_val_score(small(n_jobs=1), mine, Y, cv=3, n_jobs=1)
    there = cross_val_score(small(n_jobs=1), mine, Y, cv=3, n_jobs=2)
    assert here.tolist() == there.tolist()


def test_table_of_no_rows_has_a_state():
    empty = binned(TABLES["bundled"])[:0]
    assert len(pickle.loads(pickle.dumps(empty))) == 0


# --------------------------------------------------------------------------------- changed states


@every_table
def test_change_of_a_single_bit_is_noticed(table):
    mine = binned(table)
    state = mine.__getstate__()
    for name, array in state["binned"].items():
        if name == "n_rows" or array.nbytes == 0:
            continue
        flipped = array.copy()
        flipped.view(np.uint8).reshape(-1)[-1] ^= 1
        changed = state | {"binned": state["binned"] | {name: flipped}}
        with pytest.raises(ValueError, match="digest"):
            mine.__class__.__new__(mine.__class__).__setstate__(changed)


def test_flipped_byte_of_a_pickle_is_an_error_or_changes_nothing():
    mine = binned(TABLES["categories"])
    whole = pickle.dumps(mine)
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(whole), 150):
        broken = bytearray(whole)
        broken[at] ^= 1 << int(rng.integers(8))
        try:
            again = pickle.loads(bytes(broken))
        except Exception:  # noqa: BLE001, S112 (whatever pickle makes of it)
            continue
        if isinstance(again, type(mine)):
            assert_same_table(mine, again)


@pytest.mark.parametrize("part", ["thresholds", "encoding"])
def test_parts_of_another_table_are_refused(part):
    mine, other = binned(TABLES["dense"]), binned(TABLES["two bytes a code"])
    state = mine.__getstate__() | {part: getattr(other, part)}
    with pytest.raises(ValueError, match="digest"):
        mine.__class__.__new__(mine.__class__).__setstate__(state)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("n_rows", 299),
        ("n_rows", -1),
        ("n_rows", 2**40),
        ("n_rows", "many"),
        ("n_bins", np.zeros(9, np.uint32)),
        ("n_bins", np.full(9, 2**31, np.uint32)),
        ("n_bins", np.full(8, 3, np.uint32)),
        ("n_bins", np.full(9, 3, np.int64)),
        ("n_bins", None),
        ("common", np.full(9, 77, np.uint32)),
        ("is_sparse", np.zeros(9, np.uint8)),
        ("bundle", np.full(9, 2**31 - 1, np.int32)),
        ("bundle", np.full(9, -2, np.int32)),
        ("bundle", np.arange(9, dtype=np.int32) + 1),
        ("columns", np.zeros((1, 300), np.uint8)),
        ("columns", np.zeros((0, 300), np.uint16)),
        ("columns", np.zeros(300, np.uint8)),
        ("start", np.array([0], np.int64)),
        ("start", np.array([0, 10**9], np.int64)),
        ("row", np.zeros(3, np.uint32)),
        ("code", np.full(10**4, 7, np.uint16)),
    ],
)
def test_crafted_state_is_refused(name, bad):
    state = binned(TABLES["sparse"]).binned.state()
    with pytest.raises(ValueError, match="state"):
        _core.Binned.from_state(state | {name: bad})
    with pytest.raises(ValueError, match=f"state: no {name}"):
        _core.Binned.from_state({key: value for key, value in state.items() if key != name})


def test_rows_and_codes_out_of_range_are_refused():
    state = binned(TABLES["sparse"]).binned.state()
    assert len(state["row"]) > 10
    for name, bad in (("row", 300), ("row", 2**32 - 1), ("code", 60000), ("code", 0)):
        array = state[name].copy()
        array[5] = bad
        with pytest.raises(ValueError, match="state"):
            _core.Binned.from_state(state | {name: array})
    for name in ("bundled", "dense"):
        state = binned(TABLES[name]).binned.state()
        columns = state["columns"].copy()
        columns[-1, 7] = 255
        with pytest.raises(ValueError, match="a code that its column does not have"):
            _core.Binned.from_state(state | {"columns": columns})


@given(st.data())
@settings(max_examples=60)
def test_no_state_ends_the_process(data):
    """Whatever is accepted can be trained on."""
    state = binned(
        TABLES[data.draw(st.sampled_from(["bundled", "sparse", "dense"]))]
    ).binned.state()
    arrays = [name for name in state if name != "n_rows" and state[name].size]
    name = data.draw(st.sampled_from(arrays))
    array = state[name].copy()
    flat = array.reshape(-1)
    info = np.iinfo(array.dtype)
    values = st.one_of(st.integers(0, 3), st.integers(info.min, info.max))
    flat[data.draw(st.integers(0, len(flat) - 1))] = data.draw(values)
    try:
        table = _core.Binned.from_state(state | {name: array})
    except ValueError:
        return
    assert table.take(np.arange(0, 300, 7)).codes().shape[0] == 43
    labels = {"y": Y, "weight": np.ones(300, np.int64), "unit": 1.0, "n_classes": 3}
    trainer = _core.Trainer(table, _core.Labels(**labels), _core.TrainParams(), 1)
    trainer.train_iteration([0, 1, 2], [0], True, 1.0, 0)


# ------------------------------------------------------------------------------------------ mappers


@pytest.mark.parametrize("stage", ["learn_encoding", "learn_thresholds"])
def test_interrupted_refit_leaves_the_bins_of_the_fit_before(stage, monkeypatch):
    mapper = BinMapper().fit(FRAME)
    before, expected = dict(vars(mapper)), mapper.transform(FRAME)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bin_mapper, stage, interrupted)
        with pytest.raises(KeyboardInterrupt):
            mapper.fit(WIDE)
    assert vars(mapper) == before
    assert_same_table(mapper.transform(FRAME), expected)
    assert not hasattr(mapper.fit(WIDE), "feature_names_in_")
