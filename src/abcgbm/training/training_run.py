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
from abcgbm.training.boosting import BoostingState, IterationObserver, boost, make_record
from abcgbm.training.early_stopping import STOP_REQUESTED, Stopping, best_iteration, min_loss
from abcgbm.training.resolved import ResolvedParameters
from abcgbm.training.validation import Monitor
from abcgbm.training.warm_start import PreviousFit, comparable_records


class TrainingResult(NamedTuple):
    """Result of a phase: model, history, a warning for the user, and the parameters used."""

    model: Model
    history: History
    warning: str | None
    resolved: ResolvedParameters


class TrainingRun:
    """One phase of a fit: the native trainer, and the records so far.

    Parameters
    ----------
    resolved : ResolvedParameters
        Resolved parameters.
    train : BinnedRows
        Training rows.
    validation : BinnedRows or None
        Validation rows.
    previous : PreviousFit or None
        The fit that a warm start continues.
    resumed : PreviousFit or None
        The state of this phase in a checkpoint, including the iterations of a warm start.
    """

    def __init__(
        self,
        resolved: ResolvedParameters,
        train: BinnedRows,
        validation: BinnedRows | None,
        previous: PreviousFit | None,
        resumed: PreviousFit | None = None,
    ) -> None:
        self._resolved = resolved
        self._previous = previous
        self._continued = previous if resumed is None else resumed
        self._table, self._rows = train.table, train.rows
        self._validation = validation
        self._total_weight = train.rows.integer_weights.total
        self._baseline = (
            init_scores(resolved.settings.baseline, self._rows)
            if previous is None
            else previous.model.ensemble.init
        )
        self._storage = raise_together(
            self._rows.shard, lambda: _allocate_storage(train, self._size())
        )
        self._state = self._initial_state()

    @property
    def class_labels(self) -> list[Any]:
        """Labels of the classes."""
        labels: list[Any] = self._resolved.classes.labels.tolist()
        return labels

    @property
    def max_iter(self) -> int | None:
        """Maximum number of iterations, including those of a previous fit; None: no limit."""
        return self._resolved.limits.max_iter

    @property
    def n_iter_left(self) -> int | None:
        """Maximum number of iterations left; None: unknown."""
        # Early stopping may restart the phase without a base class.
        if self.max_iter is None or self._resolved.stops_early:
            return None
        return max(0, self.max_iter - self._state.n_iter)

    def run(self, observer: IterationObserver) -> str:
        """Train until it is time to stop; return the reason.

        If no iteration improves the validation score, train again without a base class.
        """
        reason = self._boost(observer)
        if self._needs_plain_phase(reason):
            del self._state  # frees the memory that the next state needs
            self._resolved, self._continued = self._resolved.without_base_class(), self._previous
            self._state = uninterrupted(self._rows.shard.communicator, self._initial_state)
            reason = self._boost(observer)
        return reason

    def _boost(self, observer: IterationObserver) -> str:
        scores = [record.validation_score for record in self._state.records[:-1]]
        n_previous = len(self._previous.records) - 1 if self._previous else 0
        stopping = Stopping(
            self._resolved.limits,
            scores[:n_previous],
            scores[n_previous:],
            min_loss(self._total_weight),
        )
        return boost(self._state, self._resolved, stopping, observer, self._rows.shard.communicator)

    def _needs_plain_phase(self, reason: str) -> bool:
        """Whether validation chose no iteration with a base class, and no stop was requested."""
        has_base = any(r.base_class is not None for r in self._state.records)
        stop_requested = reason in STOP_REQUESTED
        # With two classes each is the other's base class: plain boosting is the same.
        has_choice = self._resolved.n_classes > 2  # noqa: PLR2004
        return has_base and has_choice and self._best_iteration() == 0 and not stop_requested

    # -------------------------------------------------------------------------------------- results

    def result(self, reason: str) -> TrainingResult:
        """Return the result as if the phase had ended here, for this reason."""
        model = self._full_model().first_iterations(self._best_iteration())
        return TrainingResult(model, self._history(reason), self._warning(), self._resolved)

    def checkpoint(self) -> tuple[Model, History, str] | None:
        """Return the model of all iterations, its history, and the phase; None between two phases."""
        if "_state" not in vars(self):
            return None
        return self._full_model(), self._history("checkpoint"), self._resolved.phase

    def _best_iteration(self) -> int:
        if not self._resolved.stops_early:
            return self._state.n_iter
        return best_iteration([r.validation_score for r in self._state.records])

    def _full_model(self) -> Model:
        labels, recenter = self._resolved.classes.labels, self._resolved.settings.recenter
        return Model(self._ensemble(), self._table.encoding.for_model(), labels, recenter)

    def _ensemble(self) -> Ensemble:
        builder = EnsembleBuilder(self._table.shape[1], self._resolved.n_classes, self._baseline)
        n_before = len(self._continued.records) - 1 if self._continued else 0
        for trees in self._state.trees[: self._state.n_iter - n_before]:
            builder.add_iteration(trees)
        grown = builder.build(self._table.upper_value)
        return self._continued.model.ensemble.followed_by(grown) if self._continued else grown

    def _history(self, reason: str) -> History:
        monitor, continued = self._state.monitor, self._continued
        validation_weight = continued.history.validation_weight if continued else None
        if monitor is not None:
            validation_weight = monitor.total_weight
        return History.from_records(
            self._state.records,
            best_iteration=self._best_iteration(),
            stop_reason=reason,
            seed=self._resolved.seed,
            chosen=self._resolved.auto_values,
            train_weight=self._total_weight,
            validation_weight=validation_weight,
        )

    # -------------------------------------------------------------------------------- initial state

    def _initial_state(self) -> BoostingState:
        """Return the state before the first iteration."""
        weights, resolved = self._rows.integer_weights, self._resolved
        trainer = _core.Trainer(
            self._table.binned,
            self._labels(self._rows),
            self._params(weights),
            resolved.n_threads,
            self._initial_scores(self._rows, resolved.settings.handle_unknown),
            self._storage,
        )
        monitor = None if self._validation is None else self._monitor(self._validation)
        records = self._initial_records(trainer, monitor)
        return BoostingState(trainer, monitor, records, resolved.phase, self._total_weight)

    def _labels(self, rows: LabelledRows) -> _core.Labels:
        weights, shard, core_shard = rows.integer_weights, rows.shard, None
        if not shard.is_single:
            # Only draws of training rows need to know which of all rows these are.
            has_draws = self._resolved.settings.subsample < 1 and rows is self._rows
            core_shard = _core.Shard(shard.communicator, shard.row_ids() if has_draws else None)
        return _core.Labels(
            rows.y,
            weights.weight,
            weights.unit,
            self._resolved.n_classes,
            self._storage,
            core_shard,
        )

    def _params(self, weights: IntegerWeights) -> _core.TrainParams:
        settings, features = self._resolved.settings, self._resolved.features
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
            min_weight=weights.units(self._min_leaf_weight()),
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
            seed=self._resolved.seed,
            multi_output=settings.algorithm.multi_output,
            n_projections=self._resolved.n_projections,
            base_line_search=settings.line_search,
        )

    def _min_leaf_weight(self) -> float:
        """Return the minimum weight of a leaf; min_samples_leaf below 1 is a fraction of the total."""
        # Otherwise the bound is multiplied by the mean class factor: class_weight says how classes
        # matter relative to each other and does not change what min_samples_leaf means.
        bound = self._resolved.settings.min_samples_leaf
        return bound * (self._total_weight if bound < 1 else self._rows.class_factor)

    def _initial_scores(self, rows: LabelledRows, handle_unknown: str) -> Floats | None:
        """Return the initial scores; one column if equal for all rows, None if zero."""
        if self._continued is not None:
            return self._continued.raw(rows, handle_unknown, self._resolved.n_threads)
        return self._baseline[:, None] if self._baseline.any() else None

    def _monitor(self, validation: BinnedRows) -> Monitor:
        rows = validation.rows
        scores = _core.Validation(
            validation.table.binned,
            self._labels(rows),
            self._resolved.n_threads,
            self._initial_scores(rows, "missing"),  # X_val was checked for unknown categories
            self._storage,
        )
        has_base = self._continued is not None and self._continued.model.ensemble.has_base
        return Monitor(scores, rows, self._resolved, self._baseline, has_base=has_base)

    def _initial_records(self, trainer: _core.Trainer, monitor: Monitor | None) -> list[Record]:
        if self._continued is not None and self._continued is not self._previous:
            _check_losses(self._continued.records[-1], trainer, monitor)
            return [*self._continued.records]
        now = make_record(trainer, monitor)
        if self._previous is None:
            return [now]
        last = self._previous.records[-1]
        now = replace(now, base_class=last.base_class, search_losses=last.search_losses)
        return [*comparable_records(self._previous.records, now)[:-1], now]

    # --------------------------------------------------------------------------------------- memory

    def _size(self) -> memory.TrainingSize:
        settings = self._resolved.settings
        # The rows are enough for this many leaves.
        n_leaves = int(min(self._total_weight / self._min_leaf_weight(), 2**31)) + 1
        return memory.TrainingSize(
            n_rows=len(self._rows),
            n_validation_rows=len(self._validation.rows) if self._validation else 0,
            n_classes=self._resolved.n_classes,
            total_bins=self._table.binned.total_bins,
            max_leaf_nodes=min(settings.max_leaf_nodes, max(2, n_leaves)),
            n_threads=self._resolved.n_threads,
            n_candidates=self._resolved.base_policy.n_candidates,
            has_hessian=settings.algorithm.hessian_split,
            multi_output=settings.algorithm.multi_output,
            n_projections=self._resolved.n_projections,
            is_warm_start=self._continued is not None,
            has_scorer=settings.scoring.scorer is not None,
            has_ranks=not self._rows.shard.is_single,
        )

    # ------------------------------------------------------------------------------------- warnings

    def _warning(self) -> str | None:
        """Return why the model is constant, or that training was restarted, for a warning."""
        if self._best_iteration() == 0:
            return self._why_constant()
        if self._resolved.phase != "plain":
            return None
        return (
            "no iteration with a base class improves the validation score, so training was restarted "
            f"without one, as algorithm={self._resolved.settings.algorithm.name!r}"
        )

    def _why_constant(self) -> str:
        model = "every class has the same probability everywhere"
        if self._baseline.any():
            model = "every row has the same probabilities"
        if self._state.n_iter > 0:
            cause = "no iteration improves the validation score"
            hint = (
                "; a smaller learning_rate or a larger l2_regularization may help, and "
                "scoring='error' may improve where the loss does not"
            )
        else:
            cause, hint = "no tree can be split", self._why_no_split()
        rows = f"{self._rows.n_rows} row(s) of total weight {self._total_weight:g}"
        return f"{cause}, so {model}: {rows}{hint}"

    def _why_no_split(self) -> str:
        """Return why no tree can be split, as far as it is certain, and what may help."""
        if self._total_weight < 2 * self._min_leaf_weight():
            return self._too_light()
        if has_one_class(self._rows):
            return "; they are all of one class"
        if not any(map(len, self._table.thresholds)):
            return "; no feature has two values"
        settings = self._resolved.settings
        names = ("min_gain", "min_hessian_leaf", "min_samples_leaf", "l2_regularization")
        bounds = {name: getattr(settings, name) for name in names}
        smaller = " or ".join(f"{name} than {value:g}" for name, value in bounds.items() if value)
        larger = (
            f", a larger subsample than {settings.subsample:g}" if settings.subsample < 1 else ""
        )
        return f"; a smaller {smaller}{larger} may help, if any feature separates the classes"

    def _too_light(self) -> str:
        bound, factor = self._resolved.settings.min_samples_leaf, self._rows.class_factor
        times = f" times {factor:g}" if factor != 1 and bound >= 1 else ""
        return (
            f", less than twice min_samples_leaf={bound:g}{times}{' of it' if bound < 1 else ''}; "
            "give more rows, larger weights or a smaller min_samples_leaf"
        )


def _allocate_storage(train: BinnedRows, size: memory.TrainingSize) -> _core.Storage:
    """Return where scores and other arrays of all rows are stored: in memory or in scratch files.

    Raise MemoryError if they fit into neither.
    """
    table = train.rows.table
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
    """Raise ValueError unless the trees of a checkpoint give the losses that it records."""
    validation_loss = math.nan if monitor is None else monitor.loss()
    now = np.array([*trainer.class_losses(), validation_loss])
    then = np.array([*last.class_losses, last.validation_loss])
    if not np.array_equal(now, then, equal_nan=True):
        raise ValueError(
            "the trees of the checkpoint do not give the losses that it records; expected the same "
            "data and the same version of abcgbm as for the checkpoint"
        )
