"""Training history: losses, base classes and scores of every iteration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.model.array_checks import ReadOnly, check_array, check_range, read_only
from abcgbm.model.ensemble import NO_BASE


@dataclass(frozen=True)
class Record:
    """Losses and scores after one iteration; the first record is the state before any.

    Attributes
    ----------
    loss : float
        Total training loss.
    class_losses : ndarray of shape (n_classes,)
        Training loss of the rows of each class.
    base_class : int or None
        Base class of the iteration.
    search_losses : ndarray of shape (n_classes,)
        Training loss with each candidate for the base class; NaN for classes that were not tried.
    validation_loss, validation_score : float
        Loss and score of the validation rows; NaN without any.
    """

    loss: float
    class_losses: Floats
    base_class: int | None
    search_losses: Floats
    validation_loss: float = math.nan
    validation_score: float = math.nan


@dataclass(frozen=True, eq=False, repr=False)
class History(ReadOnly):
    """Training history. Entry 0 of losses and scores is the state before the first iteration.

    Losses are exact sums over rows; the attributes of the estimator are means.

    Attributes
    ----------
    train_loss : ndarray of shape (n_iter + 1,)
        Total training loss.
    class_losses : ndarray of shape (n_iter + 1, n_classes)
        Training loss of the rows of each class.
    base_classes : ndarray of int32 of shape (n_iter,)
        Base class of each iteration, as an index of ``classes_``; -1 without one.
    search_losses : ndarray of shape (n_iter, n_classes)
        Training loss with each candidate for the base class; NaN for classes that were not tried. Of
        shape (n_iter, 0) if no iteration searched.
    validation_loss, validation_score : ndarray of shape (n_iter + 1,)
        Loss and score of the validation rows; empty without any.
    best_iteration : int
        Number of iterations of the model: a count, not an index.
    stop_reason : str
        Why training stopped.
    seed : int
        Seed of all random draws.
    chosen : dict
        Resolved values of the parameters that can be "auto", by name.
    train_weight, validation_weight : float or None
        Total weight of the training and validation rows of the last fit; a loss divided by it is a
        mean. None without such rows, or if a model file of version 0.1 did not store it.
    """

    train_loss: Floats
    class_losses: Floats
    base_classes: NDArray[np.int32]
    search_losses: Floats
    validation_loss: Floats
    validation_score: Floats
    best_iteration: int
    stop_reason: str
    seed: int
    chosen: dict[str, Any]
    train_weight: float | None = None
    validation_weight: float | None = None

    def __post_init__(self) -> None:
        read_only(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        read_only(self)

    def check(self) -> None:
        """Raise ValueError unless all fields are valid and consistent."""
        (n_iter,) = check_array("base_classes", self.base_classes, np.int32, (None,))
        _, n_classes = check_array("class_losses", self.class_losses, float, (n_iter + 1, None))
        n_searched = n_classes if np.size(self.search_losses) else 0
        n_validated = n_iter + 1 if np.size(self.validation_loss) else 0
        check_array("train_loss", self.train_loss, float, (n_iter + 1,))
        check_array("search_losses", self.search_losses, float, (n_iter, n_searched))
        check_array("validation_loss", self.validation_loss, float, (n_validated,))
        check_array("validation_score", self.validation_score, float, (n_validated,))
        check_range("base_classes", self.base_classes, NO_BASE, n_classes)
        if not 0 <= self.best_iteration <= n_iter:
            raise ValueError(f"best_iteration={self.best_iteration}; expected 0 to {n_iter}")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed={self.seed}; expected 0 to less than 2^64")
        for weight in (self.train_weight, self.validation_weight):
            if weight is not None and not 0 < weight < math.inf:
                raise ValueError(f"total weight of rows {weight!r}; expected a positive number")
        rate = self.chosen.get("learning_rate", 1.0)
        if not (isinstance(rate, float | int) and 0 < rate <= 1):
            raise ValueError(f"learning_rate={rate!r}; expected above 0 and at most 1")

    def __repr__(self) -> str:
        losses = f"loss {self.train_loss[0]:.6g} to {self.train_loss[-1]:.6g}"
        return f"History({self.n_iter} iterations, {losses}, stop_reason={self.stop_reason!r})"

    @classmethod
    def from_records(cls, records: Sequence[Record], **known: Any) -> Self:
        """Build a history from its records; ``known`` are the fields from ``best_iteration`` on."""
        losses = np.array([r.validation_loss for r in records])
        scores = np.array([r.validation_score for r in records])
        has_validation = not np.isnan(losses).all()
        bases = [NO_BASE if r.base_class is None else r.base_class for r in records[1:]]
        return cls(
            train_loss=np.array([r.loss for r in records]),
            class_losses=np.array([r.class_losses for r in records]),
            base_classes=np.array(bases, dtype=np.int32),
            search_losses=_unless_nan(np.array([r.search_losses for r in records])[1:]),
            validation_loss=losses if has_validation else np.empty(0),
            validation_score=scores if has_validation else np.empty(0),
            **known,
        )

    @property
    def n_iter(self) -> int:
        """Number of training iterations."""
        return len(self.base_classes)

    @property
    def candidate_losses(self) -> Floats:
        """Training loss with each candidate for the base class, of shape (n_iter, n_classes).

        NaN for classes that an iteration did not try.
        """
        losses: Floats = np.full((self.n_iter, self.class_losses.shape[1]), np.nan)
        if self.search_losses.size:
            losses[:] = self.search_losses
        return losses

    def mean_train_loss(self) -> Floats:
        """Return the training loss per unit of weight; NaN if the weight is not known."""
        return _mean(self.train_loss, self.train_weight)

    def mean_class_losses(self) -> Floats:
        """Return the part of each class in the mean training loss."""
        return _mean(self.class_losses, self.train_weight)

    def mean_validation_loss(self) -> Floats:
        """Return the validation loss per unit of weight; NaN if the weight is not known."""
        return _mean(self.validation_loss, self.validation_weight)

    def first_iterations(self, n_iter: int, stop_reason: str) -> "History":
        """Return the history of the first ``n_iter`` iterations; the last one becomes the best."""
        return History.from_records(
            self.records()[: n_iter + 1],
            best_iteration=n_iter,
            stop_reason=stop_reason,
            seed=self.seed,
            chosen=self.chosen,
            train_weight=self.train_weight,
            validation_weight=self.validation_weight,
        )

    def records(self) -> list[Record]:
        """Return the records before the first iteration and after each, as training collects them."""
        none = np.full(self.n_iter + 1, np.nan)
        no_search = np.full(self.class_losses.shape[1], np.nan)
        has_validation = len(self.validation_loss) > 0
        columns = (
            self.train_loss.tolist(),
            self.class_losses,
            [None, *(None if b == NO_BASE else b for b in self.base_classes.tolist())],
            [no_search, *self.candidate_losses],
            (self.validation_loss if has_validation else none).tolist(),
            (self.validation_score if has_validation else none).tolist(),
        )
        return [Record(*fields) for fields in zip(*columns, strict=True)]


def _mean(losses: Floats, weight: float | None) -> Floats:
    mean: Floats = losses / (math.nan if weight is None else weight)
    return mean


def _unless_nan(losses: Floats) -> Floats:
    """Return losses, or no columns if all are NaN."""
    return losses[:, :0] if np.isnan(losses).all() else losses
