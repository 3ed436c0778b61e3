"""Thresholds and bin codes of the core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import problems, random_problem

ONES = np.ones(3, np.int64)
THREE_ROWS = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]])


def assert_same_lists(ours, theirs) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@given(problems(), st.sampled_from([2, 3, 4, 7, 255, 65534]))
def test_thresholds_are_those_of_the_reference(problem, max_bins):
    weight = problem.weight.tolist()
    expected = [ref.find_thresholds(x, weight, max_bins) for x in problem.X.T.tolist()]
    assert_same_lists(core.find_thresholds(problem.X, problem.weight, max_bins), expected)


@given(problems())
def test_codes_are_those_of_the_reference(problem):
    binned, expected = core.binned(problem), ref.bin_table(problem.X, problem.thresholds())
    np.testing.assert_array_equal(binned.codes(), expected.codes)
    assert list(binned.n_bins) == expected.n_bins
    assert (binned.n_rows, binned.n_features) == problem.X.shape


@given(problems(), problems())
def test_new_values_are_coded_by_the_learned_thresholds(learned, new):
    thresholds = learned.thresholds()[:1]
    X = new.X[:, :1]
    codes = core.bin_table(X, [np.array(t) for t in thresholds]).codes()
    np.testing.assert_array_equal(codes, ref.bin_table(X, thresholds).codes)


def shuffled_column(n_distinct: int, n_rows: int = 800) -> np.ndarray:
    values = np.arange(n_rows, dtype=np.float64) % n_distinct
    return np.random.default_rng(0).permutation(values)[:, None]


@pytest.mark.parametrize(("n_distinct", "code_bytes"), [(254, 1), (255, 1), (256, 2), (700, 2)])
def test_codes_take_one_byte_while_they_fit(n_distinct, code_bytes):
    X = shuffled_column(n_distinct)
    thresholds = core.find_thresholds(X, np.ones(len(X), np.int64), 65534)
    binned = core.bin_table(X, thresholds)
    assert binned.code_bytes == code_bytes
    np.testing.assert_array_equal(binned.codes(), X.astype(np.uint16))
    missing = core.bin_table(np.full((1, 1), np.nan), thresholds)
    assert missing.codes()[0, 0] == n_distinct


@pytest.mark.parametrize("max_bins", [2, 255, 65534])
def test_thresholds_of_thousands_of_distinct_values_are_those_of_the_reference(max_bins):
    rng = np.random.default_rng(max_bins)
    column = rng.integers(-4000, 4000, 12000) / 7
    weight = rng.integers(1, 9, len(column))
    expected = ref.find_thresholds(column.tolist(), weight.tolist(), max_bins)
    assert len(set(column)) > 5000
    assert_same_lists(core.find_thresholds(column[:, None], weight, max_bins), [expected])


@given(problems(), st.randoms(use_true_random=False))
def test_thresholds_are_the_same_for_any_row_order(problem, random):
    order = np.array(random.sample(range(len(problem.y)), len(problem.y)))
    other = problem.rows(order)
    assert_same_lists(
        core.find_thresholds(problem.X, problem.weight, 5),
        core.find_thresholds(other.X, other.weight, 5),
    )


@given(problems(), st.data())
def test_thresholds_of_integer_weights_are_those_of_repeated_rows(problem, data):
    n = len(problem.y)
    repeats = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
    repeated = np.repeat(problem.X, repeats, axis=0)
    assert_same_lists(
        core.find_thresholds(problem.X, repeats, 4),
        core.find_thresholds(repeated, np.ones(len(repeated), np.int64), 4),
    )


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_binning_is_the_same_for_any_thread_count_and_memory_layout(n_threads):
    problem = random_problem(1, 999, 7, 3)
    X, wide = problem.X, np.zeros((999, 20))
    wide[:, 3:17:2] = X
    expected = [np.array(t) for t in problem.thresholds()]
    codes = core.bin_table(X, expected).codes()
    for layout in (X, np.asfortranarray(X), wide[:, 3:17:2], X[::-1][::-1]):
        found = core.find_thresholds(layout, problem.weight, 255, n_threads)
        assert_same_lists(found, expected)
        np.testing.assert_array_equal(core.bin_table(layout, found, n_threads).codes(), codes)


@pytest.mark.parametrize(
    ("X", "weight", "max_bins"),
    [
        (THREE_ROWS[:, 0], ONES, 255),
        (THREE_ROWS, ONES[:2], 255),
        (THREE_ROWS, ONES[:, None], 255),
        (THREE_ROWS, ONES, 1),
        (THREE_ROWS, ONES, -5),
        (THREE_ROWS, ONES, 65535),
        (THREE_ROWS.astype(str), ONES, 255),
        (None, ONES, 255),
    ],
)
def test_find_thresholds_rejects_wrong_input(X, weight, max_bins):
    with pytest.raises((ValueError, TypeError)):
        core.find_thresholds(X, weight, max_bins)


@pytest.mark.parametrize(
    ("X", "thresholds"),
    [
        (THREE_ROWS, [np.zeros(1)]),
        (THREE_ROWS, [np.zeros(1)] * 3),
        (THREE_ROWS, [np.zeros((1, 1))] * 2),
        (THREE_ROWS, [np.arange(65534.0)] * 2),
        (THREE_ROWS[:, 0], [np.zeros(1)]),
    ],
)
def test_bin_table_rejects_wrong_input(X, thresholds):
    with pytest.raises((ValueError, TypeError)):
        core.bin_table(X, thresholds)
