"""The model files under `tests/data/models/`, of format 1: they load for ever.

Run as a script it writes those that are not there yet; none is ever written anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from abcgbm import ABCBoostClassifier, BaseClassSearch

FOLDER = Path(__file__).parent / "data" / "models"
TREES = np.array(["ash", "birch", "cedar"])
DAYS = np.array(["2020-02-29", "2021-12-31", "1969-07-20"], "M8[D]")


def numbers() -> np.ndarray:
    """Ninety rows of three features, from a generator that no library changes; some missing."""
    drawn = np.empty(270)
    state = 12345
    for place in range(270):
        state = state * 1103515245 % 2**31 + 12345
        drawn[place] = state % 1000 / 100
    X = drawn.reshape(90, 3)
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


SMALL = {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 3}


def fitted() -> dict[str, tuple[ABCBoostClassifier, Any]]:
    """Each model, and the rows whose probabilities are kept beside it."""
    y, search = class_numbers(), BaseClassSearch(2, gap=1)
    per_class = ABCBoostClassifier("abc-logitboost", base_class=search, **SMALL)
    shared = ABCBoostClassifier(trees="shared", early_stopping=True, refit=True, **SMALL)
    two = ABCBoostClassifier("mart", class_weight={True: 2.0}, **SMALL)
    dates = ABCBoostClassifier("logitboost", init="prior", **SMALL)
    return {
        "per_class": (per_class.fit(frame(), TREES[y]), frame()),
        "shared": (shared.fit(frame(), y), frame()),
        "two_classes": (two.fit(numbers(), y > 0), numbers()),
        "dates": (dates.fit(numbers(), DAYS[y]), numbers()),
    }


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (model, rows) in fitted().items():
        path = FOLDER / f"{name}.abcgbm"
        if path.exists():
            continue
        model.save_model(path)
        expected = {
            "classes": [str(label) for label in model.classes_],
            "probabilities": model.predict_proba(rows[:12]).tolist(),
            "loss": model.train_loss_.tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
