"""Warnings that are given once for each object."""

import warnings
from dataclasses import fields
from typing import Any

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
