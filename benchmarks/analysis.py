"""Pure functions that the page and the figures compute from measurements."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from benchmarks import generated
from benchmarks.peers import OURS, SYSTEMS
from benchmarks.results import Results, with_max_iterations

Values = Mapping[tuple[str, str], float]  # (set, system) -> a number
Curves = Mapping[str, Sequence[int]]  # system -> test errors after each iteration
CLOCKS = {1: "cpu", 2: "wall"}  # with two threads, wall time matters


def speed_ups(results: Results) -> tuple[Values, Values]:
    """Return wall time of one thread over that of two, on an idle machine and under load."""
    return _one_over_two(results, "training", min), _one_over_two(results, "load", median)


def _one_over_two(
    results: Results, what: str, pick: Callable[[Iterable[float]], float]
) -> dict[tuple[str, str], float]:
    one, two = (results.table(what, "wall", threads, pick) for threads in (1, 2))
    return {key: one[key] / two[key] for key in one if key in two and key[1] in OURS}


def error_curves(results: Results) -> dict[str, dict[str, list[int]]]:
    """Return the test errors after each iteration, by set and system."""
    curves: dict[str, dict[str, list[int]]] = {}
    for line in with_max_iterations(results.measured("curve")):
        curves.setdefault(line["set"], {})[line["system"]] = line["errors"]
    return curves


def target_errors(curves: Curves) -> int:
    """Return the largest final number of errors of the systems with one tree per class."""
    judged = [errors for name, errors in curves.items() if SYSTEMS[name].has_tree_per_class]
    return max(errors[-1] for errors in judged or curves.values())


def steps_to(errors: Sequence[int], target: int) -> int | None:
    """Return the first iteration with at most this number of errors; None if there is none."""
    return next((step for step, count in enumerate(errors, 1) if count <= target), None)


def seconds_to_target(curves: Mapping[str, Curves], fits: Values) -> Values:
    """Return the fraction of each training time until the target of its set is reached."""
    targets = {name: target_errors(of_set) for name, of_set in curves.items()}
    return {
        (name, system): steps / len(errors) * fits[name, system]
        for name, of_set in curves.items()
        for system, errors in of_set.items()
        if (name, system) in fits and (steps := steps_to(errors, targets[name])) is not None
    }


def grids(values: Values) -> dict[str, dict[str, dict[int, float]]]:
    """Return seconds by axis (N, D, K), system and the number that is varied."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for position, (axis, shapes) in enumerate(generated.GRIDS.items()):
        for shape in shapes:
            for (name, system), taken in values.items():
                if name == shape.name:
                    of_axis = found.setdefault(axis, {}).setdefault(system, {})
                    of_axis[shape[position]] = taken
    return found


def slope(points: Mapping[int, float]) -> float | None:
    """Return the least-squares slope of log seconds over log number; None for less than two."""
    if len(points) < 2:
        return None
    return float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])
