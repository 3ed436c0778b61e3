"""The rows of a fit: which of a table's count, without a copy of it."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from abcgbm import BinMapper, TreePerClass
from abcgbm.data.samples import CountedRows, GivenRows
from abcgbm.data.table import Table, read_table
from models import assert_same_model, noisy_data, small

X, Y = noisy_data(n_rows=300, n_classes=3)
ABSENT = np.arange(300) % 4 == 0
SOME_ABSENT = {"sample_weight": np.where(ABSENT, 0.0, 1.0)}
NARROW = {"max_iter": 1, "max_leaf_nodes": 3, "max_bins": 8, "n_jobs": 1}
WAYS = {
    "held out": ({"early_stopping": True}, {}),
    "weight 0": ({}, SOME_ABSENT),
    "class weight 0": ({"class_weight": {0: 0}}, {}),
    "validation": ({}, {"X_val": X, "y_val": Y, "sample_weight_val": ABSENT}),
}
every_way = pytest.mark.parametrize(("parameters", "given"), WAYS.values(), ids=WAYS)


@every_way
def test_no_rows_are_taken_out_of_the_table(parameters, given, monkeypatch):
    monkeypatch.setattr(Table, "take", None)
    assert small(**parameters).fit(X, Y, **given).n_iter_ == 8


def test_rows_of_weight_zero_are_not_taken_out_for_a_mapper(monkeypatch):
    weight = SOME_ABSENT["sample_weight"]
    expected = BinMapper().fit(X[weight > 0], sample_weight=weight[weight > 0]).thresholds_
    monkeypatch.setattr(Table, "take", None)
    found = BinMapper().fit(X, **SOME_ABSENT).thresholds_
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def peak_of(function) -> int:
    """The most bytes of arrays that were there at a time, beyond those before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("order", ["C", "F"])
@every_way
def test_memory_of_a_fit_does_not_grow_with_a_copy_of_the_table(parameters, given, order):
    """A copy would take as much as the table; the few columns at a time that are one take 2 %."""
    wide = np.asarray(np.tile(X, (4, 100)), order=order)
    twice = {name: np.tile(value, 4) for name, value in given.items() if name != "X_val"}
    more = {"X_val": wide} if "X_val" in given else {}
    y = np.tile(Y, 4)
    peak = peak_of(lambda: small(**NARROW, **parameters).fit(wide, y, **twice, **more))
    assert peak < wide.nbytes / 4


def test_prior_takes_no_memory_for_each_row_and_class():
    y = np.arange(20_000) % 50
    model = small(TreePerClass("mart", baseline="prior"), **NARROW)
    peak = peak_of(lambda: model.fit(y[:, None].astype(float), y))
    assert peak < 8 * 50 * len(y) / 2


def test_sparse_columns_of_the_rows_that_count_have_the_bins_of_dense_ones():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 30)) < 0.9, 0, rng.normal(size=(300, 30)).round(1))
    dense[ABSENT] = np.where(rng.random((75, 30)) < 0.5, 77, dense[ABSENT])
    dense[:, 3] = np.where(ABSENT, 0, 1)  # the fill is in absent rows alone
    for form in (sparse.csr_array, sparse.csc_array, pd.DataFrame.sparse.from_spmatrix):
        table = form(sparse.csc_matrix(dense))
        mapper = BinMapper(8).fit(table, **SOME_ABSENT)
        expected = BinMapper(8).fit(dense[~ABSENT])
        for one, other in zip(mapper.thresholds_, expected.thresholds_, strict=True):
            np.testing.assert_array_equal(one, other)
        model = small(max_bins=8).fit(table, Y, **SOME_ABSENT)
        assert_same_model(model, small(max_bins=8).fit(dense[~ABSENT], Y[~ABSENT]))


def test_rows_are_numbered_as_in_the_table():
    counted = CountedRows.from_given(GivenRows(read_table(X), Y, **SOME_ABSENT))
    assert counted.which.tolist() == np.flatnonzero(~ABSENT).tolist()
    class_of_row, factor = counted.labels.astype(np.int32), np.array([1.0, 0.0, 2.0])
    rows = counted.with_class_weights(class_of_row, factor, counted.sums(class_of_row, 3))
    expected = np.flatnonzero(~ABSENT & (Y != 1))
    assert rows.row_numbers.tolist() == expected.tolist()
    assert rows.y.tolist() == Y[expected].tolist()
    assert rows.weight.tolist() == np.array([1.0, 0.0, 2.0])[Y[expected]].tolist()
    assert rows.class_factor == rows.weight.mean()  # of integers, so exact
    assert rows.integer_weights.weight.tolist() == rows.weight.tolist()
    assert rows.take(np.array([2, 5])).row_numbers.tolist() == expected[[2, 5]].tolist()
