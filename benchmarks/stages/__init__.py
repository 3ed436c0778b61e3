"""One benchmark per stage, on tables shaped like some of the paper's.

``python -m pytest benchmarks --benchmark-enable`` times them; without the option each stage runs once, on a
few rows. The result of a stage is checked in both cases.
"""
