"""The course of a fit: one training after the other, while all who want to know hear of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from abcgbm.ranks.reducer import Reducer
from abcgbm.ranks.share import ALONE
from abcgbm.settings.settings import Settings
from abcgbm.training.callbacks import Afar, StepListener, StepWatcher
from abcgbm.training.checkpoint import Checkpoint, Validated
from abcgbm.training.checkpoint_writer import CheckpointWriter, Save
from abcgbm.training.facts import Facts
from abcgbm.training.progress import ProgressLine, ProgressOutput
from abcgbm.training.training import Trained, Training

Again = Callable[[Trained], Training]  # makes the training of ``refit``
State = Callable[[], Checkpoint | None]  # tells how far the training under way is


def _unknown() -> None:
    return None


class Listeners(NamedTuple):
    """Who hears of the steps of all trainings of a fit."""

    task: StepListener
    writer: CheckpointWriter


@dataclass
class Course:
    """The trainings of a fit that are still to come.

    Attributes
    ----------
    settings : Settings
        The parameters.
    first : Training or Trained
        The training that is validated; if that was over when the fit was broken off, its outcome.
    again : callable or None
        Makes the training of ``refit`` after it, if that is asked for.
    facts : dict
        What the fit depends on; empty if neither a checkpoint is written nor one gone on from.
    n_earlier : int or None
        Steps of the model that a warm start goes on from; None without one.
    reducer : Reducer
        The rank; the first one alone shows progress, writes checkpoints and asks callbacks.
    goes_on : bool
        Whether the fit is gone on with, if it is broken off.
    state : callable
        If the fit goes on: tells how far the training is, or was when it was broken off.
    afar : Afar
        Who follows from another process.
    output : ProgressOutput
        Where progress is written.
    """

    settings: Settings
    first: Training | Trained
    again: Again | None
    facts: Facts
    n_earlier: int | None
    reducer: Reducer = ALONE.reducer
    goes_on: bool = False
    state: State = _unknown
    afar: Afar = field(default_factory=Afar)
    output: ProgressOutput = field(default_factory=ProgressOutput)

    @property
    def n_steps_to_come(self) -> int | None:
        """Most steps that are left; None: nobody knows."""
        return None if isinstance(self.first, Trained) else self.first.n_steps_to_come

    def run(self, task: StepListener, save: Save) -> tuple[Trained, Trained | None]:
        """Train; return what has come of it, and of ``refit`` if that came to its end.

        ``task`` hears of every step; ``save`` writes a checkpoint.
        """
        settings, is_first = self.settings, self.reducer.rank == 0
        path = settings.checkpoint and settings.checkpoint.absolute()  # whoever goes elsewhere
        path = path if is_first else None
        listeners = Listeners(task, CheckpointWriter(path, settings.checkpoint_every, save))
        first = self.first
        trained = first if isinstance(first, Trained) else self._train(first, listeners)
        del first, self.first  # which may be as large as the next one
        return trained, self._refit(trained, listeners)

    def _train(
        self, training: Training, listeners: Listeners, validated: Validated | None = None
    ) -> Trained:
        settings = self.settings

        def fitted() -> dict[str, Any]:
            so_far = training.trained("callback")
            return {"model_": so_far.model, "history_": so_far.history, "refit_history_": None}

        def checkpoint() -> Checkpoint | None:
            state = training.state()
            return state and Checkpoint(*state, self.facts, self.n_earlier, validated)

        self.state = checkpoint if self.goes_on else _unknown
        verbose = settings.verbose if self.reducer.rank == 0 else 0
        progress = ProgressLine(training.max_iter, verbose, self.output)
        with progress, listeners.writer.watching(checkpoint) as writer:
            watcher = StepWatcher(
                training.class_labels, progress, settings.callbacks, listeners.task, fitted, writer
            )
            watcher.afar = self.afar
            reason = training.run(watcher)
            progress.finish(reason)
        ended = self.state()
        self.state = lambda: ended  # without the training, which is not kept longer than it lasts
        return training.trained(reason)

    def _refit(self, trained: Trained, listeners: Listeners) -> Trained | None:
        """Train on all rows, for the steps that validation chose; None if not to the end."""
        if self.again is None or trained.history.stop_reason in ("max_time", "interrupted"):
            return None
        try:
            validated = Validated.from_trained(trained)
            refitted = self._train(self.again(trained), listeners, validated)
        except KeyboardInterrupt:
            if self.settings.on_interrupt == "raise":
                raise
            return None
        broken_off = ("max_time", "callback", "interrupted")
        return None if refitted.history.stop_reason in broken_off else refitted
