"""Boosted trees for multi-class classification: MART and ABC-MART."""

from importlib.metadata import version

from abcgbm.base_class import FixedBase
from abcgbm.binning import BinMapper
from abcgbm.classifier import ABCBoostClassifier

__all__ = ["ABCBoostClassifier", "BinMapper", "FixedBase"]
__version__ = version("abcgbm")
