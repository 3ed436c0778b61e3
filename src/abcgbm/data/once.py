"""Values computed once, and warnings issued once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """A property that is computed once for each object, without a lock.

    That of ``functools`` has one in Python 3.11, held by all objects of a class together: a process
    forked meanwhile would wait for it forever. Here two threads may compute the same, once each.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Self | T:
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._compute(owner)  # is found there next time
        return value


_WARNED = "_warned"


class WarnsOnce:
    """A frozen dataclass that warns once of each topic; its copies and pickles start without warnings.

    What it has warned of is stored beside its fields, so it changes neither equality nor digests.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _warn_once(self, topic: str, message: str) -> None:
        """Issue a UserWarning, unless one of the same topic was issued by any thread."""
        warned, mine = self.__dict__.setdefault(_WARNED, {}), object()
        if warned.setdefault(topic, mine) is not mine:  # atomic, hence no lock
            return
        try:
            warnings.warn(
                message, UserWarning, stacklevel=1
            )  # as scikit-learn: many ways lead here
        except UserWarning:  # a filter makes it an error, which every call has to raise
            del warned[topic]
            raise
