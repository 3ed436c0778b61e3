"""Tables of every supported type with the same values, and tables that are refused.

For a case of `WORKS`, `case.table()` must be read like the array `case.plain()`. `REFUSED` lists tables with
their errors. `IN_BATCHES` lists tables that `fit` and `predict` read out of core, and BinMapper refuses. The
lists cover the inputs that users of other packages pass.
"""

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import dataset, parquet
from scipy import sparse

N_ROWS = 60
NAMES = ["plain", "two words", "[a<b]", '{"json": ":,"}', "Größe"]  # the last column varies
LEVELS = np.array(["apple", "fig", "kiwi", "pear"], object)
ALL = slice(None)


def _draw() -> dict[str, np.ndarray]:
    """Return values of five columns, by the content of the last one or of all."""
    rng = np.random.default_rng(7)
    floats = rng.integers(-20, 20, (N_ROWS, 5)) / 4  # exact as float16
    floats[rng.random(floats.shape) < 0.1] = np.nan
    some = rng.random(N_ROWS) < 0.2
    some[:3] = True, False, False
    last = {
        "truth": rng.integers(0, 2, N_ROWS) * 1.0,
        "whole": rng.integers(-9, 9, N_ROWS) * 1.0,
        "level": rng.integers(0, 4, N_ROWS) * 1.0,
        "nothing": np.full(N_ROWS, np.nan),
    }
    data = {name: np.column_stack([floats[:, :4], column]) for name, column in last.items()}
    for name in ("truth", "whole", "level"):
        column = np.where(some, np.nan, last[name])
        data[f"{name} or missing"] = np.column_stack([floats[:, :4], column])
    whole = rng.integers(0, 100, (N_ROWS, 5)) * 1.0
    rare = np.where(rng.random(floats.shape) < 0.8, 0.0, floats)
    infinite = np.where(rng.random(floats.shape) < 0.2, np.copysign(np.inf, floats), floats)
    return data | {
        "floats": floats,
        "all whole": whole,
        "all truth": np.where(whole > 50, 1.0, 0.0),
        "mostly zero": rare,
        "mostly zero, whole": np.where(np.isnan(rare), 0, np.round(rare)),
        "mostly missing": np.where(rare == 0, np.nan, floats),
        "infinite": infinite,
    }


DATA = _draw()


def labels_of(values: np.ndarray) -> np.ndarray:
    """Return three classes that depend on the last column, not monotonically, and on the first."""
    last = np.nan_to_num(values[:, 4], nan=5, posinf=11, neginf=-11)
    first = np.nan_to_num(values[:, 0], nan=3, posinf=9, neginf=-9)
    score = 10 * (np.abs(last) * 7 % 4 // 1) + first
    rank = np.argsort(np.argsort(score, kind="stable"))
    return rank * 3 // len(values)


@dataclass(frozen=True)
class Case:
    """A type of table.

    Attributes
    ----------
    name : str
        Its name.
    data : str
        The name of its values in DATA.
    make : callable
        Makes the table from plain values.
    categorical : bool
        Whether the last column is categorical.
    named : bool
        Whether the table has column names.
    """

    name: str
    data: str
    make: Callable[[np.ndarray], Any]
    categorical: bool = False
    named: bool = True

    def table(self, rows: Any = ALL) -> Any:
        """Return the table."""
        return self.make(DATA[self.data][rows])

    def plain(self, rows: Any = ALL) -> np.ndarray:
        """Return the same values as an array; categories are numbered in ascending order."""
        return DATA[self.data][rows]

    @property
    def categorical_features(self) -> list[int] | None:
        """Categorical features of the plain array."""
        return [4] if self.categorical else None


@dataclass(frozen=True)
class Refusal:
    """A table that cannot be read, and its error."""

    name: str
    make: Callable[[], Any]
    error: type[Exception]
    says: tuple[str, ...]


@dataclass(frozen=True)
class InBatches:
    """A table that is read in batches; `make` gets a table with labels and a folder for files."""

    name: str
    make: Callable[[pa.Table, Path], Any]


# ------------------------------------------------------------------------------------------- makers


def column_of(values: np.ndarray, kind: Callable[[Any], Any]) -> list[Any]:
    """Return values as Python objects; None is missing."""
    return [None if np.isnan(value) else kind(value) for value in values]


def words(values: np.ndarray) -> list[str | None]:
    return column_of(values, lambda code: str(LEVELS[int(code)]))


def pandas_with(last: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], pd.DataFrame]:
    """Return a maker of frames of floats whose last column is made by the function."""

    def make(values: np.ndarray) -> pd.DataFrame:
        frame = pd.DataFrame(values[:, :4], columns=NAMES[:4])
        frame[NAMES[4]] = last(values[:, 4])
        return frame

    return make


def arrow_with(last: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], pa.Table]:
    def make(values: np.ndarray) -> pa.Table:
        columns = [pa.array(column, from_pandas=True) for column in values[:, :4].T]
        return pa.table([*columns, last(values[:, 4])], names=NAMES)

    return make


def polars_with(last: Callable[[np.ndarray], pl.Series]) -> Callable[[np.ndarray], pl.DataFrame]:
    def make(values: np.ndarray) -> pl.DataFrame:
        columns = {name: values[:, j] for j, name in enumerate(NAMES[:4])}
        return pl.DataFrame({**columns, NAMES[4]: last(values[:, 4])})

    return make


def pandas_frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=NAMES)


def polars_frame(values: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(values, schema=NAMES).fill_nan(None)


def arrow_table(values: np.ndarray) -> pa.Table:
    return pa.table([pa.array(column, from_pandas=True) for column in values.T], names=NAMES)


def objects(values: list[Any]) -> pd.Series:
    return pd.Series(values, dtype=object)


class Stream:
    """A table with only the Arrow PyCapsule interface for streams."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Batch:
    """A table with only the Arrow PyCapsule interface for arrays."""

    def __init__(self, table: pa.Table) -> None:
        self._batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def pandas_category(codes: np.ndarray, categories: Any, ordered: bool = False) -> pd.Categorical:
    known = pd.Index(categories)
    number = {name: j for j, name in enumerate(known)}
    wanted = [-1 if word is None else number[word] for word in words(codes)]
    return pd.Categorical.from_codes(wanted, known, ordered=ordered)


def with_duplicates(values: np.ndarray) -> sparse.coo_array:
    """Store each value as two halves, unordered."""
    half = sparse.coo_array(values / 2)
    row, column = np.tile(half.row, 2)[::-1], np.tile(half.col, 2)[::-1]
    return sparse.coo_array((np.tile(half.data, 2)[::-1], (row, column)), shape=values.shape)


def with_stored_zeros(values: np.ndarray) -> sparse.csc_array:
    """Store every value of the first two columns, including zeros as -0.0."""
    full = sparse.csc_array(np.where(values == 0, 1e9, values)[:, :2])
    full.data[full.data == 1e9] = -0.0
    return sparse.hstack([full, sparse.csc_array(values[:, 2:])], format="csc")


def unsorted(values: np.ndarray) -> sparse.csr_array:
    matrix = sparse.csr_array(values)
    for start, end in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        matrix.indices[start:end] = matrix.indices[start:end][::-1].copy()
        matrix.data[start:end] = matrix.data[start:end][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def with_long_indices(values: np.ndarray) -> sparse.csr_array:
    matrix = sparse.csr_array(values)
    matrix.indices, matrix.indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    return matrix


def pandas_sparse(fill: float, dtype: Any = np.float64) -> Callable[[np.ndarray], pd.DataFrame]:
    def make(values: np.ndarray) -> pd.DataFrame:
        kind = pd.SparseDtype(dtype, fill)
        return pd.DataFrame(values.astype(dtype), columns=NAMES).astype(kind)

    return make


def half_sparse(values: np.ndarray) -> pd.DataFrame:
    """Alternate dense and sparse columns, with different fill values."""
    frame = pd.DataFrame(values, columns=NAMES)
    frame[NAMES[1]] = frame[NAMES[1]].astype(pd.SparseDtype(np.float64, 0.0))
    frame[NAMES[3]] = frame[NAMES[3]].astype(pd.SparseDtype(np.float32, np.nan))
    frame[NAMES[4]] = frame[NAMES[4]].astype(pd.SparseDtype(np.float64, 2.5))
    return frame


# -------------------------------------------------------------------------------------------- works


def _arrays() -> list[Case]:
    def misaligned(values: np.ndarray) -> np.ndarray:
        packed = np.zeros(len(values), dtype=[("pad", "i1"), ("x", "f8", (5,))])
        packed["x"] = values
        return packed["x"]

    forms: list[tuple[str, str, Callable[[np.ndarray], Any]]] = [
        ("float64", "floats", np.array),
        ("float32", "floats", lambda v: v.astype(np.float32)),
        ("float16", "floats", lambda v: v.astype(np.float16)),
        ("longdouble", "floats", lambda v: v.astype(np.longdouble)),
        ("big-endian", "floats", lambda v: v.astype(">f8")),
        ("Fortran order", "floats", np.asfortranarray),
        ("backwards", "floats", lambda v: v[::-1, ::-1].copy()[::-1, ::-1]),
        ("every other", "floats", lambda v: np.repeat(np.repeat(v, 2, 0), 2, 1)[::2, ::2]),
        ("misaligned", "floats", misaligned),
        ("lists", "floats", np.ndarray.tolist),
        ("lists with None", "floats", lambda v: np.where(np.isnan(v), None, v).tolist()),
        ("lists with NA", "floats", lambda v: np.where(np.isnan(v), pd.NA, v).tolist()),
        ("tuples", "floats", lambda v: tuple(map(tuple, v))),
        ("objects", "floats", lambda v: v.astype(object)),
        ("objects with None", "floats", lambda v: np.where(np.isnan(v), None, v)),
        ("objects with NA", "floats", lambda v: np.where(np.isnan(v), pd.NA, v)),
        ("objects masked", "floats", lambda v: np.ma.array(v.astype(object), mask=np.isnan(v))),
        ("masked", "floats", lambda v: np.ma.array(np.nan_to_num(v), mask=np.isnan(v))),
        ("truth values", "all truth", lambda v: v.astype(bool)),
        ("infinite", "infinite", np.array),
        ("infinite float32", "infinite", lambda v: v.astype(np.float32)),
        *((f"{sign}int{bits}", "all whole", lambda v, d=f"{sign}int{bits}": v.astype(d))
          for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ]  # fmt: skip
    return [Case(f"numpy {name}", data, make, named=False) for name, data, make in forms]


def _sparse_matrices() -> list[Case]:
    formats = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    makers = {f"{f}_{kind}": getattr(sparse, f"{f}_{kind}") for f in formats for kind in ("array", "matrix")}  # fmt: skip
    zero = [
        Case(f"scipy {name}", "mostly zero", make, named=False) for name, make in makers.items()
    ]
    more = {
        "float32": lambda v: sparse.csr_array(v.astype(np.float32)),
        "duplicates": with_duplicates,
        "stored zeros": with_stored_zeros,
        "unsorted": unsorted,
        "long indices": with_long_indices,
    }
    whole = {
        "int8": lambda v: sparse.csc_array(v.astype(np.int8)),
        "int64": lambda v: sparse.csr_matrix(v.astype(np.int64)),
    }
    return [
        *zero,
        *(Case(f"scipy {name}", "mostly zero", make, named=False) for name, make in more.items()),
        *(Case(f"scipy {n}", "mostly zero, whole", m, named=False) for n, m in whole.items()),
        Case("scipy bool", "all truth", lambda v: sparse.csr_array(v.astype(bool)), named=False),
        Case("scipy infinite", "infinite", sparse.csr_array, named=False),
    ]


def _pandas_numbers() -> list[Case]:
    def as_type(dtype: Any, kind: Callable[[Any], Any] = float) -> Any:
        return pandas_with(lambda v: pd.array(column_of(v, kind), dtype=dtype))

    arrow = pd.ArrowDtype
    whole, truth = "whole or missing", "truth or missing"
    last: list[tuple[str, str, Any]] = [
        ("int64", "whole", pandas_with(lambda v: v.astype(np.int64))),
        ("float16", "whole", pandas_with(lambda v: v.astype(np.float16))),
        ("bool", "truth", pandas_with(lambda v: v.astype(bool))),
        *((f"nullable {t}", whole, as_type(t, int)) for t in ("Int8", "Int64")),
        *((f"nullable {t}", whole, as_type(t)) for t in ("Float32", "Float64")),
        ("nullable boolean", truth, as_type("boolean", bool)),
        ("Arrow int8", whole, as_type(arrow(pa.int8()), int)),
        ("Arrow double", whole, as_type(arrow(pa.float64()))),
        ("Arrow bool", truth, as_type(arrow(pa.bool_()), bool)),
        ("Arrow decimal", whole, as_type(arrow(pa.decimal128(9, 2)), decimal.Decimal)),
        ("objects int", whole, pandas_with(lambda v: objects(column_of(v, int)))),
        ("objects bool", truth, pandas_with(lambda v: objects(column_of(v, bool)))),
        ("objects Decimal", whole, pandas_with(lambda v: objects(column_of(v, decimal.Decimal)))),
        ("NaT", "nothing", pandas_with(lambda v: pd.to_datetime([None] * len(v)))),
    ]
    frames: list[tuple[str, str, Any]] = [
        ("float64", "floats", pandas_frame),
        ("float32", "floats", lambda v: pandas_frame(v).astype(np.float32)),
        ("Arrow", "floats", lambda v: pandas_frame(v).astype(arrow(pa.float32()))),
        ("infinite", "infinite", pandas_frame),
        ("sparse", "mostly zero", pandas_sparse(0.0)),
        ("sparse missing", "mostly missing", pandas_sparse(np.nan)),
        ("sparse int", "mostly zero, whole", pandas_sparse(0, np.int32)),
        ("sparse bool", "all truth", pandas_sparse(False, bool)),
        ("sparse fill 2.5", "floats", pandas_sparse(2.5)),
        ("half sparse", "mostly zero", half_sparse),
    ]
    numbered = Case("pandas numbered columns", "floats", pd.DataFrame, named=False)
    return [numbered, *(Case(f"pandas {name}", data, make) for name, data, make in frames + last)]


def _pandas_levels() -> list[Case]:
    def as_type(dtype: Any) -> Any:
        return pandas_with(lambda v: pd.array(words(v), dtype=dtype))

    backwards, unused = LEVELS[::-1], [*LEVELS[::-1], "unused", "zzz"]
    forms = {
        "category": pandas_with(lambda v: pandas_category(v, LEVELS)),
        "category backwards": pandas_with(lambda v: pandas_category(v, backwards)),
        "category ordered": pandas_with(lambda v: pandas_category(v, backwards, ordered=True)),
        "category unused": pandas_with(lambda v: pandas_category(v, unused)),
        "str": as_type("str"),
        "string": as_type("string"),
        "string python": as_type(pd.StringDtype("python")),
        "Arrow string": as_type(pd.ArrowDtype(pa.string())),
        "Arrow large string": as_type(pd.ArrowDtype(pa.large_string())),
        "Arrow dictionary": as_type(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        "objects": pandas_with(lambda v: objects(words(v))),
        "objects NaN": pandas_with(lambda v: objects([w or np.nan for w in words(v)])),
        "objects NA": pandas_with(lambda v: objects([w or pd.NA for w in words(v)])),
    }
    return _levels("pandas", forms)


def _levels(library: str, forms: dict[str, Any]) -> list[Case]:
    both = ("level or missing", "level")
    return [
        Case(f"{library} {name}{data[5:]}", data, make, categorical=True)
        for name, make in forms.items()
        for data in both
    ]


def _polars() -> list[Case]:
    def series(dtype: Any, kind: Callable[[Any], Any] = float) -> Any:
        return polars_with(lambda v: pl.Series(column_of(v, kind), dtype=dtype))

    def level(dtype: Any) -> Any:
        return polars_with(lambda v: pl.Series(words(v), dtype=pl.String).cast(dtype))

    levels = {
        "String": level(pl.String),
        "Categorical": level(pl.Categorical),
        "Enum": level(pl.Enum(LEVELS.tolist())),
        "Enum backwards": level(pl.Enum(LEVELS[::-1].tolist())),
        "LazyFrame of levels": lambda v: level(pl.Categorical)(v).lazy(),
    }
    numbers: list[tuple[str, str, Any]] = [
        ("float64", "floats", polars_frame),
        ("NaN", "floats", lambda v: pl.DataFrame(v, schema=NAMES)),
        ("float32", "floats", lambda v: polars_frame(v).cast(pl.Float32)),
        ("LazyFrame", "floats", lambda v: polars_frame(v).lazy()),
        ("sliced", "floats", lambda v: polars_frame(np.concatenate([v, v]))[: len(v)]),
        ("chunked", "floats", lambda v: pl.concat([polars_frame(v[:1]), polars_frame(v[1:])], rechunk=False)),
        ("infinite", "infinite", polars_frame),
        ("Int8", "whole or missing", series(pl.Int8, int)),
        ("Int64", "whole", series(pl.Int64, int)),
        ("Int128", "whole or missing", series(pl.Int128, int)),
        ("Boolean", "truth", series(pl.Boolean, bool)),
        ("Boolean with null", "truth or missing", series(pl.Boolean, bool)),
        ("Decimal", "whole or missing", series(pl.Decimal(9, 2), decimal.Decimal)),
        ("Object", "whole or missing", series(pl.Object, int)),
        ("narwhals", "floats", lambda v: nw.from_native(polars_frame(v))),
    ]  # fmt: skip
    return [Case(f"polars {n}", data, make) for n, data, make in numbers] + _levels(
        "polars", levels
    )


def _arrow() -> list[Case]:
    def array(dtype: Any, kind: Callable[[Any], Any] = float) -> Any:
        return arrow_with(lambda v: pa.array(column_of(v, kind), dtype))

    def level(dtype: Any) -> Any:
        return arrow_with(lambda v: pa.array(words(v), pa.string()).cast(dtype))

    def repeated(v: np.ndarray) -> pa.Array:
        """Return an array whose dictionary has a duplicate and a null."""
        codes = [4 if np.isnan(code) else int(code) for code in v]
        codes = [5 if code == 0 and row % 2 else code for row, code in enumerate(codes)]
        return pa.DictionaryArray.from_arrays(codes, pa.array([*LEVELS, None, LEVELS[0]]))

    levels = {
        "string": level(pa.string()),
        "large string": level(pa.large_string()),
        "string view": level(pa.string_view()),
        "dictionary": level(pa.dictionary(pa.int8(), pa.string())),
        "dictionary, repeated": arrow_with(repeated),
        "dictionary, chunked": lambda v: pa.concat_tables(
            [level(pa.dictionary(pa.int32(), pa.string()))(part) for part in (v[:9], v[9:])]
        ),
        "stream of levels": lambda v: Stream(level(pa.dictionary(pa.int8(), pa.string()))(v)),
    }
    numbers: list[tuple[str, str, Any]] = [
        ("float64", "floats", arrow_table),
        ("float32", "floats", lambda v: arrow_table(v).cast(pa.schema([(n, pa.float32()) for n in NAMES]))),
        ("RecordBatch", "floats", lambda v: arrow_table(v).to_batches()[0]),
        ("RecordBatchReader", "floats", lambda v: arrow_table(v).to_reader()),
        ("stream", "floats", lambda v: Stream(arrow_table(v))),
        ("batch", "floats", lambda v: Batch(arrow_table(v))),
        ("sliced", "floats", lambda v: arrow_table(np.concatenate([v, v])).slice(0, len(v))),
        ("infinite", "infinite", arrow_table),
        ("int8", "whole or missing", array(pa.int8(), int)),
        ("uint64", "truth or missing", array(pa.uint64(), int)),
        ("halffloat", "whole", arrow_with(lambda v: pa.array(v.astype(np.float16)))),
        ("bool", "truth", array(pa.bool_(), bool)),
        ("bool with null", "truth or missing", array(pa.bool_(), bool)),
        ("decimal", "whole or missing", array(pa.decimal128(9, 2), decimal.Decimal)),
    ]  # fmt: skip
    return [Case(f"pyarrow {n}", data, make) for n, data, make in numbers] + _levels(
        "pyarrow", levels
    )


def _number_levels() -> list[Case]:
    """Return numeric categories by type."""

    def category(v: np.ndarray) -> pd.Categorical:
        return pd.Categorical(pd.array(column_of(v, int), dtype="Int64"), categories=[3, 1, 0, 2])

    def dictionary(v: np.ndarray) -> pa.Array:
        return pa.array(column_of(v, int), pa.int64()).dictionary_encode()

    def truth(v: np.ndarray) -> pd.Categorical:
        return pd.Categorical(column_of(v, bool), categories=[True, False])

    return [
        *_levels("pandas", {"category of int": pandas_with(category)}),
        *_levels("pyarrow", {"dictionary of int": arrow_with(dictionary)}),
        Case("pandas category of bool", "truth or missing", pandas_with(truth), categorical=True),
    ]


def _no_levels() -> list[Case]:
    """Return categorical columns of missing values only."""

    def pandas_nothing(dtype: Any) -> Any:
        return pandas_with(lambda v: pd.array([None] * len(v), dtype=dtype))

    def polars_nothing(dtype: Any) -> Any:
        return polars_with(lambda v: pl.Series([None] * len(v), dtype=dtype))

    forms = {
        "pandas objects None": pandas_with(lambda v: objects([None] * len(v))),
        "pandas objects NaN": pandas_with(lambda v: objects([np.nan] * len(v))),
        "pandas objects NA": pandas_with(lambda v: objects([pd.NA] * len(v))),
        "pandas str": pandas_nothing("str"),
        "pandas string": pandas_nothing("string"),
        "pandas category": pandas_nothing("category"),
        "pandas category of words": pandas_nothing(pd.CategoricalDtype(LEVELS)),
        "pandas Arrow string": pandas_nothing(pd.ArrowDtype(pa.string())),
        "pandas Arrow null": pandas_nothing(pd.ArrowDtype(pa.null())),
        "polars String": polars_nothing(pl.String),
        "polars Categorical": polars_nothing(pl.Categorical),
        "polars Enum": polars_nothing(pl.Enum(LEVELS.tolist())),
        "polars Null": polars_nothing(pl.Null),
        "polars Object": polars_nothing(pl.Object),
        "pyarrow string": arrow_with(lambda v: pa.nulls(len(v), pa.string())),
        "pyarrow string view": arrow_with(lambda v: pa.nulls(len(v), pa.string_view())),
        "pyarrow dictionary": arrow_with(
            lambda v: pa.nulls(len(v), pa.dictionary(pa.int8(), pa.string()))
        ),
        "pyarrow null": arrow_with(lambda v: pa.nulls(len(v))),
    }
    return [
        Case(f"{name}, all missing", "nothing", make, categorical=True)
        for name, make in forms.items()
    ]


NUMBERS = [*_arrays(), *_sparse_matrices(), *_pandas_numbers()]
STRING_CATEGORIES = _pandas_levels()
for _case in [*_polars(), *_arrow()]:
    (STRING_CATEGORIES if _case.categorical else NUMBERS).append(_case)
NUMBER_CATEGORIES = _number_levels()
NO_CATEGORIES = _no_levels()
WORKS = [*NUMBERS, *STRING_CATEGORIES, *NUMBER_CATEGORIES, *NO_CATEGORIES]


# ------------------------------------------------------------------------------------------ refused

_DAY = datetime.date(2001, 2, 3)
_MOMENT = datetime.datetime(2001, 2, 3, 4, 5)
_NAMED = f"column {NAMES[4]!r}"
_STRINGS = ("X holds strings, such as", "expected numbers", "strings are accepted in data frames")
_TABLES = ("expected an array of numbers, a data frame, an Arrow table or a sparse matrix",)


def _pandas_refused(name: str, last: Any, *says: str) -> Refusal:
    def make() -> pd.DataFrame:
        return pandas_with(lambda v: last(len(v)))(DATA["floats"])

    return Refusal(f"pandas {name}", make, TypeError, (_NAMED, *says))


def _arrow_refused(name: str, value: Any, dtype: Any, *says: str) -> list[Refusal]:
    def make() -> pa.Table:
        return arrow_with(lambda v: pa.array([value] * len(v), dtype))(DATA["floats"])

    return [
        Refusal(f"pyarrow {name}", make, TypeError, (_NAMED, *says)),
        Refusal(f"polars {name}", lambda: pl.from_arrow(make()), TypeError, (_NAMED, *says)),
        Refusal(
            f"pandas Arrow {name}",
            lambda: make().to_pandas(types_mapper=pd.ArrowDtype),
            TypeError,
            (_NAMED, *says),
        ),
    ]


def _other_arrow(name: str, make: Callable[[int], Any], *says: str) -> Refusal:
    """Return a refusal of a type that only Arrow has."""
    return Refusal(
        f"pyarrow {name}",
        lambda: arrow_with(lambda v: make(len(v)))(DATA["floats"]),
        TypeError,
        (_NAMED, *(says or ("is of type", "expected numbers"))),
    )


def _no_form(*shape: int) -> np.ndarray:
    return np.zeros(shape)


REFUSED = [
    _pandas_refused("datetime", lambda n: [_MOMENT] * n, "datetime", "year", "seconds since"),
    _pandas_refused("datetime with zone", lambda n: pd.date_range("2001", periods=n, tz="UTC"), "datetime"),
    _pandas_refused("timedelta", lambda n: pd.to_timedelta(np.arange(n)), "duration", "seconds"),
    _pandas_refused("period", lambda n: pd.period_range("2001", periods=n), "a period (period[D])", "strings", "astype(str)"),
    _pandas_refused("interval", lambda n: pd.interval_range(0, n), "an interval", "strings", "astype(str)"),
    _pandas_refused("complex", lambda n: np.ones(n) * 1j, "complex (complex128)", "imaginary"),
    _pandas_refused("objects mixed", lambda n: objects(["a", 1] * (n // 2)), "strings and numbers"),
    _pandas_refused("objects date", lambda n: objects([_DAY] * n), "date", "convert"),
    _pandas_refused("objects bytes", lambda n: objects([b"a"] * n), "bytes"),
    _pandas_refused("objects list", lambda n: objects([[1]] * n), "list"),
    _pandas_refused("objects complex", lambda n: objects([1j] * n), "complex"),
    _pandas_refused("category of dates", lambda n: pd.Categorical([_MOMENT] * n), "Timestamp"),
    _pandas_refused("category of intervals", lambda n: pd.cut(np.arange(n), 3), "Interval"),
    _pandas_refused("category mixed", lambda n: pd.Categorical(["a", 1] * (n // 2)), "strings and numbers"),
    _pandas_refused("sparse words", lambda n: pd.arrays.SparseArray(["a"] * n), "Sparse"),
    *_arrow_refused("timestamp", _MOMENT, pa.timestamp("us"), "datetime", "year", "seconds since"),
    *_arrow_refused("date", _DAY, pa.date32(), "datetime", "year"),
    *_arrow_refused("time", datetime.time(1), pa.time64("us"), "time of day", "midnight"),
    *_arrow_refused("duration", datetime.timedelta(1), pa.duration("us"), "duration", "seconds"),
    *_arrow_refused("list", [1, 2], pa.list_(pa.int64()), "nested", "one column per element"),
    *_arrow_refused("struct", {"a": 1}, pa.struct([("a", pa.int64())]), "nested"),
    *_arrow_refused("array", [1, 2], pa.list_(pa.int64(), 2), "nested"),
    *_arrow_refused("binary", b"a", pa.binary(), "binary", "strings"),
    _other_arrow("binary of one size", lambda n: pa.array([b"abc"] * n, pa.binary(3)), "binary", "decode", "strings"),
    _other_arrow("binary view", lambda n: pa.array([b"abc"] * n, pa.binary_view()), "binary", "decode", "strings"),
    _other_arrow("large binary", lambda n: pa.array([b"abc"] * n, pa.large_binary()), "binary", "decode", "strings"),
    _other_arrow("list view", lambda n: pa.array([[1]] * n, pa.list_view(pa.int8())), "nested", "one column per element"),
    _other_arrow("map", lambda n: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int8())), "nested", "one column per element"),
    _other_arrow("union", lambda n: pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array(range(n))])),
    _other_arrow("interval", lambda n: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval())),
    _other_arrow("run ends", lambda n: pa.RunEndEncodedArray.from_arrays([1, n], [1.0, 2.0])),
    _other_arrow("uuid", lambda n: pa.array([b"0" * 16] * n, pa.uuid())),
    Refusal("polars objects", lambda: pl.DataFrame({NAMES[4]: pl.Series([{1}], dtype=pl.Object)}), TypeError, (_NAMED, "set")),
    Refusal("pandas same names", lambda: pd.DataFrame(_no_form(3, 3), columns=["a", "b", "a"]), ValueError, ("duplicate column names", "'a'")),
    Refusal("pyarrow same names", lambda: pa.table([[1], [2]], names=["a", "a"]), ValueError, ("duplicate column names", "'a'")),
    Refusal("pandas no rows", lambda: pd.DataFrame({"a": []}), ValueError, ("0 sample(s)", "minimum of 1")),
    Refusal("pandas no columns", lambda: pd.DataFrame(index=[1, 2]), ValueError, ("0 feature(s)", "minimum of 1")),
    Refusal("polars no columns", pl.DataFrame, ValueError, ("0 feature(s)", "minimum of 1")),
    Refusal("pyarrow no rows", lambda: pa.table({"a": pa.array([], pa.float64())}), ValueError, ("0 sample(s)",)),
    Refusal("pandas Series", lambda: pd.Series([1.0, 2.0]), ValueError, ("2-dimensional",)),
    Refusal("polars Series", lambda: pl.Series([1.0, 2.0]), ValueError, ("2D",)),
    Refusal("pyarrow Array", lambda: pa.array([1.0, 2.0]), TypeError, ("not an Arrow table",)),
    Refusal("pyarrow ChunkedArray", lambda: pa.chunked_array([[1.0]]), ValueError, ("2D",)),
    Refusal("numpy words", lambda: np.array([["a"]]), ValueError, _STRINGS),
    Refusal("numpy bytes", lambda: np.array([["a"]], "S"), ValueError, _STRINGS),
    Refusal("numpy words that look like numbers", lambda: np.array([["1"]]), ValueError, _STRINGS),
    Refusal("numpy masked words", lambda: np.ma.array([["a", "b"]], mask=[[True, False]]), ValueError, _STRINGS),
    Refusal("numpy objects words", lambda: np.array([[1, "a"]], object), ValueError, _STRINGS),
    Refusal("numpy objects words that look like numbers", lambda: np.array([[1, "2"]], object), ValueError, _STRINGS),
    Refusal("lists of words", lambda: [[1.5, "a"]], ValueError, ("'a'", *_STRINGS[-1:])),
    Refusal("lists of words that look like numbers", lambda: [["1", 2]], ValueError, _STRINGS),
    Refusal("lists of dates", lambda: [[np.datetime64(_DAY)]], TypeError, ("datetime64[D]", "seconds")),
    Refusal("numpy objects", lambda: np.array([[{}]], object), TypeError, ("type dict", "{}", "expected numbers")),
    Refusal("numpy dates", lambda: np.array([["2001-01-01"]], "M8[D]"), TypeError, ("datetime64[D]", "seconds")),
    Refusal("numpy durations", lambda: np.array([[3]], "m8[s]"), TypeError, ("timedelta64[s]", "seconds")),
    Refusal("numpy complex", lambda: np.array([[1j]]), ValueError, ("Complex data not supported",)),
    Refusal("numpy row", lambda: _no_form(3), ValueError, ("Expected 2D array, got 1D array",)),
    Refusal("numpy cube", lambda: _no_form(3, 2, 1), ValueError, ("dim 3", "dim <= 2")),
    Refusal("numpy no rows", lambda: _no_form(0, 3), ValueError, ("0 sample(s)", "minimum of 1")),
    Refusal("numpy no columns", lambda: _no_form(3, 0), ValueError, ("0 feature(s)", "minimum of 1")),
    Refusal("lists ragged", lambda: [[1.0], [1.0, 2.0]], ValueError, ("inhomogeneous",)),
    Refusal("scipy complex", lambda: sparse.csr_array([[1j]]), ValueError, ("Complex data not supported",)),
    Refusal("scipy no rows", lambda: sparse.csr_array((0, 3)), ValueError, ("0 sample(s)",)),
    Refusal("scipy vector", lambda: sparse.coo_array([1.0, 2.0]), ValueError, ("1 dimension", "expected 2")),
    Refusal("a number", lambda: 3.0, ValueError, ("Expected 2D array, got scalar",)),
    Refusal("nothing", lambda: None, TypeError, ("type NoneType", *_TABLES)),
    Refusal("a dict of columns", lambda: {"a": [1.0, 2.0]}, TypeError, ("type dict", *_TABLES)),
    Refusal("a generator", lambda: iter([[1.0]]), TypeError, ("type list_iterator", *_TABLES)),
]  # fmt: skip


# --------------------------------------------------------------------------------- read in batches


def _path(table: pa.Table, folder: Path) -> Path:
    parquet.write_table(table, folder / "table.parquet")
    return folder / "table.parquet"


IN_BATCHES = [
    InBatches("a path", _path),
    InBatches("a string", lambda table, folder: str(_path(table, folder))),
    InBatches("pyarrow Dataset", lambda table, folder: dataset.dataset(table)),
]
