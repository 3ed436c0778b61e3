"""Shards: which rows of the whole table each rank holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.communicator import Communicator, SingleProcess

PartitionSize = tuple[int, int]  # the number of a partition, and its number of rows
_MAX_NAMED = 5  # partitions in an error message


class Shard(NamedTuple):
    """The rows of the whole table that one rank holds.

    The order of all rows is that of the partitions by number, and within each that of its rows.

    Attributes
    ----------
    communicator : Communicator
        Communicator of the rank.
    partitions : sequence of (int, int), or None
        Number and size of each partition that the rank's rows consist of, in their order. None: a
        single partition, numbered as the rank.
    validation_partitions : sequence of (int, int), or None
        The same for the validation rows.
    has_named_partitions : bool
        Whether the partitions are the user's, so that error messages name them.
    """

    communicator: Communicator
    partitions: Sequence[PartitionSize] | None = None
    validation_partitions: Sequence[PartitionSize] | None = None
    has_named_partitions: bool = True

    @property
    def is_single(self) -> bool:
        """Whether there is only one rank."""
        return self.communicator.n_ranks == 1

    @property
    def name(self) -> str:
        """Name of the rank and its partitions for error messages."""
        rank = f"rank {self.communicator.rank}"
        if not self.partitions or not self.has_named_partitions:
            return rank
        numbers = [str(number) for number, _ in self.partitions[:_MAX_NAMED]]
        more = ", ..." if len(self.partitions) > _MAX_NAMED else ""
        plural = "s" if len(self.partitions) > 1 else ""
        return f"{rank} (partition{plural} {', '.join(numbers)}{more})"

    def for_validation(self) -> Shard:
        """Return the shard of the validation rows, which are a table of their own."""
        return Shard(self.communicator, self.validation_partitions)

    def with_rows(self, n_rows: int) -> Shard:
        """Return the shard with its partitions filled in, checked against the rows of the table."""
        if self.partitions is None:
            partitions = ((self.communicator.rank, n_rows),)
            return self._replace(partitions=partitions, has_named_partitions=False)
        n_given = sum(n for _, n in self.partitions)
        if n_given != n_rows:
            raise ValueError(
                f"the partitions of the shard have {n_given} rows in total; X has {n_rows} rows"
            )
        return self

    def take(self, rows: NDArray[np.int64]) -> Shard:
        """Return the shard of some of its rows, given by ascending index."""
        assert self.partitions is not None, "with_rows() first"
        ends = np.cumsum([n for _, n in self.partitions])
        sizes = np.diff(np.searchsorted(rows, ends), prepend=0).tolist()
        numbers = [number for number, _ in self.partitions]
        return self._replace(partitions=list(zip(numbers, sizes, strict=True)))

    def row_ids(self) -> NDArray[np.uint64]:
        """Return the index of each row in the whole table. A collective operation."""
        assert self.partitions is not None, "with_rows() first"
        gathered = self.communicator.allgather([*self.partitions])
        partitions = sorted(partition for of_rank in gathered for partition in of_rank)
        _check_unique(partitions)
        ends = np.cumsum([n for _, n in partitions])
        first = {p: end - n for (p, n), end in zip(partitions, ends, strict=True)}
        segments = [np.arange(first[p], first[p] + n, dtype=np.uint64) for p, n in self.partitions]
        return np.concatenate([np.empty(0, np.uint64), *segments])


def _check_unique(partitions: list[PartitionSize]) -> None:
    counts = Counter(number for number, _ in partitions)
    repeated = [number for number, n in counts.items() if n > 1]
    if repeated:
        raise ValueError(
            f"partition {repeated[0]} occurs {counts[repeated[0]]} times; expected each partition "
            "on one rank, once"
        )


LOCAL = Shard(SingleProcess())


def as_shard(given: Any) -> Shard:
    """Return the shard that the argument ``communicator`` of ``fit`` stands for."""
    if given is None:
        return LOCAL
    if isinstance(given, Communicator):
        return Shard(given)
    if not isinstance(given, Shard):
        raise TypeError(
            f"communicator={given!r}; expected None, a Communicator such as MPICommunicator(comm), or a "
            "Shard"
        )
    return given
