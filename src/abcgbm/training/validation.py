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
from abcgbm.parameters.scoring import Scorer
from abcgbm.training.resolved import ResolvedParameters

HELD_OUT = 3  # kind of draw; the native core uses 1 (rows) and 2 (features)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each number, a bijection."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def draw(seed: int, kind: int, number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return one draw per number; different numbers have different draws."""
    key = mix(mix(np.array([seed], np.uint64)) ^ np.uint64(kind))
    return mix(mix(key) ^ number)


def hold_out(
    y: NDArray[np.int32], n_classes: int, fraction: float, seed: int, shard: Shard = LOCAL
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows by class; return the indices of the validation rows and of the training rows.

    In each class the rows with the smallest draws are held out, but never all of them.
    """
    # Draws have the row id as key and no state: any number of shards holds out the same rows.
    of_class: NDArray[np.int64] = np.bincount(y, minlength=n_classes)
    shard.communicator.allreduce(of_class, "sum")
    n_out = np.clip(np.floor(fraction * of_class + 0.5).astype(np.int64), 0, of_class - 1)
    if not (n_out > 0).any():
        raise ValueError(
            f"validation_fraction={fraction!r} of {of_class.sum()} row(s) in {n_classes} classes "
            "holds out no row; expected a larger fraction, more rows, X_val, or early_stopping=False"
        )
    drawn = draw(seed, HELD_OUT, shard.with_rows(len(y)).row_ids())
    bounds = smallest_bounds([np.sort(drawn[y == k]) for k in range(n_classes)], n_out, shard)
    is_held_out = (n_out[y] > 0) & (drawn <= bounds[y])
    return np.flatnonzero(is_held_out), np.flatnonzero(~is_held_out)


def smallest_bounds(
    drawn: list[NDArray[np.uint64]], n_requested: NDArray[np.int64], shard: Shard = LOCAL
) -> NDArray[np.uint64]:
    """Return, for each class, the bound up to which all ranks together have the requested draws.

    Draws of a class are ascending and distinct. The bound is found eight bits at a time: each rank
    counts its draws up to each of 256 bounds.
    """
    low = np.zeros(len(drawn), dtype=np.uint64)
    for shift in range(56, -1, -8):
        ends = (np.arange(1, 257, dtype=np.uint64) << np.uint64(shift)) - np.uint64(1)
        bounds = low[:, None] + ends  # the last of each segment
        n_up_to = [np.searchsorted(*of, side="right") for of in zip(drawn, bounds, strict=True)]
        counts = np.array(n_up_to, dtype=np.int64).reshape(bounds.shape)
        shard.communicator.allreduce(counts.reshape(-1), "sum")
        segment = (counts < n_requested[:, None]).sum(axis=1)
        low += np.minimum(segment, 255).astype(np.uint64) << np.uint64(shift)
    return low


class ValidatedModel(ScoringClassifier):
    """The current model for scorers, which can predict the validation rows only.

    Parameters
    ----------
    outputs : SoftmaxLink
        Turns scores into probabilities and labels.
    rows : object
        The validation rows as passed to scorers.
    raw : ndarray of shape (n_rows, n_classes)
        Scores of the validation rows.
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
        """Return True: scikit-learn asks before it predicts."""
        return True

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        if n_iter is not None:
            raise ValueError(f"n_iter={n_iter!r}; expected None: a scorer gets the current model")
        if X is not self.rows:
            raise ValueError(
                "X is not the validation table; a scorer can only predict the X that it is given"
            )
        return self.raw

    def _outputs(self) -> SoftmaxLink:
        return self.outputs

    def _n_threads(self) -> int:
        return self.n_threads


class Monitor:
    """Loss and score on the validation rows.

    Parameters
    ----------
    scores : _core.Validation
        Scores of the rows, updated by every tree.
    rows : LabelledRows
        The validation rows.
    resolved : ResolvedParameters
        Resolved parameters.
    baseline : ndarray of shape (n_classes,)
        Scores before the first iteration.
    has_base : bool
        Whether any tree so far has a base class.
    """

    def __init__(
        self,
        scores: _core.Validation,
        rows: LabelledRows,
        resolved: ResolvedParameters,
        baseline: Floats,
        *,
        has_base: bool,
    ) -> None:
        self._scores = scores
        self._rows = rows
        self._resolved = resolved
        self._baseline = baseline
        self._has_base = has_base
        self._table = rows.as_given() if resolved.settings.scoring.scorer else None

    @property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return self._rows.integer_weights.total

    def add(self, trees: Sequence[_core.IterationResult]) -> None:
        """Update the scores by the trees of an iteration."""
        for result in trees:
            self._scores.add(result)
            self._has_base |= result.base != NO_BASE

    def loss(self) -> float:
        """Return the weighted sum of losses."""
        return self._scores.loss()

    def score(self) -> float:
        """Return the score; larger is better."""
        weights, scoring = self._rows.integer_weights, self._resolved.settings.scoring
        if scoring.scorer is not None:
            return self._call_scorer(scoring.scorer)
        if scoring.given == "loss":
            return -self.loss() / weights.total
        if scoring.given != "error":
            raise NotImplementedError(f"scoring={scoring.given!r} has no value in Monitor.score")
        is_wrong = self._scores.leading() != self._rows.y
        return -weights.count(is_wrong) / weights.n_units

    def _call_scorer(self, scorer: Scorer) -> float:
        labels, rows = self._resolved.classes.labels, self._rows
        kwargs = {}
        if _takes_weights(scorer) and (rows.weight != 1).any():
            kwargs["sample_weight"] = rows.weight
        try:
            score = scorer(self._model(), self._table, labels[rows.y], **kwargs)
        except Exception as error:
            scoring = self._resolved.settings.scoring.given
            raise ValueError(f"scoring={scoring!r} failed: {error}") from error
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            raise TypeError(f"scoring returned {score!r}; expected a number") from error

    def _model(self) -> ValidatedModel:
        # The scorer gets a model that knows only the validation rows. Their scores are updated by
        # each new tree and never predicted again.
        recenter, labels = self._resolved.settings.recenter, self._resolved.classes.labels
        is_centred = reports_centred_scores(
            recenter=recenter, has_base=self._has_base, init=self._baseline
        )
        raw = np.ascontiguousarray(self._scores.raw().T)
        return ValidatedModel(
            SoftmaxLink(labels, is_centred), self._table, raw, self._resolved.n_threads
        )


def _takes_weights(scorer: Any) -> bool:
    """Whether the metric of a scorer, or the callable itself, takes sample weights."""
    metric = getattr(scorer, "_score_func", scorer)
    try:
        return "sample_weight" in inspect.signature(metric).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False
