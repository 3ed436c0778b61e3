"""Map our parameters to those of the peers.

Every system gets the same number of iterations, leaves and bins, the same learning rate, no regularization of
leaf values, no sampling of rows or columns and no early stopping. The class of a system documents a missing
parameter.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Parameters of all systems, by our names."""

    max_iter: int
    n_threads: int
    learning_rate: float = 0.1
    max_leaf_nodes: int = 20
    min_samples_leaf: int = 10
    max_bins: int = 255
    ridge: float = 0.0  # added to the hessians of a leaf


@dataclass(frozen=True)
class System(ABC):
    """A classifier, with methods for features that estimators name differently.

    ``package`` is its name for pip, ``module`` for import. ``differs`` describes settings
    that could not be made equal.
    """

    name: str
    package: str
    module: str
    differs: str = ""
    has_tree_per_class: bool = True

    @abstractmethod
    def make(self, setting: Setting) -> Any:
        """Return the estimator, not yet fitted."""

    @abstractmethod
    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        """Yield the raw scores after each iteration."""

    def staged_classes(self, model: Any, X: Floats) -> Iterator[NDArray[np.intp]]:
        """Yield the predicted class numbers of shape (n_rows,) after each iteration."""
        return (raw.argmax(axis=1) for raw in self.staged_raw(model, X))

    @abstractmethod
    def n_leaves(self, model: Any) -> int:
        """Return the total number of leaves."""

    def saved(self, model: Any) -> bytes | None:
        """Return the model in the system's own compact format, or None."""
        return None

    def predictor(self, model: Any, n_threads: int) -> Callable[[Floats], Any]:
        """Return ``predict_proba`` with a number of threads."""
        return model.set_params(n_jobs=n_threads).predict_proba

    def is_installed(self) -> bool:
        return find_spec(self.module) is not None

    def _import(self) -> Any:
        try:
            return import_module(self.module)
        except ImportError as error:
            raise ImportError(f'{self.name} is missing: pip install "abcgbm[bench]"') from error


class Ours(System):
    """One of our algorithms; with a base class, it is the class of largest loss."""

    def chosen(self, setting: Setting) -> dict[str, Any]:
        """Return the parameters that only we have."""
        return {"algorithm": self.name}

    def make(self, setting: Setting) -> Any:
        return self._import().ABCBoostClassifier.paper(
            **self.chosen(setting),
            learning_rate=setting.learning_rate,
            max_iter=setting.max_iter,
            max_leaf_nodes=setting.max_leaf_nodes,
            min_samples_leaf=setting.min_samples_leaf,
            max_bins=setting.max_bins,
            n_jobs=setting.n_threads,
        )

    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        yield from model.staged_decision_function(X)

    def n_leaves(self, model: Any) -> int:
        return int(np.count_nonzero(model.model_.ensemble.feature < 0))


class LightGBM(System):
    """LightGBM grows leaf-wise; its minimum hessian of a leaf is removed.

    At 0 that bound makes it fail with many classes (a split without rows on one side).
    """

    def make(self, setting: Setting) -> Any:
        return self._import().LGBMClassifier(
            learning_rate=setting.learning_rate,
            n_estimators=setting.max_iter,
            num_leaves=setting.max_leaf_nodes,
            min_child_samples=setting.min_samples_leaf,
            min_child_weight=1e-10,
            reg_lambda=setting.ridge,
            max_bin=setting.max_bins,
            n_jobs=setting.n_threads,
            verbose=-1,
        )

    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        steps = (
            model.booster_.predict(X, raw_score=True, start_iteration=step, num_iteration=1)
            for step in range(model.n_estimators_)
        )
        yield from accumulate(steps)

    def n_leaves(self, model: Any) -> int:
        return sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"])

    def saved(self, model: Any) -> bytes:
        return model.booster_.model_to_string().encode()


@dataclass(frozen=True)
class XGBoost(System):
    """XGBoost with histograms, leaf-wise. It has no minimum number of rows in a leaf.

    ``min_child_weight`` bounds the sum of hessians 2 p (1 - p) and stays at its default, 1: with
    ten classes that is about five rows in the first step, more later. On Pendigits 0 gave as many
    leaves, and about as many errors.
    """

    multi_strategy: str = "one_output_per_tree"

    def make(self, setting: Setting) -> Any:
        return self._import().XGBClassifier(
            tree_method="hist",
            multi_strategy=self.multi_strategy,
            learning_rate=setting.learning_rate,
            n_estimators=setting.max_iter,
            grow_policy="lossguide",
            max_leaves=setting.max_leaf_nodes,
            max_depth=0,
            reg_lambda=setting.ridge,
            max_bin=setting.max_bins,
            n_jobs=setting.n_threads,
        )

    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        raw = None  # the first iteration starts from the model's intercept
        for step in range(model.get_booster().num_boosted_rounds()):
            raw = model.predict(
                X, output_margin=True, base_margin=raw, iteration_range=(step, step + 1)
            )
            yield raw

    def n_leaves(self, model: Any) -> int:
        return sum(tree.count("leaf=") for tree in model.get_booster().get_dump())

    def saved(self, model: Any) -> bytes:
        return bytes(model.get_booster().save_raw("ubj"))

    def predictor(self, model: Any, n_threads: int) -> Callable[[Floats], Any]:
        model.get_booster().set_param({"nthread": n_threads})  # n_jobs is read only by fit
        return super().predictor(model, n_threads)


class CatBoost(System):
    """CatBoost, leaf-wise instead of symmetric trees; its maximum depth is 16."""

    def make(self, setting: Setting) -> Any:
        return self._import().CatBoostClassifier(
            loss_function="MultiClass",
            learning_rate=setting.learning_rate,
            iterations=setting.max_iter,
            grow_policy="Lossguide",
            max_leaves=setting.max_leaf_nodes,
            depth=16,
            min_data_in_leaf=setting.min_samples_leaf,
            l2_leaf_reg=setting.ridge,
            bootstrap_type="No",
            random_strength=0.0,
            border_count=setting.max_bins - 1,  # borders, not bins
            thread_count=setting.n_threads,
            allow_writing_files=False,
            verbose=False,
        )

    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        yield from model.staged_predict(X, prediction_type="RawFormulaVal")

    def n_leaves(self, model: Any) -> int:
        return int(model.get_tree_leaf_counts().sum())

    def saved(self, model: Any) -> bytes:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.cbm"
            model.save_model(str(path))
            return path.read_bytes()

    def predictor(self, model: Any, n_threads: int) -> Callable[[Floats], Any]:
        return partial(model.predict_proba, thread_count=n_threads)


class HistGradientBoosting(System):
    """scikit-learn has no parameter for threads: the process has ``OMP_NUM_THREADS``."""

    def make(self, setting: Setting) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            learning_rate=setting.learning_rate,
            max_iter=setting.max_iter,
            max_leaf_nodes=setting.max_leaf_nodes,
            min_samples_leaf=setting.min_samples_leaf,
            max_bins=setting.max_bins,
            early_stopping=False,
        )

    def staged_raw(self, model: Any, X: Floats) -> Iterator[Floats]:
        yield from model.staged_decision_function(X)

    def n_leaves(self, model: Any) -> int:
        return sum(tree.get_n_leaf_nodes() for step in model._predictors for tree in step)

    def predictor(self, model: Any, n_threads: int) -> Callable[[Floats], Any]:
        return model.predict_proba


OURS = {
    name: Ours(name, "abcgbm", "abcgbm")
    for name in ("mart", "abc-mart", "logitboost", "abc-logitboost")
}
_NO_LEAST_ROWS = "no minimum number of rows in a leaf; `min_child_weight=1` bounds hessians instead"
_PEERS: tuple[System, ...] = (
    LightGBM("LightGBM", "lightgbm", "lightgbm", "bin edges from at most 200,000 rows"),
    XGBoost("XGBoost", "xgboost", "xgboost", _NO_LEAST_ROWS),
    XGBoost(
        "XGBoost-multi-output",
        "xgboost",
        "xgboost",
        'one tree per iteration, `multi_strategy="multi_output_tree"`; ' + _NO_LEAST_ROWS,
        has_tree_per_class=False,
        multi_strategy="multi_output_tree",
    ),
    CatBoost(
        "CatBoost",
        "catboost",
        "catboost",
        'one tree per iteration, `grow_policy="Lossguide"`; depth at most 16',
        has_tree_per_class=False,
    ),
    HistGradientBoosting(
        "HistGradientBoosting",
        "scikit-learn",
        "sklearn",
        "hessians of a leaf sum to at least 0.001; bin edges from at most 200,000 rows",
    ),
)
PEERS = {peer.name: peer for peer in _PEERS}
SYSTEMS: dict[str, System] = {**OURS, **PEERS}
