"""A fit: from its arguments to its phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from abcgbm.data.labels import known_classes
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
from abcgbm.parameters.defaults import Size, resolve_defaults
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
from abcgbm.training.early_stopping import NO_TIME_LEFT, STOP_REQUESTED
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
        Parameters as given, with "auto".
    first : TrainingRun, TrainingResult or None
        The validated phase; its result if it had ended when the fit was interrupted. None from its end on.
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
    output : ProgressOutput
        Output of progress.
    get_state : callable
        Returns the current state of the fit, or its state when it was interrupted.
    listener : RemoteListener
        Listener in another process.
    """

    settings: Parameters
    first: TrainingRun | TrainingResult | None
    make_refit: MakeRefit | None
    fingerprint: Fingerprint
    n_previous: int | None
    communicator: Communicator
    keeps_state: bool
    output: ProgressOutput
    get_state: GetState = _no_state
    listener: RemoteListener = field(default_factory=RemoteListener)

    @property
    def n_iter_left(self) -> int | None:
        """Maximum number of iterations left; None: unknown."""
        return self.first.n_iter_left if isinstance(self.first, TrainingRun) else None

    def run(
        self, sklearn_callback: FitCallback, save: Save
    ) -> tuple[TrainingResult, TrainingResult | None]:
        """Run all phases; return the result of the validated phase, and of a completed refit.

        ``sklearn_callback`` is notified of every iteration; ``save`` writes a checkpoint.
        """
        settings = self.settings
        path = None
        if settings.checkpoint is not None and self.communicator.rank == 0:
            path = settings.checkpoint.absolute()  # a callback may change the working directory
        writer = CheckpointWriter(path, settings.checkpoint_every, save)
        first, self.first = self.first, None  # frees the memory that the refit needs
        if first is None:
            raise RuntimeError("this fit has run already")
        result = (
            first
            if isinstance(first, TrainingResult)
            else self._train(first, sklearn_callback, writer)
        )
        del first
        return result, self._refit(result, sklearn_callback, writer)

    def _train(
        self,
        training: TrainingRun,
        sklearn_callback: FitCallback,
        writer: CheckpointWriter,
        validated: ValidatedResult | None = None,
    ) -> TrainingResult:
        settings = self.settings

        def fitted() -> dict[str, Any]:
            """Return the fitted attributes as if training had ended here."""
            result = training.result("callback")
            return {"model_": result.model, "history_": result.history, "refit_history_": None}

        def state() -> FitState | None:
            checkpoint = training.checkpoint()
            if checkpoint is None:
                return None
            return FitState(*checkpoint, self.fingerprint, self.n_previous, validated)

        self.get_state = state if self.keeps_state else _no_state
        verbose = settings.verbose if self.communicator.rank == 0 else 0
        progress = ProgressLine(training.max_iter, verbose, self.output)
        with progress, writer.attached(state):
            callbacks = CallbackList(
                training.class_labels,
                progress,
                settings.callbacks,
                sklearn_callback,
                fitted,
                writer,
            )
            callbacks.listener = self.listener
            reason = training.run(callbacks)
            progress.finish(reason)
        last = self.get_state()
        self.get_state = lambda: last  # keeps the state, but not the training
        return training.result(reason)

    def _refit(
        self, result: TrainingResult, sklearn_callback: FitCallback, writer: CheckpointWriter
    ) -> TrainingResult | None:
        """Train on all rows for the best number of iterations; None if it is not completed."""
        if self.make_refit is None or result.history.stop_reason in NO_TIME_LEFT:
            return None
        try:
            validated = ValidatedResult.from_result(result)
            refitted = self._train(self.make_refit(result), sklearn_callback, writer, validated)
        except KeyboardInterrupt:
            if not self.settings.keep_on_interrupt:
                raise
            return None
        return None if refitted.history.stop_reason in STOP_REQUESTED else refitted


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
    start_time: float,
    estimator_name: str,
) -> FitRun:
    """Check, read and bin the rows, and resolve the parameters; return the fit, ready to run.

    Parameters
    ----------
    settings : Parameters
        Parameters as given, with "auto".
    given : FitArguments
        Arguments of fit.
    previous : PreviousFit or None
        The fit that a warm start continues.
    resumed : FitState or None
        The checkpoint to resume from.
    start_time : float
        Start of the fit on the monotonic clock.
    estimator_name : str
        Name of the estimator for error messages.
    """
    shard = given.shard
    output = ProgressOutput()
    check_same_on_all_ranks(settings, previous, resumed, shard)
    on_rank_zero(shard.communicator, partial(_check_checkpoint_path, settings.checkpoint, given))
    train, classes, validation = _read_rows(settings, given, previous, estimator_name, output)
    has_validation = validation is not None
    resolved = _resolve(
        settings, train, classes, previous, start_time, has_validation=has_validation
    )
    make_refit = None
    if resolved.stops_early and validation is None:
        make_refit = partial(_make_refit, train, resumed) if settings.refit else None
        # Not given.shard: rows of weight 0 are gone.
        held_out, rest = hold_out(
            train.y, resolved.n_classes, settings.validation_fraction, resolved.seed, train.shard
        )
        train, validation = train.take(rest), train.take(held_out)
    binned = bin_rows(train, validation, _binning(resolved, previous))
    fingerprint = _checked_fingerprint(settings, given, resumed, resolved, binned)
    return FitRun(
        settings,
        _first_phase(resolved, binned, previous, resumed),
        make_refit,
        fingerprint,
        n_previous=None if previous is None else previous.model.n_iter,
        communicator=shard.communicator,
        keeps_state=given.keeps_state,
        output=output,
    )


# ------------------------------------------------------------------------------------------- checks

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
    # max_iter is not in the fingerprint, but ranks must agree on it.
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


def _check_checkpoint_path(path: Path | None, given: FitArguments) -> None:
    """Raise an OSError, before a table is read, if a checkpoint would replace a file of the user."""
    if path is not None and path.is_file():
        read = [*files_read(given.X), *files_read(given.X_val)]
        check_replaceable(path, read, force=given.force)


# ------------------------------------------------------------------------------------- reading rows


def _read_rows(
    settings: Parameters,
    given: FitArguments,
    previous: PreviousFit | None,
    estimator_name: str,
    output: ProgressOutput,
) -> tuple[LabelledRows, ClassLabels, LabelledRows | None]:
    """Read tables, labels and weights: the training rows, the classes, and the validation rows."""
    shard = given.shard
    given = raise_together(shard, lambda: _read_large_tables(given, settings.verbose, output))
    table = read_together(
        shard, given.X, lambda X: _read_table(X, settings, previous, estimator_name)
    )
    known = None
    if previous is not None:
        known = previous.model.classes
    elif settings.classes is not None:
        known = known_classes(settings.classes)
    to_learn = GivenRows(table, given.y, given.sample_weight, shard)
    rows, classes = rows_to_learn(to_learn, known, settings.class_weight)
    to_validate = ToValidate(given.X_val, given.y_val, given.sample_weight_val)
    return (
        rows,
        classes,
        rows_to_validate(to_validate, table.schema, classes, estimator_name, shard),
    )


def _read_large_tables(given: FitArguments, verbose: int, output: ProgressOutput) -> FitArguments:
    """Read the labels and weights of tables out of core, where they are columns given by name."""
    label = given.y
    watch = partial(ReadingLine, verbose, output=output) if verbose else None
    if is_large(given.X):
        X, y, weight = read_large((given.X, given.y, given.sample_weight), "", watch)
        given = given._replace(X=X, y=y, sample_weight=weight)
    if is_large(given.X_val):
        label_val = label if given.y_val is None and isinstance(label, str) else given.y_val
        X, y, weight = read_large((given.X_val, label_val, given.sample_weight_val), "_val", watch)
        given = given._replace(X_val=X, y_val=y, sample_weight_val=weight)
    return given


def _read_table(
    X: Any, settings: Parameters, previous: PreviousFit | None, estimator_name: str
) -> RowsTable:
    """Read the training table; a warm start needs the columns of the model."""
    if previous is None:
        return read_to_learn(X, settings.categorical_features, estimator_name)
    previous.check(settings)
    if not isinstance(X, BinnedTable):  # it has categorical features of its own
        previous.check_categories(settings.categorical_features)
    return read_rows_like(X, previous.model.encoding.schema, estimator_name)


# ------------------------------------------------------------------------------ parameters and bins


def _resolve(
    settings: Parameters,
    rows: LabelledRows,
    classes: ClassLabels,
    previous: PreviousFit | None,
    start_time: float,
    *,
    has_validation: bool,
) -> ResolvedParameters:
    if previous is not None:
        previous.check_n_iter(settings.max_iter)
        settings = previous.with_model_defaults(settings)
    size = Size(rows.n_rows, len(classes.labels))
    resolved = resolve_parameters(
        resolve_defaults(settings, size, has_validation=has_validation),
        rows.table.schema,
        classes,
        start_time,
        seed=None if previous is None else previous.history.seed,
        communicator=rows.shard.communicator,
    )
    raise_together(rows.shard, resolved.check_can_be_saved)
    return resolved


def _binning(resolved: ResolvedParameters, previous: PreviousFit | None) -> Binning:
    # A warm start keeps the categories of the model, because its trees contain their codes.
    known = None if previous is None else previous.model.encoding
    settings = resolved.settings
    return Binning(settings.max_bins, settings.handle_unknown, resolved.n_threads, known)


def _checked_fingerprint(
    settings: Parameters,
    given: FitArguments,
    resumed: FitState | None,
    resolved: ResolvedParameters,
    binned: tuple[BinnedRows, BinnedRows | None],
) -> Fingerprint:
    """Return the fingerprint of the fit, if it is needed, after comparing it with checkpoints."""
    shard = given.shard
    writes_states = settings.checkpoint is not None or given.keeps_state
    is_needed = resumed is not None or writes_states or not shard.is_single
    fingerprint = fingerprint_of(resolved, *binned) if is_needed else {}
    if resumed is not None:
        resumed.check(fingerprint, resolved)
    if not given.force:
        check = partial(check_same_training, settings.checkpoint, fingerprint)
        on_rank_zero(shard.communicator, check)
    return fingerprint


# ------------------------------------------------------------------------------------------- phases


def _first_phase(
    resolved: ResolvedParameters,
    binned: tuple[BinnedRows, BinnedRows | None],
    previous: PreviousFit | None,
    resumed: FitState | None,
) -> TrainingRun | TrainingResult:
    """Return the validated phase; its result if it had ended at the checkpoint."""
    if resumed is None:
        return TrainingRun(resolved, *binned, previous)
    if resumed.validated is not None:
        return resumed.validated.to_result(resolved)
    resolved = in_phase(resolved, resumed.phase)
    return TrainingRun(resolved, *binned, previous, resumed.all_iterations)


def _make_refit(
    rows: LabelledRows, resumed: FitState | None, result: TrainingResult
) -> TrainingRun:
    """Return the phase "refit": on all rows, for the best number of iterations."""
    resolved = result.resolved.for_refit(result.history.best_iteration)
    iterations = None
    if resumed is not None and resumed.validated is not None:
        iterations = resumed.all_iterations

    def make() -> TrainingRun:
        train, _ = bin_rows(rows, None, _binning(resolved, None))
        return TrainingRun(resolved, train, validation=None, previous=None, resumed=iterations)

    return uninterrupted(rows.shard.communicator, make)
