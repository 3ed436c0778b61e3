"""Which file a checkpoint may replace."""

import os
from collections.abc import Iterable
from pathlib import Path

from abcgbm.model.file import ModelFileError, checkpoint_state
from abcgbm.training.facts import Facts, differences

_EXPECTED = (
    "expected a path without a file, or a file that may be replaced: an empty one, a model file, or a "
    "checkpoint of the same training (abcgbm train --force replaces others, too)"
)


def check_replaceable(path: Path | None, read: Iterable[Path], *, force: bool) -> None:
    """Raise an OSError if a checkpoint would replace a file that may be of use.

    A device or a pipe is written to, not replaced.

    Parameters
    ----------
    path : Path or None
        Where checkpoints are written; None: nowhere.
    read : iterable of Path
        The files that the fit reads. None of them is ever replaced.
    force : bool
        Whether a file that is no model file may be replaced.
    """
    if path is None or not path.is_file():
        return
    for other in read:
        if other.exists() and path.samefile(other):
            raise FileExistsError(
                f"checkpoint={str(path)!r} is {str(other)!r}, which the fit reads; expected another file"
            )
    if not os.access(path, os.W_OK):
        raise PermissionError(f"checkpoint={str(path)!r}: the file cannot be written to")
    if not force and path.stat().st_size > 0:
        _check_model_file(path)


def _check_model_file(path: Path) -> None:
    try:
        checkpoint_state(path)
    except ModelFileError as error:
        raise FileExistsError(
            f"checkpoint={str(path)!r}: the file exists, and is no model file; {_EXPECTED}"
        ) from error


def check_same_training(path: Path | None, facts: Facts) -> None:
    """Raise a FileExistsError if there is a checkpoint of a fit that depends on other facts."""
    if path is None or not path.is_file() or path.stat().st_size == 0:
        return
    state = checkpoint_state(path)
    if state is None:
        return
    then = state.get("facts")
    known = {name: str(fact) for name, fact in then.items()} if isinstance(then, dict) else {}
    found = differences(known, facts)
    if found:
        raise FileExistsError(
            f"checkpoint={str(path)!r}: the file is the checkpoint of another training: "
            f"{'; '.join(found)}; {_EXPECTED}"
        )
