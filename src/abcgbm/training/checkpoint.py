"""Checkpoints: the state of a fit, when it is written and which file it may replace."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from abcgbm.model.file import (
    ModelContents,
    ModelFileError,
    checkpoint_state,
    load,
    save,
    split_parameters,
)
from abcgbm.model.file.document import FORMAT
from abcgbm.model.file.model_file import Target
from abcgbm.model.history import History
from abcgbm.model.model import Model
from abcgbm.training.fingerprint import Fingerprint, differences
from abcgbm.training.resolved import ResolvedParameters
from abcgbm.training.training_run import TrainingResult
from abcgbm.training.warm_start import PreviousFit

_STATE = ("phase", "facts", "n_earlier", "validated")  # what is written beside trees and records


class Validated(NamedTuple):
    """What validation chose before ``refit`` began: a model, its record, a remark, and the phase."""

    model: Model
    history: History
    remark: str | None
    phase: str

    @classmethod
    def from_trained(cls, trained: TrainingResult) -> "Validated":
        """Keep what has come of a training, but for its plan."""
        return cls(trained.model, trained.history, trained.remark, trained.plan.phase)

    def as_trained(self, plan: ResolvedParameters) -> TrainingResult:
        """Return it as if it had just been trained by this plan."""
        return TrainingResult(self.model, self.history, self.remark, in_phase(plan, self.phase))


@dataclass(frozen=True)
class FitState:
    """The state of a fit after a step.

    Attributes
    ----------
    model : Model
        All steps of the training under way, those after the best one too.
    history : History
        Its record.
    phase : {"train", "plain", "refit"}
        Which training of the fit it is.
    facts : dict
        What the fit depends on.
    n_earlier : int or None
        Steps of the model that a warm start went on from; None without one.
    validated : Validated or None
        In the phase "refit", what validation chose.
    """

    model: Model
    history: History
    phase: str
    facts: Fingerprint
    n_earlier: int | None
    validated: Validated | None

    @classmethod
    def load(cls, source: Any) -> Self:
        """Read a checkpoint; a model file that is none is an error, as is one that is damaged."""
        saved = load(source)
        if saved.checkpoint is None:
            raise ValueError(
                f"resume_from={source!r} is a model, but no checkpoint; expected a file that "
                "callbacks=[Checkpoint(path)] wrote. A model is continued by load_model and warm_start=True"
            )
        if saved.format < FORMAT:
            raise ValueError(
                f"resume_from={source!r} is a checkpoint of abcgbm {saved.written_by} (file format "
                f"{saved.format}), which this version does not resume; load_model reads its model"
            )
        checkpoint = cls._from_saved(saved)
        checkpoint._check_state()
        return checkpoint

    @classmethod
    def _from_saved(cls, saved: ModelContents) -> Self:
        state: Mapping[str, Any] = saved.checkpoint or {}
        try:
            phase, facts, n_earlier, first = (state[name] for name in _STATE)
            if first is None:
                return cls(saved.model, saved.history, phase, facts, n_earlier, None)
            validated = Validated(saved.model, saved.history, first["remark"], first["phase"])
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"the state of the checkpoint is not whole: {error!r}") from error
        if saved.refit_model is None or saved.refit_history is None:
            raise ModelFileError("a checkpoint of refit that has no trees of it")
        return cls(saved.refit_model, saved.refit_history, phase, facts, n_earlier, validated)

    def _check_state(self) -> None:
        """Raise a ModelFileError unless a fit could have come to this state."""
        n_iter, n_earlier, facts = self.history.n_iter, self.n_earlier, self.facts
        is_sound = (
            self._has_sound_phase()
            and n_iter == self.model.n_iter
            and (n_earlier is None or (type(n_earlier) is int and 0 <= n_earlier <= n_iter))
            and isinstance(facts, dict)
            and all(isinstance(fact, str) for fact in facts.values())
        )
        if not is_sound:
            raise ModelFileError("the state of the checkpoint is not that of any training")

    def _has_sound_phase(self) -> bool:
        of_validation, first = ("train", "plain"), self.validated
        if first is None:
            return self.phase in of_validation
        is_remark = first.remark is None or isinstance(first.remark, str)
        return self.phase == "refit" and first.phase in of_validation and is_remark

    def save(self, target: Target, parameters: dict[str, Any]) -> None:
        """Write it as a model file, with parameters of the estimator."""
        kept, _ = split_parameters(parameters)
        first = self.validated
        summary = first and {"remark": first.remark, "phase": first.phase}
        values = (self.phase, self.facts, self.n_earlier, summary)
        state = dict(zip(_STATE, values, strict=True))
        if first is None:
            save(ModelContents(self.model, self.history, None, kept, state), target)
        else:
            save(
                ModelContents(first.model, first.history, self.history, kept, state, self.model),
                target,
            )

    @property
    def earlier(self) -> PreviousFit | None:
        """What a warm start went on from."""
        if self.n_earlier is None:
            return None
        history = self.history.first_iterations(self.n_earlier, "checkpoint")
        return PreviousFit(self.model.first_iterations(self.n_earlier), history)

    @property
    def steps(self) -> PreviousFit:
        """All steps of the training under way."""
        return PreviousFit(self.model, replace(self.history, best_iteration=self.history.n_iter))

    def check(self, facts: Fingerprint, plan: ResolvedParameters) -> None:
        """Raise ValueError unless a fit would come to this state, if nobody broke it off."""
        found = differences(self.facts, facts)
        if found:
            raise ValueError(
                f"resume_from: the checkpoint is of another training: {'; '.join(found)}"
                f"{_cure(self.facts, facts)}"
            )
        self._check_n_iter(plan.limits.max_iter)

    def _check_n_iter(self, max_iter: int | None) -> None:
        first = self.history if self.validated is None else self.validated.history
        was = first.chosen.get("max_iter")
        if self.phase != "train" and max_iter != was:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected {was!r} as before: the training "
                "that it bounds has ended"
            )
        if max_iter is not None and max_iter < first.n_iter:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected at least the {first.n_iter} "
                "steps of the checkpoint"
            )


def in_phase(plan: ResolvedParameters, phase: str) -> ResolvedParameters:
    """Return the plan of a fit as it is in a phase that ends with validation, "train" or "plain"."""
    return plan.plain() if phase == "plain" else plan


def _cure(then: Fingerprint, now: Fingerprint) -> str:
    rate = "learning_rate"
    if then.get(rate) in (None, now[rate]):
        return ""
    return (
        f" (the default depends on the number of rows and on the version: {rate}={then[rate]} "
        "continues as before)"
    )


_EXPECTED = (
    "expected a path without a file, or a file that may be replaced: an empty one, a model file, or a "
    "checkpoint of the same training (abcgbm train --force replaces others, too)"
)


def check_replaceable(path: Path | None, read: Iterable[Path], *, force: bool) -> None:
    """Raise an OSError if a checkpoint would replace a file that may be of use.

    A device or a pipe is written to, not replaced.

    Parameters
    ----------
    path : Path or None
        Where checkpoints are written; None: nowhere.
    read : iterable of Path
        The files that the fit reads. None of them is ever replaced.
    force : bool
        Whether a file that is no model file may be replaced.
    """
    if path is None or not path.is_file():
        return
    for other in read:
        if other.exists() and path.samefile(other):
            raise FileExistsError(
                f"checkpoint={str(path)!r} is {str(other)!r}, which the fit reads; expected another file"
            )
    if not os.access(path, os.W_OK):
        raise PermissionError(f"checkpoint={str(path)!r}: the file cannot be written to")
    if not force and path.stat().st_size > 0:
        _check_model_file(path)


def _check_model_file(path: Path) -> None:
    try:
        checkpoint_state(path)
    except ModelFileError as error:
        raise FileExistsError(
            f"checkpoint={str(path)!r}: the file exists, and is no model file; {_EXPECTED}"
        ) from error


def check_same_training(path: Path | None, facts: Fingerprint) -> None:
    """Raise a FileExistsError if there is a checkpoint of a fit that depends on other facts."""
    if path is None or not path.is_file() or path.stat().st_size == 0:
        return
    state = checkpoint_state(path)
    if state is None:
        return
    then = state.get("facts")
    known = {name: str(fact) for name, fact in then.items()} if isinstance(then, dict) else {}
    found = differences(known, facts)
    if found:
        raise FileExistsError(
            f"checkpoint={str(path)!r}: the file is the checkpoint of another training: "
            f"{'; '.join(found)}; {_EXPECTED}"
        )


Save = Callable[[FitState, Path], None]

_SECONDS = 60.0  # between two checkpoints, where no number of steps is given
_TIMES_ITS_COST = 20  # that much time lies between two of them at least: 5% of a fit at most


class CheckpointWriter:
    """Writes a file every so many steps, and when training ends for whatever reason.

    A file that cannot be written is no reason to lose the training: it is warned of, once, and the
    next one is tried all the same.

    Parameters
    ----------
    path : Path or None
        The file; None: nothing is written.
    every : int or None
        Steps from one checkpoint to the next; None: about a minute.
    save : callable
        Writes a checkpoint to a path, whole or not at all.
    clock : callable
        Gives the time, in seconds.
    """

    def __init__(
        self,
        path: Path | None,
        every: int | None,
        save: Save,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._every = every
        self._save = save
        self._clock = clock
        self._take: Callable[[], FitState | None] = lambda: None
        self._n_iter = 0  # since the last attempt
        self._has_news = self._has_warned = False
        self._not_before = clock() + _SECONDS

    @contextmanager
    def watching(self, take: Callable[[], FitState | None]) -> Iterator[Self]:
        """Watch a training; ``take`` gives its state after the last whole step, if there is one."""
        self._take = take
        try:
            yield self
        finally:
            if self._has_news:
                self._write()
            self._take = lambda: None  # a training is not kept longer than it lasts

    def end_iteration(self) -> None:
        """Hear that a step was made."""
        self._n_iter += 1
        self._has_news = self._path is not None
        if self._has_news and self._is_due():
            self._write()

    def _is_due(self) -> bool:
        if self._every is not None:
            return self._n_iter >= self._every
        return self._clock() >= self._not_before

    def _write(self) -> None:
        began = self._clock()
        self._n_iter = 0
        try:
            self._try_to_write()
        except (OSError, MemoryError, TypeError, ValueError) as error:
            self._warn(error)
        now = self._clock()
        self._not_before = now + max(_SECONDS, _TIMES_ITS_COST * (now - began))

    def _try_to_write(self) -> None:
        checkpoint = self._take()
        if checkpoint is not None and self._path is not None:
            self._save(checkpoint, self._path)
        self._has_news = False

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"checkpoint={str(self._path)!r} could not be written: {error!r}; training goes on, "
                "and tries again at the next checkpoint",
                UserWarning,
                stacklevel=2,
            )
