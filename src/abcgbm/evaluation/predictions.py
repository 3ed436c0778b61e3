"""Predictions of a fitted model on labelled rows."""

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


def largest(values: Floats, max_items: int) -> list[int]:
    """Return the indices of the largest values, in descending order; only of values above 0."""
    order = np.argsort(-values, kind="stable")[:max_items].tolist()
    return [index for index in order if values[index] > 0]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Predictions of a model on labelled rows, without rows of zero weight.

    Attributes
    ----------
    model : ABCBoostClassifier
        The model.
    table : Table or BinnedTable
        The whole table, including rows of zero weight.
    row : ndarray of int64 of shape (n_rows,)
        Indices of the rows in the table, ascending.
    y_true : ndarray of int32 of shape (n_rows,)
        True label of each row, as an index of ``all_labels``: ``n_classes`` or more if it is not a
        class of the model.
    log_proba : ndarray of shape (n_rows, n_classes)
        Logarithms of the class probabilities.
    weight : ndarray of shape (n_rows,)
        Sample weights; 1 if none were given.
    unseen : list of labels
        Labels that are not classes of the model, sorted.
    """

    model: ABCBoostClassifier
    table: AnyTable
    row: NDArray[np.int64]
    y_true: NDArray[np.int32]
    log_proba: Floats
    weight: Floats
    unseen: list[Any]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def labels(self) -> list[Any]:
        """Class labels."""
        return self.model.model_.labels

    @property
    def all_labels(self) -> list[Any]:
        """Class labels, followed by labels that are not classes of the model."""
        return [*self.labels, *self.unseen]

    @property
    def n_classes(self) -> int:
        """Number of classes of the model."""
        return int(self.log_proba.shape[1])

    @property
    def n_threads(self) -> int:
        """Number of threads to use."""
        return effective_n_threads(self.model.n_jobs)

    @property
    def predicted(self) -> NDArray[np.intp]:
        """Class of largest probability; the first of equal ones."""
        predicted: NDArray[np.intp] = self.log_proba.argmax(axis=1)
        return predicted

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the label of each row is a class of the model."""
        return self.y_true < self.n_classes

    @property
    def is_correct(self) -> NDArray[np.bool_]:
        """Whether the prediction for each row is correct."""
        is_correct: NDArray[np.bool_] = self.predicted == self.y_true
        return is_correct

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return math.fsum(self.weight)

    @property
    def errors(self) -> float:
        """Total weight of the errors: their number if all weights are 1."""
        return math.fsum(self.weight[~self.is_correct])

    @property
    def accuracy(self) -> float:
        """Weighted fraction of correct predictions."""
        return math.fsum(self.weight[self.is_correct]) / self.total

    @property
    def log_loss(self) -> float:
        """Mean log loss of the rows whose label is a class of the model."""
        return mean_loss(self.log_proba, self)


def mean_loss(log_proba: Floats, predictions: Predictions) -> float:
    """Return the mean log loss of the same rows with other probabilities."""
    known = np.flatnonzero(predictions.is_known)
    weight = predictions.weight[known]
    losses = -weight * log_proba[known, predictions.y_true[known]]
    return math.fsum(losses) / math.fsum(weight)


def predictions_of(
    model: ABCBoostClassifier, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Predictions:
    """Predict labelled rows with a fitted model.

    A row whose label is not a class of the model counts as an error. If no label is a class, ``y``
    belongs to another table, and a ValueError is raised.
    """
    check_is_fitted(model)
    fitted, n_threads = model.model_, effective_n_threads(model.n_jobs)
    table = read_like(X, fitted.encoding.schema, type(model).__name__)
    counted = CountedRows.from_given(GivenRows(table, y, sample_weight), has_classes=True)
    y_true, unseen = _class_numbers(np.asarray(counted.labels), fitted.labels)
    raw = fitted.raw_scores(table, n_threads)[counted.which]
    log_proba = fitted.link.log_probabilities(raw, n_threads)
    row = np.arange(len(table))[counted.which]
    return Predictions(model, table, row, y_true, log_proba, np.asarray(counted.weight), unseen)


def _class_numbers(given: NDArray[Any], classes: list[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Return the index of each label, and the labels that are not classes: their indices follow."""
    found, which = np.unique(given, return_inverse=True)
    labels, known = label_objects(found), {*classes}
    unseen = [label for label in labels if label not in known]
    if len(unseen) == len(labels):
        raise ValueError(
            f"y has the labels {quoted_list(unseen)}, which are not classes of the model; expected some "
            f"of {quoted_list(classes)}"
        )
    number = {label: k for k, label in enumerate([*classes, *unseen])}
    return np.array([number[label] for label in labels], dtype=np.int32)[which], unseen
