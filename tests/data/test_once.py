"""Warnings that a model gives once: of batches without a known category, and of names."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from abcgbm import BinMapper, Categorical, LargeTable, MultiOutputTrees
from abcgbm.evaluation import predictions_of
from models import assert_same_model, model_bytes, small

N = 120
RNG = np.random.default_rng(4)
CODES = RNG.integers(0, 3, N)
SIZE = RNG.normal(size=N)
Y = CODES
WORDS = np.array(["clay", "loam", "sand"])[CODES]
NUMBERS = np.array([10, 20, 30])[CODES]
NONE_IS_KNOWN = r"column '?\w+'? has \d+ values and none is a category seen in fit"


def frame(soil, n_rows=N):
    return pd.DataFrame({"soil": soil, "size": SIZE[:n_rows]})


def quick(algorithm="abc-mart", **parameters):
    return small(
        algorithm, **({"max_iter": 3, "min_samples_leaf": 3, "max_features": None} | parameters)
    )


def warned(call):
    """The texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def of_words():
    return quick().fit(frame(WORDS), Y)


# Tables of numbers that are or are not those of the fit, in all forms.
FORMS = {
    "pandas": frame,
    "pandas category": lambda soil: frame(pd.Categorical(soil)),
    "pandas objects": lambda soil: frame(soil.astype(object)),
    "polars": lambda soil: pl.DataFrame({"soil": soil, "size": SIZE}),
    "pyarrow": lambda soil: pa.table({"soil": soil, "size": SIZE}),
    "array": lambda soil: np.column_stack([soil.astype(float), SIZE]),
    "array of objects": lambda soil: np.column_stack([soil.astype(object), SIZE.astype(object)]),
    "sparse": lambda soil: sparse.csr_array(np.column_stack([soil.astype(float), SIZE])),
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@pytest.fixture
def parquet(tmp_path):
    def written(soil):
        path = tmp_path / "rows.parquet"
        frame(soil).assign(y=Y).to_parquet(path)
        return path

    return written


# ------------------------------------------------------------------------ numbers instead of strings


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("soil", [CODES, CODES > 0], ids=["codes", "booleans"])
@forms
def test_numbers_are_refused_where_fit_saw_strings(form, soil):
    model, mapper = of_words(), BinMapper().fit(frame(WORDS))
    X = form(soil)
    for call in (model.predict, model.explain, model.apply, mapper.transform):
        with pytest.raises(TypeError, match=r"'clay', but was given .*expected strings"):
            call(X)
    if isinstance(X, pd.DataFrame):
        with pytest.raises(TypeError, match="'clay', but was given"):
            quick().fit(frame(WORDS), Y, X_val=X, y_val=Y)
        with pytest.raises(TypeError, match="'clay', but was given"):
            model.set_params(warm_start=True, max_iter=5).fit(X, Y)


def test_digit_is_not_the_string_of_it():
    model = quick().fit(frame(CODES.astype(str)), Y)
    with pytest.raises(TypeError, match="'0', but was given"):
        model.predict(frame(CODES))


def test_numbers_are_refused_in_files_where_fit_saw_strings(parquet):
    with pytest.raises(TypeError, match="'clay', but was given"):
        of_words().predict(LargeTable(parquet(CODES)))


@pytest.mark.filterwarnings("ignore:no tree can be split")
@pytest.mark.parametrize("soil", [WORDS, NUMBERS], ids=["words", "numbers"])
def test_type_of_a_column_is_refused_whether_trees_use_it_or_not(soil):
    model = quick(MultiOutputTrees(min_gain=1e9)).fit(frame(pd.Categorical(soil)), Y)
    assert not len(model.model_.ensemble.used_features)
    other = NUMBERS if soil is WORDS else WORDS
    with pytest.raises(TypeError, match="column 'soil' has categories such as"):
        model.predict(frame(other))
    model.predict(frame(np.full(N, np.nan)))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@forms
def test_categories_of_numbers_are_found_by_value(form):
    model = quick().fit(frame(pd.Categorical(NUMBERS)), Y)
    X = frame(pd.Categorical(NUMBERS))
    assert model.predict_proba(form(NUMBERS)).tobytes() == model.predict_proba(X).tobytes()
    assert len(np.unique(model.predict_proba(form(NUMBERS)), axis=0)) >= 3


# --------------------------------------------------------------------------- no category that is known


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@forms
def test_batch_without_a_known_category_is_warned_of_once(form):
    model = quick().fit(frame(pd.Categorical(NUMBERS)), Y)
    before, pickled = model_bytes(model), pickle.dumps(model)
    with pytest.warns(UserWarning, match=f"{NONE_IS_KNOWN}.* 0.0, 1.0, 2.0; .* 10.0, 20.0, 30.0"):
        model.predict(form(CODES))
    calls = (model.predict, model.predict_proba, model.explain, model.apply)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        for call in calls:
            call(form(CODES))
        list(model.staged_predict(form(CODES)))
        model.truncate(2).predict(form(CODES))
    assert model_bytes(model) == before
    assert pickle.dumps(model) == pickled


@forms
def test_integer_categories_that_are_named_are_warned_of(form):
    X = FORMS["array"](NUMBERS)
    model = quick(categorical_features=[0]).fit(X, Y)
    texts = warned(lambda: [model.predict(form(CODES)) for _ in range(3)])
    assert sum("none is a category seen in fit" in text for text in texts) == 1


@pytest.mark.parametrize(
    ("soil", "is_suspicious"),
    [
        (["peat"] * 20, True),
        (["peat"] * 20 + [None] * 100, True),
        (["peat"] * 19, False),
        (["peat"] * 19 + [None] * 100, False),
        (["peat"] * 100 + ["clay"], False),
        ([None] * 100, False),
    ],
)
def test_twenty_values_are_a_batch(soil, is_suspicious):
    model, X = of_words(), frame(np.array(soil, dtype=object), len(soil))
    texts = warned(lambda: model.predict(X))
    assert len(texts) == is_suspicious


def test_each_column_is_warned_of():
    X = pd.DataFrame({"a": WORDS, "b": np.roll(WORDS, 1)})
    model = quick(max_iter=10).fit(X, (CODES + np.roll(CODES, 1)) % 3)
    assert model.model_.ensemble.used_features.tolist() == [0, 1]
    assert ["'a'" in t for t in warned(lambda: model.predict(X.assign(a="peat")))] == [True]
    texts = warned(lambda: model.predict(X.assign(a="peat", b="peat")))
    assert ["'b'" in text for text in texts] == [True]


def test_each_model_warns():
    table = BinMapper().fit(frame(WORDS)).transform(frame(WORDS))
    first, second = quick().fit(table, Y), quick().fit(table, Y)
    for model in (first, second, copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert len(warned(lambda m=model: m.predict(frame(["peat"] * N)))) == 1
    assert_same_model(first, second)
    assert warned(lambda: first.predict(frame(["peat"] * N))) == []


def test_mapper_and_validation_rows_are_warned_of(parquet):
    mapper, peat = BinMapper().fit(frame(WORDS)), frame(["peat"] * N)
    texts = warned(lambda: [mapper.transform(peat) for _ in range(3)])
    assert len(texts) == 1
    texts = warned(lambda: mapper.transform(frame(WORDS)).bin(peat))
    assert texts == []
    watched = quick(early_stopping=False)
    assert len(warned(lambda: watched.fit(frame(WORDS), Y, X_val=peat, y_val=Y))) == 1
    known, new = LargeTable(parquet(WORDS)), {"X_val": peat, "y_val": Y}
    assert len(warned(lambda: watched.fit(known, "y", **new))) == 1


def test_warm_start_and_large_tables_are_warned_of(parquet):
    model = of_words().set_params(warm_start=True, max_iter=5)
    assert len(warned(lambda: model.fit(frame(["peat"] * N), Y))) == 1
    path, model = parquet(["peat"] * N), of_words()
    assert len(warned(lambda: [model.predict(path), [*model.predict_batches(path)]])) == 1
    answers = of_words()
    assert len(warned(lambda: [predictions_of(answers, frame(["peat"] * N), Y) for _ in "ab"])) == 1


def test_categories_that_are_errors_are_no_warning():
    model = quick(categorical_features=Categorical(handle_unknown="error")).fit(frame(WORDS), Y)
    with pytest.raises(ValueError, match=r"unknown categories 'peat'"):
        model.predict(frame(["peat"] * N))


# ------------------------------------------------------------------------------------------- in general


@pytest.mark.parametrize("names", ["in fit", "in predict"])
def test_missing_names_are_warned_of_once_for_each_model(names):
    X, values = pd.DataFrame({"a": SIZE, "b": CODES}), np.column_stack([SIZE, CODES])
    learned, given = (X, values) if names == "in fit" else (values, X)
    for model in (quick().fit(learned, Y), quick().fit(learned, Y)):
        texts = warned(lambda m=model: [m.predict(given), m.explain(given), m.score(given, Y)])
        assert ["feature names" in text for text in texts] == [True]
    mapper = BinMapper().fit(learned)
    assert len(warned(lambda: [mapper.transform(given) for _ in range(3)])) == 1


def test_threads_warn_once():
    model, start, texts = of_words(), threading.Barrier(8), []

    def predict():
        start.wait()
        for _ in range(5):
            model.predict(frame(["peat"] * N))

    def all_threads():
        threads = [threading.Thread(target=predict) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    texts = warned(all_threads)
    assert len(texts) == 1


def test_warning_that_a_filter_makes_an_error_is_raised_at_each_call():
    model = of_words()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match=NONE_IS_KNOWN):
                model.predict(frame(["peat"] * N))
