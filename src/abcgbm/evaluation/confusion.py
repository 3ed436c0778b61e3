"""Which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from abcgbm.data.columns import Floats
from abcgbm.evaluation.answers import Answers


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each class was taken for each.

    Attributes
    ----------
    labels : list of labels
        The classes.
    counts : ndarray of shape (n_classes + 1, n_classes)
        Sums of weights by the class of the rows and by their prediction. The last row are the
        labels that the model does not know.
    """

    labels: list[Any]
    counts: Floats

    @classmethod
    def from_answers(cls, answers: Answers) -> Self:
        """Count answers."""
        n_classes = answers.n_classes
        truth = np.minimum(answers.truth, n_classes).astype(np.intp)
        place = truth * n_classes + answers.predicted
        sums = np.bincount(place, answers.weight, minlength=(n_classes + 1) * n_classes)
        counts = sums.astype(np.float64).reshape(n_classes + 1, n_classes)
        return cls(answers.labels, counts)

    @property
    def right(self) -> Floats:
        """The right answers of each class."""
        return self.counts.diagonal()

    @property
    def support(self) -> Floats:
        """The rows of each class, without those of labels that are not known."""
        support: Floats = self.counts[:-1].sum(axis=1)
        return support

    @property
    def predicted(self) -> Floats:
        """How often each class was predicted."""
        predicted: Floats = self.counts.sum(axis=0)
        return predicted

    @property
    def precision(self) -> Floats:
        """The share of a prediction that is right; NaN if it was never made."""
        return ratio(self.right, self.predicted)

    @property
    def recall(self) -> Floats:
        """The share of a class that was found; NaN for a class without rows."""
        return ratio(self.right, self.support)

    @property
    def f1(self) -> Floats:
        """The harmonic mean of precision and recall; NaN where there are neither."""
        return ratio(2.0 * self.right, self.support + self.predicted)

    @property
    def row_shares(self) -> Floats:
        """The same as shares of the rows of a label; 0 where there are none."""
        return np.nan_to_num(ratio(self.counts, self.counts.sum(axis=1, keepdims=True)))

    @property
    def has_unseen(self) -> bool:
        """Whether there are rows of labels that are not known."""
        return bool(self.counts[-1].any())

    def worst(self, most: int) -> list[tuple[int, int]]:
        """Return the pairs (class, prediction) of most errors, at most so many, the largest first."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        truth, predicted = np.unravel_index(order, wrong.shape)
        pairs = zip(truth.tolist(), predicted.tolist(), strict=True)
        return [pair for pair in pairs if wrong[pair] > 0]


def ratio(part: Floats, of: Floats) -> Floats:
    """Return quotients; NaN where there is nothing to divide by."""
    shape = np.broadcast_shapes(part.shape, of.shape)
    quotient: Floats = np.full(shape, np.nan)
    np.divide(part, of, out=quotient, where=np.broadcast_to(of > 0, shape))
    return quotient
