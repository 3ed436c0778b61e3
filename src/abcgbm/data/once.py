"""Values computed once, and warnings issued once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """A property that is computed on first access, without a lock.

    ``functools.cached_property`` of Python 3.11 has one lock for all instances of a class: a
    process forked while it is held would deadlock. Here two threads may compute the same value
    twice.
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
        value = owner.__dict__[self._name] = self._compute(owner)  # shadows the property
        return value


_WARNED = "_warned"


class WarnsOnce:
    """Base of frozen dataclasses that warn once per topic and instance.

    The record of warnings is not a field, so it affects neither equality, copies, pickles nor
    digests.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _warn_once(self, topic: str, message: str) -> None:
        """Issue a UserWarning, unless one of the same topic was issued before by any thread."""
        warned, mine = self.__dict__.setdefault(_WARNED, {}), object()
        if warned.setdefault(topic, mine) is not mine:  # atomic, hence no lock
            return
        try:
            # The depth of the user's call varies, so stacklevel cannot point to it.
            warnings.warn(message, UserWarning, stacklevel=1)
        except UserWarning:  # turned into an error by a filter: every call must raise it
            del warned[topic]
            raise
