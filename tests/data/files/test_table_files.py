"""Table files: the same table however it is cut, packed or compressed; what is wrong is located."""

import csv
import gzip
import io
import itertools
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm.data.files import formats
from abcgbm.data.files.column_types import reads_as_number
from abcgbm.data.files.csv import DelimitedFile
from abcgbm.data.files.csv_blocks import text_blocks
from abcgbm.data.files.file_source import find_column, open_table
from abcgbm.data.files.formats import MISSING, Reading, check_names
from abcgbm.errors import TableFileError

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


@given(
    st.lists(st.sampled_from(["ab", '"x\ny",', '5"', "1", "\n", "\r\n", ","])), st.integers(1, 20)
)
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
    ("content", "message"),
    [
        (b"", "t.csv: the file is empty"),
        (b"\n\n", "t.csv: the file is empty"),
        (b"a,b\n", "t.csv: no rows below the header"),
        (b"a,b\n1,2\n3\n", "t.csv, line 3: 1 cells; expected 2"),
        (b'a,b\n"x\ny",2\n3,4,5\n', "t.csv, line 4: 3 cells; expected 2"),
        (b"a,b\n1,2\n1,\xff\n", r"t.csv, line 3, column 'b': b'\\xff' is not UTF-8"),
        (b"1,2\n3,4\n", "t.csv, line 1: looks like data rather than column names"),
        (b"a,a\n3,4\n", "t.csv, line 1: duplicate column names: 'a'"),
    ],
)
def test_what_is_wrong_with_a_text_file_is_located(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableFileError, match=message):
        open_table(path, Reading()).read()


def test_cell_that_should_be_a_number_is_located_in_any_block(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 50 + "1,x\n" + "1,2\n" * 50)
    file = DelimitedFile(path, Reading(), block_bytes=30)
    with pytest.raises(TableFileError, match="line 52, column 'b': 'x'; expected a number"):
        [*file.batches(as_numbers=["b"])]


def test_truth_values_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\ntrue\nfalse\n")
    (table,) = DelimitedFile(path, Reading()).batches(as_numbers=["a"])
    assert table.column("a").to_pylist() == [True, False]


def test_format_without_a_reader_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(formats._FORMATS, ".orc", "orc")
    path = tmp_path / "t.orc"
    path.write_bytes(b"ORC")
    with pytest.raises(NotImplementedError, match="'orc' has no reader in open_table"):
        open_table(path, Reading())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"no", "t.parquet: not a parquet file, or damaged"),
        ("t.feather", b"no", "t.feather: not a feather file, or damaged"),
        ("t.libsvm", b"1 1:0.5\n2 x\n", "t.libsvm, line 2"),
        ("t.libsvm", b"1 0:0.5\n", "t.libsvm, line 1.*counted from 1"),
        ("t.csv.gz", b"no", "t.csv.gz: cannot be read"),
        ("t.dat", b"no", "t.dat: a name without a known suffix"),
    ],
)
def test_files_of_another_format_than_their_name_says_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableFileError, match=message):
        open_table(tmp_path / name, Reading()).read()


def test_file_that_is_not_there_and_folder_are_named(tmp_path):
    with pytest.raises(TableFileError, match=r"no\.csv: no such file"):
        open_table(tmp_path / "no.csv", Reading())
    with pytest.raises(TableFileError, match="a folder; expected a file"):
        open_table(tmp_path, Reading())


def named(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n1,2\n")
    return DelimitedFile(tmp_path / "t.csv", Reading(header=True))


@pytest.mark.parametrize(("given", "found"), [("b", "b"), ("0", "a"), ("-1", "7"), ("7", "7")])
def test_columns_are_found_by_name_then_by_position(tmp_path, given, found):
    assert find_column(named(tmp_path, "a,b,7"), given, "label") == found


def test_column_that_is_not_there_is_told_with_those_that_are(tmp_path):
    with pytest.raises(
        TableFileError, match=r"no column 'x' for the label; expected one of 'a', 'b'"
    ):
        find_column(named(tmp_path, "a,b"), "x", "label")


# --------------------------------------------------------------------------- nothing depends on cuts

ODD_CELLS = [
    *(
        "1",
        "-7",
        "007",
        "+1",
        " 1",
        "2 ",
        "1.5",
        "+2.5",
        ".5",
        "1.",
        "-0",
        "1e5",
        "1e400",
        "1e-400",
    ),
    *("9223372036854775807", "9223372036854775808", "1" * 40, "inf", "-Infinity", "NAN", "nan(1)"),
    *("0x1F", "0X1f", " 0xff", "-0x1F", "0x1p3", "0xzz", "1_000", "1,5", "'1", "1f", "\u0661"),
    *("2020-01-01", "12:30", "12:30:01", "2020-01-01 10:00:00", "2020-01-01T10:00:00Z", "2020-01"),
    *("true", "False", "TRUE", " true", "tRue", "", "NA", "nan", "NaN", "None", " ", "NA ", "x"),
    *('say "x"', "two\nlines", "\r", "a\rb", "\r\n", "é", "0", "-"),
]
ODD_COLUMN = st.lists(st.sampled_from(ODD_CELLS), min_size=1, max_size=4)


def shown(table):
    """The rows as text, since NaN differs from itself; -0 is 0 among integers."""
    return str(table.to_pylist()).replace("-0.0", "0.0")


@given(st.data(), st.integers(1, 80))
def test_odd_cells_are_read_the_same_wherever_the_file_is_cut(tmp_path_factory, data, size):
    kinds = data.draw(st.lists(ODD_COLUMN, min_size=1, max_size=3))
    n_rows = data.draw(st.integers(1, 12))
    columns = {
        f"c{place}": data.draw(st.lists(st.sampled_from(kind), min_size=n_rows, max_size=n_rows))
        for place, kind in enumerate(kinds)
    }
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    has_returns = any("\r" in cell for cells in columns.values() for cell in cells)
    quoting = csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL  # pandas leaves those as they are
    pd.DataFrame(columns | {"end": ["."] * n_rows}).to_csv(path, index=False, quoting=quoting)
    whole = DelimitedFile(path, Reading()).read()
    cut = DelimitedFile(path, Reading(), block_bytes=size).read()
    assert cut.schema == whole.schema
    assert {str(of) for of in whole.schema.types} <= {"int64", "double", "bool", "string"}
    assert shown(cut) == shown(whole)
    assert len(whole) == n_rows


@given(st.sampled_from(ODD_CELLS))
def test_cell_is_a_number_to_python_if_it_is_one_to_arrow(tmp_path_factory, cell):
    path = tmp_path_factory.mktemp("number") / "t.csv"
    pd.DataFrame({"a": [cell, "1"], "end": "."}).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    found = DelimitedFile(path, Reading()).read().schema.field("a").type
    is_number = cell in MISSING or reads_as_number(cell)
    assert (str(found) in ("int64", "double")) == is_number


RAW_CELLS = [
    '5"',
    '"',
    'a"b"c',
    '"x"',
    '"x"y',
    '"a\nb"',
    '"a,""b"',
    '""',
    "1",
    "",
    '7" x 5"',
    ' "q"',
]


@given(st.lists(st.lists(st.sampled_from(RAW_CELLS), min_size=2, max_size=2), min_size=1))
def test_quotes_inside_of_cells_do_not_depend_on_cuts(tmp_path_factory, rows):
    """A quote opens a cell only where it begins."""
    path = tmp_path_factory.mktemp("quotes") / "t.csv"
    path.write_bytes(b"c,d\n" + b"".join(f"{a}z,{b}\n".encode() for a, b in rows if b != '"'))
    if path.stat().st_size == 4:
        return
    try:
        whole = DelimitedFile(path, Reading()).read().to_pylist()
    except TableFileError:
        return  # a cell that is never closed
    for size in (1, 7, 30):
        assert DelimitedFile(path, Reading(), block_bytes=size).read().to_pylist() == whole


def test_stray_quote_does_not_join_the_rows_below_it(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b"size\tnote\n" + b'5"\tx\n' + b'6\t"two\nlines"\n' * 200)
    parts = [*DelimitedFile(path, Reading(), block_bytes=100).batches()]
    assert len(parts) > 20
    assert sum(map(len, parts)) == 201


def test_hexadecimal_numbers_are_text_as_in_pandas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n0x1F,1\n0x20,2\n")
    table = DelimitedFile(path, Reading()).read()
    assert table.column("a").to_pylist() == pd.read_csv(path)["a"].tolist() == ["0x1F", "0x20"]
    (part,) = DelimitedFile(path, Reading()).batches()
    assert [str(of) for of in part.schema.types] == ["string", "int64"]


def test_dates_and_times_are_text_in_every_part(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n2020-01-01,12:30\n2020-01-02,12:31\n")
    for part in DelimitedFile(path, Reading(), block_bytes=10).batches():
        assert [str(of) for of in part.schema.types] == ["string", "string"]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("t.csv", b'"a\rb",c\n1,2\n3,4\n', [[1, 2], [3, 4]]),
        ("t.csv", b'"a\nb",c\n1,2\n3,4\n', [[1, 2], [3, 4]]),
        ("t.csv", b"\n\na,c\r\n1,2\r\n\r\n3,4", [[1, 2], [3, 4]]),
        ("t.csv", b"a,c\r1,2\r3,4\r", [[1, 2], [3, 4]]),
        ("t.csv", b"a,c\n1,2\n,\n", [[1, 2], [None, None]]),
        ("t.tsv", b"a\tc\n1\t2\n\t\n", [[1, 2], [None, None]]),
        ("t.tsv", b"a\tc\n\t", [[None, None]]),
        ("t.tsv", b"a\tc\n\t\n1\t2\n", [[None, None], [1, 2]]),
    ],
)
def test_no_row_is_lost(tmp_path, name, content, rows, size):
    (tmp_path / name).write_bytes(content)
    reading = Reading()
    table = DelimitedFile(tmp_path / name, reading, block_bytes=size).read()
    assert [[*row.values()] for row in table.to_pylist()] == rows


def test_columns_as_written_are_handed_on_to_the_letter(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n000,NA\n 1,"x,y"\n')
    ((table, written),) = DelimitedFile(path, Reading()).batches_with_text(["b", "a"])
    assert table.to_pylist() == [{"a": 0, "b": None}, {"a": 1, "b": "x,y"}]
    assert written.to_pylist() == [{"b": "NA", "a": "000"}, {"b": "x,y", "a": " 1"}]


def test_decimal_comma_is_read_when_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;x\n2;y\n")
    table = DelimitedFile(path, Reading(decimal=",")).read()
    assert table.to_pylist() == [{"a": 1.5, "b": "x"}, {"a": 2.0, "b": "y"}]


def test_names_are_looked_at_once_each():
    n_compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            nonlocal n_compared
            n_compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    check_names([Name(f"c{place}") for place in range(2000)], "t.csv")
    assert n_compared < 20_000


# ------------------------------------------------------------------------------- an index of pandas


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("index_name", [None, "id"])
def test_index_of_pandas_is_no_column_unless_it_is_named(tmp_path, ending, index_name):
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=pd.Index([7, 5], name=index_name))
    path, table = tmp_path / f"t.{ending}", pa.Table.from_pandas(frame)
    (parquet.write_table if ending == "parquet" else feather.write_feather)(table, path)
    file, stored = open_table(path, Reading()), index_name or "__index_level_0__"
    assert file.names == ["a", "b"]
    assert file.read().column_names == ["a", "b"]
    assert find_column(file, "-1", "label") == "b"
    assert find_column(file, stored, "label") == stored
    assert file.read([stored]).to_pylist() == [{stored: 7}, {stored: 5}]


def test_decimal_numbers_are_floats(tmp_path):
    decimals = pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))
    parquet.write_table(pa.table({"a": decimals}), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", Reading()).read()
    assert table.to_pylist() == [{"a": 1.5}, {"a": None}]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_file_without_rows_has_a_part_with_its_columns(tmp_path, name):
    if name == "t.csv":
        (tmp_path / name).write_text("a,b\n")
    else:
        parquet.write_table(pa.table({"a": pa.array([], "int8"), "b": []}), tmp_path / name)
    (part,) = open_table(tmp_path / name, Reading()).batches()
    assert (part.column_names, len(part)) == (["a", "b"], 0)


# ------------------------------------------------------------------------------------ what may help


@pytest.mark.parametrize(
    ("content", "reading", "hint"),
    [
        (b"1,2\n3,4\n", Reading(), "header"),
        (b"a\n\xe9\n", Reading(), "encoding"),
        ("a,b\n1,2\n".encode("utf-16"), Reading(), "encoding"),
        ("a,b\n1,2\n".encode("utf-16-le"), Reading(), "encoding"),
        (b"a\n1\n", Reading(encoding="no such"), "encoding"),
        (b"a;b\n1,5;2\n", Reading(), "delimiter"),
        (b"a\n1\n", Reading(delimiter="xx"), "delimiter"),
        (b"a\n1\n", Reading(delimiter=",", decimal=","), "delimiter"),
        (b"a\n1\n", Reading(decimal=";"), "decimal"),
        (b"a\n1\n", Reading(format="xls"), "format"),
        (b'a,b\n"' + b"x" * 200_000 + b'",1\n1\n', Reading(), "delimiter"),
        (b'"a,b\n' + b"1,2\n" * 50_000, Reading(), "delimiter"),
    ],
)
def test_what_is_wrong_comes_with_what_may_help(tmp_path, content, reading, hint):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableFileError) as caught:
        open_table(tmp_path / "t.csv", reading).read()
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("cell", "hint"), [("1,5", "decimal"), ("?", "missing"), ("big", None), ("0x1F", None)]
)
def test_cell_that_is_no_number_comes_with_what_may_help(tmp_path, cell, hint):
    (tmp_path / "t.csv").write_text(f"a;b\n{cell};1\n")
    file = DelimitedFile(tmp_path / "t.csv", Reading(delimiter=";"))
    with pytest.raises(TableFileError, match="line 2, column 'a'") as caught:
        [*file.batches(as_numbers=["a"])]
    assert caught.value.hint == hint


def test_rows_of_fewer_stored_columns_are_padded_and_those_of_more_refused(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:5\n2 3:1\n")
    file = open_table(path, Reading())
    assert file.read(5).X.shape == (2, 5)
    with pytest.raises(TableFileError, match="line 2: a value in column 3; expected at most 2"):
        file.read(2)


def test_pipe_is_refused_since_a_file_is_read_twice(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no named pipes")
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableFileError, match="a pipe or a device; expected a file"):
        open_table(tmp_path / "t.csv", Reading())
