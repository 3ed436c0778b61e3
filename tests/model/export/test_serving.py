"""Serving: the packages needed to load a model, and the benchmark from run to page."""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from models import noisy_data, run_python, small

X, Y = noisy_data(n_rows=200)
OPTIONAL = ("pandas", "pyarrow", "polars", "matplotlib", "onnx", "skl2onnx", "treelite")
LOAD_AND_PREDICT = """
import pickle
with open({path!r}, "rb") as file:
    models = pickle.load(file)
print([model.predict_proba([[0.5, 1.0, -1.0, 0.0]]).shape for model in models])
"""


@pytest.fixture
def load_and_predict(tmp_path):
    """Return a program that loads saved models and predicts."""
    models = [small(algorithm).fit(X, Y) for algorithm in ("mart", "multi-output")]
    (tmp_path / "models").write_bytes(pickle.dumps(models))
    return LOAD_AND_PREDICT.format(path=str(tmp_path / "models"))


def test_loading_and_predicting_need_no_optional_package(load_and_predict):
    absent = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))"
    assert run_python(absent + load_and_predict) == "[(1, 4), (1, 4)]\n"


def test_loading_and_predicting_import_no_optional_package(load_and_predict):
    """Optional packages that scikit-learn imports itself are excluded."""
    before = f"import sys, sklearn.utils.validation; optional = {{*{OPTIONAL}}} - {{*sys.modules}}"
    after = "print(sorted(optional & {*sys.modules}))"
    assert run_python(before + load_and_predict + after) == "[(1, 4), (1, 4)]\n[]\n"


@pytest.mark.parametrize(
    ("module", "method", "extra"),
    [
        ("onnx", "to_onnx", "onnx"),
        ("skl2onnx", "register_onnx", "onnx"),
        ("treelite", "to_treelite", "treelite"),
    ],
)
def test_missing_package_error_names_its_extra(module, method, extra, monkeypatch):
    model = small(max_iter=1).fit(X, Y)
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'pip install "abcgbm\[{extra}\]"'):
        getattr(model, method)()


# ------------------------------------------------------------------------------------- the benchmark


@pytest.fixture
def serving():
    if not (Path(__file__).parents[3] / "benchmarks").is_dir():
        pytest.skip("benchmarks/ is not in the source distribution")
    from benchmarks import serving  # noqa: PLC0415

    return serving


@pytest.fixture
def tiny_run(serving, tmp_path, monkeypatch):
    """Return the file of a run of our system in this process."""
    monkeypatch.setattr(serving, "in_child", serving.measure)
    file = tmp_path / "serving.jsonl"
    size = "--set 120x3x3 --steps 2 --leaves 4 --rounds 2 --calls 8"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        serving.main(f"run --file {file} --systems mart shared {size}".split())
    return file


def test_repeats_alternate_between_systems(serving, tiny_run):
    lines = serving.Results(tiny_run).lines
    order = [("mart", 0), ("shared", 0), ("mart", 1), ("shared", 1)]
    assert [(of["system"], of["round"]) for of in lines] == order
    assert all(0 < of[way]["p50"] <= of[way]["p99"] for of in lines for way in serving.WAYS)


def test_page_shows_the_best_repeat(serving, tiny_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words\n<!-- serving -->\nold\n<!-- end of serving -->\nmore\n")
    serving.main(["report", "--file", str(tiny_run), "--page", str(page)])
    best = min(
        of["alone"]["p50"] for of in serving.Results(tiny_run).lines if of["system"] == "mart"
    )
    row = next(line for line in page.read_text().splitlines() if line.startswith("| mart |"))
    assert f"| {best:,.0f} / " in row
    assert "old" not in page.read_text()


def test_every_call_is_one_row(serving):
    seen = []
    serving.latencies(lambda rows: seen.append(rows.copy()), X, 201)
    assert {rows.shape for rows in seen} == {(1, 4)}
    np.testing.assert_array_equal(np.concatenate(seen), X[[*range(200), 0]])


def test_percentiles_are_in_microseconds(serving):
    assert serving.summary([1e-6 * n for n in range(1, 102)]) == {"p50": 51.0, "p99": 100.0}
