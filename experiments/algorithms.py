"""Compare algorithms and choices of the base class: errors and times on the six data sets.

``python -m experiments.algorithms run [data set ...]`` measures cells missing in
``experiments/results/algorithms.jsonl``; ``python -m experiments.algorithms show`` prints the table
that ``python -m experiments report`` writes into ``docs/paper.md``.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass
from abcgbm.demo import Readings, error_curve, loss_curve
from experiments import datasets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results" / "algorithms.jsonl"
SETTING = {"max_leaf_nodes": 20, "learning_rate": 0.1, "max_iter": 100}

# How a base class is chosen; "s2g5": two candidates, kept for five more iterations.
VARIANTS: dict[str, dict[str, Any]] = {
    "mart": {"algorithm": "mart"},
    "abc-mart, worst": {"algorithm": "abc-mart"},
    "abc-mart, s2g5": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=5, line_search=False)},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost, worst": {"algorithm": AdaptiveBaseClass("logitboost", line_search=False)},
    "abc-logitboost, s2g5": {
        "algorithm": AdaptiveBaseClass("logitboost", n_candidates=2, gap=5, line_search=False)
    },
    "shared trees": {"algorithm": "multi-output", "l2_regularization": 0.001},
    "abc-mart, exhaustive": {"algorithm": AdaptiveBaseClass(n_candidates=None, line_search=False)},
    "abc-logitboost, exhaustive": {
        "algorithm": AdaptiveBaseClass("logitboost", n_candidates=None, line_search=False)
    },
}


def measure(name: str, variant: str) -> dict[str, Any]:
    """Fit on all rows, and on nine tenths to choose an iteration by the last tenth."""
    data = datasets.load(name)
    is_held_out = np.arange(len(data.y_train)) % 10 == 9
    chooser = _model(variant).fit(data.X_train[~is_held_out], data.y_train[~is_held_out])
    started = time.process_time()
    model = _model(variant).fit(data.X_train, data.y_train)
    seconds = time.process_time() - started
    errors = error_curve(model, data.X_test, data.y_test)
    validation = loss_curve(chooser, data.X_train[is_held_out], data.y_train[is_held_out])
    readings = Readings.from_curves(errors, validation)
    return {
        "dataset": name,
        "variant": variant,
        "n_test": len(data.y_test),
        "lowest_errors": readings.lowest.errors,
        "lowest_step": readings.lowest.iteration,
        "final_errors": readings.last.errors,
        "validated_errors": readings.validated.errors,
        "validated_step": readings.validated.iteration,
        "train_loss": float(model.history_.train_loss[-1]),
        "cpu_seconds": round(seconds, 2),
    }


def _model(variant: str) -> ABCBoostClassifier:
    return ABCBoostClassifier.paper(**SETTING, **VARIANTS[variant], n_jobs=1)


def run(names: list[str]) -> None:
    """Measure every missing cell; each result is saved at once."""
    RESULTS.parent.mkdir(exist_ok=True)
    for name in names:
        for variant in VARIANTS:
            if (name, variant) in _results():
                continue
            cell = measure(name, variant)
            with RESULTS.open("a") as file:
                file.write(json.dumps(cell) + "\n")
            print(f"{name}: {variant}: {cell}", flush=True)


def _results() -> dict[tuple[str, str], dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    cells = map(json.loads, RESULTS.read_text().splitlines())
    return {(cell["dataset"], cell["variant"]): cell for cell in cells}


# Display names of the variants in the results.
TITLES = {
    "abc-mart, worst": "abc-mart, 1 candidate",
    "abc-mart, s2g5": "abc-mart, 2 candidates",
    "abc-logitboost, worst": "abc-logitboost, 1 candidate",
    "abc-logitboost, s2g5": "abc-logitboost, 2 candidates",
    "shared trees": "multi-output",
    "abc-mart, exhaustive": "abc-mart, all candidates",
    "abc-logitboost, exhaustive": "abc-logitboost, all candidates",
}


def table() -> str:
    """Return the table of the results."""
    lines = [
        "| | " + " | ".join(TITLES.get(variant, variant) for variant in VARIANTS) + " |",
        "|---" * (len(VARIANTS) + 1) + "|",
        *(line for name in datasets.NAMES for line in _lines(name)),
    ]
    return "\n".join(lines)


def _lines(name: str) -> list[str]:
    cells = {variant: cell for (of, variant), cell in _results().items() if of == name}
    if not cells:
        return []
    n_test = next(iter(cells.values()))["n_test"]

    def line(head: str, *keys: str) -> str:
        shown = [
            " / ".join(str(cells[v][key]) for key in keys) if v in cells else "" for v in VARIANTS
        ]
        return f"| {head} | " + " | ".join(shown) + " |"

    return [
        line(
            f"**{name}** ({n_test} test rows)", "lowest_errors", "final_errors", "validated_errors"
        ),
        line("CPU seconds", "cpu_seconds"),
    ]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("names", nargs="*", default=list(datasets.NAMES), metavar="data set")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.names)
    else:
        print(table())


if __name__ == "__main__":
    main()
