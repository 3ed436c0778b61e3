"""The benchmark of explanations: it runs, and compares equal values."""

import json
from pathlib import Path

import numpy as np
import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks import explain, sets

SET = "300x4x3"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trees", explain.OF_TREES)
def test_shap_explains_our_own_trees(trees):
    pytest.importorskip("shap")
    data, setting = sets.load(SET), explain.Setting(trees, 6, 3)
    ours, theirs = (
        explain.SYSTEMS[name](data.X_train, data.y_train, setting) for name in ("ours", "shap")
    )
    assert ours.n_trees == theirs.n_trees
    found, expected = ours.explain(data.X_test[:5]), theirs.explain(data.X_test[:5])
    if trees == "per-class":  # theirs has one output, the sum over classes
        found, expected = found.sum(axis=2), expected.reshape(5, 4)
    else:
        expected = expected - expected.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_benchmark_measures_every_system(monkeypatch, tmp_path, capsys):
    for package in ("shap", "lightgbm", "xgboost"):
        pytest.importorskip(package)
    monkeypatch.setattr(explain, "FOLDER", tmp_path)
    sizes = ["--leaves", "4", "--steps", "2", "--rows", "20", "1", "--repeats", "1"]
    explain.main(["--set", SET, *sizes])
    lines = [json.loads(line) for line in (tmp_path / "explain.jsonl").read_text().splitlines()]
    assert [line["system"] for line in lines] == 2 * [*explain.SYSTEMS] + 2 * ["ours", "shap"]
    assert all(line["nanoseconds"] > 0 for line in lines)
    shown = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("| per-class", "| shared")) for line in shown) == 4
