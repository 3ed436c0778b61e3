"""Hold-out split and validation scores."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data.arrays import Floats
from abcgbm.data.samples import LabelledRows
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.losses import ScoringClassifier, SoftmaxLink, reports_centred_scores
from abcgbm.parameters.parameters import Scorer
from abcgbm.training.resolved import ResolvedParameters

HELD_OUT = 3  # the kind of draw; the core's are 1 (rows) and 2 (features)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each number: a bijection without pattern."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def draw(seed: int, kind: int, number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return one draw for each number; no two numbers have the same."""
    key = mix(mix(np.array([seed], np.uint64)) ^ np.uint64(kind))
    return mix(mix(key) ^ number)


def hold_out(
    y: NDArray[np.int32], n_classes: int, fraction: float, seed: int, shard: Shard = LOCAL
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the rows held out, a fraction of each class, and of those learned from.

    In each class the rows with the smallest draws are held out, but never all of them. Draws are
    keyed by the seed and the row's number among those of all ranks.
    """
    of_class: NDArray[np.int64] = np.bincount(y, minlength=n_classes)
    shard.communicator.allreduce(of_class, "sum")
    n_out = np.clip(np.floor(fraction * of_class + 0.5).astype(np.int64), 0, of_class - 1)
    if not (n_out > 0).any():
        raise ValueError(
            f"validation_fraction={fraction!r} of {of_class.sum()} row(s) in {n_classes} classes "
            "holds out no row; expected a larger fraction, more rows, X_val, or early_stopping=False"
        )
    drawn = draw(seed, HELD_OUT, shard.settled(len(y)).numbers())
    bounds = smallest_bounds([np.sort(drawn[y == k]) for k in range(n_classes)], n_out, shard)
    is_held_out = (n_out[y] > 0) & (drawn <= bounds[y])
    return np.flatnonzero(is_held_out), np.flatnonzero(~is_held_out)


def smallest_bounds(
    drawn: list[NDArray[np.uint64]], n_requested: NDArray[np.int64], shard: Shard = LOCAL
) -> NDArray[np.uint64]:
    """Return, for each class, the draw up to which there are as many as are wanted, on all ranks.

    Draws of a class are ascending, and all differ. They are found eight bits at a time: the ranks
    count how many of their own lie below each of 256 bounds.
    """
    low = np.zeros(len(drawn), dtype=np.uint64)
    for shift in range(56, -1, -8):
        ends = (np.arange(1, 257, dtype=np.uint64) << np.uint64(shift)) - np.uint64(1)
        bounds = low[:, None] + ends  # the last of each stretch
        n_up_to = [np.searchsorted(*of, side="right") for of in zip(drawn, bounds, strict=True)]
        counts = np.array(n_up_to, dtype=np.int64).reshape(bounds.shape)
        shard.communicator.allreduce(counts.reshape(-1), "sum")
        place = (counts < n_requested[:, None]).sum(axis=1)
        low += np.minimum(place, 255).astype(np.uint64) << np.uint64(shift)
    return low


class ValidatedModel(ScoringClassifier):
    """The model as it stands, for scorers: it knows the scores of the validation rows alone.

    Parameters
    ----------
    outputs : SoftmaxLink
        What scores say.
    rows : object
        The validation rows as scorers are handed them; the only ones that can be asked for.
    raw : ndarray of shape (n_rows, n_classes)
        Their scores.
    n_threads : int
        Number of threads.
    """

    def __init__(self, outputs: SoftmaxLink, rows: Any, raw: Floats, n_threads: int) -> None:
        self.outputs = outputs
        self.rows = rows
        self.raw = raw
        self.n_threads = n_threads
        self.classes_ = outputs.classes

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there is a model."""
        return True

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        if n_iter is not None:
            raise ValueError(
                f"n_iter={n_iter!r}; expected None: a scorer sees the model as it stands"
            )
        if X is not self.rows:
            raise ValueError("other rows were asked for; predict the X that the scorer is handed")
        return self.raw

    def _outputs(self) -> SoftmaxLink:
        return self.outputs

    def _n_threads(self) -> int:
        return self.n_threads


class Monitor:
    """Loss and score on the validation rows, whose scores move with every tree.

    Parameters
    ----------
    state : _core.Validation
        The scores of the rows.
    rows : LabelledRows
        The rows.
    plan : ResolvedParameters
        What is scored, the classes, and how scores are reported.
    init : ndarray of shape (n_classes,)
        The scores before the first step.
    has_base : bool
        Whether any tree so far has a base class.
    """

    def __init__(
        self,
        state: _core.Validation,
        rows: LabelledRows,
        plan: ResolvedParameters,
        init: Floats,
        *,
        has_base: bool,
    ) -> None:
        self._state = state
        self._rows = rows
        self._plan = plan
        self._init = init
        self._has_base = has_base
        self._handed = rows.as_given() if plan.settings.scoring.scorer else None

    @property
    def total_weight(self) -> float:
        """What the rows weigh together."""
        return self._rows.integer_weights.total

    def add(self, parts: Sequence[_core.IterationResult]) -> None:
        """Move the scores by the trees of a step."""
        for part in parts:
            self._state.add(part)
            self._has_base |= part.base != NO_BASE

    def loss(self) -> float:
        """Return the sum of the rows' weighted losses."""
        return self._state.loss()

    def score(self) -> float:
        """Return the score: the larger the better."""
        weights, scoring = self._rows.integer_weights, self._plan.settings.scoring
        if scoring.scorer is not None:
            return self._ask(scoring.scorer)
        if scoring.given == "loss":
            return -self.loss() / weights.total
        is_wrong = self._state.leading() != self._rows.y
        return -weights.count(is_wrong) / weights.n_units

    def _ask(self, scorer: Scorer) -> float:
        labels, rows = self._plan.classes.labels, self._rows
        given = {}
        if _takes_weights(scorer) and (rows.weight != 1).any():
            given["sample_weight"] = rows.weight
        try:
            score = scorer(self._model(), self._handed, labels[rows.y], **given)
        except Exception as error:
            scoring = self._plan.settings.scoring.given
            raise ValueError(f"scoring={scoring!r} failed: {error}") from error
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            raise TypeError(f"scoring returned {score!r}; expected a number") from error

    def _model(self) -> ValidatedModel:
        recenter, labels = self._plan.settings.recenter, self._plan.classes.labels
        is_centred = reports_centred_scores(
            recenter=recenter, has_base=self._has_base, init=self._init
        )
        raw = np.ascontiguousarray(self._state.raw().T)
        return ValidatedModel(
            SoftmaxLink(labels, is_centred), self._handed, raw, self._plan.n_threads
        )


def _takes_weights(scorer: Any) -> bool:
    """Whether the metric behind a scorer, or the callable itself, has sample weights."""
    asked = getattr(scorer, "_score_func", scorer)
    try:
        return "sample_weight" in inspect.signature(asked).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False
