"""Version of the installed package."""

from importlib.metadata import version

VERSION = version("abcgbm")
