"""One training: from binned rows to the fitted attributes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core, memory
from abcgbm.algorithm import Algorithm
from abcgbm.answers import Floats
from abcgbm.base_class import BasePolicy
from abcgbm.binning import BinnedTable
from abcgbm.boosting import BoostConfig, Record, Watcher, boost, record
from abcgbm.constraints import interaction_groups, n_features_per_split
from abcgbm.ensemble import Ensemble, EnsembleBuilder
from abcgbm.labels import LabelledRows
from abcgbm.start import EarlierFit, init_scores, start_raw
from abcgbm.stopping import Limits, Stopping, best_step
from abcgbm.threads import effective_n_threads
from abcgbm.validation import Monitor, check_scoring, validation_state
from abcgbm.weights import IntegerWeights


class BinnedRows(NamedTuple):
    """Rows and their codes; ``raw`` are the scores of an earlier fit, if there is one."""

    rows: LabelledRows
    table: BinnedTable
    raw: Floats | None


class Chance(NamedTuple):
    """What was drawn: the policy has the first base class, the seed is the key of all else."""

    base_policy: BasePolicy
    seed: int


class Training:
    """One training: its native state, and what has come of it so far.

    Parameters
    ----------
    model : ABCBoostClassifier
        The estimator, for its parameters and classes.
    learned, validated : BinnedRows
        The rows to learn from, and those to validate on, if any.
    chance : Chance
        What was drawn.
    limits : Limits
        How long it may go on; with early stopping the model is cut to its best step.
    earlier : EarlierFit or None
        What a warm start goes on from.
    """

    def __init__(
        self,
        model: Any,
        learned: BinnedRows,
        validated: BinnedRows | None,
        chance: Chance,
        limits: Limits,
        earlier: EarlierFit | None,
    ) -> None:
        self._model = model
        self._limits = limits
        self._table = learned.table
        self._class_factor = learned.rows.class_factor
        self._chance = chance
        self._earlier = earlier
        self._algorithm = Algorithm.from_name(model.algorithm)
        self._n_threads = effective_n_threads(model.n_jobs)
        weights = IntegerWeights.from_floats(learned.rows.weight, len(learned.rows.y))
        self._init = self._start(learned, weights)
        memory.check(self._size(learned, validated), memory.available_bytes())
        self._trainer = self._make_trainer(learned, weights)
        self._monitor = self._make_monitor(validated)
        self.records = self._first_records()

    def run(self, watcher: Watcher) -> str:
        """Take steps until it is time to stop; return the reason."""
        config = BoostConfig(
            self._algorithm,
            self._chance.base_policy,
            self._model.refresh,
            keeps_interrupted=self._model.on_interrupt == "keep",
            has_draws=self._model.subsample < 1 or self._model.max_features is not None,
        )
        before = [record.validation_score for record in self.records[:-1]]
        stopping = Stopping(self._limits, before)
        return boost(self._trainer, config, self.records, stopping, watcher, self._monitor)

    def fitted(self, reason: str) -> dict[str, Any]:
        """Return the fitted attributes, as if training ended here."""
        records = list(self.records)
        losses = np.array([r.validation_loss for r in records])
        scores = np.array([r.validation_score for r in records])
        has_validation = not np.isnan(losses).all()
        n_steps = len(records) - 1
        stops_early = self._limits.n_iter_no_change is not None
        best = best_step(scores.tolist()) if stops_early else n_steps
        return {
            "_ensemble": self._ensemble(records).first_steps(best),
            "_encoding": self._table.encoding,
            "_seed": self._chance.seed,
            "init_": self._init,
            "n_iter_": n_steps,
            "best_iter_": best,
            "train_loss_": np.array([r.loss for r in records]),
            "class_losses_": np.array([r.class_losses for r in records]),
            "search_losses_": np.array([r.search_losses for r in records])[1:],
            "base_classes_": self._labels([r.base_class for r in records[1:]]),
            "validation_loss_": losses if has_validation else np.empty(0),
            "validation_score_": scores if has_validation else np.empty(0),
            "stop_reason_": reason,
        }

    def _start(self, learned: BinnedRows, weights: IntegerWeights) -> Floats:
        if self._earlier is not None:
            return self._earlier.ensemble.init
        n_classes = len(self._model.classes_)
        return init_scores(self._model.init, learned.rows.y, weights, n_classes)

    def _size(self, learned: BinnedRows, validated: BinnedRows | None) -> memory.TrainingSize:
        return memory.TrainingSize(
            n_rows=len(learned.rows.y),
            n_validation_rows=len(validated.rows.y) if validated else 0,
            n_classes=len(self._model.classes_),
            total_bins=learned.table.codes.total_bins,
            max_leaf_nodes=int(self._model.max_leaf_nodes),
            n_threads=self._n_threads,
            n_candidates=getattr(self._chance.base_policy, "n_candidates", 1),
            has_hessian=self._algorithm.hessian_split,
        )

    def _make_trainer(self, learned: BinnedRows, weights: IntegerWeights) -> _core.Trainer:
        return _core.Trainer(
            learned.table.codes,
            learned.rows.y,
            weights.weight,
            weights.unit,
            len(self._model.classes_),
            self._params(weights),
            self._n_threads,
            self._raw(learned),
        )

    def _params(self, weights: IntegerWeights) -> _core.TrainParams:
        model = self._model
        n_features, names = self._table.shape[1], getattr(model, "feature_names_in_", None)
        return _core.TrainParams(
            max_leaf_nodes=model.max_leaf_nodes,
            max_depth=min(model.max_depth or 0, model.max_leaf_nodes),
            min_weight=weights.units(model.min_samples_leaf * self._class_factor),
            min_gain=model.min_gain,
            learning_rate=model.learning_rate,
            hessian_split=self._algorithm.hessian_split,
            l2_regularization=model.l2_regularization,
            min_hessian_leaf=model.min_hessian_leaf,
            categorical_smoothing=model.categorical_smoothing * self._class_factor,
            subsample=model.subsample,
            max_features=n_features_per_split(model.max_features, n_features),
            seed=self._chance.seed,
            interaction_groups=interaction_groups(model.interaction_cst, n_features, names),
        )

    def _make_monitor(self, validated: BinnedRows | None) -> Monitor | None:
        if validated is None:
            return None
        state = validation_state(
            validated.table.codes,
            validated.rows,
            len(self._model.classes_),
            self._n_threads,
            self._raw(validated),
        )
        is_centred = bool(self._model.recenter or self._init.any())
        if self._earlier is not None:
            is_centred |= bool((self._earlier.ensemble.tree_base >= 0).any())
        scoring = check_scoring(self._model.scoring)
        return Monitor(state, validated.rows, scoring, self._model, is_centred)

    def _raw(self, binned: BinnedRows) -> Floats | None:
        """Return the scores to start from; None for zero."""
        return start_raw(self._init, len(binned.rows.y)) if binned.raw is None else binned.raw

    def _first_records(self) -> list[Record]:
        now = record(self._trainer, self._monitor)
        if self._earlier is None:
            return [now]
        *before, last = self._earlier.records
        return [*before, replace(now, base_class=last.base_class, search_losses=last.search_losses)]

    def _ensemble(self, records: Sequence[Record]) -> Ensemble:
        builder = EnsembleBuilder(self._table.shape[1], len(self._model.classes_), self._init)
        n_before = len(self._earlier.records) if self._earlier else 1
        for step in records[n_before:]:
            builder.add_step(step.parts)
        grown = builder.build(self._table.upper_value)
        return self._earlier.ensemble.followed_by(grown) if self._earlier else grown

    def _labels(self, numbers: Sequence[int | None]) -> NDArray[Any]:
        of_class = self._model.classes_.tolist()
        labels = np.empty(len(numbers), dtype=object)
        labels[:] = [None if k is None else of_class[k] for k in numbers]
        return labels
