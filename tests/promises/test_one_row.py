"""Prediction of single rows and small batches: its shortcuts do not change the result."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from abcgbm.parameters.machine import effective_n_threads
from models import noisy_data, small

X, Y = noisy_data(n_rows=200, n_features=5)
TYPES = {"a": np.float64, "b": np.float32, "c": np.int8, "d": np.uint64, "e": bool}
FRAME = pd.DataFrame(np.nan_to_num(X, nan=3.0) * 5, columns=list(TYPES)).abs().astype(TYPES)
NUMBERS = np.column_stack([FRAME[name].to_numpy(np.float64) for name in TYPES])
each_size = pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 7, 63, 64, 65, 128, 129])


@each_size
@pytest.mark.parametrize(
    "variant",
    [{"algorithm": "mart"}, {}, {"algorithm": "multi-output"}],
    ids=["mart", "abc-mart", "shared"],
)
def test_few_rows_get_the_predictions_they_get_among_all(variant, n_rows):
    model = small(**variant).fit(X, Y)
    proba = model.predict_proba(X)
    for start in (0, 50):
        rows = slice(start, start + n_rows)
        assert model.predict_proba(X[rows]).tobytes() == proba[rows].tobytes()
        log_proba = model.predict_log_proba(X)[rows]
        assert model.predict_log_proba(X[rows]).tobytes() == log_proba.tobytes()


@each_size
def test_numeric_frame_of_any_type_is_predicted_as_its_floats(n_rows):
    model, of_array = small().fit(FRAME, Y), small().fit(NUMBERS, Y)
    proba = of_array.predict_proba(NUMBERS[:n_rows])
    assert model.predict_proba(FRAME[:n_rows]).tobytes() == proba.tobytes()
    assert model.predict_proba(FRAME[:n_rows][list("dcabe")]).tobytes() == proba.tobytes()


def test_number_beyond_the_float_range_is_infinite_in_a_row():
    model = small().fit(X, Y)
    row = X[:1].astype(np.longdouble)
    row[0, 0] = np.longdouble("1e400")
    infinite = np.array(X[:1])
    infinite[0, 0] = np.inf
    expected = model.predict_proba(infinite).tobytes()
    assert model.predict_proba(row).tobytes() == expected
    with pytest.warns(UserWarning, match="X has feature names, but"):
        assert model.predict_proba(pd.DataFrame(row, columns=list("abcde"))).tobytes() == expected


def test_unfitted_model_is_an_error():
    with pytest.raises(NotFittedError, match="This ABCBoostClassifier instance is not fitted yet"):
        small().predict_proba(X[:1])


def test_cpu_limit_is_read_again(monkeypatch):
    for limit in ("1", "2", "1"):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", limit)
        assert effective_n_threads(None) == effective_n_threads(-1) == joblib.cpu_count()
