"""Compare Shapley values with ``shap``, LightGBM and XGBoost: CPU time per row and tree, one thread.

``python -m benchmarks.explain`` fits models with the same number of leaves per tree, explains the same rows by
each system in turn, prints the best times, and appends them to ``benchmarks/results/explain.jsonl``. ``shap``
explains our trees, converted to its format; it is the only peer for multi-output trees. Models are fitted and
rows converted before the clock starts. ``--set`` is one of the paper's sets or a shape such as ``16000x16x26``.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from abcgbm import ABCBoostClassifier
from benchmarks import sets
from benchmarks.report import Lines, markdown
from benchmarks.results import FOLDER, Line, Results, origin

Rows = np.ndarray


class Explainer(NamedTuple):
    """A fitted model that explains rows, possibly converted beforehand."""

    package: str
    n_trees: int
    explain: Callable[[Any], Any]
    convert: Callable[[Rows], Any] = lambda X: X


class Setting(NamedTuple):
    """The kind of trees, and their size."""

    trees: str
    leaves: int
    steps: int


def ours(X: Rows, y: Rows, setting: Setting) -> Explainer:
    model = _fitted(X, y, setting)
    n_trees = len(model.model_.ensemble.tree_class)
    return Explainer("abcgbm", n_trees, lambda X: model.explain(X).values)


def shap(X: Rows, y: Rows, setting: Setting) -> Explainer:
    """Our trees in the format of ``shap``."""
    from shap import TreeExplainer  # noqa: PLC0415

    model = _fitted(X, y, setting)
    trees = [_as_shap_tree(nodes) for _, nodes in model.trees_to_dataframe().groupby("tree")]
    kinds = {"internal_dtype": np.float64, "input_dtype": np.float64}
    explainer = TreeExplainer({"trees": trees, **kinds})
    return Explainer("shap", len(trees), lambda X: explainer.shap_values(X, check_additivity=False))


def lightgbm(X: Rows, y: Rows, setting: Setting) -> Explainer:
    import lightgbm as package  # noqa: PLC0415

    given = {"objective": "multiclass", "num_class": int(y.max()) + 1, "num_leaves": setting.leaves}
    given |= {"min_data_in_leaf": 10, "num_threads": 1, "verbose": -1, "min_sum_hessian_in_leaf": 0}
    model = package.train(given, package.Dataset(X, y), setting.steps)
    return Explainer("lightgbm", model.num_trees(), lambda X: model.predict(X, pred_contrib=True))


def xgboost(X: Rows, y: Rows, setting: Setting) -> Explainer:
    import xgboost as package  # noqa: PLC0415

    n_classes = int(y.max()) + 1
    given = {"objective": "multi:softprob", "num_class": n_classes, "nthread": 1}
    given |= {"max_leaves": setting.leaves, "max_depth": 0, "grow_policy": "lossguide"}
    model = package.train(given, package.DMatrix(X, y, nthread=1), setting.steps)
    return Explainer(
        "xgboost",
        n_classes * setting.steps,
        lambda rows: model.predict(rows, pred_contribs=True),
        lambda X: package.DMatrix(X, nthread=1),
    )


def _fitted(X: Rows, y: Rows, setting: Setting) -> ABCBoostClassifier:
    algorithm = {"per-class": "mart", "shared": "multi-output"}[setting.trees]
    model = ABCBoostClassifier(
        algorithm,
        max_leaf_nodes=setting.leaves,
        max_iter=setting.steps,
        learning_rate=0.1,
        n_jobs=1,
    )
    return model.fit(X, y)


def _as_shap_tree(nodes: Any) -> dict[str, np.ndarray]:
    values = [name for name in nodes if name.startswith("value_")] or ["value"]
    left, right = nodes["left"].to_numpy(), nodes["right"].to_numpy()
    return {
        "children_left": left,
        "children_right": right,
        "children_default": np.where(nodes["missing"] == "left", left, right),
        "features": nodes["feature"]
        .map(lambda name: int(name[1:]), na_action="ignore")
        .fillna(-1)
        .to_numpy(dtype=np.int64),
        "thresholds": np.nan_to_num(nodes["threshold"].to_numpy()),
        "values": np.nan_to_num(nodes[values].to_numpy()),
        "node_sample_weight": nodes["weight"].to_numpy(),
    }


SYSTEMS = {"ours": ours, "shap": shap, "lightgbm": lightgbm, "xgboost": xgboost}
OF_TREES = {"per-class": tuple(SYSTEMS), "shared": ("ours", "shap")}


def nanoseconds(explainer: Explainer, X: Rows, n_calls: int) -> float:
    """Return the CPU time of a call, per row and tree."""
    rows = explainer.convert(X)
    began = time.process_time_ns()
    for _ in range(n_calls):
        explainer.explain(rows)
    return (time.process_time_ns() - began) / n_calls / len(X) / explainer.n_trees


def measure(name: str, setting: Setting, batches: list[int], repeats: int) -> list[Line]:
    """Measure all systems in turn on batches of a number of rows."""
    data = sets.load(name)
    systems = {s: SYSTEMS[s](data.X_train, data.y_train, setting) for s in OF_TREES[setting.trees]}
    best: dict[tuple[int, str], float] = {}
    for _, n_rows, (system, explainer) in itertools.product(
        range(repeats), batches, systems.items()
    ):
        found = nanoseconds(explainer, data.X_test[:n_rows], 20 if n_rows == 1 else 1)
        best[n_rows, system] = min(found, best.get((n_rows, system), np.inf))
    return [
        {"set": name, **setting._asdict(), "rows": n_rows, "system": system}
        | {"nanoseconds": round(of_system, 1), "repeats": repeats}
        | origin(systems[system].package)
        for (n_rows, system), of_system in best.items()
    ]


def table(lines: list[Line]) -> Lines:
    """Return a table of the times, with the ratio of the fastest peer to ours."""
    rows = []
    keys = dict.fromkeys((line["trees"], line["leaves"], line["rows"]) for line in lines)
    for key in keys:
        of = {
            line["system"]: line["nanoseconds"]
            for line in lines
            if (line["trees"], line["leaves"], line["rows"]) == key
        }
        shown = [f"{of[s]:,.0f}" if s in of else "" for s in SYSTEMS]
        ratio = min(ns for system, ns in of.items() if system != "ours") / of["ours"]
        rows.append([*key, *shown, f"{ratio:.1f}"])
    return markdown(["trees", "leaves", "rows", *SYSTEMS, "fastest other / ours"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="letter")
    parser.add_argument("--leaves", type=int, nargs="+", default=[20, 160])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 1])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    results, lines = Results(FOLDER / "explain.jsonl"), []
    for trees, leaves in itertools.product(OF_TREES, given.leaves):
        setting = Setting(trees, leaves, given.steps)
        lines += measure(given.set, setting, given.rows, given.repeats)
    for line in lines:
        results.add(line)
    print("nanoseconds per row and tree, one thread\n", *table(lines), sep="\n")


if __name__ == "__main__":
    main()
