"""What each feature adds to the scores of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.data.labels import known_label, label_objects
from abcgbm.data.reading import AnyTable
from abcgbm.model.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Shapley values: ``base_values + values.sum(axis=1)`` are the scores of the rows by class.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features, n_classes)
        What each feature adds to the score of each class.
    base_values : ndarray of shape (n_classes,)
        The mean scores, to which that is added.
    data : ndarray of shape (n_rows, n_features)
        The rows as the numbers that trees compare: a level of a category is its code.
    display_data : ndarray of object of shape (n_rows, n_features), or None
        The rows with levels in place of codes, if any feature is a category.
    feature_names : list of str
        The names of the features; x0, x1 and so on if they had none.
    classes : ndarray of shape (n_classes,)
        The labels.
    """

    values: Floats
    base_values: Floats
    data: Floats
    display_data: NDArray[Any] | None
    feature_names: list[str]
    classes: NDArray[Any]

    def __repr__(self) -> str:
        n_rows, n_features, n_classes = self.values.shape
        return f"Explanation({n_rows} rows, {n_features} features, {n_classes} classes)"

    def __getitem__(self, place: Any) -> Any:
        """Return a part as a ``shap.Explanation``, indexed by row, feature and class.

        ``explanation[:, :, 0]`` is that of the first class; names of features, and labels that are
        strings, stand for their numbers.
        """
        return self.to_shap()[place]

    def to_shap(self, class_: Any = None) -> Any:
        """Return a ``shap.Explanation``, which the plots of ``shap`` take.

        Parameters
        ----------
        class_ : label, optional
            The class whose scores are explained: most plots are of one. By default all of them, as
            the last axis.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError('to_shap needs shap: pip install "abcgbm[explain]"') from error
        which: Any = slice(None) if class_ is None else self._number(class_)
        base_values = np.repeat(self.base_values[None, :], len(self.values), axis=0)
        return shap.Explanation(
            self.values[:, :, which],
            base_values[:, which],
            self.data,
            display_data=self.display_data,
            feature_names=self.feature_names,
            output_names=np.array([str(label) for label in label_objects(self.classes)])[which],
        )

    def _number(self, class_: Any) -> int:
        """Return the number of a class by its label."""
        labels = label_objects(self.classes)
        return labels.index(known_label(class_, labels))


def explain(model: Model, table: AnyTable, n_threads: int, n_steps: int | None) -> Explanation:
    """Explain the scores of rows after all steps, or after the first ones."""
    n_steps = model.check_steps(n_steps)
    data = model.numbers(table)
    values = model.ensemble.shapley_values(data, n_threads, n_steps)
    if model.outputs.is_centred:
        values -= values.mean(axis=2, keepdims=True)
    return Explanation(
        values,
        model.outputs.by_class(model.ensemble.mean_scores(n_steps)),
        data,
        _with_levels(model, data),
        [*model.feature_labels],
        model.classes,
    )


def _with_levels(model: Model, data: Floats) -> NDArray[Any] | None:
    """Put levels in place of their codes; None if there are no categories."""
    if not model.encoding.levels:
        return None
    shown = data.astype(object)
    for feature, levels in model.encoding.levels.items():
        names = np.array([*(_shown_levels(some) for some in levels.by_code()), None], dtype=object)
        codes = data[:, feature]
        shown[:, feature] = names[np.where(np.isnan(codes), len(names) - 1, codes).astype(np.intp)]
    return shown


def _shown_levels(levels: list[Any]) -> Any:
    """Return the level of a code, or text for several that share it."""
    return levels[0] if len(levels) == 1 else f"one of {len(levels)} rare levels"
