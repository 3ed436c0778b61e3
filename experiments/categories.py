"""Measure the effect of a column with many categories, noisy or informative, on a model.

The data have twenty informative numeric columns, eight classes, 4,000 rows each for training and test, and
the categorical column. Each fit writes a line of JSON; `report` prints means. Peers use their own defaults if
they can be imported:

    python -m experiments.categories run results.jsonl --systems multi-output LightGBM --seeds 20
    python -m experiments.categories report results.jsonl
"""

import argparse
import importlib
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

N_CLASSES, N_TRAIN, N_TEST = 8, 4000, 4000
LEVELS = (40, 400, 4000)


def abcgbm(**parameters: Any) -> Any:
    return importlib.import_module("abcgbm").ABCBoostClassifier(n_jobs=1, **parameters)


def lightgbm() -> Any:
    return importlib.import_module("lightgbm").LGBMClassifier(n_jobs=1, verbose=-1)


def xgboost() -> Any:
    return importlib.import_module("xgboost").XGBClassifier(n_jobs=1, enable_categorical=True)


def catboost(categories: list[str]) -> Any:
    options = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return importlib.import_module("catboost").CatBoostClassifier(
        cat_features=categories, **options
    )


ALGORITHMS = ("mart", "abc-mart", "logitboost", "abc-logitboost")
SYSTEMS: dict[str, Callable[[list[str]], Any]] = {
    **{name: lambda _, name=name: abcgbm(algorithm=name) for name in ALGORITHMS},
    "multi-output": lambda _: abcgbm(algorithm="multi-output"),
    "LightGBM": lambda _: lightgbm(),
    "XGBoost": lambda _: xgboost(),
    "CatBoost": catboost,
}


# ------------------------------------------------------------------------------------------- columns


def noise(y: np.ndarray, n_levels: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, n_levels, len(y))


def even(y: np.ndarray, n_levels: int, rng: np.random.Generator) -> np.ndarray:
    """Return a column in which half of the rows have a category of their class, the others any."""
    own = rng.integers(0, n_levels // N_CLASSES, len(y)) * N_CLASSES + y
    other = rng.integers(0, n_levels, len(y))
    return np.where(rng.random(len(y)) < 0.5, own, other)


def uneven(y: np.ndarray, n_levels: int, rng: np.random.Generator) -> np.ndarray:
    """Return few frequent and many rare categories, each with its own class frequencies."""
    share = rng.dirichlet(np.ones(N_CLASSES), n_levels) / np.arange(1, n_levels + 1)[:, None]
    share /= share.sum(axis=0)
    return np.array([rng.choice(n_levels, p=share[:, k]) for k in y])


COLUMNS = {"noise": noise, "even": even, "uneven": uneven}
CASES = [("none", 0), *((kind, n) for kind in COLUMNS for n in LEVELS)]


def table(kind: str, n_levels: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_classification(
        N_TRAIN + N_TEST,
        20,
        n_informative=20,
        n_redundant=0,
        n_classes=N_CLASSES,
        random_state=seed,
    )
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(20)])
    if kind != "none":
        codes = COLUMNS[kind](y, n_levels, np.random.default_rng(seed + 1000))
        frame["level"] = pd.Categorical([f"v{code}" for code in codes])
    return frame, y


# --------------------------------------------------------------------------------------------- runs


def measured(system: str, kind: str, n_levels: int, seed: int) -> dict[str, Any]:
    X, y = table(kind, n_levels, seed)
    model = SYSTEMS[system](["level"] if "level" in X else []).fit(X[:N_TRAIN], y[:N_TRAIN])
    proba, y = model.predict_proba(X[N_TRAIN:]), y[N_TRAIN:]
    of_label = np.maximum(proba[np.arange(len(y)), y], 1e-15)
    result = {"accuracy": float(np.mean(proba.argmax(axis=1) == y))}
    result["log_loss"] = float(-np.log(of_label).mean())
    return {"system": system, "column": kind, "levels": n_levels, "seed": seed} | result


def run(file: Path, systems: list[str], seeds: range) -> None:
    lines = file.read_text().splitlines() if file.exists() else []
    names = ("system", "column", "levels", "seed")
    done = {tuple(json.loads(line)[name] for name in names) for line in lines}
    for seed in seeds:
        for case in CASES:
            for system in systems:
                if (system, *case, seed) not in done:
                    with file.open("a") as out:
                        out.write(json.dumps(measured(system, *case, seed)) + "\n")


def report(file: Path) -> None:
    found = defaultdict(list)
    for cell in map(json.loads, file.read_text().splitlines()):
        found[cell["system"], cell["column"], cell["levels"]].append(cell["accuracy"])
    print("| | " + " | ".join(f"{kind} {n or ''}".strip() for kind, n in CASES) + " |")
    print("|---" * (len(CASES) + 1) + "|")
    for system in dict.fromkeys(key[0] for key in found):
        means = [found.get((system, *case)) for case in CASES]
        shown = [f"{np.mean(of):.3f}" if of else "" for of in means]
        print(f"| {system} | " + " | ".join(shown) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["multi-output"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    if given.command == "report":
        report(given.file)
    else:
        run(given.file, given.systems, range(given.first, given.first + given.seeds))


if __name__ == "__main__":
    main()
