"""Tables and binned tables as the numbers that trees compare."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from abcgbm import BinMapper
from abcgbm.data import binned_table as encoding
from inputs import DATA, WORKS, pandas_with, words

each = pytest.mark.parametrize("case", WORKS, ids=[case.name for case in WORKS])


def all_blocks(mapper, X, features=None):
    table = mapper.encoding_.read(X, "BinMapper")
    return list(mapper.encoding_.chunks(table, features))


def joined(blocks, n_rows):
    """The blocks under each other, which must be all rows in order."""
    ends = [(rows.start, rows.stop) for rows, _ in blocks]
    assert [start for start, _ in ends] == [0, *(stop for _, stop in ends[:-1])]
    assert ends[-1][1] == n_rows
    assert all(values.flags.c_contiguous and values.dtype == np.float64 for _, values in blocks)
    return np.concatenate([values for _, values in blocks])


@each
@pytest.mark.parametrize("features", [None, [4, 1], [2], []], ids=repr)
def test_blocks_are_the_numbers_of_any_table(case, features, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 8 * 5 * 7)  # seven rows of five numbers
    mapper = BinMapper().fit(case.table())
    expected = case.plain() if features is None else case.plain()[:, features]
    blocks = all_blocks(mapper, case.table(), features)
    np.testing.assert_array_equal(joined(blocks, 60), expected)
    assert len(blocks) > 1 or len(blocks[0][1]) == 60


@each
def test_values_of_a_binned_table_have_its_codes(case):
    mapper = BinMapper(6).fit(case.table())
    table = mapper.transform(case.table())
    values = table.values(slice(None))
    again = BinMapper(6, categorical_features=case.categorical_features).fit(case.plain())
    np.testing.assert_array_equal(again.transform(values).binned.codes(), table.binned.codes())


def test_array_of_floats_is_its_own_block():
    X = DATA["floats"].copy()
    for one in (X, np.concatenate([X, X])):
        ((rows, values),) = all_blocks(BinMapper().fit(X), one)
        assert rows == slice(0, len(one))
        assert np.shares_memory(values, one)


def test_floats_out_of_step_are_copied():
    """The core reads aligned numbers only."""
    packed = np.zeros(60, dtype=[("pad", "i1"), ("x", "f8", (5,))])
    packed["x"] = DATA["floats"]
    ((_, values),) = all_blocks(BinMapper().fit(DATA["floats"]), packed["x"])
    assert values.flags.aligned
    np.testing.assert_array_equal(values, DATA["floats"])


def test_table_of_other_columns_is_refused_by_its_name():
    mapper = BinMapper().fit(DATA["floats"])
    table = BinMapper().fit(DATA["floats"][:, :3]).encoding_.read(DATA["floats"][:, :3], "")
    with pytest.raises(ValueError, match="X_val is a Table with other columns"):
        mapper.encoding_.read(table, "BinMapper", "X_val")


def test_block_of_any_width_has_a_row(monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 1)
    X = DATA["floats"].astype(np.float32)
    blocks = all_blocks(BinMapper().fit(X), X)
    assert [len(values) for _, values in blocks] == [1] * 60


def test_blocks_stay_below_their_bound(monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 8 * 100)
    X = sparse.random_array((50, 1000), density=0.01, rng=0, format="csr")
    mapper = BinMapper().fit(X)
    sizes = [values.size for _, values in all_blocks(mapper, X, [999, 0])]
    assert sizes == [100]
    assert max(values.size for _, values in all_blocks(mapper, X)) == 1000


def test_unknown_categories_of_blocks_follow_the_choice():
    X, other = pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["y", "new"]})
    ((_, values),) = all_blocks(BinMapper().fit(X), other)
    np.testing.assert_array_equal(values, [[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"column 'a' has unknown categories 'new'"):
        all_blocks(BinMapper(handle_unknown="error").fit(X), other)


def test_encoding_pickles():
    X = pandas_with(words)(DATA["level or missing"])
    mapper = BinMapper().fit(X)
    restored = pickle.loads(pickle.dumps(mapper))
    np.testing.assert_array_equal(
        restored.transform(X).binned.codes(), mapper.transform(X).binned.codes()
    )


# ------------------------------------------------------------------------------------ binned tables


def test_values_of_a_binned_table_are_the_thresholds_above_them():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, np.nan], [np.nan, 9.0]])
    table = BinMapper(categorical_features=[1]).fit(X).transform(X)
    expected = [[1.5, 0.0], [3.0, 0.0], [np.inf, np.nan], [np.nan, 1.0]]
    np.testing.assert_array_equal(table.values(slice(None)), expected)
    np.testing.assert_array_equal(table.values([3, 0]), [expected[3], expected[0]])
    np.testing.assert_array_equal(table.values(slice(1, 3), [1]), [[0.0], [np.nan]])


@pytest.mark.parametrize("features", [None, [3, 0]], ids=repr)
def test_blocks_of_a_binned_table_are_its_values(features, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 8 * 5 * 7)
    X = DATA["floats"]
    table = BinMapper(5).fit(X).transform(X)
    blocks = list(table.chunks(features))
    assert len(blocks) == 9
    np.testing.assert_array_equal(joined(blocks, 60), table.values(slice(None), features))


def test_another_table_is_coded_by_the_bins_of_a_binned_table():
    X = pandas_with(words)(DATA["level or missing"])
    mapper = BinMapper(6).fit(X)
    table = mapper.transform(X)
    again = table.bin(X[:9], n_jobs=1)
    np.testing.assert_array_equal(again.binned.codes(), table.binned.codes()[:9])
    assert again.has_bins_of(table)
    with pytest.raises(ValueError, match="The feature names should match"):
        table.bin(X.rename(columns={"plain": "fancy"}))


def test_tables_have_the_same_bins_only_if_codes_mean_the_same():
    X = pandas_with(words)(DATA["level or missing"])
    table = BinMapper().fit(X).transform(X)
    assert table.has_bins_of(BinMapper(n_jobs=1).fit(X).transform(X[:5]))
    assert table[:3].has_bins_of(table)
    for other in (
        X.assign(plain=X["plain"] * 2),
        X.replace({"Größe": {"fig": "grape"}}),
        X.rename(columns={"plain": "fancy"}),
        X.drop(columns="plain"),
        X[X.columns[::-1]],
    ):
        assert not table.has_bins_of(BinMapper().fit(other).transform(other))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_table_of_many_columns_is_the_same_in_blocks_of_columns(n_jobs):
    X = np.random.default_rng(0).integers(0, 50, (40, 45)) / 2
    one_go = BinMapper(9, n_jobs=n_jobs).fit(X)
    blocks = BinMapper(9, n_jobs=n_jobs).fit(X.astype(np.float32))
    for ours, theirs in zip(blocks.thresholds_, one_go.thresholds_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        blocks.transform(X.astype(np.float32)).binned.codes(), one_go.transform(X).binned.codes()
    )
