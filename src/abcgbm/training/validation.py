"""Rows that are not learned from: holding some out, and scoring the model on them as it grows."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

from abcgbm import _core
from abcgbm.data.columns import Floats
from abcgbm.data.rows import LabelledRows
from abcgbm.data.weights import IntegerWeights
from abcgbm.model.answers import ScoringClassifier
from abcgbm.training import draws

Scorer = Callable[..., float]


def hold_out(
    y: NDArray[np.int32], n_classes: int, fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the rows held out, a fraction of each class, and of those learned from.

    In each class the rows with the smallest draws are held out, but never all of them. Draws are
    keyed by the seed and the row's number.
    """
    is_held_out = np.zeros(len(y), dtype=bool)
    drawn = draws.draw(seed, draws.HELD_OUT, len(y))
    for k in range(n_classes):
        of_class = np.flatnonzero(y == k)
        n_out = min(math.floor(fraction * len(of_class) + 0.5), len(of_class) - 1)
        if n_out > 0:
            is_held_out[of_class[np.argsort(drawn[of_class], kind="stable")[:n_out]]] = True
    if not is_held_out.any():
        raise ValueError(
            f"validation_fraction={fraction!r} of {len(y)} row(s) in {n_classes} classes holds "
            "out no row; expected a larger fraction, more rows, X_val, or early_stopping=False"
        )
    return np.flatnonzero(is_held_out), np.flatnonzero(~is_held_out)


def check_scoring(scoring: Any) -> str | Scorer:
    """Return "loss", "error", or a scorer as scikit-learn knows it."""
    if isinstance(scoring, str) and scoring in ("loss", "error"):
        return scoring
    if isinstance(scoring, str):
        try:
            scorer: Scorer = get_scorer(scoring)
        except ValueError as error:
            raise ValueError(f"scoring={scoring!r}; {_SCORING}") from error
        return scorer
    if not callable(scoring):
        raise TypeError(f"scoring={scoring!r}; {_SCORING}")
    called: Scorer = scoring
    return called


_SCORING = (
    "expected 'loss', 'error', a name in sklearn.metrics.get_scorer_names(), or a callable "
    "with the arguments (estimator, X, y)"
)


class CurrentModel(ScoringClassifier):
    """The model as it stands, for scorers: it knows the scores of the validation rows alone.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    rows : object
        The validation rows as scorers are handed them; the only ones that can be asked for.
    raw : ndarray of shape (n_rows, n_classes)
        Their scores.
    is_centred : bool
        Whether scores are reported without their row mean.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(
        self, classes: NDArray[Any], rows: Any, raw: Floats, is_centred: bool, n_jobs: int | None
    ) -> None:
        self.classes = classes
        self.rows = rows
        self.raw = raw
        self.is_centred = is_centred
        self.n_jobs = n_jobs
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there is a model."""
        return True

    def _raw(self, X: Any) -> Floats:
        if X is not self.rows:
            raise ValueError("other rows were asked for; predict the X that the scorer is handed")
        return self.raw

    def _is_centred(self) -> bool:
        return self.is_centred


class Monitor:
    """Loss and score on the validation rows, whose scores move with every tree.

    Parameters
    ----------
    state : _core.Validation
        The scores of the rows.
    rows : LabelledRows
        The rows.
    scoring : "loss", "error" or callable
        What the score is.
    model : ABCBoostClassifier
        The classifier that is being trained, for its classes and how it reports scores.
    is_centred : bool
        Whether scores are reported without their row mean from the start on.
    """

    def __init__(
        self,
        state: _core.Validation,
        rows: LabelledRows,
        scoring: str | Scorer,
        model: Any,
        is_centred: bool,
    ) -> None:
        self._state = state
        self._rows = rows
        self._scoring = scoring
        self._model = model
        self._is_centred = is_centred
        self._handed = None if scoring in ("loss", "error") else rows.as_given()

    def add(self, parts: Sequence[_core.StepResult]) -> None:
        """Move the scores by the trees of a step."""
        for part in parts:
            self._state.add(part)
            self._is_centred |= part.base >= 0

    def loss(self) -> float:
        """Return the sum of the rows' weighted losses."""
        return self._state.loss()

    def score(self) -> float:
        """Return the score: the larger the better."""
        weight = self._rows.weight
        if self._scoring == "loss":
            return -self.loss() / float(weight.sum())
        if self._scoring == "error":
            is_wrong = self._state.leading() != self._rows.y
            return -float(weight[is_wrong].sum() / weight.sum())
        return self._ask(self._scoring)

    def _ask(self, scorer: Any) -> float:
        raw = np.ascontiguousarray(self._state.raw().T)
        classes, rows = self._model.classes_, self._rows
        current = CurrentModel(classes, self._handed, raw, self._is_centred, self._model.n_jobs)
        given = {}
        if _takes_weights(scorer) and (rows.weight != 1).any():
            given["sample_weight"] = rows.weight
        try:
            score = scorer(current, self._handed, classes[rows.y], **given)
        except Exception as error:
            raise ValueError(f"scoring={self._model.scoring!r} failed: {error}") from error
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            raise TypeError(f"scoring returned {score!r}; expected a number") from error


def _takes_weights(scorer: Any) -> bool:
    """Whether the metric behind a scorer, or the callable itself, has sample weights."""
    asked = getattr(scorer, "_score_func", scorer)
    try:
        return "sample_weight" in inspect.signature(asked).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False


def validation_state(
    codes: _core.Binned,
    rows: LabelledRows,
    n_classes: int,
    n_threads: int,
    raw: Floats | None,
) -> _core.Validation:
    """Return the core's state of validation rows that start with some scores; None: zero."""
    weights = IntegerWeights.from_floats(rows.weight, len(rows))
    labels = _core.Labels(rows.y, weights.weight, weights.unit, n_classes)
    return _core.Validation(codes, labels, n_threads, raw)
