"""Tables that come in parts: what is learned of them is what is learned of the whole."""

import io
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from abcgbm import ABCBoostClassifier, BinMapper, LargeTable, _core
from abcgbm.data.binning import learn_encoding, learn_thresholds
from abcgbm.data.counting import ColumnCounts, Scratch
from abcgbm.data.files.file_source import open_table
from abcgbm.data.files.formats import Reading
from abcgbm.data.table import read_table
from abcgbm.data.weights import integer_weights

FEW = {"max_iter": 3, "learning_rate": 0.15, "max_leaf_nodes": 5, "min_samples_leaf": 1}


def model_bytes(model) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


# --------------------------------------------------------------------------------------- the tables

numbers = st.one_of(
    st.none(), st.floats(-2, 2), st.sampled_from([-0.0, 0.0, 1.0, float("inf"), float("nan")])
)
integers = st.one_of(st.none(), st.integers(-3, 3))
strings = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ü", "NA"]))
COLUMNS = {
    "f": (numbers, pa.float64()),
    "i": (integers, pa.int32()),
    "s": (strings, pa.string()),
    "d": (strings, pa.dictionary(pa.int8(), pa.string())),
    "t": (st.one_of(st.none(), st.booleans()), pa.bool_()),
    "z": (st.sampled_from([0.0] * 30 + [1.0, 2.0]), pa.float64()),  # sparse, once it is coded
    "n": (st.none(), pa.null()),
}


@st.composite
def labelled_tables(draw):
    """A table of some kinds of columns, with labels `y` and weights `w`."""
    n_rows = draw(st.integers(2, 40))
    kinds = draw(st.lists(st.sampled_from([*COLUMNS]), min_size=1, max_size=5))
    columns = {}
    for place, kind in enumerate(kinds):
        values, of = COLUMNS[kind]
        cells = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
        columns[f"{kind}{place}"] = pa.array(cells, type=of)
    labels = draw(st.lists(st.sampled_from("abc"), min_size=n_rows - 2, max_size=n_rows - 2))
    columns["y"] = pa.array(["a", "b", *labels])
    weights = draw(st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=n_rows, max_size=n_rows))
    columns["w"] = pa.array(weights)
    return pa.table(columns)


@st.composite
def cut_tables(draw):
    """The same with the rows at which it is cut into parts; some parts may be empty."""
    table = draw(labelled_tables())
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=5)))
    return table, [0, *cuts, len(table)]


def parts_of(table, cuts):
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]


# ---------------------------------------------------------------------------------------- the counts


@given(cut_tables(), st.integers(2, 9), st.sampled_from([1, 10**9]))
def test_counts_of_parts_give_the_bins_of_one_call_over_all_rows(given_table, max_bins, most_bytes):
    whole, cuts = given_table
    X = whole.drop(["y", "w"])
    table, weight = read_table(X), integer_weights(whole["w"].to_numpy())
    encoding = learn_encoding(table, weight, max_bins, "missing")
    expected = learn_thresholds(table, weight, encoding, max_bins, 1)
    scratch = Scratch(None)
    counts = ColumnCounts(table.kind, 1, scratch, most_bytes)
    for start, stop in itertools.pairwise(cuts):
        if start < stop:
            counts.add(table.take(slice(start, stop)), weight[start:stop], start)
    names = {f: table.schema.label(f) for f in range(table.shape[1])}
    assert counts.categories(names, 16 * max_bins) == encoding.categories
    for feature, thresholds in counts.thresholds(max_bins).items():
        np.testing.assert_array_equal(thresholds, expected[feature])
    scratch.close()


@given(st.data())
def test_counts_merge_to_those_of_all_rows_in_any_order(data):
    n_rows = data.draw(st.integers(1, 60))
    X = np.array(data.draw(st.lists(st.floats(-2, 2, width=16), min_size=n_rows, max_size=n_rows)))
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    of_row = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    whole = _core.ValueCounts(1)
    whole.add(X[:, None], weight, 0, 1)
    parts = [_core.ValueCounts(1) for _ in range(4)]
    for row in range(n_rows):
        parts[of_row[row]].add(X[row : row + 1, None], weight[row : row + 1], row, 1)
    for other in parts[1:]:
        parts[0].merge(other, 1)
    assert parts[0].digests == whole.digests
    assert len(parts[0].thresholds([], 4, 1)[0]) == len(whole.thresholds([], 4, 1)[0])
    for mine, theirs in zip(parts[0].take(1)[0], whole.take(1)[0], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert parts[0].n_values == 0


def test_digest_is_another_if_values_change_places():
    digests = set()
    for values in ([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.0, 2.0, np.nan], [1.0, 2.0, -3.0]):
        counts = _core.ValueCounts(1)
        counts.add(np.array(values)[:, None], np.ones(3, dtype=np.int64), 0, 1)
        digests.add(int(counts.digests[0]))
    assert len(digests) == 4


# --------------------------------------------------------------------------------------- the models


def write_parts(parts, folder: Path, ending: str) -> None:
    for number, part in enumerate(parts):
        path = folder / f"part-{number:02d}.{ending}"
        if ending == "parquet":
            pyarrow.parquet.write_table(part, path, row_group_size=7)
        else:
            pyarrow.feather.write_feather(part, path, chunksize=7, compression="uncompressed")


SOURCES = {
    "batches": lambda parts, folder: parts,
    "function": lambda parts, folder: lambda: (b for part in parts for b in part.to_batches(5)),
    "parquet": lambda parts, folder: (
        write_parts(parts, folder, "parquet") or str(folder / "*.parquet")
    ),
    "feather": lambda parts, folder: write_parts(parts, folder, "feather") or folder,
    "dataset": lambda parts, folder: (
        write_parts(parts, folder, "parquet")
        or pyarrow.dataset.dataset(folder, schema=parts[0].schema)
    ),
}


@pytest.mark.filterwarnings("ignore:no tree can be split")
@pytest.mark.parametrize("source", SOURCES)
@given(cut_tables(), st.sampled_from([None, 10, 2000]), st.booleans(), st.data())
def test_model_is_that_of_the_whole_table(
    source, tmp_path_factory, given_table, memory, weighted, data
):
    whole, cuts = given_table
    settings = data.draw(st.sampled_from([{}, {"algorithm": "abc-mart"}, {"max_bins": 3}]))
    expected = ABCBoostClassifier(**FEW | settings).fit(
        whole.drop(["y", "w"]), whole["y"], whole["w"].to_numpy() if weighted else None
    )
    parts = parts_of(whole, cuts)
    given_source = SOURCES[source](parts, tmp_path_factory.mktemp("parts"))
    large = LargeTable(given_source, memory=memory, ignore=[] if weighted else ["w"])
    model = ABCBoostClassifier(**FEW | settings).fit(large, "y", "w" if weighted else None)
    assert model_bytes(model) == model_bytes(expected)
    np.testing.assert_array_equal(
        model.predict_proba(large), expected.predict_proba(whole.drop(["y", "w"]))
    )
    found = np.concatenate([*model.predict_batches(large)])
    assert found.tolist() == expected.predict(whole.drop(["y", "w"])).tolist()


@pytest.mark.filterwarnings("ignore:no tree can be split")
@given(cut_tables(), st.sampled_from([None, 10]))
def test_model_of_text_files_is_that_of_one_file_in_memory(tmp_path_factory, given_table, memory):
    whole, cuts = given_table
    for place, field in enumerate(whole.schema):
        if pa.types.is_dictionary(field.type):  # which CSV cannot be written from
            whole = whole.set_column(place, field.name, whole.column(place).cast(pa.string()))
    folder = tmp_path_factory.mktemp("texts")
    for number, part in enumerate(parts_of(whole, cuts)):
        pyarrow.csv.write_csv(part, folder / f"part-{number:02d}.csv")
    pyarrow.csv.write_csv(whole, folder.parent / f"{folder.name}.csv")
    table = open_table(folder.parent / f"{folder.name}.csv", Reading()).read()
    expected = ABCBoostClassifier(**FEW).fit(
        table.drop(["y", "w"]), table["y"], table["w"].to_numpy()
    )
    model = ABCBoostClassifier(**FEW).fit(LargeTable(folder, memory=memory), "y", "w")
    assert model_bytes(model) == model_bytes(expected)


# --------------------------------------------------------------------------------------- BinMapper


@given(cut_tables(), st.integers(2, 9))
def test_partial_fit_of_parts_gives_the_bins_of_fit(given_table, max_bins):
    whole, cuts = given_table
    X = whole.drop(["y", "w"])
    expected, mapper = BinMapper(max_bins).fit(X), BinMapper(max_bins)
    for start, stop in itertools.pairwise(cuts):
        if start < stop:
            mapper.partial_fit(X.slice(start, stop - start))
    assert mapper.encoding_.categories == expected.encoding_.categories
    for mine, theirs in zip(mapper.thresholds_, expected.thresholds_, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert mapper.transform(X).has_bins_of(expected.transform(X))


def test_partial_fit_counts_whole_weights_and_says_what_it_cannot_do():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    twice = BinMapper(3).partial_fit(X[:2], sample_weight=[1, 2]).partial_fit(X[2:])
    np.testing.assert_array_equal(
        twice.thresholds_[0], BinMapper(3).fit(X[[0, 1, 1, 2, 3, 4]]).thresholds_[0]
    )
    with pytest.raises(ValueError, match=r"sample_weight is 0.5 at row 1; expected integers"):
        BinMapper().partial_fit(X[:2], sample_weight=[1, 0.5])
    with pytest.raises(ValueError, match="expected a new BinMapper"):
        BinMapper().fit(X).partial_fit(X)
    with pytest.raises(ValueError, match="expected a new BinMapper"):
        pickle.loads(pickle.dumps(twice)).partial_fit(X)
    with pytest.raises(ValueError, match="2 features"):
        twice.partial_fit(np.ones((2, 2)))
