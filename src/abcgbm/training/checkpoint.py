"""A training under way, such that it can be broken off and gone on with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from abcgbm.model.file import ModelFileError, Saved, load, save, split_parameters
from abcgbm.model.file.saved import Target
from abcgbm.model.history import History
from abcgbm.model.model import Model
from abcgbm.training.facts import Facts, differences
from abcgbm.training.plan import Plan
from abcgbm.training.start import EarlierFit
from abcgbm.training.training import Trained

_STATE = ("phase", "facts", "n_earlier", "validated")  # what is written beside trees and records


class Validated(NamedTuple):
    """What validation chose before ``refit`` began: a model, its record, a remark, and the phase."""

    model: Model
    history: History
    remark: str | None
    phase: str

    @classmethod
    def from_trained(cls, trained: Trained) -> "Validated":
        """Keep what has come of a training, but for its plan."""
        return cls(trained.model, trained.history, trained.remark, trained.plan.phase)

    def as_trained(self, plan: Plan) -> Trained:
        """Return it as if it had just been trained by this plan."""
        return Trained(self.model, self.history, self.remark, in_phase(plan, self.phase))


@dataclass(frozen=True)
class Checkpoint:
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
    facts: Facts
    n_earlier: int | None
    validated: Validated | None

    @classmethod
    def load(cls, source: Any) -> Self:
        """Read a checkpoint; a model file that is none is an error, as is one that is damaged."""
        saved = load(source)
        if saved.checkpoint is None:
            raise ValueError(
                f"resume_from={source!r} is a model, but no checkpoint; expected a file that a fit "
                "with checkpoint=path wrote. A model is gone on from by load_model and warm_start=True"
            )
        checkpoint = cls._from_saved(saved)
        checkpoint._check_state()
        return checkpoint

    @classmethod
    def _from_saved(cls, saved: Saved) -> Self:
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
        n_steps, n_earlier, facts = self.history.n_steps, self.n_earlier, self.facts
        is_sound = (
            self._has_sound_phase()
            and n_steps == self.model.n_steps
            and (n_earlier is None or (type(n_earlier) is int and 0 <= n_earlier <= n_steps))
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
            save(Saved(self.model, self.history, None, kept, state), target)
        else:
            save(Saved(first.model, first.history, self.history, kept, state, self.model), target)

    @property
    def earlier(self) -> EarlierFit | None:
        """What a warm start went on from."""
        if self.n_earlier is None:
            return None
        history = self.history.first_steps(self.n_earlier, "checkpoint")
        return EarlierFit(self.model.first_steps(self.n_earlier), history)

    @property
    def steps(self) -> EarlierFit:
        """All steps of the training under way."""
        return EarlierFit(self.model, replace(self.history, best_step=self.history.n_steps))

    def check(self, facts: Facts, plan: Plan) -> None:
        """Raise ValueError unless a fit would come to this state, if nobody broke it off."""
        found = differences(self.facts, facts)
        if found:
            raise ValueError(
                f"resume_from: the checkpoint is of another training: {'; '.join(found)}"
                f"{_cure(self.facts, facts)}"
            )
        self._check_steps(plan.limits.max_iter)

    def _check_steps(self, max_iter: int | None) -> None:
        first = self.history if self.validated is None else self.validated.history
        was = first.chosen.get("max_iter")
        if self.phase != "train" and max_iter != was:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected {was!r} as before: the training "
                "that it bounds has ended"
            )
        if max_iter is not None and max_iter < first.n_steps:
            raise ValueError(
                f"max_iter={max_iter!r} with resume_from; expected at least the {first.n_steps} "
                "steps of the checkpoint"
            )


def in_phase(plan: Plan, phase: str) -> Plan:
    """Return the plan of a fit as it is in a phase that ends with validation, "train" or "plain"."""
    return plan.plain() if phase == "plain" else plan


def _cure(then: Facts, now: Facts) -> str:
    rate = "learning_rate"
    if then.get(rate) in (None, now[rate]):
        return ""
    return (
        f" (the default depends on the number of rows and on the version: {rate}={then[rate]} "
        "continues as before)"
    )
