"""Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms."""

# First, and from here: imported from deep in our own modules it takes a tenth longer, since Python
# then maps memory for its stack and gives it back thousands of times.
import sklearn as _sklearn  # noqa: F401

from abcgbm._version import VERSION
from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.bin_mapper import BinMapper
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.files.large_table import LargeTable
from abcgbm.model.file import ModelFileError
from abcgbm.parameters.algorithms import BaseClassSearch, FixedBase
from abcgbm.training.callbacks import StepReport

__all__ = [
    "ABCBoostClassifier",
    "BaseClassSearch",
    "BinMapper",
    "BinnedTable",
    "FixedBase",
    "LargeTable",
    "ModelFileError",
    "StepReport",
]
__version__ = VERSION


def __dir__() -> list[str]:
    """Name what the package offers: its modules are its own affair."""
    return [*__all__, "__version__"]
