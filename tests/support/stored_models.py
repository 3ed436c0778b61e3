"""The model files of formats 1 and 2 in `tests/stored/models/`, which every later version must load.

Run as a script, it writes missing files of format 2 and never overwrites one. Files of format 1 were written by
versions 0.1 and 0.2.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, Categorical, TimeLimit
from models import ensemble_arrays

FOLDER = Path(__file__).parents[1] / "stored" / "models"
TREES = np.array(["ash", "birch", "cedar"])
DAYS = np.array(["2020-02-29", "2021-12-31", "1969-07-20"], "M8[D]")


def numbers() -> np.ndarray:
    """Return ninety rows of three features with missing values, from a generator independent of libraries."""
    values = np.empty(270)
    state = 12345
    for place in range(270):
        state = state * 1103515245 % 2**31 + 12345
        values[place] = state % 1000 / 100
    X = values.reshape(90, 3)
    X[X > 9.5] = np.nan
    return X


def frame() -> pd.DataFrame:
    X = numbers()
    table = pd.DataFrame(X, columns=["height", "girth", "alder?"])
    table["soil"] = np.array(["clay", "peat", None, "sänd"], object)[
        np.nan_to_num(X[:, 0]).astype(int) % 4
    ]
    return table


def class_numbers() -> np.ndarray:
    X = np.nan_to_num(numbers())
    return (X[:, 0] > 4).astype(int) + (X[:, 1] + X[:, 2] > 9)


def rows() -> dict[str, tuple[Any, Any]]:
    """Return the table and the labels that each model was fitted to."""
    X, table, y = numbers(), frame(), class_numbers()
    return {
        "per_class": (table, TREES[y]),
        "shared": (table, y),
        "two_classes": (X, y > 0),
        "dates": (X, DAYS[y]),
        "fixed_base": (table, TREES[y]),
        "base_label": (X, y),
        "exhaustive": (X, y),
        "class_by_class": (X, y),
        "worst_with_mart": (table, TREES[y]),
        "shared_mart": (table, TREES[y]),
        "abc_none": (X, y),
        "format_2_default": (table, TREES[y]),
        "format_2_objects": (table, DAYS[y]),
    }


SMALL = {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 3}
FORMAT_2 = {
    "format_2_default": ABCBoostClassifier(early_stopping=True, refit=True, **SMALL),
    "format_2_objects": ABCBoostClassifier(
        AdaptiveBaseClass("logitboost", n_candidates=2, gap=1, min_gain=0.01, baseline="prior"),
        categorical_features=Categorical(["soil"], smoothing=2.0),
        class_weight="balanced",
        callbacks=[TimeLimit(3600.0)],
        **SMALL,
    ),
}
# Digests of the models that version 0.2 trained after loading the files of format 1.
TRAINED_AGAIN = {
    "per_class": "042b81c727951dea75527219f39c4ea8",
    "shared": "773b0609b6aaa426a39b7805129b7624",
    "two_classes": "43654c8940290db09def8ee1c8855877",
    "dates": "c1c8add7984b43f0078b9114db4beaca",
    "fixed_base": "0a278b95096b25c1b9414c065b936764",
    "base_label": "486c0680c380e25185a6560fa842eda9",
    "exhaustive": "38d337781428be9eb2c54463de8cb5d9",
    "class_by_class": "d4b7dd7d55f3dbbc35b5bfd9ed6f66bf",
    "worst_with_mart": "0f17e5e28b02d09cd77f339fdded9b5d",
    "shared_mart": "0b8d481a4a938d3e9726b228dfd6d51a",
    "abc_none": "124afb0e21f64c2e0cec21a356fcde29",
}


def digest(model: ABCBoostClassifier) -> str:
    """Return a digest of the trees by stored names, and of the sums of the training loss."""
    sha = hashlib.sha256()
    for name, array in sorted(ensemble_arrays(model).items()):
        little = array.astype(array.dtype.newbyteorder("<"))
        sha.update(f"{name} {little.dtype.str} {little.shape} ".encode())
        sha.update(little.tobytes())
    sha.update(model.history_.train_loss.tobytes())
    return sha.hexdigest()[:32]


def main() -> None:
    """Write the missing files of format 2."""
    for name, model in FORMAT_2.items():
        path, (X, y) = FOLDER / f"{name}.abcgbm", rows()[name]
        if path.exists():
            continue
        model.fit(X, y).save_model(path)
        expected = {
            "classes": [str(label) for label in model.classes_],
            "probabilities": model.predict_proba(X[:12]).tolist(),
            "loss": model.history_.train_loss.tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
