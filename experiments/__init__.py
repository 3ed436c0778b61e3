"""Experiments on the paper's data sets; run from the root of a clone, not part of the package."""
