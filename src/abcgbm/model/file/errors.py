"""What is wrong with a model file."""

from collections.abc import Iterator
from contextlib import contextmanager


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, foreign, of a newer format, or made to mislead."""


@contextmanager
def as_model_file_errors(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise errors of some kinds as ``ModelFileError``, and say where in the file they came up."""
    try:
        yield
    except ModelFileError:
        raise
    except kinds as error:
        raise ModelFileError(f"{where}: {error}") from error
