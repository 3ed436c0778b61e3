"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
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
