"""Gradient boosted trees for multi-class classification."""

# Imported first: from deep within our modules the import takes a tenth longer, since Python then
# maps and unmaps memory for its stack thousands of times.
import sklearn as _sklearn  # noqa: F401

from abcgbm._version import VERSION
from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.bin_mapper import BinMapper
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.files.large_table import LargeTable
from abcgbm.model.file import ModelFileError
from abcgbm.parameters.algorithms import (
    AdaptiveBaseClass,
    Categorical,
    Checkpoint,
    KeepOnInterrupt,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.parameters.hints import export_hint as _export_hint
from abcgbm.training.callbacks import IterationReport

__all__ = [
    "ABCBoostClassifier",
    "AdaptiveBaseClass",
    "BinMapper",
    "BinnedTable",
    "Categorical",
    "Checkpoint",
    "IterationReport",
    "KeepOnInterrupt",
    "LargeTable",
    "ModelFileError",
    "MultiOutputTrees",
    "TimeLimit",
    "TreePerClass",
]
__version__ = VERSION


def __dir__() -> list[str]:
    """List the public names only, not the modules."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    """Raise an ImportError that suggests the new name of an export of an earlier version.

    An AttributeError would lose its text in ``from abcgbm import``.
    """
    suggestion = _export_hint(name)
    if suggestion:
        raise ImportError(f"cannot import name {name!r} from 'abcgbm'{suggestion}")
    raise AttributeError(f"module 'abcgbm' has no attribute {name!r}")
