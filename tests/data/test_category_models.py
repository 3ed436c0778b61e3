"""The estimator on categories: categories by value, many of them, unseen and missing ones."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from abcgbm import ABCBoostClassifier, BinMapper, Categorical, MultiOutputTrees
from abcgbm.training.validation import hold_out
from models import assert_same_model, model_bytes, small

N = 120
RNG = np.random.default_rng(11)
CODES = RNG.integers(0, 4, N)
COLORS = np.array(["blue", "green", "red", "teal"])[CODES]
Y = np.where(RNG.random(N) < 0.3, RNG.integers(0, 3, N), np.array([1, 0, 2, 0])[CODES])
FRAME = pd.DataFrame({"size": np.round(RNG.normal(size=N), 1), "color": COLORS})
ROWS = np.arange(0, N, 3)


def quick(**parameters: Any) -> ABCBoostClassifier:
    return small(**({"max_iter": 4, "min_samples_leaf": 3} | parameters))


def with_color(color: Any, rows: Any = slice(None), like: pd.DataFrame = FRAME) -> pd.DataFrame:
    """Rows with another color, or colors."""
    return like.iloc[rows].assign(color=color)


def some_missing(frame: pd.DataFrame = FRAME) -> pd.DataFrame:
    return frame.assign(color=frame["color"].where(np.arange(len(frame)) % 7 > 0, None))


def answers(model: ABCBoostClassifier, X: Any) -> bytes:
    return model.predict_proba(X).tobytes()


def test_colors_matter():
    """Else nothing below could fail."""
    model = quick().fit(FRAME, Y)
    assert model.feature_importances_[1] > 0.5
    assert len({answers(model, with_color(color, [0])) for color in np.unique(COLORS)}) > 2


# ------------------------------------------------------------------------------------------- categories


@pytest.mark.parametrize("order", [1, -1])
def test_categories_that_are_renamed_in_order_give_the_same_model(order):
    """Other strings, numbers or booleans: only which rows share a category matters."""
    expected = quick().fit(FRAME, Y)
    words = np.sort(np.array(["Z", "a b", "ä", "10"]))  # "10" < "Z" < "a b" < "ä"
    for names in (words, np.array([-5.5, 0.0, 3.0, np.inf]), np.array([1, 2, 2**40, 2**41])):
        column = pd.Categorical(names[CODES], categories=names[::order])
        model = quick().fit(with_color(column), Y)
        assert_same_model(model, expected)
        assert answers(model, with_color(column)) == answers(expected, FRAME)


def test_model_is_the_same_whatever_the_order_of_the_rows():  # 1.4 Re-ordered category codes
    order = np.random.default_rng(0).permutation(N)
    shuffled = FRAME.iloc[order]
    for X in (shuffled, pl.from_pandas(shuffled).cast({"color": pl.Categorical})):
        assert_same_model(quick().fit(X, Y[order]), quick().fit(FRAME, Y))


def test_order_of_categories_that_carry_nothing_changes_no_probability():
    """Levels are cut by sets: a name far down the alphabet is as good as any."""
    swapped = FRAME["color"].replace({"blue": "x-blue", "red": "a-red"})
    model, expected = quick().fit(FRAME.assign(color=swapped), Y), quick().fit(FRAME, Y)
    assert answers(model, FRAME.assign(color=swapped)) == answers(expected, FRAME)


def test_split_parts_categories_that_no_threshold_would_part():  # 1.4 Categorical split
    X, y = pd.DataFrame({"color": COLORS}), np.isin(COLORS, ["blue", "red"])
    model = quick(max_iter=1, max_leaf_nodes=2, learning_rate=1.0).fit(X, y)
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("algorithm", ["mart", "abc-mart", "logitboost", "abc-logitboost"])
def test_model_is_the_same_for_any_thread_count(algorithm, n_jobs):
    model = quick(algorithm=algorithm, n_jobs=n_jobs).fit(some_missing(), Y)
    codes = np.where(np.arange(N) % 7 > 0, CODES, np.nan)
    plain = quick(algorithm=algorithm, categorical_features=[1])
    assert_same_model(model, plain.fit(np.column_stack([FRAME["size"], codes]), Y))


def test_smoothing_changes_the_model():
    assert model_bytes(
        quick(categorical_features=Categorical(smoothing=0.0)).fit(FRAME, Y)
    ) != model_bytes(quick(categorical_features=Categorical(smoothing=1e6)).fit(FRAME, Y))


# -------------------------------------------------------------------------------------- many categories

# 1.4 Cardinality limit


@pytest.mark.parametrize("max_bins", [2, 5, 8])
def test_categories_beyond_max_bins_are_one_category_if_they_are_the_lightest(
    max_bins, monkeypatch
):
    monkeypatch.setattr("abcgbm.data.binning._CODES_PER_BIN", 1)
    number = np.minimum(RNG.geometric(0.2, N) - 1, 11)  # 0 is the most frequent
    names = np.array([f"category {chr(97 + n)}" for n in number])
    known, counts = np.unique(names, return_counts=True)
    heaviest = known[np.argsort(-counts, kind="stable")][: max_bins - 1]
    grouped = np.where(np.isin(names, heaviest), names, "the rest")
    assert len(known) > max_bins
    y = (number * 5 + Y) % 3
    model = quick(max_bins=max_bins).fit(with_color(names), y)
    expected = quick(max_bins=max_bins).fit(with_color(grouped), y)
    assert_same_model(model, expected)
    assert answers(model, with_color(names)) == answers(expected, with_color(grouped))


@pytest.mark.parametrize("max_bins", [255, 20])
def test_there_may_be_more_categories_than_bins_fit_a_byte(max_bins):
    names = np.array([f"{n:04d}" for n in np.arange(900) // 2])
    X, y = pd.DataFrame({"name": names}), np.arange(900) // 2 % 3
    model = quick(
        max_bins=max_bins, min_samples_leaf=1, categorical_features=Categorical(smoothing=1.0)
    ).fit(X, y)
    codes = X.assign(name=names.astype(int))
    plain = quick(
        max_bins=max_bins,
        min_samples_leaf=1,
        categorical_features=Categorical(columns=[0], smoothing=1.0),
    ).fit(codes, y)
    assert model.n_iter_ > 0
    assert_same_model(model, plain)
    assert answers(model, X) == answers(plain, codes)


def test_every_row_may_have_a_category_of_its_own():
    X = pd.DataFrame({"name": [f"row {i}" for i in range(N)], "size": FRAME["size"]})
    for table in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert answers(quick().fit(table, Y), table) == answers(quick().fit(X, Y), X)


# ------------------------------------------------------------------------------------------- noise


def informative_numbers(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_classification(
        n_rows, 20, n_informative=20, n_redundant=0, n_classes=8, random_state=0
    )
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(20)]), y


def accuracy(model: ABCBoostClassifier, X: pd.DataFrame, y: np.ndarray) -> float:
    return model.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"algorithm": "logitboost"},
        {"algorithm": "multi-output"},
        {"algorithm": MultiOutputTrees("mart", baseline="zero")},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_categories", [20, 200, 2000])
def test_column_of_noise_does_hardly_any_harm(n_categories, parameters):
    """Sorted by what their rows say, categories of ten rows seem to know more than any number does."""
    X, y = informative_numbers(6000)
    noise = np.random.default_rng(1).integers(0, n_categories, len(y)).astype(str)
    model = ABCBoostClassifier(
        max_iter=30, learning_rate=0.15, max_features=None, **parameters
    )  # no draws but the noise
    assert accuracy(model, X.assign(noise=noise), y) > accuracy(model, X, y) - 0.02


@pytest.mark.parametrize(
    "parameters", [{}, {"algorithm": "logitboost"}, {"algorithm": "multi-output"}], ids=str
)
def test_column_of_many_categories_that_say_something_is_learned_from(parameters):
    """Half of the rows have one of the 25 categories of their class, the others any."""
    X, y = informative_numbers(6000)
    rng = np.random.default_rng(1)
    own, other = rng.integers(0, 25, len(y)) * 8 + y, rng.integers(0, 200, len(y))
    category = np.where(rng.random(len(y)) < 0.5, own, other).astype(str)
    model = ABCBoostClassifier(max_iter=30, learning_rate=0.15, **parameters)
    assert accuracy(model, X.assign(category=category), y) > accuracy(model, X, y) + 0.02


# ------------------------------------------------------------------------------- unseen and missing

MAKES = {"pandas": lambda X: X, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
makes = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
frames = pytest.mark.parametrize("frame", [FRAME, some_missing()], ids=["none", "some"])


@makes
@frames
def test_category_that_was_not_seen_is_missing(frame, make):  # 1.4 Unseen category at predict
    model = quick().fit(make(frame), Y)
    unseen = np.where(np.arange(N) % 2 == 0, frame["color"], "mauve")
    missing = np.where(np.arange(N) % 2 == 0, frame["color"], None)
    expected = answers(model, make(with_color(missing)))
    assert answers(model, make(with_color(unseen))) == expected
    column = pd.Series(unseen, dtype=pd.CategoricalDtype(["mauve", *np.unique(COLORS)[::-1]]))
    assert answers(model, make(with_color(column))) == expected
    stages = model.staged_predict_proba(make(with_color(unseen)))
    assert list(stages)[-1].tobytes() == expected
    assert expected != answers(model, make(frame))


@makes
def test_category_that_was_not_seen_may_be_an_error(make):
    model = quick(categorical_features=Categorical(handle_unknown="error")).fit(
        make(some_missing()), Y
    )
    assert_same_model(model, quick().fit(some_missing(), Y))
    with pytest.raises(ValueError, match=r"column 'color' has unknown categories 'mauve'"):
        model.predict(make(with_color("mauve")))
    with pytest.raises(ValueError, match=r"column 'color' has unknown categories 'mauve'"):
        quick(categorical_features=Categorical(handle_unknown="error")).fit(
            make(FRAME), Y, X_val=make(with_color("mauve", ROWS)), y_val=Y[ROWS]
        )
    assert np.isfinite(model.predict_proba(make(with_color(None)))).all()  # missing is known


@makes
def test_column_of_missing_values_alone_is_missing(make):
    model = quick().fit(make(some_missing()), Y)
    expected = answers(model, with_color(np.full(N, None)))
    for nothing in (np.nan, pd.NA, pd.Categorical([None] * N), pd.array([None] * N, "string")):
        assert answers(model, make(with_color(nothing))) == expected
    assert answers(model, with_color(pd.array([None] * N, "Int64"))) == expected


def test_missing_categories_have_a_side_of_their_own():
    """Missing values are separated from all categories if that separates the classes."""
    y = np.where(some_missing()["color"].isna(), 2, np.arange(N) % 2)
    model = quick(learning_rate=1.0).fit(some_missing(), y)
    assert (model.predict(with_color(None)) == 2).all()
    assert (model.predict(with_color("red")) != 2).all()


def test_column_without_any_category_is_learned_as_nothing():
    nothing = pd.array([None] * N, dtype="string")
    model = quick().fit(with_color(nothing), Y)
    assert_same_model(model, quick().fit(with_color(np.nan), Y))
    assert model.feature_importances_[1] == 0


@frames
def test_validation_rows_with_unseen_categories_are_those_with_missing_ones(frame):
    unseen = with_color(np.where(ROWS % 2 == 0, "mauve", frame["color"].iloc[ROWS]), ROWS)
    missing = unseen.replace({"color": {"mauve": None}})
    first, second = (
        quick().fit(frame, Y, X_val=X, y_val=Y[ROWS]) for X in (unseen, pl.from_pandas(missing))
    )
    assert_same_model(first, second)
    np.testing.assert_array_equal(first.validation_loss_, second.validation_loss_)
    proba = first.predict_proba(unseen)[np.arange(len(ROWS)), Y[ROWS]]
    expected = -np.log(proba).mean()
    np.testing.assert_allclose(first.validation_loss_[first.best_iteration_], expected)


@pytest.mark.filterwarnings("ignore:no iteration .*improves the validation score")
def test_held_out_rows_with_unseen_categories_are_those_with_missing_ones():
    """Levels of one row each: those of held-out rows are never learned."""
    names = [f"row {i}" for i in range(N)]
    parameters = {"early_stopping": True, "validation_fraction": 0.25}
    model = quick(**parameters).fit(with_color(names), Y)
    learned = model.model_.encoding.categories[1].code_of
    only_learned = [name if name in learned else None for name in names]
    assert N / 2 < len(learned) < N
    again = quick(**parameters).fit(with_color(only_learned), Y)
    assert_same_model(model, again)
    np.testing.assert_array_equal(model.validation_loss_, again.validation_loss_)


def test_category_without_weight_is_not_seen():
    weight = (COLORS != "teal").astype(float)
    model = quick().fit(FRAME, Y, weight)
    assert list(model.model_.encoding.categories[1].code_of) == ["blue", "green", "red"]
    with pytest.warns(UserWarning, match="column 'color' has 120 values and none is a category"):
        assert answers(model, with_color("teal")) == answers(model, with_color(None))


@pytest.mark.parametrize("category", ["mauve", 3.5], ids=repr)
def test_categories_of_rows_of_weight_zero_are_not_looked_at(category):
    colors = COLORS.astype(object)
    colors[:10] = category
    frame = with_color(pd.Categorical(colors))
    weight = (np.arange(N) >= 10).astype(float)
    model = quick(categorical_features=Categorical(handle_unknown="error")).fit(frame, Y, weight)
    assert_same_model(model, quick().fit(FRAME.iloc[10:], Y[10:]))
    assert list(model.model_.encoding.categories[1].code_of) == ["blue", "green", "red", "teal"]
    given_rows = {"X_val": frame, "y_val": Y, "sample_weight_val": weight}
    model = quick(categorical_features=Categorical(handle_unknown="error")).fit(
        FRAME.iloc[10:], Y[10:], **given_rows
    )
    np.testing.assert_array_equal(model.validation_loss_, model.train_loss_)
    mapper = BinMapper(handle_unknown="error").fit(frame, sample_weight=weight)
    assert mapper.encoding_.categories == model.model_.encoding.categories


# --------------------------------------------------------------------------------- warm start, copies


def with_new_categories() -> pd.DataFrame:
    """Levels before, between and after those known already."""
    new = {0: "amber", 1: "mauve", 2: "zinc"}
    return with_color([new.get(i % 6, color) for i, color in enumerate(COLORS)])


def test_warm_start_keeps_the_categories_of_the_first_fit():
    first = quick().fit(FRAME, Y)
    model = (
        quick(warm_start=True).fit(FRAME, Y).set_params(max_iter=8).fit(with_new_categories(), Y)
    )
    known = with_new_categories().replace({"color": dict.fromkeys(["amber", "mauve", "zinc"])})
    again = quick(warm_start=True).fit(FRAME, Y).set_params(max_iter=8).fit(known, Y)
    assert_same_model(model, again)
    for X in (FRAME, with_new_categories()):
        assert list(model.staged_predict_proba(X))[3].tobytes() == answers(first, X)
    assert answers(model, with_new_categories()) == answers(model, known)


def test_warm_start_refuses_new_categories_where_they_are_errors():
    model = quick(warm_start=True, categorical_features=Categorical(handle_unknown="error")).fit(
        FRAME, Y
    )
    before = model_bytes(model)
    with pytest.raises(ValueError, match=r"column 'color' has unknown categories 'amber', 'mauve'"):
        model.set_params(max_iter=8).fit(with_new_categories(), Y)
    assert model_bytes(model) == before
    assert answers(model, FRAME) == answers(quick().fit(FRAME, Y), FRAME)


@pytest.mark.parametrize(("first", "second"), [("missing", "error"), ("error", "missing")])
def test_warm_start_handles_unknown_categories_as_it_is_told_now(first, second):
    model = quick(warm_start=True, categorical_features=Categorical(handle_unknown=first)).fit(
        FRAME, Y
    )
    model.set_params(max_iter=8, categorical_features=Categorical(handle_unknown=second))
    if second == "error":
        with pytest.raises(ValueError, match=r"unknown categories 'amber', 'mauve'"):
            model.fit(with_new_categories(), Y)
        with pytest.raises(ValueError, match=r"unknown categories 'mauve'"):
            model.fit(FRAME, Y).predict(with_color("mauve"))
    else:
        again = quick(warm_start=True).fit(FRAME, Y).set_params(max_iter=8)
        assert_same_model(model.fit(with_new_categories(), Y), again.fit(with_new_categories(), Y))
        mauve = with_color("mauve", ROWS[:19])
        assert answers(model, mauve) == answers(model, with_color(None, ROWS[:19]))


def test_strict_warm_start_is_lenient_with_rows_held_out_or_of_weight_zero():
    settings = {"warm_start": True, "early_stopping": True, "validation_fraction": 0.25}
    first = quick(categorical_features=Categorical(handle_unknown="error"), **settings).fit(
        FRAME, Y
    )
    out, _ = hold_out(Y.astype(np.int32), 3, 0.25, first.history_.seed)
    colors = COLORS.astype(object)
    colors[out[:5]] = "mauve"
    second = quick(**settings).fit(FRAME, Y)
    for model in (first, second):
        model.set_params(max_iter=8).fit(with_color(colors), Y)
    assert_same_model(first, second)
    weight = (np.arange(N) >= 10).astype(float)
    for model in (first, second):
        model.set_params(early_stopping=False, max_iter=12).fit(
            with_color(np.where(np.arange(N) < 10, "zinc", COLORS)), Y, weight
        )
    assert_same_model(first, second)


def test_warm_start_with_the_same_table_in_another_form_is_one_fit():
    whole = quick(max_iter=8).fit(some_missing(), Y)
    backwards = some_missing().astype({"color": pd.CategoricalDtype(np.unique(COLORS)[::-1])})
    for again in (backwards, pl.from_pandas(backwards), pa.Table.from_pandas(backwards)):
        model = quick(warm_start=True).fit(some_missing(), Y).set_params(max_iter=8)
        assert_same_model(model.fit(again, Y), whole)


def test_pickle_and_clone_know_the_categories():
    model = quick(categorical_features=Categorical(handle_unknown="error")).fit(some_missing(), Y)
    expected = answers(model, some_missing())
    restored = pickle.loads(pickle.dumps(model))
    assert_same_model(restored, model)
    assert answers(restored, some_missing()[["color", "size"]]) == expected
    with pytest.raises(ValueError, match=r"unknown categories 'mauve'"):
        restored.predict(with_color("mauve"))
    assert_same_model(clone(model).fit(some_missing(), Y), model)
    table = pickle.loads(pickle.dumps(BinMapper().fit(some_missing()))).transform(some_missing())
    assert answers(restored, table) == expected


def test_refit_forgets_the_categories():
    model = quick().fit(FRAME, Y).fit(with_color("mauve"), Y)
    assert list(model.model_.encoding.categories[1].code_of) == ["mauve"]
    assert model.fit(FRAME[["size"]], Y).model_.encoding.categories == {}


def test_category_that_only_held_out_rows_have_is_no_error_of_the_training_table():
    frame = pd.DataFrame({"a": ["x", "y"] * 44 + ["rare", "z"]})
    settings = {"max_iter": 2, "min_samples_leaf": 2, "early_stopping": True, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nothing can be learned from it
        strict = small(categorical_features=Categorical(handle_unknown="error"), **settings).fit(
            frame, np.arange(90) % 3
        )
        lenient = small(**settings).fit(frame, np.arange(90) % 3)
    np.testing.assert_array_equal(strict.validation_loss_, lenient.validation_loss_)
    with pytest.raises(ValueError, match="column 'a' has unknown categories"):
        strict.predict(pd.DataFrame({"a": ["rare"]}))
