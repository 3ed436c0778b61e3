"""Access to `abcgbm._core` for the tests of the core.

Run as a script, it prints the SIMD level in use and a fingerprint of trainings and predictions.
"""

import hashlib
import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import reference
from abcgbm import _core
from reference_multi_output import MULTI_OUTPUT
from strategies import Problem, mixed_problem, random_problem

NODE_ARRAYS = (*reference.NODE_ARRAYS, "left_set")
MULTI_OUTPUT_ARRAYS = ("leaf_value", "gain_feature", "class_gain")


def find_thresholds(X: Any, weight: Any, max_bins: int = 255, n_threads: int = 1) -> Any:
    return _core.find_thresholds(X, weight, max_bins, n_threads)


def builder(n_rows: int, thresholds: Any, categorical: Any = None) -> Any:
    is_categorical = np.zeros(len(thresholds), np.uint8) if categorical is None else categorical
    return _core.BinnedBuilder(n_rows, thresholds, is_categorical)


def bin_table(X: Any, thresholds: Any, n_threads: int = 1, categorical: Any = None) -> Any:
    this = builder(len(X), thresholds, categorical)
    this.add_block(np.arange(len(thresholds), dtype=np.int32), X, n_threads)
    return this.finish()


def as_sparse(X: np.ndarray, fill: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return fill, indptr, indices and data of the values that differ from the fill value of their column."""
    is_fill = (fill == X) | (np.isnan(X) & np.isnan(fill))
    columns, rows = np.nonzero(~is_fill.T)
    indptr = np.append(0, np.cumsum((~is_fill).sum(axis=0)))
    return fill, indptr, rows.astype(np.int32), X[rows, columns]


def bin_sparse(problem: Problem, fill: np.ndarray) -> Any:
    """Bin the table of a problem from sparse columns."""
    thresholds = [np.array(t) for t in problem.thresholds()]
    builder = _core.BinnedBuilder(
        len(problem.y), thresholds, problem.is_categorical().astype(np.uint8)
    )
    features = np.arange(len(thresholds), dtype=np.int32)
    columns = _core.SparseColumns(len(problem.y), *as_sparse(problem.X, fill))
    builder.add_sparse(features, columns, 1)
    return builder.finish()


def binned(problem: Problem, n_threads: int = 1) -> Any:
    thresholds = [np.array(t) for t in problem.thresholds()]
    return bin_table(problem.X, thresholds, n_threads, problem.is_categorical().astype(np.uint8))


class Trainer:
    """The core's trainer with the interface of the reference."""

    def __init__(self, total_weight: float, **arguments: Any) -> None:
        core = _core.Trainer(**arguments)
        self.total_weight = total_weight
        self.number = 0  # of the current iteration
        self.raw, self.residuals = core.raw, core.residuals
        self.loss, self.class_losses = core.loss, core.class_losses
        self.native_iteration = core.train_iteration
        self._classes = range(len(core.class_losses()))

    def train_iteration(
        self, classes: Sequence[int], base: int, base_derivatives: bool, leaf_scale: float
    ) -> Any:
        return self.native_iteration(classes, [base], base_derivatives, leaf_scale, self.number)

    def search(self, candidates: Sequence[int]) -> Any:
        return self.native_iteration(self._classes, candidates, True, 1.0, self.number)


def trainer(problem: Problem, n_threads: int = 1, **changed: Any) -> Trainer:
    """Return a trainer; `changed` replaces single arguments, also by invalid ones."""
    total_weight = int(problem.weight.sum()) * problem.unit
    params = train_params(**problem.params)
    return Trainer(total_weight, params=params, **rows_of(problem, n_threads, changed))


def train_params(**given: Any) -> Any:
    """Return the nested parameters of the core from names and values."""

    def some(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names if name in given}

    features = _core.FeatureRules(**some("max_features", "max_path_features", "interaction_groups"))
    grow = _core.GrowParams(**some("max_leaf_nodes", "max_depth", "min_gain"), features=features)
    minimum = ("min_weight", "min_hessian_leaf")
    split = _core.SplitParams(
        **some("hessian_split", *minimum, "l2_regularization"),
        **some("categorical_smoothing", "categorical_penalty"),
    )
    return _core.TrainParams(grow, split, **given)


def validation(problem: Problem, n_threads: int = 1, **changed: Any) -> Any:
    return _core.Validation(**rows_of(problem, n_threads, changed))


def rows_of(problem: Problem, n_threads: int, changed: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of training and validation that describe rows."""
    if "binned" not in changed:
        changed = changed | {"binned": binned(problem, n_threads)}
    labels = {
        "y": problem.y.astype(np.int32),
        "weight": problem.weight,
        "unit": problem.unit,
        "n_classes": problem.n_classes,
    }
    labels |= {name: changed.pop(name) for name in labels.keys() & changed.keys()}
    given = {"labels": _core.Labels(**labels), "n_threads": n_threads, "raw": problem.raw}
    return given | changed


def assert_same_result(ours: Any, theirs: Any) -> None:
    """Compare results; bins and default directions of leaves have no meaning."""
    assert (ours.changed, ours.n_halvings) == (theirs.changed, theirs.n_halvings)
    assert ours.base_scale == theirs.base_scale
    np.testing.assert_array_equal(ours.candidate_losses, theirs.candidate_losses)
    exact = ("feature", "left", "value", "gain", "weight", "left_set_size", "left_set")
    for name in ("tree_start", "tree_class", *exact):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    is_inner = np.asarray(theirs.feature) >= 0
    for name in ("bin", "missing_left"):
        one, other = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        np.testing.assert_array_equal(one[is_inner], other[is_inner], err_msg=name)
    for name in MULTI_OUTPUT_ARRAYS if is_multi_output(theirs) else ():
        one, other = getattr(ours, name), getattr(theirs, name)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        np.testing.assert_array_equal(one, other, err_msg=name)


def is_multi_output(result: Any) -> bool:
    return list(result.tree_class) == [-1]


def assert_same_iterations(
    ours: Sequence[reference.Iteration], theirs: Sequence[reference.Iteration]
) -> None:
    assert [r.base for r in ours] == [r.base for r in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert_same_result(one.result, other.result)
        np.testing.assert_array_equal(one.class_losses, other.class_losses)


def result_bytes(result: Any) -> bytes:
    names = (
        *NODE_ARRAYS,
        "tree_start",
        "tree_class",
        *(MULTI_OUTPUT_ARRAYS if is_multi_output(result) else ()),
    )
    arrays = [np.asarray(getattr(result, name)).tobytes() for name in names]
    numbers = [result.base, result.base_scale, *result.candidate_losses]
    return b"".join([*arrays, np.array(numbers, np.float64).tobytes()])


def max_waiting_leaves(result: Any) -> int:
    """Return the maximum number of unsplit leaves that are split later."""
    inner = np.flatnonzero(result.feature >= 0)
    made, split = (inner + 1) // 2, (result.left[inner] + 1) // 2  # the number of splits before
    return max(int(((made <= n) & (split > n)).sum()) for n in range(len(inner)))


# ---------------------------------------------------------------------------------------- prediction


def forest_arrays(
    iterations: Sequence[reference.Iteration], thresholds: Any
) -> dict[str, np.ndarray]:
    """Return the trees of a training with thresholds instead of bins, as `Forest` takes them."""
    result = reference.joined([r.result for r in iterations])
    ends = [np.append(t, np.inf) for t in thresholds]  # the last bin: every value goes left
    pairs = zip(result.feature, result.bin, strict=True)
    threshold = [ends[f][b] if f >= 0 else 0.0 for f, b in pairs]
    n_trees = [len(r.result.tree_class) for r in iterations]
    return {
        "feature": result.feature.astype(np.int32),
        "threshold": np.array(threshold, np.float64),
        "left": result.left.astype(np.int32),
        "missing_left": result.missing_left.astype(np.uint8),
        "value": result.value.astype(np.float64),
        "left_set_size": np.asarray(result.left_set_size, np.int32),
        "left_set": np.asarray(result.left_set, np.uint64),
        "tree_start": result.tree_start.astype(np.int64),
        "tree_class": result.tree_class.astype(np.int32),
        "tree_base": np.repeat([r.base for r in iterations], n_trees).astype(np.int32),
        "tree_base_scale": np.repeat([r.result.base_scale for r in iterations], n_trees),
        "leaf_value": np.concatenate([r.result.leaf_value for r in iterations]),
    }


def forest(arrays: dict[str, Any], n_features: int, n_classes: int) -> Any:
    return _core.Forest(arrays, n_features, n_classes)


def predict(
    forest: Any, X: np.ndarray, n_classes: int, n_trees: int, n_threads: int = 1
) -> np.ndarray:
    raw = np.zeros((len(X), n_classes))
    forest.add(X, raw, 0, n_trees, n_threads)
    return raw


def softmax(raw: np.ndarray) -> np.ndarray:
    return _core.softmax(raw)


def log_softmax(raw: np.ndarray) -> np.ndarray:
    return _core.log_softmax(raw)


# --------------------------------------------------------------------------------------- fingerprint


ALGORITHMS = (
    reference.Algorithm("mart", None),
    reference.Algorithm("abc-mart"),
    reference.Algorithm("abc-mart", reference.Search(3)),
)

SAMPLED = {"subsample": 0.7, "max_features": 3}
PROBLEMS = {  # by number of classes: below, at and above the width of a SIMD register
    2: random_problem(7, 9001, 5, 2, learning_rate=0.3),
    3: mixed_problem(7, 9001, 3, learning_rate=0.3, **SAMPLED),
    8: random_problem(7, 9001, 5, 8, learning_rate=0.3),
    11: mixed_problem(7, 9001, 11, learning_rate=0.3, **SAMPLED),
}


MULTI_OUTPUT_PROBLEMS = (
    random_problem(7, 901, 5, 2, learning_rate=0.3),
    mixed_problem(7, 901, 5, learning_rate=0.3, **SAMPLED),
    mixed_problem(7, 901, 19, learning_rate=0.3),
)


def training_bytes(
    algorithm: reference.Algorithm, n_classes: int, n_threads: int, hessian_split: bool
) -> bytes:
    problem = PROBLEMS[n_classes].with_params(hessian_split=hessian_split)
    return bytes_of_training(problem, algorithm, n_threads)


def bytes_of_training(problem: Problem, algorithm: reference.Algorithm, n_threads: int) -> bytes:
    """Return trees, scores in training, validation and prediction, and probabilities of a training."""
    this, n_classes = trainer(problem, n_threads), problem.n_classes
    iterations = reference.boost(this, algorithm, n_classes, 4)
    arrays = forest_arrays(iterations, problem.thresholds())
    model = forest(arrays, problem.X.shape[1], n_classes)
    raw = predict(model, problem.X, n_classes, len(arrays["tree_class"]), n_threads)
    proba = [softmax(raw).tobytes(), log_softmax(raw).tobytes()]
    results = [result_bytes(r.result) + r.class_losses.tobytes() for r in iterations]
    held_out = validation(problem, n_threads, raw=this.raw())
    validated = [held_out.leading().tobytes(), np.float64(held_out.loss()).tobytes()]
    return b"".join([*results, this.raw().tobytes(), *validated, raw.tobytes(), *proba])


def fingerprint(n_threads: int = 1) -> str:
    digest = hashlib.sha256()
    for variant in itertools.product(ALGORITHMS, PROBLEMS, [n_threads], [False, True]):
        digest.update(training_bytes(*variant))
    return digest.hexdigest() + multi_output_fingerprint(n_threads)


def multi_output_fingerprint(n_threads: int = 1) -> str:
    """Cover all classes, and projections below, at and above the width of a SIMD register."""
    digest = hashlib.sha256()
    variants = itertools.product(MULTI_OUTPUT_PROBLEMS, [False, True], [0, 3, 8, 9])
    for problem, hessian_split, n_projections in variants:
        params = {
            "hessian_split": hessian_split,
            "n_projections": n_projections,
            "multi_output": True,
        }
        digest.update(bytes_of_training(problem.with_params(**params), MULTI_OUTPUT, n_threads))
    return digest.hexdigest()


def simd_level() -> str:
    return _core.simd_level()


if __name__ == "__main__":
    sys.stdout.write(f"{simd_level()} {fingerprint()}\n")
