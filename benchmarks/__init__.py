"""Benchmarks of the package and its peers; not part of the package."""
