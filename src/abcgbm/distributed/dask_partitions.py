"""Tables of Dask as partitions: one future for each, of the rows with their labels and weights."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import dask
import dask.array
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from abcgbm.distributed.dask_engine import forget_workers, silent_workers, workers_of

RECOVERY = 120.0  # seconds without any progress after which lost partitions are given up
_LOOK = 10.0  # seconds without progress after which workers are looked for
_ANSWER = 20.0  # seconds that they have then; tasks of the user may keep them busy
_ALLOWED = "a dask DataFrame, Series or Array, or a list with a future or a delayed object for each partition"


class Part(NamedTuple):
    """A partition, as it lies on a worker."""

    X: Any
    y: Any
    sample_weight: Any
    n_rows: int


class LostDataError(RuntimeError):
    """Partitions are lost, and cannot be computed again."""


# -------------------------------------------------------------------------------------- what was given


def is_lazy(value: Any) -> bool:
    """Tell whether something is a collection of Dask."""
    return bool(dask.is_dask_collection(value))


def pieces_of(value: Any, name: str) -> list[Any]:
    """Return the partitions of an argument, each a delayed object or a future."""
    if isinstance(value, dask.array.Array):
        return _chunks_of(value, name)
    if isinstance(value, list | tuple):
        return _listed(value, name)
    if is_lazy(value) and hasattr(value, "to_delayed") and hasattr(value, "npartitions"):
        return list(value.to_delayed())
    kind = type(value)
    raise TypeError(f"{name} is a {kind.__module__}.{kind.__qualname__}; expected {_ALLOWED}")


def _chunks_of(array: Any, name: str) -> list[Any]:
    if array.ndim > 2 or array.ndim == 0:  # noqa: PLR2004
        raise ValueError(f"{name} has {array.ndim} dimensions; expected 2 of a table, 1 of labels")
    if array.ndim == 2 and array.numblocks[1] > 1:  # noqa: PLR2004
        array = array.rechunk({1: -1})
    return list(array.to_delayed().ravel())


def _listed(values: Sequence[Any], name: str) -> list[Any]:
    for number, value in enumerate(values):
        if not isinstance(value, Future | Delayed):
            raise TypeError(
                f"{name}[{number}] is a {type(value).__name__}; expected a future or a delayed object. "
                f"{name} may be {_ALLOWED}"
            )
    return list(values)


class Rows:
    """The partitions of rows that are learned from, or of those that are validated on.

    Parameters
    ----------
    X, y, sample_weight : collections or lists
        What was given.
    suffix : str
        What the names of these arguments end with.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, suffix: str = "") -> None:
        if y is None:
            raise ValueError(f"y{suffix} is None; expected the labels of X{suffix}")
        y, sample_weight = (_cut_like(X, given) for given in (y, sample_weight))
        self.suffix, self.has_weights = suffix, sample_weight is not None
        self._columns = [pieces_of(X, f"X{suffix}"), pieces_of(y, f"y{suffix}")]
        if sample_weight is not None:
            self._columns.append(pieces_of(sample_weight, f"sample_weight{suffix}"))
        self._check_numbers()

    def _check_numbers(self) -> None:
        names = ("X", "y", "sample_weight")
        numbers = {
            f"{name}{self.suffix}": len(pieces)
            for name, pieces in zip(names, self._columns, strict=False)
        }
        if len(set(numbers.values())) > 1:
            found = ", ".join(f"{name} has {number}" for name, number in numbers.items())
            raise ValueError(f"{found} partitions; expected the same number of each")
        if not self._columns[0]:
            raise ValueError(f"X{self.suffix} has no partitions; expected at least 1")

    def delayed(self) -> list[Delayed]:
        """Return a delayed part for each partition."""
        part = dask.delayed(make_part, pure=False)
        return [
            part(number, self.suffix, *pieces)
            for number, pieces in enumerate(zip(*self._columns, strict=True))
        ]


def _cut_like(X: Any, given: Any) -> Any:
    """Cut an array of labels or weights where X is cut, if both know where."""
    both = isinstance(X, dask.array.Array) and isinstance(given, dask.array.Array)
    if (
        not both
        or given.ndim != 1
        or X.chunks[0] == given.chunks[0]
        or X.shape[0] != given.shape[0]
    ):
        return given
    return given.rechunk((X.chunks[0],))


def make_part(number: int, suffix: str, X: Any, y: Any, sample_weight: Any = None) -> Part:
    """Put together what belongs to a partition, on a worker."""
    n_rows = _n_rows(X)
    for name, column in ((f"y{suffix}", y), (f"sample_weight{suffix}", sample_weight)):
        if column is not None and _n_rows(column) != n_rows:
            raise ValueError(
                f"partition {number} has {n_rows} rows of X{suffix}, but {_n_rows(column)} of {name}; "
                "expected as many"
            )
    weight = None if sample_weight is None else _with_shape(sample_weight)
    return Part(_with_shape(X), _with_shape(y), weight, n_rows)


def _with_shape(column: Any) -> Any:
    return column if hasattr(column, "shape") else np.asarray(column)


def _n_rows(column: Any) -> int:
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


# --------------------------------------------------------------------------------------- on the workers


class Placement(NamedTuple):
    """What a rank has: its worker, and the numbers and keys of partitions."""

    address: str
    learned: list[tuple[int, Any]]
    validated: list[tuple[int, Any]]


class TableKind(NamedTuple):
    """Of what the rows of a fit consist, on ranks too that have none of some."""

    has_weights: bool
    has_validation: bool
    has_validation_weights: bool


class Partitions:
    """Partitions that are kept on the workers of a cluster, and computed again if they are lost.

    Parameters
    ----------
    client : Client
        Of the cluster.
    learned : Rows
        To learn from.
    validated : Rows or None
        To validate on.
    heartbeat_timeout : float
        Seconds that a worker may be silent at least.
    """

    def __init__(
        self, client: Client, learned: Rows, validated: Rows | None, heartbeat_timeout: float = 0.0
    ) -> None:
        self._client = client
        self._answer = max(_ANSWER, heartbeat_timeout)
        self.form = TableKind(
            learned.has_weights,
            validated is not None,
            validated is not None and validated.has_weights,
        )
        given = [learned] if validated is None else [learned, validated]
        delayed = [rows.delayed() for rows in given]
        futures = client.compute([part for parts in delayed for part in parts])
        n_learned = len(delayed[0])
        self._learned, self._validated = futures[:n_learned], futures[n_learned:]

    def place(self, *, is_again: bool) -> list[Placement]:
        """Wait for all partitions, and choose a worker for each among those that have it.

        ``is_again`` says that they were lost: then the time without progress is bounded.
        """
        while True:
            self._wait(RECOVERY if is_again else None)
            holders = self._client.who_has([*self._learned, *self._validated])
            if all(holders.get(f.key) for f in [*self._learned, *self._validated]):
                return self._choose({key: sorted(names) for key, names in holders.items()})
            time.sleep(0.1)

    def _choose(self, holders: dict[Any, list[str]]) -> list[Placement]:
        placed: dict[str, Placement] = {}
        for which, futures in (("learned", self._learned), ("validated", self._validated)):
            for number, future in enumerate(futures):
                n_parts = {
                    a: len(getattr(placed[a], which)) if a in placed else 0
                    for a in holders[future.key]
                }
                address = min(n_parts, key=n_parts.__getitem__)
                rank = placed.setdefault(address, Placement(address, [], []))
                getattr(rank, which).append((number, future.key))
        return [placed[address] for address in sorted(placed)]

    # ------------------------------------------------------------------------------------ losing some

    def _wait(self, limit: float | None) -> None:
        n_left, since, looked = -1, time.monotonic(), time.monotonic()
        while pending := list(self._unfinished()):
            self._check(pending, since, limit)
            if len(pending) != n_left:
                n_left, since = len(pending), time.monotonic()
                looked = since
            if time.monotonic() - looked > _LOOK:
                forget_workers(self._client, self._silent([future.key for _, future in pending]))
                looked = time.monotonic()
            time.sleep(0.05)

    def _silent(self, pending: list[Any]) -> list[str]:
        """Find workers that hang, of which Dask would take note in minutes only.

        Those that have nothing to do with what is waited for are left alone.
        """
        return silent_workers(self._client, workers_of(self._client, pending), self._answer)

    def _unfinished(self) -> Iterator[tuple[str, Future]]:
        for name, futures in (("X", self._learned), ("X_val", self._validated)):
            for number, future in enumerate(futures):
                if future.status == "error":
                    future.result()
                if future.status != "finished":
                    yield f"{number} of {name}", future

    def _check(self, pending: list[tuple[str, Future]], since: float, limit: float | None) -> None:
        # What is "lost" is computed again, if the scheduler knows how.
        lost = [name for name, future in pending if future.status == "cancelled"]
        if lost:
            raise LostDataError(
                f"lost for good, as nothing is left that computes them: partitions {_shown(lost)}"
            )
        if limit is not None and time.monotonic() - since > limit:
            names = _shown([name for name, _ in pending])
            raise LostDataError(
                f"partitions {names} were lost, and not one was computed again within {limit:g} s "
                f"on {len(self._client.nthreads())} workers"
            )


def _shown(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
