"""What a model answers to rows whose labels are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.data.labels import label_objects
from abcgbm.data.samples import AnyTable, CountedRows, GivenRows, read_like
from abcgbm.errors import quoted_list
from abcgbm.parameters.machine import effective_n_threads


def largest(values: Floats, most: int) -> list[int]:
    """Return the places of the largest values, at most so many, without those that are not above 0."""
    order = np.argsort(-values, kind="stable")[:most].tolist()
    return [place for place in order if values[place] > 0]


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """The answers of a model to labelled rows; rows of weight 0 are absent.

    Attributes
    ----------
    model : ABCBoostClassifier
        The model.
    table : Table or BinnedTable
        The table that was given, all of it.
    row : ndarray of int64 of shape (n_rows,)
        Which rows of the table these are, ascending.
    truth : ndarray of int32 of shape (n_rows,)
        The label of each row by its number in ``all_labels``: its class, or ``n_classes`` and more
        where the model does not know the label.
    log_proba : ndarray of shape (n_rows, n_classes)
        Logarithms of the probabilities.
    weight : ndarray of shape (n_rows,)
        Sample weights; ones if none were given.
    unseen : list of labels
        The labels that the model does not know, sorted.
    """

    model: ABCBoostClassifier
    table: AnyTable
    row: NDArray[np.int64]
    truth: NDArray[np.int32]
    log_proba: Floats
    weight: Floats
    unseen: list[Any]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def labels(self) -> list[Any]:
        """The labels of the classes."""
        return self.model.model_.labels

    @property
    def all_labels(self) -> list[Any]:
        """The labels of the classes, and those that the model does not know."""
        return [*self.labels, *self.unseen]

    @property
    def n_classes(self) -> int:
        """Number of classes of the model."""
        return int(self.log_proba.shape[1])

    @property
    def n_threads(self) -> int:
        """Number of threads that the model may use."""
        return effective_n_threads(self.model.n_jobs)

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The class of largest probability, the first among equals."""
        predicted: NDArray[np.intp] = self.log_proba.argmax(axis=1)
        return predicted

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the label of a row is one of the model's classes."""
        return self.truth < self.n_classes

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Whether the prediction of a row is its label."""
        right: NDArray[np.bool_] = self.predicted == self.truth
        return right

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return math.fsum(self.weight)

    @property
    def errors(self) -> float:
        """The sum of the weights of wrong answers: their number, if all weights are 1."""
        return math.fsum(self.weight[~self.is_right])

    @property
    def accuracy(self) -> float:
        """The share of right answers, by weight."""
        return math.fsum(self.weight[self.is_right]) / self.total

    @property
    def log_loss(self) -> float:
        """The mean of minus the log of the probability of the label, over labels that are known."""
        return mean_loss(self.log_proba, self)


def mean_loss(log_proba: Floats, of: Answers) -> float:
    """Return the mean loss of the rows of known label by other probabilities than the last ones."""
    known = np.flatnonzero(of.is_known)
    weight = of.weight[known]
    return math.fsum(-weight * log_proba[known, of.truth[known]]) / math.fsum(weight)


def answers_of(
    model: ABCBoostClassifier, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Answers:
    """Ask a fitted model for its answers to labelled rows.

    A label that the model does not know is no error here: such a row counts as a wrong answer. But
    some labels must be known, else ``y`` is of another table.
    """
    check_is_fitted(model)
    fitted, n_threads = model.model_, effective_n_threads(model.n_jobs)
    table = read_like(X, fitted.encoding.schema, type(model).__name__)
    counted = CountedRows.from_given(GivenRows(table, y, sample_weight), has_classes=True)
    truth, unseen = _class_numbers(np.asarray(counted.labels), fitted.labels)
    raw = fitted.raw(table, n_threads)[counted.which]
    log_proba = fitted.outputs.log_probabilities(raw, n_threads)
    row = np.arange(len(table))[counted.which]
    return Answers(model, table, row, truth, log_proba, np.asarray(counted.weight), unseen)


def _class_numbers(given: NDArray[Any], classes: list[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Return the class number of each label, and those that are not known, which are next in number."""
    found, which = np.unique(given, return_inverse=True)
    labels, known = label_objects(found), {*classes}
    unseen = [label for label in labels if label not in known]
    if len(unseen) == len(labels):
        raise ValueError(
            f"y has the labels {quoted_list(unseen)}, none of which the model knows; expected some of "
            f"{quoted_list(classes)}"
        )
    number = {label: k for k, label in enumerate([*classes, *unseen])}
    return np.array([number[label] for label in labels], dtype=np.int32)[which], unseen
