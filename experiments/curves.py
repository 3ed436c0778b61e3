"""Store curves of 10,000 iterations as a few thousand characters of text.

Test errors are exact. The logarithm of the training loss is stored in units of 1/1000 of a decade, so its
error is at most 0.12 %. Both are smooth: second differences are small integers, and compress well.
"""

import base64
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

PER_DECADE = 1000
SMALLEST_LOSS = 1e-18  # stored for a loss of 0


class Curves(NamedTuple):
    """Curves of a run over its iterations.

    Attributes
    ----------
    train_loss : ndarray of shape (n_steps + 1,)
        The summed training loss before the first step and after each.
    test_errors : ndarray of shape (n_steps,)
        The number of test errors after each iteration.
    """

    train_loss: NDArray[np.float64]
    test_errors: NDArray[np.int64]


def encode(curves: Curves) -> dict[str, str]:
    """Return the curves as text."""
    logs = np.log10(np.maximum(curves.train_loss, SMALLEST_LOSS))
    return {
        "train_loss": pack(np.rint(PER_DECADE * logs), order=2),
        "test_errors": pack(curves.test_errors, order=1),
    }


def decode(line: dict[str, str]) -> Curves:
    """Return the curves of a line of results."""
    logs = unpack(line["train_loss"], order=2) / PER_DECADE
    return Curves(10.0**logs, unpack(line["test_errors"], order=1))


def pack(values: ArrayLike, order: int) -> str:
    """Return integers as text: differences of some order, compressed."""
    numbers = np.asarray(values).astype(np.int32)
    for _ in range(order):
        numbers = np.diff(numbers, prepend=np.int32(0))
    # Byte planes are separated: the high bytes of small numbers are nearly all equal.
    zigzag = ((numbers << 1) ^ (numbers >> 31)).astype("<u4")
    planes = zigzag.view(np.uint8).reshape(-1, 4).T.tobytes()
    return base64.b64encode(zlib.compress(planes, 9)).decode()


def unpack(text: str, order: int) -> NDArray[np.int64]:
    """Return the integers of ``pack``."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    zigzag = np.ascontiguousarray(planes.reshape(4, -1).T).view("<u4").ravel().astype(np.int64)
    numbers = (zigzag >> 1) ^ -(zigzag & 1)
    for _ in range(order):
        numbers = np.cumsum(numbers)
    return numbers
