"""Estimated memory of a training."""

from dataclasses import dataclass, replace
from typing import Any

from abcgbm import _core
from abcgbm.errors import format_bytes

_FLOAT = 8  # bytes


@dataclass(frozen=True)
class TrainingSize:
    """Size of a training, from which its memory is estimated, without the binned table.

    Attributes
    ----------
    n_rows, n_validation_rows : int
        Number of training rows and of validation rows.
    n_classes : int
        Number of classes.
    total_bins : int
        Number of bins of all features.
    max_leaf_nodes, n_threads : int
        As the parameters.
    n_candidates : int
        Maximum number of candidates for the base class.
    has_hessian : bool
        Whether histograms contain hessians.
    multi_output : bool
        Whether trees are multi-output trees.
    n_projections : int
        Number of projections that measure their splits; at least n_classes: all classes.
    is_warm_start : bool
        Whether training starts from the scores of a model.
    has_scorer : bool
        Whether the validation score is that of a scorer.
    has_ranks : bool
        Whether there are several ranks: then all trees of an iteration grow at the same time.
    in_folder : bool
        Whether arrays of all rows are stored in scratch files, which are not counted.
    """

    n_rows: int
    n_validation_rows: int
    n_classes: int
    total_bins: int
    max_leaf_nodes: int
    n_threads: int
    n_candidates: int
    has_hessian: bool
    multi_output: bool = False
    n_projections: int = 0
    is_warm_start: bool = False
    has_scorer: bool = False
    has_ranks: bool = False
    in_folder: bool = False

    def parts(self) -> dict[str, int]:
        """Return the bytes of each large component."""
        # Histograms are bounded in the core: 16 MB for all threads or 8 MB for each, and 16 MB for
        # the roots of a batch of trees.
        params = _core.TrainParams(
            _core.GrowParams(self.max_leaf_nodes),
            _core.SplitParams(self.has_hessian),
            multi_output=self.multi_output,
            n_projections=self.n_projections,
        )
        return _core.training_bytes(
            n_rows=self.n_rows,
            n_classes=self.n_classes,
            total_bins=self.total_bins,
            params=params,
            n_candidates=self.n_candidates,
            n_threads=self.n_threads,
            has_ranks=self.has_ranks,
            in_folder=self.in_folder,
        ) | {
            "validation": self._validation(),
            "scores of the earlier model": self._previous_scores(),
        }

    def _validation(self) -> int:
        # A scorer gets copies of the scores, by row and as probabilities.
        n_rows, n_classes = self.n_validation_rows, self.n_classes
        if self.in_folder:
            return 0
        copies = 2 * _FLOAT * n_rows * n_classes if self.has_scorer else 0
        return copies + _core.validation_bytes(n_rows, n_classes, self.n_threads)

    def _previous_scores(self) -> int:
        # Those of the training rows are freed before those of the validation rows are computed.
        n_rows = max(self.n_rows, self.n_validation_rows)
        return _FLOAT * n_rows * self.n_classes if self.is_warm_start else 0

    def total(self) -> int:
        """Return the bytes of all components."""
        return sum(self.parts().values())


def check(size: TrainingSize, available: int | None) -> None:
    """Raise MemoryError if a training does not fit into memory; the message says what would."""
    if available is None or size.total() <= available:
        return
    largest_first = sorted(size.parts().items(), key=lambda part: -part[1])
    parts = ", ".join(
        f"{name} {format_bytes(n)}" for name, n in largest_first if 20 * n > size.total()
    )
    raise MemoryError(
        f"training needs about {format_bytes(size.total())} besides the table ({parts}); "
        f"{format_bytes(available)} are available. {_what_fits(size, available)}"
    )


def _what_fits(size: TrainingSize, available: int) -> str:
    """Return, for the message, how far each number alone would have to decrease."""
    minima = {
        "n_rows": (1, "rows"),
        "n_classes": (2, "classes"),
        "total_bins": (2, "bins (see max_bins)"),
        "n_threads": (1, "threads (see n_jobs)"),
        "n_projections": (1, "projections (see n_projections)"),
        "max_leaf_nodes": (2, "leaves (see max_leaf_nodes)"),
    }
    largest = {name: _max_fitting(size, f, low, available) for f, (low, name) in minima.items()}
    fitting = [f"{n} {name}" for name, n in largest.items() if n is not None]
    if not fitting:
        return "Less of everything would fit: rows, classes, bins"
    return "Other things equal, these would fit: " + ", or ".join(fitting)


def _max_fitting(size: TrainingSize, field: str, low: int, available: int) -> int | None:
    """Return the largest value of one field that fits; None if the smallest does not."""

    def fits(value: int) -> bool:
        changed: dict[str, Any] = {field: value}
        return replace(size, **changed).total() <= available

    high = int(getattr(size, field))
    if low >= high or not fits(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
