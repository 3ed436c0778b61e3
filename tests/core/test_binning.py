"""Thresholds and bin codes of the core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import core
import reference as ref
from abcgbm import BinMapper, _core
from strategies import problems, random_problem

ONES = np.ones(3, np.int64)
THREE_ROWS = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]])


def assert_same_lists(ours, theirs) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@given(problems(), st.sampled_from([2, 3, 4, 7, 255, 65534]))
def test_thresholds_match_the_reference(problem, max_bins):
    weight = problem.weight.tolist()
    expected = [ref.find_thresholds(x, weight, max_bins) for x in problem.X.T.tolist()]
    assert_same_lists(core.find_thresholds(problem.X, problem.weight, max_bins), expected)


@given(problems())
def test_codes_match_the_reference(problem):
    binned, expected = core.binned(problem), ref.bin_table(problem.X, problem.thresholds())
    np.testing.assert_array_equal(binned.codes(), expected.codes)
    assert list(binned.n_bins) == expected.n_bins
    assert (binned.n_rows, binned.n_features) == problem.X.shape


@given(problems(), problems())
def test_new_values_are_binned_by_the_fitted_thresholds(learned, new):
    thresholds = learned.thresholds()[:1]
    X = new.X[:, :1]
    codes = core.bin_table(X, [np.array(t) for t in thresholds]).codes()
    np.testing.assert_array_equal(codes, ref.bin_table(X, thresholds).codes)


def shuffled_column(n_distinct: int, n_rows: int = 800) -> np.ndarray:
    values = np.arange(n_rows, dtype=np.float64) % n_distinct
    return np.random.default_rng(0).permutation(values)[:, None]


@pytest.mark.parametrize(("n_distinct", "code_bytes"), [(254, 1), (255, 1), (256, 2), (700, 2)])
def test_codes_take_one_byte_for_up_to_256_bins(n_distinct, code_bytes):
    X = shuffled_column(n_distinct)
    thresholds = core.find_thresholds(X, np.ones(len(X), np.int64), 65534)
    binned = core.bin_table(X, thresholds)
    assert binned.code_bytes == code_bytes
    np.testing.assert_array_equal(binned.codes(), X.astype(np.uint16))
    missing = core.bin_table(np.full((1, 1), np.nan), thresholds)
    assert missing.codes()[0, 0] == n_distinct


@pytest.mark.parametrize("max_bins", [2, 255, 65534])
def test_thresholds_of_thousands_of_distinct_values_match_the_reference(max_bins):
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
def test_integer_weights_give_the_thresholds_of_repeated_rows(problem, data):
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


# ------------------------------------------------------------------------------------ sparse columns


def as_sparse(X: np.ndarray, fill: np.ndarray, keep: np.ndarray) -> dict[str, np.ndarray]:
    """Return sparse columns that store the values other than the fill value, and those marked to be kept."""
    rows = [np.flatnonzero(((x != f) & ~(np.isnan(x) & np.isnan(f))) | k)
            for x, f, k in zip(X.T, fill, keep.T, strict=True)]  # fmt: skip
    return {
        "fill": fill,
        "indptr": np.cumsum([0, *map(len, rows)]).astype(np.int64),
        "indices": np.concatenate(rows).astype(np.int32),
        "data": np.concatenate([x[r] for x, r in zip(X.T, rows, strict=True)]),
    }


@st.composite
def sparse_columns(draw):
    """A problem and its sparse columns; the fill value occurs in the column and is sometimes stored."""
    problem = draw(problems())
    row = draw(st.integers(0, len(problem.y) - 1))
    keep = np.random.default_rng(draw(st.integers(0, 99))).random(problem.X.shape) < 0.2
    return problem, as_sparse(problem.X, problem.X[row].copy(), keep)


@given(sparse_columns(), st.sampled_from([2, 3, 7, 255]))
def test_sparse_columns_have_the_thresholds_of_dense_ones(drawn, max_bins):
    problem, columns = drawn
    given = _core.SparseColumns(len(problem.y), **columns)
    found = _core.find_sparse_thresholds(given, problem.weight, max_bins, 1)
    assert_same_lists(found, core.find_thresholds(problem.X, problem.weight, max_bins))


@given(sparse_columns())
def test_sparse_columns_have_the_codes_of_dense_ones(drawn):
    problem, columns = drawn
    thresholds = [np.array(t) for t in problem.thresholds()]
    n = len(thresholds)
    builder = _core.BinnedBuilder(len(problem.y), thresholds, np.zeros(n, np.uint8))
    given = _core.SparseColumns(len(problem.y), **columns)
    builder.add_sparse(np.arange(n, dtype=np.int32), given, 1)
    expected = core.bin_table(problem.X, thresholds).codes()
    np.testing.assert_array_equal(builder.finish().codes(), expected)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_binning_of_sparse_columns_is_the_same_for_any_thread_count(n_threads):
    X = sparse.random_array((3000, 60), density=0.05, rng=0, format="csc")
    mapper = BinMapper(20, n_jobs=n_threads).fit(X)
    expected = BinMapper(20, n_jobs=1).fit(X.toarray())
    assert_same_lists(mapper.thresholds_, expected.thresholds_)
    codes = expected.transform(X.toarray()).binned.codes()
    np.testing.assert_array_equal(mapper.transform(X).binned.codes(), codes)
    rows = np.array([5, 2999, 5, 0])
    np.testing.assert_array_equal(mapper.transform(X)[rows].binned.codes(), codes[rows])


VALID = as_sparse(THREE_ROWS, np.zeros(2), np.zeros((3, 2), bool))


@pytest.mark.parametrize(
    "changed",
    [
        {"fill": np.zeros(3)},
        {"indptr": np.array([0, 2], np.int64)},
        {"indptr": np.array([1, 2, 5], np.int64)},
        {"indptr": np.array([0, 9, 5], np.int64)},
        {"indptr": np.array([0, -1, 5], np.int64)},
        {"indices": np.array([1, 3, 0, 1, 2], np.int32)},
        {"indices": np.array([-1, 2, 0, 1, 2], np.int32)},
        {"indices": np.array([2, 1, 0, 1, 2], np.int32)},
        {"indices": np.array([1, 1, 0, 1, 2], np.int32)},
        {"indices": np.array([1, 2, 0, 1, 2], np.int64)},
        {"data": np.ones(4)},
        {"data": np.ones(5, np.float32)},
    ],
    ids=repr,
)
def test_malformed_sparse_columns_are_refused(changed):
    assert len(_core.find_sparse_thresholds(_core.SparseColumns(3, **VALID), ONES, 255, 1)) == 2
    with pytest.raises((ValueError, TypeError)):
        _core.find_sparse_thresholds(_core.SparseColumns(3, **VALID | changed), ONES, 255, 1)
    builder = _core.BinnedBuilder(3, [np.zeros(1)] * 2, np.zeros(2, np.uint8))
    with pytest.raises((ValueError, TypeError)):
        builder.add_sparse(
            np.arange(2, dtype=np.int32), _core.SparseColumns(3, **VALID | changed), 1
        )


@pytest.mark.parametrize("features", [[0], [0, 2], [-1, 0], [0, 1, 1]], ids=repr)
def test_unknown_features_are_refused(features):
    builder = _core.BinnedBuilder(3, [np.zeros(1)] * 2, np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="features"):
        builder.add_block(np.array(features, np.int32), THREE_ROWS, 1)


def test_table_is_not_finished_while_a_feature_is_missing():
    builder = _core.BinnedBuilder(3, [np.zeros(1)] * 2, np.zeros(2, np.uint8))
    builder.add_block(np.array([1], np.int32), THREE_ROWS[:, :1], 1)
    with pytest.raises(ValueError, match="every feature"):
        builder.finish()


# ---------------------------------------------------------------------------------------- wrong input


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


@pytest.mark.parametrize("n_digits", [None, 3, 2])
@pytest.mark.parametrize("max_bins", [2, 7, 255, 512, 600])
@pytest.mark.parametrize("max_weight", [1, 3])
def test_thresholds_of_many_values_match_the_reference(n_digits, max_bins, max_weight):
    rng = np.random.default_rng(max_bins)
    column = rng.standard_normal(40_000) * rng.choice([1e-3, 1.0, 50.0], 40_000)
    column = column if n_digits is None else column.round(n_digits)
    column[::7], column[1::11], column[5::13] = np.nan, 0.25, np.inf
    weight = rng.integers(1, max_weight + 1, len(column))
    found = _core.find_thresholds(column[:, None], weight, max_bins, 1)[0]
    assert found.tolist() == ref.find_thresholds(column.tolist(), weight.tolist(), max_bins)


SPACINGS = {
    "even": lambda n, rng: np.arange(float(n)),
    "normal": lambda n, rng: rng.standard_normal(n),
    "log-normal": lambda n, rng: np.exp(30 * rng.standard_normal(n)),
    "all floats": lambda n, rng: np.linspace(-0.9, 0.9, n) * np.finfo(float).max,
    "tiny": lambda n, rng: np.arange(float(n)) * 5e-324,
    "far from zero": lambda n, rng: 1e15 + np.arange(float(n)) / 8,
    "two clusters": lambda n, rng: np.concatenate(
        [rng.random(n // 2), 1e9 + rng.random(n - n // 2)]
    ),
    "infinite ends": lambda n, rng: np.concatenate([[-np.inf], rng.random(n - 2), [np.inf]]),
}


@pytest.mark.parametrize("n_thresholds", [31, 33, 254, 5000])
@pytest.mark.parametrize("spacing", SPACINGS)
def test_code_is_the_number_of_thresholds_below_for_any_spacing(spacing, n_thresholds):
    thresholds = np.unique(SPACINGS[spacing](n_thresholds, np.random.default_rng(0)))
    neighbours = [np.nextafter(thresholds, end) for end in (-np.inf, np.inf)]
    ends = [-np.inf, np.inf, -0.0, 0.0, np.finfo(float).max, -np.finfo(float).max]
    between = thresholds[:-1] / 2 + thresholds[1:] / 2
    values = np.concatenate([thresholds, *neighbours, ends, between[~np.isnan(between)]])
    codes = core.bin_table(np.append(values, np.nan)[:, None], [thresholds]).codes()[:, 0]
    np.testing.assert_array_equal(codes[:-1], np.searchsorted(thresholds, values))
    assert codes[-1] == len(thresholds) + 1


@pytest.mark.parametrize("n_digits", [None, 3, 4])
@pytest.mark.parametrize("n_rows", [1_500_000, 5_000_000])
@pytest.mark.slow
def test_thresholds_of_millions_of_values_are_those_of_sorted_values(n_rows, n_digits):
    column = np.random.default_rng(n_rows).standard_normal(n_rows)
    column = column if n_digits is None else column.round(n_digits)
    found = _core.find_thresholds(column[:, None], np.ones(n_rows, np.int64), 255, 2)[0]
    value, count = np.unique(column + 0.0, return_counts=True)
    counts = _core.ValueCounts(1)  # sorts the values
    counts.add(value[:, None], count, 0, 1)
    np.testing.assert_array_equal(found, counts.thresholds([], 255, 1)[0])
