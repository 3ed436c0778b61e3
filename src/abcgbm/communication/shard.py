"""Shards: which rows of the whole table each rank holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.communicator import Communicator, SingleProcess

Part = tuple[int, int]  # the number of a partition, and its rows
_MAX_NAMED = 5  # partitions in an error


class Shard(NamedTuple):
    """What a rank has of the rows.

    All rows in their order are the partitions by their numbers, and in each its rows in their order.

    Attributes
    ----------
    communicator : Communicator
        The rank.
    partitions : sequence of (int, int), or None
        The number and the rows of each partition that the rank's rows are made of, in their order;
        None: they are a single one, numbered as the rank.
    validated : sequence of (int, int), or None
        The same of the rows to validate on.
    is_cut : bool
        Whether the user knows of the partitions, so that errors name them.
    """

    communicator: Communicator
    partitions: Sequence[Part] | None = None
    validated: Sequence[Part] | None = None
    is_cut: bool = True

    @property
    def is_single(self) -> bool:
        """Whether there is no other rank."""
        return self.communicator.n_ranks == 1

    @property
    def name(self) -> str:
        """What errors call the rank, and what it holds."""
        rank = f"rank {self.communicator.rank}"
        if not self.partitions or not self.is_cut:
            return rank
        numbers = [str(number) for number, _ in self.partitions[:_MAX_NAMED]]
        more = ", ..." if len(self.partitions) > _MAX_NAMED else ""
        return f"{rank} (partition{'s' if len(self.partitions) > 1 else ''} {', '.join(numbers)}{more})"

    def of_validation(self) -> Shard:
        """Return the share of the rows to validate on, which are no part of those to learn from."""
        return Shard(self.communicator, self.validated)

    def settled(self, n_rows: int) -> Shard:
        """Return the share of a table of so many rows, whose partitions are known."""
        if self.partitions is None:
            return self._replace(partitions=((self.communicator.rank, n_rows),), is_cut=False)
        n_given = sum(n for _, n in self.partitions)
        if n_given != n_rows:
            raise ValueError(
                f"the shard has partitions of {n_given} rows together; X has {n_rows} rows"
            )
        return self

    def taken(self, places: NDArray[np.int64]) -> Shard:
        """Return the share of some of the rows, by their places, ascending."""
        assert self.partitions is not None, "settled first"
        ends = np.cumsum([n for _, n in self.partitions])
        n_before = np.searchsorted(places, ends)
        kept = np.diff(n_before, prepend=0).tolist()
        return self._replace(
            partitions=[(p, n) for (p, _), n in zip(self.partitions, kept, strict=True)]
        )

    def numbers(self) -> NDArray[np.uint64]:
        """Return the number of each row among those of all ranks; all ranks must ask."""
        assert self.partitions is not None, "settled first"
        parts = sorted(
            part for of_rank in self.communicator.allgather([*self.partitions]) for part in of_rank
        )
        _check_each_once(parts)
        first = dict(
            zip((p for p, _ in parts), np.cumsum([0, *(n for _, n in parts)]), strict=False)
        )
        stretches = [np.arange(first[p], first[p] + n, dtype=np.uint64) for p, n in self.partitions]
        return np.concatenate([np.empty(0, np.uint64), *stretches])


def _check_each_once(parts: list[Part]) -> None:
    twice = [number for number, n in Counter(number for number, _ in parts).items() if n > 1]
    if twice:
        raise ValueError(
            f"the partition {twice[0]} is there twice; expected each on one rank, once"
        )


LOCAL = Shard(SingleProcess())


def as_shard(given: Any) -> Shard:
    """Return what a user gave as a share: one, a rank, or None where there is no other."""
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
