"""Table files: the same table however it is cut, packed or compressed; what is wrong is located."""

import gzip
import io
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm.data.files.delimited import DelimitedFile
from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading
from abcgbm.data.files.table_file import find_column, open_table
from abcgbm.data.files.text_blocks import text_blocks

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

CELLS = {
    "numbers": st.sampled_from(["1", "2.5", "-3e4", "", "NA", "inf", "9007199254740993"]),
    "integers": st.sampled_from(["1", "2", "-7", ""]),
    "truths": st.sampled_from(["true", "False", ""]),
    "texts": st.sampled_from(["a", "b,c", 'say "x"', "two\nlines", "", "1", "2020-01-01", "é"]),
    "mixed": st.sampled_from(["1", "2.0", "x", "true", ""]),
}
ROWS = st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=30)


def written(path, rows, **options):
    pd.DataFrame(rows, columns=[*CELLS]).to_csv(path, index=False, **options)
    return path


@given(ROWS, st.integers(1, 200))
def test_table_is_the_same_wherever_the_file_is_cut(tmp_path_factory, rows, size):
    path = written(tmp_path_factory.mktemp("cut") / "t.csv", rows)
    whole = DelimitedFile(path, Reading()).read()
    cut = DelimitedFile(path, Reading(), block_bytes=size).read()
    assert cut.schema == whole.schema
    # Not equals(): NaN does not occur, but chunks differ.
    assert cut.to_pylist() == whole.to_pylist()


@given(ROWS)
def test_values_are_those_that_pandas_reads(tmp_path_factory, rows):
    path = written(tmp_path_factory.mktemp("pandas") / "t.csv", rows)
    ours, theirs = DelimitedFile(path, Reading()).read(), pd.read_csv(path)
    assert ours.column_names == theirs.columns.tolist()
    for name in ("numbers", "integers"):
        ours_floats = ours.column(name).to_pandas().astype(float)
        np.testing.assert_array_equal(ours_floats, theirs[name].astype(float))
    texts = pd.read_csv(path, dtype={"texts": str})["texts"].tolist()
    if str(ours.schema.field("texts").type) == "string":
        assert ours.column("texts").to_pylist() == [None if pd.isna(t) else t for t in texts]


@given(st.lists(st.sampled_from(["ab", '"x\ny"', '"', "1", "\n", "\r\n", ","])), st.integers(1, 20))
def test_blocks_put_together_are_the_file(pieces, size):
    data = "".join(pieces).encode()
    blocks = [*text_blocks(io.BytesIO(data), "t.csv", size)]
    assert b"".join(block.data for block in blocks).strip() == data.strip() or not data.strip()
    for before, after in itertools.pairwise(blocks):
        assert after.first_line == before.first_line + before.data.count(b"\n")


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "tsv", "parquet", "feather"])
def test_format_and_compression_are_told_by_the_name(tmp_path, ending):
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]})
    path = tmp_path / f"t.{ending}"
    if ending == "csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif ending == "csv.zst":
        with pa.CompressedOutputStream(str(path), "zstd") as sink:
            sink.write(frame.to_csv(index=False).encode())
    elif ending == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif ending == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame), path)
    else:
        feather.write_feather(pa.Table.from_pandas(frame), path)
    expected = [{"a": 1.5, "b": "x"}, {"a": None, "b": "y"}]
    assert open_table(path, Reading()).read().to_pylist() == expected


def test_columns_without_a_header_are_numbered(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,x\n2,y\n")
    table = DelimitedFile(path, Reading(header=False)).read()
    assert table.to_pylist() == [{"c0": 1, "c1": "x"}, {"c0": 2, "c1": "y"}]


def test_further_spellings_of_missing_and_byte_order_marks_are_understood(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa;b\n?;1\nx;?\n")
    table = DelimitedFile(path, Reading(delimiter=";", missing=("?",))).read()
    assert table.to_pylist() == [{"a": None, "b": 1}, {"a": "x", "b": None}]


def test_other_encodings_are_read_when_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a\nné\n".encode("latin-1"))
    assert DelimitedFile(path, Reading(encoding="latin-1")).read().to_pylist() == [{"a": "né"}]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "t.csv: the file is empty"),
        (b"\n\n", "t.csv: the file is empty"),
        (b"a,b\n", "t.csv: no rows below the header"),
        (b"a,b\n1,2\n3\n", "t.csv, line 3: 1 cells; expected 2"),
        (b'a,b\n"x\ny",2\n3,4,5\n', "t.csv, line 4: 3 cells; expected 2"),
        (b"a,b\n1,2\n1,\xff\n", r"t.csv, line 3, column 'b': b'\\xff' is not UTF-8"),
        (b"1,2\n3,4\n", "t.csv, line 1: looks like a row, not like the names of columns"),
        (b"a,a\n3,4\n", "t.csv, line 1: columns of the same name: 'a'"),
    ],
)
def test_what_is_wrong_with_a_text_file_is_located(tmp_path, content, told):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableFileError, match=told):
        open_table(path, Reading()).read()


def test_cell_that_should_be_a_number_is_located_in_any_block(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 50 + "1,x\n" + "1,2\n" * 50)
    file = DelimitedFile(path, Reading(), block_bytes=30)
    with pytest.raises(TableFileError, match="line 52, column 'b': 'x'; expected a number"):
        [*file.parts(as_numbers=["b"])]


def test_truth_values_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\ntrue\nfalse\n")
    (table,) = DelimitedFile(path, Reading()).parts(as_numbers=["a"])
    assert table.column("a").to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.parquet", b"no", "t.parquet: not a parquet file, or damaged"),
        ("t.feather", b"no", "t.feather: not a feather file, or damaged"),
        ("t.libsvm", b"1 1:0.5\n2 x\n", "t.libsvm, line 2"),
        ("t.libsvm", b"1 0:0.5\n", "t.libsvm, line 1.*counted from 0"),
        ("t.csv.gz", b"no", "t.csv.gz: cannot be read"),
        ("t.dat", b"no", "t.dat: a name that tells no format"),
    ],
)
def test_files_of_another_format_than_their_name_says_are_refused(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableFileError, match=told):
        open_table(tmp_path / name, Reading()).read()


def test_file_that_is_not_there_and_folder_are_named(tmp_path):
    with pytest.raises(TableFileError, match=r"no\.csv: there is no such file"):
        open_table(tmp_path / "no.csv", Reading())
    with pytest.raises(TableFileError, match="a folder; expected a file"):
        open_table(tmp_path, Reading())


@pytest.mark.parametrize(("given", "found"), [("b", "b"), ("0", "a"), ("-1", "7"), ("7", "7")])
def test_columns_are_found_by_name_then_by_position(given, found):
    assert find_column(["a", "b", "7"], given, "t.csv", "label") == found


def test_column_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(
        TableFileError, match=r"no column 'x' to be the label; expected one of 'a', 'b'"
    ):
        find_column(["a", "b"], "x", "t.csv", "label")
