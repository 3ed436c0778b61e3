"""ONNX export: onnxruntime gives the predictions of the model."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder

from abcgbm import ABCBoostClassifier, Categorical
from export_cases import CASES, FRAME, FRAME_Y, LONG, NAMES, X, Y, case, long_case
from models import small

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
data_types = pytest.importorskip("skl2onnx.common.data_types")


def run(model, rows):
    """Labels and probabilities as onnxruntime gives them."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    return session.run(None, feeds(rows, names))


def feeds(rows, names):
    if len(names) == 1:
        return {names[0]: np.asarray(rows, dtype=np.float32)}
    return {name: column(rows[name]) for name in names}


def column(values):
    if values.dtype.kind == "f" or values.name == "number":
        return values.to_numpy(np.float32, na_value=np.nan)[:, None]
    return values.fillna("").to_numpy(object)[:, None]


@pytest.mark.parametrize("name", [name for name in CASES if name != "dates"])
def test_onnxruntime_gives_the_answers_of_the_model(name):
    model, rows = case(name)
    exported = model.to_onnx()
    onnx.checker.check_model(exported)
    label, proba = run(exported, rows)
    assert proba.dtype == np.float32
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-7)
    assert label.tolist() == model.predict(rows).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_thousand_iterations_lose_no_precision(name):
    model, rows = long_case(name)
    label, proba = run(model.to_onnx(), rows)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-7)
    assert label.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("name", ["shared", "abc-mart", "frame, mart", "numbered"])
@pytest.mark.parametrize("n_rows", [0, 1])
def test_batch_may_be_of_any_size(name, n_rows):
    model, rows = case(name)
    label, proba = run(model.to_onnx(), rows[:n_rows])
    assert label.shape == (n_rows,)
    expected = model.predict_proba(rows[:1])[:n_rows]
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-7)


def test_feature_may_have_thousands_of_categories():
    rng = np.random.default_rng(0)
    codes = rng.permutation(3000)[:, None]
    parameters = {
        "min_samples_leaf": 1,
        "categorical_features": Categorical([0], smoothing=0.0, penalty=0.0),
    }
    model = small("mart", **parameters).fit(codes, codes[:, 0] % 3)
    assert model.score(codes, codes[:, 0] % 3) > 0.9
    rows = np.float32(codes)
    _, proba = run(model.to_onnx(), rows)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-7)


def test_file_holds_the_model(tmp_path):
    model, _ = case("mart")
    assert model.to_onnx(tmp_path / "model.onnx") is None
    assert onnx.load(tmp_path / "model.onnx") == model.to_onnx()


def test_file_is_reproducible():
    one, other = (small().fit(FRAME, FRAME_Y).to_onnx() for _ in range(2))
    assert one.SerializeToString() == other.SerializeToString()


def test_columns_are_separate_inputs_if_categories_are_strings():
    exported = case("frame, mart").model.to_onnx()
    assert [given.name for given in exported.graph.input] == list(FRAME)
    assert [given.name for given in case("numbered").model.to_onnx().graph.input] == ["X"]


def test_float_near_a_category_is_not_that_category():
    """0.1 as a float32 is not 0.1, in ONNX as in the model."""
    levels = np.repeat([0.1, 0.5, np.inf], 40)
    model = small(categorical_features=[0]).fit(levels[:, None], np.repeat([0, 1, 2], 40))
    rows = np.float32([[0.1], [0.5], [np.inf], [-np.inf], [np.nan], [0.7]])
    with pytest.warns(UserWarning, match="the category 0.1, which is no 32-bit float"):
        exported = model.to_onnx()
    _, proba = run(exported, rows)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-7)
    assert not np.allclose(proba[0], model.predict_proba([[0.1]]))


def test_category_beyond_the_range_of_32_bit_floats_has_one_warning():
    """NumPy's own warning of an overflow would be of no use to the user."""
    categories = np.repeat([1e300, 0.5, 2.0], 40)
    model = small(categorical_features=[0]).fit(categories[:, None], np.repeat([0, 1, 2], 40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.to_onnx()
    (warning,) = caught
    assert "the category 1e+300, which is no 32-bit float" in str(warning.message)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("kind", "warns"), [("FloatTensorType", True), ("DoubleTensorType", False)]
)
def test_skl2onnx_warns_of_categories_that_its_input_cannot_represent(kind, warns):
    categories = np.repeat([0.1, 0.5, 2.0], 40)
    model = small(categorical_features=[0]).fit(categories[:, None], np.repeat([0, 1, 2], 40))
    given = [("X", getattr(data_types, kind)([None, 1]))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        skl2onnx.convert_sklearn(model, initial_types=given, target_opset=18)
    texts = [str(warning.message) for warning in caught]
    assert any("the category 0.1, which is no 32-bit float" in text for text in texts) == warns


def test_negative_zero_is_the_category_zero():
    levels = np.repeat([[0.0], [1.0], [-np.inf]], 40, axis=0)
    model = small(categorical_features=[0]).fit(levels, np.repeat([0, 1, 2], 40))
    rows = np.float32([[-0.0], [0.0], [1.0], [1.0], [-np.inf]])
    _, proba = run(model.to_onnx(), rows)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-7)
    assert proba[0].tolist() == proba[1].tolist() != proba[3].tolist()


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param([datetime.date(2026, 1, 1 + y) for y in Y], id="dates"),
        pytest.param(np.datetime64("2026-01-01", "ns") + Y, id="nanoseconds"),
        pytest.param([2**63 + int(y) for y in Y], id="large"),
    ],
)
def test_label_types_unknown_to_onnx_are_refused(labels):
    with pytest.raises(ValueError, match="expected strings or 64-bit integers"):
        small(max_iter=1).fit(X, labels).to_onnx()


def test_model_that_rejects_unknown_categories_is_refused():
    model = small(max_iter=1, categorical_features=Categorical(handle_unknown="error")).fit(
        FRAME, FRAME_Y
    )
    with pytest.raises(
        ValueError,
        match="handle_unknown='error'; expected a model fitted with handle_unknown='missing'",
    ):
        model.to_onnx()


@pytest.mark.parametrize("name", ["label", "probabilities", ""])
def test_column_with_the_name_of_an_output_is_refused(name):
    model = small(max_iter=1).fit(FRAME.rename(columns={"size": name}), FRAME_Y)
    with pytest.raises(ValueError, match=f"X has a column named '{name}'"):
        model.to_onnx()


# ----------------------------------------------------------------------------------------- pipelines


@pytest.fixture
def registered():
    ABCBoostClassifier.register_onnx()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("FloatTensorType", np.float32), ("DoubleTensorType", np.float64)],
)
@pytest.mark.parametrize("labels", [Y, NAMES[Y]], ids=["numbers", "strings"])
def test_pipeline_is_converted_by_skl2onnx(kind, dtype, labels):
    pipeline = make_pipeline(MinMaxScaler((0, 8)), small("abc-mart")).fit(X, labels)
    exported = skl2onnx.convert_sklearn(
        pipeline,
        initial_types=[("X", getattr(data_types, kind)([None, X.shape[1]]))],
        options={"zipmap": False},
        target_opset=18,
    )
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    label, proba = session.run(None, {"X": X.astype(dtype)})
    assert proba.dtype == dtype
    assert label.tolist() == pipeline.predict(X).tolist()
    np.testing.assert_allclose(proba, pipeline.predict_proba(X), rtol=0, atol=1e-6)


@pytest.mark.usefixtures("registered")
def test_pipeline_with_an_ordinal_encoder_is_converted():

    frame = pd.DataFrame({"of_150": FRAME["of 150"], "size": X[:, 0]})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    first = make_column_transformer((encoder, ["of_150"]), remainder="passthrough")
    last = small(categorical_features=Categorical([0], penalty=0.0))
    pipeline = make_pipeline(first, last).fit(frame, FRAME_Y)
    assert last.feature_importances_[0] > 0
    exported = skl2onnx.convert_sklearn(
        pipeline,
        initial_types=[
            ("of_150", data_types.StringTensorType([None, 1])),
            ("size", data_types.FloatTensorType([None, 1])),
        ],
        options={"zipmap": False},
        target_opset=18,
    )
    rows = pd.concat([frame, frame.assign(of_150="unseen")], ignore_index=True)
    _, proba = run(exported, rows)
    np.testing.assert_allclose(proba, pipeline.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.usefixtures("registered")
def test_strings_inside_a_pipeline_are_refused():
    model = small(max_iter=1, categorical_features=[0]).fit(FRAME[["of 150"]], FRAME_Y)
    with pytest.raises(ValueError, match="expected numbers, such as"):
        skl2onnx.convert_sklearn(
            model, initial_types=[("X", data_types.StringTensorType([None, 1]))]
        )


@pytest.mark.usefixtures("registered")
def test_skl2onnx_zips_probabilities_by_default():
    model, rows = case("string classes")
    given = [("X", data_types.FloatTensorType([None, X.shape[1]]))]
    _, zipped = run(skl2onnx.convert_sklearn(model, initial_types=given, target_opset=18), rows)
    assert [*zipped[0]] == model.classes_.tolist()
    assert zipped[0] == pytest.approx(
        dict(zip(model.classes_, model.predict_proba(rows)[0], strict=True))
    )
