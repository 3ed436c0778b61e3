"""A model is what its bits say: a pickle that was damaged is an error, and equal bits are equal models."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from abcgbm.data.digest import digest_of
from abcgbm.settings.version import VERSION


def read_only(owner: Any) -> None:
    """Let nobody change the arrays of a dataclass: what is made of them would not follow."""
    for field in fields(owner):
        value = getattr(owner, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)


class Sealed:
    """A frozen dataclass whose pickled state holds a digest of its fields, which loading checks.

    A digest tells damage from what was saved, not good from bad: anybody can make one. So what is
    loaded, from a pickle or from a model file, is checked by itself, too.
    """

    def _content(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return digest_of(self._content()) == digest_of(other._content())

    def __hash__(self) -> int:
        return hash(digest_of(self._content()))

    def __getstate__(self) -> dict[str, Any]:
        state = self._content()
        return state | {"digest": digest_of(state), "version": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, written_by = type(self).__name__, state.get("version", "of an earlier version")
        values = {name: of for name, of in state.items() if name not in ("digest", "version")}
        if state.get("digest") != digest_of(values):
            raise ValueError(
                f"the pickled {kind} was changed or damaged (its digest is not that of what it "
                f"holds), or is of another version: abcgbm {written_by} wrote it, this is {VERSION}"
            )
        values = _defaults(self) | values
        odd = values.keys() ^ {field.name for field in fields(self)}  # type: ignore[arg-type]
        if odd:
            raise ValueError(
                f"the pickled {kind} is one of abcgbm {written_by}, and this is {VERSION}: of "
                f"{sorted(odd)} only one of them knows; a model file (save_model) lasts longer"
            )
        self.__dict__.update(values)
        self.check()

    def check(self) -> None:
        """Raise a ValueError if the fields do not fit each other, so that using them is safe."""
        raise NotImplementedError


def _defaults(owner: Any) -> dict[str, Any]:
    """Return the fields that may be left out."""
    return {field.name: field.default for field in fields(owner) if field.default is not MISSING}
