"""Estimated memory of a training."""

from dataclasses import dataclass, replace
from typing import Any

from abcgbm import _core
from abcgbm.errors import format_bytes

_FLOAT = 8  # bytes


@dataclass(frozen=True)
class TrainingSize:
    """What the memory of a training depends on, apart from the coded table.

    Attributes
    ----------
    n_rows, n_validation_rows : int
        Rows to learn from, and to validate on.
    n_classes : int
        Classes.
    total_bins : int
        Bins of all features together.
    max_leaf_nodes, n_threads : int
        As given.
    n_candidates : int
        Base classes that a step tries, at most.
    has_hessian : bool
        Whether histograms hold hessians too.
    shared_trees : bool
        Whether a step has one tree for all classes.
    n_projections : int
        Directions that its cuts are measured in; as many as classes, or more, for all of these.
    is_warm_start : bool
        Whether training starts from the scores of an earlier model.
    has_scorer : bool
        Whether a scorer is asked about the rows to validate on.
    has_ranks : bool
        Whether other ranks have some of the rows: then all trees of a step grow together.
    in_folder : bool
        Whether what is as large as the rows lies in scratch files, and is not counted.
    """

    n_rows: int
    n_validation_rows: int
    n_classes: int
    total_bins: int
    max_leaf_nodes: int
    n_threads: int
    n_candidates: int
    has_hessian: bool
    shared_trees: bool = False
    n_projections: int = 0
    is_warm_start: bool = False
    has_scorer: bool = False
    has_ranks: bool = False
    in_folder: bool = False

    def parts(self) -> dict[str, int]:
        """Return the bytes of each large part."""
        params = _core.TrainParams(
            _core.GrowParams(self.max_leaf_nodes),
            _core.SplitParams(self.has_hessian),
            multi_output=self.shared_trees,
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
            "scores of the earlier model": self._earlier_scores(),
        }

    def _validation(self) -> int:
        """A scorer is handed copies of the scores, by row and as probabilities."""
        n_rows, n_classes = self.n_validation_rows, self.n_classes
        if self.in_folder:
            return 0
        handed = 2 * _FLOAT * n_rows * n_classes if self.has_scorer else 0
        return handed + _core.validation_bytes(n_rows, n_classes, self.n_threads)

    def _earlier_scores(self) -> int:
        """They are handed over, of the rows to learn from first, and then forgotten."""
        n_rows = max(self.n_rows, self.n_validation_rows)
        return _FLOAT * n_rows * self.n_classes if self.is_warm_start else 0

    def total(self) -> int:
        """Return the bytes of all parts."""
        return sum(self.parts().values())


def check(size: TrainingSize, available: int | None) -> None:
    """Raise MemoryError if a training cannot fit; say what would."""
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
    """Say how far one number alone would have to go down."""
    least = {
        "n_rows": (1, "rows"),
        "n_classes": (2, "classes"),
        "total_bins": (2, "bins (see max_bins)"),
        "n_threads": (1, "threads (see n_jobs)"),
        "n_projections": (1, "projections (see n_projections)"),
        "max_leaf_nodes": (2, "leaves (see max_leaf_nodes)"),
    }
    most = {name: _most(size, field, low, available) for field, (low, name) in least.items()}
    fitting = [f"{n} {name}" for name, n in most.items() if n is not None]
    if not fitting:
        return "Less of everything would fit: rows, classes, bins"
    return "Other things equal, these would fit: " + ", or ".join(fitting)


def _most(size: TrainingSize, field: str, low: int, available: int) -> int | None:
    """Return the largest value of one field that fits, or None if not even the least does."""

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
