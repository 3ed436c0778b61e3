"""The levels of a categorical column, and the codes that stand for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Level
from abcgbm.data.once import WarnsOnce

_SHOWN = 5  # levels in an error
_BATCH = 20  # values that are suspicious if none of them is known


@dataclass(frozen=True, repr=False)
class CategoryMap(WarnsOnce):
    """The levels of a column in ascending order, each with its code.

    Codes follow the order of the values, so that neither the order of rows nor that of a category
    type matters. If there are too many levels, the lightest share the last code.

    Attributes
    ----------
    column : str
        What errors call the column.
    code_of : dict of str or float to int
        The codes of the levels: strings, or numbers.
    """

    column: str
    code_of: dict[Any, int]

    def __repr__(self) -> str:
        return f"Levels({self.column}, {len(self.code_of)} levels, {self.n_codes} codes)"

    @classmethod
    def learn(
        cls, column: str, chunks: Iterable[list[Level]], weight: NDArray[np.int64], most_codes: int
    ) -> Self:
        """Learn the levels that occur, at most ``most_codes`` codes of them.

        Parameters
        ----------
        column : str
            What errors call the column.
        chunks : iterable of list of str, float or None
            The values; None is missing.
        weight : ndarray of int64 of shape (n_rows,)
            Weights of the rows. If there are more levels than codes, the ``most_codes - 1`` heaviest
            have a code of their own; of equal ones the smaller.
        most_codes : int
            Most codes.
        """
        return cls.from_weights(column, category_weights(chunks, weight), most_codes)

    @classmethod
    def from_weights(cls, column: str, total: dict[Any, int], most_codes: int) -> Self:
        """Choose the codes of levels by the weight of each in all rows."""
        _check_one_type(column, total)
        levels = sorted(total)
        if len(levels) <= most_codes:
            return cls(column, {level: code for code, level in enumerate(levels)})
        heaviest = set(sorted(levels, key=lambda level: -total[level])[: most_codes - 1])
        own = [level for level in levels if level in heaviest]
        rare = dict.fromkeys((level for level in levels if level not in heaviest), len(own))
        return cls(column, {level: code for code, level in enumerate(own)} | rare)

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return max(self.code_of.values(), default=-1) + 1

    @property
    def has_strings(self) -> bool:
        """Whether levels are strings rather than numbers."""
        return any(isinstance(level, str) for level in self.code_of)

    def by_code(self) -> list[list[Any]]:
        """Return the levels of each code, ascending: one, but for the last code perhaps."""
        levels: list[list[Any]] = [[] for _ in range(self.n_codes)]
        for level, code in self.code_of.items():
            levels[code].append(level)
        return levels

    def check(self) -> None:
        """Raise a ValueError unless these could have been learned."""
        levels, codes = [*self.code_of], [*self.code_of.values()]
        last = self.n_codes - 1  # may be shared
        n_own = sum(code < last for code in codes)
        could_be = (
            {type(level) for level in levels} in (set(), {str}, {float})
            and codes == [min(place, n_own) for place in range(len(codes))]
            and levels[:n_own] == sorted(levels[:n_own])
            and levels[n_own:] == sorted(levels[n_own:])
        )
        if not could_be:
            raise ValueError(f"{self.column} has levels that could not have been learned")

    def thresholds(self) -> NDArray[np.float64]:
        """Return the thresholds between the codes as numbers: 0.5, 1.5 and so on."""
        return np.arange(0.5, self.n_codes - 1)

    def codes(
        self, chunks: Iterable[list[Level]], handle_unknown: str = "missing"
    ) -> NDArray[np.float64]:
        """Return the codes of values; NaN for missing ones.

        Warn, once, if there are 20 values or more and none of them was learned, though some were.

        Parameters
        ----------
        chunks : iterable of list of str, float or None
            The values; None is missing.
        handle_unknown : {"missing", "error"}
            A level that was not there to be learned is missing, or an error.
        """
        found, unknown, n_unknown = [np.empty(0)], set[Any](), 0
        for chunk in chunks:
            codes = np.array([self.code_of.get(level, np.nan) for level in chunk], dtype=np.float64)
            rows = np.flatnonzero(np.isnan(codes)).tolist()
            new = [chunk[row] for row in rows if chunk[row] is not None]
            if new:
                unknown, n_unknown = {*new}, n_unknown + len(new)
                self._check_unknown(unknown, handle_unknown)
            found.append(codes)
        codes = np.concatenate(found)
        if self.code_of and n_unknown >= _BATCH and np.isnan(codes).all():
            self._warn_of_unknown(unknown, n_unknown)
        return codes

    def check_type(self, chunks: Iterable[list[Level]]) -> None:
        """Raise a TypeError if values are numbers where strings were learned, or the reverse."""
        first = next((level for chunk in chunks for level in chunk if level is not None), None)
        known = next(iter(self.code_of), None)
        if first is not None and known is not None and type(first) is not type(known):
            raise TypeError(
                f"{self.column} has levels such as {known!r}, {_NAMES[type(known)]}; it is now "
                f"given {first!r}, expected {_NAMES[type(known)]} as in fit"
            )

    def _check_unknown(self, unknown: set[Any], handle_unknown: str) -> None:
        _check_one_type(self.column, unknown)
        self.check_type([[next(iter(unknown))]])
        if handle_unknown == "error":
            raise ValueError(
                f"{self.column} has unknown level(s) {_shown(unknown)}; expected some of "
                f"{_shown(self.code_of)}, or handle_unknown='missing'"
            )

    def _warn_of_unknown(self, unknown: set[Any], n_unknown: int) -> None:
        self._warn_once(
            "unknown",
            f"{self.column} has {n_unknown} values and none is a level of the fit, so all count as "
            f"missing: {_shown(unknown)}; expected some of {_shown(self.code_of)}",
        )


def _shown(levels: Collection[Any]) -> str:
    if not levels:
        return "none, as all values were missing in fit"
    more = f" and {len(levels) - _SHOWN} more" if len(levels) > _SHOWN else ""
    return ", ".join(repr(level) for level in sorted(levels)[:_SHOWN]) + more


_NAMES = {str: "strings", float: "numbers"}


def category_weights(chunks: Iterable[list[Level]], weight: NDArray[np.int64]) -> dict[Any, int]:
    """Return the weight of each level in some rows: integers, which add up over parts of the rows."""
    total: dict[Any, int] = {}
    start = 0
    for chunk in chunks:
        weights = weight[start : start + len(chunk)].tolist()
        for level, of_row in zip(chunk, weights, strict=True):
            total[level] = total.get(level, 0) + of_row
        start += len(chunk)
    total.pop(None, None)
    return total


def _check_one_type(column: str, levels: Iterable[Any]) -> None:
    if len({type(level) for level in levels}) > 1:
        raise TypeError(f"{column} has both strings and numbers as levels; expected one of the two")
