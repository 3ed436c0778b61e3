"""Partitions concatenated on one worker and partitions on several ranks give equal results."""

import numpy as np
import pandas as pd
import pytest
from test_ranks import errors_of, file_of, fitted

from abcgbm.communication.shard import Shard
from abcgbm.distributed.concat import concat_partitions, describe_table
from ranks_in_threads import on_ranks

polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
N = 60
rng = np.random.default_rng(0)
NUMBERS = rng.normal(size=N)
STRINGS = rng.choice(["u", "v"], N).tolist()
NONE = [None] * N
LABELS = np.arange(N) % 2


def frame(values):
    return pd.DataFrame({"a": NUMBERS, "b": values})


def arrow(values, kind=None):
    return pyarrow.table({"a": NUMBERS, "b": pyarrow.array(values, kind)})


def polar(values, kind=None):
    return polars.DataFrame({"a": NUMBERS, "b": polars.Series(values, dtype=kind)})


INTS, TRUTH = (NUMBERS > 0).astype(int) + 1, NUMBERS > 0.5
GOOD = {
    "missing, strings": (frame(np.full(N, np.nan)), frame(STRINGS)),
    "strings, missing": (frame(STRINGS), frame(np.full(N, np.nan))),
    "missing, category": (frame(np.full(N, np.nan)), frame(pd.Categorical(STRINGS))),
    "missing category": (frame(pd.Categorical(NONE)), frame(pd.Categorical(STRINGS))),
    "missing objects, numbers": (frame(pd.Series(NONE, dtype=object)), frame(NUMBERS)),
    "strings, category": (frame(STRINGS), frame(pd.Categorical(STRINGS))),
    "bool, int": (frame(TRUTH), frame(INTS)),
    "bool, nullable": (frame(TRUTH), frame(pd.array([None, *INTS[1:]], dtype="Int64"))),
    "numbers as names": tuple(f.rename(columns={"b": 7}) for f in (frame(TRUTH), frame(INTS))),
    "sparse": (frame(pd.arrays.SparseArray(NUMBERS)), frame(INTS)),
    "polars missing": (polar(NONE, polars.Float64), polar(STRINGS)),
    "polars null": (polar(NONE), polar(NUMBERS)),
    "polars bool": (polar(TRUTH), polar(INTS)),
    "polars category": (polar(STRINGS), polar(STRINGS, polars.Categorical)),
    "arrow missing": (arrow(NONE, pyarrow.float64()), arrow(STRINGS)),
    "arrow null": (arrow(NONE), arrow(STRINGS)),
    "arrow bool": (arrow(TRUTH), arrow(INTS)),
    "arrow category": (arrow(STRINGS), arrow(pyarrow.array(STRINGS).dictionary_encode())),
    "arrays": (np.c_[NUMBERS, TRUTH], np.c_[INTS, INTS]),
}
BAD = {
    "strings": (frame(NUMBERS), frame(STRINGS)),
    "categories": (frame(INTS), frame(pd.Categorical(STRINGS))),
    "polars": (polar(NUMBERS), polar(STRINGS)),
    "arrow": (arrow(STRINGS), arrow(NUMBERS)),
}


def on_two(tables, labels=(LABELS, LABELS)):
    def work(communicator):
        rank = communicator.rank
        shard = Shard(communicator, [(rank + 3, N)])
        return fitted({"X": tables[rank], "y": labels[rank], "communicator": shard}, {})

    return work


def on_one(tables, labels=(LABELS, LABELS)):
    X, y = (
        concat_partitions([*enumerate(parts, 3)], name, is_label=name == "y")
        for parts, name in ((tables, "X"), (labels, "y"))
    )
    return fitted({"X": X, "y": y}, {})


@pytest.mark.parametrize("tables", GOOD.values(), ids=GOOD)
def test_partitions_give_the_same_model_on_one_worker_and_on_two(tables):
    expected = file_of(on_one(tables))
    assert [file_of(model) == expected for model in on_ranks(2, on_two(tables))] == [True] * 2


@pytest.mark.parametrize("tables", BAD.values(), ids=BAD)
def test_partitions_are_refused_on_one_worker_and_on_two(tables):
    words = "'b'.* holds strings or categories .*partition [34].*, but numbers .*partition [34]"
    with pytest.raises(TypeError, match=words):
        on_one(tables)
    for error in errors_of(2, on_two(tables)):
        with pytest.raises(TypeError, match=words):
            raise error


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            (np.ones((2, 3)), np.ones((2, 5))),
            r"4 of X has 5 column\(s\), partition 3 3 column\(s\);",
        ),
        ((np.ones(2), np.ones((2, 1))), r"4 of X has 1 column\(s\), partition 3 1 dimension\(s\);"),
        (
            (frame(INTS), frame(INTS)[["b", "a"]]),
            r"4 of X has the columns \['b', 'a'\], partition 3 the columns \['a', 'b'\];",
        ),
    ],
    ids=["arrays", "dimensions", "frames"],
)
def test_partitions_of_other_columns_are_refused_briefly(tables, message):
    with pytest.raises(ValueError, match=message):
        concat_partitions([*enumerate(tables, 3)], "X")
    assert describe_table(np.ones((2, 3))) == "a ndarray with 3 column(s)"


@pytest.mark.parametrize(
    "labels",
    [
        (LABELS, LABELS.astype(str)),
        (LABELS, LABELS > 0),
        (pd.Series(LABELS), pd.Series(LABELS > 0)),
        (polars.Series(LABELS), polars.Series(LABELS > 0)),
    ],
    ids=["strings", "truth", "pandas", "polars"],
)
def test_labels_of_two_types_are_refused_on_one_worker_and_on_two(labels):
    tables = (frame(NUMBERS), frame(NUMBERS))
    with pytest.raises(TypeError, match="expected one type"):
        on_one(tables, labels)
    for error in errors_of(2, on_two(tables, labels)):
        with pytest.raises(TypeError, match=r"partition 3.*partition 4.*expected one type"):
            raise error


@pytest.mark.parametrize(
    "labels",
    [(LABELS, LABELS * 1.0), (LABELS, LABELS.astype(np.uint64))],
    ids=["floats", "unsigned"],
)
def test_compatible_label_types_are_equal_on_one_worker_and_on_two(labels):
    tables = (frame(NUMBERS), frame(INTS))
    expected = file_of(on_one(tables, labels))
    assert [file_of(model) == expected for model in on_ranks(2, on_two(tables, labels))] == [
        True
    ] * 2
