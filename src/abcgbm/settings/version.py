"""Which version of the package this is."""

from importlib.metadata import version

VERSION = version("abcgbm")
