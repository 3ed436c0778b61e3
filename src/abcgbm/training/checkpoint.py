"""Checkpoints: the state of a fit, when it is written, and which file it may replace."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from abcgbm.data.files.atomic import same_file
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

# Stored names of what a checkpoint contains besides trees and history.
_STATE = ("phase", "facts", "n_earlier", "validated")


class ValidatedResult(NamedTuple):
    """Result of the validated phase, stored during the refit: with the phase, without parameters."""

    model: Model
    history: History
    warning: str | None
    phase: str

    @classmethod
    def from_result(cls, result: TrainingResult) -> "ValidatedResult":
        """Return what is stored of a result."""
        return cls(result.model, result.history, result.warning, result.resolved.phase)

    def to_result(self, resolved: ResolvedParameters) -> TrainingResult:
        """Return the result, given the resolved parameters of the fit."""
        return TrainingResult(
            self.model, self.history, self.warning, in_phase(resolved, self.phase)
        )


@dataclass(frozen=True)
class FitState:
    """State of a fit after an iteration.

    Attributes
    ----------
    model : Model
        All iterations of the current phase, including those after the best one.
    history : History
        History of the phase.
    phase : {"train", "plain", "refit"}
        Current phase.
    fingerprint : dict
        Fingerprint of the fit.
    n_previous : int or None
        Number of iterations of the model that a warm start continued; None without one.
    validated : ValidatedResult or None
        In the phase "refit", the result of the validated phase.
    """

    # Scores are rebuilt from the trees, exactly, so the file is as small as the model. Repeated base
    # classes, patience and draws follow from the records and the number of the iteration. On resume the
    # trees must reproduce the last recorded losses on the given rows.

    model: Model
    history: History
    phase: str
    fingerprint: Fingerprint
    n_previous: int | None
    validated: ValidatedResult | None

    @classmethod
    def load(cls, source: Any) -> Self:
        """Read a checkpoint; any other file is a ValueError."""
        saved = load(source)
        if saved.checkpoint is None:
            raise ValueError(
                f"resume_from={source!r} is a model file, not a checkpoint; expected a file written by "
                "callbacks=[Checkpoint(path)]. To continue a model use load_model and warm_start=True"
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
            phase, fingerprint, n_previous, first = (state[name] for name in _STATE)
            if first is None:
                return cls(saved.model, saved.history, phase, fingerprint, n_previous, None)
            validated = ValidatedResult(saved.model, saved.history, first["remark"], first["phase"])
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"the state of the checkpoint is incomplete: {error!r}") from error
        if saved.refit_model is None or saved.refit_history is None:
            raise ModelFileError("a checkpoint of the phase 'refit' has no trees of that phase")
        return cls(
            saved.refit_model, saved.refit_history, phase, fingerprint, n_previous, validated
        )

    def _check_state(self) -> None:
        """Raise ModelFileError unless this is a state that a fit can have."""
        n_iter, n_previous = self.history.n_iter, self.n_previous
        is_valid = {
            "phase": self._has_valid_phase(),
            "number of iterations": n_iter == self.model.n_iter,
            "number of previous iterations": n_previous is None
            or (type(n_previous) is int and 0 <= n_previous <= n_iter),
            "fingerprint": isinstance(self.fingerprint, dict)
            and all(isinstance(value, str) for value in self.fingerprint.values()),
        }
        invalid = [name for name, valid in is_valid.items() if not valid]
        if invalid:
            raise ModelFileError(f"the state of the checkpoint has an invalid {invalid[0]}")

    def _has_valid_phase(self) -> bool:
        validated_phases, first = ("train", "plain"), self.validated
        if first is None:
            return self.phase in validated_phases
        is_warning = first.warning is None or isinstance(first.warning, str)
        return self.phase == "refit" and first.phase in validated_phases and is_warning

    def save(self, target: Target, parameters: dict[str, Any]) -> None:
        """Write the state as a model file, with the parameters of the estimator."""
        stored, _ = split_parameters(parameters)
        first = self.validated
        summary = first and {"remark": first.warning, "phase": first.phase}
        values = (self.phase, self.fingerprint, self.n_previous, summary)
        state = dict(zip(_STATE, values, strict=True))
        if first is None:
            save(ModelContents(self.model, self.history, None, stored, state), target)
        else:
            save(
                ModelContents(first.model, first.history, self.history, stored, state, self.model),
                target,
            )

    @property
    def previous(self) -> PreviousFit | None:
        """The fit that a warm start continued."""
        if self.n_previous is None:
            return None
        history = self.history.first_iterations(self.n_previous, "checkpoint")
        return PreviousFit(self.model.first_iterations(self.n_previous), history)

    @property
    def all_iterations(self) -> PreviousFit:
        """All iterations of the current phase."""
        return PreviousFit(self.model, replace(self.history, best_iteration=self.history.n_iter))

    def check(self, fingerprint: Fingerprint, resolved: ResolvedParameters) -> None:
        """Raise ValueError unless this is a state of the fit that resumes from it."""
        found = differences(self.fingerprint, fingerprint)
        if found:
            raise ValueError(
                f"resume_from: the checkpoint is of another training: {'; '.join(found)}"
                f"{_rate_hint(self.fingerprint, fingerprint)}"
            )
        self._check_n_iter(resolved.limits.max_iter)

    def _check_n_iter(self, max_iter: int | None) -> None:
        first = self.history if self.validated is None else self.validated.history
        was = first.chosen.get("max_iter")
        if self.phase != "train" and max_iter != was:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected {was!r} as before: the phase that it "
                "limits has ended"
            )
        if max_iter is not None and max_iter < first.n_iter:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected at least the {first.n_iter} "
                "iterations of the checkpoint"
            )


def in_phase(resolved: ResolvedParameters, phase: str) -> ResolvedParameters:
    """Return the resolved parameters of the phase "train" or "plain"."""
    return resolved.without_base_class() if phase == "plain" else resolved


def _rate_hint(then: Fingerprint, now: Fingerprint) -> str:
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
    """Raise an OSError if a checkpoint would replace a file of the user.

    A device or a pipe is written to, not replaced.

    Parameters
    ----------
    path : Path or None
        Path of the checkpoint; None: no checkpoint is written.
    read : iterable of Path
        Files that the fit reads, which are never replaced.
    force : bool
        Whether a file that is not a model file may be replaced.
    """
    if path is None or not path.is_file():
        return
    source = same_file(path, read)
    if source is not None:
        raise FileExistsError(
            f"checkpoint={str(path)!r} is {str(source)!r}, which the fit reads; expected another file"
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
            f"checkpoint={str(path)!r}: the file exists and is not a model file; {_EXPECTED}"
        ) from error


def check_same_training(path: Path | None, fingerprint: Fingerprint) -> None:
    """Raise FileExistsError if the file is a checkpoint of a fit with another fingerprint."""
    if path is None or not path.is_file() or path.stat().st_size == 0:
        return
    state = checkpoint_state(path)
    if state is None:
        return
    then = state.get("facts")
    known = {name: str(value) for name, value in then.items()} if isinstance(then, dict) else {}
    found = differences(known, fingerprint)
    if found:
        raise FileExistsError(
            f"checkpoint={str(path)!r}: the file is the checkpoint of another training: "
            f"{'; '.join(found)}; {_EXPECTED}"
        )


Save = Callable[[FitState, Path], None]

_SECONDS = 60.0  # between two checkpoints, unless a number of iterations is given
_INTERVAL_PER_WRITE_TIME = 20  # minimum; so checkpoints take at most 5 % of a fit


class CheckpointWriter:
    """Writes a checkpoint at intervals and when training ends or fails.

    An error does not end training: it causes one warning, and the next checkpoint will be attempted.

    Parameters
    ----------
    path : Path or None
        Path of the file; None: nothing is written.
    every : int or None
        Number of iterations between checkpoints; None: about a minute.
    save : callable
        Writes a state to a path atomically.
    clock : callable
        Returns the time in seconds.
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
        self._get_state: Callable[[], FitState | None] = lambda: None
        self._n_iter = 0  # since the last attempt to write
        self._has_unsaved = self._has_warned = False
        self._not_before = clock() + _SECONDS

    @contextmanager
    def attached(self, get_state: Callable[[], FitState | None]) -> Iterator[Self]:
        """Write the states of one phase; ``get_state`` returns that after the last iteration."""
        self._get_state = get_state
        try:
            yield self
        finally:
            if self._has_unsaved:
                self._write()
            self._get_state = lambda: None  # it holds the training, which must be freed

    def end_iteration(self) -> None:
        """Write a checkpoint if one is due."""
        self._n_iter += 1
        self._has_unsaved = self._path is not None
        if self._every is not None:
            is_due = self._n_iter >= self._every
        else:
            is_due = self._clock() >= self._not_before
        if self._has_unsaved and is_due:
            self._write()

    def _write(self) -> None:
        began = self._clock()
        self._n_iter = 0
        try:
            state = self._get_state()
            if state is not None and self._path is not None:
                self._save(state, self._path)
            self._has_unsaved = False
        except (OSError, MemoryError, TypeError, ValueError) as error:
            self._warn(error)
        now = self._clock()
        self._not_before = now + max(_SECONDS, _INTERVAL_PER_WRITE_TIME * (now - began))

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"checkpoint={str(self._path)!r} could not be written: {error!r}; training "
                "continues; the next checkpoint will be attempted",
                UserWarning,
                stacklevel=2,
            )
