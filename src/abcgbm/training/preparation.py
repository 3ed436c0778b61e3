"""From the arguments of fit to a training: rows are read, labelled, weighed, held out and binned."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.labels import ALLOWED_LABELS, known_classes
from abcgbm.data.parts.large_table import files_read, is_large
from abcgbm.data.reading import (
    RowsTable,
    read_large,
    read_rows_like,
    read_to_learn,
    read_together,
)
from abcgbm.data.row_bins import BinnedRows, Binning, bin_rows
from abcgbm.data.rows import (
    Classes,
    GivenRows,
    LabelledRows,
    ToValidate,
    rows_to_learn,
    rows_to_validate,
)
from abcgbm.model.file.values import to_json
from abcgbm.ranks.interrupts import uninterrupted
from abcgbm.ranks.share import ALONE, Share
from abcgbm.ranks.together import on_first, together
from abcgbm.settings.defaults import Size, settled
from abcgbm.settings.settings import Settings
from abcgbm.training.alike import check_same_settings
from abcgbm.training.checkpoint import Checkpoint, in_phase
from abcgbm.training.checkpoint_file import check_replaceable, check_same_training
from abcgbm.training.course import Course
from abcgbm.training.facts import facts_of
from abcgbm.training.plan import Plan, make_plan
from abcgbm.training.progress import ProgressOutput, ReadingLine
from abcgbm.training.start import EarlierFit
from abcgbm.training.training import Trained, Training
from abcgbm.training.validation import hold_out


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
    share: Share = ALONE
    goes_on: bool = False
    force: bool = False


def prepare(
    settings: Settings,
    given: FitArguments,
    earlier: EarlierFit | None,
    resumed: Checkpoint | None,
    began: float,
    owner: str,
) -> Course:
    """Return the trainings that can be run.

    The tables are not kept, but for what training needs.

    Parameters
    ----------
    settings : Settings
        The parameters.
    given : FitArguments
        The arguments of fit.
    earlier : EarlierFit or None
        What a warm start goes on from, or went on from before it was broken off.
    resumed : Checkpoint or None
        The state in which a fit was broken off that is to be gone on with.
    began : float
        When the fit began, on the monotonic clock.
    owner : str
        The estimator that errors speak of.
    """
    share, output = given.share, ProgressOutput()
    check_same_settings(settings, earlier, resumed, share)
    on_first(share.reducer, partial(_check_checkpoint, settings.checkpoint, given))
    rows, classes, held_out = _labelled(settings, given, earlier, owner, output)
    left_open = settings if earlier is None else earlier.kept(settings)
    size = Size(rows.n_rows, len(classes.labels))
    plan = make_plan(
        settled(left_open, size, has_validation=held_out is not None),
        rows.table.schema,
        classes,
        began,
        seed=None if earlier is None else earlier.history.seed,
        reducer=share.reducer,
    )
    together(share, partial(_check_can_be_saved, classes.labels, plan))
    if earlier is not None:
        earlier.check_steps(settings.max_iter)
    again = None
    if plan.stops_early and held_out is None:
        again = partial(_train_again, rows, resumed) if settings.refit else None
        rows, held_out = _hold_out(rows, plan)
    learned, validated = bin_rows(rows, held_out, _binning(plan, earlier))
    needs_facts = resumed is not None or _may_be_kept(settings, given) or not share.is_alone
    facts = facts_of(plan, learned, validated) if needs_facts else {}
    if resumed is not None:
        resumed.check(facts, plan)
    if not given.force:
        on_first(share.reducer, partial(check_same_training, settings.checkpoint, facts))
    first = _first_training(plan, learned, validated, earlier, resumed)
    n_earlier = None if earlier is None else earlier.model.n_steps
    reducer, goes_on = share.reducer, given.goes_on
    return Course(settings, first, again, facts, n_earlier, reducer, goes_on, output=output)


def _labelled(
    settings: Settings,
    given: FitArguments,
    earlier: EarlierFit | None,
    owner: str,
    output: ProgressOutput,
) -> tuple[LabelledRows, Classes, LabelledRows | None]:
    """Read, label and weigh the rows to learn from, and those to validate on if there are any."""
    share = given.share
    given = together(share, lambda: _with_labels(given, settings.verbose, output))
    table = read_together(share, given.X, lambda X: _read(X, settings, earlier, owner))
    to_learn = GivenRows(table, given.y, given.sample_weight, share)
    known = _known_classes(settings, earlier)
    rows, classes = rows_to_learn(to_learn, known, settings.class_weight)
    to_validate = ToValidate(given.X_val, given.y_val, given.sample_weight_val)
    return rows, classes, rows_to_validate(to_validate, table.schema, classes, owner, share)


def _check_checkpoint(path: Path | None, given: FitArguments) -> None:
    """Refuse a checkpoint that would replace a file of the user, before a table is read."""
    if path is not None and path.is_file():
        read = [*files_read(given.X), *files_read(given.X_val)]
        check_replaceable(path, read, force=given.force)


def _may_be_kept(settings: Settings, given: FitArguments) -> bool:
    """Whether there may be a checkpoint."""
    return settings.checkpoint is not None or given.goes_on


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
    plan: Plan,
    learned: BinnedRows,
    validated: BinnedRows | None,
    earlier: EarlierFit | None,
    resumed: Checkpoint | None,
) -> Training | Trained:
    """Return the training that is validated or, if that was over, what has come of it."""
    if resumed is None:
        return Training(plan, learned, validated, earlier)
    if resumed.validated is not None:
        return resumed.validated.as_trained(plan)
    plan = in_phase(plan, resumed.phase)
    return Training(plan, learned, validated, earlier, resumed.steps)


def _check_can_be_saved(labels: NDArray[Any], plan: Plan) -> None:
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


def _train_again(rows: LabelledRows, resumed: Checkpoint | None, trained: Trained) -> Training:
    """Return a training on all rows, for as many steps as validation chose."""
    plan = trained.plan.again(trained.history.best_step)
    steps = resumed.steps if resumed is not None and resumed.validated is not None else None

    def made() -> Training:
        learned, _ = bin_rows(rows, None, _binning(plan, None))
        return Training(plan, learned, None, None, steps)

    return uninterrupted(rows.share.reducer, made)


def _read(X: Any, settings: Settings, earlier: EarlierFit | None, owner: str) -> RowsTable:
    """Read the table to learn from; a warm start needs the columns that the model knows."""
    if earlier is None:
        return read_to_learn(X, settings.categorical_features, owner)
    earlier.check(settings)
    if not isinstance(X, BinnedTable):  # which has its own
        earlier.check_categories(settings.categorical_features)
    return read_rows_like(X, earlier.model.encoding.schema, owner)


def _known_classes(settings: Settings, earlier: EarlierFit | None) -> NDArray[Any] | None:
    if earlier is not None:
        return earlier.model.classes
    return None if settings.classes is None else known_classes(settings.classes)


def _hold_out(rows: LabelledRows, plan: Plan) -> tuple[LabelledRows, LabelledRows]:
    fraction = plan.settings.validation_fraction
    out, kept = hold_out(rows.y, plan.n_classes, fraction, plan.seed, rows.share)
    return rows.take(kept), rows.take(out)


def _binning(plan: Plan, earlier: EarlierFit | None) -> Binning:
    """A warm start keeps the levels of categories: the trees so far know their codes."""
    known = None if earlier is None else earlier.model.encoding
    settings = plan.settings
    return Binning(settings.max_bins, settings.handle_unknown, plan.n_threads, known)
