"""Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms."""

from importlib.metadata import version

from abcgbm.base_class import BaseClassSearch, FixedBase
from abcgbm.binning import BinMapper, BinnedTable
from abcgbm.classifier import ABCBoostClassifier

__all__ = ["ABCBoostClassifier", "BaseClassSearch", "BinMapper", "BinnedTable", "FixedBase"]
__version__ = version("abcgbm")
