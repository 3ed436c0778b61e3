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
    Validated,
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

MakeRefit = Callable[[TrainingResult], TrainingRun]  # makes the training of ``refit``
State = Callable[[], FitState | None]  # tells how far the training under way is


def _unknown() -> None:
    return None


class Listeners(NamedTuple):
    """Who hears of the steps of all trainings of a fit."""

    task: FitCallback
    writer: CheckpointWriter


@dataclass
class FitRun:
    """The trainings of a fit that are still to come.

    Attributes
    ----------
    settings : Parameters
        The parameters.
    first : TrainingRun or TrainingResult
        The training that is validated; if that was over when the fit was broken off, its outcome.
    again : callable or None
        Makes the training of ``refit`` after it, if that is asked for.
    facts : dict
        What the fit depends on; empty if neither a checkpoint is written nor one gone on from.
    n_earlier : int or None
        Steps of the model that a warm start goes on from; None without one.
    communicator : Communicator
        The rank; the first one alone shows progress, writes checkpoints and asks callbacks.
    keeps_state : bool
        Whether the fit is gone on with, if it is broken off.
    state : callable
        If the fit goes on: tells how far the training is, or was when it was broken off.
    afar : RemoteListener
        Who follows from another process.
    output : ProgressOutput
        Where progress is written.
    """

    settings: Parameters
    first: TrainingRun | TrainingResult
    again: MakeRefit | None
    facts: Fingerprint
    n_earlier: int | None
    communicator: Communicator = LOCAL.communicator
    keeps_state: bool = False
    state: State = _unknown
    afar: RemoteListener = field(default_factory=RemoteListener)
    output: ProgressOutput = field(default_factory=ProgressOutput)

    @property
    def n_iter_left(self) -> int | None:
        """Most steps that are left; None: nobody knows."""
        return None if isinstance(self.first, TrainingResult) else self.first.n_iter_left

    def run(self, task: FitCallback, save: Save) -> tuple[TrainingResult, TrainingResult | None]:
        """Train; return what has come of it, and of ``refit`` if that came to its end.

        ``task`` hears of every step; ``save`` writes a checkpoint.
        """
        settings, is_first = self.settings, self.communicator.rank == 0
        path = settings.checkpoint and settings.checkpoint.absolute()  # whoever goes elsewhere
        path = path if is_first else None
        listeners = Listeners(task, CheckpointWriter(path, settings.checkpoint_every, save))
        first = self.first
        trained = first if isinstance(first, TrainingResult) else self._train(first, listeners)
        del first, self.first  # which may be as large as the next one
        return trained, self._refit(trained, listeners)

    def _train(
        self, training: TrainingRun, listeners: Listeners, validated: Validated | None = None
    ) -> TrainingResult:
        settings = self.settings

        def fitted() -> dict[str, Any]:
            so_far = training.trained("callback")
            return {"model_": so_far.model, "history_": so_far.history, "refit_history_": None}

        def checkpoint() -> FitState | None:
            state = training.state()
            return state and FitState(*state, self.facts, self.n_earlier, validated)

        self.state = checkpoint if self.keeps_state else _unknown
        verbose = settings.verbose if self.communicator.rank == 0 else 0
        progress = ProgressLine(training.max_iter, verbose, self.output)
        with progress, listeners.writer.watching(checkpoint) as writer:
            watcher = CallbackList(
                training.class_labels, progress, settings.callbacks, listeners.task, fitted, writer
            )
            watcher.afar = self.afar
            reason = training.run(watcher)
            progress.finish(reason)
        ended = self.state()
        self.state = lambda: ended  # without the training, which is not kept longer than it lasts
        return training.trained(reason)

    def _refit(self, trained: TrainingResult, listeners: Listeners) -> TrainingResult | None:
        """Train on all rows, for the steps that validation chose; None if not to the end."""
        if self.again is None or trained.history.stop_reason in ("time_limit", "interrupted"):
            return None
        try:
            validated = Validated.from_trained(trained)
            refitted = self._train(self.again(trained), listeners, validated)
        except KeyboardInterrupt:
            if not self.settings.keep_on_interrupt:
                raise
            return None
        interrupted = ("time_limit", "callback", "interrupted")
        return None if refitted.history.stop_reason in interrupted else refitted


_OTHERWISE = ("random_state", "scoring")  # rank 0 draws for all; told by its name


def check_same_on_all_ranks(
    settings: Parameters, earlier: PreviousFit | None, resumed: FitState | None, shard: Shard
) -> None:
    """Raise ValueError, on all ranks, unless they have the same parameters and go on from the same."""
    if shard.is_single:
        return
    told = allgather_results(shard, lambda: (shard.name, _told(settings, earlier, resumed)))
    first, expected = told[0]
    for rank, of_rank in told:
        for name, value in of_rank.items():
            if value != expected[name]:
                raise ValueError(
                    f"{name} is {value} on {rank}, {expected[name]} on {first}; expected the same"
                )


def _told(
    settings: Parameters, earlier: PreviousFit | None, resumed: FitState | None
) -> dict[str, Any]:
    if settings.scoring.scorer is not None:
        raise ValueError(
            f"scoring={settings.scoring.given!r} where several ranks share rows; expected 'loss' or "
            "'error': no rank has all rows that a scorer would see"
        )
    names = [f.name for f in fields(settings) if f.name not in (*NOT_IN_FINGERPRINT, *_OTHERWISE)]
    parameters = {name: repr(getattr(settings, name)) for name in ("max_iter", *names)}
    return {
        "the version of abcgbm": VERSION,
        **parameters,
        "scoring": repr(settings.scoring.given),
        "the model to go on from": None if earlier is None else digest_of(earlier.model),
        "resume_from": None if resumed is None else digest_of([resumed.facts, resumed.model]),
    }


class FitArguments(NamedTuple):
    """The arguments of fit, as they were given; and whether it is gone on with if it is broken off.

    ``force``: checkpoints may replace a file that is no checkpoint of this training.
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
    earlier: PreviousFit | None,
    resumed: FitState | None,
    began: float,
    owner: str,
) -> FitRun:
    """Return the trainings that can be run.

    The tables are not kept, but for what training needs.

    Parameters
    ----------
    settings : Parameters
        The parameters.
    given : FitArguments
        The arguments of fit.
    earlier : PreviousFit or None
        What a warm start goes on from, or went on from before it was broken off.
    resumed : FitState or None
        The state in which a fit was broken off that is to be gone on with.
    began : float
        When the fit began, on the monotonic clock.
    owner : str
        The estimator that errors speak of.
    """
    shard, output = given.shard, ProgressOutput()
    check_same_on_all_ranks(settings, earlier, resumed, shard)
    on_rank_zero(shard.communicator, partial(_check_checkpoint, settings.checkpoint, given))
    rows, classes, held_out = _labelled(settings, given, earlier, owner, output)
    left_open = settings if earlier is None else earlier.kept(settings)
    size = Size(rows.n_rows, len(classes.labels))
    plan = resolve_parameters(
        settled(left_open, size, has_validation=held_out is not None),
        rows.table.schema,
        classes,
        began,
        seed=None if earlier is None else earlier.history.seed,
        communicator=shard.communicator,
    )
    raise_together(shard, partial(_check_can_be_saved, classes.labels, plan))
    if earlier is not None:
        earlier.check_n_iter(settings.max_iter)
    again = None
    if plan.stops_early and held_out is None:
        again = partial(_train_again, rows, resumed) if settings.refit else None
        rows, held_out = _hold_out(rows, plan)
    learned, validated = bin_rows(rows, held_out, _binning(plan, earlier))
    needs_facts = resumed is not None or _may_be_kept(settings, given) or not shard.is_single
    facts = fingerprint_of(plan, learned, validated) if needs_facts else {}
    if resumed is not None:
        resumed.check(facts, plan)
    if not given.force:
        on_rank_zero(shard.communicator, partial(check_same_training, settings.checkpoint, facts))
    first = _first_training(plan, learned, validated, earlier, resumed)
    n_earlier = None if earlier is None else earlier.model.n_iter
    communicator, keeps_state = shard.communicator, given.keeps_state
    return FitRun(
        settings, first, again, facts, n_earlier, communicator, keeps_state, output=output
    )


def _labelled(
    settings: Parameters,
    given: FitArguments,
    earlier: PreviousFit | None,
    owner: str,
    output: ProgressOutput,
) -> tuple[LabelledRows, ClassLabels, LabelledRows | None]:
    """Read, label and weigh the rows to learn from, and those to validate on if there are any."""
    shard = given.shard
    given = raise_together(shard, lambda: _with_labels(given, settings.verbose, output))
    table = read_together(shard, given.X, lambda X: _read(X, settings, earlier, owner))
    to_learn = GivenRows(table, given.y, given.sample_weight, shard)
    known = _known_classes(settings, earlier)
    rows, classes = rows_to_learn(to_learn, known, settings.class_weight)
    to_validate = ToValidate(given.X_val, given.y_val, given.sample_weight_val)
    return rows, classes, rows_to_validate(to_validate, table.schema, classes, owner, shard)


def _check_checkpoint(path: Path | None, given: FitArguments) -> None:
    """Refuse a checkpoint that would replace a file of the user, before a table is read."""
    if path is not None and path.is_file():
        read = [*files_read(given.X), *files_read(given.X_val)]
        check_replaceable(path, read, force=given.force)


def _may_be_kept(settings: Parameters, given: FitArguments) -> bool:
    """Whether there may be a checkpoint."""
    return settings.checkpoint is not None or given.keeps_state


def _with_labels(given: FitArguments, verbose: int, output: ProgressOutput) -> FitArguments:
    """Read the labels and weights of tables that are read in parts, which are given by name."""
    label, watch = given.y, partial(ReadingLine, verbose, output=output) if verbose else None
    if is_large(given.X):
        X, y, weight = read_large((given.X, given.y, given.sample_weight), "", watch)
        given = given._replace(X=X, y=y, sample_weight=weight)
    if is_large(given.X_val):
        named = label if given.y_val is None and isinstance(label, str) else given.y_val
        X, y, weight = read_large((given.X_val, named, given.sample_weight_val), "_val", watch)
        given = given._replace(X_val=X, y_val=y, sample_weight_val=weight)
    return given


def _first_training(
    plan: ResolvedParameters,
    learned: BinnedRows,
    validated: BinnedRows | None,
    earlier: PreviousFit | None,
    resumed: FitState | None,
) -> TrainingRun | TrainingResult:
    """Return the training that is validated or, if that was over, what has come of it."""
    if resumed is None:
        return TrainingRun(plan, learned, validated, earlier)
    if resumed.validated is not None:
        return resumed.validated.as_trained(plan)
    plan = in_phase(plan, resumed.phase)
    return TrainingRun(plan, learned, validated, earlier, resumed.steps)


def _check_can_be_saved(labels: NDArray[Any], plan: ResolvedParameters) -> None:
    """A model that cannot be saved is found out before the training, not after it."""
    try:
        to_json(labels)
    except TypeError as error:
        raise TypeError(
            f"y has labels such as {labels[0]!r}: {error}; expected {ALLOWED_LABELS}, each of a type "
            "of Python or NumPy"
        ) from error
    for name, value in plan.chosen.items():
        try:
            to_json(value)
        except TypeError as error:
            raise TypeError(
                f"{name}={value!r}: {error}; expected a type of abcgbm or Python"
            ) from error


def _train_again(
    rows: LabelledRows, resumed: FitState | None, trained: TrainingResult
) -> TrainingRun:
    """Return a training on all rows, for as many steps as validation chose."""
    plan = trained.plan.again(trained.history.best_iteration)
    steps = resumed.steps if resumed is not None and resumed.validated is not None else None

    def made() -> TrainingRun:
        learned, _ = bin_rows(rows, None, _binning(plan, None))
        return TrainingRun(plan, learned, None, None, steps)

    return uninterrupted(rows.shard.communicator, made)


def _read(X: Any, settings: Parameters, earlier: PreviousFit | None, owner: str) -> RowsTable:
    """Read the table to learn from; a warm start needs the columns that the model knows."""
    if earlier is None:
        return read_to_learn(X, settings.categorical_features, owner)
    earlier.check(settings)
    if not isinstance(X, BinnedTable):  # which has its own
        earlier.check_categories(settings.categorical_features)
    return read_rows_like(X, earlier.model.encoding.schema, owner)


def _known_classes(settings: Parameters, earlier: PreviousFit | None) -> NDArray[Any] | None:
    if earlier is not None:
        return earlier.model.classes
    return None if settings.classes is None else known_classes(settings.classes)


def _hold_out(rows: LabelledRows, plan: ResolvedParameters) -> tuple[LabelledRows, LabelledRows]:
    fraction = plan.settings.validation_fraction
    out, kept = hold_out(rows.y, plan.n_classes, fraction, plan.seed, rows.shard)
    return rows.take(kept), rows.take(out)


def _binning(plan: ResolvedParameters, earlier: PreviousFit | None) -> Binning:
    """A warm start keeps the levels of categories: the trees so far know their codes."""
    known = None if earlier is None else earlier.model.encoding
    settings = plan.settings
    return Binning(settings.max_bins, settings.handle_unknown, plan.n_threads, known)
