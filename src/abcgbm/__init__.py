"""Gradient boosted trees for multi-class classification."""

# First, and from here: imported from deep in our own modules it takes a tenth longer, since Python
# then maps memory for its stack and gives it back thousands of times.
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
    """Answer a name of an earlier version; an ImportError shows its text also in ``from abcgbm import``."""
    said = _export_hint(name)
    if said:
        raise ImportError(f"cannot import name {name!r} from 'abcgbm'{said}")
    raise AttributeError(f"module 'abcgbm' has no attribute {name!r}")
