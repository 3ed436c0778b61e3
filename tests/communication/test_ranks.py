"""A fit of several ranks, each with rows of its own, is that of one with all rows: byte for byte."""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, KeepOnInterrupt, TreePerClass
from abcgbm.communication.shard import Shard
from ranks_in_threads import on_ranks

ROWS = 180
KINDS = {
    "mart": {"algorithm": "mart"},
    "logitboost": {"algorithm": "logitboost"},
    "abc-mart": {"algorithm": "abc-mart"},
    "abc-logitboost": {"algorithm": AdaptiveBaseClass("logitboost", line_search=False)},
    "shared": {"algorithm": "multi-output"},
    "class after class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Held(NamedTuple):
    """The rows of a rank: their numbers among all, and the partitions that they are."""

    rows: np.ndarray
    parts: list[tuple[int, int]]


def spread(n_rows: int, n_ranks: int, rng: np.random.Generator, n_parts: int = 5) -> list[Held]:
    """Cut rows into partitions, some perhaps empty, and deal these to ranks, in any order."""
    ends = [0, *np.sort(rng.integers(0, n_rows + 1, n_parts - 1)).tolist(), n_rows]
    held: list[list[int]] = [[] for _ in range(n_ranks)]
    for part in rng.permutation(n_parts).tolist():
        held[int(rng.integers(n_ranks))].append(part)
    return [
        Held(
            np.concatenate([np.empty(0, int), *(np.arange(ends[p], ends[p + 1]) for p in parts)]),
            [(p, ends[p + 1] - ends[p]) for p in parts],
        )
        for parts in held
    ]


def taken(values: Any, rows: np.ndarray) -> Any:
    if values is None:
        return None
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def file_of(model: ABCBoostClassifier) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


def fitted(given: dict[str, Any], params: dict[str, Any]) -> ABCBoostClassifier:
    params = {
        "max_iter": 5,
        "learning_rate": 0.15,
        "max_leaf_nodes": 5,
        "min_samples_leaf": 3,
    } | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ABCBoostClassifier(n_jobs=1, random_state=7, **params).fit(**given)


def on_each(given: dict[str, Any], params: dict[str, Any], held: list[Held], rng: Any) -> list[Any]:
    """Fit on all ranks; rows to validate on are cut in another way."""
    n_val = 0 if given.get("X_val") is None else given["X_val"].shape[0]
    to_validate = spread(n_val, len(held), rng)

    def fit(communicator: Any) -> ABCBoostClassifier:
        mine, other = held[communicator.rank], to_validate[communicator.rank]
        of_rank = {
            name: taken(values, (other if name.endswith("_val") else mine).rows)
            for name, values in given.items()
        }
        return fitted(of_rank | {"communicator": Shard(communicator, mine.parts)}, params)

    return on_ranks(len(held), fit)


def assert_same(given: dict[str, Any], params: dict[str, Any], n_ranks: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    n_rows = given["X"].shape[0]
    expected = fitted(given, params)
    models = on_each(given, params, spread(n_rows, n_ranks, rng), rng)
    for model in models:
        assert file_of(model) == file_of(expected)
        np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)


def drawn(seed: int, n: int = ROWS, n_classes: int = 3) -> dict[str, Any]:
    """Numbers of a few values, of many, missing ones, and a label that follows from them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 0] = np.round(X[:, 0], 1)
    raw = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.searchsorted(np.quantile(raw, np.arange(1, n_classes) / n_classes), raw)
    return {"X": X, "y": y}


def weights(seed: int, n: int, kind: str) -> np.ndarray | None:
    rng = np.random.default_rng(seed + 1)
    weight = {"none": None, "whole": rng.integers(0, 4, n) * 1.0, "fractional": rng.random(n)}[kind]
    if kind == "fractional":
        weight[rng.random(n) < 0.2] = 0
    return weight


# ------------------------------------------------------------------------------------ the same bytes


@every_kind
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 7])
def test_model_is_that_of_one_rank(kind, n_ranks):
    assert_same(drawn(1), kind, n_ranks, seed=n_ranks)


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([*KINDS.values()]),
    st.sampled_from([2, 3]),
    st.sampled_from(["none", "whole", "fractional"]),
    st.sampled_from([None, "balanced", {0: 0.3}, {1: 0, 2: 2.5}]),
    st.sampled_from([{}, {"subsample": 0.6}, {"max_features": 2}]),
)
def test_model_is_that_of_one_rank_whatever_weighs_and_is_drawn(
    seed, kind, n_ranks, weighed, class_weight, draws
):
    of_all = drawn(seed, n=90) | {"sample_weight": weights(seed, 90, weighed)}
    assert_same(of_all, kind | draws | {"class_weight": class_weight}, n_ranks, seed)


@settings(max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([*KINDS.values()]),
    st.sampled_from(["none", "fractional"]),
    st.sampled_from(["loss", "error"]),
    st.booleans(),
    st.booleans(),
)
def test_validation_is_that_of_one_rank(seed, kind, weighed, scoring, refit, is_given):
    of_all = drawn(seed, n=120) | {"sample_weight": weights(seed, 120, weighed)}
    if is_given:
        other = drawn(seed + 1, n=40)
        of_all |= {"X_val": other["X"], "y_val": other["y"]}
        of_all |= {"sample_weight_val": weights(seed + 2, 40, weighed)}
    params = {"early_stopping": True, "n_iter_no_change": 2, "refit": refit, "scoring": scoring}
    assert_same(of_all, kind | params | {"max_iter": 8, "validation_fraction": 0.3}, 3, seed)


def frame(seed: int, n: int = ROWS) -> dict[str, Any]:
    """Categories of strings, many and few, and columns that may be missing on a rank."""
    of_all, rng = drawn(seed, n), np.random.default_rng(seed + 3)
    X = pd.DataFrame(of_all["X"], columns=[*"abcd"])
    X["colour"] = np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, n)]
    X["many"] = np.array([f"level {i}" for i in range(60)], dtype=object)[rng.integers(0, 60, n)]
    X["seldom"] = np.where(np.arange(n) < n - 3, None, "here")
    of_all["y"] = np.array(["no", "perhaps", "yes"])[of_all["y"]]
    return of_all | {"X": X}


@pytest.mark.parametrize("n_ranks", [2, 3])
@pytest.mark.parametrize("params", [{}, {"max_bins": 3}, {"early_stopping": True}], ids=str)
def test_categories_are_those_of_one_rank(params, n_ranks):
    for seed in range(3):
        assert_same(frame(seed), params, n_ranks, seed)


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_sparse_tables_are_those_of_one_rank(fill):
    of_all, rng = drawn(5), np.random.default_rng(5)
    group = rng.integers(0, 12, ROWS)
    hot = (group[:, None] == np.arange(12)).astype(float)  # which never meet
    some = (rng.random((ROWS, 6)) < 0.08) * rng.integers(1, 4, (ROWS, 6))  # which do
    X = np.column_stack([hot, some, of_all["X"][:, :1]])
    X[0, 0] = np.nan
    for seed, make in enumerate((sparse.csr_array, sparse.csc_array)):
        assert_same(of_all | {"X": make(X)}, {}, 3, seed)
    if fill:
        columns = {f"c{i}": pd.arrays.SparseArray(X[:, i], fill_value=0.0) for i in range(18)}
        assert_same(of_all | {"X": pd.DataFrame(columns)}, {}, 2)


def test_ranks_may_have_tables_of_other_forms():
    of_all = drawn(3)
    expected = file_of(fitted(of_all, {}))
    forms = [sparse.csr_array, np.asfortranarray, lambda X: X.tolist()]

    def fit(communicator):
        rows = np.arange(ROWS)[communicator.rank * 60 : communicator.rank * 60 + 60]
        X = forms[communicator.rank](np.nan_to_num(of_all["X"][rows]))
        return fitted({"X": X, "y": of_all["y"][rows].tolist(), "communicator": communicator}, {})

    expected = file_of(fitted(of_all | {"X": np.nan_to_num(of_all["X"])}, {}))
    assert [file_of(model) == expected for model in on_ranks(3, fit)] == [True] * 3


def test_class_may_be_on_one_rank_alone_and_a_rank_without_rows():
    of_all = drawn(4)
    order = np.argsort(of_all["y"], kind="stable")
    X, y = of_all["X"][order], of_all["y"][order]
    expected = file_of(fitted({"X": X, "y": y}, {"subsample": 0.7}))
    ends = [0, *np.searchsorted(y, [1, 1, 2]).tolist(), ROWS]

    def fit(communicator):
        rows = slice(ends[communicator.rank], ends[communicator.rank + 1])
        none = communicator.rank == 1
        mine = {"X": None, "y": None} if none else {"X": X[rows], "y": y[rows]}
        return fitted(mine | {"communicator": communicator}, {"subsample": 0.7})

    assert [file_of(model) == expected for model in on_ranks(4, fit)] == [True] * 4


def test_warm_start_goes_on_from_the_same_model():
    of_all, held = drawn(6), spread(ROWS, 2, np.random.default_rng(6))
    params = {"warm_start": True, "algorithm": "mart", "max_leaf_nodes": 4, "random_state": 1}
    alone = ABCBoostClassifier(max_iter=3, learning_rate=0.15, **params).fit(**of_all)
    expected = file_of(alone.set_params(max_iter=6).fit(**of_all))

    def fit(communicator):
        rows, parts = held[communicator.rank]
        shard = Shard(communicator, parts)
        model = ABCBoostClassifier(max_iter=3, learning_rate=0.15, **params)
        model.fit(of_all["X"][rows], of_all["y"][rows], communicator=shard)
        return model.set_params(max_iter=6).fit(
            of_all["X"][rows], of_all["y"][rows], communicator=shard
        )

    assert [file_of(model) == expected for model in on_ranks(2, fit)] == [True] * 2


def test_random_state_of_the_first_rank_is_that_of_all():
    of_all = drawn(7)

    def fit(communicator):
        rows = slice(90 * communicator.rank, 90 * communicator.rank + 90)
        model = ABCBoostClassifier("mart", max_iter=3, learning_rate=0.1, subsample=0.5)
        return model.fit(of_all["X"][rows], of_all["y"][rows], communicator=communicator)

    one, other = on_ranks(2, fit)
    assert file_of(one) == file_of(other)
    assert one.history_.seed == other.history_.seed


def errors_of(n_ranks: int, work: Callable[[Any], Any]) -> list[Any]:
    """What each rank raises, or returns; nobody leaves before all have come to that."""

    def kept(communicator: Any) -> Any:
        try:
            return work(communicator)
        except Exception as error:  # noqa: BLE001
            return [error]

    return [of[0] if isinstance(of, list) else of for of in on_ranks(n_ranks, kept, wait=20)]


# -------------------------------------------------------------------------------------- who is asked


def test_first_rank_alone_asks_callbacks_and_shows_progress(capsys):
    of_all, heard = drawn(8), [[], []]

    def fit(communicator):
        rows = slice(90 * communicator.rank, 90 * communicator.rank + 90)

        def callback(report):
            heard[communicator.rank].append(report.iteration)
            return report.iteration == 2

        params = {"callbacks": callback, "verbose": 1}
        of_rank = {"X": of_all["X"][rows], "y": of_all["y"][rows], "communicator": communicator}
        return fitted(of_rank, params)

    models = on_ranks(2, fit)
    assert heard == [[1, 2], []]
    assert [model.stop_reason_ for model in models] == ["callback"] * 2
    assert [model.n_iter_ for model in models] == [2, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_error_of_a_callback_is_raised_on_all_ranks(error):
    of_all = drawn(8)

    def callback(report):
        if report.iteration == 2:
            raise error("asked")

    def fit(communicator):
        rows = slice(90 * communicator.rank, 90 * communicator.rank + 90)
        of_rank = {"X": of_all["X"][rows], "y": of_all["y"][rows], "communicator": communicator}
        with pytest.raises((KeyboardInterrupt, ArithmeticError), match="asked"):
            fitted(of_rank, {"callbacks": callback})
        return fitted(of_rank, {"callbacks": [callback, KeepOnInterrupt()]}).stop_reason_

    found = errors_of(2, fit)
    if error is KeyboardInterrupt:
        assert found == ["interrupted"] * 2
    else:
        assert all(isinstance(of_rank, ArithmeticError) for of_rank in found)


# -------------------------------------------------------------------------------------------- errors

GOOD = drawn(9, n=40)


def bad(**changed: Any) -> dict[str, Any]:
    return {"X": GOOD["X"], "y": GOOD["y"]} | changed


NAMED = pd.DataFrame(GOOD["X"], columns=[*"abcd"])
WRONG = {
    "text": (bad(X=NAMED.assign(a="text")), "a.* rank 1"),
    "other names": (bad(X=NAMED.rename(columns={"b": "z"})), "columns of rank 1 .*'z'"),
    "no names": (bad(), "columns of rank 1 are 4 without names"),
    "fewer columns": (bad(X=NAMED[["a", "b"]]), "columns of rank 1"),
    "no labels": (bad(X=NAMED, y=None), "rank 1: .*y is None|rank 1: fit requires y"),
    "too few labels": (bad(X=NAMED, y=GOOD["y"][:-1]), r"rank 1: y has 39 labels"),
    "missing label": (bad(X=NAMED, y=[None, *GOOD["y"][1:]]), "rank 1: y contains NaN or None"),
    "other labels": (
        bad(X=NAMED, y=GOOD["y"].astype(str)),
        "y has 0 on rank 0, and '0' on rank 1; expected one",
    ),
    "weight": (bad(X=NAMED, sample_weight=-np.ones(40)), r"rank 1: sample_weight is -1.0 at row 0"),
    "number": (bad(X=np.full((40, 4), 1j)), "rank 1: "),
    "X_val alone": (bad(X=NAMED, X_val=NAMED), "rank 1: y_val is None"),
    "y_val": (bad(X=NAMED, X_val=NAMED, y_val=GOOD["y"] + 1), "rank 1: y_val has labels"),
    "X_val": (
        bad(X=NAMED, X_val=NAMED[["a"]], y_val=GOOD["y"]),
        "rank 1: .*feature names of X_val",
    ),
    "path": (bad(X="nowhere.parquet", y="y"), "rank 1: "),
    "parts": (
        bad(X=NAMED, communicator=[(5, 39)]),
        r"rank 1 \(partition 5\): the partitions of the shard have 39 rows",
    ),
    "part of X_val": (
        bad(X=NAMED, X_val=NAMED, y_val=GOOD["y"] + 1, communicator=([(5, 40)], [(2, 40)])),
        r"rank 1 \(partition 2\): y_val has labels",
    ),
    "text in a part": (
        bad(X=NAMED.assign(a="text"), communicator=[(5, 40)]),
        r"a.* on rank 1 \(partition 5\), but numbers on rank 0; expected",
    ),
    "same part": (bad(X=NAMED, communicator=[(0, 40)]), "partition 0 occurs 2 times"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_on_one_rank_is_an_error_of_all(wrong, message):
    def fit(communicator):
        mine = dict(wrong) if communicator.rank == 1 else bad(X=NAMED)
        parts = mine.get("communicator")
        mine["communicator"] = Shard(
            communicator, *(parts if isinstance(parts, tuple) else [parts])
        )
        fitted(mine, {"subsample": 0.5})

    found = errors_of(3, fit)
    for of_rank in found:
        assert isinstance(of_rank, ValueError | TypeError | OSError)
        assert re.search(message, str(of_rank))


PARAMS_APART = {
    "learning_rate": ({"learning_rate": 0.3}, "learning_rate is 0.3 on rank 1"),
    "scorer": ({"scoring": "accuracy"}, "rank 1: scoring='accuracy' .* expected 'loss' or 'error'"),
    "score": ({"scoring": "error"}, "scoring is 'error' on rank 1, 'loss' on rank 0"),
    "bad": ({"max_iter": -1}, "rank 1: max_iter=-1"),
}


@pytest.mark.parametrize(("params", "message"), PARAMS_APART.values(), ids=PARAMS_APART)
def test_parameters_must_be_the_same(params, message):
    def fit(communicator):
        fitted(GOOD | {"communicator": communicator}, params if communicator.rank == 1 else {})

    for of_rank in errors_of(2, fit):
        assert isinstance(of_rank, ValueError)
        assert re.search(message, str(of_rank))


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ({"X": np.empty((0, 4)), "y": []}, "X has 0 rows on every rank"),
        (GOOD | {"y": np.zeros(40)}, "y has 1 class"),
        (GOOD | {"sample_weight": np.zeros(40)}, "all weights are zero"),
    ],
)
def test_what_all_ranks_lack_is_an_error(mine, message):
    for of_rank in errors_of(
        2, lambda communicator: fitted(mine | {"communicator": communicator}, {})
    ):
        assert isinstance(of_rank, ValueError)
        assert re.search(message, str(of_rank))


def test_share_is_a_rank():
    with pytest.raises(TypeError, match="communicator=3; expected None, a Communicator"):
        ABCBoostClassifier().fit(**GOOD, communicator=3)
