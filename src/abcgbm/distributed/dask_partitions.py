"""Partitions of Dask tables: one future each, of rows with their labels and weights."""

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

_RECOVERY_TIMEOUT = 120.0  # seconds without progress after which lost partitions are an error
_CHECK_INTERVAL = 10.0  # seconds without progress after which workers are checked
_ANSWER_TIMEOUT = 20.0  # seconds for their answer; tasks of the user may keep them busy
_ALLOWED = "a dask DataFrame, Series or Array, or a list with a future or a delayed object for each partition"


class Partition(NamedTuple):
    """A partition as stored on a worker."""

    X: Any
    y: Any
    sample_weight: Any
    n_rows: int


class LostDataError(RuntimeError):
    """Partitions are lost and cannot be computed again."""


# ------------------------------------------------------------------------------------------- arguments


def is_lazy(value: Any) -> bool:
    """Return whether a value is a Dask collection."""
    return bool(dask.is_dask_collection(value))


def partitions_of(value: Any, name: str) -> list[Any]:
    """Return the partitions of an argument as delayed objects or futures."""
    if isinstance(value, dask.array.Array):
        return _chunks_of(value, name)
    if isinstance(value, list | tuple):
        return _checked_list(value, name)
    if is_lazy(value) and hasattr(value, "to_delayed") and hasattr(value, "npartitions"):
        return list(value.to_delayed())
    kind = type(value)
    raise TypeError(f"{name} is a {kind.__module__}.{kind.__qualname__}; expected {_ALLOWED}")


def _chunks_of(array: Any, name: str) -> list[Any]:
    if array.ndim > 2 or array.ndim == 0:  # noqa: PLR2004
        raise ValueError(
            f"{name} has {array.ndim} dimensions; expected 2 for a table, 1 for labels"
        )
    if array.ndim == 2 and array.numblocks[1] > 1:  # noqa: PLR2004
        array = array.rechunk({1: -1})
    return list(array.to_delayed().ravel())


def _checked_list(values: Sequence[Any], name: str) -> list[Any]:
    for number, value in enumerate(values):
        if not isinstance(value, Future | Delayed):
            raise TypeError(
                f"{name}[{number}] is a {type(value).__name__}; expected a future or a delayed object. "
                f"{name} may be {_ALLOWED}"
            )
    return list(values)


class PartitionedRows:
    """Training or validation rows as partitions.

    Parameters
    ----------
    X, y, sample_weight : collections or lists
        Arguments of fit.
    suffix : str
        Suffix of the names of these arguments.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, suffix: str = "") -> None:
        if y is None:
            raise ValueError(f"y{suffix} is None; expected the labels of X{suffix}")
        y, sample_weight = (_rechunk_like(X, given) for given in (y, sample_weight))
        self.suffix, self.has_weights = suffix, sample_weight is not None
        self._columns = [partitions_of(X, f"X{suffix}"), partitions_of(y, f"y{suffix}")]
        if sample_weight is not None:
            self._columns.append(partitions_of(sample_weight, f"sample_weight{suffix}"))
        self._check_numbers()

    def _check_numbers(self) -> None:
        names = ("X", "y", "sample_weight")
        numbers = {
            f"{name}{self.suffix}": len(partitions)
            for name, partitions in zip(names, self._columns, strict=False)
        }
        if len(set(numbers.values())) > 1:
            found = ", ".join(f"{name} has {number}" for name, number in numbers.items())
            raise ValueError(f"{found} partitions; expected the same number of each")
        if not self._columns[0]:
            raise ValueError(f"X{self.suffix} has no partitions; expected at least 1")

    def delayed(self) -> list[Delayed]:
        """Return a delayed `Partition` for each partition."""
        make = dask.delayed(make_partition, pure=False)
        return [
            make(number, self.suffix, *columns)
            for number, columns in enumerate(zip(*self._columns, strict=True))
        ]


def _rechunk_like(X: Any, given: Any) -> Any:
    """Give an array of labels or weights the chunks of X, if both are arrays of known chunks."""
    both = isinstance(X, dask.array.Array) and isinstance(given, dask.array.Array)
    if (
        not both
        or given.ndim != 1
        or X.chunks[0] == given.chunks[0]
        or X.shape[0] != given.shape[0]
    ):
        return given
    return given.rechunk((X.chunks[0],))


def make_partition(
    number: int, suffix: str, X: Any, y: Any, sample_weight: Any = None
) -> Partition:
    """Return a partition, on a worker."""
    n_rows = _n_rows(X)
    for name, column in ((f"y{suffix}", y), (f"sample_weight{suffix}", sample_weight)):
        if column is not None and _n_rows(column) != n_rows:
            raise ValueError(
                f"partition {number} has {n_rows} rows of X{suffix}, but {_n_rows(column)} of {name}; "
                "expected the same number"
            )
    weight = None if sample_weight is None else _with_shape(sample_weight)
    return Partition(_with_shape(X), _with_shape(y), weight, n_rows)


def _with_shape(column: Any) -> Any:
    return column if hasattr(column, "shape") else np.asarray(column)


def _n_rows(column: Any) -> int:
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


# --------------------------------------------------------------------------------------- on the workers


class Placement(NamedTuple):
    """A rank: its worker, and the numbers and keys of the partitions there."""

    address: str
    train: list[tuple[int, Any]]
    validation: list[tuple[int, Any]]


class TableKind(NamedTuple):
    """What the rows of a fit consist of, also for ranks without any."""

    has_weights: bool
    has_validation: bool
    has_validation_weights: bool


class Partitions:
    """Partitions held by the workers of a cluster, and computed again if they are lost.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    train : PartitionedRows
        Training rows.
    validation : PartitionedRows or None
        Validation rows.
    heartbeat_timeout : float
        Minimum time, in seconds, that a worker has for an answer.
    """

    def __init__(
        self,
        client: Client,
        train: PartitionedRows,
        validation: PartitionedRows | None,
        heartbeat_timeout: float = 0.0,
    ) -> None:
        self._client = client
        self._answer_timeout = max(_ANSWER_TIMEOUT, heartbeat_timeout)
        self.kind = TableKind(
            train.has_weights,
            validation is not None,
            validation is not None and validation.has_weights,
        )
        delayed = train.delayed()
        n_train = len(delayed)
        if validation is not None:
            delayed += validation.delayed()
        futures = client.compute(delayed)
        self._train, self._validation = futures[:n_train], futures[n_train:]

    def place(self, *, is_retry: bool) -> list[Placement]:
        """Wait for all partitions, and choose a worker for each of them.

        ``is_retry``: partitions may be lost, so the time without progress is limited.
        """
        while True:
            self._wait(_RECOVERY_TIMEOUT if is_retry else None)
            holders = self._client.who_has([*self._train, *self._validation])
            if all(holders.get(f.key) for f in [*self._train, *self._validation]):
                return self._choose({key: sorted(names) for key, names in holders.items()})
            time.sleep(0.1)

    def _choose(self, holders: dict[Any, list[str]]) -> list[Placement]:
        placed: dict[str, Placement] = {}
        # Each partition goes to the worker with the fewest among those that hold it.
        for which, futures in (("train", self._train), ("validation", self._validation)):
            for number, future in enumerate(futures):
                n_partitions = {
                    a: len(getattr(placed[a], which)) if a in placed else 0
                    for a in holders[future.key]
                }
                address = min(n_partitions, key=n_partitions.__getitem__)
                rank = placed.setdefault(address, Placement(address, [], []))
                getattr(rank, which).append((number, future.key))
        return [placed[address] for address in sorted(placed)]

    # ---------------------------------------------------------------------------------- lost partitions

    def _wait(self, timeout: float | None) -> None:
        n_left, since, checked = -1, time.monotonic(), time.monotonic()
        while pending := list(self._unfinished()):
            self._check(pending, since, timeout)
            if len(pending) != n_left:
                n_left, since = len(pending), time.monotonic()
                checked = since
            if time.monotonic() - checked > _CHECK_INTERVAL:
                # Dask itself notices workers that hang only after minutes. Workers that neither hold nor
                # compute what is pending are not checked.
                involved = workers_of(self._client, [future.key for _, future in pending])
                silent = silent_workers(self._client, involved, self._answer_timeout)
                forget_workers(self._client, silent)
                checked = time.monotonic()
            time.sleep(0.05)

    def _unfinished(self) -> Iterator[tuple[str, Future]]:
        for name, futures in (("X", self._train), ("X_val", self._validation)):
            for number, future in enumerate(futures):
                if future.status == "error":
                    future.result()
                if future.status != "finished":
                    yield f"{number} of {name}", future

    def _check(
        self, pending: list[tuple[str, Future]], since: float, timeout: float | None
    ) -> None:
        # Lost partitions become "cancelled" if the scheduler does not know how to compute them.
        lost = [name for name, future in pending if future.status == "cancelled"]
        if lost:
            raise LostDataError(f"lost, and cannot be computed again: partitions {_shorten(lost)}")
        if timeout is not None and time.monotonic() - since > timeout:
            names = _shorten([name for name, _ in pending])
            raise LostDataError(
                f"partitions {names} were lost, and none was computed again within {timeout:g} s "
                f"on {len(self._client.nthreads())} workers"
            )


def _shorten(names: Sequence[str], max_shown: int = 10) -> str:
    more = f" and {len(names) - max_shown} more" if len(names) > max_shown else ""
    return ", ".join(names[:max_shown]) + more
