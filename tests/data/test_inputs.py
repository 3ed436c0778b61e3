"""The estimator on every kind of table: the model of the plain array, or an error with the column."""

import functools
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from abcgbm import ABCBoostClassifier, BinMapper, Categorical
from inputs import (
    DATA,
    IN_BATCHES,
    N_ROWS,
    NAMES,
    REFUSED,
    STRING_CATEGORIES,
    WORKS,
    Case,
    InBatches,
    Refusal,
    arrow_table,
    labels_of,
    pandas_frame,
    pandas_with,
    polars_frame,
    words,
)
from models import assert_same_model, run_python, small

# What users bring to such a package, and the forms that stand for it here. The numbers are those of
# a survey of other packages: 1.3 its table of inputs, 1.4 that of missing values and categories.
# What has no form here has a test of its own, which says so.
LINES = {
    "1.3 numpy f64/f32/int": "^numpy (float|u?int)",
    "1.3 list of lists": "^numpy lists",
    "1.3 pandas numeric, bool, nullable": "^pandas (float|int|bool|nullable)",
    "1.3 pandas pyarrow-backed": "^pandas Arrow",
    "1.3 pandas category": "^pandas category",
    "1.3 pandas object, string": "^pandas (objects|str)",
    "1.3 pandas datetime": "^pandas datetime",
    "1.3 polars numeric, bool, nulls": "^polars (float|NaN|Int|Boolean|Null)",
    "1.3 polars LazyFrame": "^polars LazyFrame",
    "1.3 polars Categorical": "^polars Categorical",
    "1.3 polars Enum": "^polars Enum",
    "1.3 polars String": "^polars String",
    "1.3 pyarrow Table, RecordBatch": "^pyarrow (float|int|RecordBatch)",
    "1.3 pyarrow dictionary": "^pyarrow dictionary",
    "1.3 scipy csr, csc, coo matrix": "^scipy (csr|csc|coo)_matrix",
    "1.3 scipy csr_array": "^scipy csr_array",
    "1.3 pandas sparse": "^pandas (half )?sparse",
    "1.3 Arrow PyCapsule": "^pyarrow (stream|batch)",
    "1.3 Files": "^a (path|word)",
    "1.3 Out-of-core": "^pyarrow (RecordBatchReader|Dataset)",
    "1.3 inf values": "infinite",
    "1.4 Missing numeric": "^(numpy|pandas|polars|pyarrow) float64",
    "1.4 NaN in category": "^(pandas|polars|pyarrow) .* or missing",
    "1.4 Re-ordered category codes": "backwards",
}


def lines_of(case: Case | Refusal | InBatches) -> list[str]:
    return [line for line, pattern in LINES.items() if re.search(pattern, case.name)]


def each(cases: list[Any]) -> Any:
    ids = ["; ".join([case.name, *lines_of(case)]) for case in cases]
    return pytest.mark.parametrize("case", cases, ids=ids)


@pytest.mark.parametrize("line", LINES)
def test_every_line_has_its_forms(line):
    assert any(line in lines_of(case) for case in [*WORKS, *REFUSED, *IN_BATCHES])


def quick(**parameters: Any) -> ABCBoostClassifier:
    return small(**({"max_iter": 3, "min_samples_leaf": 2} | parameters))


@functools.cache
def plain_model(data: str, categorical: bool) -> ABCBoostClassifier:
    chosen = [4] if categorical else None
    return quick(categorical_features=chosen).fit(DATA[data], labels_of(DATA[data]))


def model_of(case: Case) -> ABCBoostClassifier:
    """The model of the plain array."""
    return plain_model(case.data, case.categorical)


def plain_forms_of(case: Case) -> list[Any]:
    """The values of a case in the simplest forms that its model knows the columns of."""
    if not case.named:
        return [case.plain()]
    if case in STRING_CATEGORIES:
        as_words = pandas_with(words)(case.plain())
        return [as_words, pl.from_pandas(as_words), pa.Table.from_pandas(as_words)]
    return [make(case.plain()) for make in (pandas_frame, polars_frame, arrow_table)]


def assert_same_answers(model: ABCBoostClassifier, X: Any, other: Any, Z: Any) -> None:
    """Every way to ask gets the same bytes; X may be a function, as some tables are read once."""
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        ours = getattr(model, method)(X() if callable(X) else X)
        theirs = getattr(other, method)(Z)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes(), method


# -------------------------------------------------------------------------------------- the matrix


@each(WORKS)
def test_any_form_gives_the_model_and_the_answers_of_the_plain_array(case):
    model, y = quick().fit(case.table(), labels_of(case.plain())), labels_of(case.plain())
    assert_same_model(model, model_of(case))
    assert_same_answers(model, case.table, model_of(case), case.plain())
    assert model.score(case.table(), y) == model_of(case).score(case.plain(), y)
    assert (4 in model.model_.ensemble.used_features) == (case.data != "nothing")
    assert hasattr(model, "feature_names_in_") == case.named


@each(WORKS)
def test_model_of_one_form_is_asked_on_another(case):
    y, expected = labels_of(case.plain()), model_of(case)
    model = quick(categorical_features=case.categorical_features).fit(plain_forms_of(case)[0], y)
    assert_same_answers(model, case.table, expected, case.plain())
    model = quick().fit(case.table(), y)
    for form in plain_forms_of(case):
        assert_same_answers(model, form, expected, case.plain())


@pytest.mark.filterwarnings("ignore:no iteration .*improves the validation score")
@each(WORKS)
def test_rows_of_any_form_are_left_out_and_held_out_like_those_of_the_plain_array(case):
    y, weight = labels_of(case.plain()), np.arange(N_ROWS) % 4
    parameters = {"early_stopping": True, "validation_fraction": 0.3}
    model = quick(**parameters).fit(case.table(), y, weight)
    plain = quick(**parameters, categorical_features=case.categorical_features)
    plain.fit(case.plain(), y, weight)
    assert_same_model(model, plain)
    np.testing.assert_array_equal(model.validation_loss_, plain.validation_loss_)


@each(WORKS)
def test_validation_rows_may_have_another_form(case):
    y, rows = labels_of(case.plain()), np.arange(0, N_ROWS, 2)
    plain = quick(categorical_features=case.categorical_features)
    plain.fit(case.plain(), y, X_val=case.plain(rows), y_val=y[rows])
    model = quick(categorical_features=case.categorical_features)
    model.fit(plain_forms_of(case)[-1], y, X_val=case.table(rows), y_val=y[rows])
    assert_same_model(model, plain)
    np.testing.assert_array_equal(model.validation_loss_, plain.validation_loss_)


@each(WORKS)
def test_binned_form_gives_the_same_model(case):
    table = BinMapper().fit(case.table()).transform(case.table())
    model = quick().fit(table, labels_of(case.plain()))
    assert_same_model(model, model_of(case))
    assert_same_answers(model, table, model_of(case), case.plain())
    assert_same_answers(model, case.table, model_of(case), case.plain())


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@each(
    [case for case in WORKS if re.search("half sparse|category unused|csr_array|Enum$", case.name)]
)
def test_any_form_gives_the_same_model_for_any_thread_count(case, n_jobs):
    model = quick(n_jobs=n_jobs).fit(case.table(), labels_of(case.plain()))
    assert_same_model(model, model_of(case))
    assert_same_answers(model, case.table, model_of(case), case.plain())


# ----------------------------------------------------------------------------------- read in parts


def with_labels(values: np.ndarray) -> pa.Table:
    return arrow_table(values).append_column("label", pa.array(labels_of(values)))


@each(IN_BATCHES)
def test_what_is_read_in_parts_gives_the_same_model(case, tmp_path):
    values = DATA["floats"]
    X = case.make(with_labels(values), tmp_path)
    model, expected = quick().fit(X, "label"), plain_model("floats", False)
    assert_same_model(model, expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(values))


@each(IN_BATCHES)
def test_labels_of_what_is_read_in_parts_are_one_of_its_columns(case, tmp_path):
    X = case.make(with_labels(DATA["floats"]), tmp_path)
    with pytest.raises(ValueError, match=says("y=array(", "the name of a column", "label")):
        quick().fit(X, labels_of(DATA["floats"]))


# ------------------------------------------------------------------------------------------ refused

COLUMN = f"column {NAMES[4]!r}"


def says(*parts: object) -> str:
    """A pattern that finds all parts, in this order."""
    return "(?s)" + ".*".join(re.escape(str(part)) for part in parts)


@each(REFUSED)
def test_what_cannot_be_read_is_refused_in_fit(case):
    with pytest.raises(case.error, match=says(*case.says)):
        quick().fit(case.make(), labels_of(DATA["floats"]))


# A table of other columns is refused for these first.
WITH_NAMES = [case for case in REFUSED if COLUMN in case.says and case.name != "polars objects"]
WITHOUT = [case for case in REFUSED if COLUMN not in case.says]


@each(WITH_NAMES)
def test_column_that_cannot_be_read_is_refused_in_prediction_and_validation(case):
    frame, y = pandas_frame(DATA["floats"]), labels_of(DATA["floats"])
    model = quick().fit(frame, y)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises((TypeError, ValueError), match=says(COLUMN)):
            getattr(model, method)(case.make())
    with pytest.raises((TypeError, ValueError), match=says(COLUMN)):
        next(model.staged_predict(case.make()))
    with pytest.raises((TypeError, ValueError), match=says(COLUMN)):
        quick().fit(frame, y, X_val=case.make(), y_val=y)


@pytest.mark.filterwarnings("ignore:X has feature names")
@each(WITHOUT)
def test_what_is_no_table_is_refused_in_prediction(case):
    model = plain_model("floats", False)
    with pytest.raises(case.error, match=says(*case.says)):
        model.predict(case.make())


@each(STRING_CATEGORIES)
def test_strings_where_there_were_numbers_and_numbers_where_there_were_strings_are_refused(case):
    y, numbers = labels_of(case.plain()), pandas_frame(case.plain())
    with pytest.raises(ValueError, match=says(COLUMN, "holds strings", "categorical_features")):
        quick(categorical_features=None).fit(case.table(), y)
    with pytest.raises(
        ValueError, match=says(COLUMN, "holds strings", "was not categorical in fit")
    ):
        quick().fit(numbers, y).predict(case.table())
    with pytest.raises(TypeError, match=says(COLUMN, "'apple'", "given", "strings")):
        quick().fit(case.table(), y).predict(numbers)


IN_ITS_OWN_PROCESS = """
import sys; sys.path.insert(0, {folder!r})
from test_inputs import outcomes
sys.stdout.write(outcomes())
"""


def outcomes() -> str:
    """Fit and predict with every form of polars and pyarrow, one line for each."""
    lines = []
    for case in [*WORKS, *REFUSED]:
        if not case.name.startswith(("polars", "pyarrow", "pandas Arrow")):
            continue
        X = [case.table() if isinstance(case, Case) else case.make() for _ in range(2)]
        plain = case.plain() if isinstance(case, Case) else DATA["floats"]
        try:
            quick(n_jobs=2).fit(X[0], labels_of(plain)).predict(X[1])
            lines.append(f"{case.name}: works")
        except (TypeError, ValueError) as error:
            lines.append(f"{case.name}: {type(error).__name__}")
    return "\n".join(lines)


def test_no_form_ends_the_process(request):
    code = IN_ITS_OWN_PROCESS.format(folder=str(request.path.parent))
    expected = outcomes()
    assert {line.split(": ")[1] for line in expected.splitlines()} == {
        "works", "TypeError", "ValueError",
    }  # fmt: skip
    assert run_python(code) == expected


# -------------------------------------------------------------------------------------------- files


def files(folder: Any) -> list[Any]:
    """The words and numbers of a table by way of files, as other libraries read them."""
    X = pandas_with(words)(DATA["level or missing"])
    table, csv = folder / "table.parquet", folder / "table.csv"
    pl.from_pandas(X).write_parquet(table)
    pl.from_pandas(X).write_csv(csv)
    return [
        pd.read_parquet(table),
        pl.read_parquet(table),
        pl.scan_parquet(table),
        parquet.read_table(table),
        parquet.ParquetFile(table).read(),
        pd.read_csv(csv),
        pl.read_csv(csv),
        pl.scan_csv(csv),
    ]


def test_table_read_from_a_file_gives_the_same_model(tmp_path):  # 1.3 Files, Parquet from file
    expected, values = plain_model("level or missing", True), DATA["level or missing"]
    for X in files(tmp_path):
        model = quick().fit(X, labels_of(values))
        assert_same_model(model, expected)
        assert_same_answers(model, X, expected, values)


# -------------------------------------------------------------------------------------------- names

MIXED = pandas_with(words)(DATA["level or missing"])
MIXED_Y = labels_of(DATA["level or missing"])
MAKES = {"pandas": lambda X: X, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
makes = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


@makes
def test_columns_in_another_order_are_put_right_by_name(make):  # 1.3 Re-ordered DataFrame columns
    model = quick().fit(make(MIXED), MIXED_Y)
    assert model.feature_names_in_.tolist() == NAMES  # 1.3 Awkward column names
    for order in (NAMES[::-1], NAMES[2:] + NAMES[:2]):
        shuffled = make(MIXED[order])
        assert_same_answers(model, shuffled, model, make(MIXED))
        staged = zip(
            model.staged_predict_proba(shuffled), model.staged_predict_proba(MIXED), strict=True
        )
        assert all((ours == theirs).all() for ours, theirs in staged)
        again = quick().fit(make(MIXED), MIXED_Y, X_val=shuffled, y_val=MIXED_Y)
        np.testing.assert_array_equal(again.validation_loss_, model.train_loss_)


@makes
def test_missing_and_extra_columns_are_named_in_prediction_and_validation(make):
    model = quick().fit(make(MIXED), MIXED_Y)
    fewer, more = MIXED.drop(columns="plain"), MIXED.assign(extra=1.0)
    other = MIXED.rename(columns={"plain": "fancy"})
    for X, parts in (
        (fewer, ("now missing", "- plain")),
        (more, ("unseen at fit", "- extra")),
        (other, ("unseen at fit", "- fancy", "now missing", "- plain")),
    ):
        with pytest.raises(ValueError, match=says(*parts)):
            model.predict_proba(make(X))
        with pytest.raises(ValueError, match=says(*parts)):
            quick().fit(make(MIXED), MIXED_Y, X_val=make(X), y_val=MIXED_Y)


def test_columns_without_names_go_by_place_with_a_warning():
    values, y = DATA["floats"], labels_of(DATA["floats"])
    named, plain = quick().fit(pandas_frame(values), y), plain_model("floats", False)
    with pytest.warns(UserWarning, match="not have valid feature names, but ABCBoostClassifier"):
        assert named.predict_proba(values).tobytes() == plain.predict_proba(values).tobytes()
    plain = pickle.loads(pickle.dumps(plain))  # a model that has not warned yet
    with pytest.warns(UserWarning, match="X has feature names, but ABCBoostClassifier was"):
        proba = plain.predict_proba(pandas_frame(values))
    assert proba.tobytes() == plain.predict_proba(values).tobytes()


@makes
def test_warm_start_puts_columns_right_by_name(make):
    whole = quick(max_iter=6).fit(make(MIXED), MIXED_Y)
    model = quick(warm_start=True).fit(make(MIXED), MIXED_Y)
    model.set_params(max_iter=6).fit(make(MIXED[NAMES[::-1]]), MIXED_Y)
    assert_same_model(model, whole)
    with pytest.raises(ValueError, match=says("now missing", "- plain")):
        model.set_params(max_iter=9).fit(make(MIXED.drop(columns="plain")), MIXED_Y)
    assert_same_model(model, whole)  # a fit that fails keeps the earlier model


@pytest.mark.parametrize(
    "chosen", [["Größe", "plain"], [4, 0], np.array([True, False, False, False, True])], ids=repr
)
def test_categories_are_chosen_by_names_indices_or_a_mask(chosen):
    model = quick(categorical_features=chosen).fit(MIXED, MIXED_Y)
    plain = quick(categorical_features=[0, 4]).fit(DATA["level or missing"], MIXED_Y)
    assert_same_model(model, plain)
    assert_same_answers(model, MIXED, plain, DATA["level or missing"])


# ---------------------------------------------------------------------------- scikit-learn's tools

PLAIN = DATA["level or missing"]


def plain() -> ABCBoostClassifier:
    """Takes PLAIN for what MIXED is."""
    return quick(categorical_features=[4])


@makes
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_validation_on_a_frame_is_that_of_the_plain_array(make, method):
    ours = cross_val_predict(quick(), make(MIXED), MIXED_Y, cv=3, method=method)
    theirs = cross_val_predict(plain(), PLAIN, MIXED_Y, cv=3, method=method)
    np.testing.assert_array_equal(ours, theirs, strict=True)


@makes
def test_grid_search_on_a_frame_is_that_of_the_plain_array(make):
    grid = {"max_leaf_nodes": [2, 6], "categorical_features__smoothing": [0.0, 10.0]}
    auto, named = (quick(categorical_features=Categorical(columns)) for columns in ("auto", [4]))
    ours = GridSearchCV(auto, grid, cv=2, error_score="raise").fit(make(MIXED), MIXED_Y)
    theirs = GridSearchCV(named, grid, cv=2, error_score="raise").fit(PLAIN, MIXED_Y)
    for name in ("params", "split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])
    assert_same_model(ours.best_estimator_, theirs.best_estimator_)


@makes
@pytest.mark.parametrize("frozen", [True, False])
def test_temperature_of_a_frame_is_that_of_the_plain_array(make, frozen):
    def calibrated(model: ABCBoostClassifier, X: Any) -> np.ndarray:
        base = FrozenEstimator(model.fit(X, MIXED_Y)) if frozen else model
        scaled = CalibratedClassifierCV(base, method="temperature", cv=None if frozen else 3)
        return scaled.fit(X, MIXED_Y).predict_proba(X)

    ours, theirs = calibrated(quick(), make(MIXED)), calibrated(plain(), PLAIN)
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_strings_go_through_a_column_transformer_with_frames_as_output(output):
    numbers = make_column_transformer(
        (MaxAbsScaler(), NAMES[:2]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform=output)
    X = MAKES[output](MIXED)
    pipeline = make_pipeline(numbers, quick()).fit(X, MIXED_Y)
    scaled = PLAIN.copy()
    scaled[:, :2] = MaxAbsScaler().fit_transform(PLAIN[:, :2])
    expected = plain().fit(scaled, MIXED_Y)
    assert_same_model(pipeline[-1], expected)
    assert_same_answers(pipeline, X, expected, scaled)
