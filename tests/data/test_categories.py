"""Levels of a category and their codes."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm import BinMapper
from abcgbm.data.categories import CategoryMap
from models import small

LEVEL_LISTS = st.one_of(
    st.lists(st.none() | st.sampled_from(["", "a", "b", "ba", "é", "Z"]), min_size=1, max_size=40),
    st.lists(st.none() | st.sampled_from([-np.inf, -1.5, 0.0, 2.0, 1e300, np.inf]), min_size=1),
)


def learned(values, max_bins=255, weight=None) -> CategoryMap:
    weight = np.ones(len(values), np.int64) if weight is None else weight
    return CategoryMap.learn("column 'a'", [values], weight, max_bins)


def codes(categories: CategoryMap, values, **options) -> np.ndarray:
    return categories.codes([values], **options)


@given(LEVEL_LISTS)
def test_codes_are_the_places_of_categories_in_ascending_order(values):
    order = sorted({value for value in values if value is not None})
    categories = learned(values)
    assert categories.code_of == {category: code for code, category in enumerate(order)}
    assert categories.n_codes == len(order)
    expected = [np.nan if value is None else order.index(value) for value in values]
    np.testing.assert_array_equal(codes(categories, values), expected)


@given(LEVEL_LISTS, st.integers(2, 5), st.data())
def test_heaviest_categories_have_codes_of_their_own_and_the_others_share_the_last(
    values, max_bins, data
):
    n = len(values)
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), np.int64)
    total = Counter()
    for value, of_row in zip(values, weight.tolist(), strict=True):
        total[value] += of_row
    del total[None]
    categories = learned(values, max_bins, weight)
    if len(total) <= max_bins:
        assert categories.n_codes == len(total)
        return
    own = sorted(sorted(total, key=lambda category: (-total[category], category))[: max_bins - 1])
    expected = {
        category: own.index(category) if category in own else max_bins - 1 for category in total
    }
    assert categories.code_of == expected
    assert categories.n_codes == max_bins


@given(LEVEL_LISTS, st.integers(2, 5), st.randoms(use_true_random=False))
def test_order_of_rows_and_chunks_do_not_matter(values, max_bins, random):
    expected = learned(values, max_bins)
    shuffled = random.sample(values, len(values))
    cuts = sorted(random.choices(range(len(values) + 1), k=2))
    pieces = [shuffled[: cuts[0]], shuffled[cuts[0] : cuts[1]], shuffled[cuts[1] :]]
    ones = np.ones(len(values), np.int64)
    assert CategoryMap.learn("column 'a'", pieces, ones, max_bins) == expected
    np.testing.assert_array_equal(expected.codes(pieces), codes(expected, shuffled))


@given(LEVEL_LISTS, st.data())
def test_integer_weights_are_repeated_rows(values, data):
    n = len(values)
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    repeated = list(itertools.chain(*([v] * r for v, r in zip(values, repeats, strict=True))))
    assert learned(values, 3, np.array(repeats, np.int64)) == learned(repeated, 3)


def test_sums_of_weights_are_exact():
    heavy = 2**61
    weight = np.array([heavy, heavy + 1, 1, 1], np.int64)  # as floats the first two are equal
    categories = learned(["a", "b", "c", "d"], 2, weight)
    assert categories.code_of == {"b": 0, "a": 1, "c": 1, "d": 1}


def test_categories_of_no_value_have_no_code():
    categories = learned([None, None])
    assert categories.n_codes == 0
    assert categories.thresholds().tolist() == []
    np.testing.assert_array_equal(codes(categories, ["a", None]), [np.nan, np.nan])


@pytest.mark.parametrize(("n_codes", "expected"), [(1, []), (2, [0.5]), (4, [0.5, 1.5, 2.5])])
def test_thresholds_lie_between_codes(n_codes, expected):
    assert learned(list("abcd")[:n_codes]).thresholds().tolist() == expected


def test_minus_zero_is_zero():
    categories = learned([0.0, 1.0])
    np.testing.assert_array_equal(codes(categories, [-0.0, 0.0]), [0, 0])
    assert learned([-0.0, 0.0]).n_codes == 1


def test_unknown_category_is_missing_or_an_error_that_names_it():
    categories = learned(["a", "b"])
    np.testing.assert_array_equal(codes(categories, ["b", "x", None]), [1, np.nan, np.nan])
    with pytest.raises(
        ValueError,
        match=r"column 'a' has unknown categories 'w', 'x'; expected some of 'a', 'b', or",
    ):
        codes(categories, ["x", "b", "w", None, "x"], handle_unknown="error")
    np.testing.assert_array_equal(
        codes(categories, ["b", None], handle_unknown="error"), [1, np.nan]
    )


def test_error_names_no_more_than_five_unknown_categories():
    with pytest.raises(
        ValueError, match="'b', 'c', 'd', 'e', 'f' and 2 more; expected some of 'a', or"
    ):
        codes(learned(["a"]), list("abcdefgh"), handle_unknown="error")
    with pytest.raises(
        ValueError, match="'z'; expected some of 'a', 'b', 'c', 'd', 'e' and 3 more"
    ):
        codes(learned(list("abcdefgh")), ["z"], handle_unknown="error")
    with pytest.raises(ValueError, match="'z'; expected some of none, as all values were missing"):
        codes(learned([None]), ["z"], handle_unknown="error")


def test_rare_category_is_not_unknown():
    categories = learned(list("aaabbbcd"), 3)
    np.testing.assert_array_equal(
        codes(categories, list("abcd"), handle_unknown="error"), [0, 1, 2, 2]
    )


def test_categories_of_two_types_are_refused():
    with pytest.raises(TypeError, match="column 'a' has both strings and numbers"):
        learned(["a", 1.0])


@pytest.mark.parametrize(("known", "given"), [("a", 1.0), (1.0, "1")])
@pytest.mark.parametrize("handle_unknown", ["missing", "error"])
def test_categories_of_another_type_than_learned_are_refused(known, given, handle_unknown):
    with pytest.raises(TypeError, match=f"column 'a' has categories such as {known!r}.*{given!r}"):
        codes(learned([known]), [None, given], handle_unknown=handle_unknown)


def test_categories_pickle():
    categories = learned(["b", "a", None])
    assert pickle.loads(pickle.dumps(categories)) == categories


# ---------------------------------------------------------------------------------- in a bin mapper


def words(n_categories: int, n_rows: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(n_categories)
    category = np.r_[np.arange(n_categories), rng.integers(0, n_categories, n_rows - n_categories)]
    return pd.DataFrame({"a": [f"category {number:04}" for number in category]})


@pytest.mark.parametrize(
    ("n_categories", "max_bins"), [(255, 255), (256, 16), (700, 43), (700, 255)]
)
def test_any_number_of_categories_is_coded(n_categories, max_bins):
    """A category may have 16 times as many codes as a number has bins."""
    X = words(n_categories)
    table = BinMapper(max_bins).fit(X).transform(X)
    n_codes = min(n_categories, 16 * max_bins)
    assert list(table.binned.n_bins) == [n_codes + 1]
    assert set(table.binned.codes().ravel().tolist()) == set(range(n_codes))
    if n_categories <= 16 * max_bins:
        np.testing.assert_array_equal(
            table.binned.codes()[:n_categories, 0], np.arange(n_categories)
        )


def test_unknown_category_has_the_code_of_missing_values():
    mapper = BinMapper().fit(pd.DataFrame({"a": ["x", "y"]}))
    X = pd.DataFrame({"a": ["y", "z", None]})
    assert mapper.transform(X).binned.codes().ravel().tolist() == [1, 2, 2]
    with pytest.raises(ValueError, match=r"column 'a' has unknown categories 'z'"):
        mapper.set_params(handle_unknown="error").fit(X[:1]).transform(X)


def test_weights_decide_which_categories_are_rare(monkeypatch):
    monkeypatch.setattr("abcgbm.data.binning._CODES_PER_BIN", 1)
    X = pd.DataFrame({"a": ["x", "y", "y", "z", "z"]})
    weight = [5, 1, 1, 1, 0.5]
    categories = BinMapper(2).fit(X, sample_weight=weight).encoding_.categories[0]
    assert categories.code_of == {"x": 0, "y": 1, "z": 1}
    assert BinMapper(2).fit(X).encoding_.categories[0].code_of == {"y": 0, "x": 1, "z": 1}


def test_category_of_weight_zero_is_unknown():
    X = pd.DataFrame({"a": ["x", "y", "z"]})
    mapper = BinMapper().fit(X, sample_weight=[1, 0, 1])
    assert mapper.encoding_.categories[0].code_of == {"x": 0, "z": 1}


@pytest.mark.parametrize("dtype", ["str", "category", object])
def test_fold_without_any_category_predicts_rows_that_have_some(dtype):
    x, y = np.arange(60.0), np.arange(60) // 20
    some = pd.Series([None] * 40 + ["a", "b"] * 10, dtype=dtype)
    X = pd.DataFrame({"x": np.r_[x[::2], x[1::2]], "some": some})
    y = np.r_[y[::2], y[1::2]]
    model = small(max_iter=3, min_samples_leaf=2).fit(X[:40], y[:40])
    plain = small(max_iter=3, min_samples_leaf=2).fit(X[["x"]][:40], y[:40])
    expected = plain.predict_proba(X[["x"]])
    assert model.predict_proba(X).tobytes() == expected.tobytes()
    assert model.score(X[40:], y[40:]) > 0


@pytest.mark.parametrize("bad", ["ignore", None, True, ["missing"]], ids=repr)
def test_way_to_handle_unknown_categories_that_does_not_exist_is_told(bad):
    error = ValueError if isinstance(bad, str) else TypeError
    with pytest.raises(error, match=r"handle_unknown=.*expected 'missing' or 'error'"):
        BinMapper(handle_unknown=bad).fit(words(3))
