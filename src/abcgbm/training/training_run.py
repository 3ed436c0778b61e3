"""One phase of a fit."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from abcgbm import _core
from abcgbm.communication.collectives import raise_together, uninterrupted
from abcgbm.data.arrays import Floats
from abcgbm.data.binning import BinnedRows
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.samples import LabelledRows
from abcgbm.data.weights import IntegerWeights
from abcgbm.model.ensemble import Ensemble, EnsembleBuilder
from abcgbm.model.history import History, Record
from abcgbm.model.losses import has_one_class, init_scores
from abcgbm.model.model import Model
from abcgbm.parameters.machine import available_bytes
from abcgbm.training import memory
from abcgbm.training.boosting import Boosting, IterationObserver, boost, record
from abcgbm.training.early_stopping import Stopping, best_iteration, least_loss
from abcgbm.training.resolved import ResolvedParameters
from abcgbm.training.validation import Monitor
from abcgbm.training.warm_start import PreviousFit, comparable


class TrainingResult(NamedTuple):
    """What has come of a training: a model, its record, a remark for the user, and the plan followed."""

    model: Model
    history: History
    remark: str | None
    plan: ResolvedParameters


class TrainingRun:
    """One training: its native state, and what has come of it so far.

    Parameters
    ----------
    plan : ResolvedParameters
        What it goes by.
    learned, validated : BinnedRows
        The rows to learn from, and those to validate on, if any.
    earlier : PreviousFit or None
        What a warm start goes on from.
    resumed : PreviousFit or None
        The steps that this very training took before it was broken off, those of a warm start
        included.
    """

    def __init__(
        self,
        plan: ResolvedParameters,
        learned: BinnedRows,
        validated: BinnedRows | None,
        earlier: PreviousFit | None,
        resumed: PreviousFit | None = None,
    ) -> None:
        self._plan = plan
        self._earlier = earlier
        self._before = earlier if resumed is None else resumed
        self._table = learned.table
        self._rows = learned.rows
        self._validated = validated
        weights = learned.rows.integer_weights
        self._total_weight = weights.total
        self._n_rows = self._rows.n_rows
        self._init = self._start()
        self._storage = raise_together(
            self._rows.shard, lambda: _storage_for(learned, self._size(validated))
        )
        self._boosting = self._begin()

    @property
    def class_labels(self) -> list[Any]:
        """The classes, as labels."""
        labels: list[Any] = self._plan.classes.labels.tolist()
        return labels

    @property
    def max_iter(self) -> int | None:
        """Most steps, those of an earlier fit included; None: nobody knows."""
        return self._plan.limits.max_iter

    @property
    def n_iter_left(self) -> int | None:
        """Most steps that are left; None: nobody knows, as it may begin anew with early stopping."""
        if self.max_iter is None or self._plan.stops_early:
            return None
        return max(0, self.max_iter - self._boosting.n_iter)

    def run(self, watcher: IterationObserver) -> str:
        """Take steps until it is time to stop; return the reason.

        If validation wants none of them, begin anew without a base class.
        """
        reason = self._boost(watcher)
        if self._is_worth_a_plain_start(reason):
            del self._boosting  # which is as large as the next one
            self._plan, self._before = self._plan.plain(), self._earlier
            self._boosting = uninterrupted(self._rows.shard.communicator, self._begin)
            reason = self._boost(watcher)
        return reason

    def _boost(self, watcher: IterationObserver) -> str:
        scores = [record.validation_score for record in self._boosting.records[:-1]]
        n_earlier = len(self._earlier.records) - 1 if self._earlier else 0
        least = least_loss(self._total_weight)
        stopping = Stopping(self._plan.limits, scores[:n_earlier], scores[n_earlier:], least)
        return boost(self._boosting, self._plan, stopping, watcher, self._rows.shard.communicator)

    def _is_worth_a_plain_start(self, reason: str) -> bool:
        """Whether validation chose no step with a base class, and nobody asked to stop."""
        has_base = any(r.base_class is not None for r in self._boosting.records)
        asked = reason in ("callback", "interrupted", "time_limit")
        has_others = self._plan.n_classes > 2  # noqa: PLR2004 (of two each is the other's base)
        return has_base and has_others and self._best_iteration() == 0 and not asked

    def trained(self, reason: str) -> TrainingResult:
        """Return what has come of it, if it stopped here for this reason."""
        return TrainingResult(self.model(), self.history(reason), self._remark(), self._plan)

    def model(self) -> Model:
        """Return the model, as if training ended here."""
        return self._model_of_all_steps().first_iterations(self._best_iteration())

    def _model_of_all_steps(self) -> Model:
        labels, recenter = self._plan.classes.labels, self._plan.settings.recenter
        return Model(self._ensemble(), self._table.encoding.for_model(), labels, recenter)

    def history(self, reason: str) -> History:
        """Return the record of the training, which stopped for this reason."""
        return History.from_records(
            self._boosting.records,
            best_iteration=self._best_iteration(),
            stop_reason=reason,
            seed=self._plan.seed,
            chosen=self._plan.chosen,
            train_weight=self._total_weight,
            validation_weight=self._validation_weight(),
        )

    def _validation_weight(self) -> float | None:
        """Return what the rows weigh that the validation losses are of: now, or in an earlier fit."""
        if self._boosting.monitor is not None:
            return self._boosting.monitor.total_weight
        return None if self._before is None else self._before.history.validation_weight

    def state(self) -> tuple[Model, History, str] | None:
        """Return the model of all steps, their record and the phase; None between two phases."""
        if "_boosting" not in vars(self):
            return None
        return self._model_of_all_steps(), self.history("checkpoint"), self._plan.phase

    # ------------------------------------------------------------------------------ the beginning

    def _begin(self) -> Boosting:
        """Return the state before the first step."""
        trainer = self._trainer(self._rows.integer_weights)
        monitor = None if self._validated is None else self._monitor(self._validated)
        records = self._first_records(trainer, monitor)
        return Boosting(trainer, monitor, records, self._plan.phase, self._total_weight)

    def _start(self) -> Floats:
        if self._earlier is not None:
            return self._earlier.model.ensemble.init
        return init_scores(self._plan.settings.baseline, self._rows)

    def _size(self, validated: BinnedRows | None) -> memory.TrainingSize:
        settings = self._plan.settings
        return memory.TrainingSize(
            n_rows=len(self._rows),
            n_validation_rows=len(validated.rows) if validated else 0,
            n_classes=self._plan.n_classes,
            total_bins=self._table.binned.total_bins,
            max_leaf_nodes=min(settings.max_leaf_nodes, self._max_leaves()),
            n_threads=self._plan.n_threads,
            n_candidates=self._plan.base_policy.n_candidates,
            has_hessian=settings.algorithm.hessian_split,
            shared_trees=settings.algorithm.shared_trees,
            n_projections=self._plan.n_projections,
            is_warm_start=self._before is not None,
            has_scorer=settings.scoring.scorer is not None,
            has_ranks=not self._rows.shard.is_single,
        )

    def _max_leaves(self) -> int:
        """Return how many leaves the rows are enough for; at least 2."""
        return max(2, int(min(self._total_weight / self._min_weight(), 2**31)) + 1)

    def _min_weight(self) -> float:
        """Return what the rows of a leaf weigh at least; below 1 it is given as a share of all."""
        least = self._plan.settings.min_samples_leaf
        return least * (self._total_weight if least < 1 else self._rows.class_factor)

    def _trainer(self, weights: IntegerWeights) -> _core.Trainer:
        return _core.Trainer(
            self._table.binned,
            self._labels(self._rows, weights),
            self._params(weights),
            self._plan.n_threads,
            self._raw(self._rows, self._plan.settings.handle_unknown),
            self._storage,
        )

    def _labels(self, rows: LabelledRows, weights: IntegerWeights) -> _core.Labels:
        n_classes = self._plan.n_classes
        shard = None if rows.shard.is_single else self._share_of(rows)
        return _core.Labels(rows.y, weights.weight, weights.unit, n_classes, self._storage, shard)

    def _share_of(self, rows: LabelledRows) -> _core.Shard:
        """Return the rank as the core has it; draws of rows alone need their numbers."""
        draws = self._plan.settings.subsample < 1 and rows is self._rows
        return _core.Shard(rows.shard.communicator, rows.shard.numbers() if draws else None)

    def _params(self, weights: IntegerWeights) -> _core.TrainParams:
        settings, features = self._plan.settings, self._plan.features
        class_factor = self._rows.class_factor
        grow = _core.GrowParams(
            max_leaf_nodes=settings.max_leaf_nodes,
            max_depth=min(settings.max_depth or 0, settings.max_leaf_nodes),
            min_gain=settings.min_gain,
            features=_core.FeatureRules(
                features.max_features, features.max_path_features, features.interaction_groups
            ),
        )
        split = _core.SplitParams(
            hessian_split=settings.algorithm.hessian_split,
            min_weight=weights.units(self._min_weight()),
            min_hessian_leaf=settings.min_hessian_leaf,
            l2_regularization=settings.l2_regularization,
            categorical_smoothing=settings.categorical_smoothing * class_factor,
            categorical_penalty=settings.categorical_penalty * class_factor,
        )
        return _core.TrainParams(
            grow,
            split,
            learning_rate=settings.learning_rate,
            subsample=settings.subsample,
            seed=self._plan.seed,
            multi_output=settings.algorithm.shared_trees,
            n_projections=self._plan.n_projections,
            base_line_search=settings.line_search,
        )

    def _monitor(self, validated: BinnedRows) -> Monitor:
        rows = validated.rows
        state = _core.Validation(
            validated.table.binned,
            self._labels(rows, rows.integer_weights),
            self._plan.n_threads,
            self._raw(rows, "missing"),  # levels of X_val are known to be allowed
            self._storage,
        )
        has_base = self._before is not None and self._before.model.ensemble.has_base
        return Monitor(state, rows, self._plan, self._init, has_base=has_base)

    def _raw(self, rows: LabelledRows, handle_unknown: str) -> Floats | None:
        """Return the scores to start from; None for zero, one column if all rows have the same."""
        if self._before is not None:
            return self._before.raw(rows, handle_unknown, self._plan.n_threads)
        return self._init[:, None] if self._init.any() else None

    def _first_records(self, trainer: _core.Trainer, monitor: Monitor | None) -> list[Record]:
        if self._before is not None and self._before is not self._earlier:
            _check_losses(self._before.records[-1], trainer, monitor)
            return [*self._before.records]
        now = record(trainer, monitor)
        if self._earlier is None:
            return [now]
        last = self._earlier.records[-1]
        now = replace(now, base_class=last.base_class, search_losses=last.search_losses)
        return [*comparable(self._earlier.records, now)[:-1], now]

    # ------------------------------------------------------------------------------------ the end

    def _best_iteration(self) -> int:
        if not self._plan.stops_early:
            return self._boosting.n_iter
        return best_iteration([r.validation_score for r in self._boosting.records])

    def _ensemble(self) -> Ensemble:
        builder = EnsembleBuilder(self._table.shape[1], self._plan.n_classes, self._init)
        n_before = len(self._before.records) - 1 if self._before else 0
        for trees in self._boosting.trees[: self._boosting.n_iter - n_before]:
            builder.add_iteration(trees)
        grown = builder.build(self._table.upper_value)
        return self._before.model.ensemble.followed_by(grown) if self._before else grown

    def _remark(self) -> str | None:
        """Return why nothing was learned, and what might help; or that training began anew."""
        if self._best_iteration() == 0:
            return self._why_constant()
        if self._plan.phase != "plain":
            return None
        return (
            "no step with a base class makes the validation score better, so training began anew "
            f"without one, as algorithm={self._plan.settings.algorithm.name!r} has it"
        )

    def _why_constant(self) -> str:
        what = "every class has the same probability everywhere"
        if self._init.any():
            what = "every row has the same probabilities"
        cause, cure = "no tree can be split", self._if_not_split()
        if self._boosting.n_iter > 0:
            cause, cure = "no step makes the validation score better", self._if_not_better()
        rows = f"{self._n_rows} row(s) of total weight {self._total_weight:g}"
        return f"{cause}, so {what}: {rows}{cure}"

    def _if_not_better(self) -> str:
        """Say what might make the validation score better."""
        return (
            "; a smaller learning_rate or a larger l2_regularization may do, "
            "and scoring='error' asks for less than the loss"
        )

    def _if_not_split(self) -> str:
        """Say why no tree can be split, as far as that is plain, and what might help."""
        if self._total_weight < 2 * self._min_weight():
            return self._if_too_light()
        if has_one_class(self._rows):
            return "; they are all of one class"
        if not any(map(len, self._table.thresholds)):
            return "; no feature has two values"
        settings = self._plan.settings
        names = ("min_gain", "min_hessian_leaf", "min_samples_leaf", "l2_regularization")
        bounds = {name: getattr(settings, name) for name in names}
        smaller = " or ".join(f"{name} than {value:g}" for name, value in bounds.items() if value)
        larger = (
            f", a larger subsample than {settings.subsample:g}" if settings.subsample < 1 else ""
        )
        return f"; a smaller {smaller}{larger} may help, if any feature tells the classes apart"

    def _if_too_light(self) -> str:
        """Say that the rows weigh too little for two leaves."""
        least, factor = self._plan.settings.min_samples_leaf, self._rows.class_factor
        times = f" times {factor:g}" if factor != 1 and least >= 1 else ""
        return (
            f", less than twice min_samples_leaf={least:g}{times}{' of it' if least < 1 else ''}; "
            "give more rows, larger weights or a smaller min_samples_leaf"
        )


def _storage_for(learned: BinnedRows, size: memory.TrainingSize) -> _core.Storage:
    """Return where scores and the like can lie; raise MemoryError if they fit nowhere."""
    table = learned.rows.table
    if not isinstance(table, BatchedTable):
        memory.check(size, available_bytes())
        return _core.Storage()
    fits = table.code_bytes + size.total() <= table.large.free_bytes()
    if fits or table.large.cache_dir is None:
        memory.check(size, available_bytes())
        return _core.Storage()
    memory.check(replace(size, in_folder=True), available_bytes())
    return _core.Storage(table.large.cache_dir)


def _check_losses(last: Record, trainer: _core.Trainer, monitor: Monitor | None) -> None:
    """Raise ValueError unless trees that were grown before give the losses that were recorded."""
    validation_loss = math.nan if monitor is None else monitor.loss()
    now = np.array([*trainer.class_losses(), validation_loss])
    then = np.array([*last.class_losses, last.validation_loss])
    if not np.array_equal(now, then, equal_nan=True):
        raise ValueError(
            "the trees of the checkpoint do not give the losses that it records; expected the "
            "data, and the version of abcgbm, that it was made with"
        )
