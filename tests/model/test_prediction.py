"""Prediction: only used features are read, in blocks, and bins give the scores of their values."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from abcgbm import ABCBoostClassifier, BinMapper, Categorical, MultiOutputTrees
from abcgbm.data import binned_table as encoding
from inputs import DATA, NAMES, WORKS, labels_of, pandas_with, words
from models import assert_same_model, noisy_data, small

each = pytest.mark.parametrize("case", WORKS, ids=[case.name for case in WORKS])
X, Y = noisy_data(n_rows=150, n_features=3, n_classes=3)
WIDE = np.column_stack([np.zeros((150, 40)), X, np.ones((150, 40))])  # three features of 83
MIXED = pandas_with(words)(DATA["level or missing"])
MIXED_Y = labels_of(DATA["level or missing"])


def quick(algorithm: Any = "abc-mart", **parameters: Any) -> ABCBoostClassifier:
    return small(algorithm, **({"max_iter": 3, "min_samples_leaf": 2} | parameters))


def answers(model: ABCBoostClassifier, table: Any) -> bytes:
    return model.predict_proba(table).tobytes()


# ------------------------------------------------------------------------------------ used features

FORMS = {
    "float32": lambda a: a.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "frame": pd.DataFrame,
    "half sparse": lambda a: pd.DataFrame(a).astype(dict.fromkeys(range(43), pd.SparseDtype(float, 0))),
}  # fmt: skip
SINGLE = WIDE.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_used_features_suffice_for_the_scores(form):
    model = quick().fit(SINGLE, Y)
    assert model.model_.ensemble.used_features.tolist() == [40, 41, 42]
    for stage, of_form in zip(
        model.staged_decision_function(SINGLE),
        model.staged_decision_function(form(SINGLE)),
        strict=True,
    ):
        assert stage.tobytes() == of_form.tobytes()
    assert answers(model, form(SINGLE)) == answers(model, SINGLE)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_values_of_unused_features_do_not_matter(form):
    model, other = quick().fit(SINGLE, Y), SINGLE.copy()
    other[:, [0, 39, 43, 82]] = [np.nan, np.inf, -np.inf, 7.0]
    assert answers(model, form(other)) == answers(model, SINGLE)


def test_categories_of_unused_features_are_not_looked_up():
    """Unless unknown categories are errors; the type is always checked."""
    frame = pd.DataFrame({"name": ["a"] * 150, "x": X[:, 0]})
    model = quick().fit(frame, Y)
    assert model.model_.ensemble.used_features.tolist() == [1]
    assert answers(model, frame.assign(name="b")) == answers(model, frame)
    assert answers(model, frame.assign(name=np.nan)) == answers(model, frame)
    with pytest.raises(
        TypeError, match=r"column 'name' has categories such as 'a', but was given 7.0"
    ):
        model.predict_proba(frame.assign(name=7.0))
    with pytest.raises(
        TypeError, match=r"column 'name' has categories such as 'a', but was given 7.0"
    ):
        next(model.staged_predict_proba(frame.assign(name=[np.nan] * 149 + [7.0])))
    strict = quick(categorical_features=Categorical(handle_unknown="error")).fit(frame, Y)
    with pytest.raises(ValueError, match=r"column 'name' has unknown categories 'b'"):
        strict.predict_proba(frame.assign(name="b"))


# -------------------------------------------------------------------------- a model without splits


@pytest.mark.filterwarnings("ignore:no tree can be split")
@each
def test_model_without_trees_predicts_any_table(case):
    y = labels_of(case.plain())
    model = quick(MultiOutputTrees(min_gain=1e9)).fit(case.table(), y)
    assert model.model_.ensemble.used_features.tolist() == []
    frequencies = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.predict_proba(case.table()), np.tile(frequencies, (60, 1)))
    table = BinMapper().fit(case.table()).transform(case.table())
    assert answers(model, table) == answers(model, case.table())
    assert list(model.staged_predict(case.table())) == []
    assert model.predict(case.table([3])).shape == (1,)


# ------------------------------------------------------------------------------------ binned tables


@each
def test_binned_rows_get_the_predictions_of_their_values(case):
    mapper = BinMapper(max_bins=4).fit(case.table())
    model = quick(max_bins=4).fit(case.table(), labels_of(case.plain()))
    for rows in (slice(None), [7], np.arange(50, 10, -3)):
        table = mapper.transform(case.table(rows))
        assert answers(model, table) == answers(model, case.table(rows))
        stages = model.staged_predict_proba(table)
        assert list(stages)[-1].tobytes() == answers(model, table)


def test_another_mapper_may_provide_the_bins_of_the_model():
    """Every threshold of the trees must separate two bins."""
    model = quick(max_bins=4).fit(X, Y)
    mapper = BinMapper(4).fit(X)
    finer = BinMapper().fit(X)
    finer.thresholds_ = [np.union1d(*both) for both in zip(mapper.thresholds_, finer.thresholds_, strict=True)]  # fmt: skip
    assert answers(model, finer.transform(X)) == answers(model, X)


REFUSED = {
    "fewer bins": (MIXED, {"max_bins": 3}),
    "other values": (MIXED.assign(plain=MIXED["plain"] * 1.5), {}),
    "other levels": (MIXED.replace({NAMES[4]: {"kiwi": "lime"}}), {}),
    "fewer levels": (MIXED[MIXED[NAMES[4]] != "pear"], {}),
}


@pytest.mark.parametrize(("other", "parameters"), REFUSED.values(), ids=REFUSED)
def test_binned_table_with_other_bins_is_refused(other, parameters):
    model = quick().fit(MIXED, MIXED_Y)
    table = BinMapper(**parameters).fit(other).transform(other)
    for ask in (model.predict, model.predict_proba, lambda t: next(model.staged_predict(t))):
        with pytest.raises(ValueError, match="X is a BinnedTable with other bins than the model's"):
            ask(table)


OTHER_COLUMNS = {
    "fewer columns": MIXED[NAMES[1:]],
    "other names": MIXED.rename(columns={"plain": "fancy"}),
    "other order": MIXED[NAMES[::-1]],
    "other kinds": MIXED.assign(plain=MIXED["plain"].astype("category")),
    "no names": DATA["level or missing"],
}


@pytest.mark.parametrize("other", OTHER_COLUMNS.values(), ids=OTHER_COLUMNS)
def test_binned_table_of_other_columns_is_refused(other):
    model = quick().fit(MIXED, MIXED_Y)
    table = BinMapper().fit(other).transform(other)
    with pytest.raises(ValueError, match=r"BinnedTable of . features; expected the columns"):
        model.predict(table)
    with pytest.raises(ValueError, match=r"BinnedTable of . features; expected the columns"):
        quick().fit(MIXED, MIXED_Y, X_val=table, y_val=MIXED_Y)


def test_validation_table_with_other_bins_is_refused():
    table = BinMapper(max_bins=3).fit(MIXED).transform(MIXED)
    with pytest.raises(ValueError, match="X_val is a BinnedTable with other bins than X"):
        quick().fit(MIXED, MIXED_Y, X_val=table, y_val=MIXED_Y)


def test_validation_table_may_be_binned_with_the_same_bins():
    mapper = BinMapper().fit(MIXED)
    table = mapper.transform(MIXED)
    expected = quick().fit(MIXED, MIXED_Y, X_val=MIXED[:20], y_val=MIXED_Y[:20])
    for learned, validated in ((table, table[:20]), (MIXED, table[:20]), (table, MIXED[:20])):
        model = quick().fit(learned, MIXED_Y, X_val=validated, y_val=MIXED_Y[:20])
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)


# ------------------------------------------------------------------------------------ blocks of rows


@each
def test_prediction_is_the_same_for_any_block_size(case, monkeypatch):
    model = quick().fit(case.table(), labels_of(case.plain()))
    table = BinMapper().fit(case.table()).transform(case.table())
    expected = answers(model, case.table())
    stages = [stage.tobytes() for stage in model.staged_predict_proba(case.table())]
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 8 * 5 * 11)  # eleven rows of five numbers
    assert answers(model, case.table()) == answers(model, table) == expected
    for again in (case.table(), table):
        assert [stage.tobytes() for stage in model.staged_predict_proba(again)] == stages


def test_block_may_be_a_single_row(monkeypatch):
    model = quick().fit(MIXED, MIXED_Y)
    expected = answers(model, MIXED)
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 1)
    assert answers(model, MIXED) == expected


@each
def test_single_row_gets_the_prediction_it_gets_among_others(case):
    model = quick().fit(case.table(), labels_of(case.plain()))
    proba = model.predict_proba(case.table())
    for row in (0, 1, 59):
        alone = model.predict_proba(case.table([row]))
        assert alone.shape == (1, 3)
        assert alone.tobytes() == proba[[row]].tobytes()


@each
def test_stages_of_any_table_are_those_of_the_plain_array(case):
    y = labels_of(case.plain())
    model = quick().fit(case.table(), y)
    plain = quick(categorical_features=case.categorical_features).fit(case.plain(), y)
    for method in ("predict", "predict_proba", "decision_function"):
        ours = getattr(model, f"staged_{method}")(case.table())
        theirs = getattr(plain, f"staged_{method}")(case.plain())
        for stage, expected in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(stage, expected)
        assert stage.tobytes() == getattr(model, method)(case.table()).tobytes()


def test_one_model_predicts_in_many_threads_at_once():
    model = quick().fit(MIXED, MIXED_Y)
    expected = answers(quick().fit(MIXED, MIXED_Y), MIXED)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: answers(model, MIXED), range(40))) == {expected}


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_predictions_are_the_same_for_any_thread_count(n_jobs):
    model = quick().fit(MIXED, MIXED_Y)
    expected = answers(model, MIXED)
    assert answers(model.set_params(n_jobs=n_jobs), MIXED) == expected
    stages = model.staged_predict_proba(MIXED)
    assert list(stages)[-1].tobytes() == expected
