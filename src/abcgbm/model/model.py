"""A fitted model: all that prediction needs, and nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.data.encoding import Encoding
from abcgbm.data.labels import check_classes, label_objects
from abcgbm.data.lazy import lazy
from abcgbm.data.reading import AnyTable
from abcgbm.model.ensemble import Ensemble
from abcgbm.model.ensemble_check import check_ensemble
from abcgbm.model.outputs import Outputs, are_centred
from abcgbm.model.prediction import leaves, numbers, scores, staged_scores
from abcgbm.model.seal import Sealed
from abcgbm.settings.checks import check_integer


@dataclass(frozen=True, eq=False, repr=False)
class Model(Sealed):
    """What is left of a training.

    It serves prediction, a warm start, and whatever else is made of a model.

    Attributes
    ----------
    ensemble : Ensemble
        The trees, and the scores before the first of them.
    encoding : Encoding
        How a table becomes the numbers that the trees compare.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    recenter : bool
        Whether scores are reported without their row mean in any case.
    """

    ensemble: Ensemble
    encoding: Encoding
    classes: NDArray[Any]
    recenter: bool = False

    def __repr__(self) -> str:
        return f"Model({len(self.classes)} classes, {self.ensemble!r})"

    def check(self) -> None:
        """Raise a ValueError unless the trees, the encoding and the classes fit each other."""
        self.encoding.check()
        check_classes(self.classes)
        shape = (len(self.encoding.schema.is_categorical), len(self.classes))
        if shape != (self.ensemble.n_features, self.ensemble.n_classes):
            raise ValueError(
                f"trees for {self.ensemble.n_features} features and {self.ensemble.n_classes} "
                f"classes; there are {shape[0]} and {shape[1]}"
            )
        check_ensemble(self.ensemble, self.encoding.n_codes())

    @lazy
    def outputs(self) -> Outputs:
        """What its scores say."""
        ensemble = self.ensemble
        is_centred = are_centred(
            recenter=self.recenter, has_base=ensemble.has_base, init=ensemble.init
        )
        return Outputs(self.classes, is_centred)

    @property
    def n_steps(self) -> int:
        """Number of boosting steps."""
        return self.ensemble.n_steps

    @lazy
    def labels(self) -> list[Any]:
        """The labels of the classes, as Python has them."""
        return label_objects(self.classes)

    @lazy
    def levels_by_code(self) -> dict[int, list[list[Any]]]:
        """The levels of each code, by feature; of categories alone."""
        return {f: levels.by_code() for f, levels in self.encoding.levels.items()}

    @lazy
    def feature_labels(self) -> list[str]:
        """The names of the features; x0, x1 and so on if they had none."""
        names = self.encoding.schema.feature_names
        return (
            [f"x{f}" for f in range(self.ensemble.n_features)]
            if names is None
            else [*map(str, names)]
        )

    def raw(self, table: AnyTable, n_threads: int, n_steps: int | None = None) -> Floats:
        """Return the scores of rows, of shape (n_rows, n_classes), after all steps or the first ones."""
        n_steps = self.check_steps(n_steps)
        return scores(self.ensemble, self.encoding, table, n_threads, n_steps)

    def leaves(
        self, table: AnyTable, n_threads: int, n_steps: int | None = None
    ) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees)."""
        n_steps = self.check_steps(n_steps)
        return leaves(self.ensemble, self.encoding, table, n_threads, n_steps)

    def numbers(self, table: AnyTable) -> Floats:
        """Return all features of rows as the numbers that trees compare."""
        return numbers(self.ensemble, self.encoding, table)

    def check_steps(self, n_steps: int | None) -> int:
        """Return a number of steps that the model has; None: all of them."""
        if n_steps is None:
            return self.n_steps
        return check_integer("n_steps", n_steps, 0, self.n_steps, note=" (those of the model)")

    def staged_raw(self, table: AnyTable, n_threads: int) -> Iterator[Floats]:
        """Yield the scores after each step. The array is the same each time, and grows."""
        return staged_scores(self.ensemble, self.encoding, table, n_threads)

    def first_steps(self, n_steps: int) -> "Model":
        """Return the model of the first steps alone."""
        return replace(self, ensemble=self.ensemble.first_steps(n_steps))

    def with_unknown(self, handle_unknown: str) -> "Model":
        """Return the same model with another way to handle levels that were not learned."""
        return replace(self, encoding=replace(self.encoding, handle_unknown=handle_unknown))
