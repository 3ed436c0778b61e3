"""ABC-MART with many classes: training loss compared with MART, and how often steps are scaled back.

``python -m experiments.many_classes`` prints a Markdown table for generated data: K normal clouds in
20 dimensions whose centres are half a standard deviation apart in each.
"""

import numpy as np
from numpy.typing import NDArray

from abcgbm import ABCBoostClassifier

ROWS_PER_CLASS = {60: 100, 150: 60, 300: 40}
STEPS = (50, 100)


def generated(n_classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return overlapping clouds, one for each class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, 20)) * 0.5
    y = np.repeat(np.arange(n_classes), ROWS_PER_CLASS[n_classes])
    return centres[y] + rng.normal(size=(len(y), 20)), y


def line(n_classes: int) -> str:
    """Return one line of the table."""
    X, y = generated(n_classes)
    mart, abc = (
        ABCBoostClassifier.paper(algorithm, max_iter=max(STEPS), max_bins=63).fit(X, y)
        for algorithm in ("mart", "abc-mart")
    )
    cells = []
    for step in STEPS:
        ours, theirs = abc.history_.train_loss[step], mart.history_.train_loss[step]
        cells.append(f"{theirs:.1f} / {ours:.1f} ({ours / theirs:.2f})")
    ensemble = abc.model_.ensemble
    n_scaled_back = np.count_nonzero(ensemble.tree_base_scale[ensemble.iteration_start[:-1]] < 1)
    n_rises = np.count_nonzero(np.diff(abc.train_loss_) > 0)
    return f"| {n_classes} | {len(y)} | {' | '.join(cells)} | {n_scaled_back} | {n_rises} |"


def main() -> None:
    """Print the table."""
    heads = [f"loss after {step} steps, mart / abc-mart (ratio)" for step in STEPS]
    print(
        f"| K | rows | {' | '.join(heads)} | iterations that were scaled back | iterations that raised the loss |"
    )
    print("|---" * (len(heads) + 4) + "|")
    for n_classes in ROWS_PER_CLASS:
        print(line(n_classes), flush=True)


if __name__ == "__main__":
    main()
