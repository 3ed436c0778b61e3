"""A pickled model says when a bit of it has changed."""

from dataclasses import fields
from typing import Any

from abcgbm.data.digest import digest_of


class Sealed:
    """A frozen dataclass whose pickled state holds a digest of its fields, which loading checks."""

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return state | {"digest": digest_of(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        values = {name: value for name, value in state.items() if name != "digest"}
        if values.keys() != names or state.get("digest") != digest_of(values):
            raise ValueError(
                f"the pickled {type(self).__name__} was changed or damaged, or is of another "
                "version of abcgbm: its digest is not that of what it holds"
            )
        self.__dict__.update(values)
