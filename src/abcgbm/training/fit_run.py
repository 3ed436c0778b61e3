"""A fit: from its arguments to its phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from abcgbm._version import VERSION
from abcgbm.communication.collectives import (
    allgather_results,
    on_rank_zero,
    raise_together,
    uninterrupted,
)
from abcgbm.communication.communicator import Communicator
from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.binning import BinnedRows, Binning, bin_rows
from abcgbm.data.digest import digest_of
from abcgbm.data.files.large_table import files_read, is_large
from abcgbm.data.labels import ALLOWED_LABELS, known_classes
from abcgbm.data.samples import (
    ClassLabels,
    GivenRows,
    LabelledRows,
    RowsTable,
    ToValidate,
    read_large,
    read_rows_like,
    read_to_learn,
    read_together,
    rows_to_learn,
    rows_to_validate,
)
from abcgbm.model.file.json_values import to_json
from abcgbm.parameters.defaults import Size, settled
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.callbacks import CallbackList, FitCallback, RemoteListener
from abcgbm.training.checkpoint import (
    CheckpointWriter,
    FitState,
    Save,
    ValidatedResult,
    check_replaceable,
    check_same_training,
    in_phase,
)
from abcgbm.training.fingerprint import NOT_IN_FINGERPRINT, Fingerprint, fingerprint_of
from abcgbm.training.progress import ProgressLine, ProgressOutput, ReadingLine
from abcgbm.training.resolved import ResolvedParameters, resolve_parameters
from abcgbm.training.training_run import TrainingResult, TrainingRun
from abcgbm.training.validation import hold_out
from abcgbm.training.warm_start import PreviousFit

MakeRefit = Callable[[TrainingResult], TrainingRun]  # makes the phase "refit"
GetState = Callable[[], FitState | None]  # returns the state of the current phase


def _no_state() -> None:
    return None


@dataclass
class FitRun:
    """A fit that is ready to run: the validated phase, and how to make the refit.

    Attributes
    ----------
    settings : Parameters
        Parameters.
    first : TrainingRun or TrainingResult
        The validated phase; its result if it had ended when the fit was interrupted.
    make_refit : callable or None
        Makes the phase "refit"; None without it.
    fingerprint : dict
        Fingerprint of the fit; empty if no checkpoint is written or resumed from.
    n_previous : int or None
        Number of iterations of the model that a warm start continues; None without one.
    communicator : Communicator
        Communicator of this rank; rank 0 alone shows progress, writes checkpoints and calls callbacks.
    keeps_state : bool
        Whether the state can be asked for by ``get_state``, so that an interrupted fit can be resumed.
    get_state : callable
        Returns the current state of the fit, or its state when it was interrupted.
    listener : RemoteListener
        Listener in another process.
    output : ProgressOutput
        Output of progress.
    """

    settings: Parameters
    first: TrainingRun | TrainingResult
    make_refit: MakeRefit | None
    fingerprint: Fingerprint
    n_previous: int | None
    communicator: Communicator = LOCAL.communicator
    keeps_state: bool = False
    get_state: GetState = _no_state
    listener: RemoteListener = field(default_factory=RemoteListener)
    output: ProgressOutput = field(default_factory=ProgressOutput)

    @property
    def n_iter_left(self) -> int | None:
        """Maximum number of iterations left; None: unknown."""
        return None if isinstance(self.first, TrainingResult) else self.first.n_iter_left

    def run(self, task: FitCallback, save: Save) -> tuple[TrainingResult, TrainingResult | None]:
        """Run all phases; return the result of the validated phase, and of a completed refit.

        ``task`` is notified of every iteration; ``save`` writes a checkpoint.
        """
        settings, path = self.settings, None
        if settings.checkpoint is not None and self.communicator.rank == 0:
            path = settings.checkpoint.absolute()  # a callback may change the working directory
        writer = CheckpointWriter(path, settings.checkpoint_every, save)
        first = self.first
        result = first if isinstance(first, TrainingResult) else self._train(first, task, writer)
        del first, self.first  # frees the memory that the refit needs
        return result, self._refit(result, task, writer)

    def _train(
        self,
        training: TrainingRun,
        task: FitCallback,
        writer: CheckpointWriter,
        validated: ValidatedResult | None = None,
    ) -> TrainingResult:
        settings = self.settings

        def fitted() -> dict[str, Any]:
            result = training.result("callback")
            return {"model_": result.model, "history_": result.history, "refit_history_": None}

        def state() -> FitState | None:
            checkpoint = training.checkpoint()
            return checkpoint and FitState(
                *checkpoint, self.fingerprint, self.n_previous, validated
            )

        self.get_state = state if self.keeps_state else _no_state
        verbose = settings.verbose if self.communicator.rank == 0 else 0
        progress = ProgressLine(training.max_iter, verbose, self.output)
        with progress, writer.attached(state):
            callbacks = CallbackList(
                training.class_labels, progress, settings.callbacks, task, fitted, writer
            )
            callbacks.listener = self.listener
            reason = training.run(callbacks)
            progress.finish(reason)
        last = self.get_state()
        self.get_state = lambda: last  # keeps the state, but not the training
        return training.result(reason)

    def _refit(
        self, result: TrainingResult, task: FitCallback, writer: CheckpointWriter
    ) -> TrainingResult | None:
        """Train on all rows for the best number of iterations; None if it is not completed."""
        if self.make_refit is None or result.history.stop_reason in ("time_limit", "interrupted"):
            return None
        try:
            validated = ValidatedResult.from_result(result)
            refitted = self._train(self.make_refit(result), task, writer, validated)
        except KeyboardInterrupt:
            if not self.settings.keep_on_interrupt:
                raise
            return None
        incomplete = ("time_limit", "callback", "interrupted")
        return None if refitted.history.stop_reason in incomplete else refitted


class FitArguments(NamedTuple):
    """Arguments of fit.

    ``keeps_state``: the state can be asked for during the fit. ``force``: a checkpoint may replace
    any file.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    shard: Shard = LOCAL
    keeps_state: bool = False
    force: bool = False


def prepare(
    settings: Parameters,
    given: FitArguments,
    previous: PreviousFit | None,
    resumed: FitState | None,
    began: float,
    owner: str,
) -> FitRun:
    """Check, read and bin the rows, and resolve the parameters; return the fit, ready to run.

    Parameters
    ----------
    settings : Parameters
        Parameters.
    given : FitArguments
        Arguments of fit.
    previous : PreviousFit or None
        The fit that a warm start continues.
    resumed : FitState or None
        The checkpoint to resume from.
    began : float
        Start of the fit on the monotonic clock.
    owner : str
        Name of the estimator for error messages.
    """
    shard, output = given.shard, ProgressOutput()
    check_same_on_all_ranks(settings, previous, resumed, shard)
    on_rank_zero(shard.communicator, partial(_check_checkpoint_path, settings.checkpoint, given))
    train, classes, validation = _read_rows(settings, given, previous, owner, output)
    has_validation = validation is not None
    plan = _resolve(settings, train, classes, previous, began, has_validation=has_validation)
    make_refit = None
    if plan.stops_early and validation is None:
        make_refit = partial(_make_refit, train, resumed) if settings.refit else None
        # The shard of the rows with weight, which may be fewer than those given.
        held_out, rest = hold_out(
            train.y, plan.n_classes, settings.validation_fraction, plan.seed, train.shard
        )
        train, validation = train.take(rest), train.take(held_out)
    binned = bin_rows(train, validation, _binning(plan, previous))
    fingerprint = _checked_fingerprint(settings, given, resumed, plan, binned)
    return FitRun(
        settings,
        _first_phase(plan, binned, previous, resumed),
        make_refit,
        fingerprint,
        n_previous=None if previous is None else previous.model.n_iter,
        communicator=shard.communicator,
        keeps_state=given.keeps_state,
        output=output,
    )


# ------------------------------------------------------------------------------------ several ranks

# Rank 0 draws for all ranks; scoring is compared by its name.
_NOT_COMPARED = (*NOT_IN_FINGERPRINT, "random_state", "scoring")


def check_same_on_all_ranks(
    settings: Parameters, previous: PreviousFit | None, resumed: FitState | None, shard: Shard
) -> None:
    """Raise ValueError on all ranks unless they have the same parameters and continue the same fit."""
    if shard.is_single:
        return
    gathered = allgather_results(
        shard, lambda: (shard.name, _values_to_compare(settings, previous, resumed))
    )
    first, expected = gathered[0]
    for rank, of_rank in gathered:
        for name, value in of_rank.items():
            if value != expected[name]:
                raise ValueError(
                    f"{name} is {value} on {rank}, {expected[name]} on {first}; expected the same"
                )


def _values_to_compare(
    settings: Parameters, previous: PreviousFit | None, resumed: FitState | None
) -> dict[str, Any]:
    if settings.scoring.scorer is not None:
        raise ValueError(
            f"scoring={settings.scoring.given!r} with several ranks; expected 'loss' or 'error': no "
            "rank has all rows, which a scorer needs"
        )
    names = [f.name for f in fields(settings) if f.name not in _NOT_COMPARED]
    return {
        "the version of abcgbm": VERSION,
        **{name: repr(getattr(settings, name)) for name in ("max_iter", *names)},
        "scoring": repr(settings.scoring.given),
        "the model of the previous fit": None if previous is None else digest_of(previous.model),
        "resume_from": (
            None if resumed is None else digest_of([resumed.fingerprint, resumed.model])
        ),
    }


# ------------------------------------------------------------------------------------- reading rows


def _check_checkpoint_path(path: Path | None, given: FitArguments) -> None:
    """Raise an OSError, before a table is read, if a checkpoint would replace a file of the user."""
    if path is not None and path.is_file():
        read = [*files_read(given.X), *files_read(given.X_val)]
        check_replaceable(path, read, force=given.force)


def _read_rows(
    settings: Parameters,
    given: FitArguments,
    previous: PreviousFit | None,
    owner: str,
    output: ProgressOutput,
) -> tuple[LabelledRows, ClassLabels, LabelledRows | None]:
    """Read tables, labels and weights: the training rows, the classes, and the validation rows."""
    shard = given.shard
    given = raise_together(shard, lambda: _read_large_tables(given, settings.verbose, output))
    table = read_together(shard, given.X, lambda X: _read_table(X, settings, previous, owner))
    known = None if settings.classes is None else known_classes(settings.classes)
    if previous is not None:
        known = previous.model.classes
    to_learn = GivenRows(table, given.y, given.sample_weight, shard)
    rows, classes = rows_to_learn(to_learn, known, settings.class_weight)
    to_validate = ToValidate(given.X_val, given.y_val, given.sample_weight_val)
    return rows, classes, rows_to_validate(to_validate, table.schema, classes, owner, shard)


def _read_large_tables(given: FitArguments, verbose: int, output: ProgressOutput) -> FitArguments:
    """Read the labels and weights of tables out of core, where they are columns given by name."""
    label, watch = given.y, partial(ReadingLine, verbose, output=output) if verbose else None
    if is_large(given.X):
        X, y, weight = read_large((given.X, given.y, given.sample_weight), "", watch)
        given = given._replace(X=X, y=y, sample_weight=weight)
    if is_large(given.X_val):
        label_val = label if given.y_val is None and isinstance(label, str) else given.y_val
        X, y, weight = read_large((given.X_val, label_val, given.sample_weight_val), "_val", watch)
        given = given._replace(X_val=X, y_val=y, sample_weight_val=weight)
    return given


def _read_table(
    X: Any, settings: Parameters, previous: PreviousFit | None, owner: str
) -> RowsTable:
    """Read the training table; a warm start needs the columns of the model."""
    if previous is None:
        return read_to_learn(X, settings.categorical_features, owner)
    previous.check(settings)
    if not isinstance(X, BinnedTable):  # it has categorical features of its own
        previous.check_categories(settings.categorical_features)
    return read_rows_like(X, previous.model.encoding.schema, owner)


# ------------------------------------------------------------------------------ parameters and bins


def _resolve(
    settings: Parameters,
    rows: LabelledRows,
    classes: ClassLabels,
    previous: PreviousFit | None,
    began: float,
    *,
    has_validation: bool,
) -> ResolvedParameters:
    if previous is not None:
        settings = previous.with_model_defaults(settings)
    size = Size(rows.n_rows, len(classes.labels))
    plan = resolve_parameters(
        settled(settings, size, has_validation=has_validation),
        rows.table.schema,
        classes,
        began,
        seed=None if previous is None else previous.history.seed,
        communicator=rows.shard.communicator,
    )
    raise_together(rows.shard, partial(_check_can_be_saved, classes.labels, plan))
    if previous is not None:
        previous.check_n_iter(settings.max_iter)
    return plan


def _check_can_be_saved(labels: NDArray[Any], plan: ResolvedParameters) -> None:
    """Raise TypeError, before training, if the model could not be saved after it."""
    try:
        to_json(labels)
    except TypeError as error:
        raise TypeError(
            f"y has labels such as {labels[0]!r}: {error}; expected {ALLOWED_LABELS}, each of a type "
            "of Python or NumPy"
        ) from error
    for name, value in plan.resolved.items():
        try:
            to_json(value)
        except TypeError as error:
            raise TypeError(
                f"{name}={value!r}: {error}; expected a type of abcgbm or Python"
            ) from error


def _binning(plan: ResolvedParameters, previous: PreviousFit | None) -> Binning:
    # A warm start keeps the categories of the model, because its trees contain their codes.
    known = None if previous is None else previous.model.encoding
    settings = plan.settings
    return Binning(settings.max_bins, settings.handle_unknown, plan.n_threads, known)


def _checked_fingerprint(
    settings: Parameters,
    given: FitArguments,
    resumed: FitState | None,
    plan: ResolvedParameters,
    binned: tuple[BinnedRows, BinnedRows | None],
) -> Fingerprint:
    """Return the fingerprint of the fit, if it is needed, after comparing it with checkpoints."""
    shard = given.shard
    writes_states = settings.checkpoint is not None or given.keeps_state
    is_needed = resumed is not None or writes_states or not shard.is_single
    fingerprint = fingerprint_of(plan, *binned) if is_needed else {}
    if resumed is not None:
        resumed.check(fingerprint, plan)
    if not given.force:
        check = partial(check_same_training, settings.checkpoint, fingerprint)
        on_rank_zero(shard.communicator, check)
    return fingerprint


# ------------------------------------------------------------------------------------------- phases


def _first_phase(
    plan: ResolvedParameters,
    binned: tuple[BinnedRows, BinnedRows | None],
    previous: PreviousFit | None,
    resumed: FitState | None,
) -> TrainingRun | TrainingResult:
    """Return the validated phase; its result if it had ended at the checkpoint."""
    if resumed is None:
        return TrainingRun(plan, *binned, previous)
    if resumed.validated is not None:
        return resumed.validated.to_result(plan)
    plan = in_phase(plan, resumed.phase)
    return TrainingRun(plan, *binned, previous, resumed.all_iterations)


def _make_refit(
    rows: LabelledRows, resumed: FitState | None, result: TrainingResult
) -> TrainingRun:
    """Return the phase "refit": on all rows, for the best number of iterations."""
    plan = result.plan.for_refit(result.history.best_iteration)
    iterations = None
    if resumed is not None and resumed.validated is not None:
        iterations = resumed.all_iterations

    def make() -> TrainingRun:
        train, _ = bin_rows(rows, None, _binning(plan, None))
        return TrainingRun(plan, train, None, None, iterations)

    return uninterrupted(rows.shard.communicator, make)
