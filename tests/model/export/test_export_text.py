"""JSON and text dumps: JSON suffices to compute scores, text is for reading."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from export_cases import CASES, FRAME, case, raw
from models import small


def scores_from(dump, row):
    """Return the scores of a row given as a dictionary by feature; None is missing."""
    scores = dict(zip(dump["classes"], dump["start"], strict=True))
    for tree in dump["trees"]:
        node = tree["nodes"][0]
        while "left" in node:
            x, at_most = row[node["feature"]], float(node.get("at_most", 0))
            is_left = x in node["among"] if "among" in node else x is not None and x <= at_most
            node = tree["nodes"][
                node[node["missing"] if x is None else "left" if is_left else "right"]
            ]
        values = node.get("values") or [
            node["value"] if k == tree["class"] else 0.0 for k in scores
        ]
        scores = {k: scores[k] + value for k, value in zip(scores, values, strict=True)}
        if "base" in tree:
            scores[tree["base"]] -= node["value"] * tree["base_scale"]
    return list(scores.values())


def plain(value, levels):
    """Return a cell as in the dump: None for a missing value or an unknown category."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if levels is None or value in levels else None


@pytest.mark.parametrize("name", CASES)
def test_scores_of_the_json_are_those_of_the_model(name):
    model, rows = case(name)
    dump = json.loads(model.to_json())
    rows = rows[-150:]
    cells = rows.astype(object).to_numpy() if isinstance(rows, pd.DataFrame) else rows.tolist()
    features = dump["features"]
    scores = [
        scores_from(
            dump, {f["name"]: plain(x, f.get("levels")) for f, x in zip(features, row, strict=True)}
        )
        for row in cells
    ]
    assert np.array(scores).tobytes() == raw(model, rows).tobytes()
    labels = model.classes_.astype(str) if name == "dates" else model.classes_
    assert dump["classes"] == labels.tolist()


def test_json_has_names_instead_of_numbers():
    dump = json.loads(case("frame, mart").model.to_json())
    assert [feature["name"] for feature in dump["features"]] == list(FRAME)
    assert dump["features"][4] == {"name": "unused", "levels": ["same"]}
    among = [n["among"] for tree in dump["trees"] for n in tree["nodes"] if "among" in n]
    assert among
    assert {level for levels in among for level in levels} <= {
        *FRAME["of 150"],
        *FRAME["number"].dropna().unique(),
    }


def test_infinities_are_strings_in_json():
    dump = json.loads(case("infinities").model.to_json(), parse_constant=pytest.fail)
    thresholds = {n.get("at_most") for tree in dump["trees"] for n in tree["nodes"]}
    assert thresholds & {"inf", "-inf"}


def test_gains_and_weights_are_those_of_the_model():
    model, _ = case("abc-mart")
    nodes = [n for tree in json.loads(model.to_json())["trees"] for n in tree["nodes"]]
    assert [n["weight"] for n in nodes] == model.model_.ensemble.weight.tolist()
    assert [n.get("gain", 0.0) for n in nodes] == model.model_.ensemble.gain.tolist()


def test_iterations_count_from_zero():
    dump = json.loads(case("abc-mart").model.to_json())
    assert [tree["iteration"] for tree in dump["trees"]] == np.repeat(np.arange(8), 3).tolist()


@pytest.mark.parametrize("name", CASES)
def test_text_joins_the_text_of_each_tree(name):
    model, _ = case(name)
    frame = model.trees_to_dataframe()
    first = frame[frame["node"] == 0]
    trees = [model.tree(*place) for place in zip(first["iteration"], first["class"], strict=True)]
    scores = zip(model.classes_, model.baseline_, strict=True)
    start = ", ".join(f"{label} {score:+.4g}" for label, score in scores)
    assert model.to_text() == "\n\n".join([f"baseline: {start}", *map(str, trees)]) + "\n"


@pytest.mark.parametrize("method", ["to_json", "to_text", "to_c"])
def test_file_has_the_returned_text(method, tmp_path):
    model, _ = case("frame, abc-mart")
    write = getattr(model, method)
    assert write(tmp_path / "file") is None
    assert (tmp_path / "file").read_text("utf-8") == write()


@pytest.mark.parametrize("method", ["to_json", "to_text", "to_c", "to_onnx", "to_treelite"])
def test_unfitted_model_is_an_error(method):
    with pytest.raises(AttributeError, match="not fitted yet"):
        getattr(small(), method)()
