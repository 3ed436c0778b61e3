"""Categories of a categorical column, and their codes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Category
from abcgbm.data.once import WarnsOnce
from abcgbm.errors import quoted_list

_MAX_LISTED = 5  # categories in an error
_MIN_SUSPICIOUS = 20  # warn if at least this many values are given and all are unknown


@dataclass(frozen=True, repr=False)
class CategoryMap(WarnsOnce):
    """Map from the categories of a column to their codes.

    Codes ascend with the categories. If there are more categories than codes, those of the smallest
    weight come last and share the last code.

    Attributes
    ----------
    column : str
        Name of the column in errors.
    code_of : dict of str or float to int
        Code of each category. All are strings, or all are numbers.
    """

    column: str
    code_of: dict[Any, int]

    def __repr__(self) -> str:
        return f"CategoryMap({self.column}, {len(self.code_of)} categories, {self.n_codes} codes)"

    @classmethod
    def learn(
        cls,
        column: str,
        chunks: Iterable[list[Category]],
        weight: NDArray[np.int64],
        max_codes: int,
    ) -> Self:
        """Learn the categories of a column.

        Parameters
        ----------
        column : str
            Name of the column in errors.
        chunks : iterable of list of str, float or None
            The values; None is missing.
        weight : ndarray of int64 of shape (n_rows,)
            Weights. If there are too many categories, the ``max_codes - 1`` of largest weight have
            a code of their own; the smaller category wins a tie.
        max_codes : int
            Maximum number of codes.
        """
        return cls.from_weights(column, category_weights(chunks, weight), max_codes)

    @classmethod
    def from_weights(cls, column: str, total: dict[Any, int], max_codes: int) -> Self:
        """Assign codes to categories, given the total weight of each."""
        _check_one_type(column, total)
        # Codes follow the sorted categories, so neither the order of the rows nor the codes of a data
        # frame influence the model.
        categories = sorted(total)
        if len(categories) <= max_codes:
            return cls(column, {category: code for code, category in enumerate(categories)})
        heaviest = set(sorted(categories, key=lambda category: -total[category])[: max_codes - 1])
        own = [category for category in categories if category in heaviest]
        rare = dict.fromkeys(
            (category for category in categories if category not in heaviest), len(own)
        )
        return cls(column, {category: code for code, category in enumerate(own)} | rare)

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return max(self.code_of.values(), default=-1) + 1

    @property
    def has_strings(self) -> bool:
        """Whether categories are strings rather than numbers."""
        return any(isinstance(category, str) for category in self.code_of)

    def by_code(self) -> list[list[Any]]:
        """Return the categories of each code, ascending; only the last code can have several."""
        categories: list[list[Any]] = [[] for _ in range(self.n_codes)]
        for category, code in self.code_of.items():
            categories[code].append(category)
        return categories

    def check(self) -> None:
        """Raise a ValueError unless `learn` could have returned this map."""
        categories, codes = [*self.code_of], [*self.code_of.values()]
        last = self.n_codes - 1  # which several categories may share
        n_own = sum(code < last for code in codes)
        could_be = (
            {type(category) for category in categories} in (set(), {str}, {float})
            and codes == [min(place, n_own) for place in range(len(codes))]
            and categories[:n_own] == sorted(categories[:n_own])
            and categories[n_own:] == sorted(categories[n_own:])
        )
        if not could_be:
            raise ValueError(f"{self.column} has categories that could not have been learned")

    def thresholds(self) -> NDArray[np.float64]:
        """Return the thresholds between the codes: 0.5, 1.5 and so on."""
        return np.arange(0.5, self.n_codes - 1)

    def codes(
        self, chunks: Iterable[list[Category]], handle_unknown: str = "missing"
    ) -> NDArray[np.float64]:
        """Return the codes of values; NaN for missing ones.

        Warn once if there are at least 20 unknown values, and no known one.

        Parameters
        ----------
        chunks : iterable of list of str, float or None
            The values; None is missing.
        handle_unknown : {"missing", "error"}
            Whether an unknown category is treated as missing or is an error.
        """
        found = [np.empty(0)]
        unknown: set[Any] = set()  # of the last chunk that has any, enough examples for a warning
        n_unknown = 0
        for chunk in chunks:
            codes = np.array(
                [self.code_of.get(category, np.nan) for category in chunk], dtype=np.float64
            )
            rows = np.flatnonzero(np.isnan(codes)).tolist()
            new = [chunk[row] for row in rows if chunk[row] is not None]
            if new:
                unknown = {*new}
                n_unknown += len(new)
                self._check_unknown(unknown, handle_unknown)
            found.append(codes)
        codes = np.concatenate(found)
        if self.code_of and n_unknown >= _MIN_SUSPICIOUS and np.isnan(codes).all():
            self._warn_of_unknown(unknown, n_unknown)
        return codes

    def check_type(self, chunks: Iterable[list[Category]]) -> None:
        """Raise a TypeError if values are numbers where strings were learned, or vice versa."""
        first = next(
            (category for chunk in chunks for category in chunk if category is not None), None
        )
        known = next(iter(self.code_of), None)
        if first is not None and known is not None and type(first) is not type(known):
            raise TypeError(
                f"{self.column} has categories such as {known!r}, but was given {first!r}; expected "
                f"{_NAMES[type(known)]} as in fit"
            )

    def _check_unknown(self, unknown: set[Any], handle_unknown: str) -> None:
        _check_one_type(self.column, unknown)
        self.check_type([[next(iter(unknown))]])
        if handle_unknown == "error":
            raise ValueError(
                f"{self.column} has unknown categories {_listed(unknown)}; expected some of "
                f"{_listed(self.code_of)}, or handle_unknown='missing'"
            )

    def _warn_of_unknown(self, unknown: set[Any], n_unknown: int) -> None:
        self._warn_once(
            "unknown",
            f"{self.column} has {n_unknown} values and none is a category seen in fit, so all are treated "
            f"as missing: {_listed(unknown)}; expected some of {_listed(self.code_of)}",
        )


def _listed(categories: Collection[Any]) -> str:
    if not categories:
        return "none, as all values were missing in fit"
    return quoted_list(sorted(categories), _MAX_LISTED)


_NAMES = {str: "strings", float: "numbers"}


def category_weights(chunks: Iterable[list[Category]], weight: NDArray[np.int64]) -> dict[Any, int]:
    """Return the total weight of each category; integers, so totals of batches can be added."""
    total: dict[Any, int] = {}
    start = 0
    for chunk in chunks:
        weights = weight[start : start + len(chunk)].tolist()
        for category, of_row in zip(chunk, weights, strict=True):
            total[category] = total.get(category, 0) + of_row
        start += len(chunk)
    total.pop(None, None)
    return total


def _check_one_type(column: str, categories: Iterable[Any]) -> None:
    if len({type(category) for category in categories}) > 1:
        raise TypeError(
            f"{column} has both strings and numbers as categories; expected one of the two"
        )
