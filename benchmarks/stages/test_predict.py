from functools import cache

import numpy as np

from abcgbm import ABCBoostClassifier


@cache
def model_of(table):
    rows = slice(0, 5_000)
    return ABCBoostClassifier("mart", max_iter=10, learning_rate=0.1, n_jobs=1).fit(
        table.X[rows], table.y[rows]
    )


def test_predict_proba_of_all_rows(benchmark, table):
    proba = benchmark(model_of(table).predict_proba, table.X)
    assert proba.shape == (len(table.y), table.n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    *_, staged = model_of(table).staged_predict_proba(table.X[:100])
    np.testing.assert_array_equal(proba[:100], staged)


def test_predict_proba_of_one_row(benchmark, table):
    model = model_of(table)
    proba = benchmark(model.predict_proba, table.X[7:8])
    np.testing.assert_array_equal(proba, model.predict_proba(table.X)[7:8])
