"""The model is the same, byte for byte, for any thread count, row order, CPU and memory layout."""

import hashlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from abcgbm import (
    AdaptiveBaseClass,
    BinMapper,
    MultiOutputTrees,
    TreePerClass,
    _core,
)
from models import assert_same_model, model_bytes, noisy_data, run_python, small
from strategies import mixed_problem

VARIANTS = {
    "mart": {"algorithm": "mart"},
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "Mb": {"algorithm": AdaptiveBaseClass(base_derivatives=False)},
    "abc-mart": {"algorithm": "abc-mart"},
    "search": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "shared": {"algorithm": "multi-output"},
    "shared mart": {"algorithm": MultiOutputTrees("mart", baseline="zero")},
    "shared, drawn": {"algorithm": MultiOutputTrees(n_projections=3, baseline="zero")},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
X, Y = noisy_data(n_rows=6000, n_features=5, n_classes=5)
WEIGHT = np.random.default_rng(2).uniform(0.1, 4, len(Y))


@pytest.fixture(scope="module")
def expected():
    return {
        name: small(**variant, n_jobs=1).fit(X, Y, WEIGHT) for name, variant in VARIANTS.items()
    }


@pytest.mark.parametrize("n_jobs", [None, 2, 4, -1])
@pytest.mark.parametrize("name", VARIANTS)
def test_model_is_the_same_for_any_thread_count(name, n_jobs, expected):
    assert_same_model(small(**VARIANTS[name], n_jobs=n_jobs).fit(X, Y, WEIGHT), expected[name])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", VARIANTS)
def test_model_is_the_same_for_any_row_order(name, seed, expected):
    order = np.random.default_rng(seed).permutation(len(Y))
    model = small(**VARIANTS[name]).fit(X[order], Y[order], WEIGHT[order])
    assert_same_model(model, expected[name])
    assert model.predict_proba(X).tobytes() == expected[name].predict_proba(X).tobytes()


@pytest.mark.parametrize("n_classes", [2, 3, 9, 40])
def test_model_of_few_and_many_classes_is_the_same_for_any_row_order_and_thread_count(n_classes):
    X, y = noisy_data(n_rows=3000, n_classes=n_classes)
    order = np.random.default_rng(0).permutation(len(y))
    assert_same_model(small(n_jobs=4).fit(X[order], y[order]), small(n_jobs=1).fit(X, y))


def test_two_fits_give_the_same_model(expected):
    model = small("abc-mart")
    assert_same_model(model.fit(X, Y, WEIGHT).fit(X, Y, WEIGHT), expected["abc-mart"])


def test_different_tables_give_different_models():
    changed = X.copy()
    changed[:100] += 1
    assert model_bytes(small().fit(changed, Y)) != model_bytes(small().fit(X, Y))


# ------------------------------------------------------------------------------------- table types

ROUND = np.where(np.isnan(X), np.nan, np.round(X, 1)).astype(np.float32).astype(np.float64)
LAYOUTS = {
    "float32": lambda a: a.astype(np.float32),
    "big-endian": lambda a: a.astype(">f8"),
    "column by column": np.asfortranarray,
    "every second of twice the rows": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every second of twice the columns": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "turned over twice": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "not aligned": lambda a: (
        np.frombuffer(b"\0" + a.tobytes(), "u1")[1:].view("f8").reshape(a.shape)
    ),
    "lists": lambda a: a.tolist(),
    "frame": pd.DataFrame,
    "frame of sparse columns": lambda a: pd.DataFrame(a).astype(pd.SparseDtype(float, np.nan)),
    "polars": lambda a: pl.DataFrame(a, schema=list("abcde")),
    "Arrow": lambda a: pa.table([pa.array(x, from_pandas=True) for x in a.T], names=list("abcde")),
    "sparse by row": sparse.csr_matrix,
    "sparse by column": sparse.csc_array,
    "sparse by entry": sparse.coo_array,
    "objects": lambda a: a.astype(object),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_model_is_the_same_for_any_table_type(layout):
    table, plain = layout(ROUND), small().fit(ROUND, Y)
    model = small().fit(table, Y)
    assert_same_model(model, plain)
    assert model.predict_proba(table).tobytes() == plain.predict_proba(ROUND).tobytes()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_binned_table_is_the_same_for_any_table_type(layout):
    table = BinMapper(max_bins=30).fit(layout(ROUND)).transform(layout(ROUND))
    expected = BinMapper(max_bins=30).fit(ROUND).transform(ROUND)
    np.testing.assert_array_equal(table.binned.codes(), expected.binned.codes())


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_categorical_and_sparse_model_is_the_same_for_any_row_order_and_thread_count(n_jobs):
    frame = pd.DataFrame(ROUND, columns=list("abcde")).assign(
        b=np.char.mod("level %d", np.nan_to_num(ROUND[:, 1] * 100) % 300 // 1),
        c=pd.arrays.SparseArray(np.where(ROUND[:, 2] > 1, ROUND[:, 2], 0), fill_value=0),
    )
    order = np.random.default_rng(0).permutation(len(Y))
    expected = small(n_jobs=1).fit(frame, Y)
    assert {1, 2} <= set(expected.model_.ensemble.used_features)
    assert_same_model(small(n_jobs=n_jobs).fit(frame.iloc[order], Y[order]), expected)


def test_integer_columns_give_the_model_of_floats():
    whole = np.round(np.nan_to_num(X) * 3)
    for dtype in (np.int8, np.int64):
        assert_same_model(small().fit(whole.astype(dtype), Y), small().fit(whole, Y))


def test_negative_zero_equals_zero():
    table = np.round(np.nan_to_num(X))
    minus = np.where(table == 0, -0.0, table)
    assert_same_model(small().fit(minus, Y), small().fit(np.abs(table) * np.sign(table), Y))


# -------------------------------------------------------------------------------------- prediction


@every_variant
def test_prediction_is_the_same_for_any_thread_count_and_batch(variant):
    model = small(**variant, n_jobs=1).fit(X, Y)
    whole = model.predict_proba(X).tobytes()
    for n_jobs in (2, 3, 4):
        assert model.set_params(n_jobs=n_jobs).predict_proba(X).tobytes() == whole
    parts = [model.predict_proba(part) for part in np.array_split(X, [1, 2, 65, 1000, 4097])]
    assert np.concatenate(parts).tobytes() == whole


# ------------------------------------------------------------------------------------------- SIMD

LEVELS = ("baseline", "avx2", "avx512")
FINGERPRINT = """
import sys; sys.path.insert(0, {folder!r})
from test_determinism import fingerprint
sys.stdout.write(fingerprint())
"""


def fingerprint() -> str:
    """SIMD level and digest; class counts below, at and above the width of a SIMD register."""
    digest = hashlib.sha256()
    for n_classes in (2, 3, 8, 11):
        problem = mixed_problem(1, 1000, n_classes)  # numbers, categories, sparse columns
        X, y = problem.X, problem.y
        for variant in VARIANTS.values():
            model = small(**variant, categorical_features=problem.categorical).fit(X, y)
            digest.update(model.history_.candidate_losses.tobytes())
            digest.update(model_bytes(model))
            digest.update(model.predict_proba(X).tobytes())
            digest.update(model.predict_log_proba(X).tobytes())
            digest.update(model.explain(X[:99]).values.tobytes())
    return f"{_core.simd_level()} {digest.hexdigest()}"


@pytest.mark.parametrize("level", LEVELS)
def test_model_is_the_same_at_every_simd_level(level, request):
    best, expected = fingerprint().split()
    if LEVELS.index(level) > LEVELS.index(best):
        pytest.skip(f"this CPU has {best}, not {level}")
    code = FINGERPRINT.format(folder=str(request.path.parent))
    assert run_python(code, ABCGBM_SIMD=level).split() == [level, expected]
