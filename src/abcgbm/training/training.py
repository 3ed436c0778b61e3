"""One training: from binned rows to the fitted attributes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.columns import Floats
from abcgbm.data.rows import BinnedRows, LabelledRows
from abcgbm.data.weights import IntegerWeights
from abcgbm.model.ensemble import Ensemble, EnsembleBuilder
from abcgbm.settings.algorithm import Algorithm
from abcgbm.settings.threads import effective_n_threads
from abcgbm.training import memory
from abcgbm.training.boosting import BoostConfig, Record, Watcher, boost, record
from abcgbm.training.plan import Plan
from abcgbm.training.start import EarlierFit, comparable, init_scores
from abcgbm.training.stopping import Stopping, best_step
from abcgbm.training.validation import Monitor, check_scoring, validation_state


class Training:
    """One training: its native state, and what has come of it so far.

    Parameters
    ----------
    model : ABCBoostClassifier
        The estimator, for its parameters and classes.
    learned, validated : BinnedRows
        The rows to learn from, and those to validate on, if any.
    plan : Plan
        What was settled before.
    earlier : EarlierFit or None
        What a warm start goes on from.

    Attributes
    ----------
    records : list of Record
        The state at the start and after each step.
    """

    def __init__(
        self,
        model: Any,
        learned: BinnedRows,
        validated: BinnedRows | None,
        plan: Plan,
        earlier: EarlierFit | None,
    ) -> None:
        self._model = model
        self._plan = plan
        self._table = learned.codes
        self._n_rows = len(learned.rows)
        self._total_weight = float(learned.rows.weight.sum())
        self._class_factor = learned.rows.class_factor
        self._earlier = earlier
        self._algorithm = Algorithm.from_name(model.algorithm)
        self._n_threads = effective_n_threads(model.n_jobs)
        self._scoring = check_scoring(model.scoring)
        weights = IntegerWeights.from_floats(learned.rows.weight, self._n_rows)
        self._init = self._start(learned, weights)
        memory.check(self._size(learned, validated), memory.available_bytes())
        self._trainer = self._make_trainer(learned, weights)
        self._monitor = self._make_monitor(validated)
        self.records = self._first_records()

    def run(self, watcher: Watcher) -> str:
        """Take steps until it is time to stop; return the reason."""
        config = BoostConfig(
            self._algorithm,
            self._plan.base_policy,
            self._model.refresh,
            keeps_interrupted=self._model.on_interrupt == "keep",
            has_draws=self._model.subsample < 1 or self._plan.features.max_features > 0,
        )
        before = [record.validation_score for record in self.records[:-1]]
        stopping = Stopping(self._plan.limits, before)
        return boost(self._trainer, config, self.records, stopping, watcher, self._monitor)

    def fitted(self, reason: str) -> dict[str, Any]:
        """Return the fitted attributes, as if training ended here."""
        records = list(self.records)
        losses = np.array([r.validation_loss for r in records])
        scores = np.array([r.validation_score for r in records])
        has_validation = not np.isnan(losses).all()
        best = self._best_step()
        return {
            "_ensemble": self._ensemble(records).first_steps(best),
            "_encoding": self._table.encoding,
            "_seed": self._plan.seed,
            "init_": self._init.copy(),
            "n_iter_": len(records) - 1,
            "best_iter_": best,
            "train_loss_": np.array([r.loss for r in records]),
            "class_losses_": np.array([r.class_losses for r in records]),
            "search_losses_": np.array([r.search_losses for r in records])[1:],
            "base_classes_": self._labels([r.base_class for r in records[1:]]),
            "validation_loss_": losses if has_validation else np.empty(0),
            "validation_score_": scores if has_validation else np.empty(0),
            "stop_reason_": reason,
        }

    def complaint(self) -> str | None:
        """Return why nothing was learned, and what might help; None if something was."""
        if self._best_step() > 0:
            return None
        what = "every class has the same probability everywhere"
        if self._init.any():
            what = "every row has the same probabilities"
        cause, cure = "no tree can be split", self._too_light()
        if len(self.records) > 1:
            cause = "no step makes the validation score better"
            cure = (
                "; with many classes a plain algorithm ('mart', 'logitboost') often does, "
                "and scoring='error' asks for less than the loss"
            )
        rows = f"{self._n_rows} row(s) of total weight {self._total_weight:g}"
        return f"{cause}, so {what}: {rows}{cure}"

    def _too_light(self) -> str:
        """Say that the rows weigh too little for two leaves, if they do."""
        least, factor = self._model.min_samples_leaf, self._class_factor
        if self._total_weight >= 2 * least * factor:
            return ""
        times = f" times {factor:g}" if factor != 1 else ""
        return (
            f", less than twice min_samples_leaf={least!r}{times}; "
            "give more rows, larger weights or a smaller min_samples_leaf"
        )

    def _best_step(self) -> int:
        if not self._plan.stops_early:
            return len(self.records) - 1
        return best_step([r.validation_score for r in self.records])

    def _start(self, learned: BinnedRows, weights: IntegerWeights) -> Floats:
        if self._earlier is not None:
            return self._earlier.ensemble.init
        n_classes = len(self._model.classes_)
        return init_scores(self._model.init, learned.rows.y, weights, n_classes)

    def _size(self, learned: BinnedRows, validated: BinnedRows | None) -> memory.TrainingSize:
        return memory.TrainingSize(
            n_rows=self._n_rows,
            n_validation_rows=len(validated.rows) if validated else 0,
            n_classes=len(self._model.classes_),
            total_bins=learned.codes.codes.total_bins,
            max_leaf_nodes=int(self._model.max_leaf_nodes),
            n_threads=self._n_threads,
            n_candidates=getattr(self._plan.base_policy, "n_candidates", 1),
            has_hessian=self._algorithm.hessian_split,
            is_warm_start=self._earlier is not None,
            has_scorer=not isinstance(self._scoring, str),
        )

    def _make_trainer(self, learned: BinnedRows, weights: IntegerWeights) -> _core.Trainer:
        return _core.Trainer(
            learned.codes.codes,
            _core.Labels(learned.rows.y, weights.weight, weights.unit, len(self._model.classes_)),
            self._params(weights),
            self._n_threads,
            self._raw(learned.rows, self._model.handle_unknown),
        )

    def _params(self, weights: IntegerWeights) -> _core.TrainParams:
        model, features = self._model, self._plan.features
        grow = _core.GrowParams(
            max_leaf_nodes=model.max_leaf_nodes,
            max_depth=min(model.max_depth or 0, model.max_leaf_nodes),
            min_gain=model.min_gain,
            features=_core.FeatureRules(
                features.max_features, features.max_path_features, features.interaction_groups
            ),
        )
        split = _core.SplitParams(
            hessian_split=self._algorithm.hessian_split,
            min_weight=weights.units(model.min_samples_leaf * self._class_factor),
            min_hessian_leaf=model.min_hessian_leaf,
            l2_regularization=model.l2_regularization,
            categorical_smoothing=model.categorical_smoothing * self._class_factor,
        )
        return _core.TrainParams(grow, split, model.learning_rate, model.subsample, self._plan.seed)

    def _make_monitor(self, validated: BinnedRows | None) -> Monitor | None:
        if validated is None:
            return None
        state = validation_state(
            validated.codes.codes,
            validated.rows,
            len(self._model.classes_),
            self._n_threads,
            self._raw(validated.rows, "missing"),  # levels of X_val are known to be allowed
        )
        is_centred = bool(self._model.recenter or self._init.any())
        if self._earlier is not None:
            is_centred |= bool((self._earlier.ensemble.tree_base >= 0).any())
        return Monitor(state, validated.rows, self._scoring, self._model, is_centred)

    def _raw(self, rows: LabelledRows, handle_unknown: str) -> Floats | None:
        """Return the scores to start from; None for zero, one column if all rows have the same."""
        if self._earlier is not None:
            return self._earlier.raw(rows, handle_unknown, self._n_threads)
        return self._init[:, None] if self._init.any() else None

    def _first_records(self) -> list[Record]:
        now = record(self._trainer, self._monitor)
        if self._earlier is None:
            return [now]
        last = self._earlier.records[-1]
        now = replace(now, base_class=last.base_class, search_losses=last.search_losses)
        return [*comparable(self._earlier.records, now)[:-1], now]

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
