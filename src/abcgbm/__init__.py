"""Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms."""

from importlib.metadata import version

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.binning import BinMapper
from abcgbm.training.base_class import BaseClassSearch, FixedBase

__all__ = ["ABCBoostClassifier", "BaseClassSearch", "BinMapper", "BinnedTable", "FixedBase"]
__version__ = version("abcgbm")
