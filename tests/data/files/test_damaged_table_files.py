"""Damaged table files, and files that are not what their name says: errors name file and place."""

import gzip
import io
import os
from collections import deque
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm import ABCBoostClassifier
from abcgbm.cli import main
from abcgbm.data.files.csv import DelimitedFile
from abcgbm.data.files.csv_blocks import text_blocks
from abcgbm.data.files.file_source import open_table
from abcgbm.data.files.formats import Reading
from abcgbm.errors import TableFileError

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

WRITERS = {"parquet": parquet.write_table, "feather": feather.write_feather}
ROWS = [f'{row},"{"uv"[row % 2]}"\n' for row in range(60)]


def read(path, **reading):
    return open_table(path, Reading(**reading)).read()


def read_in_blocks(path, size):
    return DelimitedFile(path, Reading(), block_bytes=size).read()


def last_error(capsys):
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    return line


# ------------------------------------------------------------------------------------------- quotes


def line_of_unclosed_quote(text):
    """Read character by character; None if every quoted cell ends at a delimiter or a row's end."""
    opened, is_start, has_lines, line, place = None, True, False, 1, 0
    while place < len(text):
        character, after = text[place], text[place + 1 : place + 2]
        if opened is None:
            if character == '"' and is_start:
                opened, has_lines = line, False
            is_start = character in ",\r\n"
        elif character == '"' == after:
            place += 1
        elif character == '"':
            if has_lines and after not in ("", ",", "\r", "\n"):
                return opened
            opened, is_start = None, False
        else:
            has_lines |= character in "\r\n"
        line += character == "\n"
        place += 1
    return opened


PIECES = st.sampled_from(["ab", '"x\ny"', '"', '""', "1", "\n", "\r\n", ",", '"a,b"'])


@given(st.lists(PIECES, max_size=12), st.integers(1, 20))
def test_quote_without_an_end_is_found_at_any_size_of_blocks(pieces, size):
    text = "".join(pieces)
    line, error = line_of_unclosed_quote(text), None
    try:
        deque(text_blocks(io.BytesIO(text.encode()), Path("t.csv"), size), maxlen=0)
    except TableFileError as raised:
        error = str(raised).partition(":")[0]
    assert error == (None if line is None else f"t.csv, line {line}")


@pytest.mark.parametrize("size", [1, 50, 2**24])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize(
    "rows",
    [
        [*ROWS[:19], '19,"v\n', *[row.replace('"', "") for row in ROWS[20:]]],  # up to the end
        [*ROWS[:19], '19,"v'],  # cut within a cell
        [*ROWS[:19], '19,"v\n', *ROWS[20:]],  # closed by the quote of the next cell
        [*ROWS[:19], '19,"two\nlines and ""more\n'],
    ],
)
def test_unclosed_quote_names_the_line_where_it_opens(tmp_path, rows, ending, size):
    path, data = tmp_path / f"t.{ending}", f"a,y\n{''.join(rows)}".encode()
    path.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    with pytest.raises(TableFileError, match=rf"{path.name}, line 21: a quoted cell is never"):
        read_in_blocks(path, size)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(ROWS))
    few = ["--max-iter", "2", "--learning-rate", "0.15", "--set", "min_samples_leaf=1"]
    assert main(["train", "t.csv", "-l", "y", "-m", "m.abc", *few]) == 0
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "train bad.csv -l y -m x.abc",
        "train bad.csv -l y -m x.abc --memory 1GB",
        "train t.csv -l y -m x.abc --valid bad.csv",
        "predict m.abc bad.csv -o p.csv",
        "evaluate m.abc bad.csv -l y",
        "explain m.abc bad.csv -o e.csv",
    ],
)
def test_commands_refuse_a_quote_that_is_never_closed(trained, capsys, line):
    (trained / "bad.csv").write_text("a,y\n" + "".join(ROWS[:19]) + '19,"v\n20,u\n21,v\n')
    assert main(line.split()) == 1
    assert "bad.csv, line 21: a quoted cell is never closed" in last_error(capsys)
    assert not [name for name in ("x.abc", "p.csv", "e.csv") if (trained / name).exists()]


def test_file_in_parts_refuses_a_quote_that_is_never_closed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(ROWS[:-1]) + '59,"v')
    with pytest.raises(TableFileError, match=r"t\.csv, line 61: a quoted cell"):
        ABCBoostClassifier(max_iter=1).fit(path, "y")


# ---------------------------------------------------------------------- names, and other formats


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather", "libsvm"])
def test_name_that_is_not_utf8_is_read(tmp_path, ending):
    path = tmp_path / os.fsdecode(b"n\xff." + ending.encode())
    if ending in WRITERS:
        WRITERS[ending](pa.table({"a": [1]}), tmp_path / "t")
        (tmp_path / "t").rename(path)
    else:
        data = b"1 1:1\n" if ending == "libsvm" else b"a\n1\n"
        path.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    table = read(path)
    values = table.X.toarray().tolist() if ending == "libsvm" else table.to_pydict()
    assert values in ([[1.0]], {"a": [1]})


def test_commands_read_and_write_names_that_are_not_utf8(trained):
    names = {ending: os.fsdecode(b"n\xff." + ending) for ending in (b"csv", b"abc", b"out.csv")}
    (trained / "t.csv").rename(trained / names[b"csv"])
    few = ["--max-iter", "2", "--learning-rate", "0.15", "--set", "min_samples_leaf=1"]
    assert main(["train", names[b"csv"], "-l", "y", "-m", names[b"abc"], *few]) == 0
    assert main(["predict", names[b"abc"], names[b"csv"], "-o", names[b"out.csv"]]) == 0
    assert len(read(trained / names[b"out.csv"])) == 60


OTHERS = {
    "gzip data, not text; expected the suffix .gz": gzip.compress(b"a,b\n1,2\n"),
    "zstd data, not text; expected the suffix .zst": b"\x28\xb5\x2f\xfd\x04\x00",
    "a zip archive or a spreadsheet, not text": b"PK\x03\x04\x14\x00\x06\x00",
    "a Parquet file, not text; expected the suffix .parquet": b"PAR1\x15\x04\x15\n",
    "a Feather file, not text; expected the suffix .feather": b"ARROW1\x00\x00\xff\xff",
}


@pytest.mark.parametrize("ending", ["csv", "tsv", "libsvm"])
@pytest.mark.parametrize("message", OTHERS)
def test_files_of_another_format_are_recognised(tmp_path, message, ending):
    (tmp_path / f"t.{ending}").write_bytes(OTHERS[message])
    with pytest.raises(TableFileError, match=rf"t\.{ending}: {message}"):
        read(tmp_path / f"t.{ending}")


BINARY = np.random.default_rng(0).bytes(3000)


@pytest.mark.parametrize("data", [BINARY, b"\x89PNG\r\n\x1a\n" + BINARY, b"a,b\n1," + BINARY])
def test_binary_data_are_no_matter_of_an_encoding(tmp_path, data):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(TableFileError, match=r"t\.csv: binary data, not text") as raised:
        read(tmp_path / "t.csv")
    assert raised.value.hint == "format"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_text_in_another_encoding_is_text(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("é,b\n1,2\n".encode(encoding))
    with pytest.raises(TableFileError, match="encoding") as raised:
        read(path)
    assert raised.value.hint == "encoding"
    assert read(path, encoding=encoding).num_rows == 1


@pytest.mark.parametrize("encoding", ["hex", "rot13", "base64", "zlib", "idna", "punycode", "nope"])
def test_encoding_that_is_not_of_text_files_is_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableFileError, match=rf"t\.csv: unknown encoding '{encoding}'; expected"):
        read(tmp_path / "t.csv", encoding=encoding)


@pytest.mark.parametrize("data", [b"a,b\n1,2\n", "a,b\n1,2\n".encode("utf-16-le")])
def test_text_without_the_mark_of_utf16_names_the_file(tmp_path, data):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(TableFileError, match=r"t\.csv: not utf-16: UTF-16 stream") as raised:
        read(tmp_path / "t.csv", encoding="utf-16")
    assert raised.value.hint == "encoding"


@pytest.mark.parametrize("ending", WRITERS)
def test_damaged_name_of_a_column_names_the_file(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    WRITERS[ending](pa.table({"abcdefgh": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xffefgh"))
    with pytest.raises(TableFileError, match=rf"t\.{ending}: not a {ending} file, or damaged: "):
        read(path)


def test_text_that_begins_as_the_signature_of_another_format_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("PAR1,BZh9,PK\n1,2,3\n")
    assert read(tmp_path / "t.csv").column_names == ["PAR1", "BZh9", "PK"]


def test_damaged_compression_names_the_file(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 99)[:-9])
    with pytest.raises(TableFileError, match=r"t\.csv\.gz: cannot be read as gzip data: "):
        read(tmp_path / "t.csv.gz")


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize(
    "metadata", [b"{", b"\xff", b"1", b"[" * 100_000, b'{"index_columns": "a"}']
)
def test_damaged_metadata_of_pandas_name_the_file(tmp_path, metadata, ending):
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": metadata})
    WRITERS[ending](table, tmp_path / f"t.{ending}")
    with pytest.raises(TableFileError, match=rf"t\.{ending}: damaged pandas metadata"):
        read(tmp_path / f"t.{ending}")


# -------------------------------------------------------------------------------- values of columns


def strings_that_are_no_text():
    """Strings of Arrow whose bytes are not UTF-8, which it does not check by itself."""
    binary = pa.array([b"\xff", b"x"] * 30)
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


UNREADABLE = {
    "text": strings_that_are_no_text(),
    "dates": pa.array([2**31 - 1, 1] * 30, pa.date32()),
}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("memory", [[], ["--memory", "1GB"]])
@pytest.mark.parametrize("kind", UNREADABLE)
def test_label_that_python_cannot_hold_names_its_column(trained, capsys, kind, memory, ending):
    table = pa.table({"a": range(60), "odd": UNREADABLE[kind]})
    WRITERS[ending](table, trained / f"odd.{ending}")
    assert main(["train", f"odd.{ending}", "-l", "odd", "-m", "x.abc", *memory]) == 1
    message = last_error(capsys)
    assert "column 'odd' has values that cannot be converted" in message or (
        ending == "feather" and "odd.feather, column 'odd': damaged values: " in message
    )


OUT_OF_BOUNDS = {
    "text": pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.py_buffer(np.array([0, 10**8, 2, 3], np.int32)), pa.py_buffer(b"abc")],
    ),
    "category": pa.DictionaryArray.from_arrays(
        pa.array([0, 10**8, 0], pa.int32()), pa.array(["a"]), safe=False
    ),
}


@pytest.mark.parametrize("kind", OUT_OF_BOUNDS)
def test_values_of_a_feather_file_are_in_bounds(tmp_path, kind):
    feather.write_feather(
        pa.table({"a": range(3), "odd": OUT_OF_BOUNDS[kind]}), tmp_path / "t.feather"
    )
    with pytest.raises(TableFileError, match=r"t\.feather, column 'odd': damaged values"):
        read(tmp_path / "t.feather")


def test_feature_that_is_no_text_names_its_column():
    table, y = pa.table({"odd": UNREADABLE["text"], "a": range(60)}), ["u", "v"] * 30
    with pytest.raises(ValueError, match="column 'odd' has values that cannot be converted"):
        ABCBoostClassifier(max_iter=1).fit(table, y)
    with pytest.raises(ValueError, match="y has values that cannot be converted"):
        ABCBoostClassifier(max_iter=1).fit(table.select(["a"]), table["odd"])


def test_weights_that_python_cannot_hold_are_named():
    times = pa.array([2**40] * 60, pa.time64("us"))
    with pytest.raises(ValueError, match="sample_weight has values that cannot be converted"):
        ABCBoostClassifier(max_iter=1).fit(np.arange(60)[:, None], [0, 1] * 30, times)


def test_kept_column_that_is_no_text_is_named(trained, capsys):
    parquet.write_table(pa.table({"a": range(60), "odd": [[1]] * 60}), "odd.parquet")
    assert main(["predict", "m.abc", "odd.parquet", "--keep", "odd", "-o", "p.csv"]) == 1
    assert "column 'odd' has values that cannot be converted" in last_error(capsys)


@pytest.mark.parametrize("value", [[1, 2], {1: 2}, {3}, np.zeros(2), (1, [2])])
def test_objects_that_are_no_values_are_shown_with_their_type(value):
    column = np.empty(60, dtype=object)
    column[:] = [value] * 60
    expected = f"column 'a' has values of type {type(value).__name__}, such as "
    with pytest.raises(TypeError, match=expected):
        ABCBoostClassifier(max_iter=1).fit(pd.DataFrame({"a": column}), [0, 1] * 30)


def decimals(of):
    return pa.array([Decimal(row % 7) / 2 for row in range(59)] + [None]).cast(of)


@pytest.mark.parametrize(
    "of",
    [pa.decimal32(5, 1), pa.decimal64(5, 1), pa.decimal128(5, 1), pa.decimal256(5, 1)],
    ids=str,
)
def test_decimal_numbers_of_any_width_are_numbers(tmp_path, of):
    y = ["u", "v", "w"] * 20
    table = pa.table({"a": decimals(of), "b": range(60)})
    floats = table.set_column(0, "a", decimals(of).cast(pa.float64()))
    extension = pd.arrays.ArrowExtensionArray(pa.chunked_array([decimals(of)]))
    frame = pd.DataFrame({"a": extension, "b": range(60)})
    settings = {"max_iter": 3, "learning_rate": 0.15, "min_samples_leaf": 1}
    expected = ABCBoostClassifier(**settings).fit(floats, y).predict_proba(floats)
    rows = np.arange(0, 60, 7)
    for X in (table, frame):
        model = ABCBoostClassifier(**settings).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        some = X.take(rows) if X is table else X.iloc[rows]
        np.testing.assert_array_equal(model.predict_proba(some), expected[rows])
    whole = table.append_column("y", pa.array(y))
    parquet.write_table(whole, tmp_path / "t.parquet")
    for X in (
        tmp_path / "t.parquet",
        dataset.dataset(whole),
        [whole.slice(0, 25), whole.slice(25)],
    ):
        model = ABCBoostClassifier(**settings).fit(X, "y")
        np.testing.assert_array_equal(model.predict_proba(floats), expected)
