"""Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms."""

from importlib.metadata import version

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.binning import BinMapper, BinnedTable
from abcgbm.training.base_class import BaseClassSearch, FixedBase

__all__ = ["ABCBoostClassifier", "BaseClassSearch", "BinMapper", "BinnedTable", "FixedBase"]
__version__ = version("abcgbm")
